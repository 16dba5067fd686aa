/* test_wire.c - element types and fills: the same bits everywhere, and the right ones. */
#include "wire/wire.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint32_t stored(DType dtype, double value) {
    uint8_t bytes[8] = {0};
    dtype_store(dtype, bytes, 0, value);
    uint32_t bits = 0;
    memcpy(&bits, bytes, (size_t)dtype_info(dtype)->bytes < 4 ? dtype_info(dtype)->bytes : 4);
    return bits;
}

static double loaded(DType dtype, uint32_t bits) {
    return dtype_load(dtype, &bits, 0);
}

static void test_every_dtype_is_found_by_its_name(void **state) {
    (void)state;
    for (int i = 0; i < DTYPE_COUNT; i++) {
        const DTypeInfo *info = dtype_info((DType)i);
        DType found = DTYPE_COUNT;
        assert_true(dtype_parse(info->name, &found));
        assert_int_equal(found, i);
        assert_non_null(info->cuda_type);
        assert_non_null(info->host_type);
        assert_int_equal(info->is_float, info->mantissa_bits > 0);
    }
    DType untouched = DTYPE_I8;
    assert_false(dtype_parse("fp32", &untouched));
    assert_false(dtype_parse("", &untouched));
    assert_int_equal(untouched, DTYPE_I8);
    assert_null(dtype_info(DTYPE_COUNT));
}

static void test_every_pattern_of_a_narrow_float_survives_load_and_store(void **state) {
    (void)state;
    static const DType narrow[] = {DTYPE_F16, DTYPE_BF16, DTYPE_E4M3, DTYPE_E5M2};
    for (size_t t = 0; t < sizeof narrow / sizeof narrow[0]; t++) {
        uint32_t patterns = dtype_info(narrow[t])->bytes == 2 ? 0x10000 : 0x100;
        for (uint32_t bits = 0; bits < patterns; bits++) {
            double value = loaded(narrow[t], bits);
            uint32_t again = stored(narrow[t], value);
            if (isnan(value)) {
                assert_true(isnan(loaded(narrow[t], again)));
            } else {
                assert_int_equal(again, bits);
            }
        }
    }
}

#ifdef __FLT16_MANT_DIG__
static void test_f16_agrees_with_the_compiler_on_every_pattern(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        uint16_t pattern = (uint16_t)bits;
        _Float16 half;
        memcpy(&half, &pattern, sizeof half);
        double expected = (double)half, value = loaded(DTYPE_F16, bits);
        assert_int_equal(isnan(expected) != 0, isnan(value) != 0);
        if (!isnan(expected)) {
            assert_memory_equal(&expected, &value, sizeof value);
        }
    }
}

/* Around every f16 number: itself, the middle to the next one, and one double to either side. */
static void test_f16_rounds_like_the_compiler_around_every_number(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 0x7C00; bits++) {
        double low = loaded(DTYPE_F16, bits);
        double high = bits == 0x7BFF ? 65536.0 : loaded(DTYPE_F16, bits + 1);
        double middle = low + (high - low) / 2;
        const double values[] = {low,    nextafter(low, high),    nextafter(middle, low),
                                 middle, nextafter(middle, high), nextafter(high, low)};
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            for (int sign = 0; sign < 2; sign++) {
                double value = sign ? -values[i] : values[i];
                _Float16 half = (_Float16)value;
                uint16_t expected;
                memcpy(&expected, &half, sizeof expected);
                assert_int_equal(stored(DTYPE_F16, value), expected);
            }
        }
    }
}
#endif

static void test_f32_rounds_like_the_processor(void **state) {
    (void)state;
    uint64_t word = 1;
    for (int i = 0; i < 2000000; i++) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = word;
        if (i % 2) { // half of them near f32's range, subnormals and overflow included
            bits = (bits & 0x800FFFFFFFFFFFFFu) | (uint64_t)(860 + (word >> 40) % 310) << 52;
        }
        if (i % 7 == 0) {
            bits &= ~UINT64_C(0x0FFFFFFF); // exact ties
        }
        double value;
        memcpy(&value, &bits, sizeof value);
        float expected = (float)value, got;
        dtype_store(DTYPE_F32, &got, 0, value);
        assert_int_equal(isnan(expected) != 0, isnan(got) != 0);
        if (!isnan(expected)) {
            assert_memory_equal(&expected, &got, sizeof got);
        }
    }
}

