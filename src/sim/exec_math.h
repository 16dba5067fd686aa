/* exec_math.h - arithmetic of one lane, written so that a loop over 32 lanes vectorises: no
 * branches that must stay, no calls, no tables.
 *
 * The `.approx` functions are evaluated in f64 and rounded once, well inside the error that the
 * PTX ISA allows them.
 */
#pragma once
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef int8_t s8;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;
typedef float f32;
typedef double f64;
typedef u16 h16;  // bits of an f16
typedef u16 b16f; // bits of a bf16
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

#define PURE static inline __attribute__((always_inline, unused))

PURE u32 bits32(f32 x) {
    u32 bits;
    memcpy(&bits, &x, 4);
    return bits;
}
PURE f32 float32(u32 bits) {
    f32 x;
    memcpy(&x, &bits, 4);
    return x;
}
PURE u64 bits64(f64 x) {
    u64 bits;
    memcpy(&bits, &x, 8);
    return bits;
}
PURE f64 float64(u64 bits) {
    f64 x;
    memcpy(&x, &bits, 8);
    return x;
}

/* ---- integers -------------------------------------------------------------------------------- */

PURE u32 halves(u32 low, u32 high) {
    return (low & 0xffff) | high << 16;
}
PURE u64 join64(u32 low, u32 high) {
    return (u64)high << 32 | low;
}
PURE s32 clamp_s32(s64 x) {
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (s32)x;
}

/* clamp_TO_FROM: saturating conversion from an unsigned or signed 64-bit value. */
#define CLAMP(D, LOW, HIGH)                                                                        \
    PURE D clamp_##D##_u(u64 x) {                                                                  \
        return x > (u64)(HIGH) ? (D)(HIGH) : (D)x;                                                 \
    }                                                                                              \
    PURE D clamp_##D##_s(s64 x) {                                                                  \
        return x < (s64)(LOW) ? (D)(LOW) : (x >= 0 && (u64)x > (u64)(HIGH)) ? (D)(HIGH) : (D)x;    \
    }
CLAMP(u8, 0, UINT8_MAX)
CLAMP(s8, INT8_MIN, INT8_MAX)
CLAMP(u16, 0, UINT16_MAX)
CLAMP(s16, INT16_MIN, INT16_MAX)
CLAMP(u32, 0, UINT32_MAX)
CLAMP(s32, INT32_MIN, INT32_MAX)
CLAMP(u64, 0, UINT64_MAX)
CLAMP(s64, INT64_MIN, INT64_MAX)
#undef CLAMP

PURE s32 low24(s32 x) {
    return (s32)((u32)x << 8) >> 8;
}
PURE u32 population(u32 x) {
    x -= (x >> 1) & 0x55555555;
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333);
    return (((x + (x >> 4)) & 0x0f0f0f0f) * 0x01010101) >> 24;
}
PURE u32 reverse_bits(u32 x) {
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(x);
}
PURE u32 highest_bit(u64 x) {
    return x ? 63 - (u32)__builtin_clzll(x) : UINT32_MAX;
}
PURE u32 shift_amount(u64 x, u32 top) {
    return x ? top - (63 - (u32)__builtin_clzll(x)) : UINT32_MAX;
}

/* Position and length are bytes for 32-bit fields; those for 64 bits are taken as they stand. */
PURE u32 field_operand(u32 x, u32 width) {
    return width == 32 ? x & 0xff : x > 64 ? 64 : x;
}
PURE u64 bit_field_u64(u64 a, u32 position, u32 length, u32 width) {
    position = field_operand(position, width);
    length = field_operand(length, width);
    u64 shifted = position < width ? a >> position : 0;
    return length >= 64 ? shifted : shifted & (((u64)1 << length) - 1);
}
PURE s64 bit_field_s64(s64 a, u32 position, u32 length, u32 width) {
    position = field_operand(position, width);
    length = field_operand(length, width);
    if (!length) return 0;
    u32 end = position + length; // past the sign: the sign is what lies at the top
    u32 sign_at = end > width ? width - 1 : end - 1;
    u64 sign = ((u64)a >> sign_at) & 1;
    u64 field = bit_field_u64(width == 32 ? (u32)a : (u64)a, position, length, width);
    u32 kept = position >= width ? 0 : (end > width ? width - position : length);
    u64 high = kept >= 64 ? 0 : ~(u64)0 << kept;
    return (s64)(sign ? field | high : field);
}
PURE u64 bit_field_insert(u64 a, u64 b, u32 position, u32 length, u32 width) {
    position = field_operand(position, width);
    length = field_operand(length, width);
    if (position >= width || !length) return b;
    u64 mask = length >= 64 ? ~(u64)0 : ((u64)1 << length) - 1;
    return (b & ~(mask << position)) | (a & mask) << position;
}
PURE u32 bit_mask(u32 position, u32 length) {
    u64 mask = length > 31 ? 0xffffffffu : ((u64)1 << length) - 1;
    return position > 31 ? 0 : (u32)(mask << position);
}

