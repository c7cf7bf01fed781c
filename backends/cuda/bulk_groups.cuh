/* SPDX-License-Identifier: Apache-2.0 */
/* Products of 8-bit matrices by wgmma, whose operands, residuals and results are moved by the bulk copy
 * engine. A block stays for several tiles. Its warpgroups are one team or two. Those of a team sum parts of
 * 64 rows of the same tile, and read the same operands from a ring of stages; two teams take turns, so that
 * results of one leave while products of the other run. One more warpgroup moves data: its first warp fetches
 * operands, its other warps bring what the epilogue reads and take results away. What is multiplied, where
 * operands lie and what the epilogue is, the files say that include this. */
#ifndef GRT_BACKENDS_CUDA_BULK_GROUPS_CUH
#define GRT_BACKENDS_CUDA_BULK_GROUPS_CUH

#include "backends/cuda/bulk_map.cuh"
#include "backends/cuda/bulk_rows.cuh"
#include "backends/cuda/warpgroup.cuh"

namespace
{

enum { GROUP_ROWS = 64, MOVERS = 3, LANE_COLUMNS = 8, LANES_COLUMNS = 32, MOST_SHARED = 227 << 10 };

/* DOWN_GROUPS x ACROSS_GROUPS warpgroups of a tile, each with 64 rows and N columns, whose results have
 * Y_BYTES each. OUT_BUFFERS: of a group's results. */
template <int TEAMS_OF_BLOCK, int DOWN_GROUPS, int ACROSS_GROUPS, int N, int Y_BYTES, int RING,
          int OUT_BUFFERS>
struct groups {
    enum {
        TEAMS = TEAMS_OF_BLOCK,
        ACROSS = ACROSS_GROUPS,
        PARTS = DOWN_GROUPS * ACROSS_GROUPS, /* of a tile */
        GROUPS = TEAMS * PARTS,
        GROUP_COLUMNS = N,
        ROWS = GROUP_ROWS * DOWN_GROUPS,
        COLUMNS = N * ACROSS_GROUPS,
        SIZE = Y_BYTES,
        STAGES = RING,
        OUTS = OUT_BUFFERS,
        X_STAGE = ROWS * PANEL_ROW,
        W_STAGE = COLUMNS * PANEL_ROW,
        LINE = N * Y_BYTES % PANEL_ROW == 0 ? PANEL_ROW : PANEL_ROW / 2, /* of a panel of results */
        SWIZZLE = LINE / 16 - 1,
        PANELS = N * Y_BYTES / LINE,
        PANEL = GROUP_ROWS * LINE,
        OUT = PANELS * PANEL,
        THREADS = 128 * (GROUPS + 1),
        REGISTERS = GROUPS == 3 ? 152 : 112,
        MOVER_REGISTERS = GROUPS == 3 ? 56 : 32
    };
    static_assert(N % 32 == 0 && N * Y_BYTES % LINE == 0 && ROWS <= 256 && COLUMNS <= 256 &&
                      (GROUPS == 3 || GROUPS == 4),
                  "");
};

/* Shared memory of a block. C: the columns of an epilogue. */
template <class F, class C> struct group_room {
    char x[F::STAGES][F::X_STAGE], w[F::STAGES][F::W_STAGE], out[F::GROUPS][F::OUTS][F::OUT];
    alignas(16) C columns[F::GROUPS][F::OUTS];
    uint64_t full[F::STAGES], empty[F::STAGES], ready[F::GROUPS][F::OUTS], written[F::GROUPS][F::OUTS],
        begun[F::GROUPS], summed[F::TEAMS];
};

struct group_maps {
    CUtensorMap x, w, residual, y;
};

struct group_work {
    int columns, tiles; /* columns: of tiles */
};

template <class F> struct group_tile {
    int row, column;
    __device__ __forceinline__ group_tile(const group_work &work, int tile)
        : row(tile / work.columns * F::ROWS), column(tile % work.columns * F::COLUMNS)
    {
    }
    /* The part of a group. */
    __device__ __forceinline__ group_tile(const group_work &work, int tile, int group)
        : group_tile(work, tile)
    {
        row += group % F::PARTS / F::ACROSS * GROUP_ROWS;
        column += group % F::ACROSS * F::GROUP_COLUMNS;
    }
};

/* Of dynamic shared memory, which is as large as group_room_bytes says. Counted from its begin, as the
 * compiler does not know that a pointer made of a number is one to shared memory. */
template <class R> __device__ __forceinline__ R &group_room_in(char *raw)
{
    return *(R *)(raw + (-shared_address(raw) & (PANEL_ALIGNMENT - 1)));
}
template <class R> constexpr size_t group_room_bytes()
{
    return sizeof(R) + PANEL_ALIGNMENT;
}

/* By all threads, before anything else is done with the room. */
template <class F, class R> __device__ __forceinline__ void begin_groups(const group_maps &maps, R &room)
{
    if (threadIdx.x == F::GROUPS * 128) {
        bulk_map_fetch(&maps.w);
        bulk_map_fetch(&maps.x);
        bulk_map_fetch(&maps.y);
    }
    if (threadIdx.x == 0) {
        for (int i = 0; i < F::STAGES; i++) {
            barrier_init(&room.full[i], 1);
            barrier_init(&room.empty[i], 4 * F::PARTS);
        }
        for (int g = 0; g < F::GROUPS; g++) {
            for (int i = 0; i < F::OUTS; i++) {
                barrier_init(&room.ready[g][i], 32);
                barrier_init(&room.written[g][i], 4);
            }
            barrier_init(&room.begun[g], 1);
        }
        for (int i = 0; i < F::TEAMS; i++)
            barrier_init(&room.summed[i], F::PARTS);
        barrier_init_done();
    }
    __syncthreads();
}

/* A stage of filters from a column on. */
template <class F, class R>
__device__ __forceinline__ void fetch_filters(const group_maps &maps, R &room, int stage, int at, int column)
{
    barrier_expect(&room.full[stage], F::X_STAGE + F::W_STAGE);
    bulk_fetch_filters(room.w[stage], &maps.w, at, column / LANES_COLUMNS, &room.full[stage]);
}

/* ---- what is moved ---- */

/* By a warp: all that a group's epilogue reads. fill(columns, first, lane): columns from the first on. fills:
 * they are not there yet. */
template <class F, class R, class L>
__device__ __forceinline__ void bring_epilogue(const group_maps &maps, R &room, const group_tile<F> &t,
                                               int group, int at, bool fills, bool has_residual,
                                               const L &fill)
{
    uint64_t *ready = &room.ready[group][at];
    if (fills)
        fill(room.columns[group][at], t.column, threadIdx.x % 32);
    if (threadIdx.x % 32 != 0 || !has_residual) {
        barrier_arrive(ready);
        return;
    }
    barrier_expect(ready, F::OUT);
    for (int p = 0; p < F::PANELS; p++)
        bulk_fetch_rows(room.out[group][at] + p * F::PANEL, &maps.residual,
                        t.column + p * (F::LINE / F::SIZE), t.row, ready);
}

template <class F, class R>
__device__ __forceinline__ void take_results(const group_maps &maps, R &room, const group_tile<F> &t,
                                             int group, int at)
{
    if (threadIdx.x % 32 == 0) {
        for (int p = 0; p < F::PANELS; p++)
            bulk_store_rows(&maps.y, room.out[group][at] + p * F::PANEL, t.column + p * (F::LINE / F::SIZE),
                            t.row);
        bulk_store_commit();
        bulk_store_wait_read();
    }
    __syncwarp();
}

/* By a warp: for the groups from `mover` on, each MOVERS-th. */
template <class F, class R, class L>
__device__ __forceinline__ void move_epilogues(const group_work &work, const group_maps &maps, R &room,
                                               int mover, bool has_residual, const L &fill)
{
    const int step = gridDim.x * F::TEAMS;
    const auto first = [](int g) { return (int)(blockIdx.x + g / F::PARTS * gridDim.x); };
    const bool differ = step % work.columns != 0; /* columns of a group's tiles */
    const auto bring = [&](int tile, int g, int at, bool fills) {
        if (tile < work.tiles)
            bring_epilogue(maps, room, group_tile<F>(work, tile, g), g, at, fills, has_residual, fill);
    };
    for (int i = 0; i < F::OUTS; i++)
        for (int g = mover; g < F::GROUPS; g += MOVERS)
            bring(first(g) + i * step, g, i, true);
    ring at = {0, 0};
    for (int begin = 0; (int)blockIdx.x + begin < work.tiles; begin += step, at.next(F::OUTS))
        for (int g = mover; g < F::GROUPS; g += MOVERS) {
            const int tile = first(g) + begin;
            if (tile >= work.tiles)
                continue;
            barrier_wait(&room.written[g][at.at], at.phase);
            take_results(maps, room, group_tile<F>(work, tile, g), g, at.at);
            bring(tile + F::OUTS * step, g, at.at, differ);
        }
}

/* ---- sums ---- */

/* When a group may begin. One team: the first time a little behind the group in front of it, so that results
 * of one leave while products of another run, but not a whole ring behind. Two: when the other team has its
 * last products under way. */
template <class F> struct group_order {
    enum { ALL_BEHIND = (F::STAGES - 1) / (F::GROUPS - 1), BEHIND = ALL_BEHIND > 0 ? ALL_BEHIND : 1 };
    int group;
    bool begins;
    uint32_t phase;

    __device__ __forceinline__ explicit group_order(int of_group) : group(of_group), begins(true), phase(0)
    {
    }
    template <class R> __device__ __forceinline__ void wait(R &room)
    {
        if (F::TEAMS == 1 && begins && group > 0)
            barrier_wait(&room.begun[group], 0);
        if (F::TEAMS == 2 && !(begins && group < F::PARTS)) {
            barrier_wait(&room.summed[group / F::PARTS ^ 1], phase);
            phase ^= 1;
        }
    }
    /* After products of the k-th stage were given to the tensor cores. */
    template <class R> __device__ __forceinline__ void went(R &room, int k, int stages) const
    {
        if (F::TEAMS == 1 && begins && group + 1 < F::GROUPS && k == min(stages, (int)BEHIND) - 1 &&
            threadIdx.x % 128 == 0)
            barrier_arrive(&room.begun[group + 1]);
        if (F::TEAMS == 2 && k == stages - 1 && threadIdx.x % 128 == 0)
            barrier_arrive(&room.summed[group / F::PARTS]);
    }
};

/* Where the p-th 32 bytes of a group's rows lie in a stage: in lines of 128 bytes, or in two panels of 64,
 * one behind the other. */
struct whole_lines {
    enum { PARTS = 4, LINE = PANEL_ROW };
    template <class F> static __device__ __forceinline__ uint64_t part(uint32_t x, int p)
    {
        return panel_descriptor(x + p * 32);
    }
};
struct half_lines { /* the other half is empty */
    enum { PARTS = 2, LINE = PANEL_ROW };
    template <class F> static __device__ __forceinline__ uint64_t part(uint32_t x, int p)
    {
        return panel_descriptor(x + p * 32);
    }
};
struct two_panels {
    enum { PARTS = 4, LINE = PANEL_ROW / 2 };
    template <class F> static __device__ __forceinline__ uint64_t part(uint32_t x, int p)
    {
        return half_panel_descriptor(x + p / 2 * F::X_STAGE / 2 + p % 2 * 32);
    }
};

/* The sums of a group's part of a tile. P::multiply(c, a, b, adds): c (+)= 64 x 32 by 32 x N; P::hold(c):
 * registers stay as they are. X: how rows lie. */
template <class F, class P, class X, class R, class T>
__device__ __forceinline__ void sum_group(int stages, ring &place, R &room, group_order<F> &order,
                                          T (&sum)[F::GROUP_COLUMNS / 8][4])
{
    const auto release = [&](int stage) {
        if (threadIdx.x % 32 == 0)
            barrier_arrive(&room.empty[stage]);
    };
    const uint32_t x_part = order.group % F::PARTS / F::ACROSS * GROUP_ROWS * X::LINE,
                   w_part = order.group % F::ACROSS * F::GROUP_COLUMNS * PANEL_ROW;
    int before = 0;
    order.wait(room);
    for (int k = 0; k < stages; k++) {
        barrier_wait(&room.full[place.at], place.phase);
        const uint32_t x = shared_address(room.x[place.at]) + x_part,
                       w = shared_address(room.w[place.at]) + w_part;
        warpgroup_begin();
#pragma unroll
        for (int p = 0; p < X::PARTS; p++)
            P::multiply(sum, X::template part<F>(x, p), panel_descriptor(w + p * 32), k > 0 || p > 0);
        warpgroup_commit();
        order.went(room, k, stages);
        warpgroup_wait<1>();
        if (k > 0)
            release(before);
        before = place.at;
        place.next(F::STAGES);
    }
    order.begins = false;
    warpgroup_wait<0>();
    release(before);
    P::hold(sum);
}

/* Calls each(out) for each tile of a group; place passes by the stages of the other team's. */
template <class F, class L>
__device__ __forceinline__ void for_tiles_of_group(const group_work &work, int group, int stages, ring &place,
                                                   const L &each)
{
    ring out = {0, 0};
    int turn = 0;
    for (int tile = blockIdx.x; tile < work.tiles; tile += gridDim.x) {
        const bool mine = F::TEAMS == 1 || turn == group / F::PARTS;
        turn ^= 1;
        if (!mine) {
            for (int k = 0; k < stages; k++)
                place.next(F::STAGES);
            continue;
        }
        each(out);
        out.next(F::OUTS);
    }
}

/* ---- results ---- */

__device__ __forceinline__ void copy_register(int32_t from, int32_t &to)
{
    asm volatile("mov.b32 %0, %1;" : "=r"(to) : "r"(from));
}
__device__ __forceinline__ void copy_register(float from, float &to)
{
    asm volatile("mov.b32 %0, %1;" : "=f"(to) : "f"(from));
}

/* Where a lane's eight results lie in a group's buffer: row k (of two) of the q-th 32 columns. */
template <class F> __device__ __forceinline__ char *result_place(char *out, int q, int k)
{
    const int lane = threadIdx.x % 32, column = (q * LANES_COLUMNS + (lane & 3) * LANE_COLUMNS) * F::SIZE,
              row = threadIdx.x % 128 / 32 * 16 + lane / 4 + 8 * k, at = row * F::LINE + column % F::LINE;
    return out + column / F::LINE * F::PANEL + (at ^ (at >> 7 & F::SWIZZLE) << 4);
}

/* The q-th of QUARTERS of a lane's sums, 32 columns, for an end that is a loop over them: where kernels of a
 * model take turns, each begins with none of its code in a multiprocessor's cache, and to fetch four times as
 * much takes longer than to copy. By the assembler: the compiler would choose from all quarters for each
 * number, or write into registers that products sum in, and then let no product begin before the one in front
 * of it has ended. */
template <int QUARTERS, class T>
__device__ __forceinline__ void copy_quarter(const T (&sum)[QUARTERS * 4][4], int q, T (&to)[4][4])
{
#pragma unroll
    for (int from = 0; from < QUARTERS; from++)
        if (q == from)
#pragma unroll
            for (int i = 0; i < 16; i++)
                copy_register(sum[from * 4 + i / 4][i % 4], to[i / 4][i % 4]);
}

/* By a whole group: its results may leave. */
__device__ __forceinline__ void results_written(uint64_t *written)
{
    publish_shared();
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        barrier_arrive(written);
}

/* ---- launching ---- */

/* Tiles of results of BYTES each: 128 x 128 and 128 x 64 by two teams, and one of 192 x 128 or 128 x 192, by
 * which some products have less multiprocessors wait at their end. */
template <int BYTES> using square_groups = groups<2, 2, 1, 128, BYTES, 4, BYTES == 1 ? 2 : 1>;
template <int BYTES> using narrow_groups = groups<2, 2, 1, 64, BYTES, 6, BYTES == 1 ? 2 : 1>;
template <int BYTES> struct large_tile {
    using type = groups<1, 3, 1, 128, 1, 4, 2>;
};
template <> struct large_tile<2> {
    using type = groups<1, 2, 2, 96, 2, 4, 1>;
};
template <int BYTES> using large_groups = typename large_tile<BYTES>::type;
/* 192 x 192, where tiles fill all multiprocessors. */
template <int BYTES> using wide_groups = groups<1, 3, 1, 192, BYTES, 3, 1>;

template <class F> int64_t tiles_of_groups(int64_t rows, int64_t columns)
{
    return (rows + F::ROWS - 1) / F::ROWS * ((columns + F::COLUMNS - 1) / F::COLUMNS);
}

/* Clocks that a tile's end takes besides its sums: little where two teams take turns. */
template <class F> double end_of_groups(bool has_activation)
{
    const double alone = F::GROUP_COLUMNS > 128 ? F::SIZE == 1 ? 40.0 : 20.0 : 16.0, /* of one team */
        hidden = F::SIZE == 1            ? 6.0
                 : F::GROUP_COLUMNS > 64 ? 22.0
                                         : 12.0;
    return F::COLUMNS * (F::TEAMS == 1 ? alone : hidden) * (has_activation ? 2 : 1);
}

/* What 16-bit results take once, where nothing hides the first tile's begin and the last one's end. */
template <class F> constexpr double once_of_groups()
{
    return F::SIZE == 1 || F::TEAMS > 1 ? 0 : F::GROUP_COLUMNS > 128 ? 10500 : 2000;
}

/* Clocks that the busiest multiprocessor takes, roughly, as measured on an H100. A stage is summed, or
 * fetched. part: of a stage, that is summed. */
template <class F>
double cost_of_groups(int64_t tiles, int multiprocessors, int64_t stages, double part, bool has_activation)
{
    const double share = F::GROUP_COLUMNS > 128 ? 1.0 : 0.75, /* of the tensor cores' rate */
        sums = 2.0 / share * F::GROUP_COLUMNS * F::PARTS * part, fetches = (F::X_STAGE + F::W_STAGE) / 46.0,
                 stage = sums > fetches ? sums : fetches;
    const int64_t each = (tiles + multiprocessors - 1) / multiprocessors;
    return once_of_groups<F>() + (double)each * ((double)stages * stage + end_of_groups<F>(has_activation));
}

} // namespace

#endif
