/* See family.h. */
#include "graph/passes/family.h"

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

/* ---- groups ---- */

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

/* Forms are hashes: look at what they stand for. */
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
static bool expand(families *f, group *g)
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

/* ---- joins ---- */

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

/* Follow a run of a Concat's inputs back to where it comes from. */
static void collect(families *f, ir_node *concat, int32_t from, int32_t n)
{
    const int32_t family = f->n_joins++, first = f->n_groups;
    join *j = &f->joins[family];
    ir_value **values = GRT_ARENA_ARRAY(f->scratch, ir_value *, n);
    for (int32_t i = 0; values && i < n; i++)
        values[i] = ir_in(concat, from + i);
    *j = (join){.concat = concat, .from = from, .n = n, .next = -1, .family = family};
    j->group = values ? group_of(f, values, n, family) : -1;
    bool good = j->group >= 0;
    for (int32_t g = first; good && g < f->n_groups; g++)
        if (group_is_computed(&f->groups[g]))
            good = expand(f, &f->groups[g]);
    if (good) {
        j->next = f->groups[j->group].join;
        f->groups[j->group].join = family;
    } else {
        forget_groups(f, first);
        j->n = 0;
    }
}

static bool is_wide(const ir_node *node)
{
    return rewrite_is(node, "Concat") && node->n_in >= FORM_LEAST && node->out[0] &&
           node->out[0]->type.rank > 0 && grt_dtype_in(node->out[0]->type.dtype, GRT_SET_FLOATS);
}

static void collect_from(families *f, ir_node *concat)
{
    for (int32_t from = 0, to; from < concat->n_in; from = to) {
        const form *first = form_of(&f->forms, ir_in(concat, from));
        for (to = from + 1; to < concat->n_in; to++)
            if (form_of(&f->forms, ir_in(concat, to))->hash != first->hash)
                break;
        if ((first->kind == FORM_NODE || first->kind == FORM_PART) && to - from >= FORM_LEAST)
            collect(f, concat, from, to - from);
    }
}

/* ---- all of a graph ---- */

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

static void sort(families *f)
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
static bool begin(families *f, ir_graph *graph)
{
    int64_t uses = 0, joins = 0, order = 0;
    IR_FOR_EACH_NODE (node, graph) {
        node->mark = order++;
        uses += node->n_in + node->n_out;
        joins += is_wide(node) ? node->n_in / FORM_LEAST : 0;
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
    if (!begin(f, graph))
        return;
    /* The last first: what is joined there may have been joined before, within each branch. */
    for (ir_node *node = graph->last; node; node = node->prev)
        if (is_wide(node))
            collect_from(f, node);
    count_uses(f);
    sort(f);
}

int32_t families_end(const families *f, int32_t from)
{
    int32_t to = from;
    while (to < f->n_groups && f->sorted[to]->family == f->sorted[from]->family)
        to++;
    return to;
}
