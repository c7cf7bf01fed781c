/* SPDX-License-Identifier: Apache-2.0 */
/* The shim over oneDNN: creation, weight packing and execution of primitives on the caller's memory. */
#include "backends/cpu/dnnl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/act_apply.h"
#include "backends/cpu/dnnl_compat.h"
#include "backends/cpu/dnnl_engine.h"
#include "backends/cpu/dnnl_isa.h"
#include "backends/cpu/dnnl_weights.h"
#include "backends/cpu/epilogue.h"
#include "backends/cpu/isa.h"
#include "src/base/checked.h"
#include "src/base/openmp.h"

#define MAX_ARGS 6

typedef enum slot {
    SLOT_SRC,
    SLOT_WEIGHTS,
    SLOT_BIAS,
    SLOT_DST,
    SLOT_SCRATCH,
    SLOT_RESIDUAL,
    SLOT_COUNT
} slot;

struct grt_dnnl_op {
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    dnnl_memory_t memory[SLOT_COUNT]; /* NULL: the operation has no such argument */
    void *bound[SLOT_COUNT];          /* the pointer that each memory holds */
    dnnl_exec_arg_t args[MAX_ARGS];
    int arg_count, threads;
    size_t residual_bytes; /* not 0: run copies the residual into dst, and the primitive adds dst */
    bool own_epilogue;     /* run applies bias and post operations itself, after the primitive */
    bool own_bias;
    grt_dnnl_layout dst_layout;
    int64_t batch, channels, pixels; /* of dst, for the own epilogue */
    int post_count;
    grt_dnnl_post post[GRT_DNNL_MAX_POST];
    dnnl_weights weights; /* rank 0: none */
};

static grt_status refuse(char *err, size_t n, const char *what)
{
    if (err && n)
        snprintf(err, n, "%s", what);
    return GRT_STATUS_INVALID_ARGUMENT;
}

static grt_status dnnl_result(char *err, size_t n, const char *what, dnnl_status_t status)
{
    if (status == dnnl_success)
        return GRT_OK;
    const bool memory = status == dnnl_out_of_memory;
    if (err && n && memory)
        snprintf(err, n, "out of memory while %s (oneDNN)", what);
    else if (err && n)
        snprintf(err, n, "oneDNN: %s failed (%s)", what, onednn->status2str(status));
    return memory ? GRT_STATUS_OUT_OF_MEMORY : GRT_STATUS_UNSUPPORTED;
}

/* oneDNN takes the number of threads from OpenMP's setting of the calling thread, at creation and at
 * execution. Returns the previous one, to put back. */
static int use_threads(int threads)
{
    return grt_team_resize(threads);
}

static dnnl_format_tag_t tag_of(int spatial, grt_dnnl_layout layout)
{
    static const dnnl_format_tag_t first[] = {dnnl_abc, dnnl_abcd, dnnl_abcde};
    static const dnnl_format_tag_t last[] = {dnnl_acb, dnnl_acdb, dnnl_acdeb};
    return layout == GRT_DNNL_CHANNELS_LAST ? last[spatial - 1] : first[spatial - 1];
}

static dnnl_status_t make_data(md *out, int spatial, grt_dnnl_layout layout, int64_t batch, int64_t channels,
                               const int64_t *size)
{
    dnnl_dims_t dims = {batch, channels};
    for (int i = 0; i < spatial; i++)
        dims[2 + i] = size[i];
    return md_make(out, 2 + spatial, dims, tag_of(spatial, layout));
}

