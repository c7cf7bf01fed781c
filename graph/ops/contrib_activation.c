/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft: activations, with the sums that come before them. */
#include "graph/ops/foreign.h"

static const op_attr quick_attrs[] = {{"alpha", GRT_ATTR_FLOAT, false}, {0}};
static const op_attr dropout_attrs[] = {{"seed", GRT_ATTR_INT, false}, {0}};

static ir_value *fast_gelu(ir_node *node, ir_value *x)
{
    ir_value *y = put1(node, "Gelu", x);
    if (y)
        ir_attr_set_string(y->producer, "approximate", "tanh");
    return y;
}

/* Gelu(x), BiasGelu(x, bias) */
static grt_status rewrite_gelu(ir_node *node)
{
    return foreign_done1(node, put1(node, "Gelu", put_add(node, ir_in(node, 0), ir_in(node, 1))));
}

static grt_status rewrite_fast_gelu(ir_node *node)
{
    return foreign_done1(node, fast_gelu(node, put_add(node, ir_in(node, 0), ir_in(node, 1))));
}

/* (x, w, bias) */
static grt_status rewrite_gemm_fast_gelu(ir_node *node)
{
    ir_value *product = put2(node, "MatMul", ir_in(node, 0), ir_in(node, 1));
    return foreign_done1(node, fast_gelu(node, put_add(node, product, ir_in(node, 2))));
}

static grt_status rewrite_quick_gelu(ir_node *node)
{
    const double alpha = (double)grt_attr_float(&node->desc, "alpha", 1.702f);
    return foreign_done1(node, with_float(put1(node, "Swish", ir_in(node, 0)), "alpha", alpha));
}

/* x + bias in two halves of the last dim: the left one times the GELU of the right one. */
static grt_status rewrite_bias_split_gelu(ir_node *node)
{
    ir_value *sum = put2(node, "Add", ir_in(node, 0), ir_in(node, 1));
    ir_node *halves = ir_node_create(node->graph, node, "", "Split", node->desc.name, 1, &sum, 2);
    if (!halves)
        return grt_fail_memory(0);
    ir_attr_set_int(halves, "axis", -1);
    ir_attr_set_int(halves, "num_outputs", 2);
    return foreign_done1(node, put2(node, "Mul", halves->out[0], put1(node, "Gelu", halves->out[1])));
}

/* (x, bias, skip) */
static grt_status rewrite_bias_add(ir_node *node)
{
    ir_value *sum = put2(node, "Add", ir_in(node, 0), ir_in(node, 1));
    return foreign_done1(node, put2(node, "Add", sum, ir_in(node, 2)));
}

/* (data, bias, residual, ratio, training_mode): Dropout(data + bias) + residual */
static grt_status rewrite_bias_dropout(ir_node *node)
{
    ir_value *in[] = {put2(node, "Add", ir_in(node, 0), ir_in(node, 1)), ir_in(node, 3), ir_in(node, 4)};
    ir_node *dropout = ir_node_create(node->graph, node, "", "Dropout", node->desc.name, 3, in, 2);
    if (!dropout)
        return grt_fail_memory(0);
    const grt_attr *seed = grt_attr_find(&node->desc, "seed");
    if (seed)
        ir_attr_set(dropout, *seed);
    ir_value *made[] = {put_add(node, dropout->out[0], ir_in(node, 2)), dropout->out[1]};
    return foreign_done(node, 2, made);
}

static const op_row rows[] = {
    FOREIGN(MS, "Gelu", 1, 1, 1, 1, NULL, rewrite_gelu),
    FOREIGN(MS, "BiasGelu", 2, 2, 1, 1, NULL, rewrite_gelu),
    FOREIGN(MS, "FastGelu", 1, 2, 1, 1, NULL, rewrite_fast_gelu),
    FOREIGN(MS, "GemmFastGelu", 2, 3, 1, 1, NULL, rewrite_gemm_fast_gelu),
    FOREIGN(MS, "QuickGelu", 1, 1, 1, 1, quick_attrs, rewrite_quick_gelu),
    FOREIGN(MS, "BiasSplitGelu", 2, 2, 1, 1, NULL, rewrite_bias_split_gelu),
    FOREIGN(MS, "BiasAdd", 3, 3, 1, 1, NULL, rewrite_bias_add),
    FOREIGN(MS, "BiasDropout", 2, 5, 1, 2, dropout_attrs, rewrite_bias_dropout),
};
OP_TABLE(contrib_activation, rows);
