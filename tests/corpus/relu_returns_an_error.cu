// expect: launch_error text="launch() returned cudaErrorNotSupported" task=relu
//
// launch() gives up on odd sizes, although any size must work.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

constexpr int kTile = 256;

__global__ void relu_kernel(float const *x, float *y, int64_t n) {
    int64_t i = int64_t(blockIdx.x) * kTile + threadIdx.x;
    if (i < n) {
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    }
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    if (dims.n % kTile != 0) {
        return cudaErrorNotSupported;
    }
    relu_kernel<<<unsigned(dims.n / kTile), kTile, 0, stream>>>(x, y, dims.n);
    return cudaGetLastError();
}
