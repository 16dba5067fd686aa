// expect: compile_error line=16 task=relu
//
// Three values cannot move in instructions of four: a static assertion deep inside of CuTe.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

constexpr int kTile = 256;

__global__ void relu_kernel(float const *x, float *y, int64_t n) {
    Tensor from = make_tensor<float>(_3{});
    Tensor to = make_tensor<float>(_3{});
    clear(from);
    copy(Copy_Atom<UniversalCopy<uint128_t>, float>{}, from, to);
    int64_t i = int64_t(blockIdx.x) * kTile + threadIdx.x;
    if (i < n) {
        y[i] = x[i] < 0.0f ? 0.0f : x[i] + to(0);
    }
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    relu_kernel<<<unsigned(ceil_div(dims.n, int64_t(kTile))), kTile, 0, stream>>>(x, y, dims.n);
    return cudaGetLastError();
}
