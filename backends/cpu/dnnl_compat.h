/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between oneDNN 2.6 and 3.x, and nothing else: memory descriptors are structs in 2.x and
 * handles in 3.x, and 3.x has no operation descriptors. Included by dnnl.c and dnnl_weights only. */
#ifndef GRT_BACKENDS_CPU_DNNL_COMPAT_H
#define GRT_BACKENDS_CPU_DNNL_COMPAT_H

#include "backends/cpu/dnnl_engine.h"

#if DNNL_VERSION_MAJOR >= 3

typedef dnnl_memory_desc_t md; /* owned: md_free */
typedef const_dnnl_memory_desc_t md_view;

static inline md_view md_of(const md *m)
{
    return *m;
}

static inline dnnl_status_t md_make(md *out, int rank, const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
    return onednn->memory_desc_create_with_tag(out, rank, dims, dnnl_f32, tag);
}

static inline dnnl_status_t md_make_strided(md *out, int rank, const dnnl_dims_t dims,
                                            const dnnl_dims_t strides)
{
    return onednn->memory_desc_create_with_strides(out, rank, dims, dnnl_f32, strides);
}

static inline dnnl_status_t md_copy(md *out, md_view from)
{
    return onednn->memory_desc_clone(out, from);
}

/* The parts of a blocked layout; other layouts have none. */
typedef struct md_blocking {
    int blocks;
    const dnnl_dim_t *strides, *block, *block_dim;
} md_blocking;

static inline bool md_get_blocking(md_view m, md_blocking *out)
{
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    const dnnl_dims_t *strides = NULL, *block = NULL, *block_dim = NULL;
    const bool found =
        onednn->memory_desc_query(m, dnnl_query_format_kind, &kind) == dnnl_success && kind == dnnl_blocked &&
        onednn->memory_desc_query(m, dnnl_query_strides, &strides) == dnnl_success &&
        onednn->memory_desc_query(m, dnnl_query_inner_nblks_s32, &out->blocks) == dnnl_success &&
        onednn->memory_desc_query(m, dnnl_query_inner_blks, &block) == dnnl_success &&
        onednn->memory_desc_query(m, dnnl_query_inner_idxs, &block_dim) == dnnl_success;
    if (!found)
        return false;
    out->strides = *strides;
    out->block = *block;
    out->block_dim = *block_dim;
    return true;
}

static inline void md_free(md *m)
{
    if (*m)
        onednn->memory_desc_destroy(*m);
    *m = NULL;
}

static inline dnnl_status_t post_sum(dnnl_post_ops_t p)
{
    return onednn->post_ops_append_sum(p, 1.0f, 0, dnnl_data_type_undef);
}

static inline dnnl_status_t post_eltwise(dnnl_post_ops_t p, dnnl_alg_kind_t alg, float a, float b)
{
    return onednn->post_ops_append_eltwise(p, alg, a, b);
}

#else

typedef dnnl_memory_desc_t md;
typedef const dnnl_memory_desc_t *md_view;

static inline md_view md_of(const md *m)
{
    return m;
}

static inline dnnl_status_t md_make(md *out, int rank, const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
    return onednn->memory_desc_init_by_tag(out, rank, dims, dnnl_f32, tag);
}

static inline dnnl_status_t md_make_strided(md *out, int rank, const dnnl_dims_t dims,
                                            const dnnl_dims_t strides)
{
    return onednn->memory_desc_init_by_strides(out, rank, dims, dnnl_f32, strides);
}

static inline dnnl_status_t md_copy(md *out, md_view from)
{
    *out = *from;
    return dnnl_success;
}

/* The parts of a blocked layout; other layouts have none. */
typedef struct md_blocking {
    int blocks;
    const dnnl_dim_t *strides, *block, *block_dim;
} md_blocking;

static inline bool md_get_blocking(md_view m, md_blocking *out)
{
    const dnnl_blocking_desc_t *b = &m->format_desc.blocking;
    *out = (md_blocking){b->inner_nblks, b->strides, b->inner_blks, b->inner_idxs};
    return m->format_kind == dnnl_blocked;
}

