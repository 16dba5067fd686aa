/* exec_lanes.h - turns rows of instructions.def into loops over 32 lanes.
 *
 * The files lanes_*.c are compiled once per instruction set (SIM_ISA: base, avx2, avx512); which
 * one runs is chosen when the program starts. A loop computes all lanes, of those that are not
 * active too, for that is cheaper than asking; then only the active ones are kept.
 */
#pragma once
#include "sim/exec.h"
#include "sim/exec_math.h"
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#ifndef SIM_ISA
#define SIM_ISA base
#endif
#define JOIN_NAMES_(a, b) a##b
#define JOIN_NAMES(a, b)  JOIN_NAMES_(a, b)
#define RUN(id)           JOIN_NAMES(run_##id##_, SIM_ISA)
#define HANDLER(id)                                                                                \
    void RUN(id)(Warp * w, const Inst *inst, uint8_t *regs, uint32_t mask);                        \
    void RUN(id)(Warp * w __attribute__((unused)), const Inst *inst, uint8_t *regs,                \
                 uint32_t mask __attribute__((unused)))

#define EACH_LANE _Pragma("GCC ivdep") for (int lane = 0; lane < LANES; lane++)
#define ALIGNED   __attribute__((aligned(64)))

/* How a type lies in a slot. */
typedef u32 slot_u8, slot_s8, slot_u16, slot_s16, slot_u32, slot_h16, slot_b16f;
typedef s32 slot_s32;
typedef u64 slot_u64;
typedef s64 slot_s64;
typedef f32 slot_f32;
typedef f64 slot_f64;

#define SOURCE(T, name, slot) const slot_##T *name = __builtin_assume_aligned(regs + (slot), 64)
#define TARGET(T, slot)       slot_##T *target = __builtin_assume_aligned(regs + (slot), 64)

PURE void keep32(u32 *restrict d, const u32 *restrict t, u32 mask) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_epi32(d, (__mmask16)mask, _mm512_loadu_si512(t));
    _mm512_mask_storeu_epi32(d + 16, (__mmask16)(mask >> 16), _mm512_loadu_si512(t + 16));
#else
    EACH_LANE d[lane] = mask >> lane & 1 ? t[lane] : d[lane];
#endif
}
PURE void keep64(u64 *restrict d, const u64 *restrict t, u32 mask) {
#if defined(__AVX512F__)
    for (int i = 0; i < 4; i++)
        _mm512_mask_storeu_epi64(d + 8 * i, (__mmask8)(mask >> (8 * i)),
                                 _mm512_loadu_si512(t + 8 * i));
#else
    EACH_LANE d[lane] = (u64)mask >> lane & 1 ? t[lane] : d[lane];
#endif
}
#define KEEP(d, t, mask)                                                                           \
    (sizeof *(d) == 8 ? keep64((u64 *)(void *)(d), (const u64 *)(const void *)(t), mask)           \
                      : keep32((u32 *)(void *)(d), (const u32 *)(const void *)(t), mask))

/* Bit per lane from a byte per lane that is 0 or 1. */
PURE u32 gather_bits(const u8 *flags) {
#if defined(__AVX2__)
    __m256i bytes = _mm256_load_si256((const __m256i *)(const void *)flags);
    return (u32)_mm256_movemask_epi8(_mm256_slli_epi16(bytes, 7));
#elif defined(__SSE2__)
    __m128i low = _mm_load_si128((const __m128i *)(const void *)flags);
    __m128i high = _mm_load_si128((const __m128i *)(const void *)(flags + 16));
    return (u32)_mm_movemask_epi8(_mm_slli_epi16(low, 7)) |
           (u32)_mm_movemask_epi8(_mm_slli_epi16(high, 7)) << 16;
#else
    u32 bits = 0;
    for (int lane = 0; lane < LANES; lane++)
        bits |= (u32)flags[lane] << lane;
    return bits;
#endif
}