static dnnl_status_t post_act(dnnl_post_ops_t p, grt_act act)
{
    dnnl_status_t s;
    switch (act.kind) {
    case GRT_ACT_NONE:
        return dnnl_success;
    case GRT_ACT_RELU:
        return post_eltwise(p, dnnl_eltwise_relu, 0.0f, 0.0f);
    case GRT_ACT_LEAKY_RELU:
        return post_eltwise(p, dnnl_eltwise_relu, act.a, 0.0f);
    case GRT_ACT_CLIP:
        return post_eltwise(p, dnnl_eltwise_clip, act.a, act.b);
    case GRT_ACT_ELU:
        return post_eltwise(p, dnnl_eltwise_elu, act.a, 0.0f);
    case GRT_ACT_SIGMOID:
        return post_eltwise(p, dnnl_eltwise_logistic, 0.0f, 0.0f);
    case GRT_ACT_TANH:
        return post_eltwise(p, dnnl_eltwise_tanh, 0.0f, 0.0f);
    case GRT_ACT_SILU:
        return post_eltwise(p, dnnl_eltwise_swish, act.a, 0.0f);
    case GRT_ACT_GELU_ERF:
        return post_eltwise(p, dnnl_eltwise_gelu_erf, 0.0f, 0.0f);
    case GRT_ACT_GELU_TANH:
        return post_eltwise(p, dnnl_eltwise_gelu_tanh, 0.0f, 0.0f);
    case GRT_ACT_HARD_SIGMOID: /* 2.6 has no such algorithm; these two are in every version */
        s = post_eltwise(p, dnnl_eltwise_linear, act.a, act.b);
        return s == dnnl_success ? post_eltwise(p, dnnl_eltwise_clip, 0.0f, 1.0f) : s;
    case GRT_ACT_HARD_SWISH: /* 2.6 ignores the two constants, 3.x reads them */
        return post_eltwise(p, dnnl_eltwise_hardswish, 1.0f / 6.0f, 0.5f);
    case GRT_ACT_SOFTPLUS:
        return post_eltwise(p, dnnl_eltwise_soft_relu, 1.0f, 0.0f);
    }
    return dnnl_invalid_arguments;
}

/* *residual_at: the index of the binary addition among oneDNN's post-ops, or -1. */
static dnnl_status_t make_attr(dnnl_primitive_attr_t *attr, const grt_dnnl_post *post, int count, md_view dst,
                               int *residual_at)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t s = onednn->primitive_attr_create(attr);
    if (s == dnnl_success)
        s = onednn->primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user);
    if (s == dnnl_success)
        s = onednn->post_ops_create(&ops);
    for (int i = 0; s == dnnl_success && i < count; i++) {
        if (post[i].kind == GRT_DNNL_POST_ACT) {
            s = post_act(ops, post[i].act);
        } else if (post[i].kind == GRT_DNNL_POST_SUM) {
            s = post_sum(ops);
        } else if (*residual_at >= 0) {
            s = dnnl_invalid_arguments;
        } else {
            *residual_at = onednn->post_ops_len(ops);
            s = onednn->post_ops_append_binary(ops, dnnl_binary_add, dst);
        }
    }
    if (s == dnnl_success)
        s = onednn->primitive_attr_set_post_ops(*attr, ops);
    if (ops)
        onednn->post_ops_destroy(ops);
    return s;
}

static dnnl_status_t add_arg(grt_dnnl_op *op, slot at, int name, md_view desc)
{
    if (!desc || onednn->memory_desc_get_size(desc) == 0)
        return dnnl_success;
    dnnl_status_t s = onednn->memory_create(&op->memory[at], desc, dnnl_engine_get(), DNNL_MEMORY_NONE);
    if (s == dnnl_success)
        op->args[op->arg_count++] = (dnnl_exec_arg_t){name, op->memory[at]};
    return s;
}

/* From a finished primitive descriptor: the primitive, its stream and its argument list. */
static dnnl_status_t dnnl_finish(grt_dnnl_op *op, int residual_at)
{
    dnnl_status_t s = onednn->primitive_create(&op->primitive, op->pd);
    if (s == dnnl_success)
        s = onednn->stream_create(&op->stream, dnnl_engine_get(), dnnl_stream_default_flags);
    if (s == dnnl_success)
        s = add_arg(op, SLOT_SRC, DNNL_ARG_SRC,
                    onednn->primitive_desc_query_md(op->pd, dnnl_query_src_md, 0));
    if (s == dnnl_success && op->weights.rank)
        s = add_arg(op, SLOT_WEIGHTS, DNNL_ARG_WEIGHTS,
                    onednn->primitive_desc_query_md(op->pd, dnnl_query_weights_md, 0));
    if (s == dnnl_success && op->weights.rank)
        s = add_arg(op, SLOT_BIAS, DNNL_ARG_BIAS,
                    onednn->primitive_desc_query_md(op->pd, dnnl_query_weights_md, 1));
    if (s == dnnl_success)
        s = add_arg(op, SLOT_DST, DNNL_ARG_DST,
                    onednn->primitive_desc_query_md(op->pd, dnnl_query_dst_md, 0));
    if (s == dnnl_success)
        s = add_arg(op, SLOT_SCRATCH, DNNL_ARG_SCRATCHPAD,
                    onednn->primitive_desc_query_md(op->pd, dnnl_query_scratchpad_md, 0));
    if (s == dnnl_success && residual_at >= 0)
        s = add_arg(op, SLOT_RESIDUAL, DNNL_ARG_ATTR_MULTIPLE_POST_OP(residual_at) | DNNL_ARG_SRC_1,
                    onednn->primitive_desc_query_md(op->pd, dnnl_query_dst_md, 0));
    return s;
}

