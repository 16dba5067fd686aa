// expect: launch_error line=21 text="launch() was killed by SIGABRT" task=relu
//
// Host code insists on a size that is a multiple of the tile.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

#include <cassert>

constexpr int kTile = 256;

__global__ void relu_kernel(float const *x, float *y, int64_t n) {
    int64_t i = int64_t(blockIdx.x) * kTile + threadIdx.x;
    y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    assert(dims.n % kTile == 0);
    relu_kernel<<<unsigned(dims.n / kTile), kTile, 0, stream>>>(x, y, dims.n);
    return cudaGetLastError();
}
