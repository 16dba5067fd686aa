// expect: launch_error text="cudaErrorInvalidValue" task=sgemm
//
// More shared memory than any device has, and the refusal is passed over.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

constexpr int kTile = 16;

__global__ void sgemm_kernel(float const *a, float const *b, float *c, int64_t m, int64_t n,
                             int64_t k) {
    Tensor mat_a = make_tensor(make_gmem_ptr(a), make_shape(m, k), make_stride(k, _1{}));
    Tensor mat_b = make_tensor(make_gmem_ptr(b), make_shape(n, k), make_stride(_1{}, n));
    Tensor mat_c = make_tensor(make_gmem_ptr(c), make_shape(m, n), make_stride(n, _1{}));
    int64_t row = int64_t(blockIdx.x) * kTile + threadIdx.y;
    int64_t col = int64_t(blockIdx.y) * kTile + threadIdx.x;
    extern __shared__ float tile[];
    tile[threadIdx.y * kTile + threadIdx.x] = 0.0f;
    if (row >= m || col >= n) {
        return;
    }
    float sum = 0.0f;
    for (int64_t i = 0; i < k; ++i) {
        sum += mat_a(row, i) * mat_b(col, i);
    }
    mat_c(row, col) = sum;
}

extern "C" cudaError_t launch(const float *a, const float *b, float *c, Dims dims, void *workspace,
                              cudaStream_t stream) {
    dim3 grid(unsigned((dims.m + kTile - 1) / kTile), unsigned((dims.n + kTile - 1) / kTile));
    constexpr int bytes = 256 << 10;
    cudaFuncSetAttribute(sgemm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    sgemm_kernel<<<grid, dim3(kTile, kTile), bytes, stream>>>(a, b, c, dims.m, dims.n, dims.k);
    return cudaGetLastError();
}
