/* lanes_memory.c - loads and stores, 32 lanes at a time.
 *
 * Most accesses of good kernels are contiguous over the lanes, or the same for all of them; the
 * rest is served lane by lane. Bounds are checked for the whole warp at once against the
 * allocation that this instruction touched last. Only when that fails is each lane looked at alone
 * (exec_memory.c).
 */
#include "sim/exec_lanes.h"
#include "sim/exec_memory.h"

/* ---- addresses ------------------------------------------------------------------------------- */

PURE void read_addresses(const Warp *w, const Inst *inst, const uint8_t *regs, u64 *address) {
    u64 displacement = (u64)inst->displacement;
    if (inst->flags & INST_FIXED_ADDRESS) {
        if (inst->space == SPACE_LOCAL) displacement += w->activation->local_base;
        EACH_LANE address[lane] = displacement;
    } else if (inst->flags & INST_WIDE_ADDRESS) {
        SOURCE(u64, pa, inst->a);
        EACH_LANE address[lane] = pa[lane] + displacement;
    } else {
        SOURCE(u32, pa, inst->a);
        EACH_LANE address[lane] = (u32)(pa[lane] + (u32)displacement);
    }
}

typedef struct {
    u64 low, high, first;
    bool contiguous, uniform;
} Shape;

PURE Shape find_shape(const u64 *address, u32 mask, u32 bytes) {
    int first = __builtin_ctz(mask);
    u64 base = address[first] - (u64)first * bytes, start = address[first];
    u64 apart = 0, stray = 0;
    Shape shape;
    if (mask == FULL_MASK) {
        EACH_LANE apart |= address[lane] ^ (base + (u64)lane * bytes);
        if (!apart) return (Shape){base, base + (u64)31 * bytes, start, true, false};
        u64 low = ~(u64)0, high = 0;
        EACH_LANE stray |= address[lane] ^ start;
        EACH_LANE low = address[lane] < low ? address[lane] : low;
        EACH_LANE high = address[lane] > high ? address[lane] : high;
        shape = (Shape){low, high, start, false, stray == 0};
    } else {
        u64 low = ~(u64)0, high = 0;
        for (u32 rest = mask; rest; rest &= rest - 1) {
            int lane = __builtin_ctz(rest);
            u64 at = address[lane];
            apart |= at ^ (base + (u64)lane * bytes);
            stray |= at ^ start;
            low = at < low ? at : low;
            high = at > high ? at : high;
        }
        shape = (Shape){low, high, start, apart == 0, stray == 0};
    }
    return shape;
}

/* ---- moving data ----------------------------------------------------------------------------- */

/* Where the lanes' data lies in the host: base + address[lane] + lane * stride. */
typedef struct {
    u64 base, stride;
} Place;

PURE u8 *host_of(const Access *a, Place place, int lane) {
    return (u8 *)(place.base + a->address[lane] + (u64)lane * place.stride);
}

PURE u64 load_one(const u8 *at, u32 bytes, bool is_signed) {
    u64 value = 0;
    memcpy(&value, at, bytes);
    if (is_signed && bytes == 1) return (u32)(s32)(s8)value;
    if (is_signed && bytes == 2) return (u32)(s32)(s16)value;
    return value;
}

#if defined(__AVX512F__)
/* Words from a window of at most 32: two registers and a permutation instead of 32 loads. */
PURE bool load_window(const Access *a, Place place, u32 *d) {
    u64 span = a->end - a->low;
    if (!a->bounded || place.stride || span > 128 || a->low & 3) return false;
    u32 words = (u32)(span / 4);
    u32 valid = words >= 32 ? FULL_MASK : (1u << words) - 1;
    const u8 *from = (const u8 *)(place.base + a->low);
    __m512i low = _mm512_maskz_loadu_epi32((__mmask16)valid, from);
    __m512i high = _mm512_maskz_loadu_epi32((__mmask16)(valid >> 16), from + 64);
    __m512i first = _mm512_set1_epi64((long long)a->low), index[2];
    for (int half = 0; half < 2; half++) {
        const u64 *address = a->address + 16 * half;
        __m512i even = _mm512_srli_epi64(_mm512_sub_epi64(_mm512_loadu_si512(address), first), 2);
        __m512i odd =
            _mm512_srli_epi64(_mm512_sub_epi64(_mm512_loadu_si512(address + 8), first), 2);
        index[half] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi64_epi32(even)),
                                         _mm512_cvtepi64_epi32(odd), 1);
    }
    _mm512_mask_storeu_epi32(d, (__mmask16)a->mask, _mm512_permutex2var_epi32(low, index[0], high));
    _mm512_mask_storeu_epi32(d + 16, (__mmask16)(a->mask >> 16),
                             _mm512_permutex2var_epi32(low, index[1], high));
    return true;
}
#else
PURE bool load_window(const Access *a, Place place, u32 *d) {
    (void)a, (void)place, (void)d;
    return false;
}
#endif

