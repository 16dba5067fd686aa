/* engine.h - inside the simulator: what its parts know of each other.
 *
 * fatbin.c    fat binary -> PTX text
 * ptx_*.c     PTX text -> PtxModule (parsed once per module)
 * decode.c    PtxModule -> compact instructions, driven by the table instructions.def
 * exec_*.c    warps of 32 lanes execute them
 * memory.c    allocations, bounds, initialised-ness
 * report.c    findings, deduplicated by place
 * cudart_*.c  the CUDA runtime API
 */
#pragma once
#include "sim/sim.h"
#include <stdbool.h>

/* ---- memory.c: one flat address space, the host's own -------------------------------------- */

/* Device pointers are host pointers, so that memcpy-like calls need no translation. Every
 * allocation lies in a reserved region: the range of a pointer is found by binary search. */
typedef struct Allocation {
    uint64_t base, bytes;
    char name[64];             // "" or what sim_name called it
    uint64_t named_base, named_bytes; // 0: all of it may be touched
    uint8_t *initialized;      // one bit per byte (LSB first), NULL when not tracked
    uint32_t serial;           // "allocation 3"
} Allocation;

void *memory_allocate(size_t bytes, const char *name);  // NULL: out of memory; tracked, poisoned
bool memory_free(void *pointer);                        // false: not one of ours
Allocation *memory_find(uint64_t address);              // exact owner or NULL; lock-free in launches
Allocation *memory_nearest(uint64_t address);           // for reports about stray addresses
void memory_mark(uint64_t address, uint64_t bytes, bool initialized);
/* Whoever touches device memory does so between these two: outside, it may be hidden. They nest. */
void memory_open(void);
void memory_close(void);
uint64_t memory_total(void), memory_used(void);

/* ---- ptx / decode ---------------------------------------------------------------------------- */

typedef struct PtxModule PtxModule;
typedef struct PtxKernel PtxKernel;

/* Parses and decodes. On failure returns NULL and `message` says line and token; an instruction
 * the table does not hold is such a failure ("unknown instruction 'foo.b32' at line 12"), found
 * when a kernel that holds it is asked for, not before. */
PtxModule *ptx_module_load(const char *text, size_t bytes, char message[512]);
void ptx_module_free(PtxModule *module);
/* By mangled entry name; NULL if there is none, or with `message` set if it cannot be decoded. */
PtxKernel *ptx_kernel(PtxModule *module, const char *name, char message[512]);

typedef struct {
    uint32_t count, bytes;
    uint32_t offset[256], size[256];
} ParamLayout;
const ParamLayout *ptx_kernel_params(const PtxKernel *kernel);
uint32_t ptx_kernel_static_shared(const PtxKernel *kernel);
uint32_t ptx_kernel_max_threads(const PtxKernel *kernel); // .maxntid product, 0: not given
uint32_t ptx_kernel_local_bytes(const PtxKernel *kernel);
/* Module-scope variable (.global or .const): its device address and size; false if absent. */
bool ptx_variable(PtxModule *module, const char *name, uint64_t *address, uint64_t *bytes);

/* ---- exec -------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared;
    const void *params;        // laid out as ParamLayout says
    uint32_t param_bytes;
    bool cooperative;
    const SimOptions *options;
} Launch;

typedef enum {
    EXEC_OK, EXEC_ILLEGAL_ADDRESS, EXEC_MISALIGNED, EXEC_ASSERT, EXEC_TRAP, EXEC_BUDGET,
    EXEC_UNSUPPORTED, EXEC_DEADLOCK
} ExecStatus;
/* Runs all blocks to the end, spread over cores; findings go to report_add. */
ExecStatus exec_launch(PtxKernel *kernel, const Launch *launch);

/* ---- report.c ------------------------------------------------------------------------------------ */

void report_add(const SimReport *report);  // thread-safe; same kind, place and tensor are counted
/* Adds to the counters of the launch in progress; thread-safe. */
void counter_add(const char *kernel, const char *counter, double value);
void counters_begin(void);                 // a new launch: the old ones are dropped

/* ---- fatbin.c ------------------------------------------------------------------------------------- */

/* Finds the PTX in a fat binary wrapper as passed to __cudaRegisterFatBinary (magic 0x466243b1,
 * pointing to 0xBA55ED50). False with a message when there is none ("built without PTX"), or when
 * it is compressed. */
bool fatbin_find_ptx(const void *wrapper, const char **text, size_t *bytes, char message[512]);
