/* test_mismatch.c - each detector finds the defect that was planted, and leaves alone what looks
 * like it. */
#include "oracle/mismatch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define POISON 0xA5

/* An f32 output whose elements are right until a test spoils them. */
typedef struct {
    Shape shape;
    double *expected;
    float *got;
    double rtol, atol;
} World;

static World world_of(uint32_t rank, const int64_t *extents) {
    World w = {.rtol = 1e-4, .atol = 1e-6};
    w.shape.rank = rank;
    w.shape.elements = 1;
    for (uint32_t a = 0; a < rank; a++) {
        w.shape.extents[a] = extents[a];
        w.shape.elements *= extents[a];
    }
    w.expected = calloc((size_t)w.shape.elements, sizeof(double));
    w.got = calloc((size_t)w.shape.elements, sizeof(float));
    assert_non_null(w.expected);
    assert_non_null(w.got);
    fill_generate((Fill){.kind = FILL_NORMAL}, DTYPE_F64, 7, 0, 0, w.shape.elements, w.expected);
    for (int64_t i = 0; i < w.shape.elements; i++)
        w.got[i] = (float)w.expected[i];
    return w;
}
static World vector_of(int64_t n) {
    return world_of(1, (int64_t[]){n});
}
static World matrix_of(int64_t rows, int64_t columns) {
    return world_of(2, (int64_t[]){rows, columns});
}

/* What a bug that writes nonsense leaves at flat index i. */
static void spoil(World *w, int64_t i) {
    w->got[i] = (float)(10 + 5 * sin(12.9898 * (double)i + 3) + (double)(i * 7919 % 1013) / 100);
}
static void poison(World *w, int64_t i) {
    memset(&w->got[i], POISON, sizeof(float));
}
static float *at(World *w, int64_t row, int64_t column) {
    return &w->got[row * w->shape.extents[1] + column];
}
static double expected(const World *w, int64_t row, int64_t column) {
    return w->expected[row * w->shape.extents[1] + column];
}

static Mismatch found(const World *w) {
    Comparison c = {.dtype = DTYPE_F32,
                    .shape = &w->shape,
                    .got = w->got,
                    .expected = w->expected,
                    .rtol = w->rtol,
                    .atol = w->atol,
                    .poison = POISON};
    Mismatch seen;
    Fault why;
    assert_true(mismatch_find(&c, &seen, &why));
    return seen;
}

static void world_free(World *w) {
    free(w->expected);
    free(w->got);
}

#define expect_sentence(w, kind, text)                                                             \
    do {                                                                                           \
        Mismatch seen_ = found(w);                                                                 \
        assert_string_equal(seen_.sentence, text);                                                 \
        assert_string_equal(mismatch_shape_name(seen_.shape), mismatch_shape_name(kind));          \
        world_free(w);                                                                             \
    } while (0)

#define SCATTERED_ALL "every element is wrong, by no one factor, offset or shift"

/* ---- what is counted ------------------------------------------------------------------------ */

static void test_right_output_has_no_mismatch(void **state) {
    (void)state;
    World w = matrix_of(37, 1009);
    Mismatch seen = found(&w);
    assert_int_equal(seen.wrong, 0);
    assert_int_equal(seen.first, -1);
    assert_int_equal(seen.shape, MISMATCH_NONE);
    assert_string_equal(seen.sentence, "");
    assert_true(seen.error < 1e-7);
    world_free(&w);
}

static void test_numbers_describe_the_first_and_the_largest(void **state) {
    (void)state;
    World w = vector_of(1000);
    w.got[17] = (float)(w.expected[17] + 1);
    w.got[500] = (float)(w.expected[500] - 3);
    poison(&w, 700);
    w.got[800] = NAN;
    Mismatch seen = found(&w);
    assert_int_equal(seen.elements, 1000);
    assert_int_equal(seen.wrong, 4);
    assert_int_equal(seen.untouched, 1);
    assert_int_equal(seen.nonfinite, 1);
    assert_int_equal(seen.first, 17);
    assert_true(fabs(seen.got - seen.expected - 1) < 1e-6);
    assert_true(fabs(seen.max_abs - 3) < 1e-6);
    assert_true(fabs(seen.allowed - (1e-6 + 1e-4 * fabs(w.expected[17]))) < 1e-12);
    assert_true(isinf(seen.error));
    assert_int_equal(seen.shape, MISMATCH_SCATTERED);
    world_free(&w);
}