PURE void load_all(const Access *a, Place place, uint8_t *regs, const u32 *list, u32 count,
                   u32 bytes, bool is_signed) {
    u32 mask = a->mask;
    const u8 *start = host_of(a, place, __builtin_ctz(mask));
    for (u32 k = 0; k < count; k++) {
        if (bytes == 8) {
            u64 *d = __builtin_assume_aligned(regs + list[k], 64);
            if (mask == FULL_MASK && a->uniform) {
                u64 value = load_one(start + 8 * k, 8, false);
                EACH_LANE d[lane] = value;
            } else if (mask == FULL_MASK && a->contiguous) {
                const u64 *from = (const u64 *)(const void *)start + k;
                EACH_LANE d[lane] = from[(u32)lane * count];
            } else {
                for (u32 rest = mask; rest; rest &= rest - 1) {
                    int lane = __builtin_ctz(rest);
                    d[lane] = load_one(host_of(a, place, lane) + 8 * k, 8, false);
                }
            }
            continue;
        }
        u32 *d = __builtin_assume_aligned(regs + list[k], 64);
        if (mask == FULL_MASK && a->uniform) {
            u32 value = (u32)load_one(start + bytes * k, bytes, is_signed);
            EACH_LANE d[lane] = value;
        } else if (mask == FULL_MASK && a->contiguous && bytes == 4) {
            const u32 *from = (const u32 *)(const void *)start + k;
            EACH_LANE d[lane] = from[(u32)lane * count];
        } else if (bytes == 4 && count == 1 && load_window(a, place, d)) {
            continue;
        } else if (mask == FULL_MASK) {
            for (int lane = 0; lane < LANES; lane++)
                d[lane] = (u32)load_one(host_of(a, place, lane) + bytes * k, bytes, is_signed);
        } else {
            for (u32 rest = mask; rest; rest &= rest - 1) {
                int lane = __builtin_ctz(rest);
                d[lane] = (u32)load_one(host_of(a, place, lane) + bytes * k, bytes, is_signed);
            }
        }
    }
}

PURE void store_all(const Access *a, Place place, const uint8_t *regs, const u32 *list, u32 count,
                    u32 bytes) {
    u32 mask = a->mask;
    if (mask == FULL_MASK && a->contiguous && bytes >= 4) {
        u8 *start = host_of(a, place, 0);
        for (u32 k = 0; k < count; k++) {
            if (bytes == 8) {
                SOURCE(u64, from, list[k]);
                u64 *to = (u64 *)(void *)start + k;
                EACH_LANE to[(u32)lane * count] = from[lane];
            } else {
                SOURCE(u32, from, list[k]);
                u32 *to = (u32 *)(void *)start + k;
                EACH_LANE to[(u32)lane * count] = from[lane];
            }
        }
        return;
    }
    for (u32 rest = mask; rest; rest &= rest - 1) { // in lane order: the highest lane wins
        int lane = __builtin_ctz(rest);
        u8 *to = host_of(a, place, lane);
        for (u32 k = 0; k < count; k++) {
            if (bytes == 8)
                memcpy(to + 8 * k, regs + list[k] + 8 * lane, 8);
            else
                memcpy(to + bytes * k, regs + list[k] + 4 * lane, bytes);
        }
    }
}

static void move_data(const Access *a, Place place, uint8_t *regs, const u32 *list) {
    const Inst *inst = a->inst;
    bool is_signed = inst->flags & INST_SIGNED;
    u32 count = inst->count;
    if (a->is_write) {
        switch (inst->bytes * 16 + count) {
        case 4 * 16 + 1:
            store_all(a, place, regs, list, 1, 4);
            break;
        case 4 * 16 + 2:
            store_all(a, place, regs, list, 2, 4);
            break;
        case 4 * 16 + 4:
            store_all(a, place, regs, list, 4, 4);
            break;
        case 8 * 16 + 1:
            store_all(a, place, regs, list, 1, 8);
            break;
        case 8 * 16 + 2:
            store_all(a, place, regs, list, 2, 8);
            break;
        default:
            store_all(a, place, regs, list, count, inst->bytes);
            break;
        }
        return;
    }
    switch (inst->bytes * 16 + count) {
    case 4 * 16 + 1:
        load_all(a, place, regs, list, 1, 4, false);
        break;
    case 4 * 16 + 2:
        load_all(a, place, regs, list, 2, 4, false);
        break;
    case 4 * 16 + 4:
        load_all(a, place, regs, list, 4, 4, false);
        break;
    case 8 * 16 + 1:
        load_all(a, place, regs, list, 1, 8, false);
        break;
    case 8 * 16 + 2:
        load_all(a, place, regs, list, 2, 8, false);
        break;
    case 2 * 16 + 1:
        load_all(a, place, regs, list, 1, 2, is_signed);
        break;
    case 1 * 16 + 1:
        load_all(a, place, regs, list, 1, 1, is_signed);
        break;
    default:
        load_all(a, place, regs, list, count, inst->bytes, is_signed);
        break;
    }
}

