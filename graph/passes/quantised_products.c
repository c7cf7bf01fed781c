/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised`: convolutions and products of dequantised numbers, products of float8, too. */
#include "graph/passes/quantised.h"
#include "graph/ir/constant.h"
#include "src/base/element.h"

typedef struct product {
    pass_context *context;
    ir_node *head, *last; /* Conv, MatMul or Gemm, and the last node that the step takes over */
    ir_node *act;         /* or NULL */
    quantity x, w, y;     /* y.scale NULL: the result is float */
    quantity residual;    /* data NULL: none */
    ir_value *bias;
    bool is_float8;
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

static bool quantised_products_is_vector(const ir_value *value, const ir_type *y)
{
    return value->type.dtype == GRT_DTYPE_FLOAT && value->type.rank == 1 && y->rank >= 1 &&
           value->type.dims[0] == y->dims[y->rank - 1];
}

/* Both of 8-bit integers, or both of float8. */
static bool read_factors(product *p)
{
    ir_value *x = ir_in(p->head, 0), *w = ir_in(p->head, 1);
    p->is_float8 = quantised_read_float8(x, &p->x) && p->x.axis < 0 && !rewrite_is(p->head, "Conv");
    return p->is_float8 ? quantised_read_float8(w, &p->w)
                        : quantised_read_single(x, &p->x) && quantised_read(w, &p->w);
}

static bool read_head(product *p)
{
    const ir_node *node = p->head;
    const bool conv = rewrite_is(node, "Conv"), gemm = rewrite_is(node, "Gemm");
    if ((!conv && !gemm && !rewrite_is(node, "MatMul")) || !read_factors(p) || !fits_channels(node, &p->w) ||
        p->x.data->type.rank < 2)
        return false;
    p->bias = ir_in(node, 2);
    if (!gemm)
        return true;
    return !grt_attr_int(&node->desc, "transA", 0) && grt_attr_float(&node->desc, "alpha", 1) == 1 &&
           (!p->bias || (grt_attr_float(&node->desc, "beta", 1) == 1 &&
                         quantised_products_is_vector(p->bias, &node->out[0]->type)));
}

/* A constant, or numbers that DequantizeLinear makes one of. */
static bool quantised_products_is_constant(const ir_value *value)
{
    const ir_node *node = rewrite_producer(value, "DequantizeLinear");
    for (int32_t i = 0; node && i < node->n_in; i++)
        if (ir_in(node, i) && !ir_in(node, i)->type.data)
            return false;
    return node || value->type.data;
}

/* The Add of a constant vector behind a product of matrices. */
static void take_bias(product *p)
{
    ir_node *add = rewrite_only_user(p->last->out[0]);
    if (p->bias || !rewrite_is(p->head, "MatMul") || !rewrite_is(add, "Add"))
        return;
    ir_value *other = ir_in(add, ir_in(add, 0) == p->last->out[0] ? 1 : 0);
    if (!other || !quantised_products_is_constant(other) ||
        !quantised_products_is_vector(other, &p->last->out[0]->type) ||
        !rewrite_same_shape(&add->out[0]->type, &p->last->out[0]->type))
        return;
    p->bias = other;
    p->last = add;
}

/* The Add of a dequantised tensor, where the result is not rounded before. */
static void take_residual(product *p)
{
    ir_value *y = p->last->out[0];
    ir_node *add = rewrite_only_user(y);
    if (!rewrite_is(add, "Add"))
        return;
    ir_value *other = ir_in(add, ir_in(add, 0) == y ? 1 : 0);
    quantity r;
    if (!other || quantised_products_is_constant(other) || !quantised_read_single(other, &r) ||
        !rewrite_same_shape(&other->type, &y->type))
        return;
    p->residual = r;
    p->last = add;
}

static bool read_result(const product *p, ir_node *q, quantity *out)
{
    if (p->is_float8)
        return ir_in(q, 0)->type.dtype == GRT_DTYPE_FLOAT && quantised_read_float8_rounding(q, out);
    return quantised_read_target(q, out);
}

static void take_followers(product *p, bool with_residual)
{
    p->last = p->head;
    p->residual = (quantity){.axis = -1};
    take_bias(p);
    if (with_residual && !p->is_float8)
        take_residual(p);
    p->act = quantised_activation(p->last->out[0]);
    if (p->act)
        p->last = p->act;
    ir_node *q = rewrite_only_user(p->last->out[0]);
    if (q && ir_in(q, 0) == p->last->out[0] && read_result(p, q, &p->y))
        p->last = q;
    else
        p->y = (quantity){.axis = -1};
}

/* DequantizeLinear may omit it, the products' rules do not. */
static ir_value *zero_of(const product *p, const quantity *q)
{
    return q->zero ? q->zero : quantised_zero(p->head->graph, q->data->type.dtype);
}

static bool quantised_products_make_product(product *p)
{
    ir_value *in[QP_INPUTS] = {
        p->x.data,  p->x.scale,        zero_of(p, &p->x), p->w.data,
        p->w.scale, zero_of(p, &p->w), p->y.scale,        p->y.zero,
        p->bias,    p->residual.data,  p->residual.scale, p->residual.data ? zero_of(p, &p->residual) : NULL};
    const bool conv = rewrite_is(p->head, "Conv");
    ir_node *made =
        ir_node_create(p->head->graph, p->last, "graphrt", conv ? "QConv" : "QMatMul", p->head->desc.name,
                       p->residual.data ? QP_SUM_SCALE
                       : p->bias        ? QP_BIAS + 1
                       : p->y.scale     ? QP_BIAS
                                        : QP_Y_SCALE,
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
    if (!rewrite_take_over(p->last->out[0], made->out[0])) {
        ir_node_remove(made);
        return false;
    }
    p->context->changed++;
    return true;
}

/* The constant's numbers of 2 or 4 bits as bytes of its sign; NULL: it has others. */
static ir_value *widen_to_bytes(ir_graph *graph, const ir_value *value)
{
    const grt_tensor *t = value ? value->type.data : NULL;
    const bool is_signed = t && grt_dtype_in(t->dtype, GRT_BIT(INT4) | GRT_BIT(INT2));
    if (!t || (!is_signed && !grt_dtype_in(t->dtype, GRT_BIT(UINT4) | GRT_BIT(UINT2))))
        return NULL;
    grt_tensor *wide =
        ir_constant_create(graph->module, is_signed ? GRT_DTYPE_INT8 : GRT_DTYPE_UINT8, t->rank, t->dims);
    const int bits = (int)grt_dtype_bits(t->dtype), half = 1 << (bits - 1);
    for (int64_t i = 0; wide && i < grt_tensor_elements(t); i++) {
        const int code = grt_packed_get(t->data, i, bits);
        ((uint8_t *)wide->data)[i] = (uint8_t)(is_signed && code >= half ? code - 2 * half : code);
    }
    return wide ? ir_constant(graph, NULL, wide) : NULL;
}

/* Convolutions read no filters of few bits. Bytes are what their integer form reads; float32, which `fold`
 * would make of them, is larger still. */
static void widen_filters(ir_node *conv)
{
    quantity x;
    ir_node *dequantise = rewrite_producer(ir_in(conv, 1), "DequantizeLinear");
    if (!dequantise || grt_attr_int(&dequantise->desc, "block_size", 0) ||
        !quantised_read_single(ir_in(conv, 0), &x))
        return;
    ir_value *in[] = {widen_to_bytes(conv->graph, ir_in(dequantise, 0)), ir_in(dequantise, 1),
                      widen_to_bytes(conv->graph, ir_in(dequantise, 2))};
    if (!in[0] || (ir_in(dequantise, 2) && !in[2]))
        return;
    ir_node *made = ir_node_create(conv->graph, conv, "", "DequantizeLinear", dequantise->desc.name,
                                   in[2] ? 3 : 2, in, 1);
    if (!made)
        return;
    ir_attrs_copy(made, dequantise);
    if (op_infer_node(made) == GRT_OK)
        ir_node_set_input(conv, 1, made->out[0]);
    else
        ir_node_remove(made);
}

grt_status quantised_products(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph) {
        product p = {.context = context, .head = node};
        if (rewrite_is(node, "Conv"))
            widen_filters(node);
        if (node->n_out != 1 || !node->out[0]->n_uses || !read_head(&p))
            continue;
        take_followers(&p, true);
        if (quantised_products_make_product(&p) || !p.residual.data)
            continue;
        take_followers(&p, false); /* the target adds none */
        quantised_products_make_product(&p);
    }
    return GRT_OK;
}
