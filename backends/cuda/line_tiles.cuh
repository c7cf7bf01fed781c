/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of first convolutions share, whose blocks have some lines of the result: a warpgroup sums 64
 * pixels of them by 64 filters, terms in registers by panels of weights. */
#ifndef GRT_BACKENDS_CUDA_LINE_TILES_CUH
#define GRT_BACKENDS_CUDA_LINE_TILES_CUH

#include "backends/cuda/registers_product.cuh"

namespace
{

enum { LINE_TILE_PIXELS = 64, LINE_TILE_FILTERS = 64 };

/* Pixels of a block, `pixels` in all, of which a warp has 16 from `mine` on. place(line, column): where the
 * terms of a pixel begin; unfold(at, a): the terms of a lane's two; store(columns, sums, rows, filter): 32
 * filters leave. panels: of weights, in shared memory. */
template <int STEPS, bool SIGNED, class P, class U, class S>
__device__ __forceinline__ void multiply_line_tile(const cuda_qgemm &g, const view &v, uint32_t panels,
                                                   const shared_columns<LINE_TILE_FILTERS> &columns, int mine,
                                                   int pixels, int first_pixel, int first_filter,
                                                   const P &place, const U &unfold, const S &store)
{
    const int lane = threadIdx.x % 32;
    int32_t sum[8][4];
    uint32_t a[STEPS][4];
    int at[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const int p = min(mine + lane / 4 + 8 * k, pixels - 1), line = v.line(p);
        at[k] = place(line, p - line * g.out[1]);
    }
    unfold(at, a);
    warpgroup_begin();
#pragma unroll
    for (int s = 0; s < STEPS; s++)
        multiply_registers<SIGNED>(
            sum, a[s], panel_descriptor(panels + s / 4 * LINE_TILE_FILTERS * PANEL_ROW + s % 4 * 32), s > 0);
    warpgroup_commit();
    lane_rows rows(g, v, first_pixel + mine);
#pragma unroll
    for (int k = 0; k < 2; k++)
        rows.there[k] = mine + lane / 4 + 8 * k < pixels;
    warpgroup_wait<0>();
    hold_panels(sum);
    hold_registers(a);
#pragma unroll
    for (int q = 0; q < LINE_TILE_FILTERS / quarter::FILTERS; q++) {
        int32_t part[4][4];
        lane_columns each;
        columns.read(q * quarter::FILTERS, &each);
#pragma unroll
        for (int t = 0; t < 4; t++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                part[t][i] = sum[q * 4 + t][i];
        store(each, part, rows, first_filter + q * quarter::FILTERS);
    }
}

/* The sums of 32 filters, with their residuals. */
__device__ __forceinline__ void store_line_quarter(const cuda_qgemm &g, const view &v, const cuda_qhead &h,
                                                   const lane_columns &each, const int32_t (&part)[4][4],
                                                   const lane_rows &rows, int first, bool in_eights)
{
    const int32_t none[4] = {};
    lane_residual residual;
    if (in_eights)
        residual.load(g, v, rows, first + (int)(threadIdx.x & 3) * 8);
    store_lane<quarter, false>(g, v, h, each, part, none, rows, residual, first, in_eights);
}

/* What does not fit is more than any block has room for. */
inline int most_int(int64_t n)
{
    return n < INT32_MAX ? (int)n : INT32_MAX;
}

/* Lines of a block: few enough that all multiprocessors have one, and that shared memory holds what they see,
 * as fits(lines) says; 0: none. */
template <class L> int lines_of_block(const cuda_qgemm *g, int most, const L &fits)
{
    int lines = most;
    while (lines > 1 && (int64_t)g->images * ((g->out[0] + lines - 1) / lines) < 2 * g->multiprocessors)
        lines /= 2;
    while (lines > 0 && !fits(lines))
        lines /= 2;
    return lines;
}

} // namespace

#endif