/* ---- initialised-ness of registers ----------------------------------------------------------- */

/* Planes of the data registers from one word of missing bytes per lane. */
static void set_planes(const Access *a, uint8_t *regs, const u32 *list, const u64 *missing) {
    const Inst *inst = a->inst;
    u32 lane_bytes = inst->bytes == 8 ? 8 : 4;
    for (u32 k = 0; k < inst->count; k++) {
        u32 *planes = shadow_planes(a->warp, regs, list[k]);
        for (u32 byte = 0; byte < lane_bytes; byte++) {
            u32 plane = 0;
            bool from_memory = byte < inst->bytes, extended = inst->flags & INST_SIGNED;
            u32 from = k * inst->bytes + (from_memory ? byte : inst->bytes - 1u);
            if (from_memory || extended)
                for (int lane = 0; lane < LANES; lane++)
                    plane |= (u32)(missing[lane] >> (from & 63) & 1) << lane;
            planes[byte] = (planes[byte] & ~a->mask) | (plane & a->mask);
        }
    }
}

static bool get_planes(const Access *a, uint8_t *regs, const u32 *list, u64 *missing) {
    const Inst *inst = a->inst;
    u32 any = 0;
    memset(missing, 0, LANES * sizeof *missing);
    for (u32 k = 0; k < inst->count; k++) {
        const u32 *planes = shadow_planes(a->warp, regs, list[k]);
        for (u32 byte = 0; byte < inst->bytes; byte++) {
            u32 plane = planes[byte] & a->mask;
            any |= plane;
            for (; plane; plane &= plane - 1)
                missing[__builtin_ctz(plane)] |= (u64)1 << (k * inst->bytes + byte);
        }
    }
    return any;
}

/* ---- one access ------------------------------------------------------------------------------ */

PURE bool in_recent_allocation(Access *a, u64 low, u64 end) {
    Warp *w = a->warp;
    u32 site = (u32)(a->inst - w->activation->code->insts) % SITE_CACHE;
    const Allocation *found = w->worker->recent[site];
    bool named = w->worker->run->bounds;
    for (int attempt = 0; attempt < 2; attempt++) {
        if (found) {
            u64 begin = found->base, bytes = found->bytes;
            if (named && found->named_bytes) {
                begin = found->named_base;
                bytes = found->named_bytes;
            }
            if (low >= begin && end <= begin + bytes && low < end) {
                a->allocation = found;
                w->worker->recent[site] = found;
                return true;
            }
        }
        if (attempt == 0) found = memory_find(low);
    }
    return false;
}

