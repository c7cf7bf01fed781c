/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary position embedding of neighbours, as exporters write it out, becomes RotaryEmbedding with attribute
 * interleaved. With a = x[..., 0::2] and b = x[..., 1::2], whose elements are put in turns by turns(a, b):
 *
 *   x * cos + turns(-b, a) * sin                     by tables of size columns, which come in equal pairs
 *   turns(a * cos - b * sin, b * cos + a * sin)      by tables of size / 2 columns
 *
 * Tables are constants, or are computed of angles that were repeated. a and b may have been exchanged (heads
 * and positions) after they were cut out, or be what a Split or Slices make of x whose last dim is [size / 2,
 * 2]. Heads lie in front of positions or behind them; pass rotary moves the rotation in front of a transpose.
 */
#include "graph/ir/constant.h"
#include "graph/passes/interleaved_rotary.h"
#include "graph/passes/rewrite.h"
#include "graph/passes/rotary_nodes.h"

#include <string.h>

enum { RANK = INTERLEAVED_RANK, LAST = INTERLEAVED_LAST };

/* ---- tables ---- */

static bool columns_are_pairs(const grt_tensor *t)
{
    const size_t size = grt_dtype_size(t->dtype);
    const char *at = t->data;
    for (int64_t i = 0; i < grt_tensor_elements(t); i += 2, at += 2 * size)
        if (memcmp(at, at + size, size))
            return false;
    return true;
}

static int64_t columns_of(const neighbours *r)
{
    return r->pairs ? r->size : r->size / 2;
}

/* True if a constant has one row for each position and is the same for all else. */
static bool is_constant_table(const neighbours *r, const ir_value *value)
{
    const grt_tensor *t = value ? value->type.data : NULL;
    const int64_t columns = columns_of(r);
    const int32_t at = t ? t->rank - (r->rows ? 3 : 2) : 0;
    return t && r->length > 0 && t->dtype == r->of.x->type.dtype && t->rank >= 2 && t->rank <= RANK &&
           t->dims[t->rank - 1] == columns && grt_tensor_elements(t) == r->length * columns &&
           (at < 0 ? r->length == 1 : t->dims[at] == r->length) && (!r->pairs || columns_are_pairs(t));
}

/* True if the result may have the elements of input 0 several times; of a Concat, twice along the last dim.
 */
static bool interleaved_repeats(const ir_node *node)
{
    const int32_t rank = node->out[0]->type.rank;
    if (rewrite_is(node, "Concat"))
        return node->n_in == 2 && ir_in(node, 1) == ir_in(node, 0) && rank > 0 &&
               grt_axis(grt_attr_int(&node->desc, "axis", 0), rank) == rank - 1;
    return rewrite_is(node, "Expand") || rewrite_is(node, "Tile");
}

/* True if every two elements, in the order of memory, are one that was repeated. */
static bool has_repeated_elements(const ir_value *value)
{
    enum { MOST_STEPS = 8 };
    double c;
    for (int step = 0; step < MOST_STEPS && value && value->producer; step++) {
        const ir_node *node = value->producer;
        const ir_value *from = node->n_in ? ir_in(node, 0) : NULL;
        const int32_t rank = value->type.rank;
        const grt_dims *dims = node->graph->module->dims;
        if (!from || from->type.rank < 1 || rank < 1)
            return false;
        if (interleaved_repeats(node))
            return grt_dim_equals(dims, from->type.dims[from->type.rank - 1], 1) &&
                   grt_dim_equals(dims, value->type.dims[rank - 1], 2);
        const bool scaled = rewrite_is(node, "Mul") && ir_const_float(ir_in(node, 1), &c);
        if (!scaled && !rewrite_is_reshape(node) && !rewrite_is(node, "Cos") && !rewrite_is(node, "Sin") &&
            !rewrite_is(node, "Cast"))
            return false;
        value = from;
    }
    return false;
}

/* True if the value is computed, with a row for each position and, perhaps, each of the batch. */
static bool is_made_table(const neighbours *r, const ir_value *value, const ir_type *out)
{
    if (!value || value->type.data || value->type.rank != RANK || value->type.dtype != out->dtype)
        return false;
    const grt_dims *dims = r->of.x->graph->module->dims;
    const grt_dim *to = value->type.dims;
    const int32_t length = r->rows ? 1 : 2;
    return (to[0] == out->dims[0] || grt_dim_equals(dims, to[0], 1)) && to[length] == out->dims[length] &&
           grt_dim_equals(dims, to[3 - length], 1) && grt_dim_equals(dims, to[LAST], columns_of(r)) &&
           (!r->pairs || has_repeated_elements(value));
}

static bool is_table(const neighbours *r, const ir_value *value, const ir_type *out)
{
    return is_constant_table(r, value) || is_made_table(r, value, out);
}

static bool read_dims(neighbours *r, const ir_type *out)
{
    const grt_dims *dims = r->of.x->graph->module->dims;
    const grt_dim *dim = out->dims;
    if (!grt_dim_is_const(dims, dim[0], &r->batch))
        r->batch = 1;
    if (!grt_dim_is_const(dims, dim[r->rows ? 1 : 2], &r->length))
        r->length = 0;
    return grt_dim_is_const(dims, dim[r->rows ? 2 : 1], &r->heads) &&
           grt_dim_is_const(dims, dim[LAST], &r->size) && r->batch > 0 && r->heads > 0 && r->size >= 2 &&
           r->size % 2 == 0;
}

