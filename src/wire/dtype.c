/* dtype.c - the element types, and conversion between them and double.
 *
 * The floating types narrower than f32 are stored by one routine that rounds a double to a given
 * number of exponent and mantissa bits with integer arithmetic, ties to even, subnormals included.
 * It uses neither libm nor the compiler's half types, so runner, oracle and simulator agree bit for
 * bit wherever they were built. e4m3 is the one odd format (OCP FP8): no infinities, and the
 * topmost mantissa of the topmost exponent is NaN, so its largest number is 448.
 */
#include "wire/wire.h"

#include <string.h>

static const DTypeInfo infos[DTYPE_COUNT] = {
    [DTYPE_F64] = {"f64", "double", "double", 8, true, 52},
    [DTYPE_F32] = {"f32", "float", "float", 4, true, 23},
    [DTYPE_F16] = {"f16", "__half", "uint16_t", 2, true, 10},
    [DTYPE_BF16] = {"bf16", "__nv_bfloat16", "uint16_t", 2, true, 7},
    [DTYPE_E4M3] = {"e4m3", "__nv_fp8_e4m3", "uint8_t", 1, true, 3},
    [DTYPE_E5M2] = {"e5m2", "__nv_fp8_e5m2", "uint8_t", 1, true, 2},
    [DTYPE_I64] = {"i64", "int64_t", "int64_t", 8, false, 0},
    [DTYPE_I32] = {"i32", "int32_t", "int32_t", 4, false, 0},
    [DTYPE_I16] = {"i16", "int16_t", "int16_t", 2, false, 0},
    [DTYPE_I8] = {"i8", "int8_t", "int8_t", 1, false, 0},
    [DTYPE_U8] = {"u8", "uint8_t", "uint8_t", 1, false, 0},
    [DTYPE_BOOL] = {"bool", "bool", "uint8_t", 1, false, 0},
};

const DTypeInfo *dtype_info(DType dtype) {
    return (unsigned)dtype < DTYPE_COUNT ? &infos[dtype] : NULL;
}

bool dtype_parse(const char *name, DType *dtype) {
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (strcmp(infos[i].name, name) == 0) {
            *dtype = (DType)i;
            return true;
        }
    }
    return false;
}

/* ---- small floats ----------------------------------------------------------------------- */

typedef struct {
    int exponent_bits, mantissa_bits;
    bool has_infinity; // false: the all-ones pattern is the only NaN, and there is no infinity
} FloatFormat;

static const FloatFormat f16_format = {5, 10, true};
static const FloatFormat bf16_format = {8, 7, true};
static const FloatFormat e4m3_format = {4, 3, false};
static const FloatFormat e5m2_format = {5, 2, true};

enum { DOUBLE_MANTISSA = 52, DOUBLE_BIAS = 1023, DOUBLE_EXPONENT_MASK = 0x7FF };

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t float_encode(FloatFormat format, double value) {
    const int m = format.mantissa_bits;
    const int bias = (1 << (format.exponent_bits - 1)) - 1;
    const uint32_t exponent_mask = (1u << format.exponent_bits) - 1;
    uint64_t bits = bits_of(value);
    uint32_t sign = (uint32_t)(bits >> 63) << (format.exponent_bits + m);
    int exponent = (int)(bits >> DOUBLE_MANTISSA) & DOUBLE_EXPONENT_MASK;
    uint64_t mantissa = bits & ((UINT64_C(1) << DOUBLE_MANTISSA) - 1);
    uint32_t infinity = exponent_mask << m;
    uint32_t nan = format.has_infinity ? infinity | 1u << (m - 1) : infinity | ((1u << m) - 1);

    if (exponent == DOUBLE_EXPONENT_MASK) {
        return sign | (mantissa != 0 || !format.has_infinity ? nan : infinity);
    }
    if (exponent == 0) {
        return sign; // zero, or a double subnormal: far below half of any format's smallest
    }
    // value = significand * 2^(exponent - bias - 52), with the hidden bit made visible.
    uint64_t significand = mantissa | UINT64_C(1) << DOUBLE_MANTISSA;
    int target = exponent - DOUBLE_BIAS + bias; // biased exponent it would have; < 1: subnormal
    int drop = DOUBLE_MANTISSA - m + (target < 1 ? 1 - target : 0);
    if (drop > DOUBLE_MANTISSA + 1) {
        return sign; // less than half of the smallest subnormal
    }
    uint64_t kept = significand >> drop;
    uint64_t rest = significand & ((UINT64_C(1) << drop) - 1);
    uint64_t half = UINT64_C(1) << (drop - 1);
    kept += rest > half || (rest == half && (kept & 1));
    // Adding the hidden bit to the exponent field lets a carry out of the mantissa (or out of the
    // subnormals) land where it belongs.
    uint64_t encoded = target < 1 ? kept : ((uint64_t)(target - 1) << m) + kept;
    uint64_t first_special = format.has_infinity ? infinity : nan;
    if (encoded >= first_special) {
        encoded = format.has_infinity ? infinity : nan;
    }
    return sign | (uint32_t)encoded;
}

