/* mismatch.c - describes how an output differs, in words that point at a cause.
 *
 * "max error 0.93" repairs nothing; "rows 4096 and up are untouched" does. Each detector below
 * looks for one cause that real kernels show, the surest first; the first that explains 95 % of
 * the wrong elements is reported. Most compare values, on a sample of the wrong elements; where
 * the wrong elements lie is said in every sentence, and is the finding itself when their values
 * tell nothing.
 */
#include "oracle/mismatch.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEWEST 8 // wrong elements that a pattern of values must explain: two points fit any line

typedef struct {
    const Wrong *wrong;
    const Where *where;
    Mismatch *seen;
} Case;

/* "<where> is|are <what>: <why>" */
static bool say(const Case *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool say(const Case *c, const char *fmt, ...) {
    char what[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    snprintf(c->seen->sentence, sizeof(c->seen->sentence), "%s %s %s%s%s", c->where->subject,
             c->where->plural ? "are" : "is", what, c->where->reason[0] ? ": " : "",
             c->where->reason);
    return true;
}

/* Whether `got` would be accepted where `expected` belongs. */
static bool matches(const Comparison *c, double got, double expected) {
    return fabs(got - expected) <= c->atol + c->rtol * fabs(expected);
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int64_t count) {
    qsort(values, (size_t)count, sizeof(double), compare_doubles);
    return values[count / 2];
}

/* ---- values that say it all -------------------------------------------------------------- */

static bool untouched(const Case *c) {
    return explains((int64_t)c->seen->untouched, (int64_t)c->seen->wrong) &&
           say(c, "untouched (never written)");
}

static bool nonfinite(const Case *c) {
    if (!explains((int64_t)c->seen->nonfinite, (int64_t)c->seen->wrong)) return false;
    int64_t nans = 0, infinities = 0;
    for (int64_t i = 0; i < c->wrong->sample_count; i++) {
        double got = got_at(c->wrong->comparison, c->wrong->sample[i]);
        nans += isnan(got) != 0;
        infinities += isinf(got) != 0;
    }
    return say(c, "%s", infinities == 0 ? "NaN" : nans == 0 ? "infinite" : "NaN or infinite");
}

/* ---- one factor, one offset --------------------------------------------------------------- */

/* Two ways to write a factor: "0.5 x", "1/1024 x". */
static void put_factor(char *out, size_t capacity, double factor) {
    double inverse = 1 / factor, whole = round(inverse);
    if (fabs(factor) < 0.3 && fabs(inverse - whole) < 1e-4 * fabs(inverse) && fabs(whole) < 1e9)
        snprintf(out, capacity, "%s1/%.0f x", factor < 0 ? "-" : "", fabs(whole));
    else
        snprintf(out, capacity, "%.5g x", factor);
}

static bool factor_fits(const Comparison *c, int64_t i, double factor) {
    double expected = expected_at(c, i);
    double allowed = c->atol * fmax(1, fabs(factor)) + c->rtol * fabs(factor * expected);
    return fabs(got_at(c, i) - factor * expected) <= allowed;
}

/* A sum where a mean belongs gives a scalar n times too large; one element cannot prove a factor,
 * but a whole number is telling. */
static bool is_telling(const Comparison *c, double factor) {
    double whole = fabs(factor) < 1 ? 1 / fabs(factor) : fabs(factor), nearest = round(whole);
    double slack = ldexp(4, -dtype_info(c->dtype)->mantissa_bits) * whole; // some roundings
    return slack < 0.05 && fabs(whole - nearest) <= slack;
}

static bool constant_factor(const Case *c) {
    const Comparison *cmp = c->wrong->comparison;
    int64_t count = c->wrong->sample_count, ratios = 0, fits = 0, zeros = 0;
    for (int64_t i = 0; i < count; i++)
        zeros += got_at(cmp, c->wrong->sample[i]) == 0;
    if (explains(zeros, count)) return say(c, "0");
    double *ratio = malloc((size_t)count * sizeof(double));
    if (!ratio) return false;
    for (int64_t i = 0; i < count; i++) {
        double expected = expected_at(cmp, c->wrong->sample[i]);
        double got = got_at(cmp, c->wrong->sample[i]);
        if (fabs(expected) > 10 * cmp->atol && isfinite(expected) && isfinite(got))
            ratio[ratios++] = got / expected;
    }
    double factor = ratios > 0 ? median(ratio, ratios) : NAN;
    free(ratio);
    if (!isfinite(factor) || factor == 0) return false;
    for (int64_t i = 0; i < count; i++)
        fits += factor_fits(cmp, c->wrong->sample[i], factor);
    if (!explains(fits, count) || (count < FEWEST && !is_telling(cmp, factor))) return false;
    char text[64];
    put_factor(text, sizeof(text), factor);
    return say(c, "%s the expected value", text);
}

static bool constant_offset(const Case *c) {
    const Comparison *cmp = c->wrong->comparison;
    int64_t count = c->wrong->sample_count, fits = 0, used = 0;
    if (count < FEWEST) return false;
    double *difference = malloc((size_t)count * sizeof(double));
    if (!difference) return false;
    for (int64_t i = 0; i < count; i++) {
        double d = got_at(cmp, c->wrong->sample[i]) - expected_at(cmp, c->wrong->sample[i]);
        if (isfinite(d)) difference[used++] = d;
    }
    double offset = used > 0 ? median(difference, used) : NAN;
    free(difference);
    if (!isfinite(offset)) return false;
    for (int64_t i = 0; i < count; i++)
        fits += matches(cmp, got_at(cmp, c->wrong->sample[i]),
                        expected_at(cmp, c->wrong->sample[i]) + offset);
    return explains(fits, count) &&
           say(c, "the expected value %c %.5g", offset < 0 ? '-' : '+', fabs(offset));
}

/* ---- one factor, one offset in each row or column ------------------------------------------ */

/* Whether the wrong elements of each line along the last axis (or across it) differ from what is
 * expected by one factor or offset that belongs to the line, as they do where a row's sum or
 * maximum, or a column's bias, is wrong. Lines with fewer than three wrong elements tell nothing.
 */
static bool per_line(const Case *c, bool rows, bool factor, double range[2]) {
    const Comparison *cmp = c->wrong->comparison;
    const Shape *shape = cmp->shape;
    int64_t columns = shape->extents[shape->rank - 1], lines = shape->elements / columns;
    int64_t length = rows ? columns : lines, explained = 0, tested = 0, told = 0;
    if (!rows) lines = columns;
    range[0] = INFINITY;
    range[1] = -INFINITY;
    int64_t step = lines > 512 ? lines / 512 : 1;
    for (int64_t line = 0; line < lines; line += step) {
        int64_t start = rows ? line * columns : line, stride = rows ? 1 : columns;
        double found = NAN;
        int64_t wrong = 0, fits = 0, stop = length < 4096 ? length : 4096;
        double strongest = 0;
        for (int64_t k = 0; k < stop; k++) { // the largest element fixes the line's number best
            int64_t i = start + k * stride;
            double expected = expected_at(cmp, i), got = got_at(cmp, i);
            if (!is_wrong(c->wrong, i) || !isfinite(got) || !isfinite(expected)) continue;
            if (!factor && isnan(found)) found = got - expected;
            if (factor && fabs(expected) > strongest) {
                strongest = fabs(expected);
                found = got / expected;
            }
        }
        if (isnan(found) || (factor && found == 0)) continue;
        for (int64_t k = 0; k < stop; k++) {
            int64_t i = start + k * stride;
            if (!is_wrong(c->wrong, i)) continue;
            wrong++;
            fits += factor ? factor_fits(cmp, i, found)
                           : matches(cmp, got_at(cmp, i), expected_at(cmp, i) + found);
        }
        if (wrong < 3) continue;
        tested += wrong;
        explained += fits;
        told++;
        range[0] = fmin(range[0], found);
        range[1] = fmax(range[1], found);
    }
    return told >= 2 && tested >= 4 * FEWEST && explains(explained, tested);
}

static bool line_factor(const Case *c) {
    const Shape *shape = c->wrong->comparison->shape;
    double range[2];
    if (shape->rank < 2 || !dtype_info(c->wrong->comparison->dtype)->is_float) return false;
    for (int rows = 1; rows >= 0; rows--)
        if (per_line(c, rows, true, range))
            return say(c,
                       "the expected value times a factor that each %s has of its own (%.4g to "
                       "%.4g)",
                       rows ? "row" : "column", range[0], range[1]);
    return false;
}

static bool line_offset(const Case *c) {
    const Shape *shape = c->wrong->comparison->shape;
    double range[2];
    if (shape->rank < 2 || !dtype_info(c->wrong->comparison->dtype)->is_float) return false;
    for (int rows = 1; rows >= 0; rows--)
        if (per_line(c, rows, false, range))
            return say(c,
                       "the expected value plus an offset that each %s has of its own (%.4g to "
                       "%.4g)",
                       rows ? "row" : "column", range[0], range[1]);
    return false;
}

/* ---- right values in wrong places ---------------------------------------------------------- */

static bool transposed(const Case *c) {
    const Comparison *cmp = c->wrong->comparison;
    const Shape *shape = cmp->shape;
    if (shape->rank < 2 || c->wrong->sample_count < FEWEST) return false;
    int64_t m = shape->extents[shape->rank - 2], n = shape->extents[shape->rank - 1], fits = 0;
    if (m == 1 || n == 1) return false;
    for (int64_t k = 0; k < c->wrong->sample_count; k++) {
        int64_t flat = c->wrong->sample[k], in_matrix = flat % (m * n);
        // The kernel wrote an n x m matrix: place j*m+i holds what belongs to [i][j].
        int64_t j = in_matrix / m, i = in_matrix % m;
        fits += matches(cmp, got_at(cmp, flat), expected_at(cmp, flat - in_matrix + i * n + j));
    }
    return explains(fits, c->wrong->sample_count) &&
           say(c, "written to the transposed place: got[i][j] = expected[j][i]");
}

#define REACH   2048 // elements within which a shift is looked for
#define ANCHORS 24

static int64_t count_shifted(const Case *c, int64_t shift, int64_t *possible) {
    const Comparison *cmp = c->wrong->comparison;
    int64_t fits = 0;
    *possible = 0;
    for (int64_t k = 0; k < c->wrong->sample_count; k++) {
        int64_t i = c->wrong->sample[k], from = i + shift;
        if (from < 0 || from >= cmp->shape->elements) continue;
        ++*possible;
        fits += matches(cmp, got_at(cmp, i), expected_at(cmp, from));
    }
    return fits;
}

/* The distance at which most anchors find their value, near by or some rows away. */
static bool likely_shift(const Case *c, int64_t *shift) {
    const Comparison *cmp = c->wrong->comparison;
    int64_t elements = cmp->shape->elements, count = c->wrong->sample_count;
    int64_t columns = cmp->shape->rank > 0 ? cmp->shape->extents[cmp->shape->rank - 1] : 1;
    int near[2 * REACH + 1] = {0}, rows[2 * 64 + 1] = {0}, best = 0;
    for (int64_t a = 0; a < ANCHORS; a++) {
        int64_t i = c->wrong->sample[(2 * a + 1) * count / (2 * ANCHORS)];
        double got = got_at(cmp, i);
        if (!isfinite(got) || got == 0) continue; // zeros are everywhere
        for (int64_t s = -REACH; s <= REACH; s++)
            if (s != 0 && i + s >= 0 && i + s < elements)
                near[s + REACH] += matches(cmp, got, expected_at(cmp, i + s));
        for (int64_t r = -64; r <= 64; r++)
            if (r != 0 && i + r * columns >= 0 && i + r * columns < elements)
                rows[r + 64] += matches(cmp, got, expected_at(cmp, i + r * columns));
    }
    for (int64_t s = 0; s <= 2 * REACH; s++)
        if (near[s] > best || (near[s] == best && llabs(s - REACH) < llabs(*shift))) {
            best = near[s];
            *shift = s - REACH;
        }
    for (int64_t r = 0; r <= 128; r++)
        if (rows[r] > best) {
            best = rows[r];
            *shift = (r - 64) * columns;
        }
    return best >= ANCHORS / 3;
}

static bool shifted(const Case *c) {
    const Shape *shape = c->wrong->comparison->shape;
    int64_t shift = 0, possible, count = c->wrong->sample_count;
    if (count < ANCHORS || !likely_shift(c, &shift)) return false;
    int64_t fits = count_shifted(c, shift, &possible);
    if (!explains(fits, possible) || possible < count / 2) return false;
    int64_t columns = shape->extents[shape->rank - 1], distance = llabs(shift);
    const char *unit = "element";
    if (shape->rank > 1 && columns > 1 && distance % columns == 0) {
        distance /= columns;
        unit = "row";
    }
    return say(c, "the value expected %lld %s%s %s: got[i] = expected[i %c %lld]",
               (long long)distance, unit, distance > 1 ? "s" : "",
               shift > 0 ? "further on" : "back", shift > 0 ? '+' : '-', (long long)llabs(shift));
}

/* ---- the rest ------------------------------------------------------------------------------ */

static bool accumulation(const Case *c) {
    const Comparison *cmp = c->wrong->comparison;
    int64_t small = 0;
    if (!dtype_info(cmp->dtype)->is_float) return false;
    for (int64_t k = 0; k < c->wrong->sample_count; k++) {
        int64_t i = c->wrong->sample[k];
        double expected = expected_at(cmp, i), scale = fabs(expected) + c->wrong->expected_rms;
        small += fabs(got_at(cmp, i) - expected) <= 0.02 * scale;
    }
    if (!explains(small, c->wrong->sample_count) || !(c->seen->error < 0.02)) return false;
    return say(c, "off by little (relative error %.2g over the output): precision, not logic",
               c->seen->error);
}

static bool region(const Case *c) {
    if (c->where->shape == MISMATCH_NONE) return false;
    c->seen->shape = c->where->shape;
    return say(c, "wrong");
}

static bool scattered(const Case *c) {
    bool all = (double)c->seen->wrong > 0.95 * (double)c->seen->elements;
    uint64_t untouched_share = 100 * c->seen->untouched / c->seen->wrong;
    uint64_t nonfinite_share = 100 * c->seen->nonfinite / c->seen->wrong;
    say(c, "wrong, %s",
        all ? "by no one factor, offset or shift" : "in no pattern of rows, columns or tiles");
    size_t used = strlen(c->seen->sentence);
    if (untouched_share >= 5)
        snprintf(c->seen->sentence + used, sizeof(c->seen->sentence) - used,
                 "; %llu %% of them are untouched", (unsigned long long)untouched_share);
    else if (nonfinite_share >= 5)
        snprintf(c->seen->sentence + used, sizeof(c->seen->sentence) - used,
                 "; %llu %% of them are NaN or infinite", (unsigned long long)nonfinite_share);
    return true;
}

static const struct {
    MismatchShape shape;
    bool (*explain)(const Case *c); // true: it has written the sentence
} detectors[] = {
    {MISMATCH_UNTOUCHED, untouched},
    {MISMATCH_NONFINITE, nonfinite},
    {MISMATCH_CONSTANT_FACTOR, constant_factor},
    {MISMATCH_CONSTANT_OFFSET, constant_offset},
    {MISMATCH_TRANSPOSED, transposed},
    {MISMATCH_SHIFTED, shifted},
    {MISMATCH_CONSTANT_FACTOR, line_factor},
    {MISMATCH_CONSTANT_OFFSET, line_offset},
    {MISMATCH_NONE, region}, // sets the shape itself: RAGGED_EDGE … COLUMNS
    {MISMATCH_ACCUMULATION, accumulation},
    {MISMATCH_SCATTERED, scattered},
};

/* Spreads up to SAMPLE_SIZE picks over the wrong elements, one at a chance place of each stretch:
 * picking every n-th would see nothing but one column of many a pattern. */
static bool take_sample(Wrong *w) {
    uint64_t stretch = (w->wrong + SAMPLE_SIZE - 1) / SAMPLE_SIZE, passed = 0, state = 1;
    w->sample = malloc(SAMPLE_SIZE * sizeof(int64_t));
    if (!w->sample) return false;
    uint64_t pick = 0;
    int64_t words = (w->comparison->shape->elements + 63) / 64;
    for (int64_t word = 0; word < words && w->sample_count < SAMPLE_SIZE; word++) {
        uint64_t bits = w->bits[word];
        for (; bits; bits &= bits - 1, passed++) {
            if (passed % stretch == 0) {
                state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                pick = (state >> 33) % stretch;
            }
            if (passed % stretch != pick || w->sample_count == SAMPLE_SIZE) continue;
            w->sample[w->sample_count++] = word * 64 + __builtin_ctzll(bits);
        }
    }
    return true;
}

bool mismatch_find(const Comparison *comparison, Mismatch *seen, Fault *why) {
    uint64_t *bits = NULL;
    Wrong wrong = {.comparison = comparison};
    bool ok = mismatch_measure(comparison, seen, &bits, &wrong.expected_rms, why);
    if (!ok || seen->wrong == 0) {
        free(bits);
        return ok;
    }
    wrong.bits = bits;
    wrong.wrong = seen->wrong;
    if (!take_sample(&wrong)) {
        free(bits);
        return fault(why, "no memory to describe a mismatch");
    }
    Where where;
    where_wrong(&wrong, &where);
    Case c = {&wrong, &where, seen};
    for (size_t d = 0; d < sizeof(detectors) / sizeof(detectors[0]); d++) {
        seen->shape = detectors[d].shape;
        if (detectors[d].explain(&c)) break;
    }
    free(wrong.sample);
    free(bits);
    return true;
}
