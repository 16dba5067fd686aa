/* reference.c - runs the task's reference, in double for the truth and in float for the baseline.
 *
 * Inputs are the exact numbers that the kernel gets: generated in the tensor's own type, then
 * widened. The truth is kept unrounded; the float result serves only to measure how far an
 * honest computation strays, so it is rounded to the output's type, measured and dropped. What
 * was computed for a request is kept, because shapes and seeds come back: every kernel of a run
 * meets the same check shapes.
 */
#include "oracle/oracle.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_ELEMENTS        (INT64_C(1) << 40)
#define FILL_BLOCK          (INT64_C(1) << 16) // elements
#define SUM_BLOCK           (INT64_C(1) << 16)
#define SMALL_ROWS_ELEMENTS 16384 // outputs up to here are computed by one thread

/* A quiet NaN that no computation makes: an output element that still holds it was not written,
 * or was computed from one that was not. */
#define UNWRITTEN UINT64_C(0x7ff8c07e6e0bad5e)

size_t expected_bytes(DType dtype) {
    const DTypeInfo *info = dtype_info(dtype);
    return info->is_float ? sizeof(double) : (size_t)info->bytes;
}

/* ---- ORACLE_TASK ------------------------------------------------------------------------ */

static void truth_free(const Oracle *oracle, Truth *truth) {
    if (!truth) return;
    for (uint32_t i = oracle->inputs; i < oracle->count; i++)
        guarded_free(truth->expected[i],
                     (size_t)truth->shapes[i].elements * expected_bytes(oracle->tensors[i].dtype));
    free(truth->request);
    free(truth);
}

static void forget_task(Oracle *oracle) {
    for (int i = 0; i < ORACLE_TRUTHS; i++)
        truth_free(oracle, oracle->truths[i]);
    for (int i = 0; i < 2; i++)
        if (oracle->objects[i]) dlclose(oracle->objects[i]);
    *oracle = (Oracle){.exchange = oracle->exchange};
}

void oracle_free(Oracle *oracle) {
    forget_task(oracle);
}

static bool load_object(const char *path, void **object, Reference **reference, Fault *why) {
    if (path[0] != '/') return fault(why, "the reference's object must have an absolute path");
    *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*object) return fault(why, "the reference cannot be loaded: %s", dlerror());
    void *symbol = dlsym(*object, "reference");
    if (!symbol) return fault(why, "it does not define reference(); see reference.h");
    memcpy(reference, &symbol, sizeof(*reference));
    return true;
}

bool oracle_task(Oracle *oracle, WireReader *ask, Fault *why) {
    forget_task(oracle);
    char paths[2][4096];
    get_text(ask, paths[0], sizeof(paths[0]));
    get_text(ask, paths[1], sizeof(paths[1]));
    uint32_t count = get_u32(ask);
    if (ask->failed || count < 1 || count > ORACLE_MAX_TENSORS)
        return fault(why, "a damaged request to load a task");
    for (uint32_t i = 0; i < count; i++) {
        OracleTensor *tensor = &oracle->tensors[i];
        get_text(ask, tensor->name, sizeof(tensor->name));
        tensor->is_output = get_u8(ask);
        uint8_t dtype = get_u8(ask);
        bool input_after_output = i > 0 && oracle->tensors[i - 1].is_output && !tensor->is_output;
        if (ask->failed || dtype >= DTYPE_COUNT || input_after_output)
            return fault(why, "a damaged request to load a task");
        tensor->dtype = (DType)dtype;
        oracle->inputs += !tensor->is_output;
    }
    if (oracle->inputs == count) return fault(why, "a task without an output");
    if (!load_object(paths[0], &oracle->objects[0], &oracle->in_double, why) ||
        !load_object(paths[1], &oracle->objects[1], &oracle->in_float, why))
        return false;
    oracle->count = count;
    return true;
}

/* ---- running the reference -------------------------------------------------------------- */

/* The arrays of one run. Floats are `real`, whole numbers what they are. */
typedef struct {
    const Oracle *oracle;
    const Truth *truth;
    bool is_double;
    const int64_t *dims;
    void *arrays[ORACLE_MAX_TENSORS];
    size_t bytes[ORACLE_MAX_TENSORS];
    uint32_t input; // that is being filled
    int64_t rows, rows_per_block;
} Run;

