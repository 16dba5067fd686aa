// exemplar: class=elementwise arch=sm_80+
//
// One input, one output, one pass: bound by memory. A block owns a tile of kThreads * kValues
// elements; a full tile moves in 16-byte vectors, the last one element by element under a
// predicate. NaN passes through, as it does in the reference.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

constexpr int kThreads = 256;  // knob: 128 256 512
constexpr int kValues = 8;     // knob: 4 8 16
constexpr int kTile = kThreads * kValues;

CUTE_DEVICE float activate(float x) { return x < 0.0f ? 0.0f : x; }

__global__ __launch_bounds__(kThreads) void relu_kernel(float const* x, float* y, int64_t n) {
    int64_t first = int64_t(blockIdx.x) * kTile;
    auto tile_of = [&](auto* data) {
        return make_tensor(make_gmem_ptr(data + first), make_layout(Int<kTile>{}));
    };
    auto tiled_copy = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{},
                                      make_layout(Int<kThreads>{}), make_layout(Int<4>{}));
    auto thread_copy = tiled_copy.get_slice(threadIdx.x);
    Tensor x_part = thread_copy.partition_S(tile_of(x));
    Tensor y_part = thread_copy.partition_D(tile_of(y));

    if (first + kTile <= n) {
        Tensor fragment = make_fragment_like(x_part);
        copy(tiled_copy, x_part, fragment);
        CUTE_UNROLL
        for (int i = 0; i < size(fragment); ++i) fragment(i) = activate(fragment(i));
        copy(tiled_copy, fragment, y_part);
    } else {
        Tensor place = thread_copy.partition_S(make_identity_tensor(Shape<Int<kTile>>{}));
        CUTE_UNROLL
        for (int i = 0; i < size(x_part); ++i) {
            if (first + get<0>(place(i)) < n) y_part(i) = activate(x_part(i));
        }
    }
}

extern "C" cudaError_t launch(const float* x, float* y, Dims dims, void* workspace,
                              cudaStream_t stream) {
    int64_t blocks = ceil_div(dims.n, int64_t(kTile));
    relu_kernel<<<unsigned(blocks), kThreads, 0, stream>>>(x, y, dims.n);
    return cudaGetLastError();
}
