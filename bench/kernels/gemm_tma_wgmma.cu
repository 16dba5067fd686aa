// C = A B^T on Hopper: TMA brings tiles of A and B into swizzled shared memory, three stages ahead;
// two warpgroups multiply them with wgmma. Needs n and k to be multiples of 8, for TMA's strides.
#include "task.h"
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>

using namespace cute;

constexpr int kTileM = 128;
constexpr int kTileN = 128;
constexpr int kTileK = 64;
constexpr int kStages = 3;
constexpr int kThreads = 256; // two warpgroups

using Element = half_t;
using Atom = GMMA::Layout_K_SW128_Atom<Element>;
using SmemLayoutA =
    decltype(tile_to_shape(Atom{}, Shape<Int<kTileM>, Int<kTileK>, Int<kStages>>{}));
using SmemLayoutB =
    decltype(tile_to_shape(Atom{}, Shape<Int<kTileN>, Int<kTileK>, Int<kStages>>{}));
using Mma = decltype(make_tiled_mma(SM90_64x128x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>{},
                                    Layout<Shape<_2, _1, _1>>{}));
static_assert(size(Mma{}) == kThreads);

struct Shared {
    alignas(128) Element a[cosize_v<SmemLayoutA>];
    alignas(128) Element b[cosize_v<SmemLayoutB>];
    uint64_t full[kStages];  // TMA has filled the stage
    uint64_t empty[kStages]; // both warpgroups have read it
};

template <class TmaA, class TmaB>
__global__ __launch_bounds__(kThreads) void gemm_kernel(__grid_constant__ const TmaA tma_a,
                                                           __grid_constant__ const TmaB tma_b,
                                                           half_t *c, int m, int n, int k) {
    extern __shared__ __align__(1024) char raw[];
    Shared &shared = *reinterpret_cast<Shared *>(raw);
    Tensor s_a = make_tensor(make_smem_ptr(shared.a), SmemLayoutA{});
    Tensor s_b = make_tensor(make_smem_ptr(shared.b), SmemLayoutB{});

    // This block's tiles: (tile m, tile k, steps) and (tile n, tile k, steps).
    Tensor a = tma_a.get_tma_tensor(make_shape(m, k));
    Tensor b = tma_b.get_tma_tensor(make_shape(n, k));
    Tensor g_a = local_tile(a, Shape<Int<kTileM>, Int<kTileK>>{}, make_coord(blockIdx.x, _));
    Tensor g_b = local_tile(b, Shape<Int<kTileN>, Int<kTileK>>{}, make_coord(blockIdx.y, _));
    auto parts_a = tma_partition(tma_a, Int<0>{}, Layout<_1>{}, group_modes<0, 2>(s_a),
                                 group_modes<0, 2>(g_a));
    auto parts_b = tma_partition(tma_b, Int<0>{}, Layout<_1>{}, group_modes<0, 2>(s_b),
                                 group_modes<0, 2>(g_b));
    Tensor t_ga = get<0>(parts_a);
    Tensor t_sa = get<1>(parts_a);
    Tensor t_gb = get<0>(parts_b);
    Tensor t_sb = get<1>(parts_b);
    constexpr int kStageBytes = sizeof(Element) * (kTileM + kTileN) * kTileK;

    bool leader = threadIdx.x == 0;
    if (leader) {
        for (int stage = 0; stage < kStages; ++stage) {
            initialize_barrier(shared.full[stage], 1);
            initialize_barrier(shared.empty[stage], kThreads / 128);
        }
        cutlass::arch::fence_barrier_init();
    }
    __syncthreads();

    int steps = size<2>(g_a);
    auto load = [&](int step) {
        int stage = step % kStages;
        set_barrier_transaction_bytes(shared.full[stage], kStageBytes);
        copy(tma_a.with(shared.full[stage]), t_ga(_, step), t_sa(_, stage));
        copy(tma_b.with(shared.full[stage]), t_gb(_, step), t_sb(_, stage));
    };
    if (leader)
        for (int step = 0; step < kStages && step < steps; ++step) load(step);

    Mma mma;
    ThrMMA thr_mma = mma.get_thread_slice(threadIdx.x);
    Tensor coords = make_identity_tensor(Shape<Int<kTileM>, Int<kTileN>>{});
    Tensor t_coords = thr_mma.partition_C(coords);
    Tensor r_a = thr_mma.make_fragment_A(thr_mma.partition_A(s_a));
    Tensor r_b = thr_mma.make_fragment_B(thr_mma.partition_B(s_b));
    Tensor r_c = partition_fragment_C(mma, Shape<Int<kTileM>, Int<kTileN>>{});
    clear(r_c);

    for (int step = 0; step < steps; ++step) {
        int stage = step % kStages, phase = step / kStages & 1;
        wait_barrier(shared.full[stage], phase);
        warpgroup_arrive();
        gemm(mma, r_a(_, _, _, stage), r_b(_, _, _, stage), r_c);
        warpgroup_commit_batch();
        warpgroup_wait<0>();
        if (threadIdx.x % 128 == 0) arrive_barrier(shared.empty[stage]);
        if (leader && step + kStages < steps) {
            wait_barrier(shared.empty[stage], phase);
            load(step + kStages);
        }
    }

    Tensor g_c = make_tensor(make_gmem_ptr(c), make_shape(m, n), make_stride(n, _1{}));
    CUTE_UNROLL
    for (int i = 0; i < size(r_c); ++i) {
        int row = blockIdx.x * kTileM + get<0>(t_coords(i));
        int col = blockIdx.y * kTileN + get<1>(t_coords(i));
        if (row < m && col < n) g_c(row, col) = static_cast<half_t>(r_c(i));
    }
}

extern "C" cudaError_t launch(const __half *a, const __half *b, __half *c, Dims dims,
                              void *workspace, cudaStream_t stream) {
    int m = int(dims.m), n = int(dims.n), k = int(dims.k);
    if (n % 8 != 0 || k % 8 != 0) return cudaErrorInvalidValue;
    Tensor g_a = make_tensor(make_gmem_ptr(reinterpret_cast<const half_t *>(a)), make_shape(m, k),
                             make_stride(k, _1{}));
    Tensor g_b = make_tensor(make_gmem_ptr(reinterpret_cast<const half_t *>(b)), make_shape(n, k),
                             make_stride(k, _1{}));
    auto tma_a = make_tma_atom(SM90_TMA_LOAD{}, g_a, SmemLayoutA{}(_, _, 0),
                               Shape<Int<kTileM>, Int<kTileK>>{});
    auto tma_b = make_tma_atom(SM90_TMA_LOAD{}, g_b, SmemLayoutB{}(_, _, 0),
                               Shape<Int<kTileN>, Int<kTileK>>{});
    auto *kernel = gemm_kernel<decltype(tma_a), decltype(tma_b)>;
    int bytes = int(sizeof(Shared));
    cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (status != cudaSuccess) return status;
    dim3 grid(ceil_div(m, kTileM), ceil_div(n, kTileN));
    kernel<<<grid, kThreads, bytes, stream>>>(tma_a, tma_b, reinterpret_cast<half_t *>(c), m, n,
                                                 k);
    return cudaGetLastError();
}
