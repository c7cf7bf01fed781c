/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/branch_family.h"
#include "graph/passes/cse.h"

#include "graph/passes/batch.h"

#include <stdlib.h>
#include <string.h>

enum {
    LARGEST_REPEATED = 4 << 10, /* bytes of a constant that may be kept twice, as others read it */
    LARGEST_STACKED = 4 << 20   /* of any: reading more takes longer than a launch, on every device */
};

/* The join that speaks for all of a family. */
static int32_t family_of(const families *f, int32_t family)
{
    while (f->joins[family].family != family) {
        f->joins[family].family = f->joins[f->joins[family].family].family;
        family = f->joins[family].family;
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
static bool may_stack(const families *f, ir_value *const *values, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const ir_value *value = values[i];
        if (form_of(&f->forms, value)->kind != FORM_CONSTANT ||
            !grt_tensor_same_type(value->type.data, values[0]->type.data) ||
            grt_tensor_bytes(value->type.data) > (value->n_uses == 1 ? LARGEST_STACKED : LARGEST_REPEATED))
            return false;
    }
    return true;
}

static bool have_one_form(const families *f, ir_value *const *values, int32_t n)
{
    const form *first = form_of(&f->forms, values[0]);
    for (int32_t i = 1; i < n; i++) {
        const form *other = form_of(&f->forms, values[i]);
        if (other->kind != first->kind || other->hash != first->hash)
            return false;
    }
    return first->kind != FORM_OPAQUE;
}

static int32_t add_group(families *f, form_kind kind, ir_value **values, int32_t n, int32_t family)
{
    const bool made = kind == FORM_NODE || kind == FORM_PART || kind == FORM_RANGE;
    f->groups[f->n_groups] = (group){.kind = kind,
                                     .members = values,
                                     .n = n,
                                     .join = -1,
                                     .family = family,
                                     .order = made ? values[0]->producer->mark : -1};
    return f->n_groups++;
}

/* A new group. -1: a member is in another one already, or twice in this. */
static int32_t add_members(families *f, ir_value **values, int32_t n, int32_t family)
{
    form *first = form_of(&f->forms, values[0]);
    const int32_t made = add_group(f, first->kind, values, n, family);
    for (int32_t i = 0; i < n; i++) {
        form *of_member = form_of(&f->forms, values[i]);
        if (of_member->group >= 0)
            return -1;
        of_member->group = made;
    }
    return made;
}

/* The group of n values that are used together, which may be there already. -1: they have nothing in common.
 */
static int32_t group_of(families *f, ir_value **values, int32_t n, int32_t family)
{
    if (all_same(values, n))
        return add_group(f, FORM_OPAQUE, values, n, family);
    form *first = form_of(&f->forms, values[0]);
    if (first->kind == FORM_CONSTANT)
        return may_stack(f, values, n) ? add_group(f, FORM_CONSTANT, values, n, family) : -1;
    const group *known = first->group >= 0 ? &f->groups[first->group] : NULL;
    if (known && known->n == n && !memcmp(known->members, values, (size_t)n * sizeof(ir_value *))) {
        f->joins[family_of(f, family)].family = family_of(f, known->family);
        return first->group;
    }
    if (!have_one_form(f, values, n))
        return -1;
    if (first->kind != FORM_RANGE)
        return add_members(f, values, n, family);
    return first->group = add_group(f, FORM_RANGE, values, n, family); /* these may be in many groups */
}

/* Forms are hashes: compare the nodes themselves. */
static bool are_alike(const families *f, const ir_value *a, const ir_value *b)
{
    const form *x = form_of(&f->forms, a), *y = form_of(&f->forms, b);
    const ir_node *m = a->producer, *n = b->producer;
    if (x->kind == FORM_PART)
        return x->axis == y->axis && x->start == y->start && x->width == y->width;
    return m->n_in == n->n_in && grt_op_is(&m->desc, n->desc.domain, n->desc.op) && cse_same_attrs(m, n);
}

/* The group of input k of a group of nodes. */
static int32_t group_of_input(families *f, const group *g, int32_t k)
{
    ir_value **values = GRT_ARENA_ARRAY(f->scratch, ir_value *, g->n);
    for (int32_t i = 0; values && i < g->n; i++)
        if (!(values[i] = ir_in(g->members[i]->producer, k)))
            return -1;
    return values ? group_of(f, values, g->n, g->family) : -1;
}

/* Groups for what a group is made from. */
static bool branch_family_expand(families *f, group *g)
{
    const ir_node *first = g->members[0]->producer;
    const bool part = g->kind == FORM_PART;
    for (int32_t i = 1; i < g->n; i++)
        if (!are_alike(f, g->members[0], g->members[i]))
            return false;
    g->n_in = part ? 1 : first->n_in;
    g->in = GRT_ARENA_ARRAY(f->scratch, int32_t, g->n_in + 1);
    for (int32_t k = 0; g->in && k < g->n_in; k++) {
        const batch_input may_be = part ? BATCH_ANY : batch_input_of(first, k);
        g->in[k] = -1;
        if (!ir_in(first, k) || may_be == BATCH_IGNORED)
            continue;
        g->in[k] = group_of_input(f, g, k);
        if (g->in[k] < 0 || (may_be == BATCH_SAME && f->groups[g->in[k]].kind != FORM_OPAQUE))
            return false;
    }
    return g->in != NULL;
}

static void forget_groups(families *f, int32_t from)
{
    for (int32_t g = from; g < f->n_groups; g++)
        for (int32_t i = 0; i < f->groups[g].n; i++) {
            form *of_member = form_of(&f->forms, f->groups[g].members[i]);
            if (of_member->group >= from)
                of_member->group = -1;
        }
    f->n_groups = from;
}

/* Follow what is joined back to where it comes from. */
static void branch_family_collect(families *f, const join *found, ir_value **values)
{
    const int32_t family = f->n_joins++, first = f->n_groups;
    join *j = &f->joins[family];
    *j = *found;
    j->next = -1;
    j->family = family;
    j->group = group_of(f, values, j->n, family);
    bool good = j->group >= 0;
    for (int32_t g = first; good && g < f->n_groups; g++)
        if (group_is_computed(&f->groups[g]))
            good = branch_family_expand(f, &f->groups[g]);
    if (good) {
        j->next = f->groups[j->group].join;
        f->groups[j->group].join = family;
    } else {
        forget_groups(f, first);
        j->n = 0;
    }
}

static bool branch_family_is_float(const ir_node *node)
{
    return node->out[0] && node->out[0]->type.rank >= 0 &&
           grt_dtype_in(node->out[0]->type.dtype, GRT_SET_FLOATS);
}

static bool is_computed(const families *f, const ir_value *value)
{
    const form_kind kind = form_of(&f->forms, value)->kind;
    return kind == FORM_NODE || kind == FORM_PART;
}

/* Runs of inputs of one form. */
static void collect_from_concat(families *f, ir_node *concat)
{
    for (int32_t from = 0, to; from < concat->n_in; from = to) {
        const form *first = form_of(&f->forms, ir_in(concat, from));
        for (to = from + 1; to < concat->n_in; to++)
            if (form_of(&f->forms, ir_in(concat, to))->hash != first->hash)
                break;
        const join run = {.node = concat, .from = from, .n = to - from};
        ir_value **values = run.n >= FORM_LEAST && is_computed(f, ir_in(concat, from))
                                ? GRT_ARENA_ARRAY(f->scratch, ir_value *, run.n)
                                : NULL;
        for (int32_t i = 0; values && i < run.n; i++)
            values[i] = ir_in(concat, from + i);
        if (values)
            branch_family_collect(f, &run, values);
    }
}

/* True if the Add is one of a chain, but not its last. */
static bool is_added_on(const ir_node *add)
{
    const ir_node *user = rewrite_only_user(add->out[0]);
    return rewrite_is(user, "Add") && rewrite_same_shape(&user->out[0]->type, &add->out[0]->type);
}

/* The input of an Add that goes on with its chain; -1: both are terms. So they are if they have one form,
 * where forms are known: terms may be sums themselves. */
static int32_t branch_family_goes_on(const families *f, const ir_node *add)
{
    const ir_value *a = ir_in(add, 0), *b = ir_in(add, 1);
    if (f->forms.table && form_of(&f->forms, a)->hash == form_of(&f->forms, b)->hash)
        return -1;
    for (int32_t i = 0; i < 2; i++) {
        const ir_value *in = ir_in(add, i);
        if (rewrite_is(in->producer, "Add") && rewrite_only_user(in) == add && is_added_on(in->producer))
            return i;
    }
    return -1;
}

/* What the Add at the end of a chain adds up, last first; counted only, if there is no room. */
static int32_t terms_of(const families *f, const ir_node *last, ir_value **out_terms)
{
    int32_t n = 0;
    for (const ir_node *add = last, *before; add; add = before) {
        const int32_t on = branch_family_goes_on(f, add);
        before = on >= 0 ? ir_in(add, on)->producer : NULL;
        for (int32_t i = 1; i >= 0; i--) {
            if (i == on)
                continue;
            if (out_terms)
                out_terms[n] = ir_in(add, i);
            n++;
        }
    }
    return n;
}

static bool are_of_form(const families *f, ir_value *const *values, int32_t n, uint64_t hash)
{
    for (int32_t i = 0; i < n; i++)
        if (form_of(&f->forms, values[i])->hash != hash)
            return false;
    return is_computed(f, values[0]);
}

/* A chain may begin with a term of another form, and go on with others: a bias, say. */
static void collect_chain(families *f, ir_node *add)
{
    int32_t n = terms_of(f, add, NULL);
    ir_value **terms = GRT_ARENA_ARRAY(f->scratch, ir_value *, n), *start = NULL;
    if (!terms)
        return;
    terms_of(f, add, terms);
    const uint64_t hash = form_of(&f->forms, terms[n - 2])->hash;
    for (; n > 2 && form_of(&f->forms, terms[0])->hash != hash; terms++, n--)
        add = ir_in(add, branch_family_goes_on(f, add))->producer;
    if (form_of(&f->forms, terms[n - 1])->hash != hash)
        start = terms[--n];
    if (n < FORM_LEAST || !are_of_form(f, terms, n, hash))
        return;
    for (int32_t i = 0; i < n / 2; i++) { /* the first one first */
        ir_value *other = terms[i];
        terms[i] = terms[n - 1 - i];
        terms[n - 1 - i] = other;
    }
    branch_family_collect(f, &(join){.node = add, .reduce = "ReduceSum", .start = start, .n = n}, terms);
}

static void collect_inputs(families *f, ir_node *node, const char *reduce)
{
    const join all = {.node = node, .reduce = reduce, .n = node->n_in};
    ir_value **values = GRT_ARENA_ARRAY(f->scratch, ir_value *, all.n);
    for (int32_t i = 0; values && i < all.n; i++)
        values[i] = ir_in(node, i);
    if (values && are_of_form(f, values, all.n, form_of(&f->forms, values[0])->hash))
        branch_family_collect(f, &all, values);
}

/* Nodes that may join what branches give. */
static const struct {
    const char *op, *reduce;
} joining[] = {{"Concat", NULL},       {"Add", "ReduceSum"}, {"Sum", "ReduceSum"},
               {"Mean", "ReduceMean"}, {"Max", "ReduceMax"}, {"Min", "ReduceMin"}};

/* The row of a node that joins enough. */
static int joining_of(const families *f, const ir_node *node)
{
    for (int i = 0; i < (int)(sizeof joining / sizeof *joining); i++)
        if (rewrite_is(node, joining[i].op)) {
            const bool chain = rewrite_is(node, "Add") && !is_added_on(node);
            const int32_t n = chain ? terms_of(f, node, NULL) : node->n_in;
            return branch_family_is_float(node) && n >= FORM_LEAST ? i : -1;
        }
    return -1;
}

static void collect_from(families *f, ir_node *node)
{
    const int i = joining_of(f, node);
    if (i < 0)
        return;
    if (!joining[i].reduce)
        collect_from_concat(f, node);
    else if (rewrite_is(node, "Add"))
        collect_chain(f, node);
    else
        collect_inputs(f, node, joining[i].reduce);
}

static void count_uses(families *f)
{
    for (int32_t j = 0; j < f->n_joins; j++)
        if (f->joins[j].n)
            f->groups[f->joins[j].group].uses++;
    for (int32_t g = 0; g < f->n_groups; g++)
        for (int32_t k = 0; k < f->groups[g].n_in; k++)
            if (f->groups[g].in[k] >= 0)
                f->groups[f->groups[g].in[k]].uses++;
}

static int by_family(const void *a, const void *b)
{
    const group *x = *(group *const *)a, *y = *(group *const *)b;
    if (x->family != y->family)
        return x->family < y->family ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void branch_family_sort(families *f)
{
    f->sorted = GRT_ARENA_ARRAY(f->scratch, group *, f->n_groups + 1);
    for (int32_t g = 0; f->sorted && g < f->n_groups; g++) {
        f->groups[g].family = family_of(f, f->groups[g].family);
        f->sorted[g] = &f->groups[g];
    }
    if (f->sorted)
        qsort(f->sorted, (size_t)f->n_groups, sizeof *f->sorted, by_family);
    else
        f->n_groups = f->n_joins = 0;
}

/* Room for groups and joins: a bound. False: there is nothing to do. */
static bool branch_family_begin(families *f, ir_graph *graph)
{
    int64_t uses = 0, joins = 0;
    rewrite_number_nodes(graph);
    IR_FOR_EACH_NODE (node, graph) {
        uses += node->n_in + node->n_out;
        if (joining_of(f, node) >= 0)
            joins += 1 + node->n_in / FORM_LEAST;
    }
    if (!joins || uses + joins > INT32_MAX)
        return false;
    f->groups = GRT_ARENA_ARRAY(f->scratch, group, uses + joins);
    f->joins = GRT_ARENA_ARRAY(f->scratch, join, joins);
    return f->groups && f->joins && forms_study(&f->forms, graph, f->scratch);
}

void families_find(families *f, ir_graph *graph, grt_arena *scratch)
{
    *f = (families){.scratch = scratch};
    if (!branch_family_begin(f, graph))
        return;
    /* The last first: what is joined there may have been joined before, within each branch. */
    for (ir_node *node = graph->last; node; node = node->prev)
        collect_from(f, node);
    count_uses(f);
    branch_family_sort(f);
}

int32_t families_end(const families *f, int32_t from)
{
    int32_t to = from;
    while (to < f->n_groups && f->sorted[to]->family == f->sorted[from]->family)
        to++;
    return to;
}
