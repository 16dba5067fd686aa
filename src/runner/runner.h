/* runner.h - inside the runner: what its parts know of each other.
 *
 * main.c      arguments, the request loop
 * cudart.c    finds a CUDA runtime (NVIDIA's or the simulator) and greets with what it is
 * tensors.c   allocations with red zones, fills, poison, export
 * kernel.c    loads the one kernel and launches it
 * launches.c  listens in on what launch() asks of the runtime
 * lockdown.c  what is taken from the process before the kernel is loaded
 */
#pragma once
#include "sim/sim.h"
#include "wire/wire.h"
#include <stdarg.h>

#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))

/* What went wrong on our side; becomes a RUNNER_FAULT. */
typedef struct {
    char text[1024];
} Fault;
bool fault(Fault *fault, const char *fmt, ...) PRINTF_LIKE(2, 3); // returns false

/* ---- cudart.c ------------------------------------------------------------------------------- */

typedef int CudaError; // cudaError_t
enum { CUDA_SUCCESS = 0, CUDA_ERROR_MEMORY_ALLOCATION = 2 };
enum { COPY_TO_DEVICE = 1, COPY_TO_HOST = 2 }; // cudaMemcpyKind

typedef struct {
    void *library;
    bool simulated;
    CudaError (*SetDevice)(int);
    CudaError (*Malloc)(void **, size_t);
    CudaError (*Free)(void *);
    CudaError (*Memcpy)(void *, const void *, size_t, int);
    CudaError (*Memset)(void *, int, size_t);
    CudaError (*StreamCreate)(void **);
    CudaError (*StreamSynchronize)(void *);
    CudaError (*DeviceSynchronize)(void);
    CudaError (*GetLastError)(void);
    const char *(*GetErrorName)(CudaError);
    const char *(*GetErrorString)(CudaError);
    CudaError (*RuntimeGetVersion)(int *);
    CudaError (*DeviceGetAttribute)(int *, int, int);
    CudaError (*MemGetInfo)(size_t *, size_t *);
    CudaError (*GetDeviceProperties)(void *, int);
    // The simulator's own; NULL on a GPU.
    void (*sim_configure)(const SimOptions *);
    void (*sim_name)(void *, size_t, const char *);
    void (*sim_set_initialized)(void *, size_t, int);
    void (*sim_hide_memory)(int);
    size_t (*sim_take_reports)(SimReport *, size_t);
    size_t (*sim_take_counters)(SimCounter *, size_t);
    const char *(*sim_arch)(void);
} Cudart;

typedef struct {
    bool simulated;
    int index;           // cuda:N
    const char *library; // --cudart, or NULL: look for one
} DeviceChoice;

bool cudart_open(Cudart *cudart, const DeviceChoice *choice, Fault *why);
void cudart_greet(const Cudart *cudart, int index, WireWriter *hello);
bool cuda_ok(const Cudart *cudart, CudaError error, const char *what, Fault *why);

/* ---- tensors.c --------------------------------------------------------------------------------
 */

enum { MAX_TENSORS = 256, RED_ZONE_BYTES = 4096, ALIGNMENT = 256 };

/* Device memory in an allocation of its own: red zone, data, red zone. */
typedef struct {
    char name[64];
    uint8_t *base; // of the allocation; NULL: none
    uint8_t *data;
    uint64_t bytes; // of the data, to the byte
    uint64_t total; // of the allocation
} Guarded;

typedef struct {
    Guarded memory;
    DType dtype;
    bool is_output;
    int64_t elements;
    uint64_t exchange_offset;
} DeviceTensor;

typedef struct {
    Cudart cudart;
    void *stream;
    int exchange; // descriptor of the exchange file
    uint32_t count;
    DeviceTensor tensors[MAX_TENSORS];
    Guarded workspace;
    uint8_t poison;
    uint8_t *staging; // STAGING_BYTES: on the way between host and device
    // kernel.c
    void *object;
    CudaError (*entry)(void *const *, const int64_t *, void *, size_t, void *);
    size_t (*workspace_bytes)(const int64_t *);
} Runner;

enum { STAGING_BYTES = 1 << 20 };

bool guarded_allocate(const Runner *runner, const char *name, uint64_t bytes, Guarded *memory,
                      bool *out_of_memory, Fault *why);
bool guarded_free(const Runner *runner, Guarded *memory, Fault *why);
bool guarded_poison(const Runner *runner, const Guarded *memory, Fault *why);

/* One function per request; each reads its request and writes its answer. */
bool tensors_allocate(Runner *runner, WireReader *ask, Fault *why);
bool tensors_fill(Runner *runner, WireReader *ask, Fault *why);
bool tensors_poison(Runner *runner, WireReader *ask, Fault *why);
bool tensors_red_zones(Runner *runner, WireWriter *answer, Fault *why);
bool tensors_export(Runner *runner, WireReader *ask, WireWriter *answer, Fault *why);

/* ---- kernel.c, launches.c, lockdown.c
 * ------------------------------------------------------------ */

bool kernel_load(Runner *runner, WireReader *ask, WireWriter *answer, Fault *why);
bool kernel_launch(Runner *runner, WireReader *ask, WireWriter *answer, Fault *why);
bool kernel_counters(Runner *runner, WireWriter *answer, Fault *why);

/* The launches that launch() asked the runtime for. */
typedef struct {
    uint32_t count;
    uint32_t grid[3], block[3]; // of the last
    uint64_t dynamic_shared_bytes;
} Launches;
void launches_begin(const Cudart *cudart);
Launches launches_seen(void);

bool lock_down(Fault *why);
const char *lockdown_layers(void); // for people: "no_new_privs, rlimits"
