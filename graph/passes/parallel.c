/* Branches of one form, side by side in the graph, become one branch on a batch:
 *
 *   Concat of N x (Slice, Gemm, Relu, Gemm)  ->  Reshape, Transpose, MatMul, Add, Relu, MatMul, Add,
 * Transpose, Reshape
 *
 * Networks that a program runs in a loop are exported like that. A device needs a launch for each node,
 * however little there is to do in it, and many small products keep it idle.
 *
 * First every value gets a form, a hash of how it is computed: equal for values that branches compute alike,
 * from ranges of one value, from the same value, or from constants. Then each run of inputs of one Concat
 * that have one form is followed back, level by level: N values that N nodes make, or that are ranges, or
 * constants, are a group. Groups that hang together are a family, of which all becomes a batch (batch.h) or
 * nothing. */
#include "graph/passes/batch.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    LEAST = 4,                  /* branches */
    LARGEST_REPEATED = 4 << 10, /* bytes of a constant that may be kept twice, as others read it */
    LARGEST_STACKED = 4 << 20   /* of any: reading more takes longer than a launch, on every device */
};

/* OPAQUE: told from others by identity only. */
typedef enum kind { OPAQUE, CONSTANT, RANGE, NODE, SAME } kind;

/* What is known of a value; value->mark is the place in the table. */
typedef struct fact {
    kind kind;
    int32_t group; /* whose member it is, or (RANGE) first member; -1: none */
    uint64_t form;
    ir_value *whole; /* RANGE: elements from `start` on along `axis` of it */
    int32_t axis;
    int64_t start, width; /* width 0: one element, without that dim */
} fact;

typedef struct group {
    kind kind;
    ir_value **members;
    int32_t *in;     /* NODE: the inputs' groups; -1 where omitted */
    int32_t n, uses; /* uses: of each member, by the family */
    int32_t join;    /* the first one that ends here, or -1 */
    int32_t family;
    int64_t order;    /* of what makes the first member */
    ir_value *value;  /* the batch */
    ir_value **apart; /* members that others read too, by themselves; NULL elsewhere, or at all */
} group;

/* Inputs from .. from + n of a Concat are the members of a group. */
typedef struct join {
    ir_node *concat;
    int32_t from, n, group;
    int32_t next;   /* of the same group, or -1 */
    int32_t family; /* another join of the same family, or itself: see family_of */
    ir_value *made;
} join;

typedef struct parallel {
    pass_context *context;
    ir_graph *graph;
    grt_arena *scratch;
    fact *facts;
    group *groups;
    join *joins;
    int32_t n_facts, n_groups, n_joins;
} parallel;

/* ---- forms ---- */

static uint64_t mix(uint64_t seed, const void *data, size_t size)
{
    return XXH3_64bits_withSeed(data, size, seed);
}

static uint64_t mix_type(uint64_t seed, const ir_type *type)
{
    const int32_t what[] = {type->kind, type->dtype, type->rank};
    seed = mix(seed, what, sizeof what);
    return type->rank > 0 ? mix(seed, type->dims, (size_t)type->rank * sizeof *type->dims) : seed;
}

static fact *fact_of(const parallel *p, const ir_value *value)
{
    return &p->facts[value->mark];
}

static fact *add_fact(parallel *p, ir_value *value, kind k, uint64_t form)
{
    value->mark = p->n_facts++;
    fact *f = fact_of(p, value);
    *f = (fact){.kind = k, .form = mix(form, &k, sizeof k), .group = -1};
    return f;
}

static void study_opaque(parallel *p, ir_value *value)
{
    const ir_type *type = &value->type;
    const bool constant =
        type->data && !value->producer && !value->is_input && grt_dtype_in(type->dtype, GRT_SET_PLAIN);
    if (constant)
        add_fact(p, value, CONSTANT, mix_type(0, type));
    else
        add_fact(p, value, OPAQUE, mix(0, &value, sizeof value));
}

static void add_range(parallel *p, ir_value *value, ir_value *whole, int64_t axis, int64_t start,
                      int64_t width)
{
    uint64_t form = mix(mix(0, &whole, sizeof whole), &axis, sizeof axis);
    fact *f = add_fact(p, value, RANGE, mix(form, &width, sizeof width));
    f->whole = whole;
    f->axis = (int32_t)axis;
    f->start = start;
    f->width = width;
}

