/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/pool_planes.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/flip.h"
#include "backends/cpu/pool_tiles.h"
#include "backends/cpu/threads.h"
#include "src/base/checked.h"

#include <string.h>

enum {
    LEAST_PLANES = 16, /* a vector's lanes */
    MOST_PLANES = 64,
    BLOCK_FLOATS = 1 << 18, /* of a block's input, which is to stay in the second-level cache */
    SHORT_LINE = 40,        /* columns; longer lines fill vectors by themselves */
    ALIGNED = 16
};

static size_t pool_aligned(int64_t floats)
{
    return (size_t)((floats + ALIGNED - 1) / ALIGNED * ALIGNED);
}

bool cpu_pool_planes_cut(const cpu_pool *p, cpu_pool_planes *t, size_t *out_bytes)
{
    *t = (cpu_pool_planes){.turned = *p, .planes = p->batch * p->channels, .threads = p->threads};
    const cpu_window *w = &p->w;
    const bool small = !p->last && w->spatial > 0 && t->planes >= LEAST_PLANES && w->in_pixels > 0 &&
                       w->in[w->spatial - 1] <= SHORT_LINE && w->in_pixels <= BLOCK_FLOATS / LEAST_PLANES &&
                       w->out_pixels <= BLOCK_FLOATS / LEAST_PLANES;
    int64_t block = small ? BLOCK_FLOATS / w->in_pixels / LEAST_PLANES * LEAST_PLANES : 0;
    block = block > MOST_PLANES ? MOST_PLANES : block;
    while (block - LEAST_PLANES >= t->planes)
        block -= LEAST_PLANES;
    t->turned.last = true;
    t->turned.batch = 1;
    t->turned.channels = block;
    t->turned.threads = 1;
    size_t tile_bytes;
    if (block > 0 && cpu_pool_cut(&t->turned, &t->turned.tiles, &tile_bytes)) {
        t->in_floats = pool_aligned(block * w->in_pixels);
        t->out_floats = pool_aligned(block * w->out_pixels);
        t->bytes = (t->in_floats + t->out_floats) * sizeof(float) + (tile_bytes + 63) / 64 * 64;
        if (grt_mul_size(t->bytes, (size_t)p->threads, out_bytes))
            return true;
    }
    *t = (cpu_pool_planes){0};
    *out_bytes = 0;
    return false;
}

static void pool_block(const cpu_pool_planes *t, const float *x, float *y, int64_t planes, char *memory)
{
    const cpu_pool *p = &t->turned;
    const int64_t pixels = p->w.in_pixels, outs = p->w.out_pixels;
    float *in = (float *)memory, *out = in + t->in_floats;
    if (planes < p->channels)
        memset(in, 0, t->in_floats * sizeof *in);
    cpu_flip(sizeof *in, in, p->channels, x, pixels, pixels, planes);
    cpu_pool_tiles_run_part(p, in, out, out + t->out_floats);
    cpu_flip(sizeof *out, y, outs, out, p->channels, planes, outs);
}

void cpu_pool_planes_run(const cpu_pool_planes *t, const float *x, float *y, void *workspace)
{
    const int64_t block = t->turned.channels, blocks = (t->planes + block - 1) / block;
    const cpu_window *w = &t->turned.w;
    const bool many = grt_mul_saturated(t->planes * w->out_pixels, w->taps) > CPU_GRAIN;
#pragma omp parallel for num_threads(t->threads) if (many) schedule(static)
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t first = i * block, left = t->planes - first;
        pool_block(t, x + first * w->in_pixels, y + first * w->out_pixels, left < block ? left : block,
                   (char *)workspace + (size_t)cpu_thread() * t->bytes);
    }
}
