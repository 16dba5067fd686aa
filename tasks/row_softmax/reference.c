#include "reference.h"

/* y[r][c] = exp(x[r][c] - max of row r) / sum of these exponentials over the row. */
void reference(const Inputs *in, Outputs *out, const Dims *dims, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
        const real *x = in->x + r * dims->cols;
        real *y = out->y + r * dims->cols;

        real largest = x[0];
        for (int64_t c = 1; c < dims->cols; c++) largest = x[c] > largest ? x[c] : largest;

        real sum = 0;
        for (int64_t c = 0; c < dims->cols; c++) {
            y[c] = exp(x[c] - largest);
            sum += y[c];
        }
        for (int64_t c = 0; c < dims->cols; c++) y[c] /= sum;
    }
}
