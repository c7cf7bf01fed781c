/* SPDX-License-Identifier: Apache-2.0 */
/* Groups that compute rows: element-wise nodes around reductions over the last dims become one graphrt::Rows
 * node, which reads its inputs and writes its result once (graph/ops/rows.h has the form of its program).
 *
 * A member's result is of all elements (the frame's shape), or one number for each row: then it has 1 in
 * place of the dims that are folded. Groups grow backwards from their last node as pointwise groups do
 * (pointwise.c), with the same rule for Casts. A group whose last node gives numbers has no frame until its
 * first reduction says what it folds.
 *
 * What an executor keeps of a row must stay near it: rows are short, and so is what waits for later phases.
 */
#include "graph/passes/rows_code.h"
#include "src/base/grow.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_MEMBERS = 32,
    MOST_LENGTH = 16384,   /* elements of a row */
    MOST_KEPT = 256 << 10, /* bytes of a row's elements that wait for later phases */
};

typedef struct rows_group {
    ir_node *members[MOST_MEMBERS]; /* the last one first */
    int32_t n, n_inputs;
    const ir_value *inputs[ROWS_MAX_INPUTS];
    const ir_type *frame;  /* shape of all elements */
    const ir_type *number; /* shape of one number for each row; NULL while there is none */
    int32_t row_dims;      /* 0: nothing is folded yet */
} rows_group;

typedef struct rows_groups {
    pass_context *context;
    grt_arena *scratch;
    rows_group **v;
    int64_t n, capacity;
} rows_groups;

static bool is_one(const ir_graph *graph, grt_dim dim)
{
    int64_t value;
    return grt_dim_is_const(graph->module->dims, dim, &value) && value == 1;
}

/* The frame's shape with 1 in place of some of its last dims. */
static bool is_number_of(const ir_graph *graph, const ir_type *frame, const ir_type *type)
{
    int32_t k = 0;
    if (type->rank < 1 || type->rank != frame->rank)
        return false;
    while (k < type->rank && type->dims[k] == frame->dims[k])
        k++;
    for (; k < type->rank; k++)
        if (!is_one(graph, type->dims[k]))
            return false;
    return true;
}

static bool is_view_of_reduction(const ir_node *node)
{
    rows_reduction r;
    const ir_value *x = rewrite_is_reshape(node) ? ir_in(node, 0) : NULL;
    return x && x->producer && rows_reduction_of(x->producer, &r) && !r.keeps_dims;
}

/* Of numbers without the dims that are folded, nothing but constants may be an operand: other inputs would
 * not line up with the row. */
static bool reads_itself(const rows_group *g, const ir_value *reduced)
{
    double unused;
    for (int32_t i = 0; i < g->n; i++)
        for (int32_t k = 0; k < g->members[i]->n_in; k++) {
            const ir_value *value = g->members[i]->in[k].value;
            if (value && value != reduced && !pointwise_node_is_immediate(value, &unused) &&
                !(value->producer && value->graph == g->members[0]->graph &&
                  value->producer->mark == g->members[0]->mark))
                return false;
        }
    return true;
}

/* Where a reduction fits into the group; false if it does not. */
static bool fit_reduction(rows_group *g, const ir_node *node, const rows_reduction *r)
{
    if (r->length > MOST_LENGTH)
        return false;
    if (g->n == 0) {
        g->frame = r->in;
        g->number = r->out;
    } else if (rewrite_same_shape(g->frame, r->in)) {
        const ir_node *user = rewrite_only_user(node->out[0]);
        const bool viewed = !r->keeps_dims && user && is_view_of_reduction(user);
        if (!r->keeps_dims && !viewed)
            return false;
        if (!viewed && g->number && !rewrite_same_shape(g->number, r->out))
            return false;
        g->number = viewed ? g->number : r->out;
    } else if (!g->row_dims && !g->number && rewrite_same_shape(g->frame, r->out)) {
        if (!r->keeps_dims && !reads_itself(g, node->out[0]))
            return false;
        g->frame = r->in;
        g->number = r->out;
    } else {
        return false;
    }
    g->row_dims = r->row_dims > g->row_dims ? r->row_dims : g->row_dims;
    return true;
}

/* The same for a node whose result has a shape of the group's. */
static bool fit_elements(rows_group *g, const ir_node *node)
{
    const ir_type *type = &node->out[0]->type;
    if (g->n == 0) {
        g->frame = type;
        return true;
    }
    if (rewrite_same_shape(g->frame, type))
        return true;
    if (g->number)
        return rewrite_same_shape(g->number, type);
    if (!is_number_of(node->graph, g->frame, type))
        return false;
    g->number = type;
    return true;
}

/* Inputs that are no operands say what is folded, or the shape of a view. */
static int32_t rows_operands_of(const ir_node *node)
{
    return pointwise_node_opcode(node) >= 0 ? node->n_in : 1;
}

