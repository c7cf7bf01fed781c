/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/row_choice.h"

#include "graph/passes/rewrite.h"
#include "graph/passes/row_wise.h"
#include "src/base/checked.h"
#include "src/base/grow.h"

enum { MOST_CHOICES = 16 };

/* ---- what order is wanted ---- */

static void want_order(row_place *base, int32_t order, int64_t bytes)
{
    const int64_t own = row_wise_bytes(base->value);
    if (base->wanted == ROW_ORDER_NONE)
        base->wanted = order;
    else if (base->wanted != order)
        base->wanted = ROW_ORDER_MANY;
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

void row_choice_want(row_places *p, ir_graph *graph)
{
    for (const ir_node *node = graph->last; node; node = node->prev) {
        const row_place *made = row_place_made_by(p, node);
        if ((made && made->kind == PLACE_MOVED) || row_place_unread(node))
            continue;
        for (int32_t i = 0; i < node->n_in; i++)
            if (row_place_of(p, ir_in(node, i)))
                note_reader(p, node, i, made);
    }
}

/* ---- what order nodes get ---- */

/* What comes into a region has its own order. */
static bool begin_input(row_places *p, int64_t base)
{
    const row_place *place = &p->places[base];
    return place->kind != PLACE_INPUT || place->first_copy ||
           row_copy_add(p, base, ROWS_AS_THEY_ARE, NULL, place->value) >= 0;
}

/* Input i of the node is to have the order of its base. False: out of memory. */
static bool read_in_order(row_places *p, ir_node *node, int32_t i, int32_t order)
{
    const int64_t base = row_place_of(p, ir_in(node, i))->base;
    int64_t copy = row_copy_find(p, &p->places[base], order);
    if (copy < 0)
        copy = row_copy_add(p, base, order, node, NULL);
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
        if (row_copy_find(p, base, needed) >= 0)
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
    const row_place *made = row_place_made_by(p, node);
    bool ok = true;
    if ((made && made->kind == PLACE_MOVED) || row_place_unread(node))
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
    return ok && (!made || row_copy_add(p, made->base, order, NULL, node->out[0]) >= 0);
}

bool row_choice_make(row_places *p, ir_graph *graph)
{
    bool ok = true;
    IR_FOR_EACH_NODE (node, graph)
        ok = ok && choose_node(p, node);
    return ok;
}
