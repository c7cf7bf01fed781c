/* SPDX-License-Identifier: Apache-2.0 */
/* Conv, ConvTranspose, the fused form graphrt::Conv, and graphrt::ConvTranspose with channels last.
 *
 * float32 with constant weights runs on oneDNN, the weights packed once and shared by every shape that wants
 * the same layout, and wide outputs cut into blocks of columns. Windows of 3 x 3 run as Winograd's products
 * where those gain; large depthwise windows, small groups, depthwise windows and dilated lines that oneDNN
 * would unfold (im2col) on kernels of our own. Windows of one tap whose weights are many run as products on
 * oneDNN's layout of them. Other weights and windows are unfolded into a matrix product; 16-bit floats and
 * double are summed in double. */
#include "backends/cpu/act.h"
#include "backends/cpu/conv_columns.h"
#include "backends/cpu/conv_kernels.h"
#include "backends/cpu/conv_pixels.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/dnnl.h"
#include "backends/cpu/packing.h"
#include "backends/shared/conv.h"

#include <stdlib.h>
#include <string.h>

typedef struct conv_state {
    cpu_conv_attrs a;
    const void *weights;        /* constant float32, else NULL */
    const grt_packing *packing; /* how the plan has them; NULL: plain */
    grt_packing plan_packing;
    grt_dnnl_op *like;  /* whose layout `packed` has; NULL if nothing is packed */
    const void *packed; /* weights themselves, or own */
    void *own;
    const cpu_conv_kernel *kernel; /* NULL: oneDNN's, or one that reads ONNX's order */
    float *for_kernel;             /* weights that it packed */
    bool kernel_of_lines;          /* chosen for images that are lines */
} conv_state;

/* An operation of oneDNN's with its weights. */
typedef struct conv_part {
    grt_dnnl_op *op;
    const void *packed; /* the state's or own */
    void *own;
} conv_part;

typedef struct conv_shape {
    cpu_conv conv;
    const cpu_conv_kernel *kernel; /* the state's, or NULL: not used */
    /* On oneDNN: `turned` in blocks, parts[part_of[kind]] computing those of a kind. No part: unfold or
     * exact. */
    cpu_conv turned;
    cpu_columns cut;
    conv_part parts[CPU_COLUMN_KINDS];
    int n_parts, part_of[CPU_COLUMN_KINDS];
    bool by_pixels; /* conv_pixels.h's product in place of the only part, with its weights */
    size_t in_offset, out_offset, residual_offset; /* in the workspace: a block that had to be copied */
    void *own;
    const void *plain; /* for kernels that read ONNX's order: own, or NULL: the input as it is */
} conv_shape;

enum { BIAS = GRT_CONV_BIAS, RESIDUAL = GRT_CONV_RESIDUAL, ERROR_SIZE = 256 };

/* ---- operations ---- */

/* Of a call of the shim: memory that ran out and a library that is missing are failures of the node. */
static grt_status conv_hand_on(const grt_op_desc *desc, grt_status status, const char *err)
{
    if (status == GRT_STATUS_DEVICE)
        return grt_fail_context(status, "%s node '%s'", desc->op, desc->name);
    return status == GRT_STATUS_OUT_OF_MEMORY ? grt_fail_op(desc, status, "%s", err) : GRT_OK;
}

/* No operation, with OK: the library has none. */
static grt_status make_op(const grt_op_desc *desc, const cpu_conv *c, bool transposed, bool bias,
                          bool residual, const grt_dnnl_op *like, int threads, grt_dnnl_op **out)
{
    char err[ERROR_SIZE];
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
        d.in[i] = c->w.in[i];
        d.out[i] = c->w.out[i];
        d.kernel[i] = c->w.kernel[i];
        d.stride[i] = c->w.stride[i];
        d.dilation[i] = c->w.dilation[i];
        d.pad_begin[i] = c->w.begin[i];
        /* What makes the sizes agree exactly; a transpose's output padding is negative padding at the end. */
        d.pad_end[i] = transposed ? cpu_window_span(&c->w, i, c->w.in[i]) - c->w.out[i] - c->w.begin[i]
                                  : cpu_window_span(&c->w, i, c->w.out[i]) - c->w.in[i] - c->w.begin[i];
    }
    if (residual)
        d.post[d.post_count++] = (grt_dnnl_post){GRT_DNNL_POST_ADD, {GRT_ACT_NONE, 0, 0}};
    if (c->act.kind != GRT_ACT_NONE)
        d.post[d.post_count++] = (grt_dnnl_post){GRT_DNNL_POST_ACT, c->act};
    return conv_hand_on(desc, grt_dnnl_conv_create(&d, like, threads, out, err, sizeof err), err);
}

