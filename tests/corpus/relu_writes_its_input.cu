// expect: wrong text="changes its input x" task=relu
//
// In place, and then copied: the input is not what it was.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

constexpr int kTile = 256;

__global__ void relu_kernel(float *x, float *y, int64_t n) {
    Tensor g_x = make_tensor(make_gmem_ptr(x), make_layout(n));
    Tensor g_y = make_tensor(make_gmem_ptr(y), make_layout(n));
    int64_t i = int64_t(blockIdx.x) * kTile + threadIdx.x;
    if (i < n) {
        g_x(i) = g_x(i) < 0.0f ? 0.0f : g_x(i);
        g_y(i) = g_x(i);
    }
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    unsigned blocks = unsigned(ceil_div(dims.n, int64_t(kTile)));
    relu_kernel<<<blocks, kTile, 0, stream>>>(const_cast<float *>(x), y, dims.n);
    return cudaGetLastError();
}
