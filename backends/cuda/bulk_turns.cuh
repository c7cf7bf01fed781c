/* SPDX-License-Identifier: Apache-2.0 */
/* Products of 8-bit matrices by wgmma, whose operands, residuals and results are moved by the bulk copy
 * engine. A block stays for several tiles of 128 rows. One warp has operands fetched into a ring of stages, a
 * second one residuals; two warpgroups take turns, so that results of one leave while products of the other
 * run. What is multiplied, where operands lie and what the epilogue is, the files say that include this. */
#ifndef GRT_BACKENDS_CUDA_BULK_TURNS_CUH
#define GRT_BACKENDS_CUDA_BULK_TURNS_CUH

#include "backends/cuda/bulk_rows.cuh"
#include "backends/cuda/warpgroup.cuh"

namespace
{

enum { TURN_ROWS = 128, TURN_HALF = 64, TURNS = 2, LANE_COLUMNS = 8, LANES_COLUMNS = 32 };

/* COLUMNS: of a tile, and of its results, each of Y_BYTES. */
template <int COLUMNS_OF_TILE, int Y_BYTES> struct turns {
    enum {
        COLUMNS = COLUMNS_OF_TILE,
        SIZE = Y_BYTES,
        X_STAGE = TURN_ROWS * PANEL_ROW,
        W_STAGE = COLUMNS * PANEL_ROW,
        STAGES = COLUMNS == 64  ? 7
                 : Y_BYTES == 1 ? 5
                                : 4,
        LINE = COLUMNS * Y_BYTES < PANEL_ROW ? COLUMNS * Y_BYTES : PANEL_ROW, /* of a panel of results */
        SWIZZLE = LINE / 16 - 1,
        PANELS = COLUMNS * Y_BYTES / LINE,
        PANEL = TURN_HALF * LINE,
        OUT = 2 * PANELS * PANEL,
        THREADS = 128 * (TURNS + 1)
    };
};

/* Shared memory of a block. C: the columns of the epilogue, of both turns. */
template <class F, class C> struct turn_room {
    char x[F::STAGES][F::X_STAGE], w[F::STAGES][F::W_STAGE], out[TURNS][F::OUT];
    alignas(16) C columns;
    uint64_t full[F::STAGES], empty[F::STAGES], residual_full[TURNS], out_empty[TURNS], summed[TURNS];
};

struct turn_maps {
    CUtensorMap x, w, residual, y;
};

struct turn_work {
    int columns, tiles; /* columns: of tiles */
};

template <class F> struct turn_tile {
    int row, column;
    __device__ __forceinline__ turn_tile(const turn_work &work, int tile)
        : row(tile / work.columns * TURN_ROWS), column(tile % work.columns * F::COLUMNS)
    {
    }
};

/* Of dynamic shared memory, which is as large as turn_room_bytes says. */
template <class R> __device__ __forceinline__ R &turn_room_in(char *raw)
{
    return *(R *)(((uintptr_t)raw + PANEL_ALIGNMENT - 1) / PANEL_ALIGNMENT * PANEL_ALIGNMENT);
}
template <class R> constexpr size_t turn_room_bytes()
{
    return sizeof(R) + PANEL_ALIGNMENT;
}

/* By all threads, before anything else is done with the room. */
template <class F, class R> __device__ __forceinline__ void begin_turns(R &room)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < F::STAGES; i++) {
            barrier_init(&room.full[i], 1);
            barrier_init(&room.empty[i], 4);
        }
        for (int i = 0; i < TURNS; i++) {
            barrier_init(&room.residual_full[i], 1);
            barrier_init(&room.out_empty[i], 1);
            barrier_init(&room.summed[i], 1);
        }
        barrier_init_done();
    }
    __syncthreads();
}

/* ---- what is fetched ---- */