/* The axis of a node that takes ranges along one of known size. */
static bool range_axis(const ir_node *node, int64_t given, int64_t *out_axis, int64_t *out_size)
{
    const ir_value *whole = ir_in(node, 0);
    if (!whole || whole->type.kind != GRT_KIND_TENSOR || whole->type.rank < 1 || !node->out[0] ||
        !grt_dtype_in(whole->type.dtype, GRT_SET_PLAIN))
        return false;
    *out_axis = grt_axis(given, whole->type.rank);
    return *out_axis >= 0 &&
           grt_dim_is_const(node->graph->module->dims, whole->type.dims[*out_axis], out_size);
}

/* The only element of a constant; `absent` if there is no such input. */
static bool one_int(const ir_node *node, int32_t i, int64_t absent, int64_t *out)
{
    const int64_t *values;
    int64_t n;
    *out = absent;
    if (!ir_in(node, i))
        return true;
    if (!ir_const_ints(ir_in(node, i), &values, &n) || n != 1)
        return false;
    *out = values[0];
    return true;
}

static bool study_slice(parallel *p, ir_node *node)
{
    int64_t given, start, step, axis, size, width;
    if (!rewrite_is(node, "Slice") || !ir_in(node, 1) || !one_int(node, 1, 0, &start) ||
        !one_int(node, 3, 0, &given) || !one_int(node, 4, 1, &step) || step != 1 ||
        !range_axis(node, given, &axis, &size) || node->out[0]->type.rank != ir_in(node, 0)->type.rank ||
        !grt_dim_is_const(node->graph->module->dims, node->out[0]->type.dims[axis], &width) || width < 1)
        return false;
    start = start < 0 ? start + size : start;
    add_range(p, node->out[0], ir_in(node, 0), axis, start < 0 ? 0 : start, width);
    return true;
}

static bool study_gather(parallel *p, ir_node *node)
{
    int64_t start, axis, size;
    if (!rewrite_is(node, "Gather") || !ir_in(node, 1) || !one_int(node, 1, 0, &start) ||
        !range_axis(node, grt_attr_int(&node->desc, "axis", 0), &axis, &size) || start < -size ||
        start >= size || ir_in(node, 1)->type.rank > 1)
        return false;
    add_range(p, node->out[0], ir_in(node, 0), axis, start < 0 ? start + size : start,
              ir_in(node, 1)->type.rank);
    return true;
}

static bool study_split(parallel *p, ir_node *node)
{
    int64_t axis, size, width, start = 0;
    const grt_dims *dims = node->graph->module->dims;
    if (!rewrite_is(node, "Split") || !range_axis(node, grt_attr_int(&node->desc, "axis", 0), &axis, &size))
        return false;
    for (int32_t i = 0; i < node->n_out; i++)
        if (!node->out[i] || node->out[i]->type.rank <= axis ||
            !grt_dim_is_const(dims, node->out[i]->type.dims[axis], &width) || width < 1)
            return false;
    for (int32_t i = 0; i < node->n_out; i++, start += width) {
        grt_dim_is_const(dims, node->out[i]->type.dims[axis], &width);
        add_range(p, node->out[i], ir_in(node, 0), axis, start, width);
    }
    return true;
}

static uint64_t form_of(const parallel *p, const ir_node *node)
{
    uint64_t h = mix((uint64_t)node->n_in, node->desc.op, strlen(node->desc.op));
    h = cse_hash_attrs(mix_type(h, &node->out[0]->type), node);
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *value = ir_in(node, i);
        const batch_input may_be = batch_input_of(node, i);
        if (value && may_be == BATCH_ANY)
            h = mix(h, &fact_of(p, value)->form, sizeof(uint64_t));
        else if (may_be != BATCH_IGNORED)
            h = mix(h, &value, sizeof value);
    }
    return h;
}

