/* exec_shadow.c - how initialised-ness passes from the sources of an instruction to its target.
 *
 * Only called once a warp has met data that was never written, so it can afford to look closely:
 * packed halves, masks and shifts keep bytes apart, for kernels load whole tiles and use only the
 * part that is theirs.
 */
#include "sim/exec.h"
#include <string.h>

static uint32_t width_of(const Inst *inst, int operand) {
    uint32_t code = inst->widths >> (2 * operand) & 3;
    return code == 0 ? 1 : 1u << code; // planes: one for a predicate
}

static uint32_t any_plane(Warp *w, uint8_t *regs, uint32_t slot, uint32_t planes) {
    const uint32_t *shadow = shadow_planes(w, regs, slot);
    uint32_t any = 0;
    for (uint32_t i = 0; i < planes; i++)
        any |= shadow[i];
    return any;
}

static uint32_t any_source(Warp *w, const Inst *inst, uint8_t *regs) {
    const uint32_t slots[4] = {inst->a, inst->b, inst->c, inst->e};
    uint32_t any = 0;
    for (int i = 0; i < inst->source_count && i < 4; i++)
        any |= any_plane(w, regs, slots[i], i < 3 ? width_of(inst, i + 1) : 1);
    return any;
}

static uint64_t lane_of(const uint8_t *regs, uint32_t slot, uint32_t bytes, int lane) {
    uint64_t value = 0;
    memcpy(&value, regs + slot + (uint32_t)lane * bytes, bytes);
    return value;
}

/* A byte that is known to be zero makes the result's byte known. */
static void and_planes(Warp *w, const Inst *inst, uint8_t *regs, uint32_t mask, uint32_t *out) {
    uint32_t bytes = width_of(inst, 0);
    const uint32_t *pa = shadow_planes(w, regs, inst->a), *pb = shadow_planes(w, regs, inst->b);
    for (uint32_t i = 0; i < bytes; i++) {
        uint32_t zero_a = 0, zero_b = 0;
        for (uint32_t rest = mask & (pa[i] | pb[i]); rest; rest &= rest - 1) {
            int lane = __builtin_ctz(rest);
            uint64_t a = lane_of(regs, inst->a, bytes, lane) >> (8 * i) & 0xff;
            uint64_t b = lane_of(regs, inst->b, bytes, lane) >> (8 * i) & 0xff;
            zero_a |= (uint32_t)(a == 0) << lane;
            zero_b |= (uint32_t)(b == 0) << lane;
        }
        out[i] = (pa[i] & ~(zero_b & ~pb[i])) | (pb[i] & ~(zero_a & ~pa[i]));
    }
}

static void shift_planes(Warp *w, const Inst *inst, uint8_t *regs, uint32_t mask, bool left,
                         uint32_t *out) {
    uint32_t bytes = width_of(inst, 0), unknown = any_plane(w, regs, inst->b, 4);
    const uint32_t *pa = shadow_planes(w, regs, inst->a);
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        uint64_t bits = 0, spread = 0;
        for (uint32_t i = 0; i < bytes; i++)
            if (pa[i] >> lane & 1) bits |= UINT64_C(0xff) << (8 * i);
        uint64_t amount = lane_of(regs, inst->b, 4, lane);
        if (bits && unknown >> lane & 1)
            spread = ~UINT64_C(0);
        else if (amount < 8 * bytes)
            spread = left ? bits << amount : bits >> amount;
        if (unknown >> lane & 1) spread = ~UINT64_C(0);
        for (uint32_t i = 0; i < bytes; i++)
            out[i] |= (uint32_t)((spread >> (8 * i) & 0xff) != 0) << lane;
    }
}

static void permute_planes(Warp *w, const Inst *inst, uint8_t *regs, uint32_t mask, uint32_t *out) {
    const uint32_t *pa = shadow_planes(w, regs, inst->a), *pb = shadow_planes(w, regs, inst->b);
    uint32_t unknown = any_plane(w, regs, inst->c, 4);
    for (uint32_t i = 0; i < 4; i++) {
        out[i] = unknown;
        for (uint32_t rest = mask; rest; rest &= rest - 1) {
            int lane = __builtin_ctz(rest);
            uint32_t from = (uint32_t)(lane_of(regs, inst->c, 4, lane) >> (4 * i)) & 7;
            out[i] |= ((from < 4 ? pa[from] : pb[from - 4]) >> lane & 1) << lane;
        }
    }
}

/* In bounds and positive: out of bounds it is false, whatever was loaded. `ua` and `ub` say where
 * a and b are unknown. */
static uint32_t and_unknown(uint32_t a, uint32_t ua, uint32_t b, uint32_t ub) {
    return (ua & (b | ub)) | (ub & (a | ua));
}

