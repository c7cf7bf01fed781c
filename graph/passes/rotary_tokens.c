/* SPDX-License-Identifier: Apache-2.0 */
/* Rotations of some tokens only, as of an image's patches but not of the class token and the registers in
 * front of them, are exported as a cut along the tokens, RotaryEmbedding, and a Concat. All tokens are
 * rotated instead, with rows for the others that turn nothing (cosine 1, sine 0), so that attention can take
 * what comes out as it lies. Index maps say what is joined, however it was cut and wherever heads were moved.
 */
#include "graph/ir/constant.h"
#include "graph/passes/index_map.h"
#include "graph/passes/rewrite.h"
#include "graph/passes/rotary_nodes.h"

enum {
    BATCH,
    TOKENS,
    HEADS,
    SIZE,
    RANK,
    MOST_STEPS = 8, /* from a rotation back to where its tokens were cut off */
};

static const int64_t exchange[] = {0, 2, 1, 3};

typedef struct token_rotation {
    ir_node *rotary;
    int32_t at; /* the Concat's input that it makes */
    int64_t heads;
    ir_value *all; /* all tokens, in order */
    bool in_front; /* heads lie in front of them there */
    int64_t before, after;
} token_rotation;

/* The map with dims [batch, tokens, heads, size]. */
static bool to_rows(grt_dims *dims, index_map *map, const ir_type *type, bool in_front, int64_t heads)
{
    if (type->rank == RANK)
        return !in_front || index_map_transpose(map, exchange);
    grt_dim size;
    const grt_dim n = grt_dim_const(dims, heads);
    return type->rank == RANK - 1 && index_map_divide(dims, type->dims[2], n, &size) &&
           index_map_reshape(dims, map, RANK, (grt_dim[]){type->dims[0], type->dims[1], n, size});
}

static bool rows_of(ir_value *value, bool in_front, int64_t heads, index_map *map)
{
    return index_map_of(value, map, NULL) &&
           to_rows(value->graph->module->dims, map, &value->type, in_front, heads);
}

static bool same_axis(grt_dims *dims, const index_map *a, const index_map *b, int32_t axis)
{
    index_part of_a[INDEX_MAP_PARTS], of_b[INDEX_MAP_PARTS];
    const int32_t n = index_map_axis(dims, a, axis, of_a);
    bool same = n == index_map_axis(dims, b, axis, of_b);
    for (int32_t i = 0; same && i < n; i++)
        same = of_a[i].size == of_b[i].size && of_a[i].stride == of_b[i].stride;
    return same;
}

static bool same_but_tokens(grt_dims *dims, const index_map *a, const index_map *b)
{
    return a->source == b->source && same_axis(dims, a, b, BATCH) && same_axis(dims, a, b, HEADS) &&
           same_axis(dims, a, b, SIZE);
}

/* ---- what is joined ---- */

/* Heads lie in front of the tokens that the Concat joins. */
static bool joins_behind_heads(const ir_node *concat)
{
    return concat->out[0]->type.rank == RANK &&
           grt_axis(grt_attr_int(&concat->desc, "axis", 0), RANK) == HEADS;
}

static bool joins_tokens(const ir_node *node)
{
    if (!rewrite_is(node, "Concat") || node->n_in < 2)
        return false;
    const int32_t rank = node->out[0]->type.rank;
    return (rank == RANK || rank == RANK - 1) &&
           (joins_behind_heads(node) || grt_axis(grt_attr_int(&node->desc, "axis", 0), rank) == TOKENS);
}

static int64_t heads_of(const ir_node *rotary)
{
    const ir_type *x = &ir_in(rotary, 0)->type;
    int64_t heads = grt_attr_int(&rotary->desc, "num_heads", 0);
    if (x->rank == RANK && !grt_dim_is_const(rotary->graph->module->dims, x->dims[1], &heads))
        return 0;
    return heads;
}

/* True if the value is all that the node rotates, but for moves of heads. */
static bool is_all_of(ir_value *value, bool in_front, const ir_node *rotary, int64_t heads)
{
    grt_dims *dims = value->graph->module->dims;
    const ir_type *y = &rotary->out[0]->type;
    index_map map, whole;
    if (!rows_of(value, in_front, heads, &map) || map.source != rotary->out[0] ||
        !grt_dim_equals(dims, map.offset, 0) || !index_map_of_dims(dims, y->rank, y->dims, &whole))
        return false;
    whole.source = rotary->out[0];
    return to_rows(dims, &whole, y, y->rank == RANK, heads) && same_but_tokens(dims, &map, &whole) &&
           same_axis(dims, &map, &whole, TOKENS);
}

