/* cudart.h - inside the simulator: what the files of the runtime API share.
 *
 * cudart_error.c    error state and texts
 * cudart_handle.c   which pointers are ours
 * cudart_module.c   fat binaries, kernels, variables, libraries
 * cudart_function.c attributes and occupancy of kernels
 * cudart_launch.c   launches
 * cudart_memory.c   allocations
 * cudart_copy.c     copies and fills
 * cudart_stream.c   streams and events, running or capturing
 * cudart_capture.c  the calls that begin and end a capture
 * cudart_graph.c    graphs
 * cudart_device.c   the device, its properties and limits
 * cudart_driver.c   driver entry points
 * cudart_other.c    functions that exist so that programs load, and refuse
 *
 * Work is done when it is submitted: every order in which a program submits it is one that a GPU
 * may choose. What goes wrong while a kernel runs is kept back until the program waits, as on a
 * GPU, and from then on every call returns it.
 */
#pragma once
#include "sim/cuda_abi.h"
#include "sim/host.h"

/* The per-thread-default-stream form of a call. Work runs when it is submitted, so the default
 * stream of a thread behaves like the default stream of all. */
#define SIM_ALIAS(alias_name, name)                                                                \
    extern __typeof__(name) alias_name                                                             \
        __attribute__((alias(#name), visibility("default"), copy(name)))

/* ---- errors ---------------------------------------------------------------------------------- */

/* Remembers a failure for cudaGetLastError and returns it. */
cudaError_t error_set(cudaError_t error);
/* A kernel failed while running: the context is lost, the program learns it when it waits. */
void error_raise_later(cudaError_t error);
/* True once a kernel failed, whether the program knows it or not: nothing runs any more. */
bool error_context_lost(void);
/* What the program was told already; every call begins with it. */
cudaError_t error_sticky(void);
/* Called where a program waits: tells it what was kept back. */
cudaError_t error_synchronize(void);

#define RETURN_IF_LOST()                                                                           \
    do {                                                                                           \
        cudaError_t lost = error_sticky();                                                         \
        if (lost) return lost;                                                                     \
    } while (0)

/* ---- handles -----------------------------------------------------------------------------------
 */

/* Programs hand pointers back to us; none is followed before it was found here. */
typedef enum {
    HANDLE_FUNCTION,
    HANDLE_VARIABLE,
    HANDLE_MODULE,
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_GRAPH,
    HANDLE_NODE,
    HANDLE_EXEC,
    HANDLE_LIBRARY,
    HANDLE_POOL
} HandleKind;
bool handle_add(const void *key, HandleKind kind, void *object);
void *handle_find(const void *key, HandleKind kind);
void handle_remove(const void *key, HandleKind kind);

/* ---- modules and kernels
 * --------------------------------------------------------------------------- */

typedef struct Module Module;

typedef struct Function {
    Module *module;
    struct Function *next; // of the module
    const void *stub;      // NULL for a library's kernel
    char *name;            // mangled
    bool resolved;         // what follows is known
    cudaError_t problem;   // why it cannot run
    char message[512];     // … in words, where the simulator is the reason
    PtxKernel *kernel;
    CubinFigures figures; // registers 0: unknown
    uint32_t static_shared, max_threads, local_bytes;
    uint32_t max_dynamic_shared; // bytes allowed so far
    int carveout;                // percent, -1: as the driver likes
} Function;

/* The kernel behind a stub's address, a cudaKernel_t or a cudaFunction_t, decoded. On failure
 * the reason is returned, and reported when it is the simulator's own. */
cudaError_t function_resolve(const void *handle, Function **function);
/* Device address and size of a __device__ or __constant__ variable. */
cudaError_t variable_resolve(const void *symbol, uint64_t *address, uint64_t *bytes);

/* A finding that is the simulator's own limit. */
void report_unsupported(const char *kernel, const char *message);

/* Warps of this kernel that one multiprocessor's registers hold. */
int function_warps_by_registers(const Function *function);
int function_max_threads(const Function *function);
/* Blocks that one multiprocessor holds at once. */
int function_blocks_per_multiprocessor(const Function *function, int threads, size_t shared);

/* ---- operations
 * --------------------------------------------------------------------------------------- */

typedef struct Graph Graph;
typedef struct Stream Stream;
typedef struct Event Event;

/* One thing a stream does. */
typedef enum {
    OPERATION_KERNEL,
    OPERATION_COPY,
    OPERATION_FILL,
    OPERATION_HOST,
    OPERATION_GRAPH,
    OPERATION_EMPTY,
    OPERATION_EVENT_WAIT,
    OPERATION_EVENT_RECORD
} OperationKind;

typedef struct {
    Function *function;
    const void *handle; // as the program named it
    dim3 grid, block;
    uint32_t dynamic_shared;
    bool cooperative;
    uint8_t *params; // owned
    uint32_t param_bytes;
} KernelLaunch;

typedef struct { // width bytes of height rows of depth slices
    uint64_t target, source;
    size_t target_pitch, source_pitch, target_slice, source_slice;
    size_t width, height, depth;
    cudaMemcpyKind kind;
} Copy;

typedef struct { // width elements of height rows of depth slices
    uint64_t target;
    size_t pitch, slice, width, height, depth;
    uint32_t value, element_bytes;
} Fill2D;

typedef struct {
    OperationKind kind;
    union {
        KernelLaunch kernel;
        Copy copy;
        Fill2D fill;
        cudaHostNodeParams host;
        Event *event;
        Graph *child; // owned by its node
    };
} Operation;

/* Runs it, or appends it to the graph that the stream is captured into. Takes what the operation
 * owns in any case. */
cudaError_t stream_submit(void *stream, Operation *operation);
void operation_run(const Operation *operation);
void operation_clear(Operation *operation);
bool operation_clone(Operation *out, const Operation *in);

/* Checks everything and packs the arguments; on failure nothing is owned. */
cudaError_t launch_prepare(KernelLaunch *launch, const void *handle, dim3 grid, dim3 block,
                           void **arguments, size_t shared, bool cooperative);
void launch_run(const KernelLaunch *launch);
/* The next kernel begins a new set of counters: the program has waited. */
void launch_counters_renew(void);
void copy_run(const Copy *copy);
void fill_run(const Fill2D *fill);
void event_mark(Event *event);

/* NULL if there is no such stream. */
Stream *stream_find(void *handle);
bool stream_is_capturing(const Stream *stream);
/* For calls that a capture cannot hold, or, with a null stream, that may disturb one elsewhere:
 * spoils the capture and returns why. */
cudaError_t capture_refuse(void *stream);

cudaError_t copy_submit(const Copy *copy, void *stream);
cudaError_t fill_submit(const Fill2D *fill, void *stream);
bool copy_from_3d(const cudaMemcpy3DParms *params, Copy *copy);
