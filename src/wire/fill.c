/* fill.c - input data that is the same bits wherever it is made.
 *
 * Element i of tensor t under seed s is made from one Philox4x32-10 block,
 *
 *     counter = (i low, i high, s high, 0)      key = (s low, t)      block = w0 w1 w2 w3
 *
 * with nothing carried from element to element, so that a range, a thread or a GPU can start
 * anywhere. From the block:
 *
 *     normal     the sum of its eight 16-bit halves is an integer in 0 .. 524280 with mean 262140
 *                and variance 8 * (2^32 - 1) / 12; x = (sum - 262140) * (1 / standard deviation)
 *     uniform    u = (w0 * 2^21 + the top 21 bits of w1) * 2^-53, in [0, 1); x = low + u * (high -
 *                low), or the double below high where that rounds up to high
 *     integers   low + floor(w * n / 2^64), where w = w1 w0 as 64 bits and n = high - low + 1
 *
 * then dtype_store rounds x to the element type. Integers and single multiplications and additions
 * of doubles only, without contraction to fused ones (-ffp-contract=off; nvcc: --fmad=false).
 * A narrower type may round a uniform value up to `high` itself.
 */
#include "wire/wire.h"

#include <string.h>

void philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)c0 * 0xD2511F53u, p1 = (uint64_t)c2 * 0xCD9E8D57u;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u; // golden ratio
        k1 += 0xBB67AE85u; // sqrt(3) - 1
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

static const int32_t HALVES_MEAN = 262140;                // 8 * 65535 / 2
static const double HALVES_SCALE = 0x1.3988e1412ed76p-16; // 1 / sqrt(8 * (2^32 - 1) / 12)

static double normal_of(const uint32_t block[4]) {
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++) {
        sum += (block[i] & 0xFFFFu) + (block[i] >> 16);
    }
    return (double)((int32_t)sum - HALVES_MEAN) * HALVES_SCALE;
}

static double below(double value) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    // Signed doubles are ordered like sign-and-magnitude integers; below zero comes the smallest
    // negative subnormal.
    if (bits > 0) {
        bits--;
    } else if (bits == 0 || bits == INT64_MIN) {
        bits = INT64_MIN + 1;
    } else {
        bits++;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double uniform_of(const uint32_t block[4], double low, double high) {
    uint64_t bits = (uint64_t)block[0] << 21 | block[1] >> 11;
    double x = low + (double)bits * 0x1p-53 * (high - low);
    return x < high || low >= high ? x : below(high);
}

static double integer_of(const uint32_t block[4], double low, double high) {
    // Bounds come from a task or from a peer; whatever they are, nothing here may overflow.
    double span = high - low;
    if (!(span >= 1)) {
        return low;
    }
    uint64_t count = span < 9007199254740992.0 ? (uint64_t)span + 1 : UINT64_C(1) << 53;
    uint64_t word = (uint64_t)block[1] << 32 | block[0];
    uint64_t pick = (uint64_t)((unsigned __int128)word * count >> 64);
    return low + (double)pick;
}

void fill_generate(Fill fill, DType dtype, uint64_t seed, uint32_t tensor, int64_t begin,
                   int64_t count, void *out) {
    const uint32_t key[2] = {(uint32_t)seed, tensor};
    for (int64_t i = 0; i < count; i++) {
        uint64_t element = (uint64_t)begin + (uint64_t)i;
        const uint32_t counter[4] = {(uint32_t)element, (uint32_t)(element >> 32),
                                     (uint32_t)(seed >> 32), 0};
        uint32_t block[4];
        double value = 0;
        switch (fill.kind) {
        case FILL_NORMAL:
            philox4x32_10(counter, key, block);
            value = normal_of(block);
            break;
        case FILL_UNIFORM:
            philox4x32_10(counter, key, block);
            value = uniform_of(block, fill.low, fill.high);
            break;
        case FILL_INTEGERS:
            philox4x32_10(counter, key, block);
            value = integer_of(block, fill.low, fill.high);
            break;
        case FILL_ONES:
            value = 1;
            break;
        case FILL_ZEROS:
        case FILL_COUNT:
            break;
        }
        dtype_store(dtype, out, i, value);
    }
}
