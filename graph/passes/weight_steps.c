/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `weight_steps`: a product by constant weights takes over the RMS normalisation of its input, and, if
 * its result is cut into a gate and what it lets through, that too:
 *
 *   RMSNormalization -> WMatMul                      WMatMul with norm
 *   WMatMul -> Split in two -> Swish(a) * b          WMatMul, gated
 *
 * Each step of a token costs as much as its bytes do, and these have hardly any. The target says which
 * products can; they have their final types by now. */
#include "graph/passes/rewrite.h"

enum { X, W, RESIDUAL = 5, NORM, N_IN };

static bool weight_steps_is_product(const ir_node *node)
{
    return node && grt_op_is(&node->desc, "graphrt", "WMatMul") && node->out[0];
}

/* ---- norms ---- */

static bool is_last_axis(const ir_node *node, int64_t axis)
{
    const int32_t rank = ir_in(node, 0) ? ir_in(node, 0)->type.rank : -1;
    return rank > 0 && (axis == -1 || axis == rank - 1);
}

/* The normalisation that the product is the only one to read. */
static ir_node *weight_steps_norm_of(const ir_node *product)
{
    ir_value *x = ir_in(product, X);
    ir_node *norm = rewrite_producer(x, "RMSNormalization");
    const ir_value *scale = norm ? ir_in(norm, 1) : NULL;
    if (!scale || x->n_uses != 1 || rewrite_is_output(x) || norm->graph != product->graph ||
        scale->type.rank != 1 || !is_last_axis(norm, grt_attr_int(&norm->desc, "axis", -1)))
        return NULL;
    const ir_type *in = &ir_in(norm, 0)->type;
    return in->dims[in->rank - 1] == scale->type.dims[0] && in->dtype == scale->type.dtype ? norm : NULL;
}

/* A product like this one, with another input x and norm. */
static ir_node *weight_steps_remake(ir_node *product, ir_value *x, ir_value *norm)
{
    ir_value *in[N_IN] = {x};
    for (int32_t i = W; i < NORM; i++)
        in[i] = ir_in(product, i);
    in[NORM] = norm;
    int32_t n = N_IN;
    while (!in[n - 1])
        n--;
    ir_node *made =
        ir_node_create(product->graph, product, "graphrt", "WMatMul", product->desc.name, n, in, 1);
    if (made)
        ir_attrs_copy(made, product);
    return made;
}

/* Puts what was made in the place of `last`, if the target has a kernel for it. */
static bool weight_steps_offer(pass_context *context, ir_node *made, ir_node *last)
{
    if (op_infer_node(made) == GRT_OK && rewrite_supported(context, made, NULL)) {
        ir_node_absorb_name(made, last);
        if (rewrite_take_over_node(last, made->out[0])) {
            context->changed++;
            return true;
        }
    }
    ir_node_remove(made);
    return false;
}

/* The product that is left. */
static ir_node *weight_steps_take_norm(pass_context *context, ir_node *product)
{
    const ir_node *norm = ir_in(product, NORM) ? NULL : weight_steps_norm_of(product);
    ir_node *made = norm ? weight_steps_remake(product, ir_in(norm, 0), ir_in(norm, 1)) : NULL;
    if (!made)
        return product;
    ir_attr_set_float(made, "epsilon", grt_attr_float(&norm->desc, "epsilon", 1e-5f));
    ir_node_absorb_name(made, norm);
    return weight_steps_offer(context, made, product) ? made : product;
}

/* ---- gates ---- */

/* The two equal parts of the last dim that the product's result is cut into, and nothing else reads. */
static ir_node *weight_steps_halves(const ir_node *product)
{
    ir_node *split = rewrite_only_user(product->out[0]);
    const ir_type *type = &product->out[0]->type;
    int64_t all, first;
    const bool fits = rewrite_is(split, "Split") && ir_in(split, 0) == product->out[0] && split->n_out == 2 &&
                      split->out[0] && split->out[1] && split->graph == product->graph &&
                      is_last_axis(split, grt_attr_int(&split->desc, "axis", 0));
    if (!fits || split->out[0]->type.rank != type->rank)
        return NULL;
    const grt_dims *dims = product->graph->module->dims;
    return grt_dim_is_const(dims, type->dims[type->rank - 1], &all) &&
                   grt_dim_is_const(dims, split->out[0]->type.dims[type->rank - 1], &first) &&
                   all == 2 * first
               ? split
               : NULL;
}

/* Swish(a) * b of the halves. */
static ir_node *weight_steps_gate_of(const ir_node *split)
{
    const ir_node *silu = rewrite_only_user(split->out[0]);
    if (!rewrite_is(silu, "Swish") || grt_attr_float(&silu->desc, "alpha", 1) != 1 ||
        rewrite_is_output(split->out[1]))
        return NULL;
    ir_node *mul = rewrite_only_user(silu->out[0]);
    if (!rewrite_is(mul, "Mul") || rewrite_only_user(split->out[1]) != mul || mul->graph != split->graph)
        return NULL;
    return mul;
}

static void weight_steps_take_gate(pass_context *context, ir_node *product)
{
    const ir_node *split = weight_steps_halves(product);
    ir_node *mul = split ? weight_steps_gate_of(split) : NULL;
    if (!mul || ir_in(product, RESIDUAL) || *grt_attr_string(&product->desc, "activation", ""))
        return;
    ir_node *made = weight_steps_remake(product, ir_in(product, X), ir_in(product, NORM));
    if (!made)
        return;
    ir_attr_set_int(made, "gated", 1);
    weight_steps_offer(context, made, mul);
}

static grt_status weight_steps_visit(pass_context *context, ir_graph *graph)
{
    for (ir_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        if (weight_steps_is_product(node))
            weight_steps_take_gate(context, weight_steps_take_norm(context, node));
    }
    return GRT_OK;
}

grt_status pass_weight_steps(pass_context *context)
{
    return rewrite_each_graph(context, weight_steps_visit);
}
