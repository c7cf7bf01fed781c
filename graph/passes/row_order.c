/* SPDX-License-Identifier: Apache-2.0 */
/* Models that keep the sequence in front of the batch, [sequence, batch, width], are turned where attention
 * takes its rows the other way round:
 *
 *   x -> MatMul -> Transpose -> Attention -> Transpose -> MatMul -> Add x -> LayerNormalization -> MatMul ...
 *
 * What treats all rows alike computes the same in either order of the first two dims. Values of three dims
 * that such nodes connect, also by reading one value, are a region. It is turned as a whole, where that moves
 * fewer elements: Transposes on its border vanish, and what enters or leaves it otherwise gets one. */
#include "graph/passes/rewrite.h"
#include "graph/passes/row_wise.h"
#include "src/base/checked.h"
#include "src/base/grow.h"

#include <stdlib.h>

enum { ROWS_RANK = 3, MOST_INPUTS = 4 };

/* A value of a region. */
typedef struct row_value {
    ir_value *value, *turned; /* turned: with its first two dims exchanged; NULL: not yet */
    int64_t parent;           /* union-find; itself: the region's root */
    int64_t first, next;      /* root: one more than a place of the region; another one. 0: none */
    int64_t gain;             /* root: elements of a row that are moved no more, if the region is turned */
    bool made;                /* by a node of the region */
    bool inside;              /* only the region reads it, or what takes a Transpose in */
    bool chosen;              /* root: the region is turned */
} row_value;

typedef struct row_order {
    pass_context *context;
    grt_dims *dims;
    row_value *values; /* value->mark - 1 is a value's place */
    int64_t n, capacity;
} row_order;

/* ---- nodes that treat rows alike ---- */

/* Rows of known width in two dims, neither of which is known to be 1: then there is nothing to move. */
static bool row_order_has_rows(const grt_dims *dims, const ir_type *type)
{
    return type->kind == GRT_KIND_TENSOR && type->rank == ROWS_RANK &&
           !grt_dim_equals(dims, type->dims[0], 1) && !grt_dim_equals(dims, type->dims[1], 1) &&
           grt_dim_is_const(dims, type->dims[2], NULL);
}

static bool has_same_rows(const ir_type *a, const ir_type *b)
{
    return a->rank == ROWS_RANK && a->dims[0] == b->dims[0] && a->dims[1] == b->dims[1];
}

/* True if the value is broadcast to rows [a, b, ...] along the first of these dims, the second or both. */
static bool is_beside_rows(const grt_dims *dims, const ir_value *value, const ir_type *rows)
{
    const ir_type *type = &value->type;
    bool one[2] = {true, true};
    if (type->rank < 0 || type->rank > ROWS_RANK)
        return false;
    for (int32_t i = 0; i < type->rank - 1; i++) {
        const int32_t at = ROWS_RANK - type->rank + i;
        one[at] = grt_dim_equals(dims, type->dims[i], 1);
        if (!one[at] && type->dims[i] != rows->dims[at])
            return false;
    }
    return one[0] || one[1];
}

static bool is_norm_of_rows(const ir_node *node)
{
    return (rewrite_is(node, "LayerNormalization") || rewrite_is(node, "RMSNormalization")) &&
           grt_axis(grt_attr_int(&node->desc, "axis", -1), ROWS_RANK) == ROWS_RANK - 1;
}

/* True if input i of the node has the rows of its result. */
static bool is_row_input(const row_order *o, const ir_node *node, int32_t i)
{
    const ir_value *x = ir_in(node, i);
    return x && x->graph == node->graph && row_order_has_rows(o->dims, &x->type) &&
           has_same_rows(&x->type, &node->out[0]->type);
}

/* True if the node makes each row of its result of the same rows of its inputs, in whatever order they are.
 */
