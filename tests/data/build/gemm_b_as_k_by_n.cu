#include "task.h"
#include <cute/tensor.hpp>
using namespace cute;

__global__ void kernel(const float *x, float *y, int64_t rows, int64_t cols) {
    auto mma = make_tiled_mma(SM80_16x8x8_F32TF32TF32F32_TN{}, Layout<Shape<_1, _1>>{});
    Tensor g_a = make_tensor(make_gmem_ptr(x), Layout<Shape<_16, _16>>{});
    Tensor g_b = make_tensor(make_gmem_ptr(x), Layout<Shape<_16, _32>>{});
    Tensor g_c = make_tensor(make_gmem_ptr(y), Layout<Shape<_16, _32>>{});
    auto thread = mma.get_slice(threadIdx.x);
    Tensor r_a = thread.partition_fragment_A(g_a);
    Tensor r_b = thread.partition_fragment_B(g_b);
    Tensor r_c = thread.partition_fragment_C(g_c);
    gemm(mma, r_a, r_b, r_c); // <- error
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    kernel<<<32, 128, 0, stream>>>(x, y, dims.rows, dims.cols);
    return cudaGetLastError();
}
