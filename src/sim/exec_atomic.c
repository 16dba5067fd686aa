/* exec_atomic.c - atomics and asynchronous copies, lane by lane in lane order.
 *
 * Blocks on different cores meet in global memory, so every operation is a compare-and-swap loop.
 * Where the order of blocks could show in the result (a float sum, a ticket that somebody reads),
 * the decoder has marked the kernel as ordered and its blocks run on one core.
 */
#include "sim/exec_math.h"
#include "sim/exec_memory.h"
#include <string.h>

enum { OP_ADD, OP_MIN, OP_MAX, OP_INC, OP_DEC, OP_AND, OP_OR, OP_XOR, OP_EXCH, OP_CAS };

static u32 half_pair(u32 a, u32 b, uint8_t op, bool bf16, uint32_t halves_count) {
    u32 result = 0;
    for (uint32_t i = 0; i < halves_count; i++) {
        u32 x = a >> (16 * i) & 0xffff, y = b >> (16 * i) & 0xffff;
        f32 fx = bf16 ? bf16_to_float(x) : half_to_float(x);
        f32 fy = bf16 ? bf16_to_float(y) : half_to_float(y);
        f32 r = op == OP_ADD ? fx + fy : op == OP_MIN ? minimum32(fx, fy) : maximum32(fx, fy);
        result |= (u32)(bf16 ? float_to_bf16(r) : float_to_half(r)) << (16 * i);
    }
    return result;
}

static u64 combine_float(const Inst *inst, u64 old, u64 b) {
    if (inst->bytes == 8) {
        f64 x = float64(old), y = float64(b);
        return bits64(inst->aux == OP_ADD   ? nan64(x + y)
                      : inst->aux == OP_MIN ? minimum64(x, y)
                                            : maximum64(x, y));
    }
    bool bf16 = inst->source_count == 1;
    if (inst->bytes == 2) return half_pair((u32)old, (u32)b, inst->aux, bf16, 1);
    f32 x = float32((u32)old), y = float32((u32)b);
    return bits32(inst->aux == OP_ADD   ? nan32(x + y)
                  : inst->aux == OP_MIN ? minimum32(x, y)
                                        : maximum32(x, y));
}

static u64 combine(const Inst *inst, u64 old, u64 b, u64 c) {
    bool is_signed = inst->flags & INST_SIGNED;
    switch (inst->aux) {
    case OP_EXCH:
        return b;
    case OP_CAS:
        return old == b ? c : old;
    case OP_AND:
        return old & b;
    case OP_OR:
        return old | b;
    case OP_XOR:
        return old ^ b;
    case OP_INC:
        return old >= b ? 0 : old + 1;
    case OP_DEC:
        return old == 0 || old > b ? b : old - 1;
    default:
        break;
    }
    if (inst->flags & INST_IS_FLOAT)
        return inst->flags & INST_HAS_COUNT
                   ? half_pair((u32)old, (u32)b, inst->aux, inst->source_count == 1, 2)
                   : combine_float(inst, old, b);
    if (inst->aux == OP_ADD) return old + b;
    bool less = inst->bytes == 8 ? (is_signed ? (s64)old < (s64)b : old < b)
                                 : (is_signed ? (s32)old < (s32)b : (u32)old < (u32)b);
    return less == (inst->aux == OP_MIN) ? old : b;
}

