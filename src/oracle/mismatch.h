/* mismatch.h - an output beside what it should be. Inside the oracle. */
#pragma once
#include "oracle/oracle.h"

/* One output of a kernel and its expected values. */
typedef struct {
    DType dtype;
    const Shape *shape;
    const void *got;      // as the kernel wrote it
    const void *expected; // double for floats, whole numbers in their own type
    double rtol, atol;
    uint8_t poison;       // the byte that the output was filled with before the call
} Comparison;

static inline double got_at(const Comparison *c, int64_t i) {
    return dtype_load(c->dtype, c->got, i);
}
static inline double expected_at(const Comparison *c, int64_t i) {
    return dtype_info(c->dtype)->is_float ? ((const double *)c->expected)[i]
                                          : dtype_load(c->dtype, c->expected, i);
}

/* Counts and measures into `seen`. Unless nothing is wrong, says in what shape. False when there
 * is no memory. */
bool mismatch_find(const Comparison *comparison, Mismatch *seen, Fault *why);

/* ---- between mismatch.c and its parts ---------------------------------------------------- */

/* The wrong elements: all of them as bits, and up to SAMPLE_SIZE of them, spread evenly. */
#define SAMPLE_SIZE 65536
typedef struct {
    const Comparison *comparison;
    const uint64_t *bits;   // by flat index
    uint64_t wrong;
    double expected_rms;    // over the whole output
    int64_t *sample;        // flat indices, ascending
    int64_t sample_count;
} Wrong;

static inline bool is_wrong(const Wrong *w, int64_t i) { return w->bits[i / 64] >> (i % 64) & 1; }

/* Measures every element; allocates the bits (caller frees). */
bool mismatch_measure(const Comparison *comparison, Mismatch *seen, uint64_t **bits,
                      double *expected_rms, Fault *why);

/* Where the wrong elements lie, as the subject of a sentence. */
typedef struct {
    MismatchShape shape;  // MISMATCH_NONE: nowhere in particular
    char subject[200];    // "rows 4096 and up"; "every element"; "23 % of the elements"
    bool plural;
    char reason[96];      // "ragged edge of a tile of 16", or ""
} Where;
void where_wrong(const Wrong *wrong, Where *where);

/* How many of `count` explain the wrong elements. */
static inline bool explains(int64_t explained, int64_t count) {
    return count > 0 && (double)explained >= 0.95 * (double)count;
}
