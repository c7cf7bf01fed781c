/* SPDX-License-Identifier: Apache-2.0 */
/* Weights between ONNX's order and the layouts that oneDNN's kernels read. */
#include "backends/cpu/dnnl_weights.h"

#include "backends/cpu/dnnl_layout.h"

#include <pthread.h>
#include <string.h>

/* oneDNN's weights are [groups,] out, in, k... for both directions; ONNX stores a transposed convolution's as
 * [in, out / groups, k...]. Expressed as strides, one reorder serves both. */
dnnl_weights dnnl_weights_describe(const grt_dnnl_filter *f)
{
    dnnl_weights w = {0};
    const int64_t oc = f->out_channels / f->groups, ic = f->in_channels / f->groups;
    int64_t taps = 1;
    int at = 0;
    for (int i = 0; i < f->spatial; i++)
        taps *= f->kernel[i];
    if (f->groups > 1) {
        w.dims[at] = f->groups;
        w.strides[at++] = oc * ic * taps;
    }
    w.dims[at] = oc;
    w.strides[at++] = f->transposed ? taps : ic * taps;
    w.dims[at] = ic;
    w.strides[at++] = f->transposed ? oc * taps : taps;
    for (int i = 0; i < f->spatial; i++) {
        taps /= f->kernel[i];
        w.dims[at] = f->kernel[i];
        w.strides[at++] = taps;
    }
    w.rank = at;
    w.spatial = f->spatial;
    return w;
}

/* The spatial dims lie next to each other, in order. Of the tags that describe the same layout where a dim is
 * 1, such a one still does when a kernel k x 1 is written 1 x k. */
static bool keeps_spatial(const dnnl_weights *weights, const char *tag)
{
    static const char letters[] = "abcdefghijkl";
    const char *first = strchr(tag, letters[weights->rank - weights->spatial]);
    return first && !strncmp(first, letters + weights->rank - weights->spatial, (size_t)weights->spatial);
}

/* A layout has a name if some tag describes it to the last detail. */
const char *dnnl_weights_format(const dnnl_weights *weights, md_view layout)
{
    const char *name = NULL;
    for (int tag = dnnl_a; tag < dnnl_format_tag_last && !name; tag++) {
        md made = {0};
        if (md_make(&made, weights->rank, weights->dims, (dnnl_format_tag_t)tag) == dnnl_success &&
            onednn->memory_desc_equal(md_of(&made), layout) &&
            keeps_spatial(weights, onednn->fmt_tag2str((dnnl_format_tag_t)tag)))
            name = onednn->fmt_tag2str((dnnl_format_tag_t)tag);
        md_free(&made);
    }
    return name;
}

/* The library finds a name by comparing the tag with all that it knows, and is asked for hundreds. */
static const char *names[dnnl_format_tag_last];

static void read_names(void)
{
    for (int tag = dnnl_a; tag < dnnl_format_tag_last; tag++)
        names[tag] = onednn->fmt_tag2str((dnnl_format_tag_t)tag);
}

static dnnl_status_t layout_of(const dnnl_weights *w, const char *format, md *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!format)
        return md_make_strided(out, w->rank, w->dims, w->strides);
    pthread_once(&once, read_names);
    for (int tag = dnnl_a; tag < dnnl_format_tag_last; tag++)
        if (!strcmp(format, names[tag]))
            return md_make(out, w->rank, w->dims, (dnnl_format_tag_t)tag);
    return dnnl_invalid_arguments;
}

bool dnnl_weights_have_format(const dnnl_weights *weights, const char *format, md_view layout)
{
    md named = {0};
    const bool equal = layout_of(weights, format, &named) == dnnl_success &&
                       onednn->memory_desc_equal(md_of(&named), layout);
    md_free(&named);
    return equal;
}

/* False: it has no blocks. */
static bool read_blocks(const dnnl_weights *w, md_view layout, dnnl_layout *out)
{
    md_blocking b;
    if (!md_get_blocking(layout, &b) || b.blocks < 1 || b.blocks > DNNL_LAYOUT_BLOCKS)
        return false;
    *out = (dnnl_layout){
        .rank = w->rank, .blocks = b.blocks, .floats = onednn->memory_desc_get_size(layout) / sizeof(float)};
    for (int d = 0; d < w->rank; d++) {
        out->dims[d] = w->dims[d];
        out->stride[d] = b.strides[d];
    }
    for (int i = 0; i < b.blocks; i++) {
        out->block[i] = b.block[i];
        out->block_dim[i] = (int)b.block_dim[i];
    }
    return true;
}

/* oneDNN's reorder is a generated one where one side is plain, which is faster than our copy, and the
 * reference one where both have blocks, which takes two remainders a dim for each element. */
static dnnl_status_t reorder_by_library(dnnl_engine_t engine, md_view source, const void *from,
                                        md_view target, void *to)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t reorder = NULL;
    dnnl_memory_t read = NULL, written = NULL;
    dnnl_stream_t stream = NULL;
    dnnl_status_t s = onednn->memory_create(&read, source, engine, (void *)(uintptr_t)from);
    if (s == dnnl_success)
        s = onednn->memory_create(&written, target, engine, to);
    if (s == dnnl_success)
        s = onednn->reorder_primitive_desc_create(&pd, source, engine, target, engine, NULL);
    if (s == dnnl_success)
        s = onednn->primitive_create(&reorder, pd);
    if (s == dnnl_success)
        s = onednn->stream_create(&stream, engine, dnnl_stream_default_flags);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, read}, {DNNL_ARG_TO, written}};
    if (s == dnnl_success)
        s = onednn->primitive_execute(reorder, stream, 2, args);
    if (s == dnnl_success)
        s = onednn->stream_wait(stream);
    if (stream)
        onednn->stream_destroy(stream);
    if (reorder)
        onednn->primitive_destroy(reorder);
    if (pd)
        onednn->primitive_desc_destroy(pd);
    if (read)
        onednn->memory_destroy(read);
    if (written)
        onednn->memory_destroy(written);
    return s;
}

dnnl_status_t dnnl_weights_reorder(dnnl_engine_t engine, const dnnl_weights *weights, const char *format,
                                   const void *from, size_t bytes, md_view layout, void *to)
{
    md source = {0}, plain = {0};
    dnnl_layout source_blocks, target_blocks;
    dnnl_status_t s = layout_of(weights, format, &source);
    if (s == dnnl_success && bytes < onednn->memory_desc_get_size(md_of(&source)))
        s = dnnl_invalid_arguments; /* fewer bytes than the format takes */
    if (s == dnnl_success && !layout)
        s = layout_of(weights, NULL, &plain);
    const md_view target = layout ? layout : md_of(&plain);
    if (s == dnnl_success && read_blocks(weights, md_of(&source), &source_blocks) &&
        read_blocks(weights, target, &target_blocks))
        s = dnnl_layout_copy(&source_blocks, from, &target_blocks, to) ? dnnl_success : dnnl_out_of_memory;
    else if (s == dnnl_success)
        s = reorder_by_library(engine, md_of(&source), from, target, to);
    md_free(&source);
    md_free(&plain);
    return s;
}