template <class F, class R>
__device__ __forceinline__ void fetch_residuals(const turn_work &work, const turn_maps &maps, R &room)
{
    int turn = 0;
    uint32_t phase = 1;
    for (int tile = blockIdx.x; tile < work.tiles; tile += gridDim.x) {
        const turn_tile<F> t(work, tile);
        barrier_wait(&room.out_empty[turn], phase);
        barrier_expect(&room.residual_full[turn], F::OUT);
        for (int half = 0; half < 2; half++)
            for (int p = 0; p < F::PANELS; p++)
                bulk_fetch_rows(room.out[turn] + (half * F::PANELS + p) * F::PANEL, &maps.residual,
                                t.column + p * (F::LINE / F::SIZE), t.row + half * TURN_HALF,
                                &room.residual_full[turn]);
        turn ^= 1;
        phase ^= turn == 0;
    }
}

/* ---- sums ---- */

/* P::multiply(c, a, b, adds): c (+)= 64 x 32 by 32 x COLUMNS; P::hold(c): registers stay as they are. PARTS:
 * 32s of bytes of a stage that matter. */
template <class F, class P, int PARTS, class R, class T>
__device__ __forceinline__ void sum_stages(int stages, ring &place, R &room, uint64_t *summed,
                                           T (&sum)[2][F::COLUMNS / 8][4])
{
    const auto release = [&](int stage) {
        if (threadIdx.x % 32 == 0)
            barrier_arrive(&room.empty[stage]);
    };
    int before = 0;
    for (int k = 0; k < stages; k++) {
        barrier_wait(&room.full[place.at], place.phase);
        const uint32_t x = shared_address(room.x[place.at]), w = shared_address(room.w[place.at]);
        warpgroup_begin();
#pragma unroll
        for (int p = 0; p < PARTS; p++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                P::multiply(sum[half], panel_descriptor(x + half * TURN_HALF * PANEL_ROW + p * 32),
                            panel_descriptor(w + p * 32), k > 0 || p > 0);
        warpgroup_commit();
        warpgroup_wait<1>();
        if (k > 0)
            release(before);
        before = place.at;
        place.next(F::STAGES);
    }
    if (threadIdx.x % 128 == 0)
        barrier_arrive(summed);
    warpgroup_wait<0>();
    release(before);
    P::hold(sum[0]);
    P::hold(sum[1]);
}

/* ---- results ---- */

/* Of a warpgroup alone. */
__device__ __forceinline__ void group_sync(int group)
{
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}

/* By the first thread of a group. */
template <class F>
__device__ __forceinline__ void store_half(const turn_maps &maps, const char *out, const turn_tile<F> &t,
                                           int half)
{
    for (int p = 0; p < F::PANELS; p++)
        bulk_store_rows(&maps.y, out + p * F::PANEL, t.column + p * (F::LINE / F::SIZE),
                        t.row + half * TURN_HALF);
    bulk_store_commit();
}

/* ---- launching ---- */

template <class F> int64_t tiles_of_turns(int64_t rows, int64_t columns)
{
    return (rows + TURN_ROWS - 1) / TURN_ROWS * ((columns + F::COLUMNS - 1) / F::COLUMNS);
}

/* Clocks that the busiest multiprocessor takes, roughly: stages are summed at the tensor cores' rate or
 * fetched at L2's, and results leave meanwhile. part: of a stage, that is summed. */
template <class F>
double cost_of_turns(int64_t tiles, int multiprocessors, int64_t stages, double part, bool has_activation)
{
    const int64_t each = (tiles + multiprocessors - 1) / multiprocessors;
    const double sums = 4.0 * F::COLUMNS * part, fetches = (F::X_STAGE + F::W_STAGE) / 48.0,
                 loop = (double)stages * (sums > fetches ? sums : fetches),
                 leave = F::COLUMNS * (has_activation ? 28.0 : 16.0),
                 in_turns = (double)((each + 1) / 2) * (loop + leave), summed = (double)each * loop + leave;
    return in_turns > summed ? in_turns : summed;
}

} // namespace

#endif
