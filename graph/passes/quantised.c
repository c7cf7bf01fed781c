/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised models: QuantizeLinear and DequantizeLinear around an op are read as the language that they are,
 * and make one integer step of it. Weights stay 8-bit numbers: until this pass has run, `fold` leaves
 * DequantizeLinear of constants alone. Whatever has no integer form keeps its float32 step between them. */
#include "graph/passes/quantised.h"

#include <math.h>
#include <string.h>

/* ---- reading ---- */

static bool is_byte(const ir_value *value)
{
    return value && value->type.kind == GRT_KIND_TENSOR &&
           grt_dtype_in(value->type.dtype, GRT_BIT(UINT8) | GRT_BIT(INT8));
}

static bool is_one(const ir_graph *graph, const ir_value *value)
{
    for (int32_t i = 0; i < value->type.rank; i++)
        if (!grt_dim_equals(graph->module->dims, value->type.dims[i], 1))
            return false;
    return value->type.rank >= 0;
}

static bool is_float(const ir_value *value)
{
    return value && value->type.dtype == GRT_DTYPE_FLOAT;
}

bool quantised_read(const ir_value *value, quantity *out)
{
    const ir_node *node = rewrite_producer(value, "DequantizeLinear");
    if (!node || !is_float(value) || !is_byte(ir_in(node, 0)) || !is_float(ir_in(node, 1)) ||
        grt_attr_int(&node->desc, "block_size", 0))
        return false;
    *out = (quantity){ir_in(node, 0), ir_in(node, 1), ir_in(node, 2), -1};
    if (out->zero && !is_byte(out->zero))
        return false;
    if (is_one(node->graph, out->scale) && (!out->zero || is_one(node->graph, out->zero)))
        return true;
    const int32_t rank = out->data->type.rank;
    const int64_t axis = rank < 1 ? -1 : grt_axis(rank == 1 ? 0 : grt_attr_int(&node->desc, "axis", 1), rank);
    out->axis = (int32_t)axis;
    return axis >= 0;
}

bool quantised_read_single(const ir_value *value, quantity *out)
{
    return quantised_read(value, out) && out->axis < 0;
}

bool quantised_read_target(ir_node *node, quantity *out)
{
    if (!rewrite_is(node, "QuantizeLinear") || !is_float(ir_in(node, 0)) || !is_float(ir_in(node, 1)) ||
        !is_byte(node->out[0]) || grt_attr_int(&node->desc, "block_size", 0) ||
        grt_attr_int(&node->desc, "precision", GRT_DTYPE_FLOAT) != GRT_DTYPE_FLOAT)
        return false;
    *out = (quantity){ir_in(node, 0), ir_in(node, 1), ir_in(node, 2), -1};
    if (!is_one(node->graph, out->scale) || (out->zero && !is_one(node->graph, out->zero)))
        return false;
    if (!out->zero)
        out->zero = quantised_zero(node->graph, node->out[0]->type.dtype);
    return out->zero != NULL;
}

float quantised_scale(const quantity *q)
{
    double scale;
    return q->axis < 0 && ir_const_float(q->scale, &scale) && scale > 0 && isfinite(scale) ? (float)scale : 0;
}

static bool read_zero(const quantity *q, double *out)
{
    *out = 0;
    return !q->zero || ir_const_float(q->zero, out);
}

bool quantised_same(const quantity *a, const quantity *b)
{
    double zero_a, zero_b;
    const grt_dtype of_a = a->zero ? a->zero->type.dtype : a->data->type.dtype,
                    of_b = b->zero ? b->zero->type.dtype : b->data->type.dtype;
    const float scale = quantised_scale(a);
    return scale > 0 && scale == quantised_scale(b) && of_a == of_b && read_zero(a, &zero_a) &&
           read_zero(b, &zero_b) && zero_a == zero_b;
}

/* ---- making ---- */

ir_value *quantised_zero(ir_graph *graph, grt_dtype dtype)
{
    return ir_constant_scalar(graph, "zero_point", dtype, 0);
}

bool quantised_offer(pass_context *context, ir_node *node, const ir_value *like)
{
    if (!node)
        return false;
    if (op_infer_node(node) == GRT_OK && node->out[0]->type.dtype == like->type.dtype &&
        rewrite_supported(context, node, NULL))
        return true;
    ir_node_remove(node);
    return false;
}

void quantised_copy_window(ir_node *to, const ir_node *from)
{
    static const char *const names[] = {"auto_pad", "dilations", "group", "pads", "kernel_shape", "strides"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const grt_attr *attr = grt_attr_find(&from->desc, names[i]);
        if (attr)
            ir_attr_set(to, *attr);
    }
}

static float limit(const ir_value *value, float absent)
{
    double v;
    return value && ir_const_float(value, &v) ? (float)v : absent;
}

ir_node *quantised_activation(const ir_value *value)
{
    ir_node *user = rewrite_only_user(value);
    double v;
    if (rewrite_is(user, "Relu"))
        return user;
    const bool clip = rewrite_is(user, "Clip") && ir_in(user, 0) == value &&
                      (!ir_in(user, 1) || ir_const_float(ir_in(user, 1), &v)) &&
                      (!ir_in(user, 2) || ir_const_float(ir_in(user, 2), &v));
    return clip ? user : NULL;
}