static bool dnnl_check_window(int spatial, const int64_t *kernel, const int64_t *stride,
                              const int64_t *dilation, const int64_t *begin, const int64_t *end, window *w)
{
    for (int i = 0; i < spatial; i++) {
        if (kernel[i] < 1 || stride[i] < 1 || dilation[i] < 1)
            return false;
        w->kernel[i] = kernel[i];
        w->stride[i] = stride[i];
        w->dilation[i] = dilation[i] - 1;
        w->begin[i] = begin[i];
        w->end[i] = end[i];
    }
    return true;
}

/* ---- kernels of some versions that are not used; docs/decisions/onednn.md has how each was found ---- */

/* 30101 for 3.1.1 */
static int loaded_version(void)
{
    const dnnl_version_t *v = onednn->version();
    return v->major * 10000 + v->minor * 100 + v->patch;
}

static bool has_kernel(const grt_dnnl_op *op, const char *name)
{
    return strstr(grt_dnnl_op_impl(op), name) != NULL;
}

/* oneDNN 2.6.3's GEMM convolution adds a full-size tensor wrongly when channels are last (seen for 1-3 dims,
 * with and without groups); its addition of dst is right everywhere. */
static bool misadds_residual(const grt_dnnl_op *op)
{
    return has_kernel(op, "gemm");
}

/* brgconv before 3.0: a row of outputs is computed in blocks of ceil(columns / n), for some n, and the last
 * block in registers for rows of equal length and a shorter rest. Where there is one full set and the rest is
 * shorter than the padding at the end, the last output of the full set reads what lies behind the row. The
 * sets are as balanced as can be, so the rest is one less than a set, and the padding, which has to fit into
 * a set and to be shorter than the window, as long as one. Sets shorter than 4 leave no rest. */
static bool reads_padding(const grt_dnnl_conv *c)
{
    enum { LEAST_SET = 4, MOST_SET = 30 };
    const int last = c->spatial - 1;
    const int64_t columns = c->out[last], set = c->pad_end[last], odd = 2 * set - 1;
    const bool fits =
        set >= LEAST_SET && set <= MOST_SET && c->pad_begin[last] <= set && set < c->kernel[last];
    if (c->transposed || c->stride[last] != 1 || !fits)
        return false;
    for (int64_t n = 1, block = columns; block >= odd; n++, block = (columns + n - 1) / n)
        if ((columns - 1) % block + 1 == odd)
            return true;
    return false;
}

/* brgconv (AVX-512, channels last) before 3.1: outputs whose window lies in the padding as a whole get a
 * kernel of their own. With an addition of dst, it leaves the bias out, and a following activation reads its
 * constants through a register that was never loaded: wrong results or SIGSEGV. 3.0 and 3.1.0 are wrong at
 * the right end of padded rows, which a transpose has inside; earlier ones where reads_padding. The depthwise
 * kernel for SSE4.1 ends with SIGSEGV when it adds dst and the channels are no multiple of 8, in all versions
 * seen (2.6 to 3.2). */
static bool is_defect(const grt_dnnl_op *op, const grt_dnnl_conv *c, bool sum)
{
    const int version = loaded_version();
    if (sum && has_kernel(op, "jit_dw:sse41"))
        return true;
    if (version >= 30101 || !has_kernel(op, "brgconv:"))
        return false;
    const bool padded = c->transposed || c->pad_begin[c->spatial - 1] > 0 || c->pad_end[c->spatial - 1] > 0;
    return (sum && version < 30100) || (padded && version >= 30000) || (version < 30000 && reads_padding(c));
}

