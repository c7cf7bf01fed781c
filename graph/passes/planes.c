/* SPDX-License-Identifier: Apache-2.0 */
/* Planes: one filter for every channel, as of those that smooth an image, is exported as a convolution of
 * images of one channel, whose batch is all channels. It becomes one with a group for each channel, which
 * keeps channels last and for which libraries are fast: of a single channel they waste most of each vector.
 */
#include "graph/ir/constant.h"
#include "graph/passes/rewrite.h"

#include <string.h>

enum { X = 0, W = 1, BIAS = 2, LEAST_CHANNELS = 8, MOST_WEIGHTS = 1 << 18 };

/* The value with a batch and channels that were joined to the batch of `x`, an image of one channel; NULL if
 * there is none with the same pixels. */
static ir_value *planes_before_join(const ir_value *x, int64_t *out_channels)
{
    const grt_dims *dims = x->graph->module->dims;
    ir_value *y = rewrite_is_reshape(x->producer) ? ir_in(x->producer, 0) : NULL;
    if (!y || x->graph != y->graph || x->type.rank < 3 || y->type.rank != x->type.rank ||
        !grt_dim_equals(dims, x->type.dims[1], 1) || !grt_dim_is_const(dims, y->type.dims[1], out_channels) ||
        *out_channels < LEAST_CHANNELS)
        return NULL;
    for (int32_t k = 2; k < x->type.rank; k++)
        if (x->type.dims[k] != y->type.dims[k])
            return NULL;
    return y;
}

/* The only filter's weights, or its bias, for each of n channels. */
static ir_value *planes_for_each(ir_value *value, int64_t n)
{
    const grt_tensor *one = value->type.data;
    int64_t dims[GRT_MAX_RANK];
    memcpy(dims, one->dims, (size_t)one->rank * sizeof *dims);
    dims[0] = n;
    grt_tensor *t = ir_constant_create(value->graph->module, one->dtype, one->rank, dims);
    if (!t)
        return NULL;
    const size_t bytes = grt_tensor_bytes(one);
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)t->data + (size_t)i * bytes, one->data, bytes);
    return ir_constant(value->graph, NULL, t);
}

static bool planes_is_one_filter(const ir_node *node)
{
    const ir_value *w = ir_in(node, W), *bias = ir_in(node, BIAS);
    const grt_tensor *t = rewrite_is(node, "Conv") && w ? w->type.data : NULL;
    return t && t->rank >= 3 && t->dims[0] == 1 && t->dims[1] == 1 && ir_in(node, X)->type.rank == t->rank &&
           grt_dtype_in(t->dtype, GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16)) &&
           (!bias || bias->type.data);
}

static bool planes_replace(pass_context *context, ir_node *node)
{
    int64_t channels;
    if (!planes_is_one_filter(node))
        return false;
    ir_value *x = planes_before_join(ir_in(node, X), &channels), *bias = ir_in(node, BIAS);
    if (!x || grt_tensor_elements(ir_in(node, W)->type.data) > MOST_WEIGHTS / channels)
        return false;
    ir_value *in[] = {x, planes_for_each(ir_in(node, W), channels),
                      bias ? planes_for_each(bias, channels) : NULL};
    if (!in[W] || (bias && !in[BIAS]))
        return false;
    ir_node *made = ir_node_create(node->graph, node, "", "Conv", node->desc.name, bias ? 3 : 2, in, 1);
    if (!made)
        return false;
    ir_attrs_copy(made, node);
    ir_attr_set_int(made, "group", channels);
    const ir_type *type = &node->out[0]->type;
    ir_value *out = op_infer_node(made) == GRT_OK && rewrite_supported(context, made, NULL)
                        ? rewrite_reshaped(node, made->out[0], type->rank, type->dims)
                        : NULL;
    if (out && rewrite_take_over_node(node, out))
        return true;
    return false; /* what was made is not used, and dead */
}

static void planes_visit(pass_context *context, ir_node *node)
{
    context->changed += planes_replace(context, node);
}

grt_status pass_planes(pass_context *context)
{
    return context->target->traits->filters_channels || rewrite_is_listed(context->enabled, "planes")
               ? rewrite_each_node(context, planes_visit)
               : GRT_OK;
}
