// exemplar: class=softmax arch=sm_80+
//
// One block a row. The first sweep keeps a running maximum and a sum rescaled to it (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018), so that the row is read twice
// rather than three times; the second reading comes from L2. Rows whose length allows it move in
// 16-byte vectors.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

constexpr int kThreads = 256;  // knob: 128 256 512
constexpr int kWarps = kThreads / 32;

struct MaxSum {
    float max, sum;
};

// The sum of both, relative to the larger maximum. A partial that has seen nothing is (-inf, 0).
CUTE_DEVICE MaxSum merge(MaxSum a, MaxSum b) {
    float max = fmaxf(a.max, b.max);
    if (max == -INFINITY) return {max, 0.0f};
    return {max, a.sum * expf(a.max - max) + b.sum * expf(b.max - max)};
}

CUTE_DEVICE MaxSum warp_merge(MaxSum value) {
    CUTE_UNROLL
    for (int distance = 16; distance > 0; distance /= 2) {
        value = merge(value, {__shfl_xor_sync(0xffffffffu, value.max, distance),
                              __shfl_xor_sync(0xffffffffu, value.sum, distance)});
    }
    return value;
}

template <int kVector>
__global__ __launch_bounds__(kThreads) void softmax_kernel(float const* x, float* y, int64_t cols) {
    int64_t row = blockIdx.x;
    // The row as (vector, thread, step): mode 0 is what one instruction moves.
    auto vectors = cols / kVector;
    auto layout = make_layout(make_shape(Int<kVector>{}, vectors));
    Tensor x_row = make_tensor(make_gmem_ptr(x + row * cols), layout);
    Tensor y_row = make_tensor(make_gmem_ptr(y + row * cols), layout);
    using Atom = Copy_Atom<UniversalCopy<uint_bit_t<kVector * 32>>, float>;
    Tensor fragment = make_tensor<float>(Int<kVector>{});

    MaxSum mine = {-INFINITY, 0.0f};
    for (int64_t v = threadIdx.x; v < vectors; v += kThreads) {
        copy(Atom{}, x_row(_, v), fragment);
        float max = mine.max;
        CUTE_UNROLL
        for (int i = 0; i < kVector; ++i) max = fmaxf(max, fragment(i));
        if (max > -INFINITY) {
            float sum = mine.sum * expf(mine.max - max);
            CUTE_UNROLL
            for (int i = 0; i < kVector; ++i) sum += expf(fragment(i) - max);
            mine = {max, sum};
        }
    }

    __shared__ MaxSum partial[kWarps];
    mine = warp_merge(mine);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = mine;
    __syncthreads();
    MaxSum whole = partial[0];
    for (int warp = 1; warp < kWarps; ++warp) whole = merge(whole, partial[warp]);

    for (int64_t v = threadIdx.x; v < vectors; v += kThreads) {
        copy(Atom{}, x_row(_, v), fragment);
        CUTE_UNROLL
        for (int i = 0; i < kVector; ++i) fragment(i) = expf(fragment(i) - whole.max) / whole.sum;
        copy(Atom{}, fragment, y_row(_, v));
    }
}

extern "C" cudaError_t launch(const float* x, float* y, Dims dims, void* workspace,
                              cudaStream_t stream) {
    unsigned blocks = unsigned(dims.rows);
    if (dims.cols % 4 == 0) {
        softmax_kernel<4><<<blocks, kThreads, 0, stream>>>(x, y, dims.cols);
    } else {
        softmax_kernel<1><<<blocks, kThreads, 0, stream>>>(x, y, dims.cols);
    }
    return cudaGetLastError();
}