static u64 apply(const Inst *inst, u64 host, u64 b, u64 c) {
    if (inst->bytes == 8) {
        uint64_t *at = (uint64_t *)host, old = __atomic_load_n(at, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(at, &old, combine(inst, old, b, c), true,
                                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            continue;
        return old;
    }
    if (inst->bytes == 4) {
        uint32_t *at = (uint32_t *)host, old = __atomic_load_n(at, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(at, &old, (u32)combine(inst, old, (u32)b, (u32)c), true,
                                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            continue;
        return old;
    }
    uint16_t *at = (uint16_t *)host, old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at, &old, (u16)combine(inst, old, (u16)b, (u16)c), true,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        continue;
    return old;
}

static u64 lane_value(const Inst *inst, const uint8_t *regs, uint32_t slot, int lane) {
    return inst->flags & INST_WIDE_DATA ? ((const u64 *)(const void *)(regs + slot))[lane]
                                        : ((const u32 *)(const void *)(regs + slot))[lane];
}

static uint64_t planes_of(Warp *w, uint8_t *regs, uint32_t slot, uint32_t bytes, int lane) {
    const uint32_t *planes = shadow_planes(w, regs, slot);
    uint64_t bits = 0;
    for (uint32_t i = 0; i < bytes; i++)
        bits |= (uint64_t)(planes[i] >> lane & 1) << i;
    return bits;
}

static void put_planes(Warp *w, uint8_t *regs, const Inst *inst, uint64_t bits, int lane) {
    uint32_t *planes = shadow_planes(w, regs, inst->d);
    for (uint32_t i = 0; i < (inst->flags & INST_WIDE_DATA ? 8u : 4u); i++)
        planes[i] = (planes[i] & ~(1u << lane)) | (uint32_t)(bits >> i & 1) << lane;
}

/* Host addresses of an access; false when no lane may go on. */
static bool locate(Access *access, uint64_t address[LANES], uint64_t host[LANES]) {
    Warp *w = access->warp;
    access->address = address;
    uint32_t generic = access->inst->space == SPACE_GENERIC || access->space == SPACE_GENERIC;
    if (generic) {
        uint64_t window = address[__builtin_ctz(access->mask)] & WINDOW_MASK;
        access->space = window == WINDOW_SHARED  ? SPACE_SHARED
                        : window == WINDOW_LOCAL ? SPACE_LOCAL
                                                 : SPACE_GLOBAL;
        if (access->space != SPACE_GLOBAL)
            for (int lane = 0; lane < LANES; lane++)
                address[lane] = WINDOW_OFFSET(address[lane]);
    }
    access_check_lanes(access);
    for (int lane = 0; lane < LANES; lane++)
        host[lane] =
            access->space == SPACE_SHARED  ? (uint64_t)(uintptr_t)w->block->shared + address[lane]
            : access->space == SPACE_LOCAL ? (uint64_t)(uintptr_t)w->local + address[lane] +
                                                 (uint64_t)lane * w->worker->run->local_stride
                                           : address[lane];
    return access->mask;
}

void exec_atomic(Warp *w, const Inst *inst, uint8_t *regs, uint32_t mask);
void exec_atomic(Warp *w, const Inst *inst, uint8_t *regs, uint32_t mask) {
    uint64_t address[LANES], host[LANES];
    bool tracked = w->worker->run->initialized;
    for (int lane = 0; lane < LANES; lane++)
        address[lane] = (uint64_t)inst->displacement;
    if (!(inst->flags & INST_FIXED_ADDRESS)) {
        if (w->tainted) access_check_address(w, inst, regs, mask);
        for (int lane = 0; lane < LANES; lane++)
            address[lane] += inst->flags & INST_WIDE_ADDRESS
                                 ? ((const u64 *)(const void *)(regs + inst->a))[lane]
                                 : ((const u32 *)(const void *)(regs + inst->a))[lane];
    }
    while (mask) { // generic: lanes of one window at a time
        uint32_t now = mask;
        if (inst->space == SPACE_GENERIC) {
            uint64_t window = address[__builtin_ctz(mask)] & WINDOW_MASK;
            for (int lane = 0; lane < LANES; lane++)
                if ((address[lane] & WINDOW_MASK) != window) now &= ~(1u << lane);
        }
        mask &= ~now;
        uint64_t own[LANES];
        memcpy(own, address, sizeof own);
        Access access = {.warp = w,
                         .inst = inst,
                         .space = inst->space,
                         .bytes = inst->bytes,
                         .mask = now,
                         .is_write = true};
        if (!locate(&access, own, host)) continue;
        access_count(&access);
        uint64_t before[LANES] = {0}, missing[LANES] = {0};
        if (tracked) {
            if (access_check_initialized(&access, before)) memset(before, 0, sizeof before);
            for (uint32_t rest = access.mask; rest; rest &= rest - 1) {
                int lane = __builtin_ctz(rest);
                w->tainted |= before[lane] != 0;
                missing[lane] = inst->aux == OP_EXCH || inst->aux == OP_CAS ? 0 : before[lane];
                if (w->tainted) missing[lane] |= planes_of(w, regs, inst->b, inst->bytes, lane);
            }
            access_mark(&access, missing);
        }
        for (uint32_t rest = access.mask; rest; rest &= rest - 1) {
            int lane = __builtin_ctz(rest);
            u64 old = apply(inst, host[lane], lane_value(inst, regs, inst->b, lane),
                            lane_value(inst, regs, inst->c, lane));
            if (inst->flags & INST_NO_RESULT) continue;
            if (inst->flags & INST_WIDE_DATA)
                ((u64 *)(void *)(regs + inst->d))[lane] = old;
            else
                ((u32 *)(void *)(regs + inst->d))[lane] = (u32)old;
            if (tracked) put_planes(w, regs, inst, before[lane], lane);
        }
    }
}

void exec_copy_async(Warp *w, const Inst *inst, uint8_t *regs, uint32_t mask);
void exec_copy_async(Warp *w, const Inst *inst, uint8_t *regs, uint32_t mask) {
    uint64_t from[LANES], to[LANES], from_host[LANES], to_host[LANES], missing[LANES] = {0};
    const u32 *size = (const u32 *)(const void *)(regs + inst->c);
    uint32_t reading = 0;
    if (w->tainted) access_check_address(w, inst, regs, mask);
    for (int lane = 0; lane < LANES; lane++) {
        from[lane] = ((const u64 *)(const void *)(regs + inst->b))[lane] +
                     (uint64_t)(int64_t)(int32_t)inst->target;
        to[lane] = (inst->flags & INST_WIDE_ADDRESS
                        ? ((const u64 *)(const void *)(regs + inst->a))[lane]
                        : ((const u32 *)(const void *)(regs + inst->a))[lane]) +
                   (uint64_t)inst->displacement;
        reading |= (uint32_t)(size[lane] != 0) << lane;
    }
    Access source = {.warp = w,
                     .inst = inst,
                     .space = SPACE_GLOBAL,
                     .bytes = inst->bytes,
                     .mask = mask & reading};
    Access target = {.warp = w,
                     .inst = inst,
                     .space = SPACE_SHARED,
                     .bytes = inst->bytes,
                     .mask = mask,
                     .is_write = true};
    bool readable = source.mask && locate(&source, from, from_host);
    if (!locate(&target, to, to_host)) return;
    if (readable) {
        access_count(&source);
        if (w->worker->run->initialized && access_check_initialized(&source, missing))
            memset(missing, 0, sizeof missing);
    }
    access_count(&target);
    for (uint32_t rest = target.mask; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        uint8_t data[16] = {0};
        uint32_t bytes = size[lane] < inst->bytes ? size[lane] : inst->bytes;
        if (readable && lane_in(source.mask, lane))
            memcpy(data, (const void *)from_host[lane], bytes);
        if (bytes < inst->bytes) missing[lane] &= (UINT64_C(1) << bytes) - 1;
        memcpy((void *)to_host[lane], data, inst->bytes);
    }
    if (w->worker->run->initialized) access_mark(&target, missing);
}
