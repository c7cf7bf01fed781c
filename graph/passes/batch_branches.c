/* SPDX-License-Identifier: Apache-2.0 */
/* Branches of one form, side by side in the graph, become one branch on a batch:
 *
 *   Concat of N x (Slice, Gemm, Relu, Gemm)
 *     ->  Reshape, Transpose, MatMul, Add, Relu, MatMul, Add, Transpose, Reshape
 *
 * Networks that a program runs in a loop are exported like that. A device needs a launch for each node,
 * however little there is to do in it, and many small products keep it idle.
 *
 * The branches are found as families (branch_family.h), of which all becomes a batch (batch.h) or nothing. */
#include "graph/passes/batch.h"
#include "graph/passes/branch_family.h"

typedef struct parallel {
    pass_context *context;
    ir_graph *graph;
    families found;
} parallel;

static double batch_branches_elements(const ir_value *value, int32_t from, int32_t to)
{
    double n = 1;
    int64_t dim;
    for (int32_t i = from; i < to; i++)
        if (grt_dim_is_const(value->graph->module->dims, value->type.dims[i], &dim))
            n *= (double)dim;
    return n;
}

static bool batch_branches_is_product(const ir_node *node)
{
    return rewrite_is(node, "MatMul") || rewrite_is(node, "Gemm");
}

/* True if the product has enough to do by itself. Dims that are not known count as 1. */
static bool is_large(const parallel *p, const ir_node *product)
{
    const ir_value *w = ir_in(product, 1), *y = product->out[0];
    const int64_t limit = p->context->target->traits->batch_limit;
    return limit && batch_branches_elements(y, 0, y->type.rank - 1) *
                            batch_branches_elements(w, w->type.rank - 2, w->type.rank) >=
                        (double)limit;
}

/* Something must be computed; and what others read of it has to be taken out of the batch again. */
static bool is_worth_it(const parallel *p, group *const *groups, int32_t n)
{
    int32_t products = 0, levels = 0, apart;
    for (int32_t k = 0; k < n; k++) {
        const group *g = groups[k];
        if (!group_is_computed(g))
            continue;
        const ir_node *node = g->members[0]->producer;
        if (batch_branches_is_product(node) && is_large(p, node))
            return false;
        products += batch_branches_is_product(node);
        levels += g->kind == FORM_NODE && !rewrite_needs_no_kernel(node);
        apart = 0;
        for (int32_t i = 0; i < g->n; i++)
            apart += group_is_read_apart(g, i);
        if (apart > g->n / FORM_LEAST)
            return false;
    }
    return products >= 1 || levels >= 2;
}

static ir_node *earliest(const group *g)
{
    ir_node *first = g->members[0]->producer;
    for (int32_t i = 1; i < g->n; i++)
        if (g->members[i]->producer->mark < first->mark)
            first = g->members[i]->producer;
    return first;
}

/* A family that is in place already may have replaced the value: a member taken out of its batch, a sum. */
static ir_value *as_it_is_now(const parallel *p, ir_value *value)
{
    const form *known = form_of(&p->found.forms, value);
    return known->now ? known->now : value;
}

static ir_value *make_ranges(const parallel *p, batch *b, const group *g)
{
    const form *first = form_of(&p->found.forms, g->members[0]);
    int64_t *starts = GRT_ARENA_ARRAY(p->found.scratch, int64_t, g->n);
    for (int32_t i = 0; starts && i < g->n; i++)
        starts[i] = form_of(&p->found.forms, g->members[i])->start;
    return starts ? batch_ranges(b, as_it_is_now(p, first->whole), first->axis, first->width, starts) : NULL;
}

static ir_value *batch_branches_make_parts(const parallel *p, batch *b, const group *g)
{
    const form *first = form_of(&p->found.forms, g->members[0]);
    const group *from = &p->found.groups[g->in[0]];
    return batch_part(b, from->value, first->axis, first->start, first->width);
}

static ir_value *make_nodes(const parallel *p, batch *b, const group *g)
{
    const ir_node *first = g->members[0]->producer;
    batch_operand *in = GRT_ARENA_ARRAY(p->found.scratch, batch_operand, first->n_in);
    for (int32_t k = 0; in && k < first->n_in; k++) {
        const group *from = g->in[k] >= 0 ? &p->found.groups[g->in[k]] : NULL;
        if (from)
            in[k] = (batch_operand){from->value, from->kind != FORM_OPAQUE, from->members[0]->type.rank};
    }
    return in ? batch_node(b, first, in) : NULL;
}

static bool batch_branches_take_apart(const parallel *p, batch *b, group *g)
{
    for (int32_t i = 0; i < g->n; i++) {
        if (!group_is_read_apart(g, i))
            continue;
        if (!g->apart)
            g->apart = GRT_ARENA_ARRAY(p->found.scratch, ir_value *, g->n);
        b->before = g->value->producer->next;
        if (!g->apart || !(g->apart[i] = batch_member(b, g->value, i)))
            return false;
    }
    return true;
}

static bool make_group(const parallel *p, batch *b, group *g)
{
    if (g->kind == FORM_OPAQUE || g->kind == FORM_CONSTANT) {
        g->value = g->kind == FORM_OPAQUE ? as_it_is_now(p, g->members[0])
                                          : batch_constants(b, p->graph, g->members);
        return g->value;
    }
    b->before = earliest(g);
    b->name = grt_arena_printf(p->context->module->arena, "%s+%d more", g->members[0]->producer->desc.name,
                               g->n - 1);
    if (!b->name)
        return false;
    if (g->kind == FORM_RANGE)
        return (g->value = make_ranges(p, b, g));
    g->value = g->kind == FORM_PART ? batch_branches_make_parts(p, b, g) : make_nodes(p, b, g);
    return g->value && batch_branches_take_apart(p, b, g);
}