static void study(parallel *p, ir_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++)
        if (ir_in(node, i) && !ir_in(node, i)->mark)
            study_opaque(p, ir_in(node, i));
    if (study_slice(p, node) || study_gather(p, node) || study_split(p, node))
        return;
    if (batch_knows(node)) {
        add_fact(p, node->out[0], NODE, form_of(p, node));
        return;
    }
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i])
            study_opaque(p, node->out[i]);
}

/* ---- families ---- */

/* The join that speaks for all of a family. */
static int32_t family_of(const parallel *p, int32_t family)
{
    while (p->joins[family].family != family) {
        p->joins[family].family = p->joins[p->joins[family].family].family;
        family = p->joins[family].family;
    }
    return family;
}

static bool all_same(ir_value *const *values, int32_t n)
{
    for (int32_t i = 1; i < n; i++)
        if (values[i] != values[0])
            return false;
    return true;
}

/* Constants are kept once: in the batch. */
static bool may_stack(const parallel *p, ir_value *const *values, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const ir_value *value = values[i];
        if (fact_of(p, value)->kind != CONSTANT ||
            !grt_tensor_same_type(value->type.data, values[0]->type.data) ||
            grt_tensor_bytes(value->type.data) > (value->n_uses == 1 ? LARGEST_STACKED : LARGEST_REPEATED))
            return false;
    }
    return true;
}

/* Values of one form that have no group: nodes one each. */
static bool may_group(const parallel *p, ir_value *const *values, int32_t n)
{
    const fact *first = fact_of(p, values[0]);
    for (int32_t i = 0; i < n; i++) {
        fact *f = fact_of(p, values[i]);
        if (f->kind != first->kind || f->form != first->form || (f->kind == NODE && f->group >= 0))
            return false;
    }
    return first->kind == RANGE || first->kind == NODE;
}

static int32_t add_group(parallel *p, kind k, ir_value **values, int32_t n, int32_t family)
{
    const ir_node *producer = values[0]->producer;
    p->groups[p->n_groups] = (group){.kind = k,
                                     .members = values,
                                     .n = n,
                                     .join = -1,
                                     .family = family,
                                     .order = k == NODE || k == RANGE ? producer->mark : -1};
    return p->n_groups++;
}

/* The group of n values that are used together, which may be there already. -1: they have nothing in common.
 */
static int32_t group_of(parallel *p, ir_value **values, int32_t n, int32_t family)
{
    if (all_same(values, n))
        return add_group(p, SAME, values, n, family);
    fact *first = fact_of(p, values[0]);
    if (first->kind == CONSTANT)
        return may_stack(p, values, n) ? add_group(p, CONSTANT, values, n, family) : -1;
    if (first->group >= 0) {
        const group *g = &p->groups[first->group];
        if (g->n != n || memcmp(g->members, values, (size_t)n * sizeof(ir_value *)))
            return -1;
        p->joins[family_of(p, family)].family = family_of(p, g->family);
        return first->group;
    }
    if (!may_group(p, values, n))
        return -1;
    const int32_t made = add_group(p, first->kind, values, n, family);
    first->group = made;
    for (int32_t i = 1; i < n && first->kind == NODE; i++) {
        fact *f = fact_of(p, values[i]);
        if (f->group >= 0)
            return -1; /* a member twice */
        f->group = made;
    }
    return made;
}

/* Forms are hashes: look at what they stand for. */
static bool are_alike(const ir_node *a, const ir_node *b)
{
    return a->n_in == b->n_in && grt_op_is(&a->desc, b->desc.domain, b->desc.op) && cse_same_attrs(a, b);
}

/* Groups for the inputs of a group of nodes. */
static bool expand(parallel *p, int32_t index)
{
    group *g = &p->groups[index];
    const ir_node *first = g->members[0]->producer;
    for (int32_t i = 1; i < g->n; i++)
        if (!are_alike(first, g->members[i]->producer))
            return false;
    g->in = GRT_ARENA_ARRAY(p->scratch, int32_t, first->n_in + 1);
    for (int32_t k = 0; g->in && k < first->n_in; k++) {
        const batch_input may_be = batch_input_of(first, k);
        g->in[k] = -1;
        if (!ir_in(first, k) || may_be == BATCH_IGNORED)
            continue;
        ir_value **values = GRT_ARENA_ARRAY(p->scratch, ir_value *, g->n);
        for (int32_t i = 0; values && i < g->n; i++)
            if (!(values[i] = ir_in(g->members[i]->producer, k)))
                return false;
        g->in[k] = values ? group_of(p, values, g->n, g->family) : -1;
        if (g->in[k] < 0 || (may_be == BATCH_SAME && p->groups[g->in[k]].kind != SAME))
            return false;
    }
    return g->in != NULL;
}

