/* tolerance.c - the default tolerance of an output, from its type and the length of its sums.
 *
 * An element passes when |got - expected| <= atol + rtol * |expected|, with `expected` computed
 * in double. The defaults must let every honest summation order through on data of about unit
 * size, and nothing more: what they cannot tell apart (TF32 from f32 on long sums) is left to the
 * parity probe, which compares Frobenius errors instead.
 */
#include "task/tolerance.h"

#include "task/expr.h"

#include <math.h>

/* Sums longer than this are split among threads by any GPU kernel; no thread adds more terms one
 * after another. */
#define LONGEST_SEQUENTIAL_SUM 4096.0

/* Rounding one number to p stored mantissa bits errs by at most u = 2^-(p+1), relatively.
 *
 * Sums: K products of independent, zero-mean, unit numbers have a sum of about sqrt(K). Added
 * one after another, step i rounds a partial sum of about sqrt(i), and these K errors of random
 * sign add up to about u * sqrt(1 + 2 + … + K) = u * K / sqrt(2); added in runs of S terms, to
 * u * sqrt(K * S / 2) (Higham and Mary, "Sharper probabilistic backward error analysis for basic
 * linear algebra kernels with random data", SIAM J. Sci. Comput. 42, 2020). The largest among
 * 10^8 elements lies six standard deviations out: 6 / sqrt(2) is 4.3, and 8 leaves room for the
 * rounding of the products. Such an error does not shrink where terms cancel: it belongs in atol.
 *
 * f32's rtol of 1e-4 covers positive sums (8 * u * sqrt(K) at K = 40,000) and chains of library
 * functions a few units off; f64's is its analogue. The short types accumulate in f32 and round
 * once at the end: u, doubled for the rounding that falls the other way near a tie. Their atol
 * also covers the smallest subnormal, below which rtol promises too much. */
void tolerance_default(DType dtype, double length, double *rtol, double *atol) {
    const DTypeInfo *info = dtype_info(dtype);
    if (!info->is_float) { // whole numbers are compared exactly
        *rtol = *atol = 0;
        return;
    }
    double unit = ldexp(1, -(info->mantissa_bits + 1));
    double sum_unit = dtype == DTYPE_F64 ? unit : ldexp(1, -24);
    double run = fmin(length, LONGEST_SEQUENTIAL_SUM);
    double sums = 8 * sum_unit * sqrt(length * run);
    double smallest = 0;
    switch (dtype) {
    case DTYPE_F64:
        *rtol = 1e-12;
        break;
    case DTYPE_F32:
        *rtol = 1e-4;
        break;
    default:
        *rtol = 2 * unit;
        break;
    }
    switch (dtype) {
    case DTYPE_F16:
        smallest = ldexp(1, -24);
        break;
    case DTYPE_E4M3:
        smallest = ldexp(1, -9);
        break;
    case DTYPE_E5M2:
        smallest = ldexp(1, -16);
        break;
    default:
        break;
    }
    *atol = fmax(fmax(dtype == DTYPE_F64 ? 1e-13 : 1e-5, smallest), sums);
}

static bool is_extent(const Task *task, int first, int end, int dim) {
    for (int t = first; t < end; t++)
        for (int axis = 0; axis < task->tensors[t].rank; axis++)
            if (expr_is_dim(task->tensors[t].extents[axis], dim)) return true;
    return false;
}

/* Dimensions that are an extent of an input and of no output are summed over: k of a matrix
 * product. A convolution's h and w look like that too (its output has h-kh+1 rows), so stated
 * flops, two per product, bound it from above. */
static double length_for(const Task *task, const Dims *dims) {
    double length = 1;
    for (int d = 0; d < task->dim_count; d++)
        if (is_extent(task, 0, task->input_count, d) &&
            !is_extent(task, task->input_count, task->tensor_count, d))
            length *= (double)dims->value[d];
    if (task->class == CLASS_SCAN && task->tensors[0].rank > 0) // sums along an axis that stays
        length *= expr_real(task->tensors[0].extents[task->tensors[0].rank - 1], dims);
    double flops = task_flops(task, dims), outputs = 0;
    for (int t = task->input_count; t < task->tensor_count; t++) {
        double elements = 1;
        for (int axis = 0; axis < task->tensors[t].rank; axis++)
            elements *= expr_real(task->tensors[t].extents[axis], dims);
        outputs = fmax(outputs, elements);
    }
    if (!isnan(flops) && task->class != CLASS_SCAN && outputs > 0)
        length = fmin(length, flops / (2 * outputs));
    return fmax(length, 1);
}

double accumulation_length(const Task *task) {
    double length = fmax(length_for(task, &task->timed), length_for(task, &task->sim));
    for (int i = 0; i < task->check_count; i++)
        length = fmax(length, length_for(task, &task->checks[i]));
    return length;
}