static uint32_t predicate_unknown(Warp *w, const Inst *inst, uint8_t *regs) {
    uint32_t a = *predicate(regs, inst->a), b = *predicate(regs, inst->b);
    uint32_t ua = *shadow_planes(w, regs, inst->a), ub = *shadow_planes(w, regs, inst->b);
    a ^= inst->displacement & 1 ? FULL_MASK : 0;
    b ^= inst->displacement & 2 ? FULL_MASK : 0;
    switch (inst->aux) {
    case 1:
        return and_unknown(a, ua, b, ub);
    case 2:
        return and_unknown(~a, ua, ~b, ub);
    case 3:
        return ua | ub;
    case 5: {
        uint32_t p = *predicate(regs, inst->e) ^ (inst->displacement & 4 ? FULL_MASK : 0);
        return (ua & p) | (ub & ~p) | *shadow_planes(w, regs, inst->e);
    }
    default:
        return ua;
    }
}

void exec_propagate(Warp *w, const Inst *inst, uint8_t *regs, uint32_t mask) {
    if (inst->shadow == SHADOW_OWN) return;
    uint32_t out[8] = {0}, bytes = width_of(inst, 0), any;
    const uint32_t *pa = shadow_planes(w, regs, inst->a), *pb = shadow_planes(w, regs, inst->b);
    uint32_t a_bytes = width_of(inst, 1);
    switch (inst->shadow) {
    case SHADOW_ANY:
        any = any_source(w, inst, regs);
        for (uint32_t i = 0; i < bytes; i++)
            out[i] = any;
        break;
    case SHADOW_COPY:
    case SHADOW_SIGNED:
        for (uint32_t i = 0; i < bytes; i++) {
            uint32_t have = inst->bytes && inst->bytes < a_bytes ? inst->bytes : a_bytes;
            out[i] = i < have ? pa[i] : inst->shadow == SHADOW_SIGNED ? pa[have - 1] : 0;
        }
        break;
    case SHADOW_BITS: {
        const uint32_t *pc = shadow_planes(w, regs, inst->c);
        for (uint32_t i = 0; i < bytes; i++)
            out[i] = pa[i] | pb[i] | (inst->source_count > 2 ? pc[i] : 0);
        break;
    }
    case SHADOW_AND:
        and_planes(w, inst, regs, mask, out);
        break;
    case SHADOW_SHIFT_LEFT:
    case SHADOW_SHIFT_RIGHT:
        shift_planes(w, inst, regs, mask, inst->shadow == SHADOW_SHIFT_LEFT, out);
        break;
    case SHADOW_PERMUTE:
        permute_planes(w, inst, regs, mask, out);
        break;
    case SHADOW_PREDICATE:
        out[0] = predicate_unknown(w, inst, regs);
        break;
    case SHADOW_SELECT: {
        uint32_t p = *predicate(regs, inst->e) ^ (inst->flags & INST_NEGATE_E ? FULL_MASK : 0);
        uint32_t unknown = *shadow_planes(w, regs, inst->e);
        for (uint32_t i = 0; i < bytes; i++)
            out[i] = (pa[i] & p) | (pb[i] & ~p) | unknown;
        break;
    }
    case SHADOW_COMPARE: {
        any = any_plane(w, regs, inst->a, a_bytes) | any_plane(w, regs, inst->b, width_of(inst, 2));
        if (inst->aux) { // the comparison's value is not known yet: taken as undecided
            uint32_t e = *predicate(regs, inst->e) ^ (inst->flags & INST_NEGATE_E ? FULL_MASK : 0);
            uint32_t ue = *shadow_planes(w, regs, inst->e);
            uint32_t open = inst->aux == 1 ? e : inst->aux == 2 ? ~e : FULL_MASK;
            any = (any & (open | ue)) | ue;
        }
        uint32_t *q = shadow_planes(w, regs, inst->c), *p = shadow_planes(w, regs, inst->d);
        *q = (*q & ~mask) | (any & mask);
        *p = (*p & ~mask) | (any & mask);
        return;
    }
    case SHADOW_CARRY: {
        uint32_t *carry = shadow_planes(w, regs, inst->e);
        any = any_source(w, inst, regs) | (inst->aux & 1 ? *carry : 0);
        if (inst->aux & 2) *carry = (*carry & ~mask) | (any & mask);
        for (uint32_t i = 0; i < bytes; i++)
            out[i] = any;
        break;
    }
    default: // SHADOW_CLEAR
        bytes = inst->flags & INST_WIDE_DATA ? 8 : 4;
        break;
    }
    if (inst->guard_kind) {
        uint32_t unknown = *shadow_planes(w, regs, inst->guard);
        for (uint32_t i = 0; i < bytes; i++)
            out[i] |= unknown;
    }
    uint32_t *target = shadow_planes(w, regs, inst->d);
    for (uint32_t i = 0; i < bytes; i++)
        target[i] = (target[i] & ~mask) | (out[i] & mask);
}