/* ---- create ---- */

static void conv_destroy(void *data)
{
    conv_state *state = data;
    if (!state)
        return;
    grt_dnnl_op_release(state->like);
    grt_account_free(state->own);
    grt_account_free(state->for_kernel);
    free(state);
}

/* ONNX's order or a format of the plan's. */
typedef struct source {
    const char *format; /* NULL: ONNX's */
    const void *data;
    size_t bytes;
} source;

static source conv_weights_of(const conv_state *state, const grt_tensor *w)
{
    if (!state->packing)
        return (source){NULL, state->weights, grt_tensor_bytes(w)};
    return (source){cpu_packing_layout(state->packing, state->a.groups, state->a.transposed), state->weights,
                    state->packing->bytes};
}

/* The weights in the layout of the operation. *out is `packed`, or NULL, with OK, if they cannot be
 * reordered.
 */
static grt_status repack(const grt_op_desc *desc, const grt_dnnl_op *op, source from, void *packed,
                         const void **out)
{
    char err[ERROR_SIZE];
    const grt_status status =
        grt_dnnl_op_prepack(op, from.format, from.data, from.bytes, packed, err, sizeof err);
    *out = status == GRT_OK ? packed : NULL;
    return status == GRT_OK ? GRT_OK : conv_hand_on(desc, status, err);
}

/* True if the weights already have the layout of the operation. */
static bool fits_already(const grt_dnnl_op *op, source from)
{
    return from.format && grt_dnnl_op_reads_format(op, from.format, from.bytes);
}

static void read_attributes(const grt_kernel_node *node, conv_state *state)
{
    state->a.last = grt_channels_last(node->desc);
    state->a.transposed = !strcmp(node->desc->op, "ConvTranspose");
    state->a.groups = grt_attr_int(node->desc, "group", 1);
    if (grt_op_is(node->desc, "graphrt", "Conv"))
        grt_act_read(node->desc, &state->a.act, NULL);
}

static bool constant_weights(const grt_kernel_node *node)
{
    return node->in[1].data && node->in[1].dtype == GRT_DTYPE_FLOAT && node->in[1].rank >= 3;
}

/* The operation for likely sizes; OK and NULL if there is none. */
static grt_status likely_op(const grt_kernel_node *node, const conv_state *state, grt_dnnl_op **out)
{
    cpu_conv guess;
    cpu_columns cut;
    *out = NULL;
    if (!cpu_conv_can_guess(node, &state->a) || !cpu_conv_guess(node, &state->a, &guess))
        return GRT_OK;
    guess = cpu_columns_turn(&guess);
    if (!cpu_columns_cut(&guess, state->a.transposed, node->threads, &cut))
        return GRT_OK;
    if (cut.count > 1)
        guess = cpu_columns_block(&guess, state->a.transposed, &cut, 1).conv;
    return make_op(node->desc, &guess, state->a.transposed, grt_node_has(node, BIAS),
                   grt_node_has(node, RESIDUAL), NULL, node->threads, out);
}

/* oneDNN's name of what it runs. */
static const char *impl_of(const grt_dnnl_op *op)
{
    return op ? grt_dnnl_op_impl(op) : "ref";
}

static bool drops_dims(const grt_kernel_node *node, const conv_state *state)
{
    cpu_conv guess;
    return cpu_conv_can_guess(node, &state->a) && cpu_conv_guess(node, &state->a, &guess) &&
           guess.w.spatial != node->in[1].rank - 2;
}