static bool makes_row_of_row(const row_order *o, const ir_node *node)
{
    if (!node || node->n_out != 1 || !node->out[0] || node->n_in < 1 || node->n_in > MOST_INPUTS ||
        !row_order_has_rows(o->dims, &node->out[0]->type))
        return false;
    if (rewrite_is(node, "MatMul"))
        return is_row_input(o, node, 0) && row_wise_is_matrix(ir_in(node, 1));
    const bool norm = is_norm_of_rows(node);
    if (!norm && !rewrite_has(node, OP_POINTWISE))
        return false;
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *x = ir_in(node, i);
        const bool ok =
            is_row_input(o, node, i) ||
            (norm ? i && (!x || x->type.rank == 1) : x && is_beside_rows(o->dims, x, &node->out[0]->type));
        if (!ok)
            return false;
    }
    return true;
}

/* True if the node exchanges the first two of three dims. */
static bool is_turn(const ir_node *node)
{
    size_t n;
    const int64_t *perm = rewrite_is(node, "Transpose") ? grt_attr_ints(&node->desc, "perm", &n) : NULL;
    return perm && n == ROWS_RANK && perm[0] == 1 && perm[1] == 0;
}

/* ---- regions ---- */

static int64_t row_order_root(row_order *o, int64_t i)
{
    while (o->values[i].parent != i)
        i = o->values[i].parent = o->values[o->values[i].parent].parent;
    return i;
}

/* The value's place; -1 when out of memory. */
static int64_t row_order_place(row_order *o, ir_value *value)
{
    if (value->mark)
        return value->mark - 1;
    if (!GRT_GROW(o->values, o->n, o->capacity))
        return -1;
    o->values[o->n] = (row_value){.value = value, .parent = o->n};
    value->mark = ++o->n;
    return o->n - 1;
}

static bool connect(row_order *o, ir_node *node)
{
    const int64_t out = row_order_place(o, node->out[0]);
    if (out < 0)
        return false;
    o->values[out].made = true;
    for (int32_t i = 0; i < node->n_in; i++) {
        if (!is_row_input(o, node, i))
            continue;
        const int64_t in = row_order_place(o, ir_in(node, i));
        if (in < 0)
            return false;
        o->values[row_order_root(o, in)].parent = row_order_root(o, out);
    }
    return true;
}

/* True if the use is one of a node of a region. */
static bool is_used_inside(const row_order *o, const ir_use *use)
{
    return use->node && use->node->graph == use->value->graph && makes_row_of_row(o, use->node) &&
           is_row_input(o, use->node, use->index);
}

/* True if a Transpose of the value's elements is one with another in front of it, or with one behind a reader
 * that gives them other dims. */
static bool meets_move(const ir_node *node, bool behind)
{
    if (!rewrite_is_reshape(node) || node->n_out != 1)
        return false;
    const ir_node *next = behind ? rewrite_only_user(node->out[0]) : ir_in(node, 0)->producer;
    return rewrite_is(next, "Transpose") && next->graph == node->graph;
}

/* True if the use is a Transpose out of the region, to another one or to none. */
static bool is_turned_outside(row_order *o, const ir_use *use)
{
    const ir_value *y = use->node && is_turn(use->node) ? use->node->out[0] : NULL;
    return y && y->graph == use->value->graph &&
           !(y->mark && row_order_root(o, y->mark - 1) == row_order_root(o, use->value->mark - 1));
}

/* What turning the value saves, while no other region is turned: elements of a row. */
static int64_t gain_of(row_order *o, row_value *v)
{
    const ir_node *producer = v->value->producer;
    int64_t width, gain = 0;
    bool inside = true;
    grt_dim_is_const(o->dims, v->value->type.dims[ROWS_RANK - 1], &width);
    for (const ir_use *use = v->value->uses; use; use = use->next) {
        if (is_used_inside(o, use))
            continue;
        if (v->made && is_turned_outside(o, use))
            gain = grt_add_saturated(gain, width);
        else if (!v->made || !use->node || !meets_move(use->node, true))
            inside = false;
    }
    v->inside = inside;
    if (v->made)
        return inside ? gain : grt_sub_saturated(gain, width);
    if (v->value->type.data && !producer && !v->value->is_input)
        return 0; /* turned when compiling */
    if (producer && producer->graph == v->value->graph && meets_move(producer, false))
        return 0;
    const ir_value *x = is_turn(producer) ? ir_in(producer, 0) : NULL;
    if (!x || x->graph != v->value->graph)
        return -width;
    const bool own = x->mark && row_order_root(o, x->mark - 1) == row_order_root(o, v->value->mark - 1);
    return inside && !own ? width : 0;
}

