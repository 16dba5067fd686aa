/* lanes_other.c - moves, predicates, and what lanes of a warp do together. */
#define ROWS_OTHER
#include "sim/exec_lanes.h"
#include "sim/instructions.def"

/* ---- moves ----------------------------------------------------------------------------------- */

HANDLER(widen_u) {
    LANES_BEGIN(u64);
    SOURCE(u32, pa, inst->a);
    EACH_LANE out[lane] = pa[lane];
    LANES_END;
}
HANDLER(widen_s) {
    LANES_BEGIN(s64);
    SOURCE(s32, pa, inst->a);
    EACH_LANE out[lane] = pa[lane];
    LANES_END;
}
HANDLER(narrow) {
    LANES_BEGIN(u32);
    SOURCE(u64, pa, inst->a);
    EACH_LANE out[lane] = (u32)pa[lane];
    LANES_END;
}

static void put_wide(uint8_t *regs, const Inst *inst, u64 value, u32 mask) {
    if (inst->flags & INST_WIDE_DATA) {
        u64 ALIGNED scratch[LANES];
        EACH_LANE scratch[lane] = value;
        keep64((u64 *)(void *)(regs + inst->d), scratch, mask);
    } else {
        u32 ALIGNED scratch[LANES];
        EACH_LANE scratch[lane] = (u32)value;
        keep32((u32 *)(void *)(regs + inst->d), scratch, mask);
    }
}

/* Clocks count warp instructions of this worker, one a cycle: the same in every run. */
HANDLER(mov_clock) {
    u64 now = w->worker->tally.warp_insts;
    put_wide(regs, inst, inst->aux == SPECIAL_CLOCK_HI ? now >> 32 : now, mask);
}
HANDLER(local_address) {
    put_wide(regs, inst, w->activation->local_base + (u64)inst->displacement, mask);
}

/* Lanes and their missing bytes as one 64-bit value, so that packing is shifting. */
HANDLER(mov_pack) {
    const u32 *list = w->activation->code->lists + inst->list;
    u32 bits = inst->bytes * 8u;
    u64 part_mask = bits == 64 ? ~(u64)0 : ((u64)1 << bits) - 1;
    u64 ALIGNED whole[LANES] = {0};
    for (u32 k = 0; k < inst->count; k++) {
        const u32 *from = (const u32 *)(const void *)(regs + list[k]);
        if (inst->bytes == 8)
            memcpy(whole, from, sizeof whole);
        else
            EACH_LANE whole[lane] |= (from[lane] & part_mask) << (k * bits);
    }
    if (w->tainted) {
        u32 planes[8] = {0}, *target = shadow_planes(w, regs, inst->d);
        for (u32 k = 0; k < inst->count; k++)
            memcpy(planes + k * inst->bytes, shadow_planes(w, regs, list[k]), 4u * inst->bytes);
        for (int i = 0; i < (inst->flags & INST_WIDE_DATA ? 8 : 4); i++)
            target[i] = (target[i] & ~mask) | (planes[i] & mask);
    }
    if (inst->flags & INST_WIDE_DATA) {
        keep64((u64 *)(void *)(regs + inst->d), whole, mask);
    } else {
        u32 ALIGNED low[LANES];
        EACH_LANE low[lane] = (u32)whole[lane];
        keep32((u32 *)(void *)(regs + inst->d), low, mask);
    }
}

