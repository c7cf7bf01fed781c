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
#include "graph/passes/rewrite.h"
#include "graph/passes/rotary.h"

#include <string.h>

enum { RANK = 4, LAST = RANK - 1 };

/* x has the result's dims, or heads and positions exchanged; or its last dim as [size / 2, 2]. */
typedef struct origin {
    ir_value *x;
    bool exchanged;
} origin;

typedef struct neighbours {
    origin of;
    ir_value *cos, *sin;
    bool pairs; /* tables have a column for each element, not for each two */
    bool rows;  /* the result is [batch, length, heads, size], not [batch, heads, length, size] */
    int64_t batch, heads, length, size; /* batch: 1, length: 0 where it is not known */
} neighbours;

/* ---- matching ---- */

static ir_node *inner_node(const ir_value *value, const char *op)
{
    return value && ir_is_inner(value) ? rewrite_producer(value, op) : NULL;
}

/* What the value has under other dims; nothing else reads the value. */
static ir_value *viewed(const ir_value *value)
{
    const ir_node *view = value && ir_is_inner(value) ? value->producer : NULL;
    return view && view->graph == value->graph && rewrite_is_reshape(view) ? ir_in(view, 0) : NULL;
}

static bool same_leading_dims(const ir_type *a, const ir_type *b, int32_t n)
{
    for (int32_t d = 0; d < n; d++)
        if (a->dims[d] != b->dims[d])
            return false;
    return true;
}

/* The value without its last dim, which is 1. */
static ir_value *unstacked(const ir_value *value)
{
    ir_value *part = viewed(value);
    return part && part->type.rank == RANK && value->type.rank == RANK + 1 &&
                   same_leading_dims(&part->type, &value->type, RANK)
               ? part
               : NULL;
}

/* The two whose elements stand in turns in a Reshape's result. */
static bool read_turns(const ir_node *fold, ir_value *part[2])
{
    const ir_node *stack = fold && rewrite_is_reshape(fold) ? inner_node(ir_in(fold, 0), "Concat") : NULL;
    if (!stack || stack->n_in != 2 || stack->out[0]->type.rank != RANK + 1 ||
        fold->out[0]->type.rank != RANK ||
        grt_axis(grt_attr_int(&stack->desc, "axis", 0), RANK + 1) != RANK ||
        !same_leading_dims(&stack->out[0]->type, &fold->out[0]->type, LAST))
        return false;
    for (int32_t i = 0; i < 2; i++)
        part[i] = unstacked(ir_in(stack, i));
    return part[0] && part[1];
}

/* True if the Slice takes every second element of the last dim of what has four. */
static bool takes_every_second(const ir_node *slice, int64_t from)
{
    const grt_dims *dims = slice->graph->module->dims;
    const ir_type *x = &ir_in(slice, 0)->type, *value = &slice->out[0]->type;
    int64_t start, axis, step, size;
    return x->rank == RANK && value->rank == RANK && ir_const_int(ir_in(slice, 1), &start) &&
           ir_const_int(ir_in(slice, 3), &axis) && ir_const_int(ir_in(slice, 4), &step) && start == from &&
           step == 2 && grt_axis(axis, RANK) == LAST && grt_dim_is_const(dims, x->dims[LAST], &size) &&
           size % 2 == 0 && grt_dim_equals(dims, value->dims[LAST], size / 2);
}

/* x, if the value is one of the two elements of its last dim, by Split or Slice. */
static ir_value *half_of_pairs(const ir_value *value, int64_t from)
{
    const ir_node *cut = value->producer;
    ir_value *x = cut && cut->n_in ? ir_in(cut, 0) : NULL;
    int64_t axis, start;
    if (!x || x->type.rank != RANK + 1 || value->type.rank != RANK + 1 ||
        !grt_dim_equals(cut->graph->module->dims, x->type.dims[RANK], 2) ||
        !grt_dim_equals(cut->graph->module->dims, value->type.dims[RANK], 1))
        return NULL;
    if (rewrite_is(cut, "Split"))
        return cut->n_out == 2 && cut->out[from] == value &&
                       grt_axis(grt_attr_int(&cut->desc, "axis", 0), RANK + 1) == RANK
                   ? x
                   : NULL;
    return rewrite_is(cut, "Slice") && ir_const_int(ir_in(cut, 1), &start) && start == from &&
                   ir_const_int(ir_in(cut, 3), &axis) && grt_axis(axis, RANK + 1) == RANK
               ? x
               : NULL;
}

/* x, [.., size / 2, 2], if the value is one of both in each pair, without the last dim. */
static ir_value *pairs_of(const ir_value *value, int64_t from)
{
    const ir_node *view = value->producer;
    const ir_value *one = view && rewrite_is_reshape(view) ? ir_in(view, 0) : NULL;
    ir_value *x = one ? half_of_pairs(one, from) : NULL;
    return x && value->type.rank == RANK && same_leading_dims(&x->type, &value->type, RANK) ? x : NULL;
}

