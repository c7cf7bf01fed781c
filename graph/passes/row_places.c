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
#include "graph/passes/row_choice.h"

static bool is_rewritten(row_places *p, int64_t base)
{
    const row_place *root = row_place_region(p, base);
    return root->after < root->before && !root->failed;
}

static void make_copy(row_places *p, row_copy *copy)
{
    const row_place *base = &p->places[copy->base];
    const row_copy *first = &p->copies[base->first_copy - 1];
    const int32_t back = row_tables_inverse(&p->tables, first->order);
    copy->value = row_mover_move(&p->mover, copy->before, first->value,
                                 row_tables_joined(&p->tables, back, copy->order));
    row_place_region(p, copy->base)->failed |= !copy->value;
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
    row_place_region(p, copy->base)->failed |= !r->value;
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
    const int64_t own = place == base ? row_copy_find(p, base, ROWS_AS_THEY_ARE) : -1;
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
        p->context->changed += row_place_root(p, i) == i;
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
    bool ok = row_places_find(&p, graph);
    if (ok)
        row_choice_want(&p, graph);
    ok = ok && row_choice_make(&p, graph);
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