static void test_error_is_relative_frobenius(void **state) {
    (void)state;
    World w = vector_of(4);
    double values[] = {3, 4, 0, 0};
    memcpy(w.expected, values, sizeof(values));
    for (int i = 0; i < 4; i++)
        w.got[i] = (float)values[i];
    w.got[2] = 1;
    assert_true(fabs(found(&w).error - 0.2) < 1e-12);
    world_free(&w);
}

static void test_nan_and_infinity_are_right_where_expected(void **state) {
    (void)state;
    World w = vector_of(64);
    w.expected[3] = NAN;
    w.got[3] = -NAN;
    w.expected[4] = INFINITY;
    w.got[4] = INFINITY;
    w.expected[5] = 1e300; // beyond f32: infinity is the right rounding
    w.got[5] = INFINITY;
    assert_int_equal(found(&w).wrong, 0);
    w.got[4] = 3e38f;
    w.got[5] = -INFINITY;
    assert_int_equal(found(&w).wrong, 2);
    world_free(&w);
}

static void test_whole_numbers_are_compared_exactly(void **state) {
    (void)state;
    int64_t expected_values[64], got_values[64];
    for (int i = 0; i < 64; i++)
        got_values[i] = expected_values[i] = (INT64_C(1) << 60) + i;
    Shape shape = {.rank = 1, .extents = {64}, .elements = 64};
    Comparison c = {.dtype = DTYPE_I64,
                    .shape = &shape,
                    .got = got_values,
                    .expected = expected_values,
                    .poison = POISON};
    Mismatch seen;
    Fault why;
    assert_true(mismatch_find(&c, &seen, &why));
    assert_int_equal(seen.wrong, 0);
    got_values[9] += 1; // a double cannot tell these apart
    assert_true(mismatch_find(&c, &seen, &why));
    assert_int_equal(seen.wrong, 1);
    assert_int_equal(seen.first, 9);
}

static void test_fp8_may_saturate_or_become_nan_beyond_its_range(void **state) {
    (void)state;
    uint8_t got_values[4];
    double expected_values[4] = {1000, -1000, 1000, 1};
    dtype_store(DTYPE_E4M3, got_values, 0, 448);
    dtype_store(DTYPE_E4M3, got_values, 1, -448);
    dtype_store(DTYPE_E4M3, got_values, 2, NAN);
    dtype_store(DTYPE_E4M3, got_values, 3, 1);
    Shape shape = {.rank = 1, .extents = {4}, .elements = 4};
    Comparison c = {.dtype = DTYPE_E4M3,
                    .shape = &shape,
                    .got = got_values,
                    .expected = expected_values,
                    .rtol = 0.1,
                    .poison = POISON};
    Mismatch seen;
    Fault why;
    assert_true(mismatch_find(&c, &seen, &why));
    assert_int_equal(seen.wrong, 0);
    dtype_store(DTYPE_E4M3, got_values, 1, 448);
    assert_true(mismatch_find(&c, &seen, &why));
    assert_int_equal(seen.wrong, 1);
}

/* ---- untouched, nonfinite ------------------------------------------------------------------- */

static void test_untouched_rows_are_named(void **state) {
    (void)state;
    World w = matrix_of(6000, 64);
    for (int64_t i = 4096 * 64; i < w.shape.elements; i++)
        poison(&w, i);
    expect_sentence(&w, MISMATCH_UNTOUCHED,
                    "rows 4096 and up (the last 1904 of 6000) are untouched (never written)");
}