/* 3.0 and 3.1.0 approximate erf with an absolute error of 5e-4. */
static bool is_coarse(const grt_dnnl_post *post)
{
    const int version = loaded_version();
    return post->kind == GRT_DNNL_POST_ACT && post->act.kind == GRT_ACT_GELU_ERF && version >= 30000 &&
           version < 30101;
}

static void add_through_dst(grt_dnnl_op *op, grt_dnnl_post *post, int count, md_view dst)
{
    for (int i = 0; i < count; i++)
        if (post[i].kind == GRT_DNNL_POST_ADD)
            post[i].kind = GRT_DNNL_POST_SUM;
    op->residual_bytes = onednn->memory_desc_get_size(dst);
    onednn->primitive_desc_destroy(op->pd);
    op->pd = NULL;
}

/* oneDNN 2.6 applies a deconvolution's bias and post operations with scalar reference loops, which cost 10 to
 * 30 times the deconvolution itself. The one thing that has to stay inside is the sum, as dst is overwritten.
 */
static bool wants_own_epilogue(const grt_dnnl_conv *c)
{
    bool wanted = c->transposed;
    for (int i = 0; i < c->post_count; i++)
        wanted |= is_coarse(&c->post[i]);
    return wanted;
}

/* The kernels that unfold, and the reference, apply activations a value at a time: 5 (ReLU) to 18 ns, where
 * the pass of epilogue.h takes less than 1. */
static bool is_slow_at_acts(const grt_dnnl_op *op, const grt_dnnl_conv *c)
{
    bool acts = false;
    for (int i = 0; i < c->post_count; i++)
        acts |= c->post[i].kind == GRT_DNNL_POST_ACT;
    return acts && (has_kernel(op, "gemm") || has_kernel(op, "ref"));
}

static void plan_pass(grt_dnnl_op *op, const grt_dnnl_conv *c)
{
    op->own_epilogue = true;
    op->dst_layout = c->dst_layout;
    op->batch = c->batch;
    op->channels = c->out_channels;
    op->pixels = 1;
    for (int i = 0; i < c->spatial; i++)
        op->pixels *= c->out[i];
}

/* oneDNN's exponentials cost twice what those of act_avx2.h and act_avx512.h do, which is more than a pass
 * over dst costs. There it is left to the pass. */
static void take_act_out(grt_dnnl_op *op, grt_dnnl_conv *c)
{
    const grt_dnnl_post last = c->post_count > 0 ? c->post[c->post_count - 1] : (grt_dnnl_post){0};
    if (c->post_count == 0 || last.kind != GRT_DNNL_POST_ACT || !cpu_act_has_vectors(last.act.kind))
        return;
    c->post_count--;
    plan_pass(op, c);
    op->post_count = 1;
    op->post[0] = last;
}

/* False, and nothing done, if the epilogue has to stay inside. */
static bool plan_own_epilogue(grt_dnnl_op *op, const grt_dnnl_conv *c)
{
    for (int i = 0; i < c->post_count; i++)
        if (c->post[i].kind == GRT_DNNL_POST_SUM)
            return false;
    plan_pass(op, c);
    op->own_bias = c->bias;
    op->post_count = c->post_count;
    memcpy(op->post, c->post, sizeof op->post);
    return true;
}

typedef struct tensors {
    md_view src, weights, bias, dst; /* bias NULL: none */
} tensors;

/* op->pd: the library's first implementation without a known defect, with bias and post operations unless
 * they are done outside. A binary addition that the chosen kernel gets wrong becomes a sum. avx2: fails
 * unless there is one for AVX2. */
