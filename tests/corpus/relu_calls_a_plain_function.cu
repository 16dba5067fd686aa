// expect: pass task=relu
//
// A __device__ function that is neither inline nor static: nvcc puts a call of exit() into its
// place in host code, which is no reason to forbid the kernel.
#include "task.h"

__device__ float positive_part(float value) {
    return value < 0.0f ? 0.0f : value;
}

__global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] = positive_part(x[i]);
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    relu<<<(unsigned)((dims.n + 255) / 256), 256, 0, stream>>>(x, y, dims.n);
    return cudaGetLastError();
}
