/* SPDX-License-Identifier: Apache-2.0 */
/* Rows stay where attention over windows put them, until other windows need them elsewhere:
 *
 *   x -> LayerNormalization -> Roll, Transpose -> MatMul, Attention, MatMul -> Transpose, Roll -> Add x ->
 * ...
 *
 * What works row by row computes the same in any order of the rows, so moves of rows pass it: in front of the
 * norm they move x, which is added to the attention's result where that lies; what follows goes on with these
 * rows, and the next block's moves are one with the moves back. A permutation is a table (row_tables.h), by
 * which a value is known as a permutation of another one, its base: what a node makes, or what comes into a
 * region of nodes that work row by row. The sweep from the last node to the first notes in which order a base
 * is read, the one from the first to the last gives each node the order for which fewest elements are moved.
 * A region whose choice moves less than the model does is rewritten; the others stay as they are. */
#include "graph/passes/rewrite.h"
#include "graph/passes/row_mover.h"
#include "graph/passes/row_wise.h"
#include "src/base/checked.h"
#include "src/base/grow.h"

enum { NO_ORDER = ROWS_UNKNOWN, MANY_ORDERS = -2, MOST_CHOICES = 16 };

typedef enum place_kind {
    PLACE_INPUT, /* what others make, for the region to read */
    PLACE_MOVED, /* by a view or a move of rows */
    PLACE_MADE,  /* row by row */
} place_kind;

/* A value with rows; value->mark - 1 is its number. */
typedef struct row_place {
    ir_value *value;
    place_kind kind;
    int64_t base;      /* the number of its base; its own if it is one */
    int32_t order;     /* in which it has the base's rows */
    bool moves;        /* MOVED: not a view */
    int64_t read_copy; /* one more than the number of the copy that the last reader of the value gets */
    ir_value *read;    /* that, under the value's dims */
    /* Of bases. */
    int64_t parent;           /* union-find; a root stands for a region */
    int64_t first_copy, last; /* of its copies, one more than the number; 0: none */
    int32_t readers;
    int32_t wanted;       /* the order that others than row-wise nodes want, also behind some of these */
    int64_t wanted_bytes; /* of a row, that are moved if it does not have it */
    /* Of roots: bytes of a row that are moved. */
    int64_t before, after;
    bool failed;
} row_place;

/* A base with its rows in some order. The first one is what its node makes. */
typedef struct row_copy {
    int64_t base, next;
    int32_t order;
    ir_node *before; /* its first reader */
    ir_value *value; /* NULL: not made yet */
} row_copy;

/* An input that is to be a copy, under the dims that it has. */
typedef struct row_reading {
    ir_node *node;
    int32_t input;
    int64_t copy;
    ir_value *value;
} row_reading;

typedef struct row_places {
    pass_context *context;
    grt_arena *arena;
    row_tables tables;
    row_mover mover;
    row_place *places;
    row_copy *copies;
    row_reading *readings;
    int64_t n, capacity, n_copies, copies_capacity, n_readings, readings_capacity;
} row_places;

/* ---- places ---- */

static int64_t row_places_root(row_places *p, int64_t i)
{
    while (p->places[i].parent != i)
        i = p->places[i].parent = p->places[p->places[i].parent].parent;
    return i;
}

static row_place *region_of(row_places *p, int64_t base)
{
    return &p->places[row_places_root(p, base)];
}

static row_place *row_place_of(const row_places *p, const ir_value *value)
{
    return value && value->mark ? &p->places[value->mark - 1] : NULL;
}

/* The value's place, a new one of kind INPUT if it has none. NULL when out of memory. */
static row_place *place_made(row_places *p, ir_value *value)
{
    if (value->mark)
        return row_place_of(p, value);
    if (!GRT_ARENA_GROW(p->arena, p->places, p->n, p->capacity))
        return NULL;
    p->places[p->n] = (row_place){.value = value, .base = p->n, .parent = p->n, .wanted = NO_ORDER};
    value->mark = ++p->n;
    return &p->places[p->n - 1];
}

/* True if the value is read by nodes of its graph only, so that its rows may be in another order. */
static bool is_inside(const ir_value *value)
{
    for (const ir_use *use = value->uses; use; use = use->next)
        if (!use->node || use->node->graph != value->graph)
            return false;
    return value->n_uses > 0;
}

/* The place that a node of the region makes; NULL: it is none. */
static row_place *made_by(const row_places *p, const ir_node *node)
{
    row_place *place = node->n_out == 1 ? row_place_of(p, node->out[0]) : NULL;
    return place && place->kind != PLACE_INPUT ? place : NULL;
}

static bool reads_dims_only(const ir_node *node)
{
    return rewrite_has(node, OP_READS_DIMS);
}

/* ---- what moves rows, and what works row by row ---- */