static void test_output_never_written_is_untouched(void **state) {
    (void)state;
    World w = vector_of(1009);
    for (int64_t i = 0; i < 1009; i++)
        poison(&w, i);
    expect_sentence(&w, MISMATCH_UNTOUCHED, "every element is untouched (never written)");
}

static void test_half_untouched_half_wrong_is_not_called_untouched(void **state) {
    (void)state;
    World w = vector_of(1000);
    for (int64_t i = 0; i < 1000; i++)
        i % 2 ? poison(&w, i * 7919 % 1000) : spoil(&w, i * 7919 % 1000);
    expect_sentence(&w, MISMATCH_SCATTERED, SCATTERED_ALL "; 50 % of them are untouched");
}

static void test_nan_in_some_columns_is_named(void **state) {
    (void)state;
    World w = matrix_of(100, 256);
    for (int64_t r = 0; r < 100; r++)
        for (int64_t c = 32; c < 64; c++)
            *at(&w, r, c) = NAN;
    expect_sentence(&w, MISMATCH_NONFINITE, "columns 32..63 are NaN");
}

static void test_infinity_is_not_called_nan(void **state) {
    (void)state;
    World w = vector_of(100);
    for (int64_t i = 0; i < 100; i++)
        w.got[i] = i % 2 ? INFINITY : -INFINITY;
    expect_sentence(&w, MISMATCH_NONFINITE, "every element is infinite");
}

/* ---- factor, offset ------------------------------------------------------------------------- */

static void test_half_of_the_expected_value_is_a_factor(void **state) {
    (void)state;
    World w = vector_of(5000);
    for (int64_t i = 0; i < 5000; i++)
        w.got[i] *= 0.5f;
    expect_sentence(&w, MISMATCH_CONSTANT_FACTOR, "every element is 0.5 x the expected value");
}

static void test_small_factors_are_shown_as_fractions(void **state) {
    (void)state;
    World w = vector_of(5000);
    w.atol = 1e-9;
    for (int64_t i = 0; i < 5000; i++)
        w.got[i] /= 1024;
    expect_sentence(&w, MISMATCH_CONSTANT_FACTOR, "every element is 1/1024 x the expected value");
}

static void test_zeros_are_called_zeros(void **state) {
    (void)state;
    World w = matrix_of(64, 64);
    for (int64_t r = 0; r < 64; r++)
        *at(&w, r, 5) = 0;
    expect_sentence(&w, MISMATCH_CONSTANT_FACTOR, "column 5 is 0");
}

static void test_scalar_that_is_a_sum_for_a_mean_is_a_factor(void **state) {
    (void)state;
    World w = world_of(0, NULL);
    w.expected[0] = 0.731;
    w.got[0] = (float)(0.731 * 1009);
    expect_sentence(&w, MISMATCH_CONSTANT_FACTOR, "the result is 1009 x the expected value");
}

static void test_scalar_off_by_no_whole_number_is_no_factor(void **state) {
    (void)state;
    World w = world_of(0, NULL);
    w.expected[0] = 0.731;
    w.got[0] = 0.9f;
    expect_sentence(&w, MISMATCH_SCATTERED,
                    "the result is wrong, by no one factor, offset or shift");
}

static void test_one_added_everywhere_is_an_offset(void **state) {
    (void)state;
    World w = vector_of(5000);
    for (int64_t i = 0; i < 5000; i++)
        w.got[i] = (float)(w.expected[i] - 1.5);
    expect_sentence(&w, MISMATCH_CONSTANT_OFFSET, "every element is the expected value - 1.5");
}

static void test_nonsense_is_neither_factor_nor_offset(void **state) {
    (void)state;
    World w = vector_of(5000);
    for (int64_t i = 0; i < 5000; i++)
        spoil(&w, i);
    expect_sentence(&w, MISMATCH_SCATTERED, SCATTERED_ALL);
}