static grt_status pack_for(const cpu_conv_kernel *kernel, const grt_kernel_node *node, conv_state *state)
{
    cpu_conv guess;
    size_t floats;
    cpu_conv_guess(node, &state->a, &guess);
    const int32_t dims = guess.w.spatial;
    guess = cpu_conv_kernel_geometry(&guess);
    state->kernel_of_lines = guess.w.spatial != dims;
    if (!kernel->floats(&guess, &floats))
        return grt_fail_memory(SIZE_MAX);
    GRT_TRY(grt_kernel_alloc(node, floats * sizeof(float), (void **)&state->for_kernel));
    kernel->pack(&guess, state->weights, state->for_kernel);
    state->kernel = kernel;
    return GRT_OK;
}

static grt_status conv_pack_for(const grt_kernel_node *node, const grt_dnnl_op *op, source from,
                                grt_packing *out_packing, void **out_data)
{
    const void *packed = NULL;
    out_packing->bytes = grt_dnnl_op_weights_bytes(op);
    *out_data = aligned_alloc(64, grt_align_up(out_packing->bytes, 64));
    const grt_status status =
        *out_data ? repack(node->desc, op, from, *out_data, &packed) : grt_fail_memory(out_packing->bytes);
    if (!packed) { /* they stay plain */
        free(*out_data);
        *out_data = NULL;
        out_packing->format[0] = '\0';
    }
    return status;
}

static grt_status conv_pack(const grt_kernel_node *node, int32_t i, grt_packing *out_packing, void **out_data)
{
    conv_state state = {0};
    if (i != 1 || !constant_weights(node))
        return GRT_OK;
    read_attributes(node, &state);
    state.weights = node->in[1].data;
    if (cpu_conv_kernel_faster(node, &state.a) || drops_dims(node, &state))
        return GRT_OK; /* packed when the kernel is created: that is fast, or has no exact way back */
    grt_dnnl_op *op;
    grt_status status = likely_op(node, &state, &op);
    const char *layout =
        op && !cpu_conv_kernel_fallback(node, &state.a, impl_of(op)) ? grt_dnnl_op_weights_format(op) : NULL;
    if (layout && grt_packing_is_worth(grt_tensor_bytes(&node->in[1]), grt_dnnl_op_weights_bytes(op)) &&
        cpu_packing_conv(layout, state.a.groups, state.a.transposed, out_packing)) {
        status = conv_pack_for(node, op, conv_weights_of(&state, &node->in[1]), out_packing, out_data);
    }
    grt_dnnl_op_release(op);
    return status;
}

/* Weights for likely sizes. If the library has no operation for them, each shape packs for itself. */
static grt_status pack_likely(const grt_kernel_node *node, conv_state *state)
{
    const source from = conv_weights_of(state, &node->in[1]);
    const cpu_conv_kernel *const faster = state->packing ? NULL : cpu_conv_kernel_faster(node, &state->a);
    if (faster)
        return pack_for(faster, node, state);
    GRT_TRY(likely_op(node, state, &state->like));
    const cpu_conv_kernel *const fallback =
        state->packing ? NULL : cpu_conv_kernel_fallback(node, &state->a, impl_of(state->like));
    if (fallback) {
        grt_dnnl_op_release(state->like);
        state->like = NULL;
        return pack_for(fallback, node, state);
    }
    grt_status status = GRT_OK;
    if (state->like && fits_already(state->like, from)) {
        state->packed = state->weights;
    } else if (state->like) {
        status = grt_kernel_alloc(node, grt_dnnl_op_weights_bytes(state->like), &state->own);
        if (status == GRT_OK)
            status = repack(node->desc, state->like, from, state->own, &state->packed);
    }
    if (!state->packed) {
        grt_account_free(state->own);
        grt_dnnl_op_release(state->like);
        state->own = NULL;
        state->like = NULL;
    }
    return status;
}

