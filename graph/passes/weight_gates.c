/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `weight_gates`: the two products of a gated layer become one, whose weights lie side by side:
 *
 *   Swish(WMatMul(x, A)) * WMatMul(x, B)  ->  WMatMul(x, [A B]), gated
 *
 * as `weight_steps` makes of a product that is one already. A token then reads the weights of both in one
 * step, and nothing else reads x, so that its normalisation can be a part of that step. */
#include "graph/passes/cse.h"
#include "graph/passes/rewrite.h"

#include <string.h>

enum { X, W, SCALE, ZERO, BIAS, N_IN, PARTS = 2 };

/* The axis of the weights, as they are stored, that is the result's last one. */
static int32_t weight_gates_axis(const ir_node *product)
{
    return grt_attr_int(&product->desc, "transB", 0) ? 0 : 1;
}

/* A constant that nothing else reads: it would be kept twice. */
static const grt_tensor *weight_gates_constant(const ir_value *value)
{
    return value && value->type.data && !value->producer && !value->is_input ? value->type.data : NULL;
}

/* A number for the whole matrix, as zero points may be. */
static bool weight_gates_is_single(const grt_tensor *data)
{
    return data->rank == 0;
}

/* True if input i of the product has a part for each column, along the axis that is joined, or is a zero
 * point for all. */
static bool weight_gates_has_columns(const ir_node *product, int32_t i, int64_t columns)
{
    const grt_tensor *data = weight_gates_constant(ir_in(product, i));
    const int32_t axis = weight_gates_axis(product);
    if (!data || weight_gates_is_single(data))
        return data && i == ZERO;
    if (data->rank == 1)
        return data->dims[0] == columns && (i == BIAS || grt_attr_int(&product->desc, "axis", 1) == axis);
    return data->rank == 2 && data->dims[axis] == columns;
}

/* A product of which the gate is the only reader, and that does nothing but multiply. Columns are whole bytes
 * of weights. */
static bool weight_gates_may_join(const ir_node *product)
{
    const bool is_product = product && grt_op_is(&product->desc, "graphrt", "WMatMul");
    const grt_tensor *w = is_product ? weight_gates_constant(ir_in(product, W)) : NULL;
    if (!w || w->rank != 2 || ir_in(product, W)->n_uses != 1 || grt_attr_int(&product->desc, "gated", 0) ||
        *grt_attr_string(&product->desc, "activation", ""))
        return false;
    for (int32_t i = N_IN; i < product->n_in; i++)
        if (ir_in(product, i))
            return false;
    const int64_t columns = w->dims[weight_gates_axis(product)];
    for (int32_t i = SCALE; i <= BIAS; i++)
        if (ir_in(product, i) && !weight_gates_has_columns(product, i, columns))
            return false;
    return columns % 8 == 0;
}

/* True if both differ in nothing but their constants' content. */
static bool weight_gates_fit(const ir_node *a, const ir_node *b)
{
    if (a == b || ir_in(a, X) != ir_in(b, X) || a->graph != b->graph || !cse_same_attrs(a, b))
        return false;
    for (int32_t i = W; i <= BIAS; i++) {
        const grt_tensor *const of_a = ir_in(a, i) ? ir_in(a, i)->type.data : NULL,
                                *const of_b = ir_in(b, i) ? ir_in(b, i)->type.data : NULL;
        if (!of_a != !of_b ||
            (of_a && (of_a->dtype != of_b->dtype || of_a->rank != of_b->rank ||
                      memcmp(of_a->dims, of_b->dims, (size_t)of_a->rank * sizeof *of_a->dims) != 0)))
            return false;
    }
    return true;
}

/* The product behind `value`, if `value` is its result and read once. */
static ir_node *weight_gates_product_of(const ir_value *value)
{
    ir_node *product = value->n_uses == 1 && !rewrite_is_output(value) ? value->producer : NULL;
    return weight_gates_may_join(product) ? product : NULL;
}

/* The products of Swish(first) * second. */
static bool weight_gates_find(const ir_node *mul, ir_node **first, ir_node **second)
{
    *first = NULL;
    for (int32_t i = 0; i < PARTS && !*first; i++) {
        const ir_node *silu = rewrite_producer(ir_in(mul, i), "Swish");
        if (!silu || rewrite_only_user(silu->out[0]) != mul || grt_attr_float(&silu->desc, "alpha", 1) != 1)
            continue;
        *first = weight_gates_product_of(ir_in(silu, 0));
        *second = weight_gates_product_of(ir_in(mul, 1 - i));
    }
    return *first && *second && (*first)->graph == mul->graph && weight_gates_fit(*first, *second);
}

/* True if the target has a kernel for such products. Asked of one of the two, before weights are joined. */
static bool weight_gates_is_wanted(const pass_context *context, ir_node *mul, const ir_node *product)
{
    ir_value *in[N_IN];
    for (int32_t i = 0; i < N_IN; i++)
        in[i] = ir_in(product, i);
    ir_node *made = ir_node_create(mul->graph, mul, "graphrt", "WMatMul", product->desc.name,
                                   product->n_in < N_IN ? product->n_in : N_IN, in, 1);
    if (!made)
        return false;
    ir_attrs_copy(made, product);
    ir_attr_set_int(made, "gated", 1);
    const bool wanted = op_infer_node(made) == GRT_OK && rewrite_supported(context, made, NULL);
    ir_node_remove(made);
    return wanted;
}

static ir_node *weight_gates_make(ir_node *mul, const ir_node *first, const ir_node *second)
{
    ir_value *in[N_IN] = {ir_in(first, X)};
    for (int32_t i = W; i <= BIAS; i++) {
        if (!ir_in(first, i))
            continue;
        const grt_tensor *const parts[] = {ir_in(first, i)->type.data, ir_in(second, i)->type.data};
        in[i] =
            weight_gates_is_single(parts[0])
                ? ir_in(first, i)
                : rewrite_join(mul->graph, parts, PARTS, parts[0]->rank == 1 ? 0 : weight_gates_axis(first));
        if (!in[i])
            return NULL;
    }
    ir_node *made = ir_node_create(mul->graph, mul, "graphrt", "WMatMul", first->desc.name,
                                   in[BIAS]   ? N_IN
                                   : in[ZERO] ? BIAS
                                              : ZERO,
                                   in, 1);
    if (!made)
        return NULL;
    ir_attrs_copy(made, first);
    ir_attr_set_int(made, "gated", 1);
    ir_node_absorb_name(made, second);
    ir_node_absorb_name(made, mul);
    return made;
}

static grt_status weight_gates_visit(pass_context *context, ir_graph *graph)
{
    for (ir_node *mul = graph->first, *next; mul; mul = next) {
        ir_node *first, *second;
        next = mul->next;
        if (!rewrite_is(mul, "Mul") || !mul->out[0] || !weight_gates_find(mul, &first, &second) ||
            !weight_gates_is_wanted(context, mul, first))
            continue;
        ir_node *made = weight_gates_make(mul, first, second);
        if (!made)
            continue;
        if (op_infer_node(made) == GRT_OK && rewrite_supported(context, made, NULL) &&
            rewrite_same_shape(&made->out[0]->type, &mul->out[0]->type) &&
            rewrite_take_over_node(mul, made->out[0]))
            context->changed++;
        else
            ir_node_remove(made);
    }
    return GRT_OK;
}

grt_status pass_weight_gates(pass_context *context)
{
    return context->target->traits->merges_products ? rewrite_each_graph(context, weight_gates_visit)
                                                    : GRT_OK;
}
