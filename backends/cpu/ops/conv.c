/* Conv, ConvTranspose and the fused form graphrt::Conv.
 *
 * float32 with constant weights runs on oneDNN, the weights packed once and shared by every shape that wants
 * the same layout. Weights that are not constant, and windows that oneDNN refuses, are unfolded into a matrix
 * product; 16-bit floats and double are summed in double. */
#include "backends/cpu/conv.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/dnnl.h"
#include "backends/cpu/epilogue_attrs.h"

#include <stdlib.h>

typedef struct conv_state {
    bool last, transposed;
    int64_t groups;
    grt_act act;
    const float *weights; /* constant float32, else NULL */
    grt_dnnl_op *like;    /* whose layout `packed` has; NULL if nothing is packed */
    void *packed;
} conv_state;

typedef struct conv_shape {
    cpu_conv conv;
    grt_dnnl_op *op;    /* NULL: unfold or exact */
    const void *packed; /* the state's or own */
    void *own;
    size_t scratch;
} conv_shape;

enum { BIAS = 2, RESIDUAL = 3, ERROR_SIZE = 256 };

/* ---- geometry ---- */

/* in, out and w with known dims. */
static void describe(const grt_op_desc *desc, const conv_state *state, const grt_tensor *x,
                     const grt_tensor *w, const grt_tensor *y, cpu_conv *c)
{
    const int32_t spatial = x->rank - 2, at = state->last ? 1 : 2;
    *c = (cpu_conv){.last = state->last, .groups = state->groups, .act = state->act, .batch = x->dims[0]};
    c->in_channels = x->dims[state->last ? x->rank - 1 : 1];
    c->out_channels = y->dims[state->last ? y->rank - 1 : 1];
    cpu_window_read(desc, spatial, x->dims + at, y->dims + at, w->dims + 2, state->transposed, &c->w);
}

static bool fits_dnnl(const cpu_conv *c)
{
    bool plain =
        c->w.spatial <= GRT_DNNL_MAX_SPATIAL && c->batch > 0 && c->in_channels > 0 && c->out_channels > 0;
    for (int32_t i = 0; plain && i < c->w.spatial; i++)
        plain = c->w.in[i] > 0 && c->w.out[i] > 0 && c->w.begin[i] >= 0;
    return plain;
}

static bool make_op(const cpu_conv *c, bool transposed, bool bias, bool residual, const grt_dnnl_op *like,
                    int threads, grt_dnnl_op **out, char *err)
{
    const grt_dnnl_layout layout = c->last ? GRT_DNNL_CHANNELS_LAST : GRT_DNNL_CHANNELS_FIRST;
    grt_dnnl_conv d = {.spatial = c->w.spatial,
                       .transposed = transposed,
                       .bias = bias,
                       .src_layout = layout,
                       .dst_layout = layout,
                       .batch = c->batch,
                       .groups = c->groups,
                       .in_channels = c->in_channels,
                       .out_channels = c->out_channels};
    for (int32_t i = 0; i < c->w.spatial; i++) {
        const int64_t reach = (c->w.kernel[i] - 1) * c->w.dilation[i] + 1;
        d.in[i] = c->w.in[i];
        d.out[i] = c->w.out[i];
        d.kernel[i] = c->w.kernel[i];
        d.stride[i] = c->w.stride[i];
        d.dilation[i] = c->w.dilation[i];
        d.pad_begin[i] = c->w.begin[i];
        /* What makes the sizes agree exactly; a transpose's output padding is negative padding at the end. */
        d.pad_end[i] = transposed ? (c->w.in[i] - 1) * c->w.stride[i] + reach - c->w.out[i] - c->w.begin[i]
                                  : (c->w.out[i] - 1) * c->w.stride[i] + reach - c->w.in[i] - c->w.begin[i];
    }
    if (residual)
        d.post[d.post_count++] = (grt_dnnl_post){GRT_DNNL_POST_ADD, {GRT_ACT_NONE, 0, 0}};
    if (c->act.kind != GRT_ACT_NONE)
        d.post[d.post_count++] = (grt_dnnl_post){GRT_DNNL_POST_ACT, c->act};
    return grt_dnnl_conv_create(&d, like, threads, out, err, ERROR_SIZE);
}

/* ---- create ---- */

static void destroy(void *data)
{
    conv_state *state = data;
    if (!state)
        return;
    grt_dnnl_op_release(state->like);
    free(state->packed);
    free(state);
}

