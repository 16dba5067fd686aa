#include "reference.h"

/* c[i][j] = sum over p of a[i][p] * b[p][j]; rows of b are walked in order, for the cache. */
void reference(const Inputs *in, Outputs *out, const Dims *dims, int64_t begin, int64_t end) {
    int64_t n = dims->n, k = dims->k;
    for (int64_t i = begin; i < end; i++) {
        real *c = out->c + i * n;
        for (int64_t j = 0; j < n; j++) c[j] = 0;
        for (int64_t p = 0; p < k; p++) {
            real a = in->a[i * k + p];
            const real *b = in->b + p * n;
            for (int64_t j = 0; j < n; j++) c[j] += a * b[j];
        }
    }
}
