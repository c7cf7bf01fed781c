/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear and DequantizeLinear as the parts of pass `quantised` read them, and what they make. */
#include "graph/passes/quantised.h"

#include <math.h>
#include <string.h>

static bool is_byte(const ir_value *value)
{
    return value && value->type.kind == GRT_KIND_TENSOR &&
           grt_dtype_in(value->type.dtype, GRT_BIT(UINT8) | GRT_BIT(INT8));
}

static bool quantised_form_is_one(const ir_graph *graph, const ir_value *value)
{
    for (int32_t i = 0; i < value->type.rank; i++)
        if (!grt_dim_equals(graph->module->dims, value->type.dims[i], 1))
            return false;
    return value->type.rank >= 0;
}

static bool quantised_form_is_float(const ir_value *value)
{
    return value && value->type.dtype == GRT_DTYPE_FLOAT;
}

bool quantised_is_product(const ir_node *node)
{
    return grt_op_is(&node->desc, "graphrt", "QConv") || grt_op_is(&node->desc, "graphrt", "QMatMul");
}

static bool is_float8(const ir_value *value)
{
    return value && value->type.kind == GRT_KIND_TENSOR && grt_dtype_in(value->type.dtype, QUANTISED_FLOAT8);
}

/* The standard wants 0; what is not known may be anything. */
static bool is_zero_of_float8(const ir_value *zero)
{
    const grt_tensor *t = zero->type.data;
    for (int64_t i = 0; t && i < grt_tensor_elements(t); i++)
        if (((const uint8_t *)t->data)[i] & 127)
            return false;
    return t && is_float8(zero);
}

/* DequantizeLinear's inputs, whose scales and zero points fit each other. */
static bool read_levels(const ir_node *node, quantity *out)
{
    *out = (quantity){ir_in(node, 0), ir_in(node, 1), ir_in(node, 2), -1};
    if (quantised_form_is_one(node->graph, out->scale) &&
        (!out->zero || quantised_form_is_one(node->graph, out->zero)))
        return true;
    const int32_t rank = out->data->type.rank;
    const int64_t axis = rank < 1 ? -1 : grt_axis(rank == 1 ? 0 : grt_attr_int(&node->desc, "axis", 1), rank);
    out->axis = (int32_t)axis;
    return axis >= 0;
}

static const ir_node *dequantise_of(const ir_value *value)
{
    const ir_node *node = rewrite_producer(value, "DequantizeLinear");
    return node && quantised_form_is_float(value) && quantised_form_is_float(ir_in(node, 1)) &&
                   !grt_attr_int(&node->desc, "block_size", 0)
               ? node
               : NULL;
}

bool quantised_read(const ir_value *value, quantity *out)
{
    const ir_node *node = dequantise_of(value);
    return node && is_byte(ir_in(node, 0)) && (!ir_in(node, 2) || is_byte(ir_in(node, 2))) &&
           read_levels(node, out);
}

bool quantised_read_float8(const ir_value *value, quantity *out)
{
    const ir_node *node = dequantise_of(value);
    return node && is_float8(ir_in(node, 0)) && (!ir_in(node, 2) || is_zero_of_float8(ir_in(node, 2))) &&
           read_levels(node, out);
}

bool quantised_read_single(const ir_value *value, quantity *out)
{
    return quantised_read(value, out) && out->axis < 0;
}

static bool read_rounding(ir_node *node, quantity *out)
{
    if (!quantised_form_is_float(ir_in(node, 1)) || grt_attr_int(&node->desc, "block_size", 0) ||
        grt_attr_int(&node->desc, "precision", GRT_DTYPE_FLOAT) != GRT_DTYPE_FLOAT)
        return false;
    *out = (quantity){ir_in(node, 0), ir_in(node, 1), ir_in(node, 2), -1};
    if (!quantised_form_is_one(node->graph, out->scale) ||
        (out->zero && !quantised_form_is_one(node->graph, out->zero)))
        return false;
    if (!out->zero)
        out->zero = quantised_zero(node->graph, node->out[0]->type.dtype);
    return out->zero != NULL;
}

bool quantised_read_rounding(ir_node *node, quantity *out)
{
    return rewrite_is(node, "QuantizeLinear") && is_byte(node->out[0]) && read_rounding(node, out);
}

bool quantised_read_float8_rounding(ir_node *node, quantity *out)
{
    return rewrite_is(node, "QuantizeLinear") && is_float8(node->out[0]) &&
           grt_attr_int(&node->desc, "saturate", 1) &&
           (!ir_in(node, 2) || is_zero_of_float8(ir_in(node, 2))) && read_rounding(node, out);
}

bool quantised_read_target(ir_node *node, quantity *out)
{
    return quantised_form_is_float(ir_in(node, 0)) && quantised_read_rounding(node, out);
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

static float quantised_form_limit(const ir_value *value, float absent)
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
    ir_attr_set_float(node, "alpha", quantised_form_limit(ir_in(act, 1), -INFINITY));
    ir_attr_set_float(node, "beta", quantised_form_limit(ir_in(act, 2), INFINITY));
    return true;
}