static grt_status cpu_conv_create(const grt_kernel_node *node, void **out_state)
{
    conv_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    read_attributes(node, state);
    *out_state = state;
    if (!constant_weights(node))
        return GRT_OK;
    state->weights = node->in[1].data;
    if (grt_node_packing(node, 1)) {
        state->plan_packing = node->packing[1];
        state->packing = &state->plan_packing;
        if (!cpu_packing_layout(state->packing, state->a.groups, state->a.transposed)) {
            *out_state = NULL;
            conv_destroy(state);
            return grt_fail_op(
                node->desc, GRT_STATUS_INVALID_PLAN,
                "the weights are packed as '%s', which is no format of this convolution's; make the plan "
                "again with graphc optimize",
                node->packing[1].format);
        }
    }
    const grt_status status = pack_likely(node, state);
    if (status != GRT_OK) {
        *out_state = NULL;
        conv_destroy(state);
    }
    return status;
}

static bool conv_fused_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_act act;
    return grt_act_read(node->desc, &act, why);
}

/* ---- reshape ---- */

static void release_parts(conv_shape *s)
{
    for (int i = 0; i < s->n_parts; i++) {
        grt_dnnl_op_release(s->parts[i].op);
        grt_account_free(s->parts[i].own);
    }
    s->n_parts = 0;
}

static void conv_release_shape(void *data)
{
    conv_shape *s = data;
    if (!s)
        return;
    release_parts(s);
    grt_account_free(s->own);
    free(s);
}

/* The weights for a new operation, shared if some part has them in its layout. part->packed stays NULL, with
 * OK, if they cannot be reordered. */
static grt_status give_weights(const grt_reshape *r, const conv_shape *s, conv_part *part)
{
    const conv_state *state = r->state;
    if (state->like && grt_dnnl_op_same_weights(part->op, state->like)) {
        part->packed = state->packed;
        return GRT_OK;
    }
    for (int i = 0; i < s->n_parts; i++)
        if (grt_dnnl_op_same_weights(part->op, s->parts[i].op)) {
            part->packed = s->parts[i].packed;
            return GRT_OK;
        }
    const source from = conv_weights_of(state, r->in[1]);
    if (fits_already(part->op, from)) {
        part->packed = state->weights;
        return GRT_OK;
    }
    GRT_TRY(grt_reshape_alloc(r, grt_dnnl_op_weights_bytes(part->op), &part->own));
    return repack(r->desc, part->op, from, part->own, &part->packed);
}

/* Adds one to s->parts; adds none, with OK, if the library has no operation. */
static grt_status conv_add_part(const grt_reshape *r, conv_shape *s, const cpu_conv *c)
{
    const conv_state *state = r->state;
    const bool bias = r->n_in > BIAS && r->in[BIAS], residual = r->n_in > RESIDUAL && r->in[RESIDUAL];
    conv_part *part = &s->parts[s->n_parts];
    GRT_TRY(make_op(r->desc, c, state->a.transposed, bias, residual, NULL, r->threads, &part->op));
    if (!part->op)
        return GRT_OK;
    const grt_status status = give_weights(r, s, part);
    if (part->packed) {
        s->n_parts++;
    } else {
        grt_dnnl_op_release(part->op);
        grt_account_free(part->own);
        part->op = NULL;
        part->own = NULL;
    }
    return status;
}

static cpu_conv geometry_of(const conv_state *state, const conv_shape *s, int kind)
{
    if (s->cut.count == 1)
        return s->turned;
    return cpu_columns_block(&s->turned, state->a.transposed, &s->cut, cpu_columns_first(&s->cut, kind)).conv;
}

static bool conv_same_columns(const cpu_conv *a, const cpu_conv *b)
{
    const int32_t last = a->w.spatial - 1;
    return a->w.in[last] == b->w.in[last] && a->w.out[last] == b->w.out[last] &&
           a->w.begin[last] == b->w.begin[last];
}