static void test_row_normalised_by_a_wrong_sum_has_its_own_factor(void **state) {
    (void)state;
    World w = matrix_of(64, 128);
    for (int64_t r = 0; r < 64; r++)
        for (int64_t c = 0; c < 128; c++)
            *at(&w, r, c) = (float)(expected(&w, r, c) * (1.25 + (double)r / 64));
    expect_sentence(&w, MISMATCH_CONSTANT_FACTOR,
                    "every element is the expected value times a factor that each row has of its "
                    "own (1.25 to 2.234)");
}

static void test_column_with_a_wrong_bias_has_its_own_offset(void **state) {
    (void)state;
    World w = matrix_of(128, 64);
    for (int64_t r = 0; r < 128; r++)
        for (int64_t c = 0; c < 64; c++)
            *at(&w, r, c) = (float)(expected(&w, r, c) + 1 + (double)c / 64);
    expect_sentence(&w, MISMATCH_CONSTANT_OFFSET,
                    "every element is the expected value plus an offset that each column has of "
                    "its own (1 to 1.984)");
}

/* ---- transposed, shifted -------------------------------------------------------------------- */

static void test_transposed_square_is_recognised(void **state) {
    (void)state;
    World w = matrix_of(96, 96);
    for (int64_t r = 0; r < 96; r++)
        for (int64_t c = 0; c < 96; c++)
            *at(&w, r, c) = (float)expected(&w, c, r);
    expect_sentence(&w, MISMATCH_TRANSPOSED,
                    "nearly every element is written to the transposed place: "
                    "got[i][j] = expected[j][i]");
}

static void test_transposed_rectangle_is_recognised(void **state) {
    (void)state;
    World w = world_of(3, (int64_t[]){2, 40, 100});
    for (int64_t b = 0; b < 2; b++)
        for (int64_t i = 0; i < 40; i++)
            for (int64_t j = 0; j < 100; j++)
                w.got[b * 4000 + j * 40 + i] = (float)w.expected[b * 4000 + i * 100 + j];
    expect_sentence(&w, MISMATCH_TRANSPOSED,
                    "nearly every element is written to the transposed place: "
                    "got[i][j] = expected[j][i]");
}

static void test_reversed_rows_are_not_transposed(void **state) {
    (void)state;
    World w = matrix_of(96, 96);
    for (int64_t r = 0; r < 96; r++)
        for (int64_t c = 0; c < 96; c++)
            *at(&w, r, c) = (float)expected(&w, r, 95 - c);
    expect_sentence(&w, MISMATCH_SCATTERED, "nearly " SCATTERED_ALL);
}

static void test_off_by_one_is_a_shift(void **state) {
    (void)state;
    World w = vector_of(5000);
    for (int64_t i = 0; i < 4999; i++)
        w.got[i] = (float)w.expected[i + 1];
    expect_sentence(&w, MISMATCH_SHIFTED,
                    "nearly every element is the value expected 1 element further on: "
                    "got[i] = expected[i + 1]");
}

static void test_shift_by_rows_is_told_in_rows(void **state) {
    (void)state;
    World w = matrix_of(512, 4096);
    for (int64_t r = 16; r < 512; r++)
        for (int64_t c = 0; c < 4096; c++)
            *at(&w, r, c) = (float)expected(&w, r - 16, c);
    expect_sentence(&w, MISMATCH_SHIFTED,
                    "nearly every element is the value expected 16 rows back: "
                    "got[i] = expected[i - 65536]");
}

static void test_shuffled_values_are_not_a_shift(void **state) {
    (void)state;
    World w = vector_of(5003);
    for (int64_t i = 0; i < 5003; i++)
        w.got[i] = (float)w.expected[i * 2011 % 5003];
    Mismatch seen = found(&w);
    assert_int_equal(seen.shape, MISMATCH_SCATTERED);
    world_free(&w);
}

/* ---- where ---------------------------------------------------------------------------------- */