PURE u32 permute_byte(u64 pool, u32 selector) {
    u32 byte = (u32)(pool >> (8 * (selector & 7))) & 0xff;
    return selector & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
}
PURE u32 permute(u32 a, u32 b, u32 selector) {
    u64 pool = join64(a, b);
    return permute_byte(pool, selector) | permute_byte(pool, selector >> 4) << 8 |
           permute_byte(pool, selector >> 8) << 16 | permute_byte(pool, selector >> 12) << 24;
}
PURE u32 permute_b4e(u32 c) {
    return (c & 3) == 0 ? 0x5670 : (c & 3) == 1 ? 0x6701 : (c & 3) == 2 ? 0x7012 : 0x0123;
}
PURE u32 permute_ecl(u32 c) {
    return (c & 3) == 0 ? 0x3210 : (c & 3) == 1 ? 0x3211 : (c & 3) == 2 ? 0x3222 : 0x3333;
}
PURE u32 permute_ecr(u32 c) {
    return (c & 3) == 0 ? 0x0000 : (c & 3) == 1 ? 0x1110 : (c & 3) == 2 ? 0x2210 : 0x3210;
}

PURE u32 find_nth_set(u32 mask, u32 base, s32 offset) {
    if (offset == INT32_MIN) return 0; // whose absolute value is none
    if (base > 31) return UINT32_MAX;
    if (offset == 0) return mask >> base & 1 ? base : UINT32_MAX;
    s32 step = offset > 0 ? 1 : -1;
    s32 count = offset > 0 ? offset : -offset;
    for (s32 at = (s32)base; at >= 0 && at < 32; at += step)
        if (mask >> at & 1 && --count == 0) return (u32)at;
    return UINT32_MAX;
}

PURE u32 dot4(u32 a, u32 b, u32 c, bool a_signed, bool b_signed) {
    for (int i = 0; i < 32; i += 8) {
        s32 x = a_signed ? (s8)(a >> i) : (s32)(a >> i & 0xff);
        s32 y = b_signed ? (s8)(b >> i) : (s32)(b >> i & 0xff);
        c += (u32)(x * y);
    }
    return c;
}

/* ---- single and double precision -------------------------------------------------------------
 *
 * In f32 every NaN that is made is 0x7fffffff. In f64 a NaN keeps its sign and payload and becomes
 * quiet; of several the second operand's is kept, then the third's; an invalid operation makes
 * 0xfff8000000000000.
 */

PURE f32 canonical_nan32(void) {
    return float32(0x7fffffff);
}
PURE f64 canonical_nan64(void) {
    return float64(0x7ff8000000000000);
}
PURE f32 nan32(f32 x) {
    return x == x ? x : float32(0x7fffffff);
}
PURE f64 nan64(f64 x) {
    return x == x ? x : float64(0x7ff8000000000000);
}
PURE f64 quiet64(f64 x) {
    return float64(bits64(x) | (u64)1 << 51);
}
PURE f64 nan64_1(f64 x, f64 a) {
    return x == x ? x : a != a ? quiet64(a) : float64(0xfff8000000000000);
}
PURE f64 nan64_2(f64 x, f64 a, f64 b) {
    return x == x ? x : b != b ? quiet64(b) : nan64_1(x, a);
}
PURE f64 nan64_3(f64 x, f64 a, f64 b, f64 c) {
    return x == x ? x : b != b ? quiet64(b) : c != c ? quiet64(c) : nan64_1(x, a);
}
PURE f32 ftz(f32 x) {
    u32 bits = bits32(x);
    return float32(bits & (bits & 0x7f800000 ? 0xffffffff : 0x80000000));
}
PURE f64 ftz64(f64 x) {
    u64 bits = bits64(x);
    return float64(bits & (bits & 0x7ff0000000000000 ? ~(u64)0 : (u64)1 << 63));
}
/* What is below 2^-126 is flushed before it is rounded to a multiple of 2^-149, which could make it
 * 2^-126: `scaled` is the same result, 2^24 times as large. */
