/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_lines.h. A block of outputs is multiplied from a copy of what its windows see of one group, with
 * zeros for the padding. Blocks do not depend on the number of threads, so that results do not. */
#include "backends/cpu/conv_lines.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/threads.h"
#include "src/base/checked.h"
#include "src/base/int64.h"

#include <string.h>

enum {
    BLOCK = 96,          /* outputs */
    LEAST_CHANNELS = 16, /* of a group on either side; a copy moves so many at a time */
};

/* Of one group. */
static int64_t lines_in(const cpu_conv *c)
{
    return c->in_channels / c->groups;
}

static int64_t lines_out(const cpu_conv *c)
{
    return c->out_channels / c->groups;
}

bool cpu_conv_lines_fits(const cpu_conv *c)
{
    return c->last && c->groups > 1 && c->w.spatial == 1 && c->w.dilation[0] == 1 && c->w.taps > 1 &&
           c->w.stride[0] <= c->w.taps && lines_in(c) >= LEAST_CHANNELS && lines_out(c) >= LEAST_CHANNELS;
}

/* Of one group's packed weights. */
static bool lines_floats_of_group(const cpu_conv *c, size_t *out_floats)
{
    int64_t terms;
    return !__builtin_mul_overflow(lines_in(c), c->w.taps, &terms) &&
           grt_gemm_packed_b_floats(terms, lines_out(c), out_floats);
}

bool cpu_conv_lines_floats(const cpu_conv *c, size_t *out_floats)
{
    return lines_floats_of_group(c, out_floats) && grt_mul_size(*out_floats, (size_t)c->groups, out_floats) &&
           *out_floats <= SIZE_MAX / sizeof(float) / 2;
}

/* Output o's weights lie channel by channel, a window's values tap by tap. */
static float lines_weight(const cpu_conv *c, const float *w, int64_t o, int64_t term)
{
    const int64_t in = lines_in(c);
    return o < lines_out(c) ? w[(o * in + term % in) * c->w.taps + term / in] : 0.0f;
}

void cpu_conv_lines_pack(const cpu_conv *c, const float *w, float *packed)
{
    const int64_t terms = lines_in(c) * c->w.taps;
    for (int64_t g = 0; g < c->groups; g++, w += lines_out(c) * terms)
        for (int64_t panel = 0; panel < lines_out(c); panel += GRT_GEMM_PANEL)
            for (int64_t term = 0; term < terms; term++)
                for (int64_t j = 0; j < GRT_GEMM_PANEL; j++)
                    *packed++ = lines_weight(c, w, panel + j, term);
}

/* Pixels that a block's windows see. */
static int64_t lines_pixels(const cpu_conv *c, int64_t outputs)
{
    return (outputs - 1) * c->w.stride[0] + c->w.taps;
}

static bool lines_room(const cpu_conv *c, size_t *out_bytes)
{
    return grt_mul_size((size_t)lines_pixels(c, BLOCK), (size_t)lines_in(c) * sizeof(float), out_bytes) &&
           grt_add_size(*out_bytes, 63, out_bytes) && ((*out_bytes &= ~(size_t)63), true);
}

bool cpu_conv_lines_bytes(const cpu_conv *c, int threads, size_t *out_bytes)
{
    return lines_room(c, out_bytes) && grt_mul_size(*out_bytes, (size_t)threads, out_bytes);
}

/* n floats, LEAST_CHANNELS or more; the last ones may be copied twice. */
static void copy_channels(float *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i + LEAST_CHANNELS <= n; i += LEAST_CHANNELS)
        memcpy(to + i, from + i, LEAST_CHANNELS * sizeof *to);
    memcpy(to + n - LEAST_CHANNELS, from + n - LEAST_CHANNELS, LEAST_CHANNELS * sizeof *to);
}

/* Pixels [first, first + n) of a line, some of them outside of it, of one group whose first channel is at x.
 */
static void copy_line(const cpu_conv *c, const float *x, int64_t first, int64_t n, float *room)
{
    const int64_t in = lines_in(c), from = grt_min64(grt_max64(-first, 0), n),
                  to = grt_max64(grt_min64(c->w.in[0] - first, n), from);
    memset(room, 0, (size_t)(from * in) * sizeof *room);
    for (int64_t p = from; p < to; p++)
        copy_channels(room + p * in, x + (first + p) * c->in_channels, in);
    memset(room + to * in, 0, (size_t)((n - to) * in) * sizeof *room);
}

/* The product of a block of outputs, all of its epilogue with it. */
static grt_gemm block_product(const cpu_conv *c, int64_t outputs)
{
    return (grt_gemm){.batch = 1,
                      .m = outputs,
                      .n = lines_out(c),
                      .k = lines_in(c) * c->w.taps,
                      .lda = c->w.stride[0] * lines_in(c),
                      .ldc = c->out_channels,
                      .ldr = c->out_channels,
                      .b_packed = true,
                      .alpha = 1.0f,
                      .act = c->act};
}

void cpu_conv_lines_run(const cpu_conv *c, const float *x, const float *packed, const float *bias,
                        const float *residual, float *y, void *workspace, int threads)
{
    const int64_t outputs = c->w.out[0], blocks = (outputs + BLOCK - 1) / BLOCK, groups = c->groups;
    size_t room_bytes = 0, step = 0;
    if (!lines_room(c, &room_bytes) || !lines_floats_of_group(c, &step))
        return; /* refused before */
#pragma omp parallel for num_threads(threads) if (threads > 1 && c->batch * blocks * groups > 1) \
    schedule(static)
    for (int64_t item = 0; item < c->batch * blocks * groups; item++) {
        const int64_t group = item % groups, block = item / groups % blocks, image = item / groups / blocks,
                      first = block * BLOCK, n = grt_min64(BLOCK, outputs - first),
                      at = (image * outputs + first) * c->out_channels + group * lines_out(c);
        float *room = cpu_workspace_at(workspace, (size_t)cpu_thread() * room_bytes);
        copy_line(c, x + image * c->w.in[0] * c->in_channels + group * lines_in(c),
                  first * c->w.stride[0] - c->w.begin[0], lines_pixels(c, n), room);
        grt_gemm product = block_product(c, n);
        product.bias = bias ? bias + group * lines_out(c) : NULL;
        product.residual = residual ? residual + at : NULL;
        grt_gemm_run(&product, room, packed + (size_t)group * step, y + at, NULL, 1);
    }
}