static dnnl_status_t choose_kernel_of(grt_dnnl_op *op, const grt_dnnl_conv *c, const window *w,
                                      const tensors *t, bool outside, bool avx2, int *residual_at)
{
    const int post_count = outside ? 0 : c->post_count;
    grt_dnnl_post post[GRT_DNNL_MAX_POST];
    memcpy(post, c->post, sizeof post);
    for (int skip = 0;;) {
        dnnl_primitive_attr_t attr = NULL;
        bool sum = false;
        for (int i = 0; i < post_count; i++)
            sum |= post[i].kind == GRT_DNNL_POST_SUM;
        *residual_at = -1;
        dnnl_status_t s = make_attr(&attr, post, post_count, t->dst, residual_at);
        if (s == dnnl_success)
            s = pd_conv(&op->pd, dnnl_engine_get(), c->transposed, t->src, t->weights,
                        outside ? NULL : t->bias, t->dst, w, attr, skip);
        if (attr)
            onednn->primitive_attr_destroy(attr);
        if (s != dnnl_success)
            return s;
        const bool other_isa = avx2 && !has_kernel(op, "avx2"), wider = has_kernel(op, "avx512");
        if (other_isa && !wider) {
            onednn->primitive_desc_destroy(op->pd);
            op->pd = NULL;
            return dnnl_unimplemented;
        }
        if (*residual_at >= 0 && misadds_residual(op)) {
            add_through_dst(op, post, post_count, t->dst);
            skip = 0;
        } else if (other_isa || is_defect(op, c, sum)) {
            onednn->primitive_desc_destroy(op->pd);
            op->pd = NULL;
            skip++;
        } else {
            return dnnl_success;
        }
    }
}

/* oneDNN 2.6 keeps strides and steps of some kernels in 32 bits, and divides by what has wrapped. */
static bool is_countable(const grt_dnnl_conv *c, int64_t channels, const int64_t *pixels)
{
    int64_t elements;
    bool fits = grt_mul_i64(c->batch, channels, &elements);
    for (int i = 0; i < c->spatial && fits; i++)
        fits = grt_mul_i64(elements, pixels[i], &elements);
    return fits && elements <= INT32_MAX;
}

/* `given`: the layout of the weights is, and with it the instruction set. */
static dnnl_status_t choose_kernel(grt_dnnl_op *op, const grt_dnnl_conv *c, const window *w, const tensors *t,
                                   bool outside, bool given, int *residual_at)
{
    if (!given && dnnl_isa_prefers_avx2(c, cpu_isa_halves_avx512()) &&
        choose_kernel_of(op, c, w, t, outside, true, residual_at) == dnnl_success)
        return dnnl_success;
    return choose_kernel_of(op, c, w, t, outside, false, residual_at);
}

static grt_status create_conv(grt_dnnl_op *op, const grt_dnnl_conv *c, const grt_dnnl_op *like, char *err,
                              size_t n)
{
    md src = {0}, weights = {0}, bias = {0}, dst = {0};
    window w = {{0}, {0}, {0}, {0}, {0}};
    int residual_at = -1;
    if (c->spatial < 1 || c->spatial > GRT_DNNL_MAX_SPATIAL || c->groups < 1 || c->in_channels % c->groups ||
        c->out_channels % c->groups || c->post_count < 0 || c->post_count > GRT_DNNL_MAX_POST ||
        !dnnl_check_window(c->spatial, c->kernel, c->stride, c->dilation, c->pad_begin, c->pad_end, &w))
        return refuse(err, n, "convolution: spatial dims, groups, window or epilogue out of range");
    if (!is_countable(c, c->in_channels, c->in) || !is_countable(c, c->out_channels, c->out))
        return refuse(
            err, n,
            "convolution: its input or result has 2^31 elements or more, which oneDNN cannot count; "
            "make the batch or the image smaller");
    op->weights =
        dnnl_weights_describe(&(grt_dnnl_filter){.spatial = c->spatial,
                                                 .transposed = c->transposed,
                                                 .groups = c->groups,
                                                 .in_channels = c->in_channels,
                                                 .out_channels = c->out_channels,
                                                 .kernel = {c->kernel[0], c->kernel[1], c->kernel[2]}});
    const dnnl_dims_t bias_dims = {c->out_channels};
    const bool outside = wants_own_epilogue(c) && plan_own_epilogue(op, c);
    dnnl_status_t s = make_data(&src, c->spatial, c->src_layout, c->batch, c->in_channels, c->in);
    if (s == dnnl_success)
        s = make_data(&dst, c->spatial, c->dst_layout, c->batch, c->out_channels, c->out);
    if (s == dnnl_success && like)
        s = md_copy(&weights, onednn->primitive_desc_query_md(like->pd, dnnl_query_weights_md, 0));
    else if (s == dnnl_success)
        s = md_make(&weights, op->weights.rank, op->weights.dims, dnnl_format_tag_any);
    if (s == dnnl_success && c->bias)
        s = md_make(&bias, 1, bias_dims, dnnl_a);
    grt_dnnl_conv inside = *c;
    if (!outside)
        take_act_out(op, &inside);
    tensors t = {md_of(&src), md_of(&weights), c->bias ? md_of(&bias) : NULL, md_of(&dst)};
    if (s == dnnl_success)
        s = choose_kernel(op, &inside, &w, &t, outside, like != NULL, &residual_at);
    if (s == dnnl_success && !outside && is_slow_at_acts(op, &inside) && plan_own_epilogue(op, c)) {
        onednn->primitive_desc_destroy(op->pd);
        op->pd = NULL;
        op->residual_bytes = 0;
        s = choose_kernel(op, c, &w, &t, true, like != NULL, &residual_at);
    }
    if (s == dnnl_success)
        s = dnnl_finish(op, residual_at);
    md_free(&src);
    md_free(&weights);
    md_free(&bias);
    md_free(&dst);
    return dnnl_result(err, n, c->transposed ? "creating a deconvolution" : "creating a convolution", s);
}