/* x is made by one region, y, its Transpose, read by another, and one of them is turned: the other one saves
 * that Transpose no more, but needs one where there was none, or none but for readers outside. */
static void share_move(row_order *o, const ir_value *x, const ir_value *y, int64_t neighbour)
{
    const row_value *made = &o->values[x->mark - 1], *read = &o->values[y->mark - 1];
    int64_t width;
    grt_dim_is_const(o->dims, x->type.dims[ROWS_RANK - 1], &width);
    if (made->made)
        o->values[neighbour].gain =
            grt_sub_saturated(o->values[neighbour].gain, read->inside ? grt_mul_saturated(2, width) : width);
}

/* What a turned value changes for regions that a Transpose connects with its own. */
static void tell_neighbours(row_order *o, const ir_value *value)
{
    const ir_node *producer = value->producer;
    const ir_value *x = is_turn(producer) ? ir_in(producer, 0) : NULL;
    const int64_t root = row_order_root(o, value->mark - 1);
    if (x && x->graph == value->graph && x->mark && row_order_root(o, x->mark - 1) != root)
        share_move(o, x, value, row_order_root(o, x->mark - 1));
    for (const ir_use *use = value->uses; use; use = use->next) {
        const ir_value *y = is_turned_outside(o, use) ? use->node->out[0] : NULL;
        if (y && y->mark)
            share_move(o, value, y, row_order_root(o, y->mark - 1));
    }
}

typedef struct row_region {
    int64_t root, gain; /* gain: at first */
} row_region;

static int compare_gains(const void *a, const void *b)
{
    const row_region *x = a, *y = b;
    if (x->gain != y->gain)
        return x->gain < y->gain ? 1 : -1;
    return (x->root > y->root) - (x->root < y->root);
}

/* Values of a region become its root's list, and regions that gain alone one of their own. */
static int64_t list_regions(row_order *o, row_region *out)
{
    int64_t n = 0;
    for (int64_t i = o->n - 1; i >= 0; i--) {
        row_value *v = &o->values[i], *root = &o->values[row_order_root(o, i)];
        v->next = root->first;
        root->first = i + 1;
        if (v == root && v->gain > 0)
            out[n++] = (row_region){i, v->gain};
    }
    return n;
}

/* One region after the other, those that save most first, each beside those that are turned already: so every
 * choice saves moves. False: out of memory. */
static bool choose_regions(row_order *o)
{
    row_region *regions = malloc(((size_t)o->n + 1) * sizeof *regions);
    if (!regions)
        return false;
    const int64_t n = list_regions(o, regions);
    qsort(regions, (size_t)n, sizeof *regions, compare_gains);
    for (int64_t i = 0; i < n; i++) {
        row_value *root = &o->values[regions[i].root];
        root->chosen = root->gain > 0;
        for (int64_t at = root->chosen ? root->first : 0; at; at = o->values[at - 1].next)
            tell_neighbours(o, o->values[at - 1].value);
    }
    free(regions);
    return true;
}

/* ---- turning ---- */