static size_t array_element_bytes(const Run *run, DType dtype) {
    const DTypeInfo *info = dtype_info(dtype);
    return !info->is_float ? (size_t)info->bytes : run->is_double ? sizeof(double) : sizeof(float);
}

static void fill_block(void *context, int64_t block) {
    Run *run = context;
    uint32_t input = run->input;
    DType dtype = run->oracle->tensors[input].dtype;
    const DTypeInfo *info = dtype_info(dtype);
    int64_t begin = block * FILL_BLOCK, elements = run->truth->shapes[input].elements;
    int64_t count = elements - begin < FILL_BLOCK ? elements - begin : FILL_BLOCK;
    Fill fill = run->truth->fills[input];
    uint64_t seed = run->truth->seed;
    uint8_t *out = (uint8_t *)run->arrays[input] + (size_t)begin * array_element_bytes(run, dtype);
    if (!info->is_float) {
        fill_generate(fill, dtype, seed, input, begin, count, out);
        return;
    }
    double piece[512]; // room for 512 elements of any type
    for (int64_t done = 0; done < count; done += 512) {
        int64_t n = count - done < 512 ? count - done : 512;
        fill_generate(fill, dtype, seed, input, begin + done, n, piece);
        for (int64_t i = 0; i < n; i++) {
            double value = dtype_load(dtype, piece, i);
            if (run->is_double)
                ((double *)out)[done + i] = value;
            else
                ((float *)out)[done + i] = (float)value;
        }
    }
}

/* Only the run in double is checked; what it writes, the one in float writes too. */
static void mark_unwritten(const Run *run, uint32_t output) {
    if (!dtype_info(run->oracle->tensors[output].dtype)->is_float || !run->is_double) return;
    uint64_t *bits = run->arrays[output];
    for (int64_t i = 0; i < run->truth->shapes[output].elements; i++)
        bits[i] = UNWRITTEN;
}

static bool check_written(const Run *run, uint32_t output, Fault *why) {
    if (!dtype_info(run->oracle->tensors[output].dtype)->is_float || !run->is_double) return true;
    const uint64_t *bits = run->arrays[output];
    int64_t elements = run->truth->shapes[output].elements;
    for (int64_t i = 0; i < elements; i++)
        if ((bits[i] & INT64_MAX) == UNWRITTEN)
            return fault(why,
                         "reference() leaves element %lld of '%s' unwritten, or reads it before "
                         "it is written",
                         (long long)i, run->oracle->tensors[output].name);
    return true;
}

static void run_rows(void *context, int64_t block) {
    Run *run = context;
    int64_t begin = block * run->rows_per_block, end = begin + run->rows_per_block;
    Reference *reference = run->is_double ? run->oracle->in_double : run->oracle->in_float;
    reference((const void *const *)run->arrays, run->arrays + run->oracle->inputs, run->dims, begin,
              end < run->rows ? end : run->rows);
}

/* Outputs that have a first axis in common are computed by blocks of its rows on all cores;
 * others in one call with all rows of the first output. */
static void split_rows(Run *run) {
    const Oracle *oracle = run->oracle;
    int64_t elements = 0;
    bool common = true;
    const Shape *first = &run->truth->shapes[oracle->inputs];
    run->rows = first->rank > 0 ? first->extents[0] : 1;
    for (uint32_t i = oracle->inputs; i < oracle->count; i++) {
        const Shape *shape = &run->truth->shapes[i];
        elements += shape->elements;
        common = common && shape->rank > 0 && shape->extents[0] == run->rows;
    }
    int64_t blocks = common && elements > SMALL_ROWS_ELEMENTS ? 4 * parallel_cores() : 1;
    run->rows_per_block = (run->rows + blocks - 1) / blocks;
}

static void run_free(Run *run) {
    for (uint32_t i = 0; i < run->oracle->count; i++)
        guarded_free(run->arrays[i], run->bytes[i]);
}

