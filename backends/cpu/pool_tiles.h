/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of overlapping windows in float32, dim by dim: what a window covers in a column of input is folded
 * once for all windows of a line that hold the column, so that windows of K x K take 2 K steps. Images are
 * cut into tiles, whose folded columns stay in the cache. Maxima leave out NaN. */
#ifndef GRT_BACKENDS_CPU_POOL_TILES_H
#define GRT_BACKENDS_CPU_POOL_TILES_H

#include "backends/cpu/pool.h"

/* Cut an output with known sizes, which may have no elements. False: its windows are so much larger than the
 * image that padding would fill the tiles. bytes: of workspace. */
bool cpu_pool_cut(const cpu_pool *p, cpu_pool_tiles *t, size_t *out_bytes);
/* x and y have elements. workspace: 64-byte aligned. */
void cpu_pool_tiles_run(const cpu_pool *p, const float *x, float *y, void *workspace);
/* The same on the caller's thread alone, which may be one of a team. workspace: of one thread. */
void cpu_pool_tiles_run_part(const cpu_pool *p, const float *x, float *y, float *workspace);

#endif
