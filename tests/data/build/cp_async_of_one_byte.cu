#include "task.h"
#include <cute/tensor.hpp>
using namespace cute;

__global__ void kernel(const float *x, float *y, int64_t rows, int64_t cols) {
    __shared__ uint8_t tile[128];
    Tensor g_x = make_tensor(make_gmem_ptr(reinterpret_cast<const uint8_t *>(x)), Layout<_128>{});
    Tensor s_x = make_tensor(make_smem_ptr(tile), Layout<_128>{});
    copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<uint8_t>, uint8_t>{}, g_x, s_x); // <- error
    y[threadIdx.x] = s_x(threadIdx.x);
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    kernel<<<32, 128, 0, stream>>>(x, y, dims.rows, dims.cols);
    return cudaGetLastError();
}
