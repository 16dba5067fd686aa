#include "reference.h"

/* c[i][j] = sum over p of a[i][p] * b[j][p]. */
void reference(const Inputs *in, Outputs *out, const Dims *dims, int64_t begin, int64_t end) {
    int64_t n = dims->n, k = dims->k;
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < n; j++) {
            real sum = 0;
            for (int64_t p = 0; p < k; p++) sum += in->a[i * k + p] * in->b[j * k + p];
            out->c[i * n + j] = sum;
        }
}
