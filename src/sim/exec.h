/* exec.h - decoded code, and the machine that runs it: workers, blocks, warps, lanes.
 *
 * A register is a slot of 32 lanes. Registers up to 32 bits have lanes of four bytes (of a 16-bit
 * one the upper half is unspecified), 64-bit ones of eight, 128-bit ones are two 64-bit slots in a
 * row; a predicate is one 32-bit word, a bit per lane. All slots of a function form its frame;
 * operands are byte offsets into it. Constants and special registers have slots as well, filled
 * when the frame is made, so that an operand is always a slot.
 *
 * Where initialised-ness is tracked, the frame is followed by its shadow: one bit per byte of each
 * lane, set where the byte is *not* initialised. The planes of a slot at offset o begin at o / 8.
 */
#pragma once
#include "sim/ptx.h"
#include <stdatomic.h>

#define LANES     32
#define FULL_MASK UINT32_MAX
#define NO_PC     UINT32_MAX

typedef struct Warp Warp;
typedef struct Inst Inst;
typedef void (*RunFn)(Warp *warp, const Inst *inst, uint8_t *regs, uint32_t mask);

/* What the loop does with an instruction besides calling `run`. */
typedef enum {
    CONTROL_NONE,   // lanes only: nothing but the slots changes
    CONTROL_MEMORY, // may fault
    CONTROL_BRANCH,
    CONTROL_BRANCH_INDEX,
    CONTROL_CALL,
    CONTROL_RETURN, // in a kernel: exit
    CONTROL_EXIT,
    CONTROL_TRAP,
    CONTROL_BARRIER, // of the block
    CONTROL_SYNC,    // of the lanes named by a member mask: shfl, vote, bar.warp
    CONTROL_YIELD,   // nanosleep: others first
} Control;

/* How initialised-ness passes through. */
typedef enum {
    SHADOW_ANY,    // every byte of d depends on every byte of the sources
    SHADOW_COPY,   // byte by byte, cut or zero-extended
    SHADOW_SIGNED, // the same, sign-extended
    SHADOW_AND,
    SHADOW_BITS,
    SHADOW_SHIFT_LEFT,
    SHADOW_SHIFT_RIGHT,
    SHADOW_SELECT,
    SHADOW_PERMUTE,   // prmt: bytes of a and b, chosen by c
    SHADOW_PREDICATE, // and, or, …: what is known may decide
    SHADOW_COMPARE,   // predicates d and c, from a, b and e
    SHADOW_CARRY,     // d and the carry e
    SHADOW_OWN,       // `run` looks after it
    SHADOW_CLEAR,     // d is initialised
} ShadowRule;

typedef enum { GUARD_NONE, GUARD_IF, GUARD_UNLESS } GuardKind;

struct Inst {
    RunFn run;
    uint32_t d, a, b, c, e; // slots; e: a predicate or a fourth source
    uint32_t guard;         // slot of a predicate
    uint8_t guard_kind, control, shadow;
    uint8_t bytes;        // of one element in memory, or of d
    uint8_t count;        // elements of a vector
    uint8_t space;        // PtxSpace
    uint8_t aux;          // boolean operator, shuffle mode, atomic operator, …
    uint8_t source_count; // of a, b, c, e that take part in SHADOW_ANY
    uint8_t widths;       // bits 0-1 d, 2-3 a, 4-5 b, 6-7 c: log2 of bytes per lane, 0: predicate
    uint16_t flags;
    uint16_t row;
    uint32_t list;       // first of `count` slots in Code.lists
    uint32_t target;     // branch or call
    uint32_t reconverge; // where diverged lanes meet again, NO_PC: at the end
    int64_t displacement;
};

