// exemplar: class=gemm arch=sm_80+
//
// C = A * B in f32 on the FMA pipes, C, A, B row-major. CuTe takes B as (N, K), here with N
// contiguous. A block computes a kTileM x kTileN tile of C; the next K tile travels from global
// memory to registers while the present one is multiplied out of shared memory. Loads outside
// the matrices are zeros, so any shape works; stores are masked.
#include "task.h"

#include <cute/tensor.hpp>

using namespace cute;

constexpr int kTileM = 128;  // knob: 64 128
constexpr int kTileN = 128;  // knob: 64 128
constexpr int kTileK = 8;    // knob: 8 16
constexpr int kThreads = 256;

using TileShape = Shape<Int<kTileM>, Int<kTileN>, Int<kTileK>>;

// 16 x 16 threads; in M and N each owns runs of four neighbours, so that shared memory is read in
// 16-byte vectors.
using Runs = Layout<Shape<_16, _4>, Stride<_4, _1>>;
using Mma = decltype(make_tiled_mma(UniversalFMA<float, float, float>{},
                                    Layout<Shape<_16, _16, _1>>{}, Tile<Runs, Runs, _1>{}));

// Neighbouring threads read neighbouring addresses: K runs fastest in A, N in B.
using CopyA = decltype(make_tiled_copy(Copy_Atom<UniversalCopy<float>, float>{},
                                       Layout<Shape<_32, _8>, Stride<_8, _1>>{}));
using CopyB = decltype(make_tiled_copy(Copy_Atom<UniversalCopy<float>, float>{},
                                       Layout<Shape<_32, _8>, Stride<_1, _32>>{}));

// The pad of four keeps rows 16-byte aligned and spreads a K column over the banks.
using SmemA = Layout<Shape<Int<kTileM>, Int<kTileK>>, Stride<_1, Int<kTileM + 4>>>;
using SmemB = Layout<Shape<Int<kTileN>, Int<kTileK>>, Stride<_1, Int<kTileN + 4>>>;

// Copies one K tile into registers, zeros where `place` lies outside `limit`.
template <class Global, class Place, class Limit, class Fragment>
CUTE_DEVICE void load_tile(Global const& global, Place const& place, Limit const& limit,
                           Fragment& fragment) {
    CUTE_UNROLL
    for (int i = 0; i < size(fragment); ++i) {
        fragment(i) = elem_less(place(i), limit) ? global(i) : 0.0f;
    }
}

__global__ __launch_bounds__(kThreads) void sgemm_kernel(float const* a, float const* b, float* c,
                                                         int m, int n, int k) {
    Tensor mat_a = make_tensor(make_gmem_ptr(a), make_shape(m, k), make_stride(int64_t(k), _1{}));
    Tensor mat_b = make_tensor(make_gmem_ptr(b), make_shape(n, k), make_stride(_1{}, int64_t(n)));
    Tensor mat_c = make_tensor(make_gmem_ptr(c), make_shape(m, n), make_stride(int64_t(n), _1{}));

    auto tile = make_coord(int(blockIdx.x), int(blockIdx.y), _);
    Tensor g_a = local_tile(mat_a, TileShape{}, tile, Step<_1, X, _1>{});  // (M, K, tiles)
    Tensor g_b = local_tile(mat_b, TileShape{}, tile, Step<X, _1, _1>{});  // (N, K, tiles)
    Tensor g_c = local_tile(mat_c, TileShape{}, tile, Step<_1, _1, X>{});  // (M, N)
    // The same tiles of coordinates tell what lies inside the matrices.
    Tensor at_a = local_tile(make_identity_tensor(shape(mat_a)), TileShape{}, tile, Step<_1, X, _1>{});
    Tensor at_b = local_tile(make_identity_tensor(shape(mat_b)), TileShape{}, tile, Step<X, _1, _1>{});
    Tensor at_c = local_tile(make_identity_tensor(shape(mat_c)), TileShape{}, tile, Step<_1, _1, X>{});

    __shared__ alignas(16) float smem_a[cosize_v<SmemA>];
    __shared__ alignas(16) float smem_b[cosize_v<SmemB>];
    Tensor s_a = make_tensor(make_smem_ptr(smem_a), SmemA{});
    Tensor s_b = make_tensor(make_smem_ptr(smem_b), SmemB{});

    auto copy_a = CopyA{}.get_slice(threadIdx.x);
    auto copy_b = CopyB{}.get_slice(threadIdx.x);
    Tensor from_a = copy_a.partition_S(g_a);
    Tensor from_b = copy_b.partition_S(g_b);
    Tensor place_a = copy_a.partition_S(at_a);
    Tensor place_b = copy_b.partition_S(at_b);
    Tensor to_a = copy_a.partition_D(s_a);
    Tensor to_b = copy_b.partition_D(s_b);
    Tensor next_a = make_fragment_like(to_a);
    Tensor next_b = make_fragment_like(to_b);

    auto mma = Mma{}.get_slice(threadIdx.x);
    Tensor mul_a = mma.partition_A(s_a);
    Tensor mul_b = mma.partition_B(s_b);
    Tensor out_c = mma.partition_C(g_c);
    Tensor place_c = mma.partition_C(at_c);
    Tensor sum = mma.make_fragment_C(out_c);
    clear(sum);

    int tiles = size<2>(g_a);
    load_tile(from_a(_, _, _, 0), place_a(_, _, _, 0), shape(mat_a), next_a);
    load_tile(from_b(_, _, _, 0), place_b(_, _, _, 0), shape(mat_b), next_b);
    for (int t = 0; t < tiles; ++t) {
        __syncthreads();  // the previous tile has been used by all
        copy(next_a, to_a);
        copy(next_b, to_b);
        __syncthreads();
        if (t + 1 < tiles) {
            load_tile(from_a(_, _, _, t + 1), place_a(_, _, _, t + 1), shape(mat_a), next_a);
            load_tile(from_b(_, _, _, t + 1), place_b(_, _, _, t + 1), shape(mat_b), next_b);
        }
        gemm(Mma{}, mul_a, mul_b, sum);
    }

    CUTE_UNROLL
    for (int i = 0; i < size(sum); ++i) {
        if (elem_less(place_c(i), shape(mat_c))) out_c(i) = sum(i);
    }
}

extern "C" cudaError_t launch(const float* a, const float* b, float* c, Dims dims, void* workspace,
                              cudaStream_t stream) {
    dim3 grid(unsigned(ceil_div(dims.m, int64_t(kTileM))), unsigned(ceil_div(dims.n, int64_t(kTileN))));
    sgemm_kernel<<<grid, kThreads, 0, stream>>>(a, b, c, int(dims.m), int(dims.n), int(dims.k));
    return cudaGetLastError();
}