static void test_bf16_is_the_upper_half_of_f32_rounded_to_even(void **state) {
    (void)state;
    for (uint32_t upper = 0; upper < 0x7F80; upper++) {
        for (uint32_t lower = 0; lower < 4; lower++) {
            static const uint32_t tails[] = {0, 0x7FFF, 0x8000, 0x8001};
            uint32_t bits = upper << 16 | tails[lower];
            float value;
            memcpy(&value, &bits, sizeof value);
            uint32_t expected = (bits + 0x7FFF + (upper & 1)) >> 16;
            assert_int_equal(stored(DTYPE_BF16, (double)value), expected);
        }
    }
}

static void test_fp8_limits_follow_the_ocp_formats(void **state) {
    (void)state;
    static const struct {
        DType dtype;
        double value;
        uint32_t bits;
    } cases[] = {
        {DTYPE_E4M3, 448, 0x7E},          // its largest
        {DTYPE_E4M3, 464, 0x7E},          // the tie goes to even
        {DTYPE_E4M3, 464.0000001, 0x7F},  // beyond: NaN, for there is no infinity
        {DTYPE_E4M3, -1e30, 0xFF},        //
        {DTYPE_E4M3, INFINITY, 0x7F},     //
        {DTYPE_E4M3, 0x1p-9, 0x01},       // its smallest
        {DTYPE_E4M3, 0x1p-10, 0x00},      // half of it: even is zero
        {DTYPE_E4M3, 0x1.01p-10, 0x01},   //
        {DTYPE_E4M3, -0.0, 0x80},         //
        {DTYPE_E4M3, 1, 0x38},            //
        {DTYPE_E4M3, 0x1.fffp-7, 0x08},   // rounds out of the subnormals
        {DTYPE_E5M2, 57344, 0x7B},        // its largest
        {DTYPE_E5M2, 61439.9, 0x7B},      //
        {DTYPE_E5M2, 61440, 0x7C},        // the tie goes to infinity, whose mantissa is even
        {DTYPE_E5M2, -INFINITY, 0xFC},    //
        {DTYPE_E5M2, 0x1p-16, 0x01},      //
        {DTYPE_E5M2, 1.125, 0x3C},        // a tie
        {DTYPE_E5M2, 1.375, 0x3E},        // the other way
        {DTYPE_F16, 65519.99, 0x7BFF},    //
        {DTYPE_F16, 65520, 0x7C00},       //
        {DTYPE_BF16, 0x1.ffp127, 0x7F80}, //
        {DTYPE_F16, 5e-324, 0x0000},      // a subnormal double
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(stored(cases[i].dtype, cases[i].value), cases[i].bits);
    }
    assert_true(isnan(loaded(DTYPE_E4M3, 0x7F)) && isnan(loaded(DTYPE_E4M3, 0xFF)));
    assert_true(isinf(loaded(DTYPE_E5M2, 0x7C)) && isnan(loaded(DTYPE_E5M2, 0x7D)));
    assert_true(loaded(DTYPE_E4M3, 0x78) == 256);
    for (int i = 0; i < DTYPE_I64; i++) {
        uint8_t bytes[8];
        dtype_store((DType)i, bytes, 0, NAN);
        assert_true(isnan(dtype_load((DType)i, bytes, 0)));
    }
}

static void test_integers_round_to_even_and_saturate(void **state) {
    (void)state;
    static const struct {
        DType dtype;
        double value, expected;
    } cases[] = {
        {DTYPE_I32, 2.5, 2},
        {DTYPE_I32, 3.5, 4},
        {DTYPE_I32, -2.5, -2},
        {DTYPE_I32, -3.5, -4},
        {DTYPE_I32, 2.4999999, 2},
        {DTYPE_I32, 1e300, 2147483647},
        {DTYPE_I8, 127.4, 127},
        {DTYPE_I8, 128, 127},
        {DTYPE_I8, -200, -128},
        {DTYPE_U8, -1, 0},
        {DTYPE_U8, 255.5, 255},
        {DTYPE_I16, 40000, 32767},
        {DTYPE_I64, 1e19, 0x1p63},
        {DTYPE_I64, -1e19, -0x1p63},
        {DTYPE_I64, NAN, 0},
        {DTYPE_BOOL, 0.25, 1},
        {DTYPE_BOOL, 0, 0},
        {DTYPE_BOOL, -3, 1},
        {DTYPE_I64, 4503599627370497.5, 4503599627370498.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t bytes[8];
        dtype_store(cases[i].dtype, bytes, 0, cases[i].value);
        assert_true(dtype_load(cases[i].dtype, bytes, 0) == cases[i].expected);
    }
    uint8_t two = 2; // a bool that a kernel wrote badly is still true
    assert_true(dtype_load(DTYPE_BOOL, &two, 0) == 1);
}

static void test_elements_lie_where_their_index_says(void **state) {
    (void)state;
    for (int i = 0; i < DTYPE_COUNT; i++) {
        uint8_t bytes[4 * 8], before[4 * 8];
        memset(bytes, 0xA5, sizeof bytes);
        memcpy(before, bytes, sizeof bytes);
        int size = dtype_info((DType)i)->bytes;
        dtype_store((DType)i, bytes, 2, 1);
        assert_true(dtype_load((DType)i, bytes, 2) == 1);
        assert_memory_equal(bytes, before, 2 * size);
        assert_memory_equal(bytes + 3 * size, before + 3 * size, size);
    }
}

/* ---- fills ------------------------------------------------------------------------------- */

static void test_philox_gives_the_published_vectors(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } vectors[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < 3; i++) {
        uint32_t out[4];
        philox4x32_10(vectors[i].counter, vectors[i].key, out);
        assert_memory_equal(out, vectors[i].out, sizeof out);
    }
}

