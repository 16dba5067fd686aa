// expect: memory_error line=38 text="of shared memory, ending 4 bytes past its end" task=row_softmax
//
// The layout of the partial sums spans twice the shared memory that was declared.
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
    Tensor row = make_tensor(make_gmem_ptr(x + blockIdx.x * cols), make_layout(cols));
    Tensor out = make_tensor(make_gmem_ptr(y + blockIdx.x * cols), make_layout(cols));
    __shared__ float storage[kWarps];
    Tensor partial = make_tensor(make_smem_ptr(storage), make_layout(Int<2 * kWarps>{}));
    float sum = 0.0f;
    for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
        sum += expf(row(c));
    }
    sum = warp_reduce(sum, [](float a, float b) { return a + b; });
    if (threadIdx.x % 32 == 0) {
        partial(threadIdx.x / 32) = sum;
    }
    __syncthreads();
    sum = 0.0f;
    for (int warp = 0; warp < size(partial); ++warp) {
        sum += partial(warp);
    }
    for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
        out(c) = expf(row(c)) / sum;
    }
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    softmax_kernel<<<unsigned(dims.rows), kThreads, 0, stream>>>(x, y, dims.cols);
    return cudaGetLastError();
}