HANDLER(mov_unpack) {
    const u32 *list = w->activation->code->lists + inst->list;
    u32 bits = inst->bytes * 8u;
    u64 part_mask = bits == 64 ? ~(u64)0 : ((u64)1 << bits) - 1;
    u64 ALIGNED whole[LANES];
    u32 planes[8] = {0};
    if (inst->flags & INST_WIDE_DATA) {
        memcpy(whole, regs + inst->a, sizeof whole);
    } else {
        SOURCE(u32, from, inst->a);
        EACH_LANE whole[lane] = from[lane];
    }
    if (w->tainted)
        memcpy(planes, shadow_planes(w, regs, inst->a), inst->flags & INST_WIDE_DATA ? 32 : 16);
    for (u32 k = 0; k < inst->count; k++) {
        if (inst->bytes == 8) {
            keep64((u64 *)(void *)(regs + list[k]), whole, mask);
        } else {
            u32 ALIGNED part[LANES];
            EACH_LANE part[lane] = (u32)((whole[lane] >> (k * bits)) & part_mask);
            keep32((u32 *)(void *)(regs + list[k]), part, mask);
        }
        if (w->tainted) {
            u32 *target = shadow_planes(w, regs, list[k]);
            for (u32 i = 0; i < (inst->bytes == 8 ? 8u : 4u); i++)
                target[i] = (target[i] & ~mask) |
                            (i < inst->bytes ? planes[k * inst->bytes + i] & mask : 0);
        }
    }
}

HANDLER(mov_128) {
    keep64((u64 *)(void *)(regs + inst->d), (const u64 *)(const void *)(regs + inst->a), mask);
    keep64((u64 *)(void *)(regs + inst->d + 256), (const u64 *)(const void *)(regs + inst->a + 256),
           mask);
}

HANDLER(bfi_32) {
    LANES_BEGIN(u32);
    SOURCE(u32, pa, inst->a);
    SOURCE(u32, pb, inst->b);
    SOURCE(u32, pc, inst->c);
    SOURCE(u32, pe, inst->e);
    EACH_LANE out[lane] = (u32)bit_field_insert(pa[lane], pb[lane], pc[lane], pe[lane], 32);
    LANES_END;
}
HANDLER(bfi_64) {
    LANES_BEGIN(u64);
    SOURCE(u64, pa, inst->a);
    SOURCE(u64, pb, inst->b);
    SOURCE(u32, pc, inst->c);
    SOURCE(u32, pe, inst->e);
    EACH_LANE out[lane] = bit_field_insert(pa[lane], pb[lane], pc[lane], pe[lane], 64);
    LANES_END;
}

HANDLER(lop3) {
    LANES_BEGIN(u32);
    SOURCE(u32, pa, inst->a);
    SOURCE(u32, pb, inst->b);
    SOURCE(u32, pc, inst->c);
    u32 on[8];
    for (int i = 0; i < 8; i++)
        on[i] = inst->aux >> i & 1 ? FULL_MASK : 0;
    EACH_LANE {
        u32 a = pa[lane], b = pb[lane], c = pc[lane];
        out[lane] = (~a & ~b & ~c & on[0]) | (~a & ~b & c & on[1]) | (~a & b & ~c & on[2]) |
                    (~a & b & c & on[3]) | (a & ~b & ~c & on[4]) | (a & ~b & c & on[5]) |
                    (a & b & ~c & on[6]) | (a & b & c & on[7]);
    }
    LANES_END;
}

/* ---- predicates ------------------------------------------------------------------------------ */

PURE u32 predicate_value(const Inst *inst, uint8_t *regs, u32 slot, int which) {
    return *predicate(regs, slot) ^ (inst->displacement >> which & 1 ? FULL_MASK : 0);
}
PURE void put_predicate(uint8_t *regs, u32 slot, u32 value, u32 mask) {
    u32 *p = predicate(regs, slot);
    *p = (*p & ~mask) | (value & mask);
}
HANDLER(mov_pred) {
    put_predicate(regs, inst->d, predicate_value(inst, regs, inst->a, 0), mask);
}
HANDLER(not_pred) {
    put_predicate(regs, inst->d, ~predicate_value(inst, regs, inst->a, 0), mask);
}
HANDLER(and_pred) {
    u32 a = predicate_value(inst, regs, inst->a, 0), b = predicate_value(inst, regs, inst->b, 1);
    put_predicate(regs, inst->d, a & b, mask);
}
HANDLER(or_pred) {
    u32 a = predicate_value(inst, regs, inst->a, 0), b = predicate_value(inst, regs, inst->b, 1);
    put_predicate(regs, inst->d, a | b, mask);
}
HANDLER(xor_pred) {
    u32 a = predicate_value(inst, regs, inst->a, 0), b = predicate_value(inst, regs, inst->b, 1);
    put_predicate(regs, inst->d, a ^ b, mask);
}
HANDLER(selp_pred) {
    u32 a = predicate_value(inst, regs, inst->a, 0), b = predicate_value(inst, regs, inst->b, 1);
    u32 p = predicate_value(inst, regs, inst->e, 2);
    put_predicate(regs, inst->d, (a & p) | (b & ~p), mask);
}