PURE f32 flush_tiny(f32 x, f32 scaled) {
    bool tiny = __builtin_fabsf(scaled) < 0x1p-102f;
    return float32(tiny ? bits32(x) & 0x80000000 : bits32(nan32(x)));
}
PURE f32 multiply_ftz(f32 a, f32 b) {
    a = ftz(a), b = ftz(b);
    return flush_tiny(a * b, a * 0x1p24f * b);
}
PURE f32 fma_ftz(f32 a, f32 b, f32 c) {
    a = ftz(a), b = ftz(b), c = ftz(c);
    return flush_tiny(__builtin_fmaf(a, b, c), __builtin_fmaf(a * 0x1p24f, b, c * 0x1p24f));
}
PURE f32 divide_ftz(f32 a, f32 b) {
    a = ftz(a), b = ftz(b);
    return flush_tiny(a / b, a * 0x1p24f / b);
}
/* A NaN keeps what fits of its payload, as in C. */
PURE f32 narrow_ftz(f64 a) {
    bool tiny = __builtin_fabsf((f32)(a * 0x1p100)) < 0x1p-26f;
    return float32(tiny ? (u32)(bits64(a) >> 32) & 0x80000000 : bits32((f32)a));
}
/* Half of a f64 result: its operand's lower half is not looked at, its own is zero. */
PURE f64 upper_half(f64 x) {
    return float64(bits64(x) & 0xffffffff00000000);
}
PURE f64 approximate_half(f64 x) {
    return x == x ? upper_half(ftz64(x)) : float64(0x7fffffff00000000);
}
PURE f32 saturate(f32 x) {
    return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
} // NaN becomes 0

PURE f32 minimum32(f32 a, f32 b) {
    f32 both = a != a ? b : b != b ? a : a < b ? a : b < a ? b : float32(bits32(a) | bits32(b));
    return nan32(both);
}
PURE f32 maximum32(f32 a, f32 b) {
    f32 both = a != a ? b : b != b ? a : a > b ? a : b > a ? b : float32(bits32(a) & bits32(b));
    return nan32(both);
}
PURE f64 minimum64(f64 a, f64 b) {
    f64 both = a != a ? b : b != b ? a : a < b ? a : b < a ? b : float64(bits64(a) | bits64(b));
    return nan64_1(both, b);
}
PURE f64 maximum64(f64 a, f64 b) {
    f64 both = a != a ? b : b != b ? a : a > b ? a : b > a ? b : float64(bits64(a) & bits64(b));
    return nan64_1(both, b);
}

/* For |b| above 2^126 the reciprocal is flushed: x/b is 0, inf/b is NaN. */
PURE f32 divide_approx(f32 a, f32 b) {
    f32 size = __builtin_fabsf(b);
    bool huge = size > 0x1p126f && size < INFINITY;
    return nan32(huge ? a * (b < 0 ? -0.0f : 0.0f) : a / b);
}

PURE f64 exp2_f64(f64 x) {
    f64 bounded = x > 1100 ? 1100 : x < -1070 ? -1070 : x;
    bounded = x == x ? bounded : 0;
    f64 whole = __builtin_rint(bounded);
    f64 f = (bounded - whole) * 0.69314718055994530942;
    f64 p = 1.0 / 3628800;
    p = p * f + 1.0 / 362880;
    p = p * f + 1.0 / 40320;
    p = p * f + 1.0 / 5040;
    p = p * f + 1.0 / 720;
    p = p * f + 1.0 / 120;
    p = p * f + 1.0 / 24;
    p = p * f + 1.0 / 6;
    p = p * f + 0.5;
    p = p * f + 1.0;
    p = p * f + 1.0;
    s32 n = (s32)whole, half = n / 2; // in two steps, so that neither factor leaves the range
    f64 scale = float64((u64)(1023 + half) << 52) * float64((u64)(1023 + (n - half)) << 52);
    return x == x ? p * scale : x;
}

