/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/conv_geometry.h"

#include "backends/cpu/conv_columns.h"
#include "backends/cpu/conv_taps.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/dnnl.h"

void cpu_conv_describe(const grt_op_desc *desc, const cpu_conv_attrs *a, const grt_tensor *x,
                       const grt_tensor *w, const grt_tensor *y, cpu_conv *c)
{
    const int32_t spatial = x->rank - 2, at = a->last ? 1 : 2;
    *c = (cpu_conv){.last = a->last, .groups = a->groups, .act = a->act, .batch = x->dims[0]};
    c->in_channels = x->dims[a->last ? x->rank - 1 : 1];
    c->out_channels = y->dims[a->last ? y->rank - 1 : 1];
    cpu_window_read(desc, spatial, x->dims + at, y->dims + at, w->dims + 2, a->transposed, &c->w);
}

/* The window looks at one place along dim i, its own. */
static bool is_blind(const cpu_window *w, int32_t i)
{
    return w->kernel[i] == 1 && w->stride[i] == 1 && w->begin[i] == 0 && w->end[i] == 0 &&
           w->in[i] == w->out[i] && w->in[i] > 0;
}

static void drop_first_dim(cpu_window *w)
{
    w->in_pixels /= w->in[0];
    w->out_pixels /= w->out[0];
    w->spatial--;
    for (int32_t i = 0; i < w->spatial; i++) {
        w->in[i] = w->in[i + 1];
        w->out[i] = w->out[i + 1];
        w->kernel[i] = w->kernel[i + 1];
        w->stride[i] = w->stride[i + 1];
        w->dilation[i] = w->dilation[i + 1];
        w->begin[i] = w->begin[i + 1];
        w->end[i] = w->end[i + 1];
    }
}

void cpu_conv_drop_dims(cpu_conv *c)
{
    enum { VOLUME = 3, MOST_STEP = 1 << 20 };
    cpu_window *w = &c->w;
    if (!c->last || w->spatial != VOLUME)
        return;
    for (; w->spatial > 1 && is_blind(w, 0); drop_first_dim(w))
        c->batch *= w->in[0];
    cpu_conv line = *c;
    line.w.spatial = 1;
    if (w->spatial != VOLUME || c->groups != 1 || w->stride[0] != 1 || !is_blind(w, 1) || !is_blind(w, 2) ||
        !cpu_conv_taps_fits(&line))
        return;
    const int64_t rest = w->in[1] * w->in[2];
    if (w->dilation[0] > MOST_STEP || w->begin[0] > MOST_STEP || w->end[0] > MOST_STEP || rest > INT32_MAX)
        return;
    w->spatial = 1;
    w->in[0] *= rest;
    w->out[0] *= rest;
    w->dilation[0] *= rest;
    w->begin[0] *= rest;
    w->end[0] *= rest;
}

cpu_conv cpu_conv_line(const cpu_conv *c)
{
    if (!c->last || c->w.spatial != 2 || c->w.taps == 1)
        return *c;
    cpu_conv line = cpu_columns_turn(c);
    if (!cpu_columns_is_unit(&line.w, 0))
        return *c;
    drop_first_dim(&line.w);
    return line;
}

bool cpu_conv_fits_dnnl(const cpu_conv *c)
{
    bool plain =
        c->w.spatial <= GRT_DNNL_MAX_SPATIAL && c->batch > 0 && c->in_channels > 0 && c->out_channels > 0;
    for (int32_t i = 0; plain && i < c->w.spatial; i++)
        plain = c->w.in[i] > 0 && c->w.out[i] > 0 && c->w.begin[i] >= 0;
    return plain;
}

static int64_t conv_known(int64_t dim, int64_t guess)
{
    return dim > 0 ? dim : guess;
}

static bool all_within(const int64_t *values, size_t n, int64_t most)
{
    bool within = true;
    for (size_t i = 0; values && i < n; i++)
        within = within && values[i] >= -most && values[i] <= most;
    return within;
}

bool cpu_conv_can_guess(const grt_kernel_node *node, const cpu_conv_attrs *a)
{
    enum { MAX_STEP = 1 << 20 };
    static const char *const lists[] = {"strides", "dilations", "pads", "output_padding"};
    bool can = node->in[1].rank - 2 <= GRT_DNNL_MAX_SPATIAL && all_within(&a->groups, 1, INT32_MAX);
    for (size_t i = 0; can && i < sizeof lists / sizeof *lists; i++) {
        size_t n = 0;
        const int64_t *values = grt_attr_ints(node->desc, lists[i], &n);
        can = all_within(values, n, MAX_STEP);
    }
    const grt_tensor *x = &node->in[0], *w = &node->in[1], *y = &node->out[0];
    return can && all_within(w->dims, (size_t)w->rank, INT32_MAX) &&
           all_within(w->dims + 2, (size_t)w->rank - 2, MAX_STEP) &&
           (x->rank < 0 || all_within(x->dims, (size_t)x->rank, INT32_MAX)) &&
           (y->rank < 0 || all_within(y->dims, (size_t)y->rank, INT32_MAX));
}

/* Automatic padding is no attribute, and as large as strides and sizes make it. */
static bool is_padding_usual(const cpu_window *w, int32_t i)
{
    return all_within(&w->begin[i], 1, INT32_MAX) && all_within(&w->end[i], 1, INT32_MAX);
}

bool cpu_conv_guess(const grt_kernel_node *node, const cpu_conv_attrs *a, cpu_conv *c)
{
    enum { GUESSED_SIZE = 28 };
    const grt_tensor *w = &node->in[1];
    grt_tensor x = {.rank = w->rank}, y = {.rank = w->rank};
    const int32_t at = a->last ? 1 : 2, channel = a->last ? w->rank - 1 : 1;
    const bool ranked = node->in[0].rank == w->rank && node->out[0].rank == w->rank;
    bool sizes[GRT_MAX_RANK] = {false};
    for (int32_t i = 0; ranked && i < w->rank - 2; i++)
        sizes[i] = node->in[0].dims[at + i] > 0 && node->out[0].dims[at + i] > 0;
    x.dims[0] = y.dims[0] = ranked ? conv_known(node->in[0].dims[0], 1) : 1;
    x.dims[channel] = a->transposed ? w->dims[0] : w->dims[1] * a->groups;
    y.dims[channel] = a->transposed ? w->dims[1] * a->groups : w->dims[0];
    for (int32_t i = 0; i < w->rank - 2; i++) {
        x.dims[at + i] = sizes[i] ? node->in[0].dims[at + i] : GUESSED_SIZE + w->dims[2 + i];
        y.dims[at + i] = sizes[i] ? node->out[0].dims[at + i] : 0;
    }
    cpu_conv_describe(node->desc, a, &x, w, &y, c);
    for (int32_t i = 0; i < c->w.spatial; i++) {
        if (!is_padding_usual(&c->w, i))
            return false;
        if (sizes[i])
            continue;
        const int64_t padding = c->w.begin[i] + c->w.end[i],
                      room = c->w.in[i] + padding - cpu_window_extent(c->w.kernel[i], c->w.dilation[i]);
        c->w.out[i] =
            a->transposed ? cpu_window_span(&c->w, i, c->w.in[i]) - padding : room / c->w.stride[i] + 1;
    }
    c->w.in_pixels = grt_dims_product(c->w.in, 0, c->w.spatial);
    c->w.out_pixels = grt_dims_product(c->w.out, 0, c->w.spatial);
    const bool fits = cpu_conv_fits_dnnl(c);
    if (fits && !a->transposed)
        cpu_conv_drop_dims(c);
    return fits;
}