/* Operations for this shape, best with the weights as they are packed. s->n_parts is 0 if there are none. */
static grt_status use_dnnl(const grt_reshape *r, conv_shape *s)
{
    const conv_state *state = r->state;
    s->turned = cpu_columns_turn(&s->conv);
    if (!state->weights || !cpu_conv_fits_dnnl(&s->turned) ||
        !cpu_columns_cut(&s->turned, state->a.transposed, r->threads, &s->cut))
        return GRT_OK;
    cpu_conv made[CPU_COLUMN_KINDS];
    for (int kind = 0; kind < cpu_columns_kinds(&s->cut); kind++) {
        const cpu_conv c = geometry_of(state, s, kind);
        int at = 0;
        while (at < s->n_parts && !conv_same_columns(&made[at], &c))
            at++;
        s->part_of[kind] = at;
        if (at < s->n_parts)
            continue;
        made[at] = c;
        const grt_status status = conv_add_part(r, s, &c);
        if (at == s->n_parts) {
            release_parts(s);
            return status;
        }
    }
    return GRT_OK;
}

static bool runs_by_pixels(const conv_state *state, const conv_shape *s)
{
    const grt_dnnl_op *const op = s->parts[0].op;
    return s->n_parts == 1 && s->cut.count == 1 && !state->a.transposed &&
           cpu_conv_pixels_fits(&s->turned, grt_dnnl_op_impl(op)) &&
           cpu_conv_pixels_reads(&s->turned, grt_dnnl_op_weights_format(op));
}

/* Workspace: scratch of the operations, then copies of a block's lines. */
static grt_status conv_size_workspace(const grt_reshape *r, conv_shape *s, size_t *out_bytes)
{
    const conv_state *state = r->state;
    size_t scratch = 0;
    s->by_pixels = runs_by_pixels(state, s);
    if (s->by_pixels)
        return cpu_conv_pixels_bytes(&s->turned, out_bytes) ? GRT_OK : grt_fail_memory(SIZE_MAX);
    for (int i = 0; i < s->n_parts; i++)
        if (scratch < grt_dnnl_op_scratch_bytes(s->parts[i].op))
            scratch = grt_dnnl_op_scratch_bytes(s->parts[i].op);
    cpu_layout layout = {0};
    cpu_layout_add(&layout, 1, scratch);
    int64_t in = 0, out = 0;
    for (int kind = 0; kind < cpu_columns_kinds(&s->cut) && s->cut.count > 1 && s->cut.lines; kind++) {
        const cpu_window w = geometry_of(state, s, kind).w;
        in = w.in_pixels > in ? w.in_pixels : in;
        out = w.out_pixels > out ? w.out_pixels : out;
    }
    const size_t in_size = (size_t)s->conv.in_channels * sizeof(float),
                 out_size = (size_t)s->conv.out_channels * sizeof(float);
    s->in_offset = cpu_layout_add(&layout, in, in_size);
    s->out_offset = cpu_layout_add(&layout, out, out_size);
    s->residual_offset = layout.bytes;
    if (r->n_in > RESIDUAL && r->in[RESIDUAL])
        cpu_layout_add(&layout, out, out_size);
    *out_bytes = layout.bytes;
    return layout.overflow ? grt_fail_memory(SIZE_MAX) : GRT_OK;
}

/* Where no operation of oneDNN's fits, loops of our own read weights in ONNX's order. */
static grt_status need_plain(const grt_reshape *r, conv_shape *s)
{
    const conv_state *state = r->state;
    if (!state->packing)
        return GRT_OK;
    GRT_TRY(grt_reshape_alloc(r, grt_tensor_bytes(r->in[1]), &s->own));
    s->plain = s->own;
    return cpu_packing_unpack(r->in[1], state->packing, s->own);
}

/* For kernels that have packed the weights for all shapes. */
static grt_status size_own_kernel(grt_reshape *r, const cpu_conv *c)
{
    const conv_state *state = r->state;
    const int64_t wanted = state->a.transposed ? r->in[1]->dims[0] : r->in[1]->dims[1] * state->a.groups;
    if (c->in_channels != wanted)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input has %lld channels; the weights are for %lld", (long long)c->in_channels,
                           (long long)wanted);
    return state->kernel->bytes(c, r->threads, &r->workspace_bytes) ? GRT_OK : grt_fail_memory(SIZE_MAX);
}

