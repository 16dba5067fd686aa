/* compare.c - holds what a kernel wrote against what is right.
 *
 * The exchange file is written by a process that ran a kernel, so it may be cut short or change
 * at any moment. It is never mapped (a truncation would kill us by SIGBUS) but copied with pread;
 * what is described is one consistent copy.
 */
#include "oracle/mismatch.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK (INT64_C(1) << 16) // elements; a multiple of 64, so that blocks share no word of bits

/* ---- the exchange file ------------------------------------------------------------------ */

typedef struct {
    uint64_t offset, bytes;
} Extent;

static bool read_exactly(int fd, uint64_t offset, void *out, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(fd, (uint8_t *)out + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

static int exchange_open(const char *path, uint64_t *bytes, Fault *why) {
    if (!path) {
        fault(why, "there is no exchange file to read outputs from");
        return -1;
    }
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        fault(why, "the exchange file cannot be read");
        if (fd >= 0) close(fd);
        return -1;
    }
    *bytes = (uint64_t)status.st_size;
    return fd;
}

/* ---- inputs ----------------------------------------------------------------------------- */

typedef struct {
    const Truth *truth;
    uint32_t input;
    DType dtype;
    int fd;
    uint64_t offset;
    atomic_int_least64_t first; // changed element; INT64_MAX: none
    atomic_bool unreadable;
} InputCheck;

static void check_input_block(void *context, int64_t block) {
    InputCheck *check = context;
    size_t size = (size_t)dtype_info(check->dtype)->bytes;
    int64_t begin = block * BLOCK, end = check->truth->shapes[check->input].elements;
    if (begin > atomic_load(&check->first)) return;
    for (int64_t at = begin; at < end && at < begin + BLOCK; at += 512) {
        double is[512], was[512]; // room for 512 elements of any type
        int64_t count = end - at < 512 ? end - at : 512;
        fill_generate(check->truth->fills[check->input], check->dtype, check->truth->seed,
                      check->input, at, count, was);
        if (!read_exactly(check->fd, check->offset + (uint64_t)at * size, is,
                          (size_t)count * size)) {
            atomic_store(&check->unreadable, true);
            return;
        }
        if (memcmp(is, was, (size_t)count * size) == 0) continue;
        int64_t i = 0;
        while (memcmp((uint8_t *)is + (size_t)i * size, (uint8_t *)was + (size_t)i * size, size) ==
               0)
            i++;
        int64_t seen = atomic_load(&check->first);
        while (at + i < seen && !atomic_compare_exchange_weak(&check->first, &seen, at + i))
            continue;
        return;
    }
}

/* *first: the first element that is no longer what it was filled with, or INT64_MAX. */
static bool check_input(const Oracle *oracle, uint32_t input, int fd, Extent place, int64_t *first,
                        Fault *why) {
    InputCheck check = {.truth = oracle->truth,
                        .input = input,
                        .dtype = oracle->tensors[input].dtype,
                        .fd = fd,
                        .offset = place.offset,
                        .first = INT64_MAX};
    int64_t elements = oracle->truth->shapes[input].elements;
    parallel_blocks((elements + BLOCK - 1) / BLOCK, check_input_block, &check);
    *first = check.first;
    return !check.unreadable || fault(why, "the exchange file was cut short while it was read");
}

/* ---- outputs ---------------------------------------------------------------------------- */

typedef struct {
    uint64_t wrong, untouched, nonfinite;
    int64_t first;                             // -1: none
    double max_abs, max_rel, difference, size; // the last two are sums of squares
} Measure;

typedef struct {
    const Comparison *comparison;
    uint64_t *bits;
    Measure *blocks;
} MeasureLoop;

static bool is_poison(const Comparison *c, int64_t i) {
    int bytes = dtype_info(c->dtype)->bytes;
    const uint8_t *at = (const uint8_t *)c->got + i * bytes;
    for (int b = 0; b < bytes; b++)
        if (at[b] != c->poison) return false;
    return true;
}

/* The rare cases: something is not finite, or the difference is too large. A number beyond the
 * type's range may have become infinity, or its largest number where the conversion saturates, as
 * CUDA's to FP8 does. */
static bool float_is_wrong(DType dtype, double got, double expected) {
    if (isnan(expected)) return !isnan(got);
    uint64_t bits = 0;
    dtype_store(dtype, &bits, 0, expected);
    double rounded = dtype_load(dtype, &bits, 0);
    if (isfinite(rounded)) return true;
    if (isnan(rounded) ? isnan(got) : got == rounded) return false;
    bool saturates = dtype == DTYPE_E4M3 || dtype == DTYPE_E5M2;
    return !(saturates && fabs(got) == (dtype == DTYPE_E4M3 ? 448 : 57344) &&
             signbit(got) == signbit(expected));
}

static void measure_element(const Comparison *c, bool is_float, int64_t i, Measure *m,
                            uint64_t *word) {
    double expected = expected_at(c, i), got = got_at(c, i);
    double difference = fabs(got - expected);
    bool wrong = !(difference <= c->atol + c->rtol * fabs(expected)) || !isfinite(expected);
    if (c->dtype == DTYPE_I64 && c->atol == 0 && c->rtol == 0) // a double has too few digits
        wrong = ((const int64_t *)c->got)[i] != ((const int64_t *)c->expected)[i];
    if (wrong && is_float) wrong = float_is_wrong(c->dtype, got, expected);
    if (wrong) {
        *word |= UINT64_C(1) << (i % 64);
        m->wrong++;
        m->untouched += is_poison(c, i);
        m->nonfinite += !isfinite(got) && isfinite(expected);
        if (m->first < 0) m->first = i;
    }
    if (!isfinite(expected)) return; // nothing has a distance from it
    m->size += expected * expected;
    if (!isfinite(got)) {
        if (wrong) m->difference = INFINITY;
        return;
    }
    m->difference += difference * difference;
    if (difference > m->max_abs) m->max_abs = difference;
    if (expected != 0 && difference / fabs(expected) > m->max_rel)
        m->max_rel = difference / fabs(expected);
}

static void measure_block(void *context, int64_t block) {
    MeasureLoop *loop = context;
    const Comparison *c = loop->comparison;
    bool is_float = dtype_info(c->dtype)->is_float;
    int64_t begin = block * BLOCK, end = begin + BLOCK;
    if (end > c->shape->elements) end = c->shape->elements;
    Measure m = {.first = -1};
    for (int64_t i = begin; i < end; i += 64) {
        uint64_t word = 0;
        for (int64_t k = i; k < end && k < i + 64; k++)
            measure_element(c, is_float, k, &m, &word);
        if (word) loop->bits[i / 64] = word; // untouched pages of zeros cost nothing
    }
    loop->blocks[block] = m;
}

bool mismatch_measure(const Comparison *c, Mismatch *seen, uint64_t **bits, double *expected_rms,
                      Fault *why) {
    int64_t elements = c->shape->elements, blocks = (elements + BLOCK - 1) / BLOCK;
    MeasureLoop loop = {.comparison = c,
                        .bits = calloc((size_t)(elements + 63) / 64, sizeof(uint64_t)),
                        .blocks = calloc((size_t)blocks, sizeof(Measure))};
    *bits = loop.bits;
    if (!loop.bits || !loop.blocks) {
        free(loop.blocks);
        return fault(why, "no memory to compare an output");
    }
    parallel_blocks(blocks, measure_block, &loop);

    *seen = (Mismatch){.elements = (uint64_t)elements, .first = -1, .rank = c->shape->rank};
    memcpy(seen->extents, c->shape->extents, sizeof(seen->extents));
    double difference = 0, size = 0;
    for (int64_t b = 0; b < blocks; b++) {
        const Measure *m = &loop.blocks[b];
        seen->wrong += m->wrong;
        seen->untouched += m->untouched;
        seen->nonfinite += m->nonfinite;
        if (seen->first < 0) seen->first = m->first;
        seen->max_abs = fmax(seen->max_abs, m->max_abs);
        seen->max_rel = fmax(seen->max_rel, m->max_rel);
        difference += m->difference;
        size += m->size;
    }
    free(loop.blocks);
    seen->error = difference == 0 ? 0 : sqrt(difference / size);
    *expected_rms = sqrt(size / (double)elements);
    if (seen->first >= 0) {
        seen->got = got_at(c, seen->first);
        seen->expected = expected_at(c, seen->first);
        seen->allowed = c->atol + c->rtol * fabs(seen->expected);
    }
    return true;
}

static bool compare_output(const Oracle *oracle, uint32_t output, int fd, Extent place,
                           Comparison c, Mismatch *seen, Fault *why) {
    c.dtype = oracle->tensors[output].dtype;
    c.shape = &oracle->truth->shapes[output];
    c.expected = oracle->truth->expected[output];
    void *got = malloc((size_t)place.bytes);
    if (!got) return fault(why, "no memory to compare '%s'", oracle->tensors[output].name);
    c.got = got;
    bool ok = read_exactly(fd, place.offset, got, (size_t)place.bytes) ||
              fault(why, "the exchange file was cut short while it was read");
    ok = ok && mismatch_find(&c, seen, why);
    free(got);
    seen->baseline_error = oracle->truth->baseline_error[output];
    return ok;
}

/* ---- ORACLE_COMPARE --------------------------------------------------------------------- */

typedef struct {
    uint8_t poison;
    double rtol[ORACLE_MAX_TENSORS], atol[ORACLE_MAX_TENSORS];
    Extent places[ORACLE_MAX_TENSORS];
} Request;

static bool read_request(const Oracle *oracle, WireReader *ask, uint64_t file_bytes,
                         Request *request, Fault *why) {
    request->poison = get_u8(ask);
    for (uint32_t i = oracle->inputs; i < oracle->count; i++) {
        request->rtol[i] = get_f64(ask);
        request->atol[i] = get_f64(ask);
        if (!(request->rtol[i] >= 0) || !(request->atol[i] >= 0)) ask->failed = true;
    }
    for (uint32_t i = 0; i < oracle->count; i++) {
        Extent *place = &request->places[i];
        place->offset = get_u64(ask);
        place->bytes = get_u64(ask);
    }
    if (ask->failed) return fault(why, "a damaged request to compare");
    for (uint32_t i = 0; i < oracle->count; i++) {
        const Extent *place = &request->places[i];
        uint64_t needed = (uint64_t)oracle->truth->shapes[i].elements *
                          (uint64_t)dtype_info(oracle->tensors[i].dtype)->bytes;
        if (place->bytes != needed)
            return fault(why, "'%s' has %llu bytes, but %llu were exported",
                         oracle->tensors[i].name, (unsigned long long)needed,
                         (unsigned long long)place->bytes);
        if (place->offset > file_bytes || place->bytes > file_bytes - place->offset)
            return fault(why, "the exchange file is too short to hold '%s'",
                         oracle->tensors[i].name);
    }
    return true;
}

bool oracle_compare(Oracle *oracle, WireReader *ask, WireWriter *answer, Fault *why) {
    if (!oracle->truth) return fault(why, "no expected values have been asked for");
    uint64_t file_bytes;
    int fd = exchange_open(oracle->exchange, &file_bytes, why);
    if (fd < 0) return false;
    Request request = {0};
    bool ok = read_request(oracle, ask, file_bytes, &request, why);

    uint32_t changed = 0;
    int64_t first[ORACLE_MAX_TENSORS];
    for (uint32_t i = 0; ok && i < oracle->inputs; i++) {
        ok = check_input(oracle, i, fd, request.places[i], &first[i], why);
        changed += ok && first[i] != INT64_MAX;
    }
    if (ok) put_u32(answer, changed);
    for (uint32_t i = 0; ok && i < oracle->inputs; i++) {
        if (first[i] == INT64_MAX) continue;
        put_u32(answer, i);
        put_i64(answer, first[i]);
    }
    for (uint32_t i = oracle->inputs; ok && i < oracle->count; i++) {
        Comparison c = {.rtol = request.rtol[i], .atol = request.atol[i], .poison = request.poison};
        Mismatch seen = {0};
        ok = compare_output(oracle, i, fd, request.places[i], c, &seen, why);
        if (ok) mismatch_put(answer, &seen);
    }
    close(fd);
    return ok;
}
