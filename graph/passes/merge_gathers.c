/* SPDX-License-Identifier: Apache-2.0 */
/* Small Gathers that do not wait for each other become one step, as recommenders have them: a column of
 * numbers for each feature, and a row of a table for each number. */
#include "graph/passes/small_steps.h"

enum {
    WINDOW = 512,
    MOST_BYTES = 4 << 20, /* of one result: larger ones fill a device, and should not live long */
};

static int64_t axis_of(const ir_node *node)
{
    return grt_axis(grt_attr_int(&node->desc, "axis", 0), ir_in(node, 0)->type.rank);
}

/* Dims that only the run knows count as 1. */
static bool is_small(const ir_node *node)
{
    const ir_type *type = &node->out[0]->type;
    const grt_tensor t = rewrite_tensor(node->graph->module->dims, type);
    int64_t bytes = (int64_t)grt_dtype_size(type->dtype);
    for (int32_t k = 0; k < t.rank && bytes <= MOST_BYTES; k++)
        bytes *= t.dims[k] > 0 && t.dims[k] <= MOST_BYTES ? t.dims[k] : t.dims[k] > 0 ? MOST_BYTES : 1;
    return t.rank >= 0 && bytes <= MOST_BYTES;
}

/* Lists are mostly shapes, which are computed on the host. */
static bool merge_gathers_may_join(const ir_node *node)
{
    return rewrite_is(node, "Gather") && node->out[0] && ir_in(node, 0)->type.rank >= 2 &&
           ir_in(node, 1)->type.rank >= 0 && is_small(node);
}

static bool is_relative(const ir_node *first, const ir_node *node)
{
    return merge_gathers_may_join(node) && axis_of(first) == axis_of(node) &&
           ir_in(first, 0)->type.dtype == ir_in(node, 0)->type.dtype &&
           small_steps_is_there(ir_in(node, 0), first) && small_steps_is_there(ir_in(node, 1), first);
}

static ir_node *merge_gathers_create(ir_node *const *members, int32_t n)
{
    ir_node *first = members[0];
    ir_value *in[2 * SMALL_STEPS_MOST];
    for (int32_t i = 0; i < n; i++) {
        in[i] = ir_in(members[i], 0);
        in[n + i] = ir_in(members[i], 1);
    }
    ir_node *made =
        ir_node_create(first->graph, first, "graphrt", "GatherEach", first->desc.name, 2 * n, in, n);
    if (made)
        ir_attr_set_int(made, "axis", axis_of(first));
    return made;
}

static const small_steps gathers = {.most = SMALL_STEPS_MOST,
                                    .window = WINDOW,
                                    .may_begin = merge_gathers_may_join,
                                    .may_join = is_relative,
                                    .create = merge_gathers_create};

static grt_status merge_gathers_visit_graph(pass_context *context, ir_graph *graph)
{
    small_steps_merge(context, graph, &gathers);
    return GRT_OK;
}

grt_status pass_merge_gathers(pass_context *context)
{
    return context->target->traits->merges_small_steps
               ? rewrite_each_graph(context, merge_gathers_visit_graph)
               : GRT_OK;
}
