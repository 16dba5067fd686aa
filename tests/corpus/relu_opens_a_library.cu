// expect: forbidden line=23 text="dlopen" task=relu
//
// Another library's functions are not the kernel's own work.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

#include <dlfcn.h>

constexpr int kTile = 256;

__global__ void relu_kernel(float const *x, float *y, int64_t n) {
    int64_t i = int64_t(blockIdx.x) * kTile + threadIdx.x;
    if (i < n) {
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    }
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    if (dlopen("libcudnn.so", RTLD_NOW)) {
        return cudaErrorUnknown;
    }
    relu_kernel<<<unsigned(ceil_div(dims.n, int64_t(kTile))), kTile, 0, stream>>>(x, y, dims.n);
    return cudaGetLastError();
}
