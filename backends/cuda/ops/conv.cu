/* SPDX-License-Identifier: Apache-2.0 */
/* Conv and ConvTranspose, in domain graphrt with channels last.
 *
 * cuDNN is used where it has an engine; the epilogue pass adds what its graph does not include (other
 * activations, unusual orders). One spatial dim is seen as two. Padding that differs on the two sides is made
 * by a copy into the workspace. Windows, types and sizes that cuDNN refuses run on a plain kernel, one thread
 * per result. */
#include "backends/cuda/conv_fold.h"
#include "backends/cuda/conv_patches.h"
#include "backends/cuda/conv_products.h"
#include "backends/cuda/conv_weights.h"
#include "backends/cuda/copy.h"
#include "backends/cuda/depthwise.h"
#include "backends/cuda/depthwise_volume.h"
#include "backends/cuda/dnn_conv.h"
#include "backends/cuda/epilogue.h"
#include "backends/cuda/few_channels.h"
#include "backends/cuda/few_pixels.h"
#include "backends/cuda/grouped_taps.h"
#include "backends/cuda/grouped_windows.h"
#include "backends/cuda/gemm_node.h"
#include "backends/cuda/number.cuh"
#include "backends/cuda/lt_start.h"
#include "backends/cuda/pixel_product.h"

extern "C" {
#include "backends/shared/window.h"
}

#include <stdlib.h>

enum { BIAS = 2, RESIDUAL = 3, SPATIAL = CUDA_DNN_SPATIAL, THREADS = 256, ALIGNMENT = 256 };
#define WORKSPACE_CAP ((size_t)256 << 20)

typedef struct conv_state {
    bool last, transposed;
    bool tf32;
    bool computed; /* weights are no constant */
    int64_t groups;
    grt_act act;
    cuda_conv_weights weights;
} conv_state;

/* Three spatial dims always, leading ones of size 1. */
typedef struct conv_geometry : cuda_conv_windows {
    bool last, transposed;
    bool turned;                                         /* weights have channels last */
    int64_t batch, in_channels, out_channels, groups, n; /* n: results */
} conv_geometry;

typedef struct conv_shape {
    conv_geometry g;
    bool is_depthwise; /* by our own kernel */
    cuda_depthwise depthwise;
    bool is_volume; /* that of three spatial dims */
    cuda_depthwise_volume volume;
    bool is_few; /* few input channels: by our own kernel, too */
    cuda_few_channels few;
    bool is_grouped; /* with many taps: by our own kernel, too */
    cuda_grouped_taps grouped;
    bool is_windows; /* with small windows: by our own kernel, too */
    cuda_grouped_windows windows;
    bool is_few_pixels, is_product; /* 1 x 1, by our own kernels */
    cuda_few_pixels few_pixels;
    cuda_pixel_product product;
    bool is_half; /* 16-bit numbers and TF32 on Hopper: by our own kernel, too */
    cuda_gemm_conv half;
    cuda_conv_products products; /* of computed filters; products.plan is NULL: not so */
    cuda_dnn_plan *plan;         /* NULL: plain kernel */
    bool patches;  /* windows that tile the image: a copy makes them pixels of a 1 x 1 convolution */
    cuda_copy cut; /* that copy */
    bool bias, residual, act; /* what the plan includes */
    bool copy;                /* the input is padded into the workspace */
    int64_t padded[SPATIAL], n_padded;
    size_t copy_bytes;
} conv_shape;

/* ---- create ---- */

static bool cuda_conv_same_types(const grt_kernel_node *node, grt_text *why)
{
    for (int32_t i = 1; i < node->n_in; i++)
        if (grt_node_has(node, i) && node->in[i].dtype != node->in[0].dtype) {
            if (why)
                grt_text_add(why, "input %d is %s and input 0 is %s; supported are inputs of one type", i,
                             grt_dtype_name(node->in[i].dtype), grt_dtype_name(node->in[0].dtype));
            return false;
        }
    if (node->in[1].rank <= 2 + SPATIAL)
        return true;
    if (why)
        grt_text_add(why, "the window has %d dims; supported are up to %d", node->in[1].rank - 2, SPATIAL);
    return false;
}

static bool cuda_conv_fused_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_act act;
    return cuda_conv_same_types(node, why) && grt_act_read(node->desc, &act, why);
}

static void cuda_conv_destroy(void *data)
{
    conv_state *state = (conv_state *)data;
    if (state)
        cuda_conv_weights_destroy(&state->weights);
    free(state);
}

