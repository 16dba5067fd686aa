// exemplar: class=elementwise arch=sm_80+
//
// Two inputs, one output, one pass: the kernel is bound by memory, so all it must do is keep
// enough 16-byte accesses in flight. A block owns a tile of kThreads * kValues elements; a full
// tile moves in vectors, the last one element by element under a predicate.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

constexpr int kThreads = 256;  // knob: 128 256 512
constexpr int kValues = 8;     // knob: 4 8 16
constexpr int kTile = kThreads * kValues;

__global__ __launch_bounds__(kThreads) void add_kernel(float const* a, float const* b, float* c,
                                                       int64_t n) {
    int64_t first = int64_t(blockIdx.x) * kTile;
    auto tile_of = [&](auto* data) {
        return make_tensor(make_gmem_ptr(data + first), make_layout(Int<kTile>{}));
    };
    auto tiled_copy = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{},
                                      make_layout(Int<kThreads>{}), make_layout(Int<4>{}));
    auto thread_copy = tiled_copy.get_slice(threadIdx.x);
    Tensor a_part = thread_copy.partition_S(tile_of(a));
    Tensor b_part = thread_copy.partition_S(tile_of(b));
    Tensor c_part = thread_copy.partition_D(tile_of(c));

    if (first + kTile <= n) {
        Tensor a_frag = make_fragment_like(a_part);
        Tensor b_frag = make_fragment_like(b_part);
        copy(tiled_copy, a_part, a_frag);
        copy(tiled_copy, b_part, b_frag);
        CUTE_UNROLL
        for (int i = 0; i < size(a_frag); ++i) a_frag(i) += b_frag(i);
        copy(tiled_copy, a_frag, c_part);
    } else {
        Tensor place = thread_copy.partition_S(make_identity_tensor(Shape<Int<kTile>>{}));
        CUTE_UNROLL
        for (int i = 0; i < size(a_part); ++i) {
            if (first + get<0>(place(i)) < n) c_part(i) = a_part(i) + b_part(i);
        }
    }
}

extern "C" cudaError_t launch(const float* a, const float* b, float* c, Dims dims, void* workspace,
                              cudaStream_t stream) {
    int64_t blocks = ceil_div(dims.n, int64_t(kTile));
    add_kernel<<<unsigned(blocks), kThreads, 0, stream>>>(a, b, c, dims.n);
    return cudaGetLastError();
}