PURE f64 log2_f64(f64 x) {
    u64 bits = bits64(x);
    u64 fraction = bits & 0xfffffffffffff;
    bool upper = fraction > 0x6a09e667f3bcc; // above sqrt(2)
    f64 m = float64(fraction | (upper ? (u64)1022 << 52 : (u64)1023 << 52));
    f64 exponent = (f64)((s32)(bits >> 52 & 0x7ff) - 1023 + (upper ? 1 : 0));
    f64 s = (m - 1) / (m + 1), s2 = s * s;
    f64 p = 1.0 / 17;
    p = p * s2 + 1.0 / 15;
    p = p * s2 + 1.0 / 13;
    p = p * s2 + 1.0 / 11;
    p = p * s2 + 1.0 / 9;
    p = p * s2 + 1.0 / 7;
    p = p * s2 + 1.0 / 5;
    p = p * s2 + 1.0 / 3;
    p = p * s2 + 1.0;
    f64 result = exponent + p * s * 2.88539008177792681472;
    result = x == (f64)INFINITY ? x : result;
    result = x == 0 ? -(f64)INFINITY : result;
    return x < 0 || x != x ? canonical_nan64() : result;
}

/* sin(x) for quarter 0, cos(x) for quarter 1. Far out (|x| > 2^30) the hardware's result is as
 * meaningless as this one; it is still within [-1, 1]. */
PURE f64 sine_f64(f64 x, s32 quarter) {
    f64 bounded = __builtin_fabs(x) < 0x1p30 ? x : 0;
    f64 turns = __builtin_rint(bounded * 0.63661977236758134308);
    f64 r = bounded - turns * 1.57079632679489655800;
    r -= turns * 6.12323399573676603587e-17;
    s32 q = ((s32)turns + quarter) & 3;
    f64 r2 = r * r;
    f64 s = -1.0 / 1307674368000.0;
    s = s * r2 + 1.0 / 6227020800.0;
    s = s * r2 - 1.0 / 39916800;
    s = s * r2 + 1.0 / 362880;
    s = s * r2 - 1.0 / 5040;
    s = s * r2 + 1.0 / 120;
    s = s * r2 - 1.0 / 6;
    s = s * r2 * r + r;
    f64 c = 1.0 / 20922789888000.0;
    c = c * r2 - 1.0 / 87178291200.0;
    c = c * r2 + 1.0 / 479001600;
    c = c * r2 - 1.0 / 3628800;
    c = c * r2 + 1.0 / 40320;
    c = c * r2 - 1.0 / 720;
    c = c * r2 + 1.0 / 24;
    c = c * r2 - 0.5;
    c = c * r2 + 1.0;
    f64 result = q & 1 ? c : s;
    result = q & 2 ? -result : result;
    result = x == 0 && quarter == 0 ? x : result; // its sign stays
    return __builtin_fabs(x) < (f64)INFINITY ? result : canonical_nan64();
}

PURE f64 tanh_f64(f64 x) {
    f64 size = __builtin_fabs(x);
    f64 bounded = size < 40 ? size : 40;
    f64 e = exp2_f64(bounded * 2.88539008177792681472);
    f64 far = 1 - 2 / (e + 1);
    f64 near = size * (1 - size * size * (1.0 / 3));
    f64 result = size < 1e-4 ? near : far;
    return x == x ? __builtin_copysign(result, x) : x;
}

PURE f32 u64_to_f32(u64 a) {
    return (f32)a;
}
PURE f64 u64_to_f64(u64 a) {
    return (f64)a;
}

/* ---- to integers: out of range is clamped, NaN is 0 (if either type has 64 bits: the bit pattern
 * with the top bit alone) -----------------------------------------------------------------------
 */