static const Fill every_fill[] = {
    {FILL_NORMAL, 0, 0}, {FILL_UNIFORM, -2, 3}, {FILL_INTEGERS, -3, 7},
    {FILL_ZEROS, 0, 0},  {FILL_ONES, 0, 0},
};

static void test_a_fill_is_the_same_in_one_piece_and_in_many(void **state) {
    (void)state;
    enum { COUNT = 257, BYTES = COUNT * 8 };
    for (size_t f = 0; f < sizeof every_fill / sizeof every_fill[0]; f++) {
        for (int d = 0; d < DTYPE_COUNT; d++) {
            uint8_t whole[BYTES], pieces[BYTES];
            size_t size = (size_t)dtype_info((DType)d)->bytes;
            int64_t begin = INT64_C(0xFFFFFFFF) - 100; // over the counter's 32-bit edge
            fill_generate(every_fill[f], (DType)d, 42, 3, begin, COUNT, whole);
            for (int64_t at = 0; at < COUNT; at += 19) {
                int64_t count = COUNT - at < 19 ? COUNT - at : 19;
                fill_generate(every_fill[f], (DType)d, 42, 3, begin + at, count,
                              pieces + (size_t)at * size);
            }
            assert_memory_equal(whole, pieces, COUNT * size);
        }
    }
}

static void test_a_fill_depends_on_seed_tensor_and_element(void **state) {
    (void)state;
    double base[8], other[8];
    Fill normal = {.kind = FILL_NORMAL};
    fill_generate(normal, DTYPE_F64, 1, 0, 0, 8, base);
    fill_generate(normal, DTYPE_F64, 2, 0, 0, 8, other);
    assert_memory_not_equal(base, other, sizeof base);
    fill_generate(normal, DTYPE_F64, 1 + (UINT64_C(1) << 32), 0, 0, 8, other);
    assert_memory_not_equal(base, other, sizeof base);
    fill_generate(normal, DTYPE_F64, 1, 1, 0, 8, other);
    assert_memory_not_equal(base, other, sizeof base);
    fill_generate(normal, DTYPE_F64, 1, 0, 1, 8, other);
    assert_memory_equal(base + 1, other, 7 * sizeof base[0]);
}

/* The formula of fill.c, spelled out once more with libm and wide arithmetic, on the first block:
 * 6627e8d5 e169c58d bc57ac4c 9b00dbd8. */
static void test_the_first_element_is_what_the_formula_says(void **state) {
    (void)state;
    double value;
    double sum = 0x6627 + 0xe8d5 + 0xe169 + 0xc58d + 0xbc57 + 0xac4c + 0x9b00 + 0xdbd8;
    fill_generate((Fill){.kind = FILL_NORMAL}, DTYPE_F64, 0, 0, 0, 1, &value);
    assert_true(fabs(value - (sum - 262140) / sqrt(8 * (0x1p32 - 1) / 12)) < 1e-15);
    fill_generate((Fill){FILL_UNIFORM, 10, 14}, DTYPE_F64, 0, 0, 0, 1, &value);
    assert_true(fabs(value - (10 + 4 * ((double)0x6627e8d5 + 0xe169c58d * 0x1p-32) * 0x1p-32)) <
                1e-14);
    fill_generate((Fill){FILL_INTEGERS, -5, 4}, DTYPE_F64, 0, 0, 0, 1, &value);
    assert_true(value == -5 + floor(10 * (0xe169c58d * 0x1p-32)));
}