static void test_last_partial_tile_is_a_ragged_edge(void **state) {
    (void)state;
    World w = matrix_of(37, 1009);
    for (int64_t r = 0; r < 37; r++)
        spoil(&w, r * 1009 + 1008);
    expect_sentence(&w, MISMATCH_RAGGED_EDGE,
                    "columns 1008 and up (the last 1 of 1009) are wrong: ragged edge of a tile of "
                    "16");
}

static void test_vector_tail_is_a_ragged_edge(void **state) {
    (void)state;
    World w = vector_of(100003);
    for (int64_t i = 98304; i < 100003; i++)
        spoil(&w, i);
    expect_sentence(&w, MISMATCH_RAGGED_EDGE,
                    "elements 98304 and up (the last 1699 of 100003) are wrong: ragged edge of a "
                    "tile of 32768");
}

static void test_two_ragged_edges_are_seen_together(void **state) {
    (void)state;
    World w = matrix_of(300, 200);
    for (int64_t r = 0; r < 300; r++)
        for (int64_t c = 0; c < 200; c++)
            if (r >= 256 || c >= 192) spoil(&w, r * 200 + c);
    expect_sentence(&w, MISMATCH_RAGGED_EDGE,
                    "rows 256 and up (the last 44 of 300) and columns 192 and up (the last 8 of "
                    "200) are wrong: ragged edges of a tile of 256 x 64");
}

static void test_flat_tail_of_a_matrix_is_a_ragged_edge(void **state) {
    (void)state;
    World w = matrix_of(100, 1009);
    for (int64_t i = 98304; i < w.shape.elements; i++)
        spoil(&w, i);
    expect_sentence(&w, MISMATCH_RAGGED_EDGE,
                    "the last 2596 of 100900 elements are wrong: ragged end of a tile of 32768");
}

static void test_last_rows_of_full_tiles_are_not_ragged(void **state) {
    (void)state;
    World w = matrix_of(512, 100);
    for (int64_t i = 384 * 100; i < w.shape.elements; i++)
        spoil(&w, i);
    expect_sentence(&w, MISMATCH_ROWS, "rows 384 and up (the last 128 of 512) are wrong");
}

static void test_rows_in_the_middle_are_named(void **state) {
    (void)state;
    World w = matrix_of(1000, 300);
    for (int64_t i = 128 * 300; i < 256 * 300; i++)
        spoil(&w, i);
    expect_sentence(&w, MISMATCH_ROWS, "rows 128..255 are wrong");
}

static void test_outliers_do_not_hide_a_region(void **state) {
    (void)state;
    World w = matrix_of(1000, 300);
    for (int64_t i = 128 * 300; i < 256 * 300; i++)
        spoil(&w, i);
    for (int64_t i = 0; i < 800; i++)
        spoil(&w, i * 104729 % w.shape.elements);
    expect_sentence(&w, MISMATCH_ROWS, "rows 128..255 are wrong");
}

static void test_elements_right_by_chance_do_not_hide_a_region(void **state) {
    (void)state;
    World w = matrix_of(1000, 300); // as half of relu's output is zero anyway
    for (int64_t i = 128 * 300; i < 256 * 300; i++)
        if (w.expected[i] > 0) spoil(&w, i);
    expect_sentence(&w, MISMATCH_ROWS, "rows 128..255 are wrong");
}

static void test_every_other_row_is_a_pattern(void **state) {
    (void)state;
    World w = matrix_of(512, 64);
    for (int64_t r = 1; r < 512; r += 2)
        for (int64_t c = 0; c < 64; c++)
            spoil(&w, r * 64 + c);
    expect_sentence(&w, MISMATCH_ROWS, "row 1 of every 2 is wrong");
}

static void test_columns_of_a_warp_are_a_pattern(void **state) {
    (void)state;
    World w = matrix_of(64, 1024);
    for (int64_t i = 0; i < w.shape.elements; i++)
        if (i % 32 >= 8 && i % 32 < 16) spoil(&w, i);
    expect_sentence(&w, MISMATCH_COLUMNS, "columns 8..15 of every 32 are wrong");
}