/* cuDNN plans products of half floats and of TF32 with cuBLASLt, most often. */
static void begin_products(const grt_kernel_node *node, const conv_state *state)
{
    const grt_tensor *w = &node->in[1];
    const bool narrow = w->dtype == GRT_DTYPE_FLOAT16 || w->dtype == GRT_DTYPE_BFLOAT16;
    if (w->rank > 2 && grt_dims_product(w->dims, 2, w->rank) == 1 && state->groups == 1 &&
        !state->transposed && (narrow || state->tf32) &&
        !(cuda_gemm_on(&((const cuda_device *)node->device)->prop) && cuda_gemm_takes(node)))
        cuda_lt_start_type((cuda_device *)node->device, w->dtype, state->tf32);
}

static grt_status cuda_conv_create(const grt_kernel_node *node, void **out_state)
{
    conv_state *state = (conv_state *)calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    state->last = grt_channels_last(node->desc);
    state->transposed = !strcmp(node->desc->op, "ConvTranspose");
    state->tf32 = !strcmp(grt_attr_string(node->desc, "math", ""), "tf32");
    state->computed = !node->in[1].data;
    state->groups = grt_attr_int(node->desc, "group", 1);
    begin_products(node, state);
    if (grt_op_is(node->desc, "graphrt", "Conv"))
        grt_act_read(node->desc, &state->act, NULL);
    const grt_status status =
        cuda_conv_weights_create(node, state->transposed, state->groups, &state->weights);
    if (status != GRT_OK) {
        cuda_conv_destroy(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

/* ---- reshape ---- */

static void cuda_conv_release_shape(void *data)
{
    conv_shape *s = (conv_shape *)data;
    if (s) {
        cuda_lt_plan_release(s->products.plan);
        cuda_dnn_plan_release(s->plan);
    }
    free(s);
}

static void cuda_conv_describe(const grt_reshape *r, conv_geometry *g)
{
    const conv_state *state = (const conv_state *)r->state;
    const grt_tensor *x = r->in[0], *w = r->in[1], *y = r->out[0];
    const int32_t spatial = x->rank - 2, at = state->last ? 1 : 2, skip = SPATIAL - spatial;
    cpu_window window;
    cpu_window_read(r->desc, spatial, x->dims + at, y->dims + at, w->dims + 2, state->transposed, &window);
    g->last = state->last;
    g->transposed = state->transposed;
    g->turned = state->weights.turned;
    g->groups = state->groups;
    g->batch = x->dims[0];
    g->in_channels = x->dims[state->last ? x->rank - 1 : 1];
    g->out_channels = y->dims[state->last ? y->rank - 1 : 1];
    g->n = grt_tensor_elements(y);
    for (int32_t d = 0; d < SPATIAL; d++) {
        const bool real = d >= skip;
        g->in[d] = real ? window.in[d - skip] : 1;
        g->out[d] = real ? window.out[d - skip] : 1;
        g->kernel[d] = real ? window.kernel[d - skip] : 1;
        g->stride[d] = real ? window.stride[d - skip] : 1;
        g->dilation[d] = real ? window.dilation[d - skip] : 1;
        g->begin[d] = real ? window.begin[d - skip] : 0;
    }
    if (g->last)
        cuda_conv_fold(g, &g->batch);
}

static grt_status cuda_conv_check_inputs(const grt_reshape *r)
{
    const conv_state *state = (const conv_state *)r->state;
    const grt_tensor *x = r->in[0], *w = r->in[1], *y = r->out[0],
                     *bias = r->n_in > BIAS ? r->in[BIAS] : NULL;
    const grt_tensor *residual = r->n_in > RESIDUAL ? r->in[RESIDUAL] : NULL;
    char found[GRT_TYPE_TEXT_SIZE], wanted[GRT_TYPE_TEXT_SIZE];
    if (x->rank < 3 || x->rank > 2 + SPATIAL || w->rank != x->rank)
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                           "the input is %s and the window %s; the CUDA backend supports 1 to %d "
                           "spatial dims",
                           grt_tensor_text(x, found), grt_tensor_text(w, wanted), SPATIAL);
    const int64_t channels = y->dims[state->last ? y->rank - 1 : 1];
    if (bias && grt_tensor_elements(bias) != channels)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the bias is %s; expected %lld elements",
                           grt_tensor_text(bias, found), (long long)channels);
    if (residual && !grt_dims_equal(residual->dims, residual->rank, y->dims, y->rank))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the residual is %s; expected the result's dims, %s",
                           grt_tensor_text(residual, found), grt_tensor_text(y, wanted));
    return GRT_OK;
}

