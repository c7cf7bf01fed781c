/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised`: QLinearConv and QLinearMatMul; ConvInteger and MatMulInteger whose sums are scaled, as
 * dynamic quantisation writes them. */
#include "graph/passes/quantised.h"
#include "src/base/checked.h"

#include <string.h>

/* -1: not known. */
static int64_t quantised_integer_elements_of(const ir_value *value)
{
    int64_t n = 1, dim;
    for (int32_t i = 0; value && i < value->type.rank; i++) {
        if (!grt_dim_is_const(value->graph->module->dims, value->type.dims[i], &dim))
            return -1;
        n = grt_mul_saturated(n, dim);
    }
    return value && value->type.rank < 0 ? -1 : n;
}

static bool is_single(const ir_value *value)
{
    return quantised_integer_elements_of(value) == 1;
}

/* One, or a vector along the last dim of B, or of the filters. */
static bool is_per_channel(const ir_value *value, const ir_value *w, bool conv)
{
    int64_t n;
    if (is_single(value))
        return true;
    return w->type.rank >= 2 && value->type.rank == 1 && quantised_integer_elements_of(value) > 0 &&
           grt_dim_is_const(w->graph->module->dims, w->type.dims[conv ? 0 : w->type.rank - 1], &n) &&
           n == quantised_integer_elements_of(value);
}

static void quantised_integer_replace_by(pass_context *context, ir_node *old, ir_node *made)
{
    if (!rewrite_take_over(old->out[0], made->out[0]))
        ir_node_remove(made);
    else
        context->changed++;
}

static void read_qlinear(pass_context *context, ir_node *node, bool conv)
{
    ir_value *in[QP_INPUTS];
    for (int32_t i = 0; i < QP_INPUTS; i++)
        in[i] = ir_in(node, i);
    if (!in[QP_X] || in[QP_X]->type.rank < 2 || !is_single(in[QP_X_SCALE]) || !is_single(in[QP_X_ZERO]) ||
        !is_single(in[QP_Y_SCALE]) || !is_single(in[QP_Y_ZERO]) ||
        !is_per_channel(in[QP_W_SCALE], in[QP_W], conv) || !is_per_channel(in[QP_W_ZERO], in[QP_W], conv) ||
        in[QP_W]->type.rank < 2)
        return;
    ir_node *made = ir_node_create(node->graph, node, "graphrt", conv ? "QConv" : "QMatMul", node->desc.name,
                                   node->n_in, in, 1);
    if (made && conv)
        quantised_copy_window(made, node);
    if (quantised_offer(context, made, node->out[0]))
        quantised_integer_replace_by(context, node, made);
}

typedef struct scaled {
    ir_node *last;
    ir_value *x_scale, *w_scale, *bias;
    quantity y; /* scale NULL: the result is float */
} scaled;

/* sums * (x_scale * w_scale), or sums * scale. One of the two factors may be per channel: the weight's. */
static bool read_scale(const ir_graph *graph, ir_value *scale, const ir_value *w, bool conv, scaled *s)
{
    ir_node *mul = rewrite_producer(scale, "Mul");
    ir_value *a = mul ? ir_in(mul, 0) : scale, *b = mul ? ir_in(mul, 1) : NULL;
    if (!b)
        b = ir_constant_scalar((ir_graph *)graph, "scale", GRT_DTYPE_FLOAT, 1);
    if (a->type.dtype != GRT_DTYPE_FLOAT || !b || b->type.dtype != GRT_DTYPE_FLOAT)
        return false;
    if (!is_single(a)) {
        ir_value *swap = a;
        a = b;
        b = swap;
    }
    s->x_scale = a;
    s->w_scale = b;
    /* Behind a convolution, a vector would be along the last dim. */
    return is_single(a) && (conv ? is_single(b) : is_per_channel(b, w, false));
}

static bool is_bias(const ir_value *value, const ir_type *y, grt_dtype dtype)
{
    return value && value->type.data && value->type.dtype == dtype && value->type.rank == 1 && y->rank >= 2 &&
           value->type.dims[0] == y->dims[y->rank - 1];
}

/* The Add of a constant vector that is the only user of `y`; NULL: there is none. */
static ir_node *quantised_integer_bias_of(const ir_value *y, grt_dtype dtype, ir_value **out_bias)
{
    ir_node *add = rewrite_only_user(y);
    ir_value *other = rewrite_is(add, "Add") ? ir_in(add, ir_in(add, 0) == y ? 1 : 0) : NULL;
    if (!is_bias(other, &y->type, dtype) || !rewrite_same_shape(&add->out[0]->type, &y->type))
        return NULL;
    *out_bias = other;
    return add;
}

static bool read_scaled(const ir_node *node, const ir_value *w, bool conv, scaled *s)
{
    const ir_value *sums = node->out[0];
    ir_node *add = conv ? NULL : quantised_integer_bias_of(sums, GRT_DTYPE_INT32, &s->bias);
    ir_node *cast = rewrite_only_user(add ? add->out[0] : sums);
    ir_node *mul = rewrite_is(cast, "Cast") ? rewrite_only_user(cast->out[0]) : NULL;
    if (!rewrite_is(mul, "Mul") || cast->out[0]->type.dtype != GRT_DTYPE_FLOAT ||
        !read_scale(node->graph, ir_in(mul, ir_in(mul, 0) == cast->out[0] ? 1 : 0), w, conv, s) ||
        !rewrite_same_shape(&mul->out[0]->type, &sums->type))
        return false;
    s->last = mul;
    add = conv || s->bias ? NULL : quantised_integer_bias_of(mul->out[0], GRT_DTYPE_FLOAT, &s->bias);
    s->last = add ? add : mul;
    ir_node *q = rewrite_only_user(s->last->out[0]);
    if (q && ir_in(q, 0) == s->last->out[0] && quantised_read_target(q, &s->y))
        s->last = q;
    else
        s->y = (quantity){.axis = -1};
    return true;
}

static void read_integer(pass_context *context, ir_node *node, bool conv)
{
    ir_value *x = ir_in(node, 0), *w = ir_in(node, 1), *x_zero = ir_in(node, 2), *w_zero = ir_in(node, 3);
    scaled s = {0};
    if (x->type.rank < 2 || w->type.rank < 2 || !is_single(x_zero) || !is_per_channel(w_zero, w, conv) ||
        !read_scaled(node, w, conv, &s))
        return;
    ir_value *in[QP_BIAS + 1] = {x, s.x_scale, x_zero, w, s.w_scale, w_zero, s.y.scale, s.y.zero, s.bias};
    ir_node *made =
        ir_node_create(node->graph, s.last, "graphrt", conv ? "QConv" : "QMatMul", node->desc.name,
                       s.bias      ? QP_BIAS + 1
                       : s.y.scale ? QP_BIAS
                                   : QP_Y_SCALE,
                       in, 1);
    if (made && conv)
        quantised_copy_window(made, node);
    if (quantised_offer(context, made, s.last->out[0]))
        quantised_integer_replace_by(context, s.last, made);
}

grt_status quantised_integer(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph) {
        if (node->n_out != 1 || !node->out[0] || !node->out[0]->n_uses)
            continue;
        if (rewrite_is(node, "QLinearConv") || rewrite_is(node, "QLinearMatMul"))
            read_qlinear(context, node, rewrite_is(node, "QLinearConv"));
        else if (rewrite_is(node, "ConvInteger") || rewrite_is(node, "MatMulInteger"))
            read_integer(context, node, rewrite_is(node, "ConvInteger"));
    }
    return GRT_OK;
}
