/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/row_place.h"

#include "graph/passes/rewrite.h"
#include "graph/passes/row_wise.h"
#include "src/base/checked.h"
#include "src/base/grow.h"

int64_t row_place_root(row_places *p, int64_t i)
{
    while (p->places[i].parent != i)
        i = p->places[i].parent = p->places[p->places[i].parent].parent;
    return i;
}

row_place *row_place_region(row_places *p, int64_t base)
{
    return &p->places[row_place_root(p, base)];
}

row_place *row_place_of(const row_places *p, const ir_value *value)
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
    p->places[p->n] = (row_place){.value = value, .base = p->n, .parent = p->n, .wanted = ROW_ORDER_NONE};
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

row_place *row_place_made_by(const row_places *p, const ir_node *node)
{
    row_place *place = node->n_out == 1 ? row_place_of(p, node->out[0]) : NULL;
    return place && place->kind != PLACE_INPUT ? place : NULL;
}

bool row_place_unread(const ir_node *node)
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
            row_place_region(p, in->base)->parent = row_place_root(p, node->out[0]->mark - 1);
        else if (row_wise_reads(node, i))
            return false;
    }
    return true;
}

bool row_places_find(row_places *p, ir_graph *graph)
{
    bool ok = true;
    IR_FOR_EACH_NODE (node, graph) {
        if (node->n_out != 1 || !node->out[0] || !is_inside(node->out[0]))
            continue;
        ok = ok && (row_wise_makes(node) ? study_row_wise(p, node) : study_move(p, node));
    }
    for (int64_t i = 0; i < p->n && ok; i++)
        if (p->places[i].moves) {
            row_place *root = row_place_region(p, p->places[i].base);
            root->before = grt_add_saturated(root->before, row_wise_bytes(p->places[i].value));
        }
    return ok;
}

/* ---- copies ---- */

int64_t row_copy_find(const row_places *p, const row_place *base, int32_t order)
{
    for (int64_t i = base->first_copy; i; i = p->copies[i - 1].next)
        if (p->copies[i - 1].order == order)
            return i - 1;
    return -1;
}

int64_t row_copy_add(row_places *p, int64_t base, int32_t order, ir_node *before, ir_value *value)
{
    row_place *place = &p->places[base], *root = row_place_region(p, base);
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
