/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of many small planes in float32, channels first: a line of a few columns leaves vectors half empty,
 * so blocks of planes are turned until the planes are innermost, pooled as the channels of pixels
 * (pool_tiles.h) and turned back. */
#ifndef GRT_BACKENDS_CPU_POOL_PLANES_H
#define GRT_BACKENDS_CPU_POOL_PLANES_H

#include "backends/cpu/pool.h"

typedef struct cpu_pool_planes {
    cpu_pool turned; /* of one block; its channels are the planes of a block, 0 if this is not for the pool */
    int64_t planes;
    int32_t threads;
    size_t in_floats, out_floats, bytes; /* of a thread's workspace: input, output, and all with the tiles' */
} cpu_pool_planes;

/* False: not a pool of many small planes with windows that pool_tiles.h takes. bytes: of workspace. */
bool cpu_pool_planes_cut(const cpu_pool *p, cpu_pool_planes *t, size_t *out_bytes);
/* x and y have elements. workspace: 64-byte aligned. */
void cpu_pool_planes_run(const cpu_pool_planes *t, const float *x, float *y, void *workspace);

#endif
