// expect: launch_error line=16 text="assert" task=relu
//
// The kernel insists on full tiles.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

#include <cassert>

constexpr int kTile = 256;

__global__ void relu_kernel(float const *x, float *y, int64_t n) {
    int64_t i = int64_t(blockIdx.x) * kTile + threadIdx.x;
    assert(i < n);
    Tensor g_x = make_tensor(make_gmem_ptr(x), make_layout(n));
    Tensor g_y = make_tensor(make_gmem_ptr(y), make_layout(n));
    g_y(i) = g_x(i) < 0.0f ? 0.0f : g_x(i);
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    relu_kernel<<<unsigned(ceil_div(dims.n, int64_t(kTile))), kTile, 0, stream>>>(x, y, dims.n);
    return cudaGetLastError();
}
