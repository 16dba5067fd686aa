// expect: compile_error line=17 text="launch" task=relu
//
// launch() without Dims.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

__global__ void relu_kernel(float const *x, float *y, int64_t n) {
    int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    }
}

extern "C" cudaError_t launch(const float *x, float *y, int64_t n, cudaStream_t stream) {
    relu_kernel<<<unsigned(ceil_div(n, int64_t(256))), 256, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}