static void forget_groups(parallel *p, int32_t from)
{
    for (int32_t g = from; g < p->n_groups; g++)
        for (int32_t i = 0; i < p->groups[g].n; i++) {
            fact *f = fact_of(p, p->groups[g].members[i]);
            if (f->group >= from)
                f->group = -1;
        }
    p->n_groups = from;
}

/* Follow a run of a Concat's inputs back to where it comes from. */
static void collect(parallel *p, ir_node *concat, int32_t from, int32_t n)
{
    const int32_t family = p->n_joins++, first = p->n_groups;
    ir_value **values = GRT_ARENA_ARRAY(p->scratch, ir_value *, n);
    for (int32_t i = 0; values && i < n; i++)
        values[i] = ir_in(concat, from + i);
    p->joins[family] = (join){.concat = concat, .from = from, .n = n, .next = -1, .family = family};
    const int32_t top = values ? group_of(p, values, n, family) : -1;
    bool good = top >= 0;
    for (int32_t g = first; good && g < p->n_groups; g++)
        if (p->groups[g].kind == NODE)
            good = expand(p, g);
    if (!good) {
        forget_groups(p, first);
        p->joins[family].n = 0;
        return;
    }
    p->joins[family].group = top;
    p->joins[family].next = p->groups[top].join;
    p->groups[top].join = family;
}

static bool is_wide(const ir_node *node)
{
    return rewrite_is(node, "Concat") && node->n_in >= LEAST && node->out[0] && node->out[0]->type.rank > 0 &&
           grt_dtype_in(node->out[0]->type.dtype, GRT_SET_FLOATS);
}

static void collect_from(parallel *p, ir_node *concat)
{
    for (int32_t from = 0, to; from < concat->n_in; from = to) {
        const fact *first = fact_of(p, ir_in(concat, from));
        for (to = from + 1; to < concat->n_in; to++)
            if (fact_of(p, ir_in(concat, to))->form != first->form)
                break;
        if (first->kind == NODE && to - from >= LEAST)
            collect(p, concat, from, to - from);
    }
}

/* ---- is it worth it? ---- */

static void count_uses(parallel *p)
{
    for (int32_t j = 0; j < p->n_joins; j++)
        if (p->joins[j].n)
            p->groups[p->joins[j].group].uses++;
    for (int32_t g = 0; g < p->n_groups; g++) {
        const group *user = &p->groups[g];
        for (int32_t k = 0; user->kind == NODE && k < user->members[0]->producer->n_in; k++)
            if (user->in[k] >= 0)
                p->groups[user->in[k]].uses++;
    }
}

static bool is_read_apart(const group *g, int32_t i)
{
    return g->members[i]->n_uses > g->uses;
}

static double elements(const ir_value *value, int32_t from, int32_t to)
{
    double n = 1;
    int64_t dim;
    for (int32_t i = from; i < to; i++)
        if (grt_dim_is_const(value->graph->module->dims, value->type.dims[i], &dim))
            n *= (double)dim;
    return n;
}

static bool is_product(const ir_node *node)
{
    return rewrite_is(node, "MatMul") || rewrite_is(node, "Gemm");
}

/* Has the product enough to do by itself? Dims that are not known count as 1. */
static bool is_large(const parallel *p, const ir_node *product)
{
    const ir_value *w = ir_in(product, 1), *y = product->out[0];
    const int64_t limit = p->context->target->lone_product;
    return limit &&
           elements(y, 0, y->type.rank - 1) * elements(w, w->type.rank - 2, w->type.rank) >= (double)limit;
}

