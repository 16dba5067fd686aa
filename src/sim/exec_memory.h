/* exec_memory.h - what the fast paths of memory access (lanes_memory.c) and the careful ones
 * (exec_memory.c) share. */
#pragma once
#include "sim/exec.h"

/* The lanes of one access, in one state space. */
typedef struct {
    Warp *warp;
    const Inst *inst;
    uint8_t space;            // SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL or SPACE_PARAM
    uint8_t bytes;            // of all elements of a lane together
    bool is_write;
    bool contiguous, uniform; // known to be so, for the lanes of `mask`
    uint32_t mask;
    const Allocation *allocation; // global: the one that all lanes lie in; NULL: not looked up
    uint64_t *address;        // of each lane, in its space
    uint64_t *host;           // where that is
} Access;

/* Looks at each lane alone, reports what is wrong with it, takes it out of the mask. */
void access_check_lanes(Access *access);
/* Initialised-ness of what a load brings; true if all of it is initialised. */
bool access_check_initialized(Access *access, uint64_t missing[LANES]);
/* Marks what a store writes; `missing` has a bit per byte that is not initialised (NULL: all is). */
void access_mark(Access *access, const uint64_t *missing);
void access_count(Access *access);
/* Uninitialised data in the address register. */
void access_check_address(Warp *warp, const Inst *inst, uint8_t *regs, uint32_t mask);

static inline bool lane_in(uint32_t mask, int lane) { return mask >> lane & 1; }
