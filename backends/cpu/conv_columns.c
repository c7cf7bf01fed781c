/* SPDX-License-Identifier: Apache-2.0 */
/* The geometry of blocks of columns; see conv_columns.h. */
#include "backends/cpu/conv_columns.h"
#include "src/base/int64.h"

enum {
    LEAST = 512,    /* columns of a thread in a block: what it takes to be created is below 10 ms and 1 MB */
    MOST = 2048,    /* blocks of little work are longer, so that starting them costs nothing */
    WORK = 1 << 21, /* multiply-adds of a thread from which a block's length does not matter */
    LINES = 4096,   /* columns of a thread in a block that is copied together */
    NOT_CUT = 1 << 16, /* columns of one operation at most, if it cannot be cut */
};

static int64_t reach_of(const cpu_window *w, int32_t i)
{
    return cpu_window_extent(w->kernel[i], w->dilation[i]);
}

bool cpu_columns_is_unit(const cpu_window *w, int32_t i)
{
    return w->in[i] == 1 && w->out[i] == 1 && w->kernel[i] == 1 && w->begin[i] == 0;
}

static void swap(int64_t *values)
{
    const int64_t first = values[0];
    values[0] = values[1];
    values[1] = first;
}

cpu_conv cpu_columns_turn(const cpu_conv *c)
{
    cpu_conv turned = *c;
    cpu_window *w = &turned.w;
    if (w->spatial != 2 || !cpu_columns_is_unit(w, 1))
        return turned;
    swap(w->in);
    swap(w->out);
    swap(w->kernel);
    swap(w->stride);
    swap(w->dilation);
    swap(w->begin);
    swap(w->end);
    return turned;
}

/* Every window has a tap inside the input or between two of its positions. */
static bool is_dense(const cpu_window *w, bool transposed)
{
    const int32_t last = w->spatial - 1;
    const int64_t reach = reach_of(w, last),
                  end = cpu_window_span(w, last, w->out[last]) - w->in[last] - w->begin[last];
    return transposed || (w->begin[last] < reach && end < reach);
}

bool cpu_columns_cut(const cpu_conv *c, bool transposed, int threads, cpu_columns *out)
{
    const cpu_window *w = &c->w;
    const int32_t last = w->spatial - 1;
    const int64_t columns = w->out[last], reach = reach_of(w, last);
    *out = (cpu_columns){columns, 1, w->out_pixels > columns || w->in_pixels > w->in[last]};
    if (!c->last) /* kernels for channels first do not grow */
        return true;
    const double work = (double)c->out_channels * (double)(c->in_channels / c->groups) * (double)w->taps;
    int64_t width = work * MOST < WORK ? MOST : (int64_t)(WORK / work);
    width = (out->lines ? LINES : width < LEAST ? LEAST : width) * threads;
    /* At the ends, padding reaches into the first block and the last two only. */
    if (width < 2 * reach + w->stride[last])
        width = 2 * reach + w->stride[last];
    if (transposed) /* so that all blocks begin at the same step of the stride */
        width = (width + w->stride[last] - 1) / w->stride[last] * w->stride[last];
    if (columns <= 2 * width)
        return true;
    if (!is_dense(w, transposed))
        return columns <= NOT_CUT;
    out->width = width;
    out->count = (columns + width / 2) / width;
    return true;
}

int cpu_columns_kinds(const cpu_columns *cut)
{
    return cut->count < CPU_COLUMN_KINDS ? (int)cut->count : CPU_COLUMN_KINDS;
}

int cpu_columns_kind(const cpu_columns *cut, int64_t block)
{
    const int kinds = cpu_columns_kinds(cut);
    if (block < 2)
        return (int)block;
    return block + 2 < cut->count ? 1 : kinds - (int)(cut->count - block);
}

int64_t cpu_columns_first(const cpu_columns *cut, int kind)
{
    return kind < 2 ? kind : cut->count - (cpu_columns_kinds(cut) - kind);
}

/* Input columns [*from, *to) that output columns [begin, end) read. Returns the padding before them. */
static int64_t read_range(const cpu_window *w, int64_t begin, int64_t end, int64_t *from, int64_t *to)
{
    const int32_t last = w->spatial - 1;
    const int64_t low = begin * w->stride[last] - w->begin[last];
    *from = grt_max64(low, 0);
    *to = grt_min64((end - 1) * w->stride[last] - w->begin[last] + reach_of(w, last), w->in[last]);
    return *from - low;
}

/* The same for a transpose: input column i writes columns i * stride + tap - padding. */
static int64_t written_range(const cpu_window *w, int64_t begin, int64_t end, int64_t *from, int64_t *to)
{
    const int32_t last = w->spatial - 1;
    const int64_t stride = w->stride[last], first = begin + w->begin[last],
                  low = grt_max64(first - reach_of(w, last) + 1, 0);
    *from = grt_min64((low + stride - 1) / stride, first / stride);
    *to = grt_min64((end - 1 + w->begin[last]) / stride + 1, w->in[last]);
    return first - *from * stride;
}

cpu_column_block cpu_columns_block(const cpu_conv *c, bool transposed, const cpu_columns *cut, int64_t i)
{
    cpu_column_block b = {.conv = *c, .out_at = i * cut->width};
    cpu_window *w = &b.conv.w;
    const int32_t last = w->spatial - 1;
    const int64_t end = i + 1 < cut->count ? b.out_at + cut->width : w->out[last];
    int64_t to;
    b.conv.batch = 1;
    w->begin[last] = transposed ? written_range(&c->w, b.out_at, end, &b.in_at, &to)
                                : read_range(&c->w, b.out_at, end, &b.in_at, &to);
    w->in_pixels = w->in_pixels / w->in[last] * (to - b.in_at);
    w->out_pixels = w->out_pixels / w->out[last] * (end - b.out_at);
    w->in[last] = to - b.in_at;
    w->out[last] = end - b.out_at;
    return b;
}
