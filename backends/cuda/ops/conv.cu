/* SPDX-License-Identifier: Apache-2.0 */
/* Conv and ConvTranspose, in domain graphrt with channels last.
 *
 * What no kernel of ours computes (conv_own.cu) is cuDNN's where it has an engine (conv_library.cu); the
 * epilogue pass adds what its graph does not include (other activations, unusual orders). Windows, types and
 * sizes that cuDNN refuses run on a plain kernel, one thread per result. */
#include "backends/cuda/conv_shape.h"
#include "backends/cuda/conv_weave.h"
#include "backends/cuda/epilogue.h"
#include "backends/cuda/lt_start.h"
#include "backends/cuda/number.cuh"

extern "C" {
#include "backends/shared/window.h"
}

#include <stdlib.h>

enum { THREADS = 256, ALIGNMENT = 256 };

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
    cuda_conv_state *state = (cuda_conv_state *)data;
    if (state)
        cuda_conv_weights_destroy(&state->weights);
    free(state);
}

/* cuDNN plans products of half floats and of TF32 with cuBLASLt, most often. */
static void begin_products(const grt_kernel_node *node, const cuda_conv_state *state)
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
    cuda_conv_state *state = (cuda_conv_state *)calloc(1, sizeof *state);
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
    cuda_conv_shape *s = (cuda_conv_shape *)data;
    if (s) {
        cuda_lt_plan_release(s->products.plan);
        cuda_dnn_plan_release(s->plan);
    }
    free(s);
}

static void cuda_conv_describe(const grt_reshape *r, cuda_conv_geometry *g)
{
    const cuda_conv_state *state = (const cuda_conv_state *)r->state;
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
    const cuda_conv_state *state = (const cuda_conv_state *)r->state;
    const grt_tensor *x = r->in[0], *w = r->in[1];
    char found[GRT_TYPE_TEXT_SIZE], wanted[GRT_TYPE_TEXT_SIZE];
    if (x->rank < 3 || x->rank > 2 + SPATIAL || w->rank != x->rank)
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                           "the input is %s and the window %s; the CUDA backend supports 1 to %d "
                           "spatial dims",
                           grt_tensor_text(x, found), grt_tensor_text(w, wanted), SPATIAL);
    return grt_conv_check_addends(r, state->last);
}

static grt_status cuda_conv_reshape(grt_reshape *r)
{
    GRT_TRY(cuda_conv_check_inputs(r));
    cuda_conv_shape *s = (cuda_conv_shape *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    cuda_conv_describe(r, &s->g);
    grt_status status = s->g.n > 0 && !cuda_conv_find_own(r, s) ? cuda_conv_plan_by_library(r, s) : GRT_OK;
    if (status != GRT_OK) {
        cuda_conv_release_shape(s);
        return status;
    }
    if (s->copy)
        s->copy_bytes = ((size_t)s->n_padded * grt_dtype_size(r->in[0]->dtype) + ALIGNMENT - 1) &
                        ~(size_t)(ALIGNMENT - 1);
    if (s->is_gemm && s->copy)
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

bool cuda_conv_weave(void *shape, const cuda_gemm_weave *weave, int64_t offset)
{
    cuda_conv_shape *s = (cuda_conv_shape *)shape;
    return s->is_gemm && cuda_gemm_set_weave(&s->gemm.product, weave, offset);
}

/* ---- kernels ---- */

/* to has the sizes `padded`; what lies outside of x is zero. */
template <class T> __global__ void pad(const __grid_constant__ cuda_conv_shape s, const T *x, T *to)
{
    const cuda_conv_geometry &g = s.g;
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
__global__ void direct(const __grid_constant__ cuda_conv_geometry g, const T *x, const T *w, T *y)
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

template <class T> static void launch_direct(const cuda_conv_shape *s, const grt_run *r)
{
    direct<T><<<cuda_blocks(s->g.n, THREADS), THREADS, 0, (cudaStream_t)r->stream>>>(
        s->g, (const T *)r->in[0]->data, (const T *)r->in[1]->data, (T *)r->out[0]->data);
}

template <class T>
static void launch_pad(const cuda_conv_shape *s, const void *x, void *to, cudaStream_t stream)
{
    pad<T><<<cuda_blocks(s->n_padded, THREADS), THREADS, 0, stream>>>(*s, (const T *)x, (T *)to);
}

static const void *conv_weights_in(const grt_run *r)
{
    return cuda_conv_weights_of(&((const cuda_conv_state *)r->state)->weights, r->in[1]->data);
}

static char *cuda_conv_workspace(const grt_run *r)
{
    return (char *)(((uintptr_t)r->workspace + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1));
}

static grt_status run_gemm(const grt_run *r, const cuda_conv_shape *s)
{
    const cuda_conv_state *state = (const cuda_conv_state *)r->state;
    cuda_gemm_args args = {r->in[0]->data, s->gemm.gathers ? state->weights.rows : conv_weights_in(r),
                           grt_run_data(r, BIAS), grt_run_data(r, RESIDUAL), r->out[0]->data};
    char *rows = cuda_conv_workspace(r);
    if (s->gemm.gathers)
        GRT_TRY(cuda_window_rows_run(&s->gemm.rows, args.x, rows, (cudaStream_t)r->stream));
    else if (s->gemm.cuts)
        GRT_TRY(cuda_copy_run(&s->cut, rows, args.x, (cudaStream_t)r->stream));
    if (s->copy)
        args.x = rows;
    return cuda_gemm_run(&s->gemm.product, &args, (cudaStream_t)r->stream);
}

static grt_status run_plan(const grt_run *r, const cuda_conv_shape *s)
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
static bool run_own(const grt_run *r, const cuda_conv_shape *s)
{
    const cuda_conv_state *state = (const cuda_conv_state *)r->state;
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
    const cuda_conv_state *state = (const cuda_conv_state *)r->state;
    const cuda_conv_shape *s = (const cuda_conv_shape *)r->shape;
    const cuda_conv_geometry *g = &s->g;
    if (g->n == 0)
        return GRT_OK;
    if (s->is_gemm)
        return run_gemm(r, s);
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