#define LANES_BEGIN(D)                                                                             \
    slot_##D ALIGNED scratch[LANES];                                                               \
    TARGET(D, inst->d);                                                                            \
    slot_##D *out = mask == FULL_MASK ? target : scratch
#define LANES_END                                                                                  \
    if (mask != FULL_MASK) KEEP(target, scratch, mask)

#define LANE1(id, pattern, D, A, expr)                                                             \
    HANDLER(id) {                                                                                  \
        LANES_BEGIN(D);                                                                            \
        SOURCE(A, pa, inst->a);                                                                    \
        EACH_LANE {                                                                                \
            const A a = (A)pa[lane];                                                               \
            out[lane] = (slot_##D)(D)(expr);                                                       \
        }                                                                                          \
        LANES_END;                                                                                 \
    }
#define LANE2(id, pattern, D, A, B, expr)                                                          \
    HANDLER(id) {                                                                                  \
        LANES_BEGIN(D);                                                                            \
        SOURCE(A, pa, inst->a);                                                                    \
        SOURCE(B, pb, inst->b);                                                                    \
        EACH_LANE {                                                                                \
            const A a = (A)pa[lane];                                                               \
            const B b = (B)pb[lane];                                                               \
            out[lane] = (slot_##D)(D)(expr);                                                       \
        }                                                                                          \
        LANES_END;                                                                                 \
    }
#define LANE3(id, pattern, D, A, B, C, expr)                                                       \
    HANDLER(id) {                                                                                  \
        LANES_BEGIN(D);                                                                            \
        SOURCE(A, pa, inst->a);                                                                    \
        SOURCE(B, pb, inst->b);                                                                    \
        SOURCE(C, pc, inst->c);                                                                    \
        EACH_LANE {                                                                                \
            const A a = (A)pa[lane];                                                               \
            const B b = (B)pb[lane];                                                               \
            const C c = (C)pc[lane];                                                               \
            out[lane] = (slot_##D)(D)(expr);                                                       \
        }                                                                                          \
        LANES_END;                                                                                 \
    }

/* p = cmp op e, q = !cmp op e. inst->aux: 0 no operator, 1 and, 2 or, 3 xor; inst->c is q's slot
 * or, like an absent e, that of a predicate nobody reads. */
PURE void set_predicates(const Inst *inst, uint8_t *regs, u32 result, u32 mask) {
    u32 other = ~result;
    if (inst->aux) {
        u32 e = *predicate(regs, inst->e) ^ (inst->flags & INST_NEGATE_E ? FULL_MASK : 0);
        result = inst->aux == 1 ? result & e : inst->aux == 2 ? result | e : result ^ e;
        other = inst->aux == 1 ? other & e : inst->aux == 2 ? other | e : other ^ e;
    }
    u32 *p = predicate(regs, inst->d), *q = predicate(regs, inst->c);
    *q = (*q & ~mask) | (other & mask);
    *p = (*p & ~mask) | (result & mask);
}

#define COMPARE(id, pattern, A, expr)                                                              \
    HANDLER(id) {                                                                                  \
        u8 ALIGNED flags[LANES];                                                                   \
        SOURCE(A, pa, inst->a);                                                                    \
        SOURCE(A, pb, inst->b);                                                                    \
        EACH_LANE {                                                                                \
            const A a = (A)pa[lane];                                                               \
            const A b = (A)pb[lane];                                                               \
            flags[lane] = (expr);                                                                  \
        }                                                                                          \
        set_predicates(inst, regs, gather_bits(flags), mask);                                      \
    }

/* "True" is all ones for an integer result, 1.0 for a float. */
#define TRUE_u32                        UINT32_MAX
#define TRUE_f32                        0x3f800000u
#define SETREG(id, pattern, D, A, expr) LANE2(id, pattern, u32, A, A, (expr) ? TRUE_##D : 0u)

#if defined(__SSE2__)
#define ROUNDING_rm 0x2000
#define ROUNDING_rp 0x4000
#define ROUNDING_rz 0x6000
#define ROUNDING_BEGIN(mode)                                                                       \
    u32 control = _mm_getcsr();                                                                    \
    _mm_setcsr((control & ~0x6000u) | ROUNDING_##mode);                                            \
    __asm__ volatile("" ::: "memory")
#define ROUNDING_END                                                                               \
    __asm__ volatile("" ::: "memory");                                                             \
    _mm_setcsr(control)
#else
#include <fenv.h>
#define ROUNDING_rm FE_DOWNWARD
#define ROUNDING_rp FE_UPWARD
#define ROUNDING_rz FE_TOWARDZERO
#define ROUNDING_BEGIN(mode)                                                                       \
    int control = fegetround();                                                                    \
    fesetround(ROUNDING_##mode);                                                                   \
    __asm__ volatile("" ::: "memory")
#define ROUNDING_END                                                                               \
    __asm__ volatile("" ::: "memory");                                                             \
    fesetround(control)
#endif

#define ROUNDED(D, mode, sources, values, expr)                                                    \
    {                                                                                              \
        slot_##D ALIGNED scratch[LANES];                                                           \
        sources;                                                                                   \
        ROUNDING_BEGIN(mode);                                                                      \
        EACH_LANE {                                                                                \
            values;                                                                                \
            scratch[lane] = (slot_##D)(expr);                                                      \
        }                                                                                          \
        __asm__ volatile("" : : "r"(scratch) : "memory");                                          \
        ROUNDING_END;                                                                              \
        TARGET(D, inst->d);                                                                        \
        KEEP(target, scratch, mask);                                                               \
    }
#define ROUND1(id, pattern, D, A, mode, expr)                                                      \
    HANDLER(id) ROUNDED(D, mode, SOURCE(A, pa, inst->a), const A a = (A)pa[lane], expr)
#define ROUND2(id, pattern, D, A, B, mode, expr)                                                   \
    HANDLER(id)                                                                                    \
    ROUNDED(D, mode, SOURCE(A, pa, inst->a); SOURCE(B, pb, inst->b), const A a = (A)pa[lane];      \
            const B b = (B)pb[lane], expr)
#define ROUND3(id, pattern, D, A, B, C, mode, expr)                                                \
    HANDLER(id)                                                                                    \
    ROUNDED(D, mode, SOURCE(A, pa, inst->a); SOURCE(B, pb, inst->b);                               \
            SOURCE(C, pc, inst->c), const A a = (A)pa[lane]; const B b = (B)pb[lane];              \
            const C c = (C)pc[lane], expr)

/* The carry is the predicate e. */
typedef u64 wide_u32;
typedef u128 wide_u64;
#define CARRY(id, T, uses, makes, third, expr)                                                     \
    HANDLER(id) {                                                                                  \
        T ALIGNED scratch[LANES];                                                                  \
        u8 ALIGNED flags[LANES];                                                                   \
        SOURCE(T, pa, inst->a);                                                                    \
        SOURCE(T, pb, inst->b);                                                                    \
        SOURCE(T, pc, third ? inst->c : inst->a);                                                  \
        u32 *carries = predicate(regs, inst->e), carry_in = *carries;                              \
        EACH_LANE {                                                                                \
            const T a = pa[lane], b = pb[lane], c = pc[lane];                                      \
            const T carry = uses ? carry_in >> lane & 1 : 0;                                       \
            wide_##T wide;                                                                         \
            (void)c, (void)carry;                                                                  \
            expr;                                                                                  \
            scratch[lane] = (T)wide;                                                               \
            flags[lane] = (u8)(wide >> (8 * sizeof(T))) & 1;                                       \
        }                                                                                          \
        TARGET(T, inst->d);                                                                        \
        KEEP(target, scratch, mask);                                                               \
        if (makes) *carries = (carry_in & ~mask) | (gather_bits(flags) & mask);                    \
    }
#define CARRY2(id, pattern, T, uses, makes, expr) CARRY(id, T, uses, makes, false, expr)
#define CARRY3(id, pattern, T, uses, makes, expr) CARRY(id, T, uses, makes, true, expr)