/* The last two spatial dims, which are all of a plane. */
template <class C> static void copy_plane(const conv_geometry *g, C *to)
{
    for (int k = 0; k < 2; k++) {
        to->in[k] = g->in[k + 1];
        to->out[k] = g->out[k + 1];
        to->kernel[k] = g->kernel[k + 1];
        to->stride[k] = g->stride[k + 1];
        to->dilation[k] = g->dilation[k + 1];
        to->begin[k] = g->begin[k + 1];
    }
}

/* True if it is depthwise, in sizes that our own kernel takes. */
static bool describe_depthwise(const conv_state *state, grt_dtype dtype, conv_shape *s)
{
    const conv_geometry *g = &s->g;
    cuda_depthwise *d = &s->depthwise;
    if (!state->weights.depthwise || g->in_channels != g->groups || g->out_channels != g->groups ||
        !cuda_conv_is_plane(g))
        return false;
    *d = {};
    d->dtype = dtype;
    d->batch = g->batch;
    d->channels = g->in_channels;
    d->act = state->act;
    copy_plane(g, d);
    return cuda_depthwise_fits(d);
}

static bool describe_volume(const conv_state *state, grt_dtype dtype, conv_shape *s)
{
    const conv_geometry *g = &s->g;
    cuda_depthwise_volume *d = &s->volume;
    if (!state->weights.depthwise || g->in_channels != g->groups || g->out_channels != g->groups ||
        cuda_conv_is_plane(g))
        return false;
    *d = {};
    d->dtype = dtype;
    d->batch = g->batch;
    d->channels = g->in_channels;
    d->act = state->act;
    d->windows = *g;
    return cuda_depthwise_volume_fits(d);
}

static bool describe_grouped(const conv_state *state, grt_dtype dtype, int multiprocessors, conv_shape *s)
{
    const conv_geometry *g = &s->g;
    if (!state->weights.ready || state->weights.depthwise || g->transposed || g->groups < 2 ||
        !cuda_conv_is_plane(g) || (dtype == GRT_DTYPE_FLOAT && !state->tf32))
        return false;
    cuda_grouped_taps *t = &s->grouped;
    *t = {dtype, g->batch, g->groups, g->in_channels / g->groups, g->out_channels / g->groups};
    copy_plane(g, t);
    return cuda_grouped_taps_plan(t, multiprocessors);
}

static bool describe_windows(const conv_state *state, grt_dtype dtype, int multiprocessors, conv_shape *s)
{
    const conv_geometry *g = &s->g;
    if (!state->weights.ready || state->weights.depthwise || g->transposed || g->groups < 2 ||
        g->in_channels != g->out_channels || !cuda_conv_is_plane(g) || !g->last)
        return false;
    cuda_grouped_windows *c = &s->windows;
    *c = {};
    c->dtype = dtype;
    c->batch = g->batch;
    c->groups = g->groups;
    c->group = g->in_channels / g->groups;
    c->act = state->act;
    copy_plane(g, c);
    return cuda_grouped_windows_plan(c, multiprocessors);
}

/* True if computed filters of many groups are to be multiplied with unfolded windows. */
static bool describe_products(const conv_state *state, grt_dtype dtype, conv_shape *s)
{
    const conv_geometry *g = &s->g;
    cuda_conv_products *c = &s->products;
    if (!state->computed || g->last || g->batch != 1 || !cuda_conv_is_plane(g))
        return false;
    *c = {};
    c->dtype = dtype;
    c->tf32 = state->tf32;
    c->transposed = g->transposed;
    c->groups = g->groups;
    c->in_group = g->in_channels / g->groups;
    c->out_group = g->out_channels / g->groups;
    copy_plane(g, c);
    return cuda_conv_products_fits(c);
}

/* A product of pixels and weights: 1 x 1, all channels for all. */
static bool cuda_conv_is_product(const conv_geometry *g)
{
    for (int d = 0; d < SPATIAL; d++)
        if (g->kernel[d] != 1 || g->stride[d] != 1 || g->begin[d] != 0 || g->in[d] != g->out[d])
            return false;
    return g->last && !g->transposed && g->groups == 1;
}

static bool describe_few_pixels(const conv_state *state, grt_dtype dtype, conv_shape *s)
{
    const conv_geometry *g = &s->g;
    s->few_pixels = {dtype, g->batch * g->out[0] * g->out[1] * g->out[2], g->in_channels, g->out_channels,
                     state->act};
    return state->weights.ready && cuda_conv_is_product(g) && cuda_few_pixels_fits(&s->few_pixels);
}