/* The rotation that makes an input of the Concat, by angles of a row for each token. */
static bool find_rotary(ir_node *concat, token_rotation *r)
{
    for (r->at = 0; r->at < concat->n_in; r->at++) {
        ir_value *value = ir_in(concat, r->at);
        index_map map;
        if (!ir_is_inner(value) || !index_map_of(value, &map, NULL))
            continue;
        r->rotary = map.source->n_uses == 1 ? rewrite_producer(map.source, "RotaryEmbedding") : NULL;
        r->heads = r->rotary && !ir_in(r->rotary, 3) ? heads_of(r->rotary) : 0;
        if (r->heads > 0)
            return is_all_of(value, joins_behind_heads(concat), r->rotary, r->heads);
    }
    return false;
}

/* What the value's tokens were cut out of: the first thing that it is not all of. */
static ir_value *cut_from(ir_value *value)
{
    for (int32_t i = 0; i < MOST_STEPS && value && value->producer; i++) {
        const ir_node *node = value->producer;
        const bool moved = rewrite_is_reshape(node) || rewrite_is(node, "Transpose");
        if (!moved)
            return rewrite_is(node, "Slice") || rewrite_is(node, "Split") ? ir_in(node, 0) : NULL;
        value = ir_in(node, 0);
    }
    return NULL;
}

/* The number of the map's tokens, which follow those that end at *place in what they are a part of; *place is
 * where they end then. 0 if that is not so. */
static int64_t tokens_at(grt_dims *dims, const index_map *map, const index_map *all, grt_dim *place)
{
    index_part part, whole;
    int64_t n;
    if (map->offset != *place || !same_but_tokens(dims, map, all) ||
        !index_map_single(dims, map, TOKENS, &part) || !index_map_single(dims, all, TOKENS, &whole) ||
        !grt_dim_is_const(dims, part.size, &n) || (n > 1 && part.stride != whole.stride))
        return 0;
    *place = grt_dim_add(dims, *place, grt_dim_mulc(dims, whole.stride, n));
    return n;
}

/* True if the Concat's inputs are all tokens of `all`, in order. */
static bool joins_all(ir_node *concat, token_rotation *r)
{
    grt_dims *dims = concat->graph->module->dims;
    const ir_type *x = &ir_in(r->rotary, 0)->type;
    index_map all, map;
    if (!rows_of(r->all, r->in_front, r->heads, &all))
        return false;
    grt_dim place = all.offset;
    int64_t joined = 0;
    r->before = r->after = 0;
    for (int32_t i = 0; i < concat->n_in; i++) {
        const bool turned = i == r->at;
        if (!rows_of(turned ? ir_in(r->rotary, 0) : ir_in(concat, i),
                     turned ? x->rank == RANK : joins_behind_heads(concat), r->heads, &map))
            return false;
        const int64_t n = tokens_at(dims, &map, &all, &place);
        if (!n)
            return false;
        joined += n;
        *(i < r->at ? &r->before : &r->after) += turned ? 0 : n;
    }
    index_part whole;
    return index_map_single(dims, &all, TOKENS, &whole) && grt_dim_equals(dims, whole.size, joined);
}

static bool find_all_tokens(ir_node *concat, token_rotation *r)
{
    r->all = cut_from(ir_in(r->rotary, 0));
    for (int32_t front = 0; r->all && front < 2; front++) {
        r->in_front = front != 0;
        if ((r->all->type.rank == RANK || (r->all->type.rank == RANK - 1 && !front)) && joins_all(concat, r))
            return true;
    }
    return false;
}

/* ---- replacing ---- */

/* The row of angles for each token that was repeated for the batch, as it was before: what is rotated now may
 * have the batch read of itself. */
static ir_value *for_one(ir_value *table)
{
    const ir_node *expand = rewrite_producer(table, "Expand");
    ir_value *row = expand ? ir_in(expand, 0) : NULL;
    return row && row->type.rank == 3 && grt_dim_equals(row->graph->module->dims, row->type.dims[0], 1) &&
                   row->type.dims[1] == table->type.dims[1] && row->type.dims[2] == table->type.dims[2]
               ? row
               : table;
}