#define TOP_BIT(D) ((D)((u64)1 << (8 * sizeof(D) - 1)))

PURE u8 float_to_u8(f64 x, bool nan) {
    return nan || x < 0 ? 0 : x > 255 ? 255 : (u8)x;
}
PURE s8 float_to_s8(f64 x, bool nan) {
    return nan ? 0 : x < -128 ? -128 : x > 127 ? 127 : (s8)x;
}
PURE u16 float_to_u16(f64 x, bool nan) {
    return nan || x < 0 ? 0 : x > 65535 ? 65535 : (u16)x;
}
PURE s16 float_to_s16(f64 x, bool nan) {
    return nan ? 0 : x < -32768 ? -32768 : x > 32767 ? 32767 : (s16)x;
}
PURE u32 float_to_u32(f64 x, bool nan) {
    return nan || x < 0 ? 0 : x > 4294967295.0 ? UINT32_MAX : (u32)(s64)x;
}
PURE s32 float_to_s32(f64 x, bool nan) {
    f64 bounded = nan ? 0 : x < -2147483648.0 ? -2147483648.0 : x > 2147483647.0 ? 2147483647.0 : x;
    return (s32)bounded;
}
PURE u64 float_to_u64(f64 x, bool nan) {
    return nan ? (u64)1 << 63 : x < 0 ? 0 : x >= 18446744073709551616.0 ? UINT64_MAX : (u64)x;
}
PURE s64 float_to_s64(f64 x, bool nan) {
    return nan                          ? INT64_MIN
           : x < -9223372036854775808.0 ? INT64_MIN
           : x >= 9223372036854775808.0 ? INT64_MAX
                                        : (s64)x;
}

/* ---- half precision, bfloat16, tf32 ---------------------------------------------------------- */

PURE f32 half_to_float(u32 h) {
    u32 sign = (h & 0x8000) << 16, rest = h & 0x7fff;
    f32 subnormal = (f32)(s32)rest * 0x1p-24f;
    u32 normal = (rest << 13) + (112u << 23);
    u32 special = (rest << 13) | 0x7f800000;
    special = rest > 0x7c00 ? 0x7fffffff : special;
    u32 bits = rest >= 0x7c00 ? special : rest < 0x400 ? bits32(subnormal) : normal;
    return rest > 0x7c00 ? float32(0x7fffffff) : float32(bits | sign);
}

PURE f64 half_to_double(u32 h) {
    u64 nan = (u64)(h & 0x8000) << 48 | 0x7ff8000000000000 | (u64)(h & 0x3ff) << 42;
    return (h & 0x7fff) > 0x7c00 ? float64(nan) : (f64)half_to_float(h);
}

