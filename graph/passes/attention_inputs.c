/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/attention_inputs.h"

#include "graph/passes/rewrite.h"

ir_node *attention_add_node(ir_node *before, const char *op, int32_t n_in, ir_value *const *in)
{
    ir_node *node = ir_node_create(before->graph, before, "", op, before->desc.name, n_in, in, 1);
    return node && op_infer_node(node) == GRT_OK ? node : NULL;
}

ir_value *attention_transposed(ir_node *before, ir_value *value, const int64_t *perm, int32_t rank)
{
    ir_node *node = ir_node_create(before->graph, before, "", "Transpose", before->desc.name, 1, &value, 1);
    if (!node)
        return NULL;
    ir_attr_set_ints(node, "perm", perm, (size_t)rank);
    return op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

/* ---- inputs whose heads lie in rows ---- */

/* A value between `value` and the source of its map that is all of the source under these dims. Where dims
 * are symbols, a Reshape to them can not always be written. */
static ir_value *passed_on_the_way(ir_value *value, const ir_value *source, const ir_type *wanted)
{
    enum { MOST_MOVES = 24 };
    for (int32_t i = 0; i < MOST_MOVES && value != source && value->producer; i++) {
        index_map map;
        if (rewrite_same_shape(&value->type, wanted) && index_map_of(value, &map, NULL) &&
            map.source == source && index_map_is_whole(value->graph->module->dims, &map))
            return value;
        value = ir_in(value->producer, 0);
    }
    return NULL;
}

ir_value *attention_rows_of(ir_node *before, const head_rows *rows, ir_value *value)
{
    grt_dims *dims = before->graph->module->dims;
    const grt_dim width = grt_dim_const(dims, rows->width);
    const grt_dim straight[] = {rows->batch, rows->sequence, width},
                  crossed[] = {rows->sequence, rows->batch, width};
    const grt_dim *wanted = rows->sequence_first ? crossed : straight;
    ir_value *x = rewrite_reshaped(before, rows->source, 3, wanted);
    if (!x)
        x = passed_on_the_way(value, rows->source, &(ir_type){.rank = 3, .dims = wanted});
    return x && rows->sequence_first ? attention_transposed(before, x, (int64_t[]){1, 0, 2}, 3) : x;
}

/* True if the map's axis is one part with that stride, or of size 1. */
static bool has_stride(grt_dims *dims, const index_map *map, int32_t axis, grt_dim stride)
{
    index_part part;
    return index_map_single(dims, map, axis, &part) &&
           (part.stride == stride || grt_dim_equals(dims, part.size, 1));
}

/* A value between `value` and the source that is the heads side by side, cut out of the rows already. */
static ir_value *cut_on_the_way(ir_value *value, const head_rows *rows)
{
    enum { MOST_MOVES = 24 };
    grt_dims *dims = rows->source->graph->module->dims;
    const grt_dim width = grt_dim_const(dims, rows->width),
                  to[] = {rows->batch, rows->sequence, grt_dim_const(dims, rows->heads * rows->size)};
    for (int32_t i = 0; i < MOST_MOVES && value != rows->source && value->producer; i++) {
        index_map map;
        if (rewrite_same_shape(&value->type, &(ir_type){.rank = 3, .dims = to}) &&
            index_map_of(value, &map, NULL) && map.source == rows->source &&
            grt_dim_equals(dims, map.offset, rows->offset) &&
            has_stride(dims, &map, 2, grt_dim_const(dims, 1)) && has_stride(dims, &map, 1, width) &&
            has_stride(dims, &map, 0, grt_dim_mul(dims, rows->sequence, width)))
            return value;
        value = ir_in(value->producer, 0);
    }
    return NULL;
}

static ir_value *ints(ir_node *before, int64_t value)
{
    return ir_constant_ints(before->graph, before->desc.name, &value, 1);
}

static ir_value *sliced(ir_node *before, ir_value *x, int64_t from, int64_t n)
{
    ir_node *node = attention_add_node(
        before, "Slice", 4,
        (ir_value *[]){x, ints(before, from), ints(before, from + n), ints(before, x->type.rank - 1)});
    return node ? node->out[0] : NULL;
}

ir_value *attention_heads_of(ir_node *before, const head_rows *rows, ir_value *value)
{
    grt_dims *dims = before->graph->module->dims;
    ir_value *x = rows->sequence_first || rows->step != rows->size ? NULL : cut_on_the_way(value, rows);
    if (x)
        return x;
    x = attention_rows_of(before, rows, value);
    if (!x || (rows->offset == 0 && rows->step == rows->size && rows->width == rows->heads * rows->size))
        return x;
    if (rows->step == rows->size)
        return sliced(before, x, rows->offset, rows->heads * rows->size);
    const int64_t first = rows->offset / rows->step;
    if (rows->width % rows->step || rows->offset % rows->step + rows->size > rows->step)
        return NULL;
    const grt_dim apart[] = {rows->batch, rows->sequence, grt_dim_const(dims, rows->width / rows->step),
                             grt_dim_const(dims, rows->step)};
    const grt_dim flat[] = {rows->batch, rows->sequence, grt_dim_const(dims, rows->heads * rows->size)};
    if (first || rows->width / rows->step != rows->heads)
        return NULL;
    x = rewrite_reshaped(before, x, 4, apart);
    x = x ? sliced(before, x, rows->offset, rows->size) : NULL;
    return x ? rewrite_reshaped(before, x, 3, flat) : NULL;
}

/* ---- heads that lie apart, as the parts of their width ---- */

/* A constant whose last dim is sorted from [heads, n, size] to [n, heads, size]. */
static ir_value *sorted(ir_node *before, ir_value *constant, int64_t heads, int64_t n, int64_t size)
{
    grt_dims *dims = before->graph->module->dims;
    const int32_t rank = constant->type.rank;
    grt_dim apart[4];
    int64_t perm[4];
    for (int32_t i = 0; i < rank - 1; i++) {
        apart[i] = constant->type.dims[i];
        perm[i] = i;
    }
    const int64_t sizes[] = {heads, n, size}, order[] = {1, 0, 2};
    for (int32_t i = 0; i < 3; i++) {
        apart[rank - 1 + i] = grt_dim_const(dims, sizes[i]);
        perm[rank - 1 + i] = rank - 1 + order[i];
    }
    ir_value *x = rewrite_reshaped(before, constant, rank + 2, apart);
    x = x ? attention_transposed(before, x, perm, rank + 2) : NULL;
    return x ? rewrite_reshaped(before, x, rank, constant->type.dims) : NULL;
}

ir_value *attention_sorted_source(ir_node *before, const attention_layout *layout)
{
    attention_projection p;
    const head_rows *q = &layout->rows[ATTENTION_SIDE_Q];
    if (!attention_layout_is_sortable(layout, &p))
        return NULL;
    ir_value *w = sorted(before, ir_in(p.product, 1), q->heads, ATTENTION_SIDES, q->size);
    ir_value *b = p.bias ? sorted(before, p.bias, q->heads, ATTENTION_SIDES, q->size) : NULL;
    ir_node *made =
        w ? attention_add_node(before, "MatMul", 2, (ir_value *[]){ir_in(p.product, 0), w}) : NULL;
    if (made && p.bias)
        made = b ? attention_add_node(before, "Add", 2, (ir_value *[]){made->out[0], b}) : NULL;
    return made ? made->out[0] : NULL;
}

/* ---- inputs as [batch, heads, sequence, size] ---- */

ir_value *attention_four_dims(ir_node *before, const attention_side *side, const attention_layout *layout,
                              grt_dim heads)
{
    grt_dims *dims = before->graph->module->dims;
    ir_value *x = side->value;
    const ir_type *type = &x->type;
    const int32_t rank = type->rank;
    const grt_dim wanted[] = {layout->batch, heads, type->dims[rank - 2], type->dims[rank - 1]};
    grt_dim lead = grt_dim_const(dims, 1);
    for (int32_t i = 0; i < rank - 2; i++)
        lead = grt_dim_mul(dims, lead, type->dims[i]);
    if (side->apart || lead != grt_dim_mul(dims, layout->batch, heads))
        return NULL;
    x = rewrite_reshaped(before, x, 4, wanted);
    return x && side->exchanged ? attention_transposed(before, x, (int64_t[]){0, 1, 3, 2}, 4) : x;
}

/* Heads out of rows, [B, S, h * D] -> [B, h, S, D]. */
static ir_value *heads_apart(ir_node *before, const attention_side *side, const lead_list *list,
                             const attention_layout *layout)
{
    grt_dims *dims = before->graph->module->dims;
    head_rows rows;
    if (!attention_layout_find_heads(side, list, layout->n_batch, &rows) ||
        !attention_layout_is_bare(&rows) || rows.sequence_first)
        return NULL;
    ir_value *x = rewrite_reshaped(before, rows.source, 4,
                                   (grt_dim[]){layout->batch, rows.sequence, grt_dim_const(dims, rows.heads),
                                               grt_dim_const(dims, rows.size)});
    return x ? attention_transposed(before, x, (int64_t[]){0, 2, 1, 3}, 4) : NULL;
}

ir_value *attention_unrepeated(ir_node *before, const attention_side *side, const lead_list *list,
                               const attention_layout *layout, grt_dim *out_heads)
{
    grt_dims *dims = before->graph->module->dims;
    index_map kept = side->map;
    index_part row, column;
    int32_t n = list->n;
    grt_dim heads = grt_dim_const(dims, 1);
    while (n > layout->n_batch && grt_dim_equals(dims, list->parts[n - 1].stride, 0))
        n--;
    for (int32_t i = layout->n_batch; i < n; i++)
        heads = grt_dim_mul(dims, heads, list->parts[i].size);
    *out_heads = heads;
    kept.n = 0;
    for (int32_t i = 0; i < side->map.n; i++)
        if (!grt_dim_equals(dims, side->map.parts[i].stride, 0))
            kept.parts[kept.n++] = side->map.parts[i];
    if (n == list->n)
        return NULL;
    if (!index_map_is_whole(dims, &kept) || !index_map_single(dims, &side->map, side->map.rank - 2, &row) ||
        !index_map_single(dims, &side->map, side->map.rank - 1, &column))
        return heads_apart(before, side, list, layout);
    return rewrite_reshaped(before, side->map.source, 4,
                            (grt_dim[]){layout->batch, heads, row.size, column.size});
}