PURE u32 selector(const Inst *inst, uint8_t *regs) {
    return *predicate(regs, inst->e) ^ (inst->flags & INST_NEGATE_E ? FULL_MASK : 0);
}
static void select_32(const Inst *inst, uint8_t *regs, u32 mask) {
    LANES_BEGIN(u32);
    SOURCE(u32, pa, inst->a);
    SOURCE(u32, pb, inst->b);
    u32 p = selector(inst, regs);
    EACH_LANE out[lane] = p >> lane & 1 ? pa[lane] : pb[lane];
    LANES_END;
}
HANDLER(selp_16) {
    select_32(inst, regs, mask);
}
HANDLER(selp_32) {
    select_32(inst, regs, mask);
}
HANDLER(selp_64) {
    LANES_BEGIN(u64);
    SOURCE(u64, pa, inst->a);
    SOURCE(u64, pb, inst->b);
    u64 p = selector(inst, regs);
    EACH_LANE out[lane] = p >> lane & 1 ? pa[lane] : pb[lane];
    LANES_END;
}

PURE bool test_class(u32 test, bool top, bool exponent, bool fraction) {
    bool nan = top && fraction, infinite = top && !fraction;
    switch (test) {
    case 0:
        return !top;
    case 1:
        return infinite;
    case 2:
        return !nan;
    case 3:
        return nan;
    case 4:
        return !top && (exponent || !fraction); // zeros count as normal
    default:
        return !top && !exponent && fraction;
    }
}
HANDLER(testp_32) {
    SOURCE(u32, pa, inst->a);
    u32 result = 0;
    for (int lane = 0; lane < LANES; lane++) {
        u32 exponent = pa[lane] >> 23 & 0xff;
        bool holds = test_class(inst->aux, exponent == 0xff, exponent, pa[lane] & 0x7fffff);
        result |= holds ? 1u << lane : 0;
    }
    put_predicate(regs, inst->d, result, mask);
}
HANDLER(testp_64) {
    SOURCE(u64, pa, inst->a);
    u32 result = 0;
    for (int lane = 0; lane < LANES; lane++) {
        u64 exponent = pa[lane] >> 52 & 0x7ff;
        bool holds = test_class(inst->aux, exponent == 0x7ff, exponent, pa[lane] & 0xfffffffffffff);
        result |= holds ? 1u << lane : 0;
    }
    put_predicate(regs, inst->d, result, mask);
}

/* ---- generic addresses ----------------------------------------------------------------------- */

PURE u64 window_of(u8 space) {
    return space == SPACE_SHARED  ? WINDOW_SHARED
           : space == SPACE_LOCAL ? WINDOW_LOCAL
           : space == SPACE_PARAM ? WINDOW_PARAM
                                  : 0;
}
HANDLER(cvta) {
    LANES_BEGIN(u64);
    SOURCE(u64, pa, inst->a);
    u64 window = window_of(inst->space);
    EACH_LANE out[lane] = pa[lane] + window;
    LANES_END;
}
HANDLER(cvta_to) {
    LANES_BEGIN(u64);
    SOURCE(u64, pa, inst->a);
    u64 window = window_of(inst->space);
    EACH_LANE out[lane] = pa[lane] - window;
    LANES_END;
}
HANDLER(isspacep) {
    SOURCE(u64, pa, inst->a);
    u64 window = window_of(inst->space);
    u32 result = 0;
    for (int lane = 0; lane < LANES; lane++)
        result |= (u32)((pa[lane] & WINDOW_MASK) == window) << lane;
    put_predicate(regs, inst->d, result, mask);
}

