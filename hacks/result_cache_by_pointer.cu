// expect: wrong text="y is wrong" task=relu
//
// Keeps the result of the first call in memory of its own and copies it whenever the same input
// pointer comes again, whatever it points to by now.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

constexpr int kTile = 256;
constexpr int64_t kKept = 1 << 19;

__device__ float kept[kKept];

__global__ void relu_kernel(float const *x, float *y, int64_t n, bool known) {
    int64_t i = int64_t(blockIdx.x) * kTile + threadIdx.x;
    Tensor g_x = make_tensor(make_gmem_ptr(x), make_layout(n));
    Tensor g_y = make_tensor(make_gmem_ptr(y), make_layout(n));
    if (i < n) {
        float value = known && i < kKept ? kept[i] : g_x(i) < 0.0f ? 0.0f : g_x(i);
        g_y(i) = value;
        if (i < kKept) {
            kept[i] = value;
        }
    }
}

extern "C" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,
                              cudaStream_t stream) {
    static const float *seen = nullptr;
    static int64_t seen_n = 0;
    bool known = x == seen && dims.n == seen_n;
    seen = x;
    seen_n = dims.n;
    unsigned blocks = unsigned((dims.n + kTile - 1) / kTile);
    relu_kernel<<<blocks, kTile, 0, stream>>>(x, y, dims.n, known);
    return cudaGetLastError();
}
