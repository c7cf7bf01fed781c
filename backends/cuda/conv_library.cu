/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by cuDNN, where it has an engine, and those of computed filters by cuBLASLt. One spatial dim
 * is seen as two. Padding that differs on the two sides is made by a copy into the workspace. */
#include "backends/cuda/conv_shape.h"

extern "C" {
#include "backends/shared/window.h"
}

#define WORKSPACE_CAP ((size_t)256 << 20)

/* True if computed filters of many groups are to be multiplied with unfolded windows. */
static bool describe_products(const cuda_conv_state *state, grt_dtype dtype, cuda_conv_shape *s)
{
    const cuda_conv_geometry *g = &s->g;
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
    cuda_conv_copy_plane(g, c);
    return cuda_conv_products_fits(c);
}

/* Patches that a copy cuts are pixels. */
static void plan_patches(cuda_conv_shape *s, grt_dtype dtype, cuda_dnn_conv *c)
{
    const cuda_conv_geometry *g = &s->g;
    s->copy = true;
    s->n_padded = g->batch * g->in_channels * g->in[0] * g->in[1] * g->in[2];
    cuda_conv_plan_cut(s, dtype);
    c->in_channels = g->in_channels * g->kernel[0] * g->kernel[1] * g->kernel[2];
    for (int32_t d = 0; d < c->spatial; d++) {
        c->in[d] = c->out[d] = g->out[SPATIAL - c->spatial + d];
        c->kernel[d] = c->stride[d] = c->dilation[d] = 1;
    }
}

/* Windows, and which padding a copy makes: equal padding on both sides is used if the surplus at the end is
 * less than one stride. False if cuDNN cannot have these. */
static bool plan_windows(cuda_conv_shape *s, cuda_dnn_conv *c)
{
    const cuda_conv_geometry *g = &s->g;
    constexpr int64_t MOST_PADDED = INT64_MAX / 16; /* elements, so that their bytes are counted, too */
    const int32_t skip = SPATIAL - c->spatial;
    int64_t end[SPATIAL];
    for (int32_t d = 0; d < SPATIAL; d++) {
        const int64_t reach = cpu_window_extent(g->kernel[d], g->dilation[d]);
        const int64_t small = g->transposed ? g->in[d] : g->out[d],
                      large = g->transposed ? g->out[d] : g->in[d];
        if (g->in[d] <= 0 || g->out[d] <= 0)
            return false;
        end[d] = grt_add_saturated((small - 1) * g->stride[d], reach) - large - g->begin[d];
        if (g->begin[d] < 0 || g->begin[d] < end[d] || g->begin[d] >= end[d] + g->stride[d])
            s->copy = true;
    }
    if (s->copy && g->transposed)
        return false;
    s->n_padded = g->batch * g->in_channels;
    for (int32_t d = 0; d < SPATIAL; d++) {
        s->padded[d] = s->copy ? g->in[d] + g->begin[d] + end[d] : g->in[d]; /* what the windows reach */
        if (!grt_mul_i64(s->n_padded, s->padded[d], &s->n_padded) || s->n_padded > MOST_PADDED)
            return false;
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

/* Fill cuDNN's description; false if cuDNN cannot have this one. */
static bool describe_plan(const cuda_conv_state *state, cuda_conv_shape *s, grt_dtype dtype, cuda_dnn_conv *c)
{
    const cuda_conv_geometry *g = &s->g;
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
    s->patches = cuda_conv_is_patches(g);
    if (!s->patches)
        return plan_windows(s, c);
    plan_patches(s, dtype, c);
    return true;
}

/* A plan for c with what is asked for, noted in s. */
static grt_status cuda_conv_try_plan(cuda_device *device, cuda_dnn_conv *c, grt_algo_trial *trial, bool bias,
                                     bool residual, bool act, cuda_conv_shape *s)
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
static grt_status cuda_conv_plan(const grt_reshape *r, cuda_conv_shape *s)
{
    const cuda_conv_state *state = (const cuda_conv_state *)r->state;
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

grt_status cuda_conv_plan_by_library(const grt_reshape *r, cuda_conv_shape *s)
{
    const cuda_conv_state *state = (const cuda_conv_state *)r->state;
    const bool is_products = describe_products(state, r->in[0]->dtype, s);
    if (is_products && cuda_is_described(r->device))
        return GRT_OK; /* cuBLASLt is asked on the GPU itself */
    if (is_products)
        GRT_TRY(cuda_conv_products_plan((cuda_device *)r->device, r->desc, r->trial, &s->products));
    return s->products.plan ? GRT_OK : cuda_conv_plan(r, s);
}