/* cuDNN applies the other activations itself, and has only slow engines for channels that are no whole
 * vectors. */
static bool describe_product(const grt_reshape *r, conv_shape *s)
{
    const conv_state *state = (const conv_state *)r->state;
    const conv_geometry *g = &s->g;
    s->product = {r->in[0]->dtype, g->batch * g->out[0] * g->out[1] * g->out[2],
                  g->in_channels,  g->out_channels,
                  state->act,      ((const cuda_device *)r->device)->prop.multiProcessorCount};
    return state->weights.ready && cuda_conv_is_product(g) && !(r->n_in > RESIDUAL && r->in[RESIDUAL]) &&
           ((state->act.kind != GRT_ACT_NONE && state->act.kind != GRT_ACT_RELU) ||
            !cuda_pixel_product_is_whole(&s->product)) &&
           cuda_pixel_product_fits(&s->product);
}

static bool is_patches(const conv_geometry *g)
{
    return g->last && !g->transposed && g->groups == 1 &&
           cuda_conv_tiles(SPATIAL, g->in_channels, g->in, g->out, g->kernel, g->stride, g->dilation,
                           g->begin);
}

/* [batch, rows, row, columns, column, channel] to [batch, rows, columns, row, column, channel], with depth
 * likewise. */
static void plan_cut(conv_shape *s, grt_dtype dtype)
{
    const conv_geometry *g = &s->g;
    int64_t from[SPATIAL],
        to = s->n_padded / g->batch; /* from: what one step along a dim is, in elements of the image */
    from[SPATIAL - 1] = g->in_channels;
    for (int d = SPATIAL - 2; d >= 0; d--)
        from[d] = from[d + 1] * g->in[d + 1];
    cuda_copy_begin(&s->cut, dtype);
    cuda_copy_axis(&s->cut, g->batch, to, to);
    for (int d = 0; d < SPATIAL; d++)
        cuda_copy_axis(&s->cut, g->out[d], to /= g->out[d], from[d] * g->kernel[d]);
    for (int d = 0; d < SPATIAL; d++)
        cuda_copy_axis(&s->cut, g->kernel[d], to /= g->kernel[d], from[d]);
    cuda_copy_axis(&s->cut, g->in_channels, 1, 1);
    cuda_copy_end(&s->cut);
}

/* The first convolution of an image model. */
static bool describe_few(const grt_reshape *r, conv_shape *s)
{
    const conv_state *state = (const conv_state *)r->state;
    const conv_geometry *g = &s->g;
    cuda_few_channels *c = &s->few;
    if (!state->weights.ready || g->transposed || g->groups != 1 || is_patches(g) ||
        (r->n_in > RESIDUAL && r->in[RESIDUAL]))
        return false;
    *c = {};
    c->dtype = r->in[0]->dtype;
    c->batch = g->batch;
    c->channels = g->in_channels;
    c->out_channels = g->out_channels;
    c->act = state->act;
    c->windows = *g;
    for (int k = 0; k < SPATIAL; k++)
        if (g->dilation[k] != 1 && g->kernel[k] > 1)
            return false;
    return cuda_few_channels_plan(c, ((const cuda_device *)r->device)->prop.multiProcessorCount);
}

/* Fill cuDNN's description; false if cuDNN cannot have this one. Equal padding on both sides is used if the
 * surplus at the end is less than one stride. */