static bool may_be_member(const ir_node *node)
{
    rows_reduction r;
    return node->n_out == 1 && (rows_reduction_of(node, &r) || pointwise_node_opcode(node) >= 0 ||
                                pointwise_node_is_cast(node) || is_view_of_reduction(node));
}

static bool rows_join(rows_group *g, ir_node *node)
{
    rows_group with = *g;
    rows_reduction r;
    double unused;
    const bool reduces = rows_reduction_of(node, &r);
    if (g->n == MOST_MEMBERS || !(reduces ? fit_reduction(&with, node, &r) : fit_elements(&with, node)))
        return false;
    with.n_inputs = 0;
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i] != node->out[0])
            with.inputs[with.n_inputs++] = g->inputs[i];
    for (int32_t i = 0; i < rows_operands_of(node); i++) {
        const ir_value *value = node->in[i].value;
        if (value && !pointwise_node_is_immediate(value, &unused) &&
            !pointwise_node_add_input(with.inputs, &with.n_inputs, ROWS_MAX_INPUTS, value))
            return false;
    }
    with.members[with.n++] = node;
    *g = with;
    return true;
}

static bool rows_begin(rows_groups *all, ir_node *node)
{
    if (is_view_of_reduction(node))
        return true; /* nothing is behind it that wants rows */
    if (!GRT_GROW(all->v, all->n, all->capacity))
        return false;
    rows_group *g = GRT_ARENA_NEW(all->scratch, rows_group);
    if (!g)
        return false;
    if (rows_join(g, node)) {
        node->mark = all->n;
        all->v[all->n++] = g;
    }
    return true;
}

static grt_status rows_form(rows_groups *all, ir_graph *graph)
{
    for (ir_node *node = graph->last; node; node = node->prev) {
        node->mark = -1;
        if (!may_be_member(node))
            continue;
        const int64_t at = pointwise_node_group_of_uses(node->out[0]);
        if (at >= 0 && pointwise_node_may_stay_inside(node) && rows_join(all->v[at], node))
            node->mark = at;
        else if (!rows_begin(all, node))
            return grt_fail_memory(sizeof(rows_group));
    }
    return GRT_OK;
}

/* ---- what is left out again ---- */

static bool is_member(const rows_group *g, const ir_value *value)
{
    for (int32_t i = 0; i < g->n; i++)
        if (g->members[i]->out[0] == value)
            return true;
    return false;
}

/* Numbers that depend on no fold are computed outside: there they are computed once a row, not once an
 * element. What they are computed from is of the same kind. So is a view whose reduction is no member: what
 * it reads has other dims than the group's. */
static bool drop_plain_numbers(rows_group *g)
{
    bool folded[MOST_MEMBERS];
    rows_reduction r;
    double unused;
    rows_group kept = *g;
    for (int32_t i = g->n; i-- > 0;) {
        folded[i] = rows_reduction_of(g->members[i], &r);
        for (int32_t k = 0; k < rows_operands_of(g->members[i]); k++)
            for (int32_t m = i + 1; m < g->n; m++)
                folded[i] |= folded[m] && g->members[m]->out[0] == g->members[i]->in[k].value;
    }
    kept.n = kept.n_inputs = 0;
    for (int32_t i = 0; i < g->n; i++)
        if (folded[i] || (rewrite_same_shape(g->frame, &g->members[i]->out[0]->type) &&
                          !is_view_of_reduction(g->members[i])))
            kept.members[kept.n++] = g->members[i];
    for (int32_t i = 0; i < kept.n; i++)
        for (int32_t k = 0; k < rows_operands_of(kept.members[i]); k++) {
            const ir_value *value = kept.members[i]->in[k].value;
            if (value && !is_member(&kept, value) && !pointwise_node_is_immediate(value, &unused) &&
                !pointwise_node_add_input(kept.inputs, &kept.n_inputs, ROWS_MAX_INPUTS, value))
                return false;
        }
    *g = kept;
    return true;
}

/* Each input has all of the row's dims, or 1 in place of each. */
static bool inputs_fit(const rows_group *g)
{
    const ir_graph *graph = g->members[0]->graph;
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const ir_type *type = &g->inputs[i]->type;
        bool has_one = false, has_other = false;
        for (int32_t k = g->frame->rank - g->row_dims; k < g->frame->rank; k++) {
            const int32_t at = k - (g->frame->rank - type->rank);
            if (is_one(graph, g->frame->dims[k]))
                continue;
            has_one |= at < 0 || type->dims[at] != g->frame->dims[k];
            has_other |= at >= 0 && type->dims[at] == g->frame->dims[k];
        }
        if (type->rank < 0 || type->rank > g->frame->rank || (has_one && has_other))
            return false;
    }
    return true;
}

/* Kernels find an input's row by few divisions: the dims in front of the row make few groups, of which each
 * input has all or none. */
