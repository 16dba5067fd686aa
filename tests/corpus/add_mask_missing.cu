// expect: memory_error line=19 text="reads a[1], 4 bytes past its end" task=vector_add
//
// A whole tile is staged in shared memory, also where the tensor ends in the middle of it.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

constexpr int kTile = 256;

__global__ void add_kernel(float const *a, float const *b, float *c, int64_t n) {
    __shared__ float storage[kTile];
    Tensor staged = make_tensor(make_smem_ptr(storage), make_layout(Int<kTile>{}));
    Tensor g_a = make_tensor(make_gmem_ptr(a), make_layout(n));
    Tensor g_b = make_tensor(make_gmem_ptr(b), make_layout(n));
    Tensor g_c = make_tensor(make_gmem_ptr(c), make_layout(n));
    int64_t i = int64_t(blockIdx.x) * kTile + threadIdx.x;
    staged(threadIdx.x) = g_a(i);
    __syncthreads();
    if (i < n) {
        g_c(i) = staged(threadIdx.x) + g_b(i);
    }
}

extern "C" cudaError_t launch(const float *a, const float *b, float *c, Dims dims, void *workspace,
                              cudaStream_t stream) {
    add_kernel<<<unsigned(ceil_div(dims.n, int64_t(kTile))), kTile, 0, stream>>>(a, b, c, dims.n);
    return cudaGetLastError();
}
