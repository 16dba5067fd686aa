/* host.h - inside the simulator: what the host side offers the runtime API (cudart_*.c).
 *
 * Everything here works without a fat binary or a kernel, so that it can be tested alone.
 */
#pragma once
#include "sim/engine.h"

/* ---- sim.c: options and the simulated device ------------------------------------------------ */

SimOptions sim_options(void);

/* One row per architecture; figures are those of a card that is sold with it. */
typedef struct {
    const char *arch; // "sm_90a"
    int major, minor;
    bool arch_specific; // code for compute_90a runs on it
    int multiprocessors;
    int threads_per_multiprocessor, blocks_per_multiprocessor;
    int shared_per_multiprocessor; // bytes
    int shared_per_block_optin;    // bytes
    int l2_bytes, persisting_l2_bytes;
    int clock_khz, memory_clock_khz, memory_bus_bits;
    int async_engines;
    int float_to_double_ratio;
    bool clusters;
} SimDevice;
const SimDevice *sim_device(void);

enum {
    WARP_LANES = 32,
    THREADS_PER_BLOCK = 1024,
    SHARED_PER_BLOCK = 48 << 10, // bytes, without opting in
    SHARED_RESERVED = 1 << 10,   // bytes that the system takes of each block's shared memory
    SHARED_GRANULE = 128,
    REGISTERS_PER_MULTIPROCESSOR = 65536,
    REGISTER_GRANULE = 256, // a warp's registers are handed out in these
    WARP_SCHEDULERS = 4,
    CONSTANT_BYTES = 64 << 10,
};

/* ---- memory.c ---------------------------------------------------------------------------------
 */

typedef enum { MEMORY_DEVICE, MEMORY_HOST, MEMORY_MANAGED, MEMORY_REGISTERED } MemoryKind;

/* Host and managed memory is written behind the simulator's back, so it counts as initialised. */
void *memory_allocate_kind(size_t bytes, const char *name, MemoryKind kind);
bool memory_register(void *host, size_t bytes); // false: overlaps what is there already
bool memory_unregister(void *host);
MemoryKind memory_kind(const Allocation *allocation);
/* Between these two, allocations that another thread frees stay readable. They nest. */
void memory_enter(void);
void memory_leave(void);
/* True for addresses that no host object can have, whether allocated now or not. */
bool memory_is_reserved(uint64_t address);
/* False if a page of the range is not mapped at all: nobody's pointer. */
bool memory_is_mapped(uint64_t address, uint64_t bytes);
/* Copies the marks of [source, source + bytes) along with the bytes. */
void memory_copy_marks(uint64_t target, uint64_t source, uint64_t bytes);
/* From now on all of it counts as initialised: the host writes to it. */
void memory_untrack(uint64_t address);

/* ---- fatbin.c, cubin.c
 * --------------------------------------------------------------------------- */

/* The machine code that belongs to the PTX that fatbin_find_ptx picks; false if there is none. */
bool fatbin_find_cubin(const void *wrapper, const uint8_t **cubin, size_t *bytes);
/* The same for a container without its wrapper, of which `available` bytes can be read. */
bool fatbin_container_ptx(const void *container, size_t available, const char **text, size_t *bytes,
                          char message[512]);
bool fatbin_container_cubin(const void *container, size_t available, const uint8_t **cubin,
                            size_t *bytes);
/* True if it begins like a container; for images that may also be plain PTX. */
bool fatbin_is_container(const void *image);

/* What ptxas decided for one kernel. */
typedef struct {
    uint32_t registers;   // per thread
    uint32_t stack_bytes; // local memory per thread
} CubinFigures;
bool cubin_figures(const uint8_t *cubin, size_t bytes, const char *kernel, CubinFigures *figures);