static bool study_move(row_places *p, ir_node *node)
{
    const int32_t table = row_tables_of_node(&p->tables, node);
    ir_value *x = ir_in(node, 0), *y = node->out[0];
    if (table == ROWS_UNKNOWN || x->graph != node->graph || !row_wise_has_rows(x) || !row_wise_has_rows(y))
        return true;
    const row_place *from = place_made(p, x);
    if (!from)
        return false;
    const int32_t order = row_tables_joined(&p->tables, from->order, table);
    const int64_t base = from->base;
    row_place *to = order == ROWS_UNKNOWN ? NULL : place_made(p, y);
    if (!to)
        return order == ROWS_UNKNOWN;
    to->kind = PLACE_MOVED;
    to->base = base;
    to->order = order;
    to->moves = table != ROWS_AS_THEY_ARE;
    return true;
}

static bool study_row_wise(row_places *p, ir_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++)
        if (row_wise_reads(node, i) && ir_in(node, i)->graph != node->graph)
            return true;
    row_place *out = place_made(p, node->out[0]);
    if (!out)
        return false;
    out->kind = PLACE_MADE;
    for (int32_t i = 0; i < node->n_in; i++) {
        const row_place *in = row_wise_reads(node, i) ? place_made(p, ir_in(node, i)) : NULL;
        if (in)
            region_of(p, in->base)->parent = row_places_root(p, node->out[0]->mark - 1);
        else if (row_wise_reads(node, i))
            return false;
    }
    return true;
}

static bool study_places(row_places *p, ir_graph *graph)
{
    bool ok = true;
    IR_FOR_EACH_NODE (node, graph) {
        if (node->n_out != 1 || !node->out[0] || !is_inside(node->out[0]))
            continue;
        ok = ok && (row_wise_makes(node) ? study_row_wise(p, node) : study_move(p, node));
    }
    for (int64_t i = 0; i < p->n && ok; i++)
        if (p->places[i].moves) {
            row_place *root = region_of(p, p->places[i].base);
            root->before = grt_add_saturated(root->before, row_wise_bytes(p->places[i].value));
        }
    return ok;
}

/* ---- what order is wanted ---- */

static void want_order(row_place *base, int32_t order, int64_t bytes)
{
    const int64_t own = row_wise_bytes(base->value);
    if (base->wanted == NO_ORDER)
        base->wanted = order;
    else if (base->wanted != order)
        base->wanted = MANY_ORDERS;
    base->wanted_bytes = grt_add_saturated(base->wanted_bytes, bytes);
    base->wanted_bytes = base->wanted_bytes < own ? base->wanted_bytes : own;
}

/* The only input whose rows the node reads; -1 if there are several. */
static int32_t only_row_input(const ir_node *node)
{
    int32_t only = -1;
    for (int32_t i = 0; i < node->n_in; i++)
        if (row_wise_reads(node, i)) {
            if (only >= 0)
                return -1;
            only = i;
        }
    return only;
}

static void note_reader(row_places *p, const ir_node *node, int32_t i, const row_place *made)
{
    const row_place *x = row_place_of(p, ir_in(node, i));
    row_place *base = &p->places[x->base];
    base->readers++;
    if (!made || !row_wise_reads(node, i)) {
        want_order(base, x->order, INT64_MAX);
    } else if (made->wanted >= 0 && only_row_input(node) == i) {
        const int32_t order = row_tables_joined(&p->tables, x->order, made->wanted);
        if (order != ROWS_UNKNOWN)
            want_order(base, order, made->wanted_bytes);
    }
}

static void note_readers(row_places *p, ir_graph *graph)
{
    for (const ir_node *node = graph->last; node; node = node->prev) {
        const row_place *made = made_by(p, node);
        if ((made && made->kind == PLACE_MOVED) || reads_dims_only(node))
            continue;
        for (int32_t i = 0; i < node->n_in; i++)
            if (row_place_of(p, ir_in(node, i)))
                note_reader(p, node, i, made);
    }
}

/* ---- what order nodes get ---- */

/* The number of a base's copy with that order; -1: there is none. */
static int64_t find_copy(const row_places *p, const row_place *base, int32_t order)
{
    for (int64_t i = base->first_copy; i; i = p->copies[i - 1].next)
        if (p->copies[i - 1].order == order)
            return i - 1;
    return -1;
}

/* One more copy of the base, which `before` reads first. -1: out of memory. */
static int64_t add_row_copy(row_places *p, int64_t base, int32_t order, ir_node *before, ir_value *value)
{
    row_place *place = &p->places[base], *root = region_of(p, base);
    if (!GRT_ARENA_GROW(p->arena, p->copies, p->n_copies, p->copies_capacity))
        return -1;
    p->copies[p->n_copies++] = (row_copy){.base = base, .order = order, .before = before, .value = value};
    if (place->last)
        p->copies[place->last - 1].next = p->n_copies;
    else
        place->first_copy = p->n_copies;
    place->last = p->n_copies;
    if (!value)
        root->after = grt_add_saturated(root->after, row_wise_bytes(place->value));
    return p->n_copies - 1;
}