enum {
    INST_NEGATE_E = 1,       // the predicate e counts negated
    INST_WIDE_ADDRESS = 2,   // the address slot has 64-bit lanes
    INST_SIGNED = 4,         // memory element is sign-extended
    INST_WIDE_DATA = 8,      // data slots have 64-bit lanes
    INST_NO_RESULT = 16,     // red, or an atom whose result nobody reads
    INST_FIXED_ADDRESS = 32, // no address register: displacement alone
    INST_HAS_COUNT = 64,     // barrier with a thread count
    INST_IS_FLOAT = 128,
    INST_STRONG = 256, // memory access that may wait for another thread
};

/* Where an instruction came from; as many as there are instructions. */
typedef struct {
    uint32_t loc, line;
    const char *text;
    uint32_t text_bytes;
} Origin;

typedef struct {
    uint32_t slot;
    uint8_t bytes; // 4 or 8; 0: predicate
    uint64_t value;
} Constant;

typedef enum {
    SPECIAL_TID_X,
    SPECIAL_TID_Y,
    SPECIAL_TID_Z,
    SPECIAL_NTID_X,
    SPECIAL_NTID_Y,
    SPECIAL_NTID_Z,
    SPECIAL_CTAID_X,
    SPECIAL_CTAID_Y,
    SPECIAL_CTAID_Z,
    SPECIAL_NCTAID_X,
    SPECIAL_NCTAID_Y,
    SPECIAL_NCTAID_Z,
    SPECIAL_LANEID,
    SPECIAL_WARPID,
    SPECIAL_NWARPID,
    SPECIAL_SMID,
    SPECIAL_NSMID,
    SPECIAL_GRIDID,
    SPECIAL_LANEMASK_EQ,
    SPECIAL_LANEMASK_LE,
    SPECIAL_LANEMASK_LT,
    SPECIAL_LANEMASK_GE,
    SPECIAL_LANEMASK_GT,
    SPECIAL_DYNAMIC_SMEM,
    SPECIAL_TOTAL_SMEM,
    SPECIAL_ZERO,
    SPECIAL_ONE,
    SPECIAL_CLOCK,
    SPECIAL_CLOCK_HI,
    SPECIAL_CLOCK64,
    SPECIAL_GLOBALTIMER,
    SPECIAL_COUNT
} Special;

typedef struct {
    uint32_t slot;
    Special special;
    uint8_t bytes;
} SpecialSlot;

typedef struct Code {
    PtxFunction *function;
    PtxModule *module;
    Inst *insts;
    Origin *origins;
    uint32_t count;
    uint32_t *lists;
    uint32_t frame_bytes; // without the shadow; multiple of 256
    Constant *constants;
    uint32_t constant_count;
    SpecialSlot *specials;
    uint32_t special_count;
    uint32_t *undefined; // slots read before written: {slot, bytes per lane} pairs
    uint32_t undefined_count;
    uint32_t local_bytes;                     // own variables and parameters, per thread
    uint32_t stack_bytes;                     // with everything it calls
    uint32_t *param_offsets, *return_offsets; // in its local memory; kernels: param_offsets unused
    struct Code **callees;                    // by Inst.target of a call
    uint32_t callee_count;
    uint32_t static_shared, shared_align;
    bool ordered; // blocks must run in order: results depend on who comes first
    ParamLayout params;
} Code;

/* ---- state ----------------------------------------------------------------------------------- */

typedef struct Block Block;
typedef struct Worker Worker;

typedef struct Activation {
    struct Activation *caller, *next_free, *next_made;
    const Code *code;
    uint8_t *regs;
    uint32_t local_base; // of its variables in each thread's local memory
    uint32_t return_pc;
} Activation;

/* Lanes that parted and meet again at `pc`, or at the return of a call. */
typedef struct {
    uint32_t pc, expected, arrived;
    int32_t parent;         // -1: none
    Activation *activation; // the one `pc` belongs to
    Activation *callee;     // of a call: given back when all have returned; otherwise NULL
    bool used;
} Join;