static void test_one_wrong_column_is_named(void **state) {
    (void)state;
    World w = matrix_of(64, 100);
    for (int64_t r = 0; r < 64; r++)
        spoil(&w, r * 100 + 17);
    expect_sentence(&w, MISMATCH_COLUMNS, "column 17 is wrong");
}

static void test_second_matrix_of_a_batch_is_named(void **state) {
    (void)state;
    World w = world_of(3, (int64_t[]){4, 50, 60});
    for (int64_t i = 3000; i < 6000; i++)
        spoil(&w, i);
    expect_sentence(&w, MISMATCH_ROWS, "matrix 1 is wrong");
}

static void test_one_wrong_tile_is_named(void **state) {
    (void)state;
    World w = matrix_of(1024, 512);
    for (int64_t r = 256; r < 384; r++)
        for (int64_t c = 64; c < 128; c++)
            spoil(&w, r * 512 + c);
    expect_sentence(&w, MISMATCH_TILES, "rows 256..383, columns 64..127 are wrong");
}

static void test_tiles_here_and_there_are_counted(void **state) {
    (void)state;
    World w = matrix_of(1024, 1024);
    int64_t places[][2] = {{1, 2}, {3, 0}, {4, 7}, {6, 5}, {7, 3}};
    for (int t = 0; t < 5; t++)
        for (int64_t r = 0; r < 128; r++)
            for (int64_t c = 0; c < 128; c++)
                spoil(&w, (places[t][0] * 128 + r) * 1024 + places[t][1] * 128 + c);
    expect_sentence(&w, MISMATCH_TILES,
                    "5 of 64 tiles of 128 x 128, the first at [128, 256], are wrong");
}

static void test_scattered_elements_have_no_region(void **state) {
    (void)state;
    World w = matrix_of(512, 512);
    for (int64_t i = 0; i < 2000; i++)
        spoil(&w, i * 104729 % w.shape.elements);
    expect_sentence(&w, MISMATCH_SCATTERED,
                    "0.763 % of the elements are wrong, in no pattern of rows, columns or tiles");
}

/* 2^31 bytes of f64 in memory that is never touched but for its end. */
static void test_elements_past_2_gib_are_blamed_on_32_bits(void **state) {
    (void)state;
    int64_t limit = (INT64_C(1) << 31) / 8, elements = limit + 5000;
    size_t bytes = (size_t)elements * 8;
    double *got = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    double *right =
        mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(got, MAP_FAILED);
    assert_ptr_not_equal(right, MAP_FAILED);
    for (int64_t i = limit; i < elements; i++)
        got[i] = 1 + sin((double)i);
    Shape shape = {.rank = 1, .extents = {elements}, .elements = elements};
    Comparison c = {.dtype = DTYPE_F64,
                    .shape = &shape,
                    .got = got,
                    .expected = right,
                    .atol = 1e-9,
                    .poison = POISON};
    Mismatch seen;
    Fault why;
    assert_true(mismatch_find(&c, &seen, &why));
    assert_int_equal(seen.shape, MISMATCH_BEYOND_2G);
    assert_string_equal(seen.sentence, "elements past byte offset 2^31 (268435456 and up) are "
                                       "wrong: an index or offset of 32 bits overflows");
    munmap(got, bytes);
    munmap(right, bytes);
}

/* ---- precision ------------------------------------------------------------------------------ */

static void test_small_errors_everywhere_are_precision(void **state) {
    (void)state;
    World w = matrix_of(256, 256);
    for (int64_t i = 0; i < w.shape.elements; i++)
        w.got[i] = (float)(w.expected[i] + 1e-3 * sin(78.233 * (double)i));
    Mismatch seen = found(&w);
    assert_int_equal(seen.shape, MISMATCH_ACCUMULATION);
    assert_non_null(strstr(seen.sentence, "off by little (relative error 0.0007"));
    assert_non_null(strstr(seen.sentence, "over the output): precision, not logic"));
    world_free(&w);
}