/* A kernel's packed weights are for images or for lines, as was known when they were packed. */
static void use_own_kernel(const conv_state *state, conv_shape *s)
{
    if (!state->kernel)
        return;
    const cpu_conv line = cpu_conv_kernel_geometry(&s->conv);
    if (state->kernel_of_lines && line.w.spatial == s->conv.w.spatial)
        return; /* an image after all */
    s->kernel = state->kernel;
    if (state->kernel_of_lines)
        s->conv = line;
}

static grt_status cpu_conv_reshape(grt_reshape *r)
{
    const conv_state *state = r->state;
    GRT_TRY(grt_conv_check_addends(r, state->a.last));
    conv_shape *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    cpu_conv_describe(r->desc, &state->a, r->in[0], r->in[1], r->out[0], &s->conv);
    if (!state->a.transposed)
        cpu_conv_drop_dims(&s->conv);
    use_own_kernel(state, s);
    grt_status status = GRT_OK;
    if (s->kernel)
        status = size_own_kernel(r, &s->conv);
    else if (r->in[0]->dtype == GRT_DTYPE_FLOAT)
        status = use_dnnl(r, s);
    if (status != GRT_OK || s->kernel) {
        /* no memory for it, or done */
    } else if (s->n_parts > 0) {
        status = conv_size_workspace(r, s, &r->workspace_bytes);
    } else {
        status = need_plain(r, s);
        if (status == GRT_OK && r->in[0]->dtype == GRT_DTYPE_FLOAT && !state->a.transposed &&
            !cpu_conv_unfold_bytes(&s->conv, r->threads, &r->workspace_bytes))
            status = grt_fail_memory(SIZE_MAX);
    }
    if (status != GRT_OK) {
        conv_release_shape(s);
        return status;
    }
    r->shape = s;
    return GRT_OK;
}

/* ---- run ---- */

static grt_status run_part(const grt_run *r, const conv_part *part, const float *x, const float *residual,
                           float *y)
{
    const grt_dnnl_args args = {.src = x,
                                .weights = part->packed,
                                .bias = grt_run_data(r, BIAS),
                                .residual = residual,
                                .dst = y,
                                .scratch = r->workspace};
    char err[ERROR_SIZE];
    const grt_status status = grt_dnnl_op_run(part->op, &args, err, sizeof err);
    if (status == GRT_OK)
        return GRT_OK;
    const bool memory = status == GRT_STATUS_OUT_OF_MEMORY;
    return grt_fail_op(r->desc, memory ? status : GRT_STATUS_INTERNAL, "%s", err);
}

/* `lines` lines of `floats`, whose beginnings are so many floats apart. */
static void copy_lines(float *to, int64_t to_step, const float *from, int64_t from_step, int64_t lines,
                       int64_t floats, int threads)
{
#pragma omp parallel for num_threads(threads) if (lines * floats > CPU_GRAIN)
    for (int64_t i = 0; i < lines; i++)
        memcpy(to + i * to_step, from + i * from_step, (size_t)floats * sizeof *to);
}