/* Heads and positions exchanged: what was; NULL if the value is not that. */
static ir_value *unexchanged_of(const ir_value *value)
{
    size_t n;
    const ir_node *node = rewrite_producer(value, "Transpose");
    const int64_t *perm = node ? grt_attr_ints(&node->desc, "perm", &n) : NULL;
    return perm && n == RANK && perm[0] == 0 && perm[1] == 2 && perm[2] == 1 ? ir_in(node, 0) : NULL;
}

/* What the value is every second element of, from `from` on; x is NULL if it is not. */
static origin every_second_of(const ir_value *value, int64_t from)
{
    const ir_value *plain = value ? unexchanged_of(value) : NULL;
    origin of = {.exchanged = plain != NULL};
    value = plain ? plain : value;
    const ir_node *slice = value ? rewrite_producer(value, "Slice") : NULL;
    if (slice)
        of.x = takes_every_second(slice, from) ? ir_in(slice, 0) : NULL;
    else if (value)
        of.x = pairs_of(value, from);
    return of;
}

static bool same_origin(origin a, origin b)
{
    return a.x && a.x == b.x && a.exchanged == b.exchanged;
}

/* What was turned, if the value is turns(-b, a). */
static origin quarter_turn_of(const ir_value *value)
{
    const origin none = {NULL, false};
    ir_value *part[2];
    if (!value || !ir_is_inner(value) || !read_turns(value->producer, part))
        return none;
    const ir_node *neg = inner_node(part[0], "Neg");
    const origin of = neg ? every_second_of(ir_in(neg, 0), 1) : none;
    return same_origin(of, every_second_of(part[1], 0)) ? of : none;
}

/* True if the value is all of it. */
static bool is_whole(const ir_value *value, origin of)
{
    return value && of.x == (of.exchanged ? unexchanged_of(value) : value);
}

/* The Add's operands: x * cos, turns(-b, a) * sin. */
static bool match_sum(neighbours *r, const ir_value *a, const ir_value *b)
{
    const ir_node *plain = inner_node(a, "Mul"), *turned = inner_node(b, "Mul");
    r->pairs = true;
    for (int32_t i = 0; plain && turned && i < 2; i++) {
        r->of = quarter_turn_of(ir_in(turned, i));
        r->sin = ir_in(turned, 1 - i);
        for (int32_t k = 0; r->of.x && k < 2; k++) {
            r->cos = ir_in(plain, 1 - k);
            if (is_whole(ir_in(plain, k), r->of))
                return true;
        }
    }
    return false;
}

/* What has the elements and the table, where the value is a table times every second element. */
static origin part_times(const ir_value *value, int64_t from, ir_value **out_table)
{
    const ir_node *mul = inner_node(value, "Mul");
    for (int32_t i = 0; mul && i < 2; i++) {
        const origin of = every_second_of(ir_in(mul, i), from);
        *out_table = ir_in(mul, 1 - i);
        if (of.x)
            return of;
    }
    return (origin){NULL, false};
}

/* turns(a * cos - b * sin, b * cos + a * sin) */
static bool match_turns(neighbours *r, const ir_node *fold)
{
    ir_value *part[2];
    ir_value *cos, *sin;
    if (!read_turns(fold, part))
        return false;
    const ir_node *even = inner_node(part[0], "Sub"), *odd = inner_node(part[1], "Add");
    if (!even || !odd)
        return false;
    r->pairs = false;
    r->of = part_times(ir_in(even, 0), 0, &r->cos);
    if (!same_origin(r->of, part_times(ir_in(even, 1), 1, &r->sin)))
        return false;
    for (int32_t i = 0; i < 2; i++)
        if (same_origin(r->of, part_times(ir_in(odd, i), 1, &cos)) &&
            same_origin(r->of, part_times(ir_in(odd, 1 - i), 0, &sin)) && cos == r->cos && sin == r->sin)
            return true;
    return false;
}

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
        if (rewrite_is(node, "Expand") || rewrite_is(node, "Tile") || rewrite_is(node, "Concat"))
            return grt_dim_equals(dims, from->type.dims[from->type.rank - 1], 1) &&
                   grt_dim_equals(dims, value->type.dims[rank - 1], 2) &&
                   (!rewrite_is(node, "Concat") ||
                    (node->n_in == 2 && ir_in(node, 1) == from &&
                     grt_axis(grt_attr_int(&node->desc, "axis", 0), rank) == rank - 1));
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

static bool find_neighbours(neighbours *r, const ir_node *node)
{
    if (rewrite_is(node, "Add"))
        return match_sum(r, ir_in(node, 0), ir_in(node, 1)) || match_sum(r, ir_in(node, 1), ir_in(node, 0));
    return match_turns(r, node);
}

static void look_for_neighbours(pass_context *context, ir_node *node)
{
    neighbours r = {0};
    if (!rewrite_is(node, "Add") && !rewrite_is_reshape(node))
        return;
    const ir_type *out = &node->out[0]->type;
    if (out->rank != RANK || !grt_dtype_in(out->dtype, GRT_SET_FLOATS) || !find_neighbours(&r, node) ||
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