/* The table with rows of `fill` for the tokens that are not turned. */
static ir_value *padded_table(ir_node *before, const token_rotation *r, ir_value *table, float fill)
{
    const int64_t pads[] = {0, r->before, 0, 0, r->after, 0};
    table = table->type.rank == 3 ? for_one(table) : table;
    grt_tensor *number = ir_constant_create(before->graph->module, GRT_DTYPE_FLOAT, 0, NULL);
    if (!number || table->type.rank != 3)
        return NULL;
    *(float *)number->data = fill;
    ir_value *value = ir_constant(before->graph, NULL, number);
    ir_value *around = ir_constant_ints(before->graph, before->desc.name, pads, 6);
    ir_node *cast = value ? rotary_add_node(before, "Cast", 1, &value) : NULL;
    if (!cast || !around)
        return NULL;
    ir_attr_set_int(cast, "to", table->type.dtype);
    ir_node *pad = op_infer_node(cast) == GRT_OK
                       ? rotary_add_node(before, "Pad", 3, (ir_value *[]){table, around, cast->out[0]})
                       : NULL;
    return pad && op_infer_node(pad) == GRT_OK ? pad->out[0] : NULL;
}

/* All tokens, rotated: as they lie where heads are in front, else with heads side by side. */
static ir_value *rotated_all(pass_context *context, ir_node *before, const token_rotation *r)
{
    ir_value *cos = padded_table(before, r, ir_in(r->rotary, 1), 1.0f);
    ir_value *sin = padded_table(before, r, ir_in(r->rotary, 2), 0.0f);
    const ir_type *type = &r->all->type;
    int64_t size;
    if (!cos || !sin)
        return NULL;
    ir_value *x = r->all;
    if (type->rank == RANK && !r->in_front) {
        if (!grt_dim_is_const(context->module->dims, type->dims[SIZE], &size))
            return NULL;
        ir_node *flat = rotary_reshape(before, x, (int64_t[]){0, 0, r->heads * size}, 3);
        x = flat ? flat->out[0] : NULL;
    }
    ir_node *node = x ? rotary_add_node(before, "RotaryEmbedding", 3, (ir_value *[]){x, cos, sin}) : NULL;
    if (!node)
        return NULL;
    ir_attrs_copy(node, r->rotary);
    if (x->type.rank == RANK - 1)
        ir_attr_set_int(node, "num_heads", r->heads);
    return rotary_widen(node) && op_infer_node(node) == GRT_OK && rewrite_supported(context, node, NULL)
               ? node->out[0]
               : NULL;
}

/* y, with dims in the order of the Concat's. */
static ir_value *as_joined(ir_node *concat, const token_rotation *r, ir_value *y)
{
    const bool behind = joins_behind_heads(concat);
    const int32_t rank = concat->out[0]->type.rank;
    const grt_dim last = y->type.dims[y->type.rank - 1];
    int64_t n;
    if (!grt_dim_is_const(concat->graph->module->dims, last, &n) || (y->type.rank == RANK && behind))
        return behind ? y : NULL;
    if (y->type.rank == RANK && !(y = rotary_exchanged(concat, y)))
        return NULL;
    if (y->type.rank != rank) {
        ir_node *view = rank == RANK
                            ? rotary_reshape(concat, y, (int64_t[]){0, 0, r->heads, n / r->heads}, RANK)
                            : rotary_reshape(concat, y, (int64_t[]){0, 0, n * r->heads}, RANK - 1);
        y = view ? view->out[0] : NULL;
    }
    return y && behind ? rotary_exchanged(concat, y) : y;
}

static void rotary_tokens_join(pass_context *context, ir_node *concat)
{
    token_rotation r = {0};
    if (!joins_tokens(concat) || !find_rotary(concat, &r) || !find_all_tokens(concat, &r))
        return;
    ir_node *const previous = concat->prev;
    ir_value *y = rotated_all(context, concat, &r);
    y = y ? as_joined(concat, &r, y) : NULL;
    if (y && rewrite_same_shape(&y->type, &concat->out[0]->type) && rewrite_take_over_node(concat, y)) {
        context->changed++;
        return;
    }
    while (concat->prev != previous)
        ir_node_remove(concat->prev);
}

grt_status pass_rotary_tokens(pass_context *context)
{
    return rewrite_each_node(context, rotary_tokens_join);
}