static int64_t known(int64_t dim, int64_t guess)
{
    return dim > 0 ? dim : guess;
}

/* Weights must be packed before the sizes are certain: assume likely ones for what is unknown. A shape that
 * wants another layout packs its own copy. */
static bool guess_shape(const grt_kernel_node *node, const conv_state *state, cpu_conv *c)
{
    enum { GUESSED_SIZE = 28 };
    const grt_tensor *w = &node->in[1];
    grt_tensor x = {.rank = w->rank}, y = {.rank = w->rank};
    const int32_t at = state->last ? 1 : 2, channel = state->last ? w->rank - 1 : 1;
    const bool ranked = node->in[0].rank == w->rank && node->out[0].rank == w->rank;
    bool sizes = ranked;
    for (int32_t i = 0; sizes && i < w->rank - 2; i++)
        sizes = node->in[0].dims[at + i] > 0 && node->out[0].dims[at + i] > 0;
    x.dims[0] = y.dims[0] = ranked ? known(node->in[0].dims[0], 1) : 1;
    x.dims[channel] = state->transposed ? w->dims[0] : w->dims[1] * state->groups;
    y.dims[channel] = state->transposed ? w->dims[1] * state->groups : w->dims[0];
    for (int32_t i = 0; i < w->rank - 2; i++) {
        x.dims[at + i] = sizes ? node->in[0].dims[at + i] : GUESSED_SIZE + w->dims[2 + i];
        y.dims[at + i] = sizes ? node->out[0].dims[at + i] : 0;
    }
    describe(node->desc, state, &x, w, &y, c);
    for (int32_t i = 0; !sizes && i < c->w.spatial; i++) {
        const int64_t reach = (c->w.kernel[i] - 1) * c->w.dilation[i] + 1,
                      padded = c->w.in[i] + c->w.begin[i] + c->w.end[i];
        c->w.out[i] = state->transposed
                          ? (c->w.in[i] - 1) * c->w.stride[i] + reach - c->w.begin[i] - c->w.end[i]
                          : (padded - reach) / c->w.stride[i] + 1;
    }
    return fits_dnnl(c);
}

static bool pack(const grt_dnnl_op *op, const float *weights, void **out_packed)
{
    const size_t bytes = grt_dnnl_op_weights_bytes(op);
    *out_packed = aligned_alloc(64, grt_align_up(bytes ? bytes : 64, 64));
    if (*out_packed && grt_dnnl_op_prepack(op, weights, *out_packed, NULL, 0))
        return true;
    free(*out_packed);
    *out_packed = NULL;
    return false;
}

static grt_status create(const grt_kernel_node *node, void **out_state)
{
    const grt_tensor *w = &node->in[1];
    conv_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    state->last = cpu_channels_last(node->desc);
    state->transposed = grt_op_is(node->desc, "", "ConvTranspose");
    state->groups = grt_attr_int(node->desc, "group", 1);
    if (grt_op_is(node->desc, "graphrt", "Conv"))
        cpu_act_read(node->desc, &state->act, NULL);
    *out_state = state;
    if (!w->data || w->dtype != GRT_DTYPE_FLOAT || w->rank < 3)
        return GRT_OK;
    state->weights = w->data;
    cpu_conv guess;
    /* Failing here only means that each shape packs for itself. */
    if (guess_shape(node, state, &guess) &&
        make_op(&guess, state->transposed, grt_node_has(node, BIAS), grt_node_has(node, RESIDUAL), NULL,
                node->threads, &state->like, NULL) &&
        !pack(state->like, state->weights, &state->packed)) {
        grt_dnnl_op_release(state->like);
        state->like = NULL;
    }
    return GRT_OK;
}

static bool fused_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_act act;
    return cpu_act_read(node->desc, &act, why);
}

/* ---- reshape ---- */

static void release_shape(void *data)
{
    conv_shape *s = data;
    if (!s)
        return;
    grt_dnnl_op_release(s->op);
    free(s->own);
    free(s);
}

/* An operation for this shape, best with the weights as they are packed. False: none. */
static bool use_dnnl(const grt_reshape *r, conv_shape *s)
{
    const conv_state *state = r->state;
    const bool bias = r->n_in > BIAS && r->in[BIAS], residual = r->n_in > RESIDUAL && r->in[RESIDUAL];
    char err[ERROR_SIZE];
    if (!state->weights || !fits_dnnl(&s->conv) ||
        !make_op(&s->conv, state->transposed, bias, residual, NULL, r->threads, &s->op, err))
        return false;
    if (state->like && grt_dnnl_op_same_weights(s->op, state->like)) {
        s->packed = state->packed;
        return true;
    }
    if (pack(s->op, state->weights, &s->own)) {
        s->packed = s->own;
        return true;
    }
    grt_dnnl_op_release(s->op);
    s->op = NULL;
    return false;
}