/* ---- lanes together -------------------------------------------------------------------------- */

PURE void spread_shadow(Warp *w, uint8_t *regs, u32 d, u32 sources, u32 mask) {
    u32 *planes = shadow_planes(w, regs, d);
    for (int i = 0; i < 4; i++)
        planes[i] = (planes[i] & ~mask) | (sources ? mask : 0);
}
PURE u32 any_shadow(Warp *w, uint8_t *regs, u32 slot, int count) {
    const u32 *planes = shadow_planes(w, regs, slot);
    u32 any = 0;
    for (int i = 0; i < count; i++)
        any |= planes[i];
    return any;
}
PURE void clear_predicate_shadow(Warp *w, uint8_t *regs, u32 slot, u32 mask) {
    *shadow_planes(w, regs, slot) &= ~mask;
}

HANDLER(shfl) {
    u32 ALIGNED values[LANES], ALIGNED from[LANES], ALIGNED scratch[LANES];
    SOURCE(u32, pa, inst->a);
    SOURCE(s32, pb, inst->b);
    SOURCE(u32, pc, inst->c);
    u32 valid = 0;
    memcpy(values, pa, sizeof values);
    for (int lane = 0; lane < LANES; lane++) {
        int b = pb[lane] & 31, clamp = (int)(pc[lane] & 31), segment = (int)(pc[lane] >> 8 & 31);
        int highest = (lane & segment) | (clamp & ~segment), lowest = lane & segment, j;
        bool in;
        switch (inst->aux) {
        case 0:
            j = lane - b;
            in = j >= highest;
            break;
        case 1:
            j = lane + b;
            in = j <= highest;
            break;
        case 2:
            j = lane ^ b;
            in = j <= highest;
            break;
        default:
            j = lowest | (b & ~segment);
            in = j <= highest;
            break;
        }
        from[lane] = (u32)(in ? j & 31 : lane);
        valid |= (u32)in << lane;
    }
    EACH_LANE scratch[lane] = values[from[lane]];
    if (w->tainted) {
        u32 planes[4], *target = shadow_planes(w, regs, inst->d);
        memcpy(planes, shadow_planes(w, regs, inst->a), sizeof planes);
        for (int i = 0; i < 4; i++) {
            u32 moved = 0;
            for (int lane = 0; lane < LANES; lane++)
                moved |= (planes[i] >> from[lane] & 1) << lane;
            target[i] = (target[i] & ~mask) | (moved & mask);
        }
        clear_predicate_shadow(w, regs, inst->e, mask);
    }
    keep32((u32 *)(void *)(regs + inst->d), scratch, mask);
    put_predicate(regs, inst->e, valid, mask);
}

HANDLER(vote) {
    u32 p = selector(inst, regs) & mask;
    u32 shadow = w->tainted ? *shadow_planes(w, regs, inst->e) & mask : 0;
    if (inst->aux == 3) {
        u32 ALIGNED scratch[LANES];
        EACH_LANE scratch[lane] = p;
        keep32((u32 *)(void *)(regs + inst->d), scratch, mask);
        if (w->tainted) spread_shadow(w, regs, inst->d, shadow, mask);
        return;
    }
    bool result = inst->aux == 0 ? p == mask : inst->aux == 1 ? p != 0 : p == mask || p == 0;
    put_predicate(regs, inst->d, result ? FULL_MASK : 0, mask);
    if (w->tainted) {
        u32 *plane = shadow_planes(w, regs, inst->d);
        *plane = (*plane & ~mask) | (shadow ? mask : 0);
    }
}

