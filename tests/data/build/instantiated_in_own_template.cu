#include "task.h"
#include <cute/tensor.hpp>
using namespace cute;

template <class Source, class Target>
__device__ void move_tile(const Source &source, Target &&target) {
    copy(Copy_Atom<UniversalCopy<uint64_t>, float>{}, source, target); // <- error
}
__global__ void kernel(const float *x, float *y, int64_t rows, int64_t cols) {
    Tensor g_x = make_tensor(make_gmem_ptr(x), Layout<Shape<_3, _2>>{});
    Tensor r_x = make_tensor<float>(Shape<_3, _2>{});
    move_tile(g_x, r_x);
    y[threadIdx.x] = r_x(0);
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    kernel<<<32, 128, 0, stream>>>(x, y, dims.rows, dims.cols);
    return cudaGetLastError();
}