static void access_run(Access *a, uint8_t *regs, const u32 *list, u64 *address) {
    Warp *w = a->warp;
    u32 bytes = a->bytes;
    Shape shape = find_shape(address, a->mask, bytes);
    a->contiguous = shape.contiguous;
    a->uniform = shape.uniform;
    a->address = address;
    a->low = shape.low;
    a->end = shape.high + bytes;
    a->bounded = true;
    Place place = {0, 0};
    u64 limit = 0;
    bool good = true;
    switch (a->space) {
    case SPACE_GLOBAL:
        good = in_recent_allocation(a, shape.low, shape.high + bytes);
        break;
    case SPACE_SHARED:
        place.base = (u64)(uintptr_t)w->block->shared;
        limit = w->worker->run->shared_bytes;
        good = shape.high + bytes <= limit && shape.high < limit;
        break;
    case SPACE_LOCAL:
        place.base = (u64)(uintptr_t)w->local;
        limit = w->worker->run->local_stride;
        good = shape.high + bytes <= limit && shape.high < limit;
        break;
    default:
        place.base = (u64)(uintptr_t)w->worker->run->launch->params;
        limit = w->worker->run->launch->param_bytes;
        good = shape.high + bytes <= limit && shape.high < limit && !a->is_write;
        break;
    }
    if (a->space == SPACE_LOCAL) {
        place.stride = w->worker->run->local_stride;
        a->contiguous = a->uniform = a->bounded = false;
    }
    u64 misaligned = 0;
    if (shape.contiguous || shape.uniform) {
        misaligned = shape.first;
    } else {
        u32 mask = a->mask;
        EACH_LANE misaligned |= mask >> lane & 1 ? address[lane] : 0;
    }
    if (__builtin_expect(!good || misaligned & (bytes - 1), 0)) {
        u32 before = a->mask;
        access_check_lanes(a);
        u32 lost = before & ~a->mask;
        if (lost && !a->is_write) { // lanes that may not load get zeros
            for (u32 k = 0; k < a->inst->count; k++)
                for (u32 rest = lost; rest; rest &= rest - 1) {
                    int lane = __builtin_ctz(rest);
                    if (a->inst->bytes == 8)
                        memset(regs + list[k] + 8 * lane, 0, 8);
                    else
                        memset(regs + list[k] + 4 * lane, 0, 4);
                }
        }
        if (!a->mask) return;
    }
    access_count(a);
    if (w->worker->run->initialized) {
        u64 missing[LANES];
        if (!w->tainted && span_initialized(a)) {
            // nothing to note
        } else if (a->is_write) {
            bool tainted = w->tainted && get_planes(a, regs, list, missing);
            access_mark(a, tainted ? missing : NULL);
        } else if (!access_check_initialized(a, missing)) {
            w->tainted = true;
            set_planes(a, regs, list, missing);
        } else if (w->tainted) {
            memset(missing, 0, sizeof missing);
            set_planes(a, regs, list, missing);
        }
    }
    move_data(a, place, regs, list);
}

static void run_access(Warp *w, const Inst *inst, uint8_t *regs, u32 mask, bool is_write) {
    u64 ALIGNED address[LANES];
    Access access = {.warp = w,
                     .inst = inst,
                     .is_write = is_write,
                     .mask = mask,
                     .space = inst->space,
                     .bytes = (uint8_t)(inst->bytes * inst->count)};
    const u32 *list = w->activation->code->lists + inst->list;
    if (w->tainted && !(inst->flags & INST_FIXED_ADDRESS))
        access_check_address(w, inst, regs, mask);
    read_addresses(w, inst, regs, address);
    if (inst->space == SPACE_CONST) access.space = SPACE_GLOBAL;
    if (inst->space != SPACE_GENERIC) {
        access_run(&access, regs, list, address);
        return;
    }
    while (mask) { // generic: lanes of one window at a time
        u64 window = address[__builtin_ctz(mask)] & WINDOW_MASK;
        u32 same = 0;
        for (u32 rest = mask; rest; rest &= rest - 1) {
            int lane = __builtin_ctz(rest);
            same |= (u32)((address[lane] & WINDOW_MASK) == window) << lane;
        }
        access.mask = same;
        access.allocation = NULL;
        access.space = window == WINDOW_SHARED  ? SPACE_SHARED
                       : window == WINDOW_LOCAL ? SPACE_LOCAL
                       : window == WINDOW_PARAM ? SPACE_PARAM
                                                : SPACE_GLOBAL;
        if (access.space != SPACE_GLOBAL)
            EACH_LANE address[lane] =
                same >> lane & 1 ? WINDOW_OFFSET(address[lane]) : address[lane];
        access_run(&access, regs, list, address);
        mask &= ~same;
    }
}

HANDLER(ld) {
    run_access(w, inst, regs, mask, false);
}
HANDLER(ldu) {
    run_access(w, inst, regs, mask, false);
}
HANDLER(st) {
    run_access(w, inst, regs, mask, true);
}

/* A kernel's parameter: the same for all lanes. */
HANDLER(ld_param) {
    const u8 *from = (const u8 *)w->worker->run->launch->params + inst->displacement;
    const u32 *list = w->activation->code->lists + inst->list;
    for (u32 k = 0; k < inst->count; k++) {
        u64 value = load_one(from + k * inst->bytes, inst->bytes, inst->flags & INST_SIGNED);
        if (inst->flags & INST_WIDE_DATA) {
            u64 ALIGNED scratch[LANES];
            EACH_LANE scratch[lane] = value;
            keep64((u64 *)(void *)(regs + list[k]), scratch, mask);
        } else {
            u32 ALIGNED scratch[LANES];
            EACH_LANE scratch[lane] = (u32)value;
            keep32((u32 *)(void *)(regs + list[k]), scratch, mask);
        }
        if (w->tainted) {
            u32 *planes = shadow_planes(w, regs, list[k]);
            for (u32 byte = 0; byte < (inst->flags & INST_WIDE_DATA ? 8u : 4u); byte++)
                planes[byte] &= ~mask;
        }
    }
}
