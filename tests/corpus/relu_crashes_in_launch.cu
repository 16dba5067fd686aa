// expect: launch_error text="launch() was killed by SIGSEGV" task=relu
//
// Host code reads device memory through a null pointer.
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
    volatile int *counter = static_cast<volatile int *>(workspace);
    *counter += 1; // it asked for no workspace
    relu_kernel<<<unsigned(ceil_div(dims.n, int64_t(kTile))), kTile, 0, stream>>>(x, y, dims.n);
    return cudaGetLastError();
}