/* x has the result's dims, once it is as the result is. */
static bool origin_fits(const neighbours *r, const ir_type *out)
{
    const ir_type *x = &r->of.x->type;
    const grt_dims *dims = r->of.x->graph->module->dims;
    const int32_t second = r->of.exchanged ? 2 : 1;
    return x->dtype == out->dtype && x->dims[0] == out->dims[0] && x->dims[second] == out->dims[1] &&
           x->dims[3 - second] == out->dims[2] &&
           (x->rank == RANK ? x->dims[LAST] == out->dims[LAST]
                            : x->rank == RANK + 1 && grt_dim_equals(dims, x->dims[LAST], r->size / 2) &&
                                  grt_dim_equals(dims, x->dims[RANK], 2));
}

static bool find_layout(neighbours *r, const ir_type *out)
{
    for (int32_t rows = 0; rows < 2; rows++) {
        r->rows = rows != 0;
        if (read_dims(r, out) && origin_fits(r, out) && is_table(r, r->cos, out) && is_table(r, r->sin, out))
            return true;
    }
    return false;
}

/* [batch, length, size / 2] */
static ir_value *half_wide(const neighbours *r, const ir_value *value, ir_graph *graph)
{
    const grt_tensor *table = value->type.data;
    const int64_t dims[] = {r->batch, r->length, r->size / 2}, n = r->length * (r->size / 2);
    const size_t size = grt_dtype_size(table->dtype), step = r->pairs ? 2 * size : size;
    grt_tensor *cache = ir_constant_create(graph->module, table->dtype, 3, dims);
    if (!cache)
        return NULL;
    char *to = cache->data;
    for (int64_t b = 0; b < r->batch; b++)
        for (int64_t i = 0; i < n; i++, to += size)
            memcpy(to, (const char *)table->data + (size_t)i * step, size);
    return ir_constant(graph, NULL, cache);
}

/* The same of a table that is computed. */
static ir_value *made_half_wide(ir_node *before, const neighbours *r, ir_value *table)
{
    ir_graph *graph = before->graph;
    const char *node_name = before->desc.name;
    if (r->pairs) {
        ir_value *in[] = {table, ir_constant_ints(graph, node_name, (int64_t[]){0}, 1),
                          ir_constant_ints(graph, node_name, (int64_t[]){r->size}, 1),
                          ir_constant_ints(graph, node_name, (int64_t[]){LAST}, 1),
                          ir_constant_ints(graph, node_name, (int64_t[]){2}, 1)};
        ir_node *slice = in[1] && in[2] && in[3] && in[4] ? rotary_add_node(before, "Slice", 5, in) : NULL;
        if (!slice || op_infer_node(slice) != GRT_OK)
            return NULL;
        table = slice->out[0];
    }
    ir_value *in[] = {table, ir_constant_ints(graph, node_name, (int64_t[]){r->rows ? 2 : 1}, 1)};
    ir_node *squeeze = in[1] ? rotary_add_node(before, "Squeeze", 2, in) : NULL;
    return squeeze && op_infer_node(squeeze) == GRT_OK ? squeeze->out[0] : NULL;
}

static ir_value *cache_of_table(ir_node *before, const neighbours *r, ir_value *table)
{
    return table->type.data ? half_wide(r, table, before->graph) : made_half_wide(before, r, table);
}

/* ---- replacing ---- */

/* x as the result is. */
static ir_value *origin_as_result(ir_node *last, const neighbours *r)
{
    ir_value *x = r->of.x;
    if (x->type.rank > RANK) {
        const ir_node *whole = rotary_reshape(last, x, (int64_t[]){0, 0, 0, r->size}, RANK);
        x = whole ? whole->out[0] : NULL;
    }
    return x && r->of.exchanged ? rotary_exchanged(last, x) : x;
}

static ir_value *neighbours_rotated(pass_context *context, ir_node *last, const neighbours *r)
{
    const int64_t joined[] = {0, 0, r->heads * r->size}, apart[] = {0, 0, r->heads, r->size};
    ir_value *x = origin_as_result(last, r);
    const ir_node *join = x && r->rows ? rotary_reshape(last, x, joined, 3) : NULL;
    ir_value *in[] = {join ? join->out[0] : x, cache_of_table(last, r, r->cos),
                      cache_of_table(last, r, r->sin)};
    if (!x || !in[1] || !in[2] || (r->rows && !join))
        return NULL;
    ir_node *node = rotary_add_node(last, "RotaryEmbedding", 3, in);
    if (!node)
        return NULL;
    ir_attr_set_int(node, "interleaved", 1);
    if (join)
        ir_attr_set_int(node, "num_heads", r->heads);
    if (!rotary_widen(node) || op_infer_node(node) != GRT_OK || !rewrite_supported(context, node, NULL))
        return NULL;
    const ir_node *split = join ? rotary_reshape(last, node->out[0], apart, 4) : node;
    return split ? split->out[0] : NULL;
}

static void look_for_neighbours(pass_context *context, ir_node *node)
{
    neighbours r = {0};
    if (!rewrite_is(node, "Add") && !rewrite_is_reshape(node))
        return;
    const ir_type *out = &node->out[0]->type;
    if (out->rank != RANK || !grt_dtype_in(out->dtype, GRT_SET_FLOATS) || !interleaved_match(&r, node) ||
        !find_layout(&r, out))
        return;
    ir_value *made = neighbours_rotated(context, node, &r); /* unused nodes are dead */
    if (made && rewrite_same_shape(&made->type, out) && rewrite_replace(node->out[0], made)) {
        ir_node_remove(node);
        context->changed++;
    }
}

grt_status pass_interleaved_rotary(pass_context *context)
{
    return rewrite_each_node(context, look_for_neighbours);
}