/* Block i of an image, whose first values x, residual and y point to. */
static grt_status run_block(const grt_run *r, const conv_shape *s, int64_t i, const float *x,
                            const float *residual, float *y)
{
    const conv_state *state = r->state;
    const cpu_column_block b = cpu_columns_block(&s->turned, state->a.transposed, &s->cut, i);
    const conv_part *part = &s->parts[s->part_of[cpu_columns_kind(&s->cut, i)]];
    const int64_t ic = s->turned.in_channels, oc = s->turned.out_channels;
    x += b.in_at * ic;
    y += b.out_at * oc;
    residual = residual ? residual + b.out_at * oc : NULL;
    if (!s->cut.lines)
        return run_part(r, part, x, residual, y);
    const int32_t last = s->turned.w.spatial - 1;
    const cpu_window *whole = &s->turned.w, *own = &b.conv.w;
    const int64_t in_lines = whole->in_pixels / whole->in[last],
                  out_lines = whole->out_pixels / whole->out[last], in_step = whole->in[last] * ic,
                  out_step = whole->out[last] * oc, in = own->in[last] * ic, out = own->out[last] * oc;
    float *in_copy = cpu_workspace_at(r->workspace, s->in_offset),
          *out_copy = cpu_workspace_at(r->workspace, s->out_offset),
          *residual_copy = residual ? cpu_workspace_at(r->workspace, s->residual_offset) : NULL;
    copy_lines(in_copy, in, x, in_step, in_lines, in, r->threads);
    if (residual)
        copy_lines(residual_copy, out, residual, out_step, out_lines, out, r->threads);
    GRT_TRY(run_part(r, part, in_copy, residual_copy, out_copy));
    copy_lines(y, out_step, out_copy, out, out_lines, out, r->threads);
    return GRT_OK;
}

static grt_status run_dnnl(const grt_run *r, const conv_shape *s)
{
    const cpu_conv *c = &s->turned;
    const float *x = r->in[0]->data, *residual = grt_run_data(r, RESIDUAL);
    float *y = r->out[0]->data;
    if (s->by_pixels) {
        cpu_conv_pixels_run(c, x, s->parts[0].packed, grt_run_data(r, BIAS), residual, y, r->workspace,
                            r->threads);
        return GRT_OK;
    }
    if (s->cut.count == 1)
        return run_part(r, &s->parts[0], x, residual, y);
    for (int64_t image = 0; image < c->batch; image++) {
        const int64_t in_at = image * c->w.in_pixels * c->in_channels,
                      out_at = image * c->w.out_pixels * c->out_channels;
        for (int64_t i = 0; i < s->cut.count; i++)
            GRT_TRY(run_block(r, s, i, x + in_at, residual ? residual + out_at : NULL, y + out_at));
    }
    return GRT_OK;
}

static grt_status cpu_conv_run(const grt_run *r)
{
    const conv_state *state = r->state;
    const conv_shape *s = r->shape;
    const cpu_conv *c = &s->conv;
    const void *x = r->in[0]->data, *w = s->plain ? s->plain : r->in[1]->data, *bias = grt_run_data(r, BIAS);
    if (grt_tensor_elements(r->out[0]) == 0)
        return GRT_OK;
    if (s->n_parts > 0)
        return run_dnnl(r, s);
    if (s->kernel)
        s->kernel->run(c, x, state->for_kernel, bias, grt_run_data(r, RESIDUAL), r->out[0]->data,
                       r->workspace, r->threads);
    else if (state->a.transposed)
        cpu_conv_transpose_exact(c, r->in[0]->dtype, x, w, bias, r->out[0]->data, r->threads);
    else if (r->in[0]->dtype == GRT_DTYPE_FLOAT)
        cpu_conv_unfold_run(c, x, w, bias, grt_run_data(r, RESIDUAL), r->out[0]->data, r->workspace,
                            r->threads);
    else
        cpu_conv_exact(c, r->in[0]->dtype, x, w, bias, r->out[0]->data, r->threads);
    return GRT_OK;
}

#define FLOAT3                             \
    {                                      \
        CPU_FLOATS, CPU_FLOATS, CPU_FLOATS \
    }
#define LIFE                                                                                            \
    .pack = conv_pack, .create = cpu_conv_create, .destroy = conv_destroy, .reshape = cpu_conv_reshape, \
    .release_shape = conv_release_shape, .run = cpu_conv_run

static const grt_kernel_row rows[] = {
    {.domain = "", .op = "Conv", .types = FLOAT3, LIFE},
    {.domain = "", .op = "ConvTranspose", .types = FLOAT3, LIFE},
    {.domain = "graphrt",
     .op = "Conv",
     .types = {GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(FLOAT)},
     .supports = conv_fused_supports,
     LIFE},
    {.domain = "graphrt",
     .op = "ConvTranspose",
     .types = {GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(FLOAT)},
     LIFE},
};
CPU_KERNELS(conv, rows);