static double float_decode(FloatFormat format, uint32_t encoded) {
    const int m = format.mantissa_bits;
    const int bias = (1 << (format.exponent_bits - 1)) - 1;
    const uint32_t exponent_mask = (1u << format.exponent_bits) - 1;
    uint64_t sign = (uint64_t)(encoded >> (format.exponent_bits + m) & 1) << 63;
    uint32_t exponent = encoded >> m & exponent_mask;
    uint64_t mantissa = encoded & ((1u << m) - 1);

    bool special =
        exponent == exponent_mask && (format.has_infinity || mantissa == (UINT64_C(1) << m) - 1);
    if (special) {
        uint64_t payload = format.has_infinity && mantissa == 0 ? 0 : UINT64_C(1) << 51;
        return double_of(sign | (uint64_t)DOUBLE_EXPONENT_MASK << DOUBLE_MANTISSA | payload);
    }
    int unbiased = (int)exponent - bias;
    if (exponent == 0) {
        if (mantissa == 0) {
            return double_of(sign);
        }
        unbiased = 1 - bias; // every subnormal of ours is a normal double
        while (!(mantissa >> m)) {
            mantissa <<= 1;
            unbiased--;
        }
        mantissa &= (UINT64_C(1) << m) - 1;
    }
    return double_of(sign | (uint64_t)(unbiased + DOUBLE_BIAS) << DOUBLE_MANTISSA |
                     mantissa << (DOUBLE_MANTISSA - m));
}

/* ---- integers ---------------------------------------------------------------------------- */

/* The integer nearest to `value`, ties to even, kept within low..high; NaN gives 0. */
static int64_t integer_round(double value, int64_t low, int64_t high) {
    if (value != value) {
        return 0;
    }
    if (value >= 9223372036854775808.0) { // 2^63
        return high;
    }
    if (value < -9223372036854775808.0) {
        return low;
    }
    int64_t whole = (int64_t)value; // towards zero; the rest is exact
    double rest = value - (double)whole;
    if (rest > 0.5 || (rest == 0.5 && (whole & 1))) {
        whole++;
    } else if (rest < -0.5 || (rest == -0.5 && (whole & 1))) {
        whole--;
    }
    return whole < low ? low : whole > high ? high : whole;
}

/* ---- one element -------------------------------------------------------------------------- */

#define LOAD(Type)                                                                                 \
    do {                                                                                           \
        Type element;                                                                              \
        memcpy(&element, at, sizeof element);                                                      \
        return (double)element;                                                                    \
    } while (0)
#define STORE(Type, converted)                                                                     \
    do {                                                                                           \
        Type element = (Type)(converted);                                                          \
        memcpy(at, &element, sizeof element);                                                      \
    } while (0)

static uint32_t load_bits(const uint8_t *at, int bytes) {
    uint32_t bits = 0;
    memcpy(&bits, at, (size_t)bytes); // all our machines are little-endian
    return bits;
}

double dtype_load(DType dtype, const void *data, int64_t index) {
    const uint8_t *at = (const uint8_t *)data + index * infos[dtype].bytes;
    switch (dtype) {
    case DTYPE_F64:
        LOAD(double);
    case DTYPE_F32:
        LOAD(float);
    case DTYPE_F16:
        return float_decode(f16_format, load_bits(at, 2));
    case DTYPE_BF16:
        return float_decode(bf16_format, load_bits(at, 2));
    case DTYPE_E4M3:
        return float_decode(e4m3_format, load_bits(at, 1));
    case DTYPE_E5M2:
        return float_decode(e5m2_format, load_bits(at, 1));
    case DTYPE_I64:
        LOAD(int64_t);
    case DTYPE_I32:
        LOAD(int32_t);
    case DTYPE_I16:
        LOAD(int16_t);
    case DTYPE_I8:
        LOAD(int8_t);
    case DTYPE_U8:
        LOAD(uint8_t);
    case DTYPE_BOOL:
        return *at != 0;
    case DTYPE_COUNT:
        break;
    }
    return 0;
}

void dtype_store(DType dtype, void *data, int64_t index, double value) {
    uint8_t *at = (uint8_t *)data + index * infos[dtype].bytes;
    switch (dtype) {
    case DTYPE_F64:
        STORE(double, value);
        break;
    case DTYPE_F32:
        STORE(float, value); // the processor does the same
        break;
    case DTYPE_F16:
        STORE(uint16_t, float_encode(f16_format, value));
        break;
    case DTYPE_BF16:
        STORE(uint16_t, float_encode(bf16_format, value));
        break;
    case DTYPE_E4M3:
        STORE(uint8_t, float_encode(e4m3_format, value));
        break;
    case DTYPE_E5M2:
        STORE(uint8_t, float_encode(e5m2_format, value));
        break;
    case DTYPE_I64:
        STORE(int64_t, integer_round(value, INT64_MIN, INT64_MAX));
        break;
    case DTYPE_I32:
        STORE(int32_t, integer_round(value, INT32_MIN, INT32_MAX));
        break;
    case DTYPE_I16:
        STORE(int16_t, integer_round(value, INT16_MIN, INT16_MAX));
        break;
    case DTYPE_I8:
        STORE(int8_t, integer_round(value, INT8_MIN, INT8_MAX));
        break;
    case DTYPE_U8:
        STORE(uint8_t, integer_round(value, 0, UINT8_MAX));
        break;
    case DTYPE_BOOL:
        *at = value != 0;
        break;
    case DTYPE_COUNT:
        break;
    }
}
