#include "reference.h"

void reference(const Inputs *in, Outputs *out, const Dims *dims, int64_t begin, int64_t end) {
    int64_t n = dims->n, q = dims->q;
    for (int64_t i = begin; i < end; i++) {
        real sum = 0;
        for (int64_t j = 0; j < n; j++) {
            real x = in->x[i * n + j];
            out->doubled[i * n + j] = 2 * x;
            out->squares[i * n + j] = x * x;
            sum += x;
        }
        out->means[i] = sum / (real)n;
        for (int64_t j = 0; j < q; j++) {
            real dot = 0;
            for (int64_t l = 0; l < n; l++)
                dot += in->x[i * n + l] * in->w[l * q + j];
            out->product[i * q + j] = dot;
        }
    }
    for (int64_t j = 0; j < 64; j++) {
        real sum = 0;
        for (int64_t i = 0; i < dims->rows; i++)
            sum += in->s[i * 64 + j];
        out->sums[j] = sum;
    }
}
