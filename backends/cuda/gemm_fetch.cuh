/* SPDX-License-Identifier: Apache-2.0 */
/* One thread of gemm.h's kernel has operands fetched by the bulk copy engine into a ring of stages. */
#ifndef GRT_BACKENDS_CUDA_GEMM_FETCH_CUH
#define GRT_BACKENDS_CUDA_GEMM_FETCH_CUH

#include "backends/cuda/bulk_rows.cuh"
#include "backends/cuda/gemm_work.cuh"
#include "backends/cuda/overlap.cuh"

namespace
{

static __device__ __forceinline__ void gemm_fetch_taps(void *to, const CUtensorMap *map, int channel, int tap,
                                                       int column, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
                 "{%3,%4,%5}], [%2];" ::"r"(shared_address(to)),
                 "l"(map), "r"(shared_address(barrier)), "r"(channel), "r"(tap), "r"(column)
                 : "memory");
}

static __device__ __forceinline__ void gemm_fetch_bytes(void *to, const void *from, uint32_t bytes,
                                                        uint64_t *barrier)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
}

/* The steps of the sum one after the other: which tap, which channels. */
template <class T> struct gemm_step {
    int tap, channel;
    __device__ __forceinline__ gemm_step(const gemm_work &work, int step)
        : tap(step / work.per_tap), channel((step - tap * work.per_tap) * gemm_depth<T>)
    {
    }
    __device__ __forceinline__ void next(const gemm_work &work)
    {
        channel += gemm_depth<T>;
        if (channel == work.per_tap * gemm_depth<T>) {
            channel = 0;
            tap++;
        }
    }
};

/* Weights, and a tile's bias with its first ones. */
template <class T, class F, bool ACROSS>
__device__ __forceinline__ void gemm_fetch_weights(const gemm_work &work, const gemm_maps &maps,
                                                   gemm_room<T, F> &room, int stage, gemm_step<T> at,
                                                   int column, bool has_bias)
{
    uint64_t *full = &room.full[stage];
    const uint32_t bias_bytes = has_bias ? min((int)F::COLUMNS, work.columns - column) * (int)sizeof(T) : 0;
    barrier_expect(full, F::X_STAGE + F::W_STAGE + bias_bytes);
    if (has_bias)
        gemm_fetch_bytes(room.bias[stage], (const T *)work.bias + column, bias_bytes, full);
    if constexpr (ACROSS)
#pragma unroll
        for (int p = 0; p < F::COLUMNS / 64; p++)
            bulk_fetch_rows(room.w[stage] + p * ACROSS_PANEL, &maps.w, column + p * 64, at.channel, full);
    else
        gemm_fetch_taps(room.w[stage], &maps.w, at.channel, at.tap, column, full);
}

/* Into the L2 cache. */
template <class T, class F, bool ACROSS>
__device__ __forceinline__ void gemm_prefetch_weights(const gemm_maps &maps, gemm_step<T> at, int column)
{
    if constexpr (ACROSS)
#pragma unroll
        for (int p = 0; p < F::COLUMNS / 64; p++)
            asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1,%2}];" ::"l"(&maps.w),
                         "r"(column + p * 64), "r"(at.channel)
                         : "memory");
    else
        asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%0, {%1,%2,%3}];" ::"l"(&maps.w),
                     "r"(at.channel), "r"(at.tap), "r"(column)
                     : "memory");
}

template <class T, class F, bool ACROSS>
__device__ __forceinline__ void gemm_fetch(const gemm_work &work, const gemm_maps &maps,
                                           gemm_room<T, F> &room, int rank, int first_tile, int tile_step)
{
    const gemm_part part(work, rank);
    const bool adds_bias = work.bias && rank == 0;
    int ahead = 0;
    if (work.is_constant) { /* weights come while the kernel in front of this one still writes x */
        gemm_step<T> at(work, part.begin);
        ahead = min(part.end - part.begin, (int)F::STAGES);
        for (int k = 0; k < ahead; k++, at.next(work))
            gemm_fetch_weights<T, F, ACROSS>(work, maps, room, k, at, gemm_place<F>(work, first_tile).column,
                                             adds_bias && k == 0);
        const gemm_place<F> first(work, first_tile);
        if (work.is_early && first.row == 0) /* what the ring has no room for */
            for (int k = part.begin + ahead; k < part.end; k++, at.next(work))
                gemm_prefetch_weights<T, F, ACROSS>(maps, at, first.column);
    }
    overlap_wait();
    overlap_let_next_begin();
    ring place = {0, 0};
    for (int tile = first_tile; tile < work.tiles; tile += tile_step) {
        const gemm_place<F> t(work, tile);
        const int line = work.by_line(t.row), image = work.by_lines(line),
                  down = (line - image * work.lines) * work.stride[0] - work.begin[0],
                  right = (t.row - line * work.line) * work.stride[1] - work.begin[1];
        gemm_step<T> at(work, part.begin);
        for (int k = part.begin; k < part.end; k++, at.next(work), place.next(F::STAGES)) {
            uint64_t *full = &room.full[place.at];
            if (--ahead < 0) {
                barrier_wait(&room.empty[place.at], place.phase ^ 1);
                gemm_fetch_weights<T, F, ACROSS>(work, maps, room, place.at, at, t.column,
                                                 adds_bias && k == part.begin);
            }
            if (work.is_windows) {
                const int tap_down = at.tap / work.taps_right,
                          tap_right = at.tap - tap_down * work.taps_right;
                bulk_fetch_windows(room.x[place.at], &maps.x, at.channel, right, down, image,
                                   tap_right * work.dilation[1], tap_down * work.dilation[0], full);
            } else {
                bulk_fetch_rows(room.x[place.at], &maps.x, at.channel, t.row, full);
            }
        }
    }
}

} // namespace

#endif