/* What comes into a region has its own order. */
static bool begin_input(row_places *p, int64_t base)
{
    const row_place *place = &p->places[base];
    return place->kind != PLACE_INPUT || place->first_copy ||
           add_row_copy(p, base, ROWS_AS_THEY_ARE, NULL, place->value) >= 0;
}

/* Input i of the node is to have the order of its base. False: out of memory. */
static bool read_in_order(row_places *p, ir_node *node, int32_t i, int32_t order)
{
    const int64_t base = row_place_of(p, ir_in(node, i))->base;
    int64_t copy = find_copy(p, &p->places[base], order);
    if (copy < 0)
        copy = add_row_copy(p, base, order, node, NULL);
    if (copy < 0 || !GRT_ARENA_GROW(p->arena, p->readings, p->n_readings, p->readings_capacity))
        return false;
    p->readings[p->n_readings++] = (row_reading){node, i, copy, NULL};
    return true;
}

typedef struct row_choices {
    int32_t n, orders[MOST_CHOICES];
} row_choices;

static void add_choice(row_choices *c, int32_t order)
{
    for (int32_t i = 0; i < c->n; i++)
        if (c->orders[i] == order)
            return;
    if (order >= 0 && c->n < MOST_CHOICES)
        c->orders[c->n++] = order;
}

/* The orders that inputs have, and the one that is wanted. */
static void find_row_choices(row_places *p, const ir_node *node, row_choices *c)
{
    *c = (row_choices){0};
    for (int32_t i = 0; i < node->n_in; i++) {
        if (!row_wise_reads(node, i))
            continue;
        const row_place *x = row_place_of(p, ir_in(node, i));
        const int32_t back = row_tables_inverse(&p->tables, x->order);
        for (int64_t k = p->places[x->base].first_copy; k && c->n < MOST_CHOICES; k = p->copies[k - 1].next)
            add_choice(c, row_tables_joined(&p->tables, back, p->copies[k - 1].order));
    }
    if (c->n == MOST_CHOICES)
        c->n = MOST_CHOICES - 2;
    add_choice(c, row_place_of(p, node->out[0])->wanted);
    add_choice(c, ROWS_AS_THEY_ARE);
}

/* Bytes of a row that are moved if the node works in that order; INT64_MAX if that is not known. shared: an
 * input that is moved for it has other readers. */
static int64_t cost_of_order(row_places *p, const ir_node *node, int32_t order, bool *shared)
{
    const row_place *out = row_place_of(p, node->out[0]);
    int64_t cost = out->wanted >= 0 && out->wanted != order ? out->wanted_bytes : 0;
    *shared = false;
    for (int32_t i = 0; i < node->n_in; i++) {
        if (!row_wise_reads(node, i))
            continue;
        const row_place *x = row_place_of(p, ir_in(node, i)), *base = &p->places[x->base];
        const int32_t needed = row_tables_joined(&p->tables, x->order, order);
        if (needed == ROWS_UNKNOWN)
            return INT64_MAX;
        if (find_copy(p, base, needed) >= 0)
            continue;
        cost = grt_add_saturated(cost, row_wise_bytes(base->value));
        *shared |= base->readers > 1;
    }
    return cost;
}

/* Of orders that cost the same, one in which what is moved has other readers, who may want it, too; else one
 * in which nothing is moved yet. */
static int32_t choose_order(row_places *p, const ir_node *node)
{
    row_choices c;
    int64_t least = INT64_MAX;
    int32_t chosen = ROWS_AS_THEY_ARE;
    bool chosen_shared = false;
    find_row_choices(p, node, &c);
    for (int32_t i = 0; i < c.n; i++) {
        bool shared;
        const int64_t cost = cost_of_order(p, node, c.orders[i], &shared);
        if (cost < least || (cost == least && shared && !chosen_shared)) {
            least = cost;
            chosen = c.orders[i];
            chosen_shared = shared;
        }
    }
    return chosen;
}

