/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of gemm.h. One warp has operands fetched (gemm_fetch.cuh); each warpgroup sums 64 rows of the
 * block's tile and finishes them in registers (gemm_finish.cuh). Small products split their sum over the
 * blocks of a cluster, which join through distributed shared memory. */
#ifndef GRT_BACKENDS_CUDA_GEMM_TILE_CUH
#define GRT_BACKENDS_CUDA_GEMM_TILE_CUH

#include "backends/cuda/bulk_map.cuh"
#include "backends/cuda/cluster.cuh"
#include "backends/cuda/gemm_fetch.cuh"
#include "backends/cuda/gemm_finish.cuh"
#include "backends/cuda/gemm_strict.cuh"

namespace
{

template <class T, class F, bool ACROSS>
__device__ __forceinline__ void gemm_sum(gemm_room<T, F> &room, int group, int steps, bool adds_bias,
                                         ring &place, float (&sum)[F::COLUMNS / 8][4])
{
    const auto release = [&](int stage) {
        if (threadIdx.x % 32 == 0)
            barrier_arrive(&room.empty[stage]);
    };
    int before = 0;
    barrier_wait(&room.full[place.at], place.phase);
    gemm_begin_sums<T, F::COLUMNS>(adds_bias ? room.bias[place.at] : nullptr, sum);
    warpgroup_hold<F::COLUMNS>(sum);
    for (int k = 0; k < steps; k++) {
        barrier_wait(&room.full[place.at], place.phase);
        const uint32_t x = shared_address(room.x[place.at]) + group * GEMM_ROWS * PANEL_ROW,
                       w = shared_address(room.w[place.at]);
        warpgroup_begin();
#pragma unroll
        for (int p = 0; p < PANEL_ROW / PRODUCT_BYTES; p++)
            gemm_panels<T, F::COLUMNS, ACROSS>::multiply(
                sum, gemm_panel_descriptor<false>(x + p * PRODUCT_BYTES),
                gemm_panel_descriptor<ACROSS>(w + p * (ACROSS ? 16 * PANEL_ROW : PRODUCT_BYTES)));
        warpgroup_commit();
        warpgroup_wait<1>();
        if (k > 0)
            release(before);
        before = place.at;
        place.next(F::STAGES);
    }
    warpgroup_wait<0>();
    warpgroup_hold<F::COLUMNS>(sum);
    release(before);
}

/* The cluster's blocks each get the sums of some columns from all. */
template <class T, class F, gemm_end END>
__device__ __forceinline__ void gemm_join(const gemm_work &work, gemm_room<T, F> &room, int rank, int row,
                                          int column, float (&sum)[F::COLUMNS / 8][4])
{
    enum { EIGHTS = F::COLUMNS / 8 };
    const int share = EIGHTS / work.splits;
    const uint32_t mine = shared_address(&room) + (rank * share * F::MEMBERS + threadIdx.x) * 16;
    cluster_arrive_only();
    cluster_wait(); /* no block needs its stages any longer */
    uint32_t there = 0;
    int left = 0, owner = 0;
#pragma unroll
    for (int i = 0; i < EIGHTS; i++) {
        if (left == 0) {
            asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(mine), "r"(owner));
            owner++;
            left = share;
        }
        asm volatile("st.shared::cluster.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(there), "f"(sum[i][0]),
                     "f"(sum[i][1]), "f"(sum[i][2]), "f"(sum[i][3])
                     : "memory");
        there += F::MEMBERS * 16;
        left--;
    }
    cluster_arrive();
    cluster_wait();
    for (int i = 0; i < share; i++) {
        float all[1][4] = {};
        for (int s = 0; s < work.splits; s++) {
            const float4 v = ((const float4 *)&room)[(s * share + i) * F::MEMBERS + threadIdx.x];
            all[0][0] += v.x;
            all[0][1] += v.y;
            all[0][2] += v.z;
            all[0][3] += v.w;
        }
        const int at = column + (rank * share + i) * 8;
        if constexpr (F::IS_STRICT)
            gemm_mend(work, row, at, all);
        gemm_finish_pair<T, F, END>(work, row, at, all[0]);
    }
}

template <class T, class F, bool ACROSS, gemm_end END, bool SPLIT>
__device__ __forceinline__ void gemm_multiply(const gemm_work &work, gemm_room<T, F> &room, int rank,
                                              int first_tile, int tile_step)
{
    const int group = threadIdx.x / 128, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const gemm_part part(work, rank);
    char *out = room.out[sizeof(T) == 2 ? warp : 0];
    using results = gemm_out<T, F, END>;
    const typename results::lines_type lines;
    ring place = {0, 0}, low = {0, 0};
    overlap_wait();
    overlap_let_next_begin(); /* not before: kernels that wait in a row take each other's places */
    for (int tile = first_tile; tile < work.tiles; tile += tile_step) {
        const gemm_place<F> t(work, tile);
        const int row = t.row + warp * WARP_ROWS;
        float sum[F::COLUMNS / 8][4];
        typename results::residual_type residual;
        if constexpr (!SPLIT)
            results::begin(work, lines, row, t.column, residual);
        if constexpr (F::IS_STRICT)
            gemm_strict_sum<F>(room, part.end - part.begin, work.bias && rank == 0, place, low, sum);
        else
            gemm_sum<T, F, ACROSS>(room, group, part.end - part.begin, work.bias && rank == 0, place, sum);
        if constexpr (SPLIT) {
            gemm_join<T, F, END>(work, room, rank, row + lane / 4, t.column, sum);
        } else {
            if constexpr (F::IS_STRICT)
                gemm_mend(work, row + lane / 4, t.column, sum);
#pragma unroll
            for (int p = 0; p < F::PANELS; p++)
                results::finish(work, lines, out, row, t.column + p * F::PANEL_COLUMNS,
                                sum + p * F::PANEL_CHUNKS, p + 1 == F::PANELS, residual);
        }
    }
}

template <class T, class F, bool ACROSS, gemm_end END, bool SPLIT>
__global__ void __launch_bounds__(F::THREADS, F::BLOCKS)
    gemm_kernel(const __grid_constant__ gemm_work work, const __grid_constant__ gemm_maps maps)
{
    extern __shared__ __align__(PANEL_ALIGNMENT) char gemm_raw[];
    gemm_room<T, F> &room = *(gemm_room<T, F> *)gemm_raw;
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0), rank = SPLIT ? (int)cluster_rank() : 0,
              first_tile = SPLIT ? blockIdx.x / work.splits : blockIdx.x,
              tile_step = SPLIT ? work.tiles : gridDim.x;
    if (threadIdx.x == F::MEMBERS) {
        bulk_map_fetch(&maps.w);
        bulk_map_fetch(&maps.x);
    }
    if (threadIdx.x == 0) {
        for (int i = 0; i < F::STAGES; i++) {
            barrier_init(&room.full[i], 1);
            barrier_init(&room.empty[i], F::MEMBERS / 32);
        }
        barrier_init_done();
    }
    __syncthreads();
    if (warp < F::MEMBERS / 32) {
        if constexpr (F::IS_WIDE)
            warpgroup_take_registers<F::REGISTERS>();
        gemm_multiply<T, F, ACROSS, END, SPLIT>(work, room, rank, first_tile, tile_step);
    } else {
        if constexpr (F::IS_WIDE)
            warpgroup_leave_registers<40>();
        if (threadIdx.x == F::MEMBERS)
            gemm_fetch<T, F, ACROSS>(work, maps, room, rank, first_tile, tile_step);
    }
}

} // namespace

#endif