static bool groups_fit(const rows_group *g)
{
    const ir_graph *graph = g->members[0]->graph;
    int32_t groups = 0;
    uint32_t last = 0;
    for (int32_t k = g->frame->rank - g->row_dims; k-- > 0;) {
        uint32_t have = 0;
        if (is_one(graph, g->frame->dims[k]))
            continue;
        for (int32_t i = 0; i < g->n_inputs; i++) {
            const int32_t at = k - (g->frame->rank - g->inputs[i]->type.rank);
            have |= (uint32_t)(at >= 0 && !is_one(graph, g->inputs[i]->type.dims[at])) << i;
        }
        groups += groups == 0 || have != last;
        last = have;
    }
    return groups <= ROWS_MAX_GROUPS;
}

/* ---- the node ---- */

static ir_node *make_rows(const rows_group *g, const rows_code *c)
{
    const pointwise_group made = {.members = g->members,
                                  .n_members = g->n,
                                  .inputs = g->inputs,
                                  .n_inputs = g->n_inputs,
                                  .code = c->code,
                                  .n_code = c->n,
                                  .constants = c->constants,
                                  .n_constants = c->n_constants};
    const int64_t last = c->code[4 * (c->n - 1)];
    ir_node *node = pointwise_node_create("Rows", &made);
    if (!node)
        return NULL;
    ir_attr_set_int(node, "row_dims", g->row_dims);
    pointwise_node_name_type(node, !rows_is_fold(last) && grt_pointwise_info((int32_t)last)->truth,
                             g->members[0]->out[0]->type.dtype);
    return node;
}

/* True if little enough waits between phases. */
static grt_status keeps_little(const rows_group *g, const ir_node *node, bool *out_little)
{
    rows_program *program;
    rows_reduction r = {0};
    int64_t length = 1;
    for (int32_t i = 0; i < g->n; i++)
        if (rows_reduction_of(g->members[i], &r))
            length = r.length;
    GRT_TRY(grt_rows_decode(&node->desc, node->n_in, &program));
    *out_little = (int64_t)sizeof(float) * length * program->n_kept <= MOST_KEPT;
    free(program);
    return GRT_OK;
}

/* The node's result with the dims of the root's; NULL if it is another one. */
static ir_value *as_root(const rows_group *g, ir_node *node)
{
    const ir_type *made = &node->out[0]->type, *wanted = &g->members[0]->out[0]->type;
    if (made->dtype != wanted->dtype)
        return NULL;
    if (rewrite_same_shape(made, wanted))
        return node->out[0];
    if (wanted->rank != made->rank - g->row_dims)
        return NULL;
    for (int32_t k = 0; k < wanted->rank; k++)
        if (made->dims[k] != wanted->dims[k])
            return NULL;
    return rewrite_reshaped(g->members[0], node->out[0], wanted->rank, wanted->dims);
}

static grt_status rows_fuse(rows_groups *all, rows_group *g)
{
    ir_node *root = g->members[0];
    rows_code c = {0};
    if (!g->row_dims || !drop_plain_numbers(g) || g->n < 2 || g->n_inputs < 1 || !inputs_fit(g) ||
        !groups_fit(g))
        return GRT_OK;
    c.n_inputs = g->n_inputs;
    memcpy(c.inputs, g->inputs, sizeof c.inputs);
    for (int32_t i = g->n; i-- > 0;)
        rows_code_add(&c, g->members[i]);
    if (c.full)
        return GRT_OK;
    rows_code_end(&c);
    ir_node *node = make_rows(g, &c);
    bool little = false;
    if (!node)
        return grt_fail_memory(0);
    grt_status status = op_infer_node(node);
    if (status == GRT_OK)
        status = keeps_little(g, node, &little);
    ir_value *made =
        status == GRT_OK && little && rewrite_supported(all->context, node, NULL) ? as_root(g, node) : NULL;
    if (!made || !rewrite_replace(root->out[0], made)) {
        if (made && made != node->out[0])
            ir_node_remove(made->producer);
        ir_node_remove(node);
        return status;
    }
    for (int32_t i = 0; i < g->n; i++)
        ir_node_remove(g->members[i]);
    all->context->changed++;
    return GRT_OK;
}

static grt_status rows_visit_with(rows_groups *all, ir_graph *graph)
{
    GRT_TRY(rows_form(all, graph));
    for (int64_t i = 0; i < all->n; i++)
        GRT_TRY(rows_fuse(all, all->v[i]));
    return GRT_OK;
}

static grt_status rows_visit(pass_context *context, ir_graph *graph)
{
    rows_groups all = {.context = context, .scratch = grt_arena_create()};
    grt_status status = all.scratch ? rows_visit_with(&all, graph) : grt_fail_memory(0);
    free(all.v);
    grt_arena_release(all.scratch);
    return status;
}

grt_status pass_rows(pass_context *context)
{
    return context->target->traits->folds_rows || rewrite_is_listed(context->enabled, "rows")
               ? rewrite_each_graph(context, rows_visit)
               : GRT_OK;
}
