/* exec_memory.h - what the fast paths of memory access (lanes_memory.c) and the careful ones
 * (exec_memory.c) share. */
#pragma once
#include "sim/exec.h"
#include <string.h>

/* The lanes of one access, in one state space. */
typedef struct {
    Warp *warp;
    const Inst *inst;
    uint8_t space; // SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL or SPACE_PARAM
    uint8_t bytes; // of all elements of a lane together
    bool is_write;
    bool contiguous, uniform; // known to be so, for the lanes of `mask`
    uint32_t mask;
    const Allocation *allocation; // global: the one that all lanes lie in; NULL: not looked up
    uint64_t low, end;            // all lanes lie in [low, end), where `bounded` says so
    bool bounded;
    uint64_t *address; // of each lane, in its space
} Access;

/* Looks at each lane alone, reports what is wrong with it, takes it out of the mask. */
void access_check_lanes(Access *access);
/* Initialised-ness of what a load brings; true if all of it is initialised. */
bool access_check_initialized(Access *access, uint64_t missing[LANES]);
/* Marks what a store writes; `missing` has a bit per byte that is not initialised (NULL: all is).
 */
void access_mark(Access *access, const uint64_t *missing);
void access_count(Access *access);
/* Uninitialised data in the address register. */
void access_check_address(Warp *warp, const Inst *inst, uint8_t *regs, uint32_t mask);

/* All of the `count` bits from `first` on are set (or, inverted, clear). */
static inline bool bits_are(const uint8_t *bits, uint64_t first, uint64_t count, bool set) {
    const uint8_t *at = bits + first / 8;
    uint8_t flip = set ? 0xff : 0;
    uint32_t head = first % 8;
    if (head) {
        uint32_t now = 8 - head < count ? 8 - head : (uint32_t)count;
        if (((*at++ ^ flip) >> head) & ((1u << now) - 1)) return false;
        count -= now;
    }
    uint64_t wrong = 0;
    for (; count >= 64; count -= 64, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        wrong |= word ^ (set ? ~UINT64_C(0) : 0);
    }
    for (; count >= 8; count -= 8)
        wrong |= (uint8_t)(*at++ ^ flip);
    if (count) wrong |= (uint8_t)(*at ^ flip) & ((1u << count) - 1);
    return !wrong;
}

#define SPAN_AT_ONCE 4096 // bytes whose marks are looked at together

/* Everything between the lowest and the highest lane is marked as initialised. The quick way out
 * of nearly all accesses; false says nothing. */
static inline bool span_initialized(const Access *a) {
    uint64_t span = a->end - a->low;
    if (!a->bounded || span > SPAN_AT_ONCE) return false;
    if (a->space == SPACE_SHARED)
        return bits_are(a->warp->block->shared_marks, a->low, span, false);
    if (a->space != SPACE_GLOBAL || !a->allocation) return a->space == SPACE_PARAM;
    return !a->allocation->initialized ||
           bits_are(a->allocation->initialized, a->low - a->allocation->base, span, true);
}

static inline bool lane_in(uint32_t mask, int lane) {
    return mask >> lane & 1;
}
