/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary position embedding of neighbours, as exporters write it out, becomes RotaryEmbedding with attribute
 * interleaved. With a = x[..., 0::2] and b = x[..., 1::2], whose elements are put in turns by turns(a, b):
 *
 *   x * cos + turns(-b, a) * sin                     by tables of size columns, which come in equal pairs
 *   turns(a * cos - b * sin, b * cos + a * sin)      by tables of size / 2 columns
 *
 * Tables are constants. Heads lie in front of positions or behind them; pass rotary moves the rotation in
 * front of a transpose. */
#include "graph/ir/constant.h"
#include "graph/passes/rewrite.h"
#include "graph/passes/rotary.h"

#include <string.h>

enum { RANK = 4, LAST = RANK - 1 };

typedef struct neighbours {
    ir_value *x;
    const ir_value *cos, *sin;
    bool pairs; /* tables have a column for each element, not for each two */
    bool rows;  /* x is [batch, length, heads, size], not [batch, heads, length, size] */
    int64_t batch, heads, length, size; /* batch: 1 where it is not known */
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

/* x, if the value is every second element of its last dim from `from` on. */
static ir_value *every_second_of(const ir_value *value, int64_t from)
{
    const ir_node *slice = value ? rewrite_producer(value, "Slice") : NULL;
    ir_value *x = slice ? ir_in(slice, 0) : NULL;
    int64_t start, axis, step, size;
    return x && x->type.rank == RANK && value->type.rank == RANK && ir_const_int(ir_in(slice, 1), &start) &&
                   ir_const_int(ir_in(slice, 3), &axis) && ir_const_int(ir_in(slice, 4), &step) &&
                   start == from && step == 2 && grt_axis(axis, RANK) == LAST &&
                   grt_dim_is_const(slice->graph->module->dims, x->type.dims[LAST], &size) && size % 2 == 0 &&
                   grt_dim_equals(slice->graph->module->dims, value->type.dims[LAST], size / 2)
               ? x
               : NULL;
}

/* x, if the value is turns(-b, a). */
static ir_value *quarter_turn_of(const ir_value *value)
{
    ir_value *part[2];
    if (!value || !ir_is_inner(value) || !read_turns(value->producer, part))
        return NULL;
    const ir_node *neg = inner_node(part[0], "Neg");
    ir_value *x = neg ? every_second_of(ir_in(neg, 0), 1) : NULL;
    return x && every_second_of(part[1], 0) == x ? x : NULL;
}

/* The Add's operands: x * cos, turns(-b, a) * sin. */
static bool match_sum(neighbours *r, const ir_value *a, const ir_value *b)
{
    const ir_node *plain = inner_node(a, "Mul"), *turned = inner_node(b, "Mul");
    r->pairs = true;
    for (int32_t i = 0; plain && turned && i < 2; i++) {
        r->x = quarter_turn_of(ir_in(turned, i));
        r->sin = ir_in(turned, 1 - i);
        for (int32_t k = 0; r->x && k < 2; k++) {
            r->cos = ir_in(plain, 1 - k);
            if (ir_in(plain, k) == r->x)
                return true;
        }
    }
    return false;
}

/* x and the table, where the value is a table times every second element of x; else NULL. */
static ir_value *part_times(const ir_value *value, int64_t from, const ir_value **out_table)
{
    const ir_node *mul = inner_node(value, "Mul");
    for (int32_t i = 0; mul && i < 2; i++) {
        ir_value *x = every_second_of(ir_in(mul, i), from);
        *out_table = ir_in(mul, 1 - i);
        if (x)
            return x;
    }
    return NULL;
}

/* turns(a * cos - b * sin, b * cos + a * sin) */
static bool match_turns(neighbours *r, const ir_node *fold)
{
    ir_value *part[2];
    const ir_value *cos, *sin;
    if (!read_turns(fold, part))
        return false;
    const ir_node *even = inner_node(part[0], "Sub"), *odd = inner_node(part[1], "Add");
    r->pairs = false;
    r->x = even && odd ? part_times(ir_in(even, 0), 0, &r->cos) : NULL;
    if (!r->x || part_times(ir_in(even, 1), 1, &r->sin) != r->x)
        return false;
    for (int32_t i = 0; i < 2; i++)
        if (part_times(ir_in(odd, i), 1, &cos) == r->x && part_times(ir_in(odd, 1 - i), 0, &sin) == r->x &&
            cos == r->cos && sin == r->sin)
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

/* True if the value is a constant that has one row for each position and is the same for all else. */
static bool is_table(const neighbours *r, const ir_value *value)
{
    const grt_tensor *t = value ? value->type.data : NULL;
    const int64_t columns = r->pairs ? r->size : r->size / 2;
    const int32_t at = t ? t->rank - (r->rows ? 3 : 2) : 0;
    return t && t->dtype == r->x->type.dtype && t->rank >= 2 && t->rank <= RANK &&
           t->dims[t->rank - 1] == columns && grt_tensor_elements(t) == r->length * columns &&
           (at < 0 ? r->length == 1 : t->dims[at] == r->length) && (!r->pairs || columns_are_pairs(t));
}

static bool read_dims(neighbours *r)
{
    const grt_dims *dims = r->x->graph->module->dims;
    const grt_dim *dim = r->x->type.dims;
    if (!grt_dim_is_const(dims, dim[0], &r->batch))
        r->batch = 1;
    return grt_dim_is_const(dims, dim[r->rows ? 1 : 2], &r->length) &&
           grt_dim_is_const(dims, dim[r->rows ? 2 : 1], &r->heads) &&
           grt_dim_is_const(dims, dim[LAST], &r->size) && r->batch > 0 && r->length > 0 && r->heads > 0 &&
           r->size >= 2 && r->size % 2 == 0;
}

static bool find_layout(neighbours *r)
{
    for (int32_t rows = 0; rows < 2; rows++) {
        r->rows = rows != 0;
        if (read_dims(r) && is_table(r, r->cos) && is_table(r, r->sin))
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

/* ---- replacing ---- */

static ir_value *neighbours_rotated(pass_context *context, ir_node *last, const neighbours *r)
{
    const int64_t joined[] = {0, 0, r->heads * r->size}, apart[] = {0, 0, r->heads, r->size};
    const ir_node *join = r->rows ? rotary_reshape(last, r->x, joined, 3) : NULL;
    ir_value *in[] = {join ? join->out[0] : r->x, half_wide(r, r->cos, last->graph),
                      half_wide(r, r->sin, last->graph)};
    if (!in[1] || !in[2] || (r->rows && !join))
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
        r.x->type.dtype != out->dtype || !rewrite_same_shape(&r.x->type, out) || !find_layout(&r))
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