static ir_value *row_order_made(ir_node *node)
{
    return node && op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

static ir_value *turned_by_node(ir_node *before, ir_value *x)
{
    ir_node *node = ir_node_create(before->graph, before, "", "Transpose", before->desc.name, 1, &x, 1);
    if (node)
        ir_attr_set_ints(node, "perm", (int64_t[]){1, 0, 2}, ROWS_RANK);
    return row_order_made(node);
}

/* A value of a region that is turned, in front of `before`. NULL when out of memory. */
static ir_value *turned_value(row_order *o, ir_node *before, ir_value *x)
{
    row_value *v = &o->values[x->mark - 1];
    if (v->turned)
        return v->turned;
    ir_value *y = is_turn(x->producer) && !v->made ? ir_in(x->producer, 0) : NULL;
    if (!y || y->graph != x->graph)
        return v->turned = turned_by_node(before, x);
    /* What was turned in front of that is made in the other order now. */
    ir_value *other = y->mark ? o->values[y->mark - 1].turned : NULL;
    return v->turned = other ? turned_by_node(before, other) : y;
}

/* What is broadcast to rows, for rows that are turned. */
static ir_value *turned_beside(ir_node *before, ir_value *x)
{
    const ir_type *type = &x->type;
    grt_dims *dims = before->graph->module->dims;
    const grt_dim one = grt_dim_const(dims, 1);
    if (type->rank < 2)
        return x;
    const grt_dim first = type->rank == 2 ? one : type->dims[0], second = type->dims[type->rank - 2];
    if (first == one && second == one)
        return x;
    return rewrite_reshaped(before, x, ROWS_RANK, (grt_dim[]){second, first, type->dims[type->rank - 1]});
}

/* The node's result with its first two dims exchanged, made of inputs like that. */
static ir_value *turned_node(row_order *o, ir_node *node)
{
    ir_value *in[MOST_INPUTS];
    for (int32_t i = 0; i < node->n_in; i++) {
        ir_value *x = ir_in(node, i);
        in[i] = is_row_input(o, node, i)               ? turned_value(o, node, x)
                : x && rewrite_has(node, OP_POINTWISE) ? turned_beside(node, x)
                                                       : x;
        if (x && !in[i])
            return NULL;
    }
    ir_node *copy = ir_node_create(node->graph, node, node->desc.domain, node->desc.op, node->desc.name,
                                   node->n_in, in, 1);
    if (copy)
        ir_attrs_copy(copy, node);
    return row_order_made(copy);
}

/* Readers outside of the region get what they read before. */
static bool row_order_give_back(row_order *o, const row_value *v)
{
    bool all = true;
    for (ir_use *use = v->value->uses, *next; use; use = next) {
        next = use->next;
        if (is_used_inside(o, use))
            continue;
        if (use->node && is_turn(use->node) && use->node->graph == v->value->graph &&
            (!use->node->out[0]->n_uses || rewrite_replace(use->node->out[0], v->turned)))
            continue;
        all = false;
    }
    if (all)
        return true;
    ir_value *back = turned_by_node(v->value->producer, v->turned);
    return back && rewrite_replace(v->value, back);
}

static void turn_regions(row_order *o, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph) {
        const int64_t mark = makes_row_of_row(o, node) ? node->out[0]->mark : 0;
        if (!mark || !o->values[row_order_root(o, mark - 1)].chosen)
            continue;
        ir_value *turned = turned_node(o, node);
        if (!turned)
            return;
        o->values[mark - 1].turned = turned;
        o->context->changed++;
    }
    const int64_t n = o->n;
    for (int64_t i = 0; i < n; i++)
        if (o->values[i].made && o->values[i].turned && !row_order_give_back(o, &o->values[i]))
            return;
}

static grt_status row_order_visit(pass_context *context, ir_graph *graph)
{
    row_order o = {.context = context, .dims = context->module->dims};
    bool ok = true;
    ir_clear_marks(graph);
    IR_FOR_EACH_NODE (node, graph)
        if (ok && makes_row_of_row(&o, node))
            ok = connect(&o, node);
    for (int64_t i = 0; i < o.n && ok; i++) {
        const int64_t gain = gain_of(&o, &o.values[i]);
        row_value *root = &o.values[row_order_root(&o, i)];
        root->gain = grt_add_saturated(root->gain, gain);
    }
    ok = ok && choose_regions(&o);
    if (ok)
        turn_regions(&o, graph);
    free(o.values);
    return ok ? GRT_OK : grt_fail_memory((size_t)o.capacity * 2 * sizeof *o.values);
}

grt_status pass_row_order(pass_context *context)
{
    return rewrite_each_graph(context, row_order_visit);
}