static grt_status check_inputs(const grt_reshape *r)
{
    const conv_state *state = r->state;
    const grt_tensor *y = r->out[0], *bias = r->n_in > BIAS ? r->in[BIAS] : NULL;
    const grt_tensor *residual = r->n_in > RESIDUAL ? r->in[RESIDUAL] : NULL;
    const int64_t channels = y->dims[state->last ? y->rank - 1 : 1];
    char found[GRT_TYPE_TEXT_SIZE], wanted[GRT_TYPE_TEXT_SIZE];
    if (bias && grt_tensor_elements(bias) != channels)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the bias is %s; expected %lld elements",
                           grt_tensor_text(bias, found), (long long)channels);
    if (residual && !grt_dims_equal(residual->dims, residual->rank, y->dims, y->rank))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the residual is %s; expected the result's dims, %s",
                           grt_tensor_text(residual, found), grt_tensor_text(y, wanted));
    return GRT_OK;
}

static grt_status reshape(grt_reshape *r)
{
    const conv_state *state = r->state;
    GRT_TRY(check_inputs(r));
    conv_shape *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    describe(r->desc, state, r->in[0], r->in[1], r->out[0], &s->conv);
    if (r->in[0]->dtype == GRT_DTYPE_FLOAT) {
        if (use_dnnl(r, s)) {
            r->workspace_bytes = grt_dnnl_op_scratch_bytes(s->op);
        } else if (!state->transposed && !cpu_conv_unfold_bytes(&s->conv, r->threads, &r->workspace_bytes)) {
            release_shape(s);
            return grt_fail_memory(SIZE_MAX);
        }
    }
    r->shape = s;
    return GRT_OK;
}

/* ---- run ---- */

static const void *data_of(const grt_run *r, int32_t i)
{
    return i < r->n_in && r->in[i] ? r->in[i]->data : NULL;
}

static grt_status run_dnnl(const grt_run *r, const conv_shape *s)
{
    const grt_dnnl_args args = {.src = r->in[0]->data,
                                .weights = s->packed,
                                .bias = data_of(r, BIAS),
                                .residual = data_of(r, RESIDUAL),
                                .dst = r->out[0]->data,
                                .scratch = r->workspace};
    char err[ERROR_SIZE];
    if (!grt_dnnl_op_run(s->op, &args, err, sizeof err))
        return grt_fail_op(r->desc, GRT_STATUS_INTERNAL, "%s", err);
    return GRT_OK;
}

static grt_status run(const grt_run *r)
{
    const conv_state *state = r->state;
    const conv_shape *s = r->shape;
    const cpu_conv *c = &s->conv;
    const void *x = r->in[0]->data, *w = r->in[1]->data, *bias = data_of(r, BIAS);
    if (grt_tensor_elements(r->out[0]) == 0)
        return GRT_OK;
    if (s->op)
        return run_dnnl(r, s);
    if (state->transposed)
        cpu_conv_transpose_exact(c, r->in[0]->dtype, x, w, bias, r->out[0]->data, r->threads);
    else if (r->in[0]->dtype == GRT_DTYPE_FLOAT)
        cpu_conv_unfold_run(c, x, w, bias, data_of(r, RESIDUAL), r->out[0]->data, r->workspace, r->threads);
    else
        cpu_conv_exact(c, r->in[0]->dtype, x, w, bias, r->out[0]->data, r->threads);
    return GRT_OK;
}

#define FLOAT3                                         \
    {                                                  \
        GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS \
    }
#define LIFE \
    .create = create, .destroy = destroy, .reshape = reshape, .release_shape = release_shape, .run = run

static const grt_kernel_row rows[] = {
    {.domain = "", .op = "Conv", .types = FLOAT3, LIFE},
    {.domain = "", .op = "ConvTranspose", .types = FLOAT3, LIFE},
    {.domain = "graphrt",
     .op = "Conv",
     .types = {GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(FLOAT)},
     .supports = fused_supports,
     LIFE},
};
CPU_KERNELS(conv, rows);
