/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/woven_conv.h"

#include <stdlib.h>

enum { X, W, RANK = 4, HEIGHT = 1, WIDTH = 2, CHANNELS = 3, ALIGNMENT = 256 };

/* What forged attributes say before the op's rule is asked must only do no harm. */
static void woven_read(const grt_op_desc *desc, grt_woven_conv *out)
{
    size_t n = 0;
    const int64_t *block = grt_attr_ints(desc, "block", &n);
    for (size_t k = 0; k < 2; k++)
        out->block[k] = k < n && block[k] > 0 ? block[k] : 1;
    out->place = grt_attr_int(desc, "place", 0);
}

static grt_op_desc conv_desc(const grt_op_desc *desc)
{
    grt_op_desc conv = *desc;
    conv.op = "Conv";
    return conv;
}

static int32_t conv_inputs(int32_t n)
{
    return n < GRT_WOVEN_PARTS ? n : GRT_WOVEN_PARTS;
}

/* The convolution's result, of which dims may be unknown. */
static grt_tensor conv_result(const grt_woven_conv *w, const grt_tensor *filters, const grt_tensor *y)
{
    grt_tensor result = *y;
    result.data = NULL;
    if (y->rank != RANK || filters->rank != RANK)
        return result;
    for (int32_t k = 0; k < 2; k++)
        result.dims[HEIGHT + k] =
            y->dims[HEIGHT + k] < 0 ? y->dims[HEIGHT + k] : y->dims[HEIGHT + k] / w->block[k];
    result.dims[CHANNELS] = filters->dims[0];
    return result;
}

static grt_kernel_node conv_node(const grt_kernel_node *node, const grt_op_desc *desc,
                                 const grt_tensor *result)
{
    grt_kernel_node conv = *node;
    conv.desc = desc;
    conv.n_in = conv_inputs(node->n_in);
    conv.out = result;
    return conv;
}

bool grt_woven_conv_supports(const grt_kernel_node *node, grt_woven_find find, grt_text *why)
{
    grt_woven_conv w;
    woven_read(node->desc, &w);
    const grt_op_desc desc = conv_desc(node->desc);
    const grt_tensor result = conv_result(&w, &node->in[W], node->out);
    const grt_kernel_node conv = conv_node(node, &desc, &result);
    return find(&conv, why) != NULL;
}

grt_status grt_woven_conv_create(const grt_kernel_node *node, grt_woven_find find, grt_woven_conv **out)
{
    grt_woven_conv *w = calloc(1, sizeof *w);
    if (!w)
        return grt_fail_memory(sizeof *w);
    woven_read(node->desc, w);
    const grt_op_desc desc = conv_desc(node->desc);
    const grt_tensor result = conv_result(w, &node->in[W], node->out);
    const grt_kernel_node conv = conv_node(node, &desc, &result);
    w->row = find(&conv, NULL);
    const grt_status status =
        w->row ? w->row->create(&conv, &w->state)
               : grt_fail_op(node->desc, GRT_STATUS_UNSUPPORTED, "there is no kernel for its convolution");
    if (status != GRT_OK) {
        free(w);
        return status;
    }
    *out = w;
    return GRT_OK;
}

void grt_woven_conv_destroy(grt_woven_conv *w)
{
    if (w && w->row->destroy)
        w->row->destroy(w->state);
    free(w);
}

grt_status grt_woven_conv_prepare(const grt_reshape *r, grt_woven_shape *out)
{
    const grt_woven_conv *w = r->state;
    const grt_op_desc desc = conv_desc(r->desc);
    *out = (grt_woven_shape){.conv = w, .result = conv_result(w, r->in[W], r->out[0])};
    const grt_tensor *result = &out->result;
    grt_reshape conv = *r;
    conv.desc = &desc;
    conv.state = w->state;
    conv.n_in = conv_inputs(r->n_in);
    conv.out = &result;
    conv.shape = NULL;
    conv.workspace_bytes = 0;
    GRT_TRY(w->row->reshape(&conv));
    out->inner = conv.shape;
    out->inner_bytes = conv.workspace_bytes;
    const size_t bytes = grt_tensor_bytes(result);
    if (bytes > SIZE_MAX / 4 || out->inner_bytes > SIZE_MAX / 4) {
        grt_woven_conv_release(out);
        return grt_fail_memory(SIZE_MAX);
    }
    out->result_bytes = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    return GRT_OK;
}

void grt_woven_conv_release(grt_woven_shape *s)
{
    if (s->inner && s->conv->row->release_shape)
        s->conv->row->release_shape(s->inner);
    s->inner = NULL;
}

/* Numbers of a pixel that lie in front of part i; of the result for i = GRT_WOVEN_PARTS - 1. */
static int64_t channels_before(const grt_woven_shape *s, const grt_reshape *r, int32_t i)
{
    const int64_t own = s->result.dims[CHANNELS] / (s->conv->block[0] * s->conv->block[1]);
    const int32_t first = GRT_WOVEN_PARTS + (int32_t)s->conv->place; /* part behind the result */
    const int32_t end = i < GRT_WOVEN_PARTS ? first : i;
    int64_t sum = i >= first ? own : 0;
    for (int32_t k = GRT_WOVEN_PARTS; k < end; k++)
        sum += r->in[k]->dims[CHANNELS];
    return sum;
}

static void woven_add_axis(grt_woven_move *move, int64_t dim, int64_t to, int64_t from)
{
    move->dims[move->rank] = dim;
    move->to[move->rank] = to;
    move->from[move->rank++] = from;
}

void grt_woven_conv_own(const grt_woven_shape *s, const grt_reshape *r, grt_woven_move *out)
{
    const grt_tensor *y = r->out[0], *c = &s->result;
    *out = (grt_woven_move){.to_offset = channels_before(s, r, GRT_WOVEN_PARTS - 1)};
    if (!grt_tensor_elements(c)) { /* its dims are only what somebody claims */
        woven_add_axis(out, 0, 1, 1);
        return;
    }
    const int64_t down = s->conv->block[0], right = s->conv->block[1], pitch = y->dims[CHANNELS],
                  line = y->dims[WIDTH] * pitch, channels = c->dims[CHANNELS] / (down * right);
    woven_add_axis(out, c->dims[0] * c->dims[HEIGHT], down * line, c->dims[WIDTH] * c->dims[CHANNELS]);
    woven_add_axis(out, down, line, right * channels);
    woven_add_axis(out, c->dims[WIDTH], right * pitch, c->dims[CHANNELS]);
    woven_add_axis(out, right, pitch, channels);
    woven_add_axis(out, channels, 1, 1);
}

void grt_woven_conv_part(const grt_woven_shape *s, const grt_reshape *r, int32_t i, grt_woven_move *out)
{
    const grt_tensor *y = r->out[0];
    const int64_t channels = r->in[i]->dims[CHANNELS];
    *out = (grt_woven_move){.to_offset = channels_before(s, r, i)};
    woven_add_axis(out, y->dims[0] * y->dims[HEIGHT] * y->dims[WIDTH], y->dims[CHANNELS], channels);
    woven_add_axis(out, channels, 1, 1);
}

grt_status grt_woven_conv_run(const grt_woven_shape *s, const grt_run *r, void *result, void *workspace)
{
    const grt_op_desc desc = conv_desc(r->desc);
    grt_tensor y = s->result, *out = &y;
    y.data = result;
    grt_run conv = *r;
    conv.desc = &desc;
    conv.state = s->conv->state;
    conv.shape = s->inner;
    conv.workspace = workspace;
    conv.n_in = conv_inputs(r->n_in);
    conv.out = &out;
    return s->conv->row->run(&conv);
}
