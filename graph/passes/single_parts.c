/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `single_parts`: what was transposed and then taken apart, one by one along an axis, is sliced:
 *
 *   qkv -> Transpose [3, batch, heads, tokens, size] -> Split, Squeeze     as unbind is written
 *
 * One exporter writes it so, the other one as slices. These go in front of the Transpose (pass `simplify`),
 * so that a rotation of one part alone, as of the queries, can have it as it was: then some part has more
 * than one reader. Else it stays, as the parts of a Split along the first dim are views. Pass `equal_parts`
 * makes one Transpose and a Split again of parts that are all moved alike. */
#include "graph/passes/rewrite.h"

enum { MOST_PARTS = 16 };

static bool single_parts_are_all(const ir_node *node, int64_t axis, int32_t rank)
{
    for (int32_t i = 0; i < node->n_out; i++)
        if (!node->out[i] || node->out[i]->type.rank != rank ||
            !grt_dim_equals(node->graph->module->dims, node->out[i]->type.dims[axis], 1))
            return false;
    return true;
}

/* True if more than one node reads the part, with or without its dim of one. */
static bool single_part_is_shared(const ir_value *part)
{
    const ir_node *reader = rewrite_only_user(part);
    return part->n_uses > 1 ||
           (rewrite_is_reshape(reader) && reader->n_out == 1 && reader->out[0]->n_uses > 1);
}

static bool single_parts_are_shared(const ir_node *node)
{
    bool shared = false;
    for (int32_t i = 0; i < node->n_out; i++)
        shared |= single_part_is_shared(node->out[i]);
    return shared;
}

static ir_value *single_part(ir_node *before, ir_value *x, int64_t axis, int64_t at)
{
    const int64_t end = at + 1;
    const char *name = before->desc.name;
    ir_value *in[] = {x, ir_constant_ints(before->graph, name, &at, 1),
                      ir_constant_ints(before->graph, name, &end, 1),
                      ir_constant_ints(before->graph, name, &axis, 1)};
    ir_node *slice =
        in[1] && in[2] && in[3] ? ir_node_create(before->graph, before, "", "Slice", name, 4, in, 1) : NULL;
    return slice && op_infer_node(slice) == GRT_OK ? slice->out[0] : NULL;
}

static void single_parts_look(pass_context *context, ir_node *node)
{
    const ir_node *transpose =
        rewrite_is(node, "Split") ? rewrite_producer(ir_in(node, 0), "Transpose") : NULL;
    if (!transpose || transpose->graph != node->graph || transpose->out[0]->n_uses != 1 || node->n_out < 2 ||
        node->n_out > MOST_PARTS)
        return;
    const int32_t rank = transpose->out[0]->type.rank;
    const int64_t axis = grt_axis(grt_attr_int(&node->desc, "axis", 0), rank);
    if (axis < 0 || !single_parts_are_all(node, axis, rank) || !single_parts_are_shared(node))
        return;
    for (int32_t i = 0; i < node->n_out; i++) {
        ir_value *part = node->out[i]->n_uses ? single_part(node, ir_in(node, 0), axis, i) : NULL;
        if (node->out[i]->n_uses && (!part || !rewrite_replace(node->out[i], part)))
            return;
    }
    ir_node_remove(node);
    context->changed++;
}

grt_status pass_single_parts(pass_context *context)
{
    return rewrite_each_node(context, single_parts_look);
}