typedef enum { SPLIT_READY, SPLIT_AT_BARRIER, SPLIT_AT_SYNC } SplitState;

/* Lanes of a warp that run together. */
typedef struct {
    uint32_t pc, mask;
    int32_t join;
    uint8_t state, barrier;
    uint32_t members; // waited for, in SPLIT_AT_SYNC
    Activation *activation;
} Split;

#define MAX_JOINS 65536 // calls nest that deep

struct Warp {
    Block *block;
    Worker *worker;
    uint32_t index; // in its block
    uint32_t live;  // lanes that have not exited
    uint32_t lanes; // lanes that exist
    bool tainted;   // some register may hold uninitialised data
    int split_count;
    uint32_t stalled; // slices without a lane arriving anywhere
    uint32_t strong;  // strong memory accesses since then
    Split splits[LANES];
    Join *joins; // grows
    uint32_t join_count, join_capacity;
    int32_t free_join;      // chained through `parent`; -1: none
    Activation *activation; // of the split that runs
    const Inst *inst;       // being executed, for reports
    uint8_t *local;         // LANES * local_stride bytes
    uint8_t *local_marks;   // a bit per byte, set: not initialised
    uint8_t *frame;         // of the kernel's activation
    Activation root;
};

typedef struct {
    uint32_t arrived;        // threads
    uint32_t wanted;         // 0: all that live
    uint32_t popc, all, any; // of bar.red
    bool busy;
} Barrier;

struct Block {
    uint32_t index; // linear
    uint32_t ctaid[3];
    uint32_t warp_count, live_threads;
    Warp *warps;
    uint8_t *shared;
    uint8_t *shared_marks; // a bit per byte, set: not initialised
    Barrier barriers[16];
    uint32_t busy_barriers;
    bool in_use;
    uint32_t findings;
    bool faulted; // stop at once
    uint64_t slices;
    uint8_t *memory; // all of the above lies in it
    size_t memory_bytes;
};

typedef struct Run Run; // a launch in progress (exec_launch.c)

/* Counters of one worker; summed at the end. */
typedef struct {
    uint64_t warp_insts, lane_insts;
    uint64_t global_load_requests, global_load_sectors;
    uint64_t global_store_requests, global_store_sectors;
    uint64_t shared_load_requests, shared_store_requests, shared_conflicts;
    uint64_t branches, divergent_branches;
} Tally;

#define SITE_CACHE    64
#define FINDING_CACHE 16

/* What was found at one instruction in one tensor, counted until it is handed to report.c. */
typedef struct {
    const Inst *inst;
    uint64_t key, first; // `first`: block and thread of the report, in launch order
    SimReport report;    // count 0: free
} Finding;

struct Worker {
    Run *run;
    uint32_t index;
    Tally tally;
    const Allocation *recent[SITE_CACHE]; // by instruction, the last allocation it touched
    Activation *free_activations, *made_activations;
    Block *blocks;
    uint32_t block_count;
    Finding *findings; // FINDING_CACHE of them, NULL until there is one
};

struct Run {
    const Code *code;
    const Launch *launch;
    bool bounds, initialized;
    uint32_t warps_per_block, threads_per_block;
    uint32_t shared_bytes, local_stride;
    uint64_t block_count;
    uint64_t budget;
    uint32_t frame_stride;
    atomic_ullong next_block, lanes_spent;
    atomic_ullong first_failed_block;
    atomic_int status;
    atomic_bool stop, out_of_memory;
};

/* ---- generic addresses ----------------------------------------------------------------------- */

/* Global and constant memory have the host's addresses, all below 2^56. */
#define WINDOW_SHARED          (UINT64_C(1) << 60)
#define WINDOW_LOCAL           (UINT64_C(2) << 60)
#define WINDOW_PARAM           (UINT64_C(3) << 60)
#define WINDOW_FUNCTION        (UINT64_C(4) << 60)
#define WINDOW_MASK            (UINT64_C(15) << 60)
#define WINDOW_OFFSET(address) ((address) & (WINDOW_SHARED - 1))

