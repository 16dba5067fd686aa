#include "task.h"
#include <cute/tensor.hpp>
using namespace cute;

__global__ void kernel(const float *x, float *y, int64_t rows, int64_t cols) {
    __shared__ half_t a[64 * 64];
    auto mma = make_tiled_mma(SM90_64x64x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>{});
    Tensor s_a = make_tensor(make_smem_ptr(a), Layout<Shape<_64, _64>, Stride<_64, _1>>{});
    Tensor g_c = make_tensor(make_gmem_ptr(y), Layout<Shape<_64, _64>>{});
    auto thread = mma.get_slice(threadIdx.x);
    Tensor r_a = thread.make_fragment_A(thread.partition_A(s_a)); // <- error
    Tensor r_c = thread.partition_fragment_C(g_c);
    gemm(mma, r_a, r_a, r_c);
    y[threadIdx.x] = r_c(0);
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    kernel<<<32, 128, 0, stream>>>(x, y, dims.rows, dims.cols);
    return cudaGetLastError();
}
