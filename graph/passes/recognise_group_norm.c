/* SPDX-License-Identifier: Apache-2.0 */
/* Group normalisation that is written out. */
#include "graph/passes/recognise.h"
#include "graph/ir/constant.h"

static const float *recognise_constant_floats(const ir_value *value)
{
    const grt_tensor *t = value ? value->type.data : NULL;
    return t && t->dtype == GRT_DTYPE_FLOAT ? t->data : NULL;
}

/* n floats of a new constant, to be filled; NULL if that cannot be. */
static ir_value *new_floats(ir_graph *graph, int64_t n, float **out)
{
    grt_tensor *t = ir_constant_create(graph->module, GRT_DTYPE_FLOAT, 1, &n);
    if (!t)
        return NULL;
    *out = t->data;
    return ir_constant(graph, NULL, t);
}

static bool is_constant_dim(const ir_node *node, grt_dim dim, int64_t *out)
{
    return grt_dim_is_const(node->graph->module->dims, dim, out) && *out > 0;
}

/* What is normalised may have other dims in front of the first Reshape: it gets those behind the last. */
bool recognise_group_norm(pass_context *context, ir_node *node)
{
    const ir_type *out = &node->out[0]->type;
    ir_value *unit = rewrite_is(node, "Reshape") ? ir_in(node, 0) : NULL;
    ir_node *norm = ir_is_inner(unit) ? rewrite_producer(unit, "InstanceNormalization") : NULL;
    ir_value *x = norm ? recognise_input_of(ir_in(norm, 0), "Reshape") : NULL;
    const float *scale = norm ? recognise_constant_floats(ir_in(norm, 1)) : NULL,
                *bias = norm ? recognise_constant_floats(ir_in(norm, 2)) : NULL;
    int64_t groups, channels;
    if (!x || !scale || !bias || out->rank < 3 || x->type.dtype != GRT_DTYPE_FLOAT || unit->type.rank < 3 ||
        out->dims[0] != unit->type.dims[0] || !is_constant_dim(node, unit->type.dims[1], &groups) ||
        !is_constant_dim(node, out->dims[1], &channels) || channels % groups ||
        !(x = rewrite_reshaped(node, x, out->rank, out->dims)))
        return false;
    float *wide_scale, *wide_bias;
    ir_value *in[] = {x, new_floats(node->graph, channels, &wide_scale),
                      new_floats(node->graph, channels, &wide_bias)};
    if (!in[1] || !in[2])
        return false;
    for (int64_t c = 0; c < channels; c++) {
        wide_scale[c] = scale[c / (channels / groups)];
        wide_bias[c] = bias[c / (channels / groups)];
    }
    ir_node *made = ir_node_create(node->graph, node, "", "GroupNormalization", node->desc.name, 3, in, 1);
    if (made) {
        ir_attr_set_int(made, "num_groups", groups);
        ir_attr_set_float(made, "epsilon", grt_attr_float(&norm->desc, "epsilon", 1e-5f));
    }
    return recognise_put(context, node, made);
}

/* A constant that has one value for each channel (dim 1) of `type`. */
static const float *recognise_per_channel(const ir_node *node, const ir_value *value, const ir_type *type,
                                          int64_t channels)
{
    const float *v = recognise_constant_floats(value);
    const int32_t rank = v ? value->type.rank : -1, at = rank - (type->rank - 1);
    for (int32_t i = 0; i < rank; i++)
        if (!grt_dim_equals(node->graph->module->dims, value->type.dims[i], i == at ? channels : 1))
            return NULL;
    return at == 0 || at == 1 ? v : NULL;
}

bool recognise_wider_group_norm(pass_context *context, ir_node *node)
{
    const bool mul = rewrite_is(node, "Mul");
    for (int32_t i = 0; i < 2 && (mul || rewrite_is(node, "Add")); i++) {
        ir_value *unit = ir_in(node, i);
        ir_node *norm = ir_is_inner(unit) ? rewrite_producer(unit, "GroupNormalization") : NULL;
        const float *scale = norm ? recognise_constant_floats(ir_in(norm, 1)) : NULL,
                    *bias = norm ? recognise_constant_floats(ir_in(norm, 2)) : NULL;
        int64_t channels;
        if (!scale || !bias || unit->type.rank < 3 || !is_constant_dim(node, unit->type.dims[1], &channels))
            continue;
        const float *factor = recognise_per_channel(node, ir_in(node, 1 - i), &unit->type, channels);
        float *new_scale, *new_bias;
        ir_value *in[] = {ir_in(norm, 0), new_floats(node->graph, channels, &new_scale),
                          new_floats(node->graph, channels, &new_bias)};
        if (!factor || !in[1] || !in[2])
            continue;
        for (int64_t c = 0; c < channels; c++) {
            new_scale[c] = mul ? scale[c] * factor[c] : scale[c];
            new_bias[c] = mul ? bias[c] * factor[c] : bias[c] + factor[c];
        }
        ir_node *made =
            ir_node_create(node->graph, node, "", "GroupNormalization", node->desc.name, 3, in, 1);
        if (made)
            ir_attrs_copy(made, norm);
        return recognise_put(context, node, made);
    }
    return false;
}