static inline void md_free(md *m)
{
    (void)m;
}

static inline dnnl_status_t post_sum(dnnl_post_ops_t p)
{
    return onednn->post_ops_append_sum(p, 1.0f);
}

static inline dnnl_status_t post_eltwise(dnnl_post_ops_t p, dnnl_alg_kind_t alg, float a, float b)
{
    return onednn->post_ops_append_eltwise(p, 1.0f, alg, a, b);
}

#endif

/* Strides, kernel, dilation and padding in oneDNN's form (dilation 0: none). */
typedef struct window {
    dnnl_dims_t stride, kernel, dilation, begin, end;
} window;

/* The library's implementation number `skip` for the operation, counted from its first choice. */
#if DNNL_VERSION_MAJOR >= 3
static inline dnnl_status_t pd_skip(dnnl_primitive_desc_t *pd, int skip)
{
    dnnl_status_t s = dnnl_success;
    for (; s == dnnl_success && skip > 0; skip--)
        s = onednn->primitive_desc_next_impl(*pd);
    if (s != dnnl_success) {
        onednn->primitive_desc_destroy(*pd);
        *pd = NULL;
    }
    return s;
}
#else
static inline dnnl_status_t pd_pick(dnnl_primitive_desc_t *pd, const_dnnl_op_desc_t desc,
                                    dnnl_engine_t engine, dnnl_primitive_attr_t attr, int skip)
{
    if (skip == 0)
        return onednn->primitive_desc_create(pd, desc, attr, engine, NULL);
    dnnl_primitive_desc_iterator_t at = NULL;
    dnnl_status_t s = onednn->primitive_desc_iterator_create(&at, desc, attr, engine, NULL);
    for (; s == dnnl_success && skip > 0; skip--)
        s = onednn->primitive_desc_iterator_next(at);
    if (s == dnnl_success)
        *pd = onednn->primitive_desc_iterator_fetch(at);
    if (at)
        onednn->primitive_desc_iterator_destroy(at);
    return s == dnnl_success && !*pd ? dnnl_out_of_memory : s;
}
#endif

static inline dnnl_status_t pd_conv(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, int transposed,
                                    md_view src, md_view weights, md_view bias, md_view dst, const window *w,
                                    dnnl_primitive_attr_t attr, int skip)
{
    /* Direct algorithms only: Winograd's rounding is not what a float32 model expects. */
#if DNNL_VERSION_MAJOR >= 3
    const dnnl_status_t s = transposed
                                ? onednn->deconvolution_forward_primitive_desc_create(
                                      pd, engine, dnnl_forward_inference, dnnl_deconvolution_direct, src,
                                      weights, bias, dst, w->stride, w->dilation, w->begin, w->end, attr)
                                : onednn->convolution_forward_primitive_desc_create(
                                      pd, engine, dnnl_forward_inference, dnnl_convolution_direct, src,
                                      weights, bias, dst, w->stride, w->dilation, w->begin, w->end, attr);
    return s == dnnl_success ? pd_skip(pd, skip) : s;
#else
    dnnl_status_t s;
    if (transposed) {
        dnnl_deconvolution_desc_t d;
        s = onednn->dilated_deconvolution_forward_desc_init(&d, dnnl_forward_inference,
                                                            dnnl_deconvolution_direct, src, weights, bias,
                                                            dst, w->stride, w->dilation, w->begin, w->end);
        return s == dnnl_success ? pd_pick(pd, &d, engine, attr, skip) : s;
    }
    dnnl_convolution_desc_t d;
    s = onednn->dilated_convolution_forward_desc_init(&d, dnnl_forward_inference, dnnl_convolution_direct,
                                                      src, weights, bias, dst, w->stride, w->dilation,
                                                      w->begin, w->end);
    return s == dnnl_success ? pd_pick(pd, &d, engine, attr, skip) : s;
#endif
}

#endif