static bool describe_plan(const conv_state *state, conv_shape *s, grt_dtype dtype, cuda_dnn_conv *c)
{
    const conv_geometry *g = &s->g;
    *c = {};
    if (dtype == GRT_DTYPE_DOUBLE || (g->last && !state->weights.ready) || g->batch <= 0 ||
        g->in_channels <= 0 || g->groups <= 0)
        return false;
    c->dtype = dtype;
    c->tf32 = state->tf32;
    c->last = g->last;
    c->transposed = g->transposed;
    c->batch = g->batch;
    c->in_channels = g->in_channels;
    c->out_channels = g->out_channels;
    c->groups = g->groups;
    c->workspace_cap = WORKSPACE_CAP;
    c->spatial = cuda_conv_is_plane(g) ? 2 : 3;
    const int32_t skip = SPATIAL - c->spatial;
    int64_t end[SPATIAL];
    s->patches = is_patches(g);
    if (s->patches) {
        s->copy = true;
        s->n_padded = g->batch * g->in_channels * g->in[0] * g->in[1] * g->in[2];
        plan_cut(s, dtype);
        c->in_channels = g->in_channels * g->kernel[0] * g->kernel[1] * g->kernel[2];
        for (int32_t d = 0; d < c->spatial; d++) {
            c->in[d] = c->out[d] = g->out[skip + d];
            c->kernel[d] = c->stride[d] = c->dilation[d] = 1;
        }
        return true;
    }
    for (int32_t d = 0; d < SPATIAL; d++) {
        const int64_t reach = (g->kernel[d] - 1) * g->dilation[d] + 1;
        const int64_t small = g->transposed ? g->in[d] : g->out[d],
                      large = g->transposed ? g->out[d] : g->in[d];
        if (g->in[d] <= 0 || g->out[d] <= 0)
            return false;
        end[d] = (small - 1) * g->stride[d] + reach - large - g->begin[d];
        if (g->begin[d] < 0 || g->begin[d] < end[d] || g->begin[d] >= end[d] + g->stride[d])
            s->copy = true;
    }
    if (s->copy && g->transposed)
        return false;
    s->n_padded = g->batch * g->in_channels;
    for (int32_t d = 0; d < SPATIAL; d++) {
        s->padded[d] = s->copy ? g->in[d] + g->begin[d] + end[d] : g->in[d]; /* what the windows reach */
        s->n_padded *= s->padded[d];
        if (d < skip)
            continue;
        c->in[d - skip] = s->padded[d];
        c->out[d - skip] = g->out[d];
        c->kernel[d - skip] = g->kernel[d];
        c->stride[d - skip] = g->stride[d];
        c->dilation[d - skip] = g->dilation[d];
        c->padding[d - skip] = s->copy ? 0 : g->begin[d];
    }
    return true;
}

/* A plan for c with what is asked for, noted in s. */
static grt_status cuda_conv_try_plan(cuda_device *device, cuda_dnn_conv *c, grt_algo_trial *trial, bool bias,
                                     bool residual, bool act, conv_shape *s)
{
    c->bias = bias;
    c->residual = residual;
    c->relu = act;
    GRT_TRY(cuda_dnn_plan_create(device, c, trial, &s->plan));
    s->bias = bias && s->plan;
    s->residual = residual && s->plan;
    s->act = act && s->plan;
    return GRT_OK;
}

/* First with all that cuDNN can fuse, then bare, then with engines compiled at run time. */
static grt_status cuda_conv_plan(const grt_reshape *r, conv_shape *s)
{
    const conv_state *state = (const conv_state *)r->state;
    cuda_device *device = (cuda_device *)r->device;
    const bool bias = r->n_in > BIAS && r->in[BIAS], residual = r->n_in > RESIDUAL && r->in[RESIDUAL];
    const bool relu = state->act.kind == GRT_ACT_RELU, other = state->act.kind != GRT_ACT_NONE && !relu;
    cuda_dnn_conv c;
    if (!describe_plan(state, s, r->in[0]->dtype, &c)) {
        s->copy = false;
        return GRT_OK;
    }
    /* Other activations need the epilogue pass anyway, which then adds bias and residual too: engines for a
     * bias alone or a clipped ReLU are slow. */
    if (!c.transposed && !other && (bias || residual || relu))
        GRT_TRY(cuda_conv_try_plan(device, &c, r->trial, bias, residual, relu, s));
    if (!s->plan)
        GRT_TRY(cuda_conv_try_plan(device, &c, r->trial, false, false, false, s));
    c.compile = true;
    if (!s->plan)
        GRT_TRY(cuda_conv_try_plan(device, &c, r->trial, false, false, false, s));
    s->copy = s->copy && s->plan;
    return GRT_OK;
}

/* Patches are cut as for cuDNN. */
static bool describe_half(const grt_reshape *r, conv_shape *s)
{
    const conv_state *state = (const conv_state *)r->state;
    const cudaDeviceProp *prop = &((const cuda_device *)r->device)->prop;
    if (!state->weights.ready || s->g.transposed || !cuda_gemm_on(prop) ||
        !cuda_gemm_of_conv(r, prop->multiProcessorCount, &s->half) ||
        (s->half.gathers && !state->weights.rows && !cuda_is_described(r->device)))
        return false;
    s->patches = s->half.cuts;
    s->copy = s->patches || s->half.gathers;
    s->n_padded = s->half.gathers ? s->half.product.rows * s->half.product.channels
                                  : s->g.batch * s->g.in_channels * s->g.in[0] * s->g.in[1] * s->g.in[2];
    if (s->patches)
        plan_cut(s, r->in[0]->dtype);
    if (!cuda_is_described(r->device))
        cuda_gemm_bind(&s->half.product);
    return true;
}