static size_t machine_bytes(void) {
    return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

/* Memory is only handed out when it is touched; asking first spares us being killed midway. */
static bool measure_arrays(Run *run, Fault *why) {
    double all = 0;
    for (uint32_t i = 0; i < run->oracle->count; i++) {
        size_t element = array_element_bytes(run, run->oracle->tensors[i].dtype);
        run->bytes[i] = (size_t)run->truth->shapes[i].elements * element;
        all += (double)run->bytes[i];
    }
    double has = (double)machine_bytes();
    return all < 0.9 * has || fault(why,
                                    "the reference needs %.1f GB of memory, the machine has %.1f "
                                    "GB; choose smaller sizes",
                                    all / 1e9, has / 1e9);
}

/* Leaves the outputs in run->arrays; the caller frees. */
static bool run_reference(Run *run, Fault *why) {
    const Oracle *oracle = run->oracle;
    if (!measure_arrays(run, why)) return false;
    for (uint32_t i = 0; i < oracle->count; i++) {
        int64_t elements = run->truth->shapes[i].elements;
        run->arrays[i] = guarded_new(run->bytes[i]);
        if (!run->arrays[i]) return fault(why, "no memory for '%s'", oracle->tensors[i].name);
        run->input = i;
        if (i < oracle->inputs)
            parallel_blocks((elements + FILL_BLOCK - 1) / FILL_BLOCK, fill_block, run);
        else
            mark_unwritten(run, i);
    }
    split_rows(run);
    parallel_blocks((run->rows + run->rows_per_block - 1) / run->rows_per_block, run_rows, run);
    for (uint32_t i = oracle->inputs; i < oracle->count; i++)
        if (!check_written(run, i, why)) return false;
    return true;
}

/* ---- the baseline's error --------------------------------------------------------------- */

typedef struct {
    DType dtype;
    const void *expected, *got; // in double (whole numbers as they are), in float
    int64_t elements;
    double *difference, *size; // squares, per block
} ErrorSum;

static void error_block(void *context, int64_t block) {
    ErrorSum *sum = context;
    int64_t begin = block * SUM_BLOCK, end = begin + SUM_BLOCK;
    bool is_float = dtype_info(sum->dtype)->is_float;
    double difference = 0, size = 0;
    for (int64_t i = begin; i < end && i < sum->elements; i++) {
        double expected, got;
        if (is_float) {
            uint64_t rounded;
            dtype_store(sum->dtype, &rounded, 0, ((const float *)sum->got)[i]);
            expected = ((const double *)sum->expected)[i];
            got = dtype_load(sum->dtype, &rounded, 0);
        } else {
            expected = dtype_load(sum->dtype, sum->expected, i);
            got = dtype_load(sum->dtype, sum->got, i);
        }
        if (!isfinite(expected)) continue; // inf and NaN have no distance
        difference += (got - expected) * (got - expected);
        size += expected * expected;
    }
    sum->difference[block] = difference;
    sum->size[block] = size;
}

static bool relative_error(ErrorSum sum, double *error, Fault *why) {
    int64_t blocks = (sum.elements + SUM_BLOCK - 1) / SUM_BLOCK;
    sum.difference = calloc(2 * (size_t)blocks, sizeof(double));
    if (!sum.difference) return fault(why, "no memory for the baseline");
    sum.size = sum.difference + blocks;
    parallel_blocks(blocks, error_block, &sum);
    double difference = 0, size = 0;
    for (int64_t i = 0; i < blocks; i++) {
        difference += sum.difference[i];
        size += sum.size[i];
    }
    free(sum.difference);
    *error = difference == 0 ? 0 : sqrt(difference / size);
    return true;
}

static bool compute(const Oracle *oracle, Truth *truth, const int64_t *dims, Fault *why) {
    Run in_double = {.oracle = oracle, .truth = truth, .is_double = true, .dims = dims};
    bool ok = run_reference(&in_double, why);
    for (uint32_t i = oracle->inputs; ok && i < oracle->count; i++) {
        truth->expected[i] = in_double.arrays[i]; // they move
        truth->bytes += in_double.bytes[i];
        in_double.arrays[i] = NULL;
    }
    run_free(&in_double);
    if (!ok) return false;

    Run in_float = {.oracle = oracle, .truth = truth, .dims = dims};
    ok = run_reference(&in_float, why);
    for (uint32_t i = oracle->inputs; ok && i < oracle->count; i++)
        ok = relative_error((ErrorSum){.dtype = oracle->tensors[i].dtype,
                                       .expected = truth->expected[i],
                                       .got = in_float.arrays[i],
                                       .elements = truth->shapes[i].elements},
                            &truth->baseline_error[i], why);
    run_free(&in_float);
    return ok;
}

/* ---- ORACLE_TRUTH ----------------------------------------------------------------------- */

static bool read_request(const Oracle *oracle, WireReader *ask, Truth *truth, int64_t *dims,
                         Fault *why) {
    truth->seed = get_u64(ask);
    uint32_t count = get_u32(ask);
    if (count > ORACLE_MAX_DIMS) ask->failed = true;
    for (uint32_t i = 0; i < count && !ask->failed; i++)
        dims[i] = get_i64(ask);
    for (uint32_t i = 0; i < oracle->count && !ask->failed; i++) {
        Shape *shape = &truth->shapes[i];
        shape->rank = get_u32(ask);
        shape->elements = 1;
        if (shape->rank > WIRE_MAX_RANK) ask->failed = true;
        for (uint32_t axis = 0; axis < shape->rank && !ask->failed; axis++) {
            shape->extents[axis] = get_i64(ask);
            if (shape->extents[axis] < 1 ||
                __builtin_mul_overflow(shape->elements, shape->extents[axis], &shape->elements) ||
                shape->elements > MAX_ELEMENTS)
                ask->failed = true;
        }
    }
    for (uint32_t i = 0; i < oracle->inputs && !ask->failed; i++) {
        uint8_t kind = get_u8(ask);
        if (kind >= FILL_COUNT) ask->failed = true;
        truth->fills[i] = (Fill){.kind = (FillKind)kind};
        truth->fills[i].low = get_f64(ask);
        truth->fills[i].high = get_f64(ask);
    }
    return !ask->failed || fault(why, "a damaged request for expected values");
}

/* Whatever was computed may take a quarter of the machine's memory, the newest aside. */
static void make_room(Oracle *oracle, const Truth *newest) {
    size_t limit = machine_bytes() / 4;
    for (;;) {
        size_t bytes = newest->bytes;
        int oldest = -1, empty = -1;
        for (int i = 0; i < ORACLE_TRUTHS; i++) {
            const Truth *truth = oracle->truths[i];
            if (!truth) {
                empty = i;
                continue;
            }
            bytes += truth->bytes;
            if (oldest < 0 || truth->used_at < oracle->truths[oldest]->used_at) oldest = i;
        }
        if (oldest < 0 || (empty >= 0 && bytes <= limit)) return;
        truth_free(oracle, oracle->truths[oldest]);
        oracle->truths[oldest] = NULL;
    }
}

bool oracle_truth(Oracle *oracle, WireReader *ask, Fault *why) {
    oracle->truth = NULL;
    if (!oracle->in_double) return fault(why, "no task has been loaded");
    for (int i = 0; i < ORACLE_TRUTHS; i++) {
        Truth *truth = oracle->truths[i];
        if (!truth || truth->request_bytes != ask->bytes ||
            memcmp(truth->request, ask->data, ask->bytes) != 0)
            continue;
        truth->used_at = ++oracle->clock;
        oracle->truth = truth;
        return true;
    }
    Truth *truth = calloc(1, sizeof(*truth));
    uint8_t *request = malloc(ask->bytes ? ask->bytes : 1);
    if (!truth || !request) {
        free(truth);
        free(request);
        return fault(why, "no memory for expected values");
    }
    truth->request = request;
    truth->request_bytes = ask->bytes;
    if (ask->bytes) memcpy(request, ask->data, ask->bytes);
    int64_t dims[ORACLE_MAX_DIMS] = {0};
    if (!read_request(oracle, ask, truth, dims, why) || !compute(oracle, truth, dims, why)) {
        truth_free(oracle, truth);
        return false;
    }
    make_room(oracle, truth);
    for (int i = 0; i < ORACLE_TRUTHS; i++) {
        if (oracle->truths[i]) continue;
        oracle->truths[i] = truth;
        break;
    }
    truth->used_at = ++oracle->clock;
    oracle->truth = truth;
    return true;
}