static void test_normal_has_mean_0_and_variance_1(void **state) {
    (void)state;
    enum { COUNT = 1 << 20 };
    float *x = malloc(COUNT * sizeof *x);
    assert_non_null(x);
    fill_generate((Fill){.kind = FILL_NORMAL}, DTYPE_F32, 7, 1, 0, COUNT, x);
    double sum = 0, squares = 0, largest = 0;
    int64_t within_1 = 0;
    for (int i = 0; i < COUNT; i++) {
        sum += x[i];
        squares += (double)x[i] * x[i];
        largest = fmax(largest, fabs(x[i]));
        within_1 += fabs(x[i]) < 1;
    }
    free(x);
    assert_true(fabs(sum / COUNT) < 5e-3);
    assert_true(fabs(squares / COUNT - 1) < 1e-2);
    assert_true(largest < 4.9 && largest > 3.5);
    assert_true(fabs((double)within_1 / COUNT - 0.6827) < 0.01);
}

static void test_uniform_stays_below_its_upper_end(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    double *x = malloc(COUNT * sizeof *x);
    assert_non_null(x);
    fill_generate((Fill){FILL_UNIFORM, -1, 3}, DTYPE_F64, 5, 0, 0, COUNT, x);
    double sum = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_true(x[i] >= -1 && x[i] < 3);
        sum += x[i];
    }
    assert_true(fabs(sum / COUNT - 1) < 0.02);
    // One unit in the last place wide: rounding would reach `high` half of the time.
    fill_generate((Fill){FILL_UNIFORM, 1, nextafter(1, 2)}, DTYPE_F64, 5, 0, 0, COUNT, x);
    for (int i = 0; i < COUNT; i++) {
        assert_true(x[i] == 1);
    }
    free(x);
}

static void test_integers_reach_both_ends_and_nothing_else(void **state) {
    (void)state;
    enum { COUNT = 4096 };
    int8_t x[COUNT];
    int seen[5] = {0};
    fill_generate((Fill){FILL_INTEGERS, -2, 2}, DTYPE_I8, 9, 0, 0, COUNT, x);
    for (int i = 0; i < COUNT; i++) {
        assert_in_range(x[i] + 2, 0, 4);
        seen[x[i] + 2]++;
    }
    for (int i = 0; i < 5; i++) {
        assert_in_range(seen[i], COUNT / 5 - 150, COUNT / 5 + 150);
    }
}

static void test_senseless_bounds_do_not_crash(void **state) {
    (void)state;
    static const double bounds[] = {0, -1, 1e308, -1e308, INFINITY, -INFINITY, NAN, 0x1p63};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        for (size_t j = 0; j < sizeof bounds / sizeof bounds[0]; j++) {
            int64_t out[4];
            fill_generate((Fill){FILL_UNIFORM, bounds[i], bounds[j]}, DTYPE_I64, 1, 0, 0, 4, out);
            fill_generate((Fill){FILL_INTEGERS, bounds[i], bounds[j]}, DTYPE_I64, 1, 0, 0, 4, out);
            fill_generate((Fill){FILL_COUNT, bounds[i], bounds[j]}, DTYPE_I64, 1, 0, 0, 4, out);
            assert_int_equal(out[3], 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_dtype_is_found_by_its_name),
        cmocka_unit_test(test_every_pattern_of_a_narrow_float_survives_load_and_store),
#ifdef __FLT16_MANT_DIG__
        cmocka_unit_test(test_f16_agrees_with_the_compiler_on_every_pattern),
        cmocka_unit_test(test_f16_rounds_like_the_compiler_around_every_number),
#endif
        cmocka_unit_test(test_f32_rounds_like_the_processor),
        cmocka_unit_test(test_bf16_is_the_upper_half_of_f32_rounded_to_even),
        cmocka_unit_test(test_fp8_limits_follow_the_ocp_formats),
        cmocka_unit_test(test_integers_round_to_even_and_saturate),
        cmocka_unit_test(test_elements_lie_where_their_index_says),
        cmocka_unit_test(test_philox_gives_the_published_vectors),
        cmocka_unit_test(test_a_fill_is_the_same_in_one_piece_and_in_many),
        cmocka_unit_test(test_a_fill_depends_on_seed_tensor_and_element),
        cmocka_unit_test(test_the_first_element_is_what_the_formula_says),
        cmocka_unit_test(test_normal_has_mean_0_and_variance_1),
        cmocka_unit_test(test_uniform_stays_below_its_upper_end),
        cmocka_unit_test(test_integers_reach_both_ends_and_nothing_else),
        cmocka_unit_test(test_senseless_bounds_do_not_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