bool quantised_set_activation(ir_node *node, const ir_node *act)
{
    ir_attr_set_string(node, "activation", act->desc.op);
    if (rewrite_is(act, "Relu"))
        return true;
    ir_attr_set_float(node, "alpha", limit(ir_in(act, 1), -INFINITY));
    ir_attr_set_float(node, "beta", limit(ir_in(act, 2), INFINITY));
    return true;
}

/* ---- products ---- */

typedef struct product {
    pass_context *context;
    ir_node *head, *last; /* Conv, MatMul or Gemm, and the last node that the step takes over */
    ir_node *act;         /* or NULL */
    quantity x, w, y;     /* y.scale NULL: the result is float */
    ir_value *bias;
} product;

/* True if the scales, where there are several, are per output channel. */
static bool fits_channels(const ir_node *head, const quantity *w)
{
    const int32_t rank = w->data->type.rank;
    if (rewrite_is(head, "Conv"))
        return w->data->type.data && rank >= 3 && w->axis <= 0;
    if (rank < 2)
        return false;
    const bool transposed = grt_attr_int(&head->desc, "transB", 0) != 0;
    return w->axis < 0 || w->axis == rank - (transposed ? 2 : 1);
}

static bool is_vector(const ir_value *value, const ir_type *y)
{
    return value->type.dtype == GRT_DTYPE_FLOAT && value->type.rank == 1 && y->rank >= 1 &&
           value->type.dims[0] == y->dims[y->rank - 1];
}

static bool read_head(product *p)
{
    const ir_node *node = p->head;
    const bool conv = rewrite_is(node, "Conv"), gemm = rewrite_is(node, "Gemm");
    if ((!conv && !gemm && !rewrite_is(node, "MatMul")) || !quantised_read_single(ir_in(node, 0), &p->x) ||
        !quantised_read(ir_in(node, 1), &p->w) || !fits_channels(node, &p->w) || p->x.data->type.rank < 2)
        return false;
    p->bias = ir_in(node, 2);
    if (!gemm)
        return true;
    return !grt_attr_int(&node->desc, "transA", 0) && grt_attr_float(&node->desc, "alpha", 1) == 1 &&
           (!p->bias ||
            (grt_attr_float(&node->desc, "beta", 1) == 1 && is_vector(p->bias, &node->out[0]->type)));
}

/* The Add of a constant vector behind a product of matrices. */
static void take_bias(product *p)
{
    ir_node *add = rewrite_only_user(p->last->out[0]);
    if (p->bias || !rewrite_is(p->head, "MatMul") || !rewrite_is(add, "Add"))
        return;
    ir_value *other = ir_in(add, ir_in(add, 0) == p->last->out[0] ? 1 : 0);
    if (!other || !other->type.data || !is_vector(other, &p->last->out[0]->type) ||
        !rewrite_same_shape(&add->out[0]->type, &p->last->out[0]->type))
        return;
    p->bias = other;
    p->last = add;
}

static void take_followers(product *p)
{
    p->last = p->head;
    take_bias(p);
    p->act = quantised_activation(p->last->out[0]);
    if (p->act)
        p->last = p->act;
    ir_node *q = rewrite_only_user(p->last->out[0]);
    if (q && ir_in(q, 0) == p->last->out[0] && quantised_read_target(q, &p->y))
        p->last = q;
    else
        p->y = (quantity){.axis = -1};
}

static bool make_product(product *p)
{
    ir_value *in[QIN_COUNT] = {p->x.data, p->x.scale, p->x.zero, p->w.data, p->w.scale,
                               p->w.zero, p->y.scale, p->y.zero, p->bias};
    const bool conv = rewrite_is(p->head, "Conv");
    ir_node *made =
        ir_node_create(p->head->graph, p->last, "graphrt", conv ? "QConv" : "QMatMul", p->head->desc.name,
                       p->bias      ? QIN_BIAS + 1
                       : p->y.scale ? QIN_BIAS
                                    : QIN_Y_SCALE,
                       in, 1);
    if (!made)
        return false;
    if (conv)
        quantised_copy_window(made, p->head);
    if (rewrite_is(p->head, "Gemm") && grt_attr_int(&p->head->desc, "transB", 0))
        ir_attr_set_int(made, "transB", 1);
    if (p->act)
        quantised_set_activation(made, p->act);
    if (!quantised_offer(p->context, made, p->last->out[0]))
        return false;
    if (!rewrite_replace(p->last->out[0], made->out[0])) {
        ir_node_remove(made);
        return false;
    }
    p->context->changed++;
    return true;
}

grt_status quantised_products(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph) {
        product p = {.context = context, .head = node};
        if (node->n_out != 1 || !node->out[0]->n_uses || !read_head(&p))
            continue;
        take_followers(&p);
        make_product(&p);
    }
    return GRT_OK;
}

/* ---- the pass ---- */

grt_status pass_quantised(pass_context *context)
{
    static grt_status (*const parts[])(pass_context *, ir_graph *) = {quantised_integer,   quantised_moves,
                                                                      quantised_products,  quantised_moves,
                                                                      quantised_pointwise, quantised_weights};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        GRT_TRY(rewrite_each_graph(context, parts[i]));
        GRT_TRY(pass_dce(context)); /* what a part has replaced uses values that the next one counts */
    }
    context->keeps_quantised = false;
    return GRT_OK;
}
