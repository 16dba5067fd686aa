// expect: launch_error text="host code touches the device memory of x" task=relu
//
// launch() looks at an input itself. On a GPU that crashes; on the simulator, where device memory
// is the host's own, it must crash as well.
#include "task.h"

__global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    unsigned threads = x[0] < 0.0f ? 128 : 256;
    relu<<<(unsigned)((dims.n + threads - 1) / threads), threads, 0, stream>>>(x, y, dims.n);
    return cudaGetLastError();
}
