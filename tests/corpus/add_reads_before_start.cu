// expect: memory_error line=18 text="reads b[-1], 4 bytes before its start" task=vector_add
//
// An index that is one too small: the first thread reads in front of the tensor.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

constexpr int kTile = 256;

__global__ void add_kernel(float const *a, float const *b, float *c, int64_t n) {
    int64_t i = int64_t(blockIdx.x) * kTile + threadIdx.x;
    if (i >= n) {
        return;
    }
    Tensor g_b = make_tensor(make_gmem_ptr(b), make_layout(n));
    float right = g_b(i - 1);
    c[i] = a[i] + right;
}

extern "C" cudaError_t launch(const float *a, const float *b, float *c, Dims dims, void *workspace,
                              cudaStream_t stream) {
    add_kernel<<<unsigned(ceil_div(dims.n, int64_t(kTile))), kTile, 0, stream>>>(a, b, c, dims.n);
    return cudaGetLastError();
}
