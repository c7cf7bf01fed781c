/* SPDX-License-Identifier: Apache-2.0 */
/* Which of our kernels computes a convolution, and what it is told. */
#include "backends/cuda/conv_patches.h"
#include "backends/cuda/conv_shape.h"

/* True if it is depthwise, in sizes that our own kernel takes. */
static bool describe_depthwise(const cuda_conv_state *state, grt_dtype dtype, cuda_conv_shape *s)
{
    const cuda_conv_geometry *g = &s->g;
    cuda_depthwise *d = &s->depthwise;
    if (!state->weights.depthwise || g->in_channels != g->groups || g->out_channels % g->groups ||
        !cuda_conv_is_plane(g))
        return false;
    *d = {};
    d->dtype = dtype;
    d->batch = g->batch;
    d->channels = g->in_channels;
    d->filters = g->out_channels / g->groups;
    d->act = state->act;
    cuda_conv_copy_plane(g, d);
    return cuda_depthwise_fits(d);
}

static bool describe_volume(const cuda_conv_state *state, grt_dtype dtype, cuda_conv_shape *s)
{
    const cuda_conv_geometry *g = &s->g;
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

static bool describe_grouped(const cuda_conv_state *state, grt_dtype dtype, int multiprocessors,
                             cuda_conv_shape *s)
{
    const cuda_conv_geometry *g = &s->g;
    if (!state->weights.ready || state->weights.depthwise || g->transposed || g->groups < 2 ||
        !cuda_conv_is_plane(g) || (dtype == GRT_DTYPE_FLOAT && !state->tf32))
        return false;
    cuda_grouped_taps *t = &s->grouped;
    *t = {dtype, g->batch, g->groups, g->in_channels / g->groups, g->out_channels / g->groups};
    cuda_conv_copy_plane(g, t);
    return cuda_grouped_taps_plan(t, multiprocessors);
}

static bool describe_windows(const cuda_conv_state *state, grt_dtype dtype, int multiprocessors,
                             cuda_conv_shape *s)
{
    const cuda_conv_geometry *g = &s->g;
    if (!state->weights.ready || state->weights.depthwise || g->transposed || g->groups < 2 ||
        g->in_channels != g->out_channels || !cuda_conv_is_plane(g) || !g->last ||
        (dtype == GRT_DTYPE_FLOAT && !state->tf32))
        return false;
    cuda_grouped_windows *c = &s->windows;
    *c = {};
    c->dtype = dtype;
    c->batch = g->batch;
    c->groups = g->groups;
    c->group = g->in_channels / g->groups;
    c->act = state->act;
    cuda_conv_copy_plane(g, c);
    return cuda_grouped_windows_plan(c, multiprocessors);
}

/* A product of pixels and weights: 1 x 1, all channels for all. */
static bool cuda_conv_is_product(const cuda_conv_geometry *g)
{
    for (int d = 0; d < SPATIAL; d++)
        if (g->kernel[d] != 1 || g->stride[d] != 1 || g->begin[d] != 0 || g->in[d] != g->out[d])
            return false;
    return g->last && !g->transposed && g->groups == 1;
}

static bool describe_few_pixels(const cuda_conv_state *state, grt_dtype dtype, cuda_conv_shape *s)
{
    const cuda_conv_geometry *g = &s->g;
    s->few_pixels = {dtype, g->batch * g->out[0] * g->out[1] * g->out[2], g->in_channels, g->out_channels,
                     state->act};
    return state->weights.ready && cuda_conv_is_product(g) && cuda_few_pixels_fits(&s->few_pixels);
}

/* cuDNN applies the other activations itself, and has only slow engines for channels that are no whole
 * vectors. */
static bool describe_product(const grt_reshape *r, cuda_conv_shape *s)
{
    const cuda_conv_state *state = (const cuda_conv_state *)r->state;
    const cuda_conv_geometry *g = &s->g;
    s->product = {r->in[0]->dtype, g->batch * g->out[0] * g->out[1] * g->out[2],
                  g->in_channels,  g->out_channels,
                  state->act,      ((const cuda_device *)r->device)->prop.multiProcessorCount};
    return state->weights.ready && cuda_conv_is_product(g) && !(r->n_in > RESIDUAL && r->in[RESIDUAL]) &&
           ((state->act.kind != GRT_ACT_NONE && state->act.kind != GRT_ACT_RELU) ||
            !cuda_pixel_product_is_whole(&s->product)) &&
           cuda_pixel_product_fits(&s->product);
}

bool cuda_conv_is_patches(const cuda_conv_geometry *g)
{
    return g->last && !g->transposed && g->groups == 1 &&
           cuda_conv_tiles(SPATIAL, g->in_channels, g->in, g->out, g->kernel, g->stride, g->dilation,
                           g->begin);
}

/* [batch, rows, row, columns, column, channel] to [batch, rows, columns, row, column, channel], with depth
 * likewise. */
void cuda_conv_plan_cut(cuda_conv_shape *s, grt_dtype dtype)
{
    const cuda_conv_geometry *g = &s->g;
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
static bool describe_few(const grt_reshape *r, cuda_conv_shape *s)
{
    const cuda_conv_state *state = (const cuda_conv_state *)r->state;
    const cuda_conv_geometry *g = &s->g;
    cuda_few_channels *c = &s->few;
    if (!state->weights.ready || g->transposed || g->groups != 1 || cuda_conv_is_patches(g) ||
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

/* Patches are cut as for cuDNN. */
static bool describe_gemm(const grt_reshape *r, cuda_conv_shape *s)
{
    const cuda_conv_state *state = (const cuda_conv_state *)r->state;
    const cudaDeviceProp *prop = &((const cuda_device *)r->device)->prop;
    if (!state->weights.ready || s->g.transposed || !cuda_gemm_on(prop) ||
        !cuda_gemm_of_conv(r, prop->multiProcessorCount, &s->gemm) ||
        (s->gemm.gathers && !state->weights.rows && !cuda_is_described(r->device)))
        return false;
    s->patches = s->gemm.cuts;
    s->copy = s->patches || s->gemm.gathers;
    s->n_padded = s->gemm.gathers ? s->gemm.product.rows * s->gemm.product.channels
                                  : s->g.batch * s->g.in_channels * s->g.in[0] * s->g.in[1] * s->g.in[2];
    if (s->patches)
        cuda_conv_plan_cut(s, r->in[0]->dtype);
    if (!cuda_is_described(r->device))
        cuda_gemm_bind(&s->gemm.product);
    return true;
}

bool cuda_conv_find_own(const grt_reshape *r, cuda_conv_shape *s)
{
    const cuda_conv_state *state = (const cuda_conv_state *)r->state;
    const grt_dtype dtype = r->in[0]->dtype;
    const int multiprocessors = ((const cuda_device *)r->device)->prop.multiProcessorCount;
    s->is_depthwise = describe_depthwise(state, dtype, s);
    s->is_volume = !s->is_depthwise && describe_volume(state, dtype, s);
    s->is_few_pixels = !s->is_depthwise && describe_few_pixels(state, dtype, s);
    if (s->is_depthwise || s->is_volume || s->is_few_pixels)
        return true;
    s->is_few = describe_few(r, s);
    s->is_gemm = !s->is_few && describe_gemm(r, s);
    s->is_product = !s->is_few && !s->is_gemm && describe_product(r, s);
    if (s->is_few || s->is_gemm || s->is_product)
        return true;
    s->is_grouped = describe_grouped(state, dtype, multiprocessors, s);
    s->is_windows = !s->is_grouped && describe_windows(state, dtype, multiprocessors, s);
    return s->is_grouped || s->is_windows;
}