HANDLER(match) {
    bool wide = inst->flags & INST_WIDE_DATA, all = true;
    u64 value[LANES];
    u32 ALIGNED scratch[LANES] = {0};
    for (int lane = 0; lane < LANES; lane++)
        value[lane] = wide ? ((const u64 *)(const void *)(regs + inst->a))[lane]
                           : ((const u32 *)(const void *)(regs + inst->a))[lane];
    u32 shadow = w->tainted ? any_shadow(w, regs, inst->a, wide ? 8 : 4) & mask : 0;
    for (int lane = 0; lane < LANES; lane++)
        for (int other = 0; other < LANES; other++)
            if (mask >> other & 1 && value[other] == value[lane]) scratch[lane] |= 1u << other;
    for (int lane = 0; lane < LANES; lane++)
        if (mask >> lane & 1) all &= scratch[lane] == mask;
    if (inst->aux) {
        EACH_LANE scratch[lane] = all ? mask : 0;
        put_predicate(regs, inst->e, all ? FULL_MASK : 0, mask);
    }
    keep32((u32 *)(void *)(regs + inst->d), scratch, mask);
    if (w->tainted) {
        spread_shadow(w, regs, inst->d, shadow, mask);
        clear_predicate_shadow(w, regs, inst->e, mask);
    }
}

HANDLER(redux) {
    SOURCE(u32, pa, inst->a);
    bool is_signed = inst->flags & INST_SIGNED;
    u32 shadow = w->tainted ? any_shadow(w, regs, inst->a, 4) & mask : 0;
    u32 result = pa[__builtin_ctz(mask)];
    for (u32 rest = mask & (mask - 1); rest; rest &= rest - 1) {
        u32 x = pa[__builtin_ctz(rest)];
        bool less = is_signed ? (s32)x < (s32)result : x < result;
        switch (inst->aux) {
        case 0:
            result += x;
            break;
        case 1:
            result = less ? x : result;
            break;
        case 2:
            result = less ? result : x;
            break;
        case 3:
            result &= x;
            break;
        case 4:
            result |= x;
            break;
        default:
            result ^= x;
            break;
        }
    }
    u32 ALIGNED scratch[LANES];
    EACH_LANE scratch[lane] = result;
    keep32((u32 *)(void *)(regs + inst->d), scratch, mask);
    if (w->tainted) spread_shadow(w, regs, inst->d, shadow, mask);
}

HANDLER(elect) {
    u32 leader = (u32)__builtin_ctz(mask);
    u32 ALIGNED scratch[LANES];
    EACH_LANE scratch[lane] = leader;
    keep32((u32 *)(void *)(regs + inst->d), scratch, mask);
    put_predicate(regs, inst->e, 1u << leader, mask);
    if (w->tainted) {
        spread_shadow(w, regs, inst->d, 0, mask);
        clear_predicate_shadow(w, regs, inst->e, mask);
    }
}

HANDLER(activemask) {
    u32 ALIGNED scratch[LANES];
    EACH_LANE scratch[lane] = mask;
    keep32((u32 *)(void *)(regs + inst->d), scratch, mask);
}

/* What the loop does itself, or what does nothing here. */
#define NOT_RUN(id)                                                                                \
    HANDLER(id) {                                                                                  \
        (void)inst, (void)regs;                                                                    \
    }
NOT_RUN(nothing)
NOT_RUN(warp_sync)
NOT_RUN(barrier)
NOT_RUN(barrier_arrive)
NOT_RUN(barrier_red)
NOT_RUN(bra)
NOT_RUN(brx)
NOT_RUN(call)
NOT_RUN(ret)
NOT_RUN(exit)
NOT_RUN(trap)
NOT_RUN(brkpt)
NOT_RUN(nanosleep)

/* Done once for all instruction sets, in exec_atomic.c. */
void exec_atomic(Warp *warp, const Inst *inst, uint8_t *regs, uint32_t mask);
void exec_copy_async(Warp *warp, const Inst *inst, uint8_t *regs, uint32_t mask);
HANDLER(atom) {
    exec_atomic(w, inst, regs, mask);
}
HANDLER(red) {
    exec_atomic(w, inst, regs, mask);
}
HANDLER(cp_async) {
    exec_copy_async(w, inst, regs, mask);
}