static bool make_join(const parallel *p, batch *b, const group *g, join *j)
{
    const ir_type *type = &j->node->out[0]->type;
    const int64_t axis = grt_axis(grt_attr_int(&j->node->desc, "axis", 0), type->rank);
    ir_value *start = j->start ? as_it_is_now(p, j->start) : NULL;
    b->before = j->node;
    b->name = j->node->desc.name;
    j->made =
        j->reduce ? batch_reduce(b, g->value, j->reduce, start) : batch_join(b, g->value, (int32_t)axis);
    return j->made && ((!j->reduce && j->n < j->node->n_in) || rewrite_same_shape(&j->made->type, type));
}

static bool make_all(const parallel *p, batch *b, group *const *groups, int32_t n)
{
    for (int32_t k = 0; k < n; k++) {
        if (!make_group(p, b, groups[k]))
            return false;
        for (int32_t j = groups[k]->join; j >= 0; j = p->found.joins[j].next)
            if (!make_join(p, b, groups[k], &p->found.joins[j]))
                return false;
    }
    return true;
}

static void remove_unused(ir_node *node)
{
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i] && node->out[i]->n_uses)
            return;
    node->mark = -1;
    ir_node_remove(node);
}

static void remove_members(const group *g)
{
    const ir_node *before = NULL; /* a Split with many results is looked at once */
    for (int32_t i = 0; i < g->n; i++) {
        ir_node *node = g->members[i]->producer;
        if (node != before && node->mark >= 0)
            remove_unused(node);
        before = node;
    }
}

static bool is_unused_add(const ir_node *node)
{
    return rewrite_is(node, "Add") && node->mark >= 0 && !node->out[0]->n_uses;
}

/* A Sum; or the last of a chain of Adds, and those before it. */
static void remove_sum(ir_node *node)
{
    while (node) {
        ir_node *a = ir_in(node, 0)->producer, *b = ir_in(node, 1)->producer;
        const bool chain = rewrite_is(node, "Add");
        remove_unused(node);
        node = chain && is_unused_add(a) ? a : chain && is_unused_add(b) ? b : NULL;
    }
}

static void batch_branches_replace(const parallel *p, ir_value *value, ir_value *by)
{
    if (rewrite_replace(value, by))
        form_of(&p->found.forms, value)->now = by;
}

/* Members of the join give way to the batch's value; the Concat is closed up in the end. */
static void put_join(const parallel *p, const join *j)
{
    if (j->reduce) {
        batch_branches_replace(p, j->node->out[0], j->made);
        remove_sum(j->node);
        return;
    }
    for (int32_t i = 0; i < j->n; i++)
        ir_node_set_input(j->node, j->from + i, i ? NULL : j->made);
}

static void put_apart(const parallel *p, const group *g)
{
    for (int32_t i = 0; g->apart && i < g->n; i++)
        if (g->apart[i])
            batch_branches_replace(p, g->members[i], g->apart[i]);
}

static void batch_branches_put_in_place(const parallel *p, group *const *groups, int32_t n)
{
    for (int32_t k = 0; k < n; k++) {
        for (int32_t j = groups[k]->join; j >= 0; j = p->found.joins[j].next)
            put_join(p, &p->found.joins[j]);
        put_apart(p, groups[k]);
    }
    for (int32_t k = n - 1; k >= 0; k--)
        if (groups[k]->order >= 0)
            remove_members(groups[k]);
    p->context->changed++;
}

/* Inputs that went leave gaps. */
static void close_up(const parallel *p, ir_node *concat)
{
    ir_value **in = GRT_ARENA_ARRAY(p->found.scratch, ir_value *, concat->n_in);
    int32_t n = 0;
    for (int32_t i = 0; in && i < concat->n_in; i++)
        if (ir_in(concat, i))
            in[n++] = ir_in(concat, i);
    if (!in || n == concat->n_in || (n == 1 && rewrite_replace_node(concat, in[0])))
        return;
    ir_node_drop_inputs(concat, 0);
    for (int32_t i = 0; i < n; i++)
        ir_node_add_input(concat, in[i]);
}

static void batch_family(const parallel *p, group *const *groups, int32_t n)
{
    batch b = {.context = p->context, .scratch = p->found.scratch, .n = groups[0]->n};
    if (!is_worth_it(p, groups, n))
        return;
    if (make_all(p, &b, groups, n))
        batch_branches_put_in_place(p, groups, n);
    else
        batch_take_back(&b);
}

static grt_status batch_branches_visit_graph(pass_context *context, ir_graph *graph)
{
    parallel p = {.context = context, .graph = graph};
    grt_arena *scratch = grt_arena_create();
    if (!scratch)
        return grt_fail_memory(0);
    families_find(&p.found, graph, scratch);
    for (int32_t from = 0, to; from < p.found.n_groups; from = to) {
        to = families_end(&p.found, from);
        batch_family(&p, p.found.sorted + from, to - from);
    }
    for (int32_t j = 0; j < p.found.n_joins; j++)
        if (!p.found.joins[j].reduce &&
            (j + 1 == p.found.n_joins || p.found.joins[j + 1].node != p.found.joins[j].node))
            close_up(&p, p.found.joins[j].node);
    const bool failed = grt_arena_failed(scratch);
    grt_arena_release(scratch);
    return failed ? grt_fail_memory(0) : GRT_OK;
}

grt_status pass_batch_branches(pass_context *context)
{
    return rewrite_each_graph(context, batch_branches_visit_graph);
}