static grt_status new_op(int threads, grt_dnnl_op **out, char *err, size_t n)
{
    *out = NULL;
    GRT_TRY(dnnl_engine_need(err, n));
    *out = calloc(1, sizeof **out);
    if (!*out)
        return dnnl_result(err, n, "making an operation", dnnl_out_of_memory);
    (*out)->threads = threads < 1 ? 1 : threads;
    return GRT_OK;
}

grt_status grt_dnnl_conv_create(const grt_dnnl_conv *conv, const grt_dnnl_op *like, int threads,
                                grt_dnnl_op **out, char *err, size_t n)
{
    GRT_TRY(new_op(threads, out, err, n));
    onednn->making_begin();
    const int before = use_threads((*out)->threads);
    const grt_status status = create_conv(*out, conv, like, err, n);
    use_threads(before);
    onednn->making_end();
    if (status != GRT_OK) {
        grt_dnnl_op_release(*out);
        *out = NULL;
    }
    return status;
}

void grt_dnnl_op_release(grt_dnnl_op *op)
{
    if (!op)
        return;
    for (int i = 0; i < SLOT_COUNT; i++)
        if (op->memory[i])
            onednn->memory_destroy(op->memory[i]);
    if (op->stream)
        onednn->stream_destroy(op->stream);
    if (op->primitive)
        onednn->primitive_destroy(op->primitive);
    if (op->pd)
        onednn->primitive_desc_destroy(op->pd);
    free(op);
}

const char *grt_dnnl_op_impl(const grt_dnnl_op *op)
{
    const char *name = NULL;
    onednn->primitive_desc_query(op->pd, dnnl_query_impl_info_str, 0, (void *)&name);
    return name ? name : "unknown";
}

size_t grt_dnnl_op_weights_bytes(const grt_dnnl_op *op)
{
    if (!op->weights.rank)
        return 0;
    return onednn->memory_desc_get_size(onednn->primitive_desc_query_md(op->pd, dnnl_query_weights_md, 0));
}

size_t grt_dnnl_op_scratch_bytes(const grt_dnnl_op *op)
{
    return onednn->memory_desc_get_size(onednn->primitive_desc_query_md(op->pd, dnnl_query_scratchpad_md, 0));
}

static md_view weights_md(const grt_dnnl_op *op)
{
    return onednn->primitive_desc_query_md(op->pd, dnnl_query_weights_md, 0);
}

bool grt_dnnl_op_same_weights(const grt_dnnl_op *a, const grt_dnnl_op *b)
{
    if (!a->weights.rank || !b->weights.rank)
        return a->weights.rank == b->weights.rank;
    return onednn->memory_desc_equal(weights_md(a), weights_md(b)) != 0;
}

const char *grt_dnnl_op_weights_format(const grt_dnnl_op *op)
{
    return op->weights.rank ? dnnl_weights_format(&op->weights, weights_md(op)) : NULL;
}

bool grt_dnnl_op_reads_format(const grt_dnnl_op *op, const char *format, size_t bytes)
{
    return op->weights.rank && bytes == grt_dnnl_op_weights_bytes(op) &&
           dnnl_weights_have_format(&op->weights, format, weights_md(op));
}

/* On one thread: oneDNN's reorders allocate within their parallel regions, where an exception cannot be
 * caught. Sessions create their kernels side by side anyhow. */
