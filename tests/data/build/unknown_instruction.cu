#include "task.h"
#include <cute/tensor.hpp>
using namespace cute;

__global__ void kernel(const float *x, float *y, int64_t rows, int64_t cols) {
    float v = x[threadIdx.x];
    asm volatile("fma.rn.f32x3 %0, %0, %0, %0;" : "+f"(v)); // <- error
    y[threadIdx.x] = v;
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    kernel<<<32, 128, 0, stream>>>(x, y, dims.rows, dims.cols);
    return cudaGetLastError();
}
