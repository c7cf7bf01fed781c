/* SPDX-License-Identifier: Apache-2.0 */
/* Small Gathers that do not wait for each other become one step, as recommenders have them: a column of
 * numbers for each feature, and a row of a table for each number. */
#include "graph/passes/rewrite.h"

enum {
    MOST = 32,            /* members, as the kernels have it */
    WINDOW = 512,         /* nodes from the first member on: a result lives until its reader has come */
    MOST_BYTES = 4 << 20, /* of one result: larger ones fill a device, and should not live long */
};

typedef struct family {
    ir_node *members[MOST];
    int32_t n;
} family;

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

/* There when `first` begins. mark: the place of a node in its graph. */
static bool is_there(const ir_value *value, const ir_node *first)
{
    return !value->producer || value->graph != first->graph || value->producer->mark < first->mark;
}

static bool is_relative(const ir_node *first, const ir_node *node)
{
    return merge_gathers_may_join(node) && axis_of(first) == axis_of(node) &&
           ir_in(first, 0)->type.dtype == ir_in(node, 0)->type.dtype && is_there(ir_in(node, 0), first) &&
           is_there(ir_in(node, 1), first);
}

static void merge_gathers_find_family(ir_node *first, family *out)
{
    out->members[0] = first;
    out->n = 1;
    int32_t seen = 0;
    for (ir_node *node = first->next; node && seen < WINDOW && out->n < MOST; node = node->next, seen++)
        if (is_relative(first, node))
            out->members[out->n++] = node;
}

/* The step in front of the first member; NULL if the target has none. */
static ir_node *make_step(const pass_context *context, const family *f)
{
    ir_node *first = f->members[0];
    ir_value *in[2 * MOST];
    for (int32_t i = 0; i < f->n; i++) {
        in[i] = ir_in(f->members[i], 0);
        in[f->n + i] = ir_in(f->members[i], 1);
    }
    ir_node *made =
        ir_node_create(first->graph, first, "graphrt", "GatherEach", first->desc.name, 2 * f->n, in, f->n);
    if (!made)
        return NULL;
    ir_attr_set_int(made, "axis", axis_of(first));
    made->mark = first->mark;
    for (int32_t i = 1; i < f->n; i++)
        ir_node_absorb_name(made, f->members[i]);
    if (op_infer_node(made) == GRT_OK && rewrite_supported(context, made, NULL))
        return made;
    ir_node_remove(made);
    return NULL;
}

static grt_status merge_gathers_visit_graph(pass_context *context, ir_graph *graph)
{
    int64_t place = 0;
    IR_FOR_EACH_NODE (node, graph)
        node->mark = place++;
    for (ir_node *node = graph->first, *next; node; node = next) {
        family f;
        next = node->next;
        if (!merge_gathers_may_join(node))
            continue;
        merge_gathers_find_family(node, &f);
        ir_node *made = f.n > 1 ? make_step(context, &f) : NULL;
        for (int32_t i = 0; made && i < f.n; i++)
            if (rewrite_replace_node(f.members[i], made->out[i]))
                context->changed++;
        next = made ? made->next : next;
    }
    return GRT_OK;
}

grt_status pass_merge_gathers(pass_context *context)
{
    return context->target->traits->merges_small_steps
               ? rewrite_each_graph(context, merge_gathers_visit_graph)
               : GRT_OK;
}
