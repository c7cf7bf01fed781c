/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel of gemm.h is given: its form, shared memory, the product and its tiles. */
#ifndef GRT_BACKENDS_CUDA_GEMM_WORK_CUH
#define GRT_BACKENDS_CUDA_GEMM_WORK_CUH

#include "backends/cuda/divider.cuh"
#include "backends/cuda/gemm_panels.cuh"
#include "backends/cuda/gemm_weave.h"

namespace
{

enum { GEMM_ROWS = 64 /* of a warpgroup */, WARP_ROWS = 16, PRODUCT_BYTES = 32 /* of the sum */ };

/* How results are activated: by bounds; by GELU in registers; by any activation of the list, 16-bit results
 * on their way through shared memory; by bounds, and woven (gemm_weave.h). Split sums are activated as they
 * are joined, whatever it is, unless they are woven. Kernels that need not know of weaving do not: with it
 * their code is up to half longer, and ResNet-50 of one image takes 2 to 3 % more time. */
enum gemm_end { GEMM_BOUNDS, GEMM_GELU, GEMM_CURVED, GEMM_WOVEN };

/* Numbers of a stage's sum. */
template <class T> constexpr int gemm_depth = PANEL_ROW / (int)sizeof(T);

/* GROUPS warpgroups with 64 rows each, N columns, BLOCKS of them on a multiprocessor. */
template <int GROUPS_OF_BLOCK, int N, int STAGES_OF_RING, int BLOCKS_OF_PROCESSOR, bool STRICT = false>
struct gemm_form {
    enum {
        IS_STRICT = STRICT,
        GROUPS = GROUPS_OF_BLOCK,
        COLUMNS = N,
        STAGES = STAGES_OF_RING,
        BLOCKS = BLOCKS_OF_PROCESSOR,
        ROWS = GROUPS * GEMM_ROWS,
        X_STAGE = ROWS * PANEL_ROW,
        W_STAGE = N * PANEL_ROW,
        MEMBERS = GROUPS * 128,              /* threads that sum */
        IS_WIDE = N >= (STRICT ? 128 : 192), /* more registers than are launched */
        THREADS = MEMBERS + (IS_WIDE ? 128 : 32),
        REGISTERS = GROUPS == 3   ? 152
                    : !STRICT     ? 208
                    : GROUPS == 2 ? 224
                                  : 216,
        PANEL_COLUMNS = N < 64 ? N : 64, /* of results, that a warp has at once */
        PANEL_CHUNKS = PANEL_COLUMNS / 8,
        PANELS = N / PANEL_COLUMNS,
        READS = PANEL_CHUNKS / 2 /* of 16 bytes by each lane */
    };
    static_assert(ROWS * N * 4 <= STAGES * (X_STAGE + W_STAGE), "");
};

/* Of strict float32: what TF32 drops of the weights that are multiplied and of the next. */
template <class F, bool STRICT> struct gemm_low {
    char w_low[2][F::W_STAGE];
};
template <class F> struct gemm_low<F, false> {
};

template <class T, class F> struct gemm_room : gemm_low<F, F::IS_STRICT> {
    enum { WARPS = sizeof(T) == 2 ? F::MEMBERS / 32 : 0 /* whose results go by way of `out` */ };
    char x[F::STAGES][F::X_STAGE],
        w[F::STAGES][F::W_STAGE]; /* then, of split sums, the parts that are joined */
    char out[WARPS > 0 ? WARPS : 1][WARPS > 0 ? WARP_ROWS *PANEL_ROW : 16];
    char bias[F::STAGES][F::COLUMNS * sizeof(T)]; /* comes with a tile's first stage */
    uint64_t full[F::STAGES], empty[F::STAGES];
};

struct gemm_maps {
    CUtensorMap x, w;
};

struct gemm_work {
    int rows, columns, tiles, across; /* across: tiles side by side */
    int steps, per_tap, taps_right, splits;
    int line, lines; /* windows: of a result, in pixels; of an image */
    int stride[2], begin[2], dilation[2];
    divider by_across, by_line, by_lines;
    bool is_windows, is_constant, is_early; /* early: it may begin before the kernel in front has ended */
    uint32_t low, high;                     /* bounds, each twice if they have 16 bits */
    grt_act act;
    const void *bias, *residual;
    void *y;
    const void *x, *w; /* for sums that are made again (gemm_strict.cuh), with the next */
    int channels, in[2];
    cuda_gemm_weave weave;
    divider by_woven_line, by_woven_channels, by_woven_block;
};

/* Where a result lies in y. */
template <gemm_end END>
static __device__ __forceinline__ size_t gemm_result_at(const gemm_work &work, int row, int column)
{
    if constexpr (END != GEMM_WOVEN)
        return (size_t)row * work.columns + column;
    const int tap = work.by_woven_channels(column);
    return (size_t)(cuda_gemm_woven_row(&work.weave, row, work.by_woven_line(row)) +
                    cuda_gemm_woven_column(&work.weave, column, tap, work.by_woven_block(tap)));
}

template <class F> struct gemm_place {
    int row, column;
    __device__ __forceinline__ gemm_place(const gemm_work &work, int tile)
    {
        const int line = work.by_across(tile);
        row = line * F::ROWS;
        column = (tile - line * work.across) * F::COLUMNS;
    }
};

/* The steps of this block's part of the sum. */
struct gemm_part {
    int begin, end;
    __device__ __forceinline__ gemm_part(const gemm_work &work, int rank)
        : begin(work.steps * rank / work.splits), end(work.steps * (rank + 1) / work.splits)
    {
    }
};

} // namespace

#endif
