// expect: launch_error text="cudaErrorLaunchOutOfResources" task=relu
//
// 1024 threads that each hold 96 values need more registers than a multiprocessor has.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

constexpr int kThreads = 1024;
constexpr int kValues = 96;
constexpr int kTile = kThreads * kValues;

__global__ void relu_kernel(float const *x, float *y, int64_t n) {
    Tensor fragment = make_tensor<float>(Int<kValues>{});
    int64_t first = int64_t(blockIdx.x) * kTile + threadIdx.x;
    CUTE_UNROLL
    for (int i = 0; i < kValues; ++i) {
        int64_t at = first + i * kThreads;
        fragment(i) = at < n ? x[at] : 0.0f;
    }
    __syncthreads(); // all of them are alive here
    CUTE_UNROLL
    for (int i = 0; i < kValues; ++i) {
        int64_t at = first + i * kThreads;
        if (at < n) {
            y[at] = fragment(i) < 0.0f ? 0.0f : fragment(i);
        }
    }
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    unsigned blocks = unsigned(ceil_div(dims.n, int64_t(kTile)));
    relu_kernel<<<blocks, kThreads, 0, stream>>>(x, y, dims.n);
    return cudaGetLastError();
}
