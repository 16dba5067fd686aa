// expect: wrong text="precision" task=sgemm
//
// Multiplies with the precision of TF32 where the task asks for f32. The task's tolerance alone
// might let it pass; the precision probe does not.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

constexpr int kTile = 16;

// What a TF32 tensor core keeps of an f32 operand: ten bits of mantissa.
CUTE_DEVICE float tf32(float x) {
    return __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
}

__global__ void sgemm_kernel(float const *a, float const *b, float *c, int64_t m, int64_t n,
                             int64_t k) {
    Tensor mat_a = make_tensor(make_gmem_ptr(a), make_shape(m, k), make_stride(k, _1{}));
    Tensor mat_b = make_tensor(make_gmem_ptr(b), make_shape(n, k), make_stride(_1{}, n));
    Tensor mat_c = make_tensor(make_gmem_ptr(c), make_shape(m, n), make_stride(n, _1{}));
    int64_t row = int64_t(blockIdx.x) * kTile + threadIdx.y;
    int64_t col = int64_t(blockIdx.y) * kTile + threadIdx.x;
    if (row >= m || col >= n) {
        return;
    }
    float sum = 0.0f;
    for (int64_t i = 0; i < k; ++i) {
        float left = mat_a(row, i), right = mat_b(col, i);
        sum += tf32(left) * tf32(right);
    }
    mat_c(row, col) = sum;
}

extern "C" cudaError_t launch(const float *a, const float *b, float *c, Dims dims, void *workspace,
                              cudaStream_t stream) {
    dim3 grid(unsigned((dims.m + kTile - 1) / kTile), unsigned((dims.n + kTile - 1) / kTile));
    sgemm_kernel<<<grid, dim3(kTile, kTile), 0, stream>>>(a, b, c, dims.m, dims.n, dims.k);
    return cudaGetLastError();
}
