/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormalization: per-channel scale and shift; in training mode by the batch's own statistics. */
#include "graph/ops/pointwise_rules.h"

static grt_status infer_batch_norm(infer *inf)
{
    const ir_type *x = inf->in[0];
    bool training = grt_attr_int(inf->desc, "training_mode", 0) != 0;
    for (int32_t i = 0; i < inf->n_in; i++)
        GRT_TRY(pw_infer_dtype(inf, i, GRT_SET_FLOATS));
    for (int32_t i = 1; i < inf->n_in; i++) {
        const ir_type *p = inf->in[i];
        int64_t a, b;
        if (p->rank >= 0 && p->rank != 1)
            return infer_fail(inf, "input %d has rank %d; it must be a vector of one number per channel", i,
                              p->rank);
        if (p->rank == 1 && x->rank >= 2 && infer_const(inf, p->dims[0], &a) &&
            infer_const(inf, x->dims[1], &b) && a != b)
            return infer_fail(inf, "input %d has %lld elements, but the input has %lld channels", i,
                              (long long)a, (long long)b);
    }
    infer_set_like(inf, 0, x->dtype, x);
    if (inf->n_out > 1 && !training)
        return infer_fail(inf, "has %d outputs; statistics come out in training mode only", inf->n_out);
    for (int32_t i = 1; i < inf->n_out; i++)
        infer_set_like(inf, i, inf->in[2 + i]->dtype, inf->in[2 + i]);
    return GRT_OK;
}

/* (x - mean) / sqrt(var + epsilon) * scale + bias with parameters of x's dims without the first: opset < 9,
 * spatial = 0. */
static grt_status upgrade_per_activation(ir_node *node)
{
    ir_graph *graph = node->graph;
    const char *name = node->desc.name;
    ir_value *x = ir_in(node, 0), *scale = ir_in(node, 1), *bias = ir_in(node, 2), *mean = ir_in(node, 3),
             *var = ir_in(node, 4);
    if (!x || !scale || !bias || !mean || !var || node->n_out != 1)
        return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL, "needs five inputs and one output");
    grt_dtype dtype = var->type.dtype ? var->type.dtype : GRT_DTYPE_FLOAT;
    ir_value *epsilon =
        ir_constant_scalar(graph, "epsilon", dtype, (double)grt_attr_float(&node->desc, "epsilon", 1e-5f));
#define NODE(op, n, ...) \
    ir_node_out(ir_node_create(graph, node, "", op, name, n, (ir_value *[]){__VA_ARGS__}, 1))
    ir_value *deviation = NODE("Sqrt", 1, NODE("Add", 2, var, epsilon));
    ir_value *product = NODE("Mul", 2, NODE("Div", 2, NODE("Sub", 2, x, mean), deviation), scale);
#undef NODE
    if (!product)
        return grt_fail_memory(0);
    ir_node_become(node, "", "Add");
    node->desc.attrs = NULL;
    node->desc.n_attrs = 0;
    ir_node_drop_inputs(node, 2);
    ir_node_set_input(node, 0, product);
    ir_node_set_input(node, 1, bias);
    return GRT_OK;
}

/* saved_mean and saved_var of opset < 14 are the batch's own statistics: what a second node, which forgets
 * the running ones, has for them. Mostly nobody reads them, and it goes again. */
static grt_status move_saved(ir_node *node)
{
    enum { Y, RUNNING_MEAN, RUNNING_VAR, SAVED_MEAN, N_IN = 5, N_OUT = 3 };
    ir_value *in[N_IN];
    for (int32_t i = 0; i < N_IN; i++)
        in[i] = ir_in(node, i);
    ir_node *batch =
        ir_node_create(node->graph, node, "", "BatchNormalization", node->desc.name, N_IN, in, N_OUT);
    if (!batch)
        return grt_fail_memory(0);
    ir_attrs_copy(batch, node);
    ir_attr_set_float(batch, "momentum", 0);
    ir_attr_set_int(batch, "training_mode", 1);
    for (int32_t i = SAVED_MEAN; i < node->n_out; i++) {
        ir_value *value = node->out[i];
        if (!value)
            continue;
        value->producer = batch;
        value->out_index = i - SAVED_MEAN + RUNNING_MEAN;
        batch->out[value->out_index] = value;
    }
    node->n_out = N_OUT;
    return GRT_OK;
}

static grt_status upgrade_batch_norm(ir_node *node, int32_t opset)
{
    if (opset >= 14)
        return GRT_OK;
    bool per_activation = opset < 9 && !grt_attr_int(&node->desc, "spatial", 1);
    ir_attr_remove(node, "consumed_inputs");
    ir_attr_remove(node, "is_test");
    ir_attr_remove(node, "spatial");
    if (per_activation)
        return upgrade_per_activation(node);
    /* Before opset 14 the number of outputs said whether to train. */
    if (node->n_out > 5)
        return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL, "has %d outputs; it has five at most",
                           node->n_out);
    if (node->n_out > 3)
        GRT_TRY(move_saved(node));
    if (node->n_out > 1)
        ir_attr_set_int(node, "training_mode", 1);
    return GRT_OK;
}

static const op_attr batch_norm_attrs[] = {{"epsilon", GRT_ATTR_FLOAT, false},
                                           {"momentum", GRT_ATTR_FLOAT, false},
                                           {"training_mode", GRT_ATTR_INT, false},
                                           {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "BatchNormalization",
     .since = 15,
     .min_in = 5,
     .max_in = 5,
     .min_out = 1,
     .max_out = 3,
     .attrs = batch_norm_attrs,
     .precision = OP_FOLLOWS,
     .cost = OP_COST_COMPUTE,
     .infer = infer_batch_norm,
     .upgrade = upgrade_batch_norm},
};
OP_TABLE(batch_norm, rows);
