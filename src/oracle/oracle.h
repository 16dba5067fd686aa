/* oracle.h - inside cutegen-oracle: what its parts share.
 *
 * main.c      frames in, frames out
 * reference.c loads reference.c's two objects and computes expected values, kept by request
 * compare.c   reads what the kernel wrote from the exchange file and counts what is wrong
 * where.c     describes the region that wrong elements lie in
 * mismatch.c  describes how an output differs, in words that point at a cause
 * parallel.c  spreads loops over cores
 */
#pragma once
#include "wire/wire.h"

#define ORACLE_MAX_TENSORS 64
#define ORACLE_MAX_DIMS 64

typedef struct {
    char text[1024];
} Fault;
/* Sets the text and returns false. */
bool fault(Fault *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- memory and cores ------------------------------------------------------------------- */

/* Zeroed memory that ends at an inaccessible page: a reference that writes past the end of an
 * array crashes there and then. NULL when there is no memory. */
void *guarded_new(size_t bytes);
void guarded_free(void *data, size_t bytes); // NULL is fine

/* Calls `body` for every block in [0, blocks), on all cores. */
void parallel_blocks(int64_t blocks, void (*body)(void *context, int64_t block), void *context);
int parallel_cores(void);

/* ---- the task and its expected values --------------------------------------------------- */

typedef struct {
    char name[64];
    bool is_output;
    DType dtype;
} OracleTensor;

typedef struct {
    uint32_t rank;
    int64_t extents[WIRE_MAX_RANK];
    int64_t elements;
} Shape;

/* Inputs and Outputs of reference.h are structs of nothing but pointers, Dims one of int64_t. */
typedef void Reference(const void *const *in, void *const *out, const int64_t *dims, int64_t begin,
                       int64_t end);

/* What is right for one seed and one set of sizes. Floats are kept as double, unrounded. */
typedef struct {
    uint8_t *request; // the ORACLE_TRUTH payload that it answers
    size_t request_bytes;
    uint64_t seed;
    Shape shapes[ORACLE_MAX_TENSORS];
    Fill fills[ORACLE_MAX_TENSORS];       // of inputs
    void *expected[ORACLE_MAX_TENSORS];   // of outputs
    double baseline_error[ORACLE_MAX_TENSORS];
    size_t bytes;     // of all `expected`
    uint64_t used_at; // for throwing out the least recently used
} Truth;

#define ORACLE_TRUTHS 24

typedef struct {
    void *objects[2]; // dlopen handles: in double, in float
    Reference *in_double, *in_float;
    uint32_t count, inputs;
    OracleTensor tensors[ORACLE_MAX_TENSORS];
    Truth *truths[ORACLE_TRUTHS];
    Truth *truth; // the one that comparisons refer to
    uint64_t clock;
    const char *exchange; // path
} Oracle;

bool oracle_task(Oracle *oracle, WireReader *ask, Fault *why);
bool oracle_truth(Oracle *oracle, WireReader *ask, Fault *why);
bool oracle_compare(Oracle *oracle, WireReader *ask, WireWriter *answer, Fault *why);
void oracle_free(Oracle *oracle);

/* Bytes of one element of `expected` (and of a reference's array in double). */
size_t expected_bytes(DType dtype);
