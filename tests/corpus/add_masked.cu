// expect: pass task=vector_add
//
// The clean twin of add_mask_missing and add_store_mask_missing.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

constexpr int kTile = 256;

__global__ void add_kernel(float const *a, float const *b, float *c, int64_t n) {
    auto layout = make_layout(n);
    Tensor g_a = make_tensor(make_gmem_ptr(a), layout);
    Tensor g_b = make_tensor(make_gmem_ptr(b), layout);
    Tensor g_c = make_tensor(make_gmem_ptr(c), layout);
    int64_t i = int64_t(blockIdx.x) * kTile + threadIdx.x;
    if (i < n) {
        g_c(i) = g_a(i) + g_b(i);
    }
}

extern "C" cudaError_t launch(const float *a, const float *b, float *c, Dims dims, void *workspace,
                              cudaStream_t stream) {
    add_kernel<<<unsigned(ceil_div(dims.n, int64_t(kTile))), kTile, 0, stream>>>(a, b, c, dims.n);
    return cudaGetLastError();
}
