/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations over dims, groups, images and neighbouring channels. (BatchNormalization is pointwise at
 * inference.) graphrt::GroupNormalization and graphrt::InstanceNormalization have an attribute layout: "NHWC"
 * if the input's dims are batch, spatial..., channels. */
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

/* Dims from..rank of x are normalised; scale and bias broadcast to x in one direction. */
static grt_status check_broadcasts(const infer *inf, int32_t i, const char *what)
{
    const ir_type *x = inf->in[0], *p = infer_has(inf, i) ? inf->in[i] : NULL;
    if (!p || p->rank < 0 || x->rank < 0)
        return GRT_OK;
    if (p->rank > x->rank)
        return infer_fail(inf, "%s has rank %d, the input %d; it must broadcast to the input", what, p->rank,
                          x->rank);
    for (int32_t k = 0; k < p->rank; k++) {
        int64_t have, want;
        if (infer_const(inf, p->dims[k], &have) && infer_const(inf, x->dims[x->rank - p->rank + k], &want) &&
            have != want && have != 1)
            return infer_fail(inf, "dim %d of %s is %lld; it must be 1 or %lld to broadcast to the input", k,
                              what, (long long)have, (long long)want);
    }
    return GRT_OK;
}

static grt_status infer_layer_norm(infer *inf)
{
    const ir_type *x = inf->in[0];
    int32_t axis = 0;
    if (x->rank >= 0)
        GRT_TRY(infer_axis(inf, "attribute axis", grt_attr_int(inf->desc, "axis", -1), x->rank, &axis));
    GRT_TRY(check_broadcasts(inf, 1, "the scale"));
    GRT_TRY(check_broadcasts(inf, 2, "the bias"));
    infer_set_like(inf, 0, x->dtype, x);
    grt_dtype stash;
    GRT_TRY(infer_dtype_attr(inf, "stash_type", GRT_SET_FLOATS, GRT_DTYPE_FLOAT, &stash));
    grt_dim *dims = x->rank >= 0 && inf->n_out > 1 ? infer_dims(inf, x->rank) : NULL;
    for (int32_t k = 0; dims && k < x->rank; k++)
        dims[k] = k < axis ? x->dims[k] : grt_dim_const(inf->dims, 1);
    infer_set(inf, 1, stash, x->rank, dims);
    infer_set(inf, 2, stash, x->rank, dims);
    return GRT_OK;
}

static grt_status infer_rms_norm(infer *inf)
{
    const ir_type *x = inf->in[0];
    int32_t axis = 0;
    if (x->rank >= 0)
        GRT_TRY(infer_axis(inf, "attribute axis", grt_attr_int(inf->desc, "axis", -1), x->rank, &axis));
    GRT_TRY(check_broadcasts(inf, 1, "the scale"));
    /* The result has the scale's dtype: it multiplies last. */
    infer_set_like(inf, 0, inf->in[1]->dtype ? inf->in[1]->dtype : x->dtype, x);
    return GRT_OK;
}

static grt_status check_channels(const infer *inf, int32_t least)
{
    const ir_type *x = inf->in[0];
    if (x->rank < 0)
        return GRT_OK;
    if (x->rank < least)
        return infer_fail(inf, "the input has rank %d; expected %d or more (batch, channels, ...)", x->rank,
                          least);
    const grt_dim channels = x->dims[window_channels_last(inf->desc) ? x->rank - 1 : 1];
    GRT_TRY(check_parameter(inf, 1, "the scale", channels));
    return check_parameter(inf, 2, "the bias", channels);
}

static grt_status infer_group_norm(infer *inf)
{
    const int64_t groups = grt_attr_int(inf->desc, "num_groups", 0);
    int64_t channels;
    GRT_TRY(check_channels(inf, 2));
    if (groups < 1)
        return infer_fail(inf, "attribute num_groups is %lld; it must be at least 1", (long long)groups);
    const int32_t at = window_channels_last(inf->desc) ? inf->in[0]->rank - 1 : 1;
    if (inf->in[0]->rank >= 2 && infer_const(inf, inf->in[0]->dims[at], &channels) && channels % groups)
        return infer_fail(inf, "attribute num_groups (%lld) does not divide the %lld channels",
                          (long long)groups, (long long)channels);
    return infer_same_as_first(inf);
}

static grt_status infer_instance_norm(infer *inf)
{
    GRT_TRY(check_channels(inf, 2));
    return infer_same_as_first(inf);
}

static grt_status infer_lrn(infer *inf)
{
    if (grt_attr_int(inf->desc, "size", 0) < 1)
        return infer_fail(inf, "attribute size is %lld; it must be at least 1",
                          (long long)grt_attr_int(inf->desc, "size", 0));
    if (inf->in[0]->rank >= 0 && inf->in[0]->rank < 2)
        return infer_fail(inf, "the input has rank %d; expected batch, channels, ...", inf->in[0]->rank);
    return infer_same_as_first(inf);
}

/* Version 18 had one scale and one bias per group: repeat each for the group's channels. */
static ir_value *per_channel(ir_node *node, ir_value *parameter, ir_value *sizes)
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
        ir_value *wide = per_channel(node, ir_in(node, i), shape->out[0]);
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
#define END            \
    {                  \
        NULL, 0, false \
    }

static const op_attr layer_attrs[] = {{"axis", GRT_ATTR_INT, false}, EPSILON, STASH, END};
static const op_attr group_attrs[] = {{"num_groups", GRT_ATTR_INT, true}, EPSILON, STASH, END};
static const op_attr instance_attrs[] = {EPSILON, END};
static const op_attr group_last_attrs[] = {{"num_groups", GRT_ATTR_INT, true}, EPSILON, STASH, LAYOUT, END};
static const op_attr instance_last_attrs[] = {EPSILON, LAYOUT, END};
static const op_attr lrn_attrs[] = {{"alpha", GRT_ATTR_FLOAT, false},
                                    {"beta", GRT_ATTR_FLOAT, false},
                                    {"bias", GRT_ATTR_FLOAT, false},
                                    {"size", GRT_ATTR_INT, true},
                                    END};

static const op_row rows[] = {
    {.domain = "",
     .name = "LayerNormalization",
     .since = 17,
     .min_in = 2,
     .max_in = 3,
     .min_out = 1,
     .max_out = 3,
     .attrs = layer_attrs,
     .precision = OP_NARROW,
     .cost = OP_COST_COMPUTE,
     .batch = OP_BATCH_NORM,
     .infer = infer_layer_norm},
    {.domain = "",
     .name = "RMSNormalization",
     .since = 23,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = layer_attrs,
     .precision = OP_NARROW,
     .cost = OP_COST_COMPUTE,
     .batch = OP_BATCH_NORM,
     .infer = infer_rms_norm},
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
    {.domain = "",
     .name = "LRN",
     .since = 13,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = lrn_attrs,
     .precision = OP_WIDE,
     .infer = infer_lrn},
};
OP_TABLE(norm, rows);