static inline uint32_t *predicate(uint8_t *regs, uint32_t slot) {
    return (uint32_t *)(regs + slot);
}
static inline uint32_t *shadow_planes(const Warp *w, uint8_t *regs, uint32_t slot) {
    return (uint32_t *)(regs + w->activation->code->frame_bytes + slot / 8);
}

/* ---- decode.c -------------------------------------------------------------------------------- */

Code *decode_function(PtxModule *module, PtxFunction *function, char message[512]);
void code_free(Code *code);

/* ---- decode_flow.c --------------------------------------------------------------------------- */

/* Registers an instruction reads and writes, as the decoder saw them. */
typedef struct {
    uint32_t *reads, *writes; // register numbers
    uint16_t read_count, write_count;
    bool crosses_lanes; // d must not share a slot with a source
} Usage;

typedef struct {
    uint32_t from;        // instruction
    uint32_t next[2];     // NO_PC: none
    const uint32_t *more; // targets of a branch by index
    uint32_t more_count;
} FlowEdge;

/* Fills `reconverge[i]` for each branch. */
void flow_reconvergence(const FlowEdge *edges, uint32_t count, uint32_t *reconverge);
/* Gives every register a slot from `first_slot` on; registers that are never alive together share.
 * Returns the end of the frame. `undefined` gets a bit per register that may be read before it is
 * written. */
uint32_t flow_assign_slots(const FlowEdge *edges, const Usage *usages, uint32_t count,
                           const uint8_t *register_bytes, uint32_t register_count,
                           uint32_t first_slot, uint32_t *slots, bool *undefined);

/* ---- exec_*.c -------------------------------------------------------------------------------- */

/* The handlers for the best instruction set this machine has, by row. */
const RunFn *exec_handlers(void);
/* Runs the warp for about `quantum` instructions. False: nothing in it can go on. */
bool exec_warp(Warp *warp, uint32_t quantum);
void exec_start_warp(Warp *warp);
/* Lets lanes go on that wait for others to meet them; false when there are none. */
bool exec_release_joins(Warp *warp);
/* Puts what d will be into its shadow; called before the instruction runs. */
void exec_propagate(Warp *warp, const Inst *inst, uint8_t *regs, uint32_t mask);
Activation *exec_activation_new(Warp *warp, const Code *code);
void exec_activation_free(Worker *worker, Activation *activation);
/* Constants and special registers; `first` is false when only those of the block have changed. */
void exec_fill_frame(Warp *warp, const Code *code, uint8_t *regs, bool first);
void exec_block_fault(Block *block, ExecStatus status, Run *run);
/* Lanes have left a barrier's reach: it may be complete now. */
void exec_check_barriers(Block *block);

/* ---- exec_print.c ---------------------------------------------------------------------------- */

/* The text at a generic address; false if nothing there belongs to the kernel. */
bool exec_read_text(const Warp *warp, uint32_t lane, uint64_t address, char *text, size_t size);
/* Returns the number of arguments, -1 if the format cannot be read. */
int exec_print(const Warp *warp, uint32_t lane, uint64_t format, uint64_t arguments);

/* ---- exec_report.c --------------------------------------------------------------------------- */

/* A kernel with one wrong index meets it in every thread. True if `warp->inst` was found doing the
 * same before, to the same thing (`key`), by a lane that comes earlier: then it is only counted. */
bool exec_found_before(Warp *warp, SimReportKind kind, uint32_t lane, uint64_t key);
/* Reports what `warp->inst` did in `lane`; `details` has what only the caller knows. */
void exec_find(Warp *warp, SimReportKind kind, uint32_t lane, uint64_t key,
               const SimReport *details);
void exec_flush_findings(Worker *worker);
void exec_locate(const Code *code, uint32_t pc, SimReport *report);