static void test_large_errors_everywhere_are_not_precision(void **state) {
    (void)state;
    World w = matrix_of(256, 256);
    for (int64_t i = 0; i < w.shape.elements; i++)
        w.got[i] = (float)(w.expected[i] + 0.5 * sin(78.233 * (double)i));
    Mismatch seen = found(&w);
    assert_int_equal(seen.shape, MISMATCH_SCATTERED);
    world_free(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_output_has_no_mismatch),
        cmocka_unit_test(test_numbers_describe_the_first_and_the_largest),
        cmocka_unit_test(test_error_is_relative_frobenius),
        cmocka_unit_test(test_nan_and_infinity_are_right_where_expected),
        cmocka_unit_test(test_whole_numbers_are_compared_exactly),
        cmocka_unit_test(test_fp8_may_saturate_or_become_nan_beyond_its_range),
        cmocka_unit_test(test_untouched_rows_are_named),
        cmocka_unit_test(test_output_never_written_is_untouched),
        cmocka_unit_test(test_half_untouched_half_wrong_is_not_called_untouched),
        cmocka_unit_test(test_nan_in_some_columns_is_named),
        cmocka_unit_test(test_infinity_is_not_called_nan),
        cmocka_unit_test(test_half_of_the_expected_value_is_a_factor),
        cmocka_unit_test(test_small_factors_are_shown_as_fractions),
        cmocka_unit_test(test_zeros_are_called_zeros),
        cmocka_unit_test(test_scalar_that_is_a_sum_for_a_mean_is_a_factor),
        cmocka_unit_test(test_scalar_off_by_no_whole_number_is_no_factor),
        cmocka_unit_test(test_one_added_everywhere_is_an_offset),
        cmocka_unit_test(test_nonsense_is_neither_factor_nor_offset),
        cmocka_unit_test(test_row_normalised_by_a_wrong_sum_has_its_own_factor),
        cmocka_unit_test(test_column_with_a_wrong_bias_has_its_own_offset),
        cmocka_unit_test(test_transposed_square_is_recognised),
        cmocka_unit_test(test_transposed_rectangle_is_recognised),
        cmocka_unit_test(test_reversed_rows_are_not_transposed),
        cmocka_unit_test(test_off_by_one_is_a_shift),
        cmocka_unit_test(test_shift_by_rows_is_told_in_rows),
        cmocka_unit_test(test_shuffled_values_are_not_a_shift),
        cmocka_unit_test(test_last_partial_tile_is_a_ragged_edge),
        cmocka_unit_test(test_vector_tail_is_a_ragged_edge),
        cmocka_unit_test(test_two_ragged_edges_are_seen_together),
        cmocka_unit_test(test_flat_tail_of_a_matrix_is_a_ragged_edge),
        cmocka_unit_test(test_last_rows_of_full_tiles_are_not_ragged),
        cmocka_unit_test(test_rows_in_the_middle_are_named),
        cmocka_unit_test(test_outliers_do_not_hide_a_region),
        cmocka_unit_test(test_elements_right_by_chance_do_not_hide_a_region),
        cmocka_unit_test(test_every_other_row_is_a_pattern),
        cmocka_unit_test(test_columns_of_a_warp_are_a_pattern),
        cmocka_unit_test(test_one_wrong_column_is_named),
        cmocka_unit_test(test_second_matrix_of_a_batch_is_named),
        cmocka_unit_test(test_one_wrong_tile_is_named),
        cmocka_unit_test(test_tiles_here_and_there_are_counted),
        cmocka_unit_test(test_scattered_elements_have_no_region),
        cmocka_unit_test(test_elements_past_2_gib_are_blamed_on_32_bits),
        cmocka_unit_test(test_small_errors_everywhere_are_precision),
        cmocka_unit_test(test_large_errors_everywhere_are_not_precision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