/* Something must be computed; and what others read of it has to be taken out of the batch again. */
static bool is_worth_it(const parallel *p, group *const *groups, int32_t n)
{
    int32_t products = 0, levels = 0, apart;
    for (int32_t k = 0; k < n; k++) {
        const group *g = groups[k];
        if (g->kind != NODE)
            continue;
        const ir_node *node = g->members[0]->producer;
        if (is_product(node) && is_large(p, node))
            return false;
        products += is_product(node);
        levels += !rewrite_needs_no_kernel(node);
        apart = 0;
        for (int32_t i = 0; i < g->n; i++)
            apart += is_read_apart(g, i);
        if (apart > g->n / LEAST)
            return false;
    }
    return products >= 1 || levels >= 2;
}

/* ---- making the batch ---- */

static ir_node *earliest(const group *g)
{
    ir_node *first = g->members[0]->producer;
    for (int32_t i = 1; i < g->n; i++)
        if (g->members[i]->producer->mark < first->mark)
            first = g->members[i]->producer;
    return first;
}

static ir_value *make_ranges(const parallel *p, batch *b, const group *g)
{
    const fact *first = fact_of(p, g->members[0]);
    int64_t *starts = GRT_ARENA_ARRAY(p->scratch, int64_t, g->n);
    for (int32_t i = 0; starts && i < g->n; i++)
        starts[i] = fact_of(p, g->members[i])->start;
    return starts ? batch_ranges(b, first->whole, first->axis, first->width, starts) : NULL;
}

static ir_value *make_nodes(const parallel *p, batch *b, const group *g)
{
    const ir_node *first = g->members[0]->producer;
    batch_operand *in = GRT_ARENA_ARRAY(p->scratch, batch_operand, first->n_in);
    for (int32_t k = 0; in && k < first->n_in; k++) {
        const group *from = g->in[k] >= 0 ? &p->groups[g->in[k]] : NULL;
        if (from)
            in[k] = (batch_operand){from->value, from->kind != SAME, from->members[0]->type.rank};
    }
    return in ? batch_node(b, first, in) : NULL;
}

static bool take_apart(const parallel *p, batch *b, group *g)
{
    for (int32_t i = 0; i < g->n; i++) {
        if (!is_read_apart(g, i))
            continue;
        if (!g->apart)
            g->apart = GRT_ARENA_ARRAY(p->scratch, ir_value *, g->n);
        b->before = g->value->producer->next;
        if (!g->apart || !(g->apart[i] = batch_member(b, g->value, i)))
            return false;
    }
    return true;
}

static bool make_group(const parallel *p, batch *b, group *g)
{
    if (g->kind == SAME || g->kind == CONSTANT) {
        g->value = g->kind == SAME ? g->members[0] : batch_constants(b, p->graph, g->members);
        return g->value;
    }
    b->before = earliest(g);
    b->name = grt_arena_printf(p->context->module->arena, "%s+%d more", g->members[0]->producer->desc.name,
                               g->n - 1);
    if (!b->name)
        return false;
    g->value = g->kind == RANGE ? make_ranges(p, b, g) : make_nodes(p, b, g);
    return g->value && (g->kind == RANGE || take_apart(p, b, g));
}

static bool make_join(batch *b, const group *g, join *j)
{
    const ir_type *type = &j->concat->out[0]->type;
    b->before = j->concat;
    b->name = j->concat->desc.name;
    j->made =
        batch_join(b, g->value, (int32_t)grt_axis(grt_attr_int(&j->concat->desc, "axis", 0), type->rank));
    return j->made && (j->n < j->concat->n_in || rewrite_same_shape(&j->made->type, type));
}

static bool make_all(const parallel *p, batch *b, group *const *groups, int32_t n)
{
    for (int32_t k = 0; k < n; k++) {
        if (!make_group(p, b, groups[k]))
            return false;
        for (int32_t j = groups[k]->join; j >= 0; j = p->joins[j].next)
            if (!make_join(b, groups[k], &p->joins[j]))
                return false;
    }
    return true;
}

/* ---- putting it in place ---- */

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

