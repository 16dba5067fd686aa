// expect: memory_error line=31 text="not aligned to 16 bytes" task=row_softmax
//
// Rows are read as float4, although a row of odd length begins anywhere.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

template <class Op>
CUTE_DEVICE float warp_reduce(float value, Op op) {
    CUTE_UNROLL
    for (int distance = 16; distance > 0; distance /= 2) {
        value = op(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
    return value;
}

__global__ void softmax_kernel(float const *x, float *y, int64_t cols) {
    float const *row = x + blockIdx.x * cols;
    float *out = y + blockIdx.x * cols;
    __shared__ float partial[kWarps];
    float sum = 0.0f;
    int64_t vectors = cols / 4;
    Tensor values = make_tensor(make_gmem_ptr(row), make_shape(_4{}, vectors));
    Tensor four = make_tensor<float>(_4{});
    for (int64_t v = threadIdx.x; v < vectors; v += kThreads) {
        copy(Copy_Atom<UniversalCopy<uint128_t>, float>{}, values(_, v), four);
        sum += expf(four(0)) + expf(four(1)) + expf(four(2)) + expf(four(3));
    }
    for (int64_t c = 4 * vectors + threadIdx.x; c < cols; c += kThreads) {
        sum += expf(row[c]);
    }
    sum = warp_reduce(sum, [](float a, float b) { return a + b; });
    if (threadIdx.x % 32 == 0) {
        partial[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    sum = 0.0f;
    for (int warp = 0; warp < kWarps; ++warp) {
        sum += partial[warp];
    }
    for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
        out[c] = expf(row[c]) / sum;
    }
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    softmax_kernel<<<unsigned(dims.rows), kThreads, 0, stream>>>(x, y, dims.cols);
    return cudaGetLastError();
}