PURE u16 float_to_half(f32 x) {
    u32 bits = bits32(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    u32 normal = (size + 0xfff + (size >> 13 & 1) - (112u << 23)) >> 13;
    u32 subnormal = bits32(float32(size) + 0.5f) - 0x3f000000; // its ulp is 2^-24
    u32 half = size < 0x38800000 ? subnormal : size >= 0x477ff000 ? 0x7c00 : normal;
    return (u16)(size > 0x7f800000 ? 0x7fff : half | sign);
}

PURE u16 float_to_half_rz(f32 x) {
    u32 bits = bits32(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    u32 normal = (size - (112u << 23)) >> 13;
    u32 subnormal = (u32)(s32)(float32(size < 0x38800000 ? size : 0) * 0x1p24f);
    u32 half = size < 0x38800000 ? subnormal : size >= 0x47800000 ? 0x7bff : normal;
    half = size == 0x7f800000 ? 0x7c00 : half;
    return (u16)(size > 0x7f800000 ? 0x7fff : half | sign);
}

/* To f32 with the last bit odd where bits were lost: a second rounding then errs nowhere. */
PURE f32 odd_float(f64 x) {
    f32 near = (f32)x;
    u32 bits = bits32(near);
    bool inexact = (f64)near != x && x == x;
    bool outward = __builtin_fabs((f64)near) > __builtin_fabs(x);
    u32 down = bits - (outward ? 1 : 0);
    return float32(inexact ? down | 1 : bits);
}
PURE f64 odd_sum(f64 a, f64 b) {
    f64 sum = a + b, part = sum - a;
    f64 error = (a - (sum - part)) + (b - part);
    u64 bits = bits64(sum);
    bool lost = error != 0 && __builtin_fabs(sum) < (f64)INFINITY;
    bool outward = (error < 0) != (sum < 0);
    u64 down = bits - (outward ? 1 : 0);
    return float64(lost ? down | 1 : bits);
}
PURE u16 double_to_half(f64 x) {
    return float_to_half(odd_float(x));
}
/* From f64 a NaN keeps its sign and what fits of its payload. */
PURE u16 narrow_to_half(f64 x) {
    u64 bits = bits64(x);
    return (u16)(x == x ? double_to_half(x) : (bits >> 48 & 0x8000) | 0x7e00 | (bits >> 42 & 0x3ff));
}
PURE u32 half_ftz(u32 h) {
    return h & (h & 0x7c00 ? 0xffff : 0x8000);
}
PURE f32 half_to_float_ftz(u32 h) {
    return half_to_float(half_ftz(h));
}
PURE u16 f16_nan(u32 h) {
    return (u16)((h & 0x7fff) > 0x7c00 ? 0x7fff : h);
}
PURE u16 bf16_nan(u32 h) {
    return (u16)((h & 0x7fff) > 0x7f80 ? 0x7fff : h);
}

PURE f32 bf16_to_float(u32 h) {
    return float32((h & 0xffff) << 16);
}
PURE u16 float_to_bf16(f32 x) {
    u32 bits = bits32(x);
    u32 rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (u16)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded);
}
PURE u16 float_to_bf16_rz(f32 x) {
    u32 bits = bits32(x);
    return (u16)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : bits >> 16);
}
PURE u16 double_to_bf16(f64 x) {
    return float_to_bf16(odd_float(x));
}
PURE u16 narrow_to_bf16(f64 x) {
    u64 bits = bits64(x);
    return (u16)(x == x ? double_to_bf16(x) : (bits >> 48 & 0x8000) | 0x7fc0 | (bits >> 45 & 0x7f));
}

PURE u16 f16_fma(u32 a, u32 b, u32 c) {
    f64 product = (f64)half_to_float(a) * half_to_float(b); // exact
    return double_to_half(odd_sum(product, half_to_float(c)));
}
PURE u16 bf16_fma(u32 a, u32 b, u32 c) {
    f64 product = (f64)bf16_to_float(a) * bf16_to_float(b);
    return double_to_bf16(odd_sum(product, bf16_to_float(c)));
}
PURE u16 f16_relu(u32 x) {
    return (u16)(x & 0x8000 && (x & 0x7fff) <= 0x7c00 ? 0 : x);
}
PURE u16 bf16_relu(u32 x) {
    return (u16)(x & 0x8000 && (x & 0x7fff) <= 0x7f80 ? 0 : x);
}

/* `expr` in terms of u16 a and b, on both halves of a and b. */
#define PAIR2(X, expr)                                                                             \
    ({                                                                                             \
        u32 whole_a = a, whole_b = b, low, high;                                                   \
        {                                                                                          \
            u16 a = (u16)whole_a, b = (u16)whole_b;                                                \
            low = (expr);                                                                          \
            a = (u16)(whole_a >> 16), b = (u16)(whole_b >> 16);                                    \
            high = (expr);                                                                         \
        }                                                                                          \
        halves(low, high);                                                                         \
    })

PURE u32 round_tf32_away(u32 bits) {
    bool special = (bits & 0x7f800000) == 0x7f800000;
    return (special ? bits : bits + 0x1000) & 0xffffe000;
}
/* What is infinite, or no number, goes one step towards zero. */
PURE u32 round_tf32_away_finite(u32 bits) {
    u32 rounded = round_tf32_away(bits);
    return (rounded & 0x7f800000) == 0x7f800000 ? rounded - 0x2000 : rounded;
}
PURE u32 round_tf32_even(u32 bits) {
    return (bits & 0x7fffffff) > 0x7f800000    ? 0x7fffe000
           : (bits & 0x7f800000) == 0x7f800000 ? bits
                                               : (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
}