/* True if one of our kernels takes it, which s then says. */
static bool has_own_kernel(const grt_reshape *r, conv_shape *s)
{
    const conv_state *state = (const conv_state *)r->state;
    const grt_dtype dtype = r->in[0]->dtype;
    const int multiprocessors = ((const cuda_device *)r->device)->prop.multiProcessorCount;
    s->is_depthwise = describe_depthwise(state, dtype, s);
    s->is_volume = !s->is_depthwise && describe_volume(state, dtype, s);
    s->is_few_pixels = !s->is_depthwise && describe_few_pixels(state, dtype, s);
    if (s->is_depthwise || s->is_volume || s->is_few_pixels)
        return true;
    s->is_few = describe_few(r, s);
    s->is_half = !s->is_few && describe_half(r, s);
    s->is_product = !s->is_few && !s->is_half && describe_product(r, s);
    if (s->is_few || s->is_half || s->is_product)
        return true;
    s->is_grouped = describe_grouped(state, dtype, multiprocessors, s);
    s->is_windows = !s->is_grouped && describe_windows(state, dtype, multiprocessors, s);
    return s->is_grouped || s->is_windows;
}

/* By a library. */
static grt_status plan_by_library(const grt_reshape *r, conv_shape *s)
{
    const conv_state *state = (const conv_state *)r->state;
    const bool is_products = describe_products(state, r->in[0]->dtype, s);
    if (is_products && cuda_is_described(r->device))
        return GRT_OK; /* cuBLASLt is asked on the GPU itself */
    if (is_products)
        GRT_TRY(cuda_conv_products_plan((cuda_device *)r->device, r->desc, r->trial, &s->products));
    return s->products.plan ? GRT_OK : cuda_conv_plan(r, s);
}