static grt_status reorder(const dnnl_weights *weights, const char *format, const void *from, size_t bytes,
                          md_view layout, void *to, const char *what, char *err, size_t n)
{
    const int before = use_threads(1);
    onednn->making_begin();
    const dnnl_status_t s = dnnl_weights_reorder(dnnl_engine_get(), weights, format, from, bytes, layout, to);
    onednn->making_end();
    use_threads(before);
    return dnnl_result(err, n, what, s);
}

grt_status grt_dnnl_op_prepack(const grt_dnnl_op *op, const char *format, const void *weights, size_t bytes,
                               void *packed, char *err, size_t n)
{
    if (!op->weights.rank)
        return refuse(err, n, "prepacking: the operation has no weights");
    return reorder(&op->weights, format, weights, bytes, weights_md(op), packed, "packing weights", err, n);
}

grt_status grt_dnnl_unpack(const grt_dnnl_filter *filter, const char *format, const void *packed,
                           size_t bytes, float *weights, char *err, size_t n)
{
    const dnnl_weights w = dnnl_weights_describe(filter);
    GRT_TRY(dnnl_engine_need(err, n));
    return reorder(&w, format, packed, bytes, NULL, weights, "unpacking weights", err, n);
}

static dnnl_status_t dnnl_bind(grt_dnnl_op *op, slot at, const void *pointer)
{
    void *p = (void *)(uintptr_t)pointer; /* oneDNN's handles are not const; it only writes dst and scratch */
    if (!op->memory[at] || op->bound[at] == p)
        return dnnl_success;
    op->bound[at] = p;
    return onednn->memory_set_data_handle(op->memory[at], p);
}

/* Bias and post operations in order; neighbours that one pass can do share it. */
static void finish_outside(const grt_dnnl_op *op, const grt_dnnl_args *args)
{
    const bool last = op->dst_layout == GRT_DNNL_CHANNELS_LAST;
    grt_epilogue e = {.rows = op->batch * (last ? op->pixels : op->channels),
                      .cols = last ? op->channels : op->pixels,
                      .bias_rows = op->channels};
    if (op->own_bias && last)
        e.bias = args->bias;
    else if (op->own_bias)
        e.bias_row = args->bias;
    for (int i = 0; i < op->post_count; i++) {
        if (op->post[i].kind == GRT_DNNL_POST_ADD) {
            e.residual = args->residual;
            continue;
        }
        e.act = op->post[i].act;
        grt_epilogue_run(&e, args->dst, op->threads);
        e.bias = e.bias_row = e.residual = NULL;
        e.act.kind = GRT_ACT_NONE;
    }
    grt_epilogue_run(&e, args->dst, op->threads);
}

static bool missing_argument(const grt_dnnl_op *op, const grt_dnnl_args *args)
{
    bool adds = op->residual_bytes != 0;
    for (int i = 0; i < op->post_count; i++)
        adds |= op->post[i].kind == GRT_DNNL_POST_ADD;
    return (adds && !args->residual) || (op->own_bias && !args->bias);
}

grt_status grt_dnnl_op_run(grt_dnnl_op *op, const grt_dnnl_args *args, char *err, size_t n)
{
    const void *pointers[SLOT_COUNT] = {args->src, args->weights, args->bias,
                                        args->dst, args->scratch, args->residual};
    dnnl_status_t s = dnnl_success;
    for (int i = 0; s == dnnl_success && i < SLOT_COUNT; i++) {
        if (op->memory[i] && !pointers[i])
            return refuse(err, n, "oneDNN: an argument of the operation is missing (NULL)");
        s = dnnl_bind(op, (slot)i, pointers[i]);
    }
    if (missing_argument(op, args))
        return refuse(err, n, "oneDNN: an argument of the operation is missing (NULL)");
    if (op->residual_bytes && args->residual != args->dst)
        memcpy(args->dst, args->residual, op->residual_bytes);
    const int before = use_threads(op->threads);
    if (s == dnnl_success)
        s = onednn->primitive_execute(op->primitive, op->stream, op->arg_count, op->args);
    if (s == dnnl_success)
        s = onednn->stream_wait(op->stream);
    if (s == dnnl_success && op->own_epilogue)
        finish_outside(op, args);
    use_threads(before);
    return dnnl_result(err, n, "running a primitive", s);
}
