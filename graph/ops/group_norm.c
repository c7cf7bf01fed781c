/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations over groups of channels and over images. graphrt::GroupNormalization and
 * graphrt::InstanceNormalization have an attribute layout: "NHWC" if the input's dims are batch, spatial...,
 * channels; and an activation with its parameters alpha and beta, which is applied to the result. */
#include "graph/ir/ir.h"
#include "graph/ops/window.h"

static grt_status check_parameter(const infer *inf, int32_t i, const char *what, grt_dim expected)
{
    const ir_type *p = infer_has(inf, i) ? inf->in[i] : NULL;
    int64_t have, want;
    if (!p || p->rank < 0)
        return GRT_OK;
    if (p->rank != 1)
        return infer_fail(inf, "%s has rank %d; expected 1", what, p->rank);
    if (infer_const(inf, p->dims[0], &have) && infer_const(inf, expected, &want) && have != want)
        return infer_fail(inf, "%s has %lld elements; expected %lld", what, (long long)have, (long long)want);
    return GRT_OK;
}

static grt_status group_norm_check_channels(const infer *inf, int32_t least)
{
    const ir_type *x = inf->in[0];
    if (x->rank < 0)
        return GRT_OK;
    if (x->rank < least)
        return infer_fail(inf, "the input has rank %d; expected %d or more (batch, channels, ...)", x->rank,
                          least);
    const grt_dim channels = x->dims[grt_channels_last(inf->desc) ? x->rank - 1 : 1];
    GRT_TRY(check_parameter(inf, 1, "the scale", channels));
    return check_parameter(inf, 2, "the bias", channels);
}

static grt_status infer_group_norm(infer *inf)
{
    const int64_t groups = grt_attr_int(inf->desc, "num_groups", 0);
    int64_t channels;
    GRT_TRY(group_norm_check_channels(inf, 2));
    if (groups < 1)
        return infer_fail(inf, "attribute num_groups is %lld; it must be at least 1", (long long)groups);
    const int32_t at = grt_channels_last(inf->desc) ? inf->in[0]->rank - 1 : 1;
    if (inf->in[0]->rank >= 2 && infer_const(inf, inf->in[0]->dims[at], &channels) && channels % groups)
        return infer_fail(inf, "attribute num_groups (%lld) does not divide the %lld channels",
                          (long long)groups, (long long)channels);
    return infer_same_as_first(inf);
}

static grt_status infer_instance_norm(infer *inf)
{
    GRT_TRY(group_norm_check_channels(inf, 2));
    return infer_same_as_first(inf);
}

/* Version 18 had one scale and one bias per group: repeat each for the group's channels. */
static ir_value *group_norm_per_channel(ir_node *node, ir_value *parameter, ir_value *sizes)
{
    static const int64_t column[] = {-1, 1}, flat[] = {-1};
    ir_graph *graph = node->graph;
    const char *name = node->desc.name;
    ir_value *in[] = {parameter, ir_constant_ints(graph, name, column, 2)};
    in[0] = ir_node_out(ir_node_create(graph, node, "", "Reshape", name, 2, in, 1));
    in[1] = sizes;
    if (!in[0] || !in[1])
        return NULL;
    in[0] = ir_node_out(ir_node_create(graph, node, "", "Expand", name, 2, in, 1));
    in[1] = ir_constant_ints(graph, name, flat, 1);
    return in[0] && in[1] ? ir_node_out(ir_node_create(graph, node, "", "Reshape", name, 2, in, 1)) : NULL;
}

static grt_status upgrade_group_norm(ir_node *node, int32_t opset)
{
    if (opset >= 21)
        return GRT_OK;
    const int64_t groups = grt_attr_int(&node->desc, "num_groups", 0), one = 1;
    ir_graph *graph = node->graph;
    const char *name = node->desc.name;
    ir_value *x = ir_in(node, 0);
    if (groups < 1 || !x || !ir_in(node, 1) || !ir_in(node, 2))
        return GRT_OK; /* inference says what is wrong */
    ir_node *channels = ir_node_create(graph, node, "", "Shape", name, 1, &x, 1);
    if (!channels)
        return grt_fail_memory(0);
    ir_attr_set_int(channels, "start", 1);
    ir_attr_set_int(channels, "end", 2);
    ir_value *ratio[] = {channels->out[0], ir_constant_ints(graph, name, &groups, 1)};
    ir_value *sizes[] = {ir_constant_ints(graph, name, &one, 1),
                         ir_node_out(ir_node_create(graph, node, "", "Div", name, 2, ratio, 1))};
    ir_node *shape =
        sizes[0] && sizes[1] ? ir_node_create(graph, node, "", "Concat", name, 2, sizes, 1) : NULL;
    if (!shape)
        return grt_fail_memory(0);
    ir_attr_set_int(shape, "axis", 0);
    for (int32_t i = 1; i <= 2; i++) {
        ir_value *wide = group_norm_per_channel(node, ir_in(node, i), shape->out[0]);
        if (!wide)
            return grt_fail_memory(0);
        ir_node_set_input(node, i, wide);
    }
    return GRT_OK;
}

static grt_status upgrade_instance_norm(ir_node *node, int32_t opset)
{
    if (opset < 6)
        ir_attr_remove(node, "consumed_inputs");
    return GRT_OK;
}

#define EPSILON                          \
    {                                    \
        "epsilon", GRT_ATTR_FLOAT, false \
    }
#define STASH                             \
    {                                     \
        "stash_type", GRT_ATTR_INT, false \
    }
#define LAYOUT                           \
    {                                    \
        "layout", GRT_ATTR_STRING, false \
    }
#define ACTIVATION                                                            \
    {"activation", GRT_ATTR_STRING, false}, {"alpha", GRT_ATTR_FLOAT, false}, \
    {                                                                         \
        "beta", GRT_ATTR_FLOAT, false                                         \
    }
#define END            \
    {                  \
        NULL, 0, false \
    }

static const op_attr group_attrs[] = {{"num_groups", GRT_ATTR_INT, true}, EPSILON, STASH, END};

static const op_attr instance_attrs[] = {EPSILON, END};

static const op_attr group_last_attrs[] = {
    {"num_groups", GRT_ATTR_INT, true}, EPSILON, STASH, LAYOUT, ACTIVATION, END};

static const op_attr instance_last_attrs[] = {EPSILON, LAYOUT, ACTIVATION, END};

static const op_row rows[] = {
    {.domain = "",
     .name = "GroupNormalization",
     .since = 21,
     .min_in = 3,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = group_attrs,
     .precision = OP_NARROW,
     .layout = OP_LAYOUT_FORM,
     .infer = infer_group_norm,
     .upgrade = upgrade_group_norm},
    {.domain = "",
     .name = "InstanceNormalization",
     .since = 22,
     .min_in = 3,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = instance_attrs,
     .precision = OP_NARROW,
     .layout = OP_LAYOUT_FORM,
     .infer = infer_instance_norm,
     .upgrade = upgrade_instance_norm},
    {.domain = "graphrt",
     .name = "GroupNormalization",
     .since = 1,
     .min_in = 3,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = group_last_attrs,
     .precision = OP_NARROW,
     .infer = infer_group_norm},
    {.domain = "graphrt",
     .name = "InstanceNormalization",
     .since = 1,
     .min_in = 3,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = instance_last_attrs,
     .precision = OP_NARROW,
     .infer = infer_instance_norm},
};
OP_TABLE(group_norm, rows);
