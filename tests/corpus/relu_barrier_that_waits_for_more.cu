// expect: hang line=19 task=relu
//
// A named barrier for twice the threads that the block has.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

#include <cutlass/arch/barrier.h>

constexpr int kTile = 256;

__global__ void relu_kernel(float const *x, float *y, int64_t n) {
    __shared__ float storage[kTile];
    Tensor staged = make_tensor(make_smem_ptr(storage), make_layout(Int<kTile>{}));
    int64_t i = int64_t(blockIdx.x) * kTile + threadIdx.x;
    staged(threadIdx.x) = i < n ? x[i] : 0.0f;
    cutlass::arch::NamedBarrier::sync(2 * kTile, 0);
    if (i < n) {
        y[i] = staged(threadIdx.x) < 0.0f ? 0.0f : staged(threadIdx.x);
    }
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    relu_kernel<<<unsigned(ceil_div(dims.n, int64_t(kTile))), kTile, 0, stream>>>(x, y, dims.n);
    return cudaGetLastError();
}