static bool choose_node(row_places *p, ir_node *node)
{
    const row_place *made = made_by(p, node);
    bool ok = true;
    if ((made && made->kind == PLACE_MOVED) || reads_dims_only(node))
        return true;
    for (int32_t i = 0; i < node->n_in && ok; i++)
        if (row_place_of(p, ir_in(node, i)))
            ok = begin_input(p, row_place_of(p, ir_in(node, i))->base);
    const int32_t order = made && ok ? choose_order(p, node) : ROWS_AS_THEY_ARE;
    for (int32_t i = 0; i < node->n_in && ok; i++) {
        const row_place *x = row_place_of(p, ir_in(node, i));
        if (x)
            ok = read_in_order(
                p, node, i,
                made && row_wise_reads(node, i) ? row_tables_joined(&p->tables, x->order, order) : x->order);
    }
    return ok && (!made || add_row_copy(p, made->base, order, NULL, node->out[0]) >= 0);
}

/* ---- rewriting ---- */

static bool is_rewritten(row_places *p, int64_t base)
{
    const row_place *root = region_of(p, base);
    return root->after < root->before && !root->failed;
}

static void make_copy(row_places *p, row_copy *copy)
{
    const row_place *base = &p->places[copy->base];
    const row_copy *first = &p->copies[base->first_copy - 1];
    const int32_t back = row_tables_inverse(&p->tables, first->order);
    copy->value = row_mover_move(&p->mover, copy->before, first->value,
                                 row_tables_joined(&p->tables, back, copy->order));
    region_of(p, copy->base)->failed |= !copy->value;
}

/* True if the value is read as it is, behind views at most, and stays what it is. */
static bool is_read_already(const row_places *p, const row_reading *r)
{
    const row_copy *copy = &p->copies[r->copy];
    const row_place *x = row_place_of(p, ir_in(r->node, r->input));
    return copy->order == ROWS_AS_THEY_ARE && x->order == ROWS_AS_THEY_ARE &&
           p->copies[p->places[x->base].first_copy - 1].order == ROWS_AS_THEY_ARE;
}

/* Readers of one value that want one order of it share what they read. */
static void make_reading(row_places *p, row_reading *r)
{
    const row_copy *copy = &p->copies[r->copy];
    ir_value *x = ir_in(r->node, r->input);
    row_place *place = row_place_of(p, x);
    if (place->read_copy != r->copy + 1 || !place->read)
        place->read =
            is_read_already(p, r) ? x : rewrite_reshaped(r->node, copy->value, x->type.rank, x->type.dims);
    place->read_copy = r->copy + 1;
    r->value = place->read;
    region_of(p, copy->base)->failed |= !r->value;
}

/* Everything that a region needs is there before anything of it changes. */
static void make_values(row_places *p)
{
    for (int64_t i = 0; i < p->n_copies; i++)
        if (!p->copies[i].value && is_rewritten(p, p->copies[i].base))
            make_copy(p, &p->copies[i]);
    for (int64_t i = 0; i < p->n_readings; i++)
        if (is_rewritten(p, p->copies[p->readings[i].copy].base))
            make_reading(p, &p->readings[i]);
}

/* A value whose rows are in another order now is no longer the model's tensor, nor is what is made of it. */
static void move_name(const row_places *p, const row_place *place)
{
    const row_place *base = &p->places[place->base];
    if (!base->first_copy || p->copies[base->first_copy - 1].order == ROWS_AS_THEY_ARE)
        return;
    const int64_t own = place == base ? find_copy(p, base, ROWS_AS_THEY_ARE) : -1;
    if (own >= 0)
        rewrite_take_name(place->value, p->copies[own].value);
    else
        ir_value_forget_name(place->value);
}

static void rewrite_regions(row_places *p)
{
    for (int64_t i = 0; i < p->n_readings; i++) {
        const row_reading *r = &p->readings[i];
        if (is_rewritten(p, p->copies[r->copy].base) && ir_in(r->node, r->input) != r->value)
            ir_node_set_input(r->node, r->input, r->value);
    }
    for (int64_t i = 0; i < p->n; i++) {
        const row_place *place = &p->places[i];
        if (!is_rewritten(p, place->base))
            continue;
        move_name(p, place);
        p->context->changed += row_places_root(p, i) == i;
    }
}

static grt_status row_places_visit(pass_context *context, ir_graph *graph)
{
    row_places p = {.context = context, .arena = grt_arena_create()};
    if (!p.arena)
        return grt_fail_memory(0);
    row_tables_start(&p.tables, p.arena, &context->module->budget);
    p.mover = (row_mover){.context = context, .tables = &p.tables};
    ir_clear_marks(graph);
    bool ok = study_places(&p, graph);
    if (ok)
        note_readers(&p, graph);
    IR_FOR_EACH_NODE (node, graph)
        ok = ok && choose_node(&p, node);
    if (ok) {
        make_values(&p);
        rewrite_regions(&p);
    }
    ok = ok && !grt_arena_failed(p.arena);
    grt_arena_release(p.arena);
    return ok ? GRT_OK : grt_fail_memory(0);
}

grt_status pass_row_places(pass_context *context)
{
    return rewrite_each_graph(context, row_places_visit);
}