static void put_in_place(const parallel *p, group *const *groups, int32_t n)
{
    for (int32_t k = 0; k < n; k++) {
        for (int32_t j = groups[k]->join; j >= 0; j = p->joins[j].next)
            for (int32_t i = 0; i < p->joins[j].n; i++) /* the Concat is closed up in the end */
                ir_node_set_input(p->joins[j].concat, p->joins[j].from + i, i ? NULL : p->joins[j].made);
        for (int32_t i = 0; groups[k]->apart && i < groups[k]->n; i++)
            if (groups[k]->apart[i])
                rewrite_replace(groups[k]->members[i], groups[k]->apart[i]);
    }
    for (int32_t k = n - 1; k >= 0; k--)
        if (groups[k]->kind == NODE || groups[k]->kind == RANGE)
            remove_members(groups[k]);
    p->context->changed++;
}

/* Inputs that went leave gaps. */
static void close_up(const parallel *p, ir_node *concat)
{
    ir_value **in = GRT_ARENA_ARRAY(p->scratch, ir_value *, concat->n_in);
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

/* ---- the pass ---- */

static int by_family(const void *a, const void *b)
{
    const group *x = *(group *const *)a, *y = *(group *const *)b;
    if (x->family != y->family)
        return x->family < y->family ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void batch_family(const parallel *p, group *const *groups, int32_t n)
{
    batch b = {.context = p->context, .scratch = p->scratch, .n = groups[0]->n};
    if (!is_worth_it(p, groups, n))
        return;
    if (make_all(p, &b, groups, n))
        put_in_place(p, groups, n);
    else
        batch_take_back(&b);
}

static void batch_families(parallel *p)
{
    group **sorted = GRT_ARENA_ARRAY(p->scratch, group *, p->n_groups + 1);
    if (!sorted)
        return;
    for (int32_t g = 0; g < p->n_groups; g++) {
        p->groups[g].family = family_of(p, p->groups[g].family);
        sorted[g] = &p->groups[g];
    }
    qsort(sorted, (size_t)p->n_groups, sizeof *sorted, by_family);
    for (int32_t from = 0, to; from < p->n_groups; from = to) {
        for (to = from + 1; to < p->n_groups && sorted[to]->family == sorted[from]->family; to++)
            ;
        batch_family(p, sorted + from, to - from);
    }
    for (int32_t j = 0; j < p->n_joins; j++)
        if (j + 1 == p->n_joins || p->joins[j + 1].concat != p->joins[j].concat)
            close_up(p, p->joins[j].concat);
}

/* Room for facts, groups and joins: a bound. False: there is nothing to do. */
static bool begin(parallel *p)
{
    int64_t uses = 1, joins = 0, order = 1;
    IR_FOR_EACH_NODE (node, p->graph) {
        node->mark = order++;
        uses += node->n_in + node->n_out;
        joins += is_wide(node) ? node->n_in / LEAST : 0;
        for (int32_t i = 0; i < node->n_in; i++)
            if (ir_in(node, i))
                ir_in(node, i)->mark = 0;
        for (int32_t i = 0; i < node->n_out; i++)
            if (node->out[i])
                node->out[i]->mark = 0;
    }
    if (!joins || uses + joins > INT32_MAX)
        return false;
    p->n_facts = 1; /* mark 0: not seen */
    p->facts = GRT_ARENA_ARRAY(p->scratch, fact, uses);
    p->groups = GRT_ARENA_ARRAY(p->scratch, group, uses + joins);
    p->joins = GRT_ARENA_ARRAY(p->scratch, join, joins);
    return p->facts && p->groups && p->joins;
}

static grt_status visit_graph(pass_context *context, ir_graph *graph)
{
    parallel p = {.context = context, .graph = graph, .scratch = grt_arena_create()};
    if (!p.scratch)
        return grt_fail_memory(0);
    if (begin(&p)) {
        IR_FOR_EACH_NODE (node, graph)
            study(&p, node);
        IR_FOR_EACH_NODE (node, graph)
            if (is_wide(node))
                collect_from(&p, node);
        count_uses(&p);
        batch_families(&p);
    }
    const bool failed = grt_arena_failed(p.scratch);
    grt_arena_release(p.scratch);
    return failed ? grt_fail_memory(0) : GRT_OK;
}

grt_status pass_parallel(pass_context *context)
{
    return rewrite_each_graph(context, visit_graph);
}