static grt_status cuda_conv_reshape(grt_reshape *r)
{
    GRT_TRY(cuda_conv_check_inputs(r));
    conv_shape *s = (conv_shape *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    cuda_conv_describe(r, &s->g);
    grt_status status = s->g.n > 0 && !has_own_kernel(r, s) ? plan_by_library(r, s) : GRT_OK;
    if (status != GRT_OK) {
        cuda_conv_release_shape(s);
        return status;
    }
    if (s->copy)
        s->copy_bytes = ((size_t)s->n_padded * grt_dtype_size(r->in[0]->dtype) + ALIGNMENT - 1) &
                        ~(size_t)(ALIGNMENT - 1);
    if (s->is_half && s->copy)
        r->workspace_bytes = s->copy_bytes + ALIGNMENT;
    if (s->is_grouped)
        r->workspace_bytes = cuda_grouped_taps_workspace(&s->grouped);
    if (s->products.plan)
        r->workspace_bytes = cuda_conv_products_workspace(&s->products) + ALIGNMENT;
    if (s->plan)
        r->workspace_bytes = s->copy_bytes + cuda_dnn_plan_workspace(s->plan) + ALIGNMENT;
    r->shape = s;
    return GRT_OK;
}

/* ---- kernels ---- */

/* to has the sizes `padded`; what lies outside of x is zero. */
template <class T> __global__ void pad(const __grid_constant__ conv_shape s, const T *x, T *to)
{
    const conv_geometry &g = s.g;
    CUDA_EACH(i, s.n_padded)
    {
        int64_t rest = i, channel = 0, at = 0, p[SPATIAL];
        bool inside = true;
        if (g.last) {
            channel = rest % g.in_channels;
            rest /= g.in_channels;
        }
        for (int d = SPATIAL - 1; d >= 0; d--) {
            p[d] = rest % s.padded[d] - g.begin[d];
            rest /= s.padded[d];
            inside = inside && p[d] >= 0 && p[d] < g.in[d];
        }
        at = rest; /* image, or image and channel */
        for (int d = 0; d < SPATIAL; d++)
            at = at * g.in[d] + p[d];
        T v = cuda_narrow<T, float>(0.0f);
        if (inside)
            v = x[g.last ? at * g.in_channels + channel : at];
        to[i] = v;
    }
}

/* One result per thread; w as in ONNX or, if turned, with channels last. */
template <class T>
__global__ void direct(const __grid_constant__ conv_geometry g, const T *x, const T *w, T *y)
{
    using W = typename cuda_wide<T>::type;
    const int64_t in_group = g.in_channels / g.groups, out_group = g.out_channels / g.groups;
    const int64_t in_pixels = g.in[0] * g.in[1] * g.in[2], taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
    const int64_t pixel_step = g.last ? g.in_channels : 1, channel_step = g.last ? 1 : in_pixels;
    CUDA_EACH(i, g.n)
    {
        int64_t rest = i, channel = 0, o[SPATIAL];
        if (g.last) {
            channel = rest % g.out_channels;
            rest /= g.out_channels;
        }
        for (int d = SPATIAL - 1; d >= 0; d--) {
            o[d] = rest % g.out[d];
            rest /= g.out[d];
        }
        if (!g.last) {
            channel = rest % g.out_channels;
            rest /= g.out_channels;
        }
        const int64_t group = channel / out_group;
        const T *image = x + rest * g.in_channels * in_pixels + group * in_group * channel_step;
        /* Weights: [out, in of a group, taps]; transposed: [in, out of a group, taps]. */
        const int64_t unit = g.turned ? 1 : taps, tap_step = !g.turned      ? 1
                                                             : g.transposed ? out_group
                                                                            : in_group;
        const T *window = g.transposed ? w + group * in_group * out_group * taps + channel % out_group * unit
                                       : w + channel * in_group * taps;
        const int64_t window_step = g.transposed ? out_group * taps : unit;
        W sum = 0;
        for (int64_t t = 0; t < taps; t++) {
            int64_t k = t, position = 0, step = 1;
            bool inside = true;
            for (int d = SPATIAL - 1; d >= 0; d--) {
                const int64_t tap = k % g.kernel[d] * g.dilation[d];
                int64_t p = g.transposed ? o[d] + g.begin[d] - tap : o[d] * g.stride[d] - g.begin[d] + tap;
                k /= g.kernel[d];
                if (g.transposed) {
                    inside = inside && p >= 0 && p % g.stride[d] == 0;
                    p /= g.stride[d];
                }
                inside = inside && p >= 0 && p < g.in[d];
                position += p * step;
                step *= g.in[d];
            }
            for (int64_t c = 0; inside && c < in_group; c++)
                sum += (W)cuda_widen(image[position * pixel_step + c * channel_step]) *
                       (W)cuda_widen(window[c * window_step + t * tap_step]);
        }
        y[i] = cuda_narrow<T, W>(sum);
    }
}

/* ---- run ---- */

template <class T> static void launch_direct(const conv_shape *s, const grt_run *r)
{
    direct<T><<<cuda_blocks(s->g.n, THREADS), THREADS, 0, (cudaStream_t)r->stream>>>(
        s->g, (const T *)r->in[0]->data, (const T *)r->in[1]->data, (T *)r->out[0]->data);
}

template <class T> static void launch_pad(const conv_shape *s, const void *x, void *to, cudaStream_t stream)
{
    pad<T><<<cuda_blocks(s->n_padded, THREADS), THREADS, 0, stream>>>(*s, (const T *)x, (T *)to);
}

static const void *conv_weights_in(const grt_run *r)
{
    return cuda_conv_weights_of(&((const conv_state *)r->state)->weights, r->in[1]->data);
}

static char *cuda_conv_workspace(const grt_run *r)
{
    return (char *)(((uintptr_t)r->workspace + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1));
}

static grt_status run_half(const grt_run *r, const conv_shape *s)
{
    const conv_state *state = (const conv_state *)r->state;
    cuda_gemm_args args = {r->in[0]->data, s->half.gathers ? state->weights.rows : conv_weights_in(r),
                           grt_run_data(r, BIAS), grt_run_data(r, RESIDUAL), r->out[0]->data};
    char *rows = cuda_conv_workspace(r);
    if (s->half.gathers)
        GRT_TRY(cuda_window_rows_run(&s->half.rows, args.x, rows, (cudaStream_t)r->stream));
    else if (s->half.cuts)
        GRT_TRY(cuda_copy_run(&s->cut, rows, args.x, (cudaStream_t)r->stream));
    if (s->copy)
        args.x = rows;
    return cuda_gemm_run(&s->half.product, &args, (cudaStream_t)r->stream);
}

static grt_status run_plan(const grt_run *r, const conv_shape *s)
{
    char *workspace = cuda_conv_workspace(r);
    cuda_dnn_args args = {};
    args.x = r->in[0]->data;
    args.w = conv_weights_in(r);
    args.bias = s->bias ? grt_run_data(r, BIAS) : NULL;
    args.residual = s->residual ? grt_run_data(r, RESIDUAL) : NULL;
    args.y = r->out[0]->data;
    args.workspace = workspace + s->copy_bytes;
    if (s->patches) {
        GRT_TRY(cuda_copy_run(&s->cut, workspace, r->in[0]->data, (cudaStream_t)r->stream));
        args.x = workspace;
    } else if (s->copy) {
        CUDA_FOR_FLOATS(r->in[0]->dtype, T,
                        launch_pad<T>(s, r->in[0]->data, workspace, (cudaStream_t)r->stream));
        CUDA_LAUNCHED();
        args.x = workspace;
    }
    return cuda_dnn_plan_run(s->plan, r, &args);
}

/* By a kernel of ours that adds and activates as well; false if there is none for it. */
static bool run_own(const grt_run *r, const conv_shape *s)
{
    const conv_state *state = (const conv_state *)r->state;
    const void *x = r->in[0]->data, *bias = grt_run_data(r, BIAS), *residual = grt_run_data(r, RESIDUAL);
    void *y = r->out[0]->data;
    cudaStream_t stream = (cudaStream_t)r->stream;
    if (s->is_depthwise)
        return cuda_depthwise_run(&s->depthwise, x, state->weights.filters, bias, residual, y, stream);
    if (s->is_volume)
        return cuda_depthwise_volume_run(&s->volume, x, state->weights.filters, bias, residual, y, stream);
    if (s->is_windows)
        return cuda_grouped_windows_run(&s->windows, x, conv_weights_in(r), bias, residual, y, stream);
    if (s->is_few)
        return cuda_few_channels_run(&s->few, x, conv_weights_in(r), bias, y, stream);
    if (s->is_product)
        return cuda_pixel_product_run(&s->product, x, conv_weights_in(r), bias, y, stream);
    if (s->is_few_pixels)
        cuda_few_pixels_run(&s->few_pixels, x, conv_weights_in(r), bias, residual, y, stream);
    return s->is_few_pixels;
}

static grt_status cuda_conv_run(const grt_run *r)
{
    const conv_state *state = (const conv_state *)r->state;
    const conv_shape *s = (const conv_shape *)r->shape;
    const conv_geometry *g = &s->g;
    if (g->n == 0)
        return GRT_OK;
    if (s->is_half)
        return run_half(r, s);
    if (run_own(r, s)) {
        CUDA_LAUNCHED();
        return GRT_OK;
    }
    if (s->products.plan) {
        GRT_TRY(cuda_conv_products_run(&s->products, r->desc, r->in[0]->data, r->in[1]->data, r->out[0]->data,
                                       cuda_conv_workspace(r), (cudaStream_t)r->stream));
    } else if (s->plan) {
        GRT_TRY(run_plan(r, s));
    } else if (!s->is_grouped ||
               !cuda_grouped_taps_run(&s->grouped, r->in[0]->data, conv_weights_in(r), r->out[0]->data,
                                      r->workspace, (cudaStream_t)r->stream)) {
        CUDA_FOR_FLOATS(r->in[0]->dtype, T, launch_direct<T>(s, r));
        CUDA_LAUNCHED();
    }
    cuda_epilogue e = {};
    e.dtype = r->in[0]->dtype;
    e.n = g->n;
    e.bias = s->bias ? NULL : grt_run_data(r, BIAS);
    e.channels = g->out_channels;
    e.inner = g->last ? 1 : g->out[0] * g->out[1] * g->out[2];
    e.residual = s->residual ? NULL : grt_run_data(r, RESIDUAL);
    if (!s->act)
        e.act = state->act;
    return cuda_epilogue_run(&e, r->out[0]->data, (cudaStream_t)r->stream);
}

#define LIFE                                                                                  \
    .pack = cuda_conv_weights_pack, .create = cuda_conv_create, .destroy = cuda_conv_destroy, \
    .reshape = cuda_conv_reshape, .release_shape = cuda_conv_release_shape, .run = cuda_conv_run

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Conv",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .flags = GRT_KERNEL_TUNES | GRT_KERNEL_CHOOSES,
     .supports = cuda_conv_same_types,
     LIFE},
    {.domain = "",
     .op = "ConvTranspose",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .flags = GRT_KERNEL_TUNES | GRT_KERNEL_CHOOSES,
     .supports = cuda_conv_same_types,
     LIFE},
    {.domain = "graphrt",
     .op = "ConvTranspose",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .flags = GRT_KERNEL_TUNES | GRT_KERNEL_CHOOSES,
     .supports = cuda_conv_same_types,
     LIFE},
    {.domain = "graphrt",
     .op = "Conv",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .flags = GRT_KERNEL_TUNES | GRT_KERNEL_CHOOSES,
     .supports = cuda_conv_fused_supports,
     LIFE},
};
CUDA_KERNELS(conv, rows);
