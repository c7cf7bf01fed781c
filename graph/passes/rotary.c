/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary position embedding, as exporters write it out, becomes RotaryEmbedding:
 *
 *   x * cos + concat(-x[D/2..], x[..D/2]) * sin
 *
 * with constant tables of shape [sequence, D], whose halves are equal, or with tables that are computed from
 * angles which are joined with themselves. Where x is transposed from [batch, sequence, heads, size], the
 * rotation is done before that, so that attention can take its inputs as they were; that also goes for
 * rotations that were one node from the start. */
#include "graph/passes/rewrite.h"
#include "graph/ir/constant.h"

#include <string.h>

static bool is_inner(const ir_value *value)
{
    return value && value->producer && value->n_uses == 1;
}

static ir_node *inner(const ir_value *value, const char *op)
{
    return is_inner(value) ? rewrite_producer(value, op) : NULL;
}

/* ---- matching ---- */

typedef struct rotation {
    ir_value *x; /* [batch, heads, sequence, size] */
    const grt_tensor *cos, *sin;
    ir_value *made_cos, *made_sin;      /* [batch, sequence, size], where they are computed */
    int64_t batch, heads, length, size; /* batch and length: 0 where they are symbols */
} rotation;

static bool only_int(const ir_value *value, int64_t *out)
{
    const int64_t *v;
    int64_t n;
    if (!ir_const_ints(value, &v, &n) || n != 1)
        return false;
    *out = v[0];
    return true;
}

/* The same where one Split makes both halves. */
static ir_value *split_of(const ir_value *value, int64_t from, int64_t to)
{
    ir_node *split = inner(value, "Split");
    ir_value *x = split ? ir_in(split, 0) : NULL;
    const ir_value *first = split ? split->out[0] : NULL;
    if (!x || x->type.rank != 4 || split->n_out != 2 || !first || value->type.rank != 4 ||
        first->type.rank != 4 || grt_axis(grt_attr_int(&split->desc, "axis", 0), 4) != 3)
        return NULL;
    const grt_dims *dims = split->graph->module->dims;
    const bool fits = grt_dim_equals(dims, value->type.dims[3], to - from) &&
                      (value == first ? from == 0 : grt_dim_equals(dims, first->type.dims[3], from));
    return fits ? x : NULL;
}

/* x, if the value is the part [from, to) of its last dim. */
static ir_value *part_of(const ir_value *value, int64_t from, int64_t to)
{
    ir_value *half = split_of(value, from, to);
    if (half)
        return half;
    ir_node *slice = inner(value, "Slice");
    int64_t start, end, axis, step = 1;
    ir_value *x = slice ? ir_in(slice, 0) : NULL;
    if (!x || x->type.rank != 4 || !only_int(ir_in(slice, 1), &start) || !only_int(ir_in(slice, 2), &end) ||
        !only_int(ir_in(slice, 3), &axis) || (ir_in(slice, 4) && !only_int(ir_in(slice, 4), &step)))
        return NULL;
    return grt_axis(axis, 4) == 3 && step == 1 && start == from && (end == to || (end > to && from > 0))
               ? x
               : NULL;
}

/* x, if the value is concat(-x[half..], x[..half]). */
static ir_value *half_turn_of(const ir_value *value, int64_t size)
{
    ir_node *concat = inner(value, "Concat");
    if (!concat || concat->n_in != 2 || value->type.rank != 4 ||
        grt_axis(grt_attr_int(&concat->desc, "axis", 0), 4) != 3)
        return NULL;
    ir_node *neg = inner(ir_in(concat, 0), "Neg");
    ir_value *high = neg ? part_of(ir_in(neg, 0), size / 2, size) : NULL;
    return high && part_of(ir_in(concat, 1), 0, size / 2) == high ? high : NULL;
}

/* A constant of floats that is [length, size] behind leading ones, with equal halves. */
static const grt_tensor *table_of(const ir_value *value, int64_t length, int64_t size)
{
    const grt_tensor *t = value ? value->type.data : NULL;
    if (!t || !grt_dtype_in(t->dtype, GRT_SET_FLOATS) || t->rank < 2 || t->rank > 4 ||
        grt_tensor_elements(t) != length * size || t->dims[t->rank - 1] != size ||
        t->dims[t->rank - 2] != length)
        return NULL;
    const char *row = t->data;
    const size_t half = (size_t)(size / 2) * grt_dtype_size(t->dtype);
    for (int64_t i = 0; i < length; i++, row += 2 * half)
        if (memcmp(row, row + half, half))
            return NULL;
    return t;
}

static bool known_dims(rotation *r, const ir_value *value)
{
    const grt_dims *dims = value->graph->module->dims;
    const grt_dim *dim = value->type.dims;
    if (!grt_dim_is_const(dims, dim[0], &r->batch) || !grt_dim_is_const(dims, dim[2], &r->length))
        r->batch = r->length = 0;
    return grt_dim_is_const(dims, dim[1], &r->heads) && grt_dim_is_const(dims, dim[3], &r->size) &&
           r->heads > 0 && r->size >= 2 && r->size % 2 == 0;
}

/* Is the value made of concat(a, a) along its last dim by steps that treat all elements alike? */
static bool has_equal_halves(const ir_value *value)
{
    enum { MOST_STEPS = 8 };
    double c;
    for (int step = 0; step < MOST_STEPS && value && value->producer; step++) {
        const ir_node *node = value->producer;
        if (rewrite_is(node, "Concat"))
            return node->n_in == 2 && ir_in(node, 0) == ir_in(node, 1) &&
                   grt_axis(grt_attr_int(&node->desc, "axis", 0), value->type.rank) == value->type.rank - 1;
        const bool scaled = rewrite_is(node, "Mul") && ir_const_float(ir_in(node, 1), &c);
        if (!scaled && !rewrite_is(node, "Cos") && !rewrite_is(node, "Sin") && !rewrite_is(node, "Cast"))
            return false;
        value = ir_in(node, 0);
    }
    return false;
}

/* [batch, sequence, size] of a computed table [batch, 1, sequence, size] that turns x as it is. */
static ir_value *made_table_of(const ir_value *value, const ir_type *x)
{
    const ir_node *node = value ? value->producer : NULL;
    if (!node || !node->row || !(node->row->flags & OP_VIEW) || value->type.rank != 4 ||
        value->type.dtype != x->dtype)
        return NULL;
    ir_value *table = ir_in(node, 0);
    const grt_dims *dims = value->graph->module->dims;
    const grt_dim *to = value->type.dims, *from = table->type.dims;
    const bool fits = table->type.rank == 3 && grt_dim_equals(dims, to[1], 1) && from[0] == to[0] &&
                      from[1] == to[2] && from[2] == to[3] && from[1] == x->dims[2] &&
                      from[2] == x->dims[3] && (from[0] == x->dims[0] || grt_dim_equals(dims, from[0], 1));
    return fits && has_equal_halves(table) ? table : NULL;
}

static bool find_tables(rotation *r, const ir_value *cos, const ir_value *sin)
{
    r->cos = r->batch ? table_of(cos, r->length, r->size) : NULL;
    r->sin = r->cos ? table_of(sin, r->length, r->size) : NULL;
    if (r->sin)
        return true;
    r->made_cos = made_table_of(cos, &r->x->type);
    r->made_sin = made_table_of(sin, &r->x->type);
    return r->made_cos && r->made_sin;
}

/* The Add's operands: a = x * cos, b = turned x * sin. */
static bool match(rotation *r, const ir_value *a, const ir_value *b)
{
    ir_node *plain = inner(a, "Mul"), *turned = inner(b, "Mul");
    for (int i = 0; plain && turned && i < 2; i++) {
        r->x = half_turn_of(ir_in(turned, i), r->size);
        for (int k = 0; r->x && k < 2; k++)
            if (ir_in(plain, k) == r->x && find_tables(r, ir_in(plain, 1 - k), ir_in(turned, 1 - i)))
                return true;
    }
    return false;
}

/* ---- replacing ---- */

/* [batch, length, size / 2]: the left half of the table, for every batch. */
static ir_value *cache_of(const rotation *r, const grt_tensor *table, ir_graph *graph)
{
    const int64_t dims[] = {r->batch, r->length, r->size / 2};
    const size_t half = (size_t)(r->size / 2) * grt_dtype_size(table->dtype);
    grt_tensor *cache = ir_constant_create(graph->module, table->dtype, 3, dims);
    if (!cache)
        return NULL;
    char *to = cache->data;
    for (int64_t i = 0; i < r->batch * r->length; i++, to += half)
        memcpy(to, (const char *)table->data + (size_t)(i % r->length) * 2 * half, half);
    return ir_constant(graph, NULL, cache);
}

static ir_node *add_node(ir_node *before, const char *op, int32_t n_in, ir_value *const *in)
{
    ir_node *node = ir_node_create(before->graph, before, "", op, before->desc.name, n_in, in, 1);
    return node;
}

static ir_node *reshape(ir_node *before, ir_value *x, const int64_t *shape, int64_t n)
{
    ir_value *constant = ir_constant_ints(before->graph, before->desc.name, shape, n);
    ir_node *node = constant ? add_node(before, "Reshape", 2, (ir_value *[]){x, constant}) : NULL;
    return node && op_infer_node(node) == GRT_OK ? node : NULL;
}

/* The left half of a table that is computed. */
static ir_value *half_of(ir_node *before, const rotation *r, ir_value *table)
{
    ir_graph *graph = before->graph;
    const char *name = before->desc.name;
    ir_value *in[] = {table, ir_constant_ints(graph, name, (int64_t[]){0}, 1),
                      ir_constant_ints(graph, name, (int64_t[]){r->size / 2}, 1),
                      ir_constant_ints(graph, name, (int64_t[]){2}, 1)};
    ir_node *slice = in[1] && in[2] && in[3] ? add_node(before, "Slice", 4, in) : NULL;
    return slice && op_infer_node(slice) == GRT_OK ? slice->out[0] : NULL;
}

/* A row of angles for each of the batch, as kernels want it. */
static bool widen(ir_node *rotary)
{
    bool done;
    ir_node *last = rotary->prev;
    if (rotary->row->expand(rotary, &done) != GRT_OK)
        return false;
    for (ir_node *node = last ? last->next : rotary->graph->first; node != rotary; node = node->next)
        if (op_infer_node(node) != GRT_OK)
            return false;
    return true;
}

static const int64_t swap_heads[] = {0, 2, 1, 3};

/* [batch, sequence, heads, size], where x was transposed from that. */
static ir_value *untransposed(const ir_value *x)
{
    ir_node *node = rewrite_producer(x, "Transpose");
    size_t n;
    const int64_t *perm = node ? grt_attr_ints(&node->desc, "perm", &n) : NULL;
    return perm && n == 4 && !memcmp(perm, swap_heads, sizeof swap_heads) ? ir_in(node, 0) : NULL;
}

/* [batch, sequence, heads * size] of x that was transposed from [batch, sequence, heads, size]. */
static ir_node *flattened(ir_node *before, const ir_value *x, int64_t heads, int64_t size)
{
    ir_value *flat = untransposed(x);
    return flat ? reshape(before, flat, (int64_t[]){0, 0, heads * size}, 3) : NULL;
}

/* [batch, heads, sequence, size] again. */
static ir_value *unflattened(ir_node *before, ir_value *flat, int64_t heads, int64_t size)
{
    ir_node *split = reshape(before, flat, (int64_t[]){0, 0, heads, size}, 4);
    ir_node *back = split ? add_node(before, "Transpose", 1, &split->out[0]) : NULL;
    if (!back)
        return NULL;
    ir_attr_set_ints(back, "perm", swap_heads, 4);
    return op_infer_node(back) == GRT_OK ? back->out[0] : NULL;
}

/* The rotation of x in front of `last`; its result has the shape of last's. */
static ir_value *rotated(pass_context *context, ir_node *last, const rotation *r)
{
    ir_value *cos = r->made_cos ? half_of(last, r, r->made_cos) : cache_of(r, r->cos, last->graph);
    ir_value *sin = r->made_sin ? half_of(last, r, r->made_sin) : cache_of(r, r->sin, last->graph);
    ir_node *join = flattened(last, r->x, r->heads, r->size);
    if (!cos || !sin || (!join && untransposed(r->x)))
        return NULL;
    ir_node *node =
        add_node(last, "RotaryEmbedding", 3, (ir_value *[]){join ? join->out[0] : r->x, cos, sin});
    if (!node)
        return NULL;
    if (join)
        ir_attr_set_int(node, "num_heads", r->heads);
    if (!widen(node) || op_infer_node(node) != GRT_OK || !rewrite_supported(context, node, NULL))
        return NULL;
    return join ? unflattened(last, node->out[0], r->heads, r->size) : node->out[0];
}

/* A rotation that is one node already goes in front of the transpose to heads. */
static void move_forward(pass_context *context, ir_node *node)
{
    const ir_value *x = ir_in(node, 0);
    const grt_dims *dims = node->graph->module->dims;
    int64_t heads, size;
    if (x->type.rank != 4 || !untransposed(x) || x->n_uses != 1 ||
        !grt_dim_is_const(dims, x->type.dims[1], &heads) || !grt_dim_is_const(dims, x->type.dims[3], &size) ||
        heads * size <= 0)
        return;
    ir_node *join = flattened(node, x, heads, size);
    if (!join)
        return;
    ir_value *in[] = {join->out[0], ir_in(node, 1), ir_in(node, 2), ir_in(node, 3)};
    ir_node *made = add_node(node, "RotaryEmbedding", in[3] ? 4 : 3, in);
    if (!made)
        return;
    ir_attrs_copy(made, node);
    ir_attr_set_int(made, "num_heads", heads);
    if (op_infer_node(made) != GRT_OK || !rewrite_supported(context, made, NULL))
        return; /* what is made in vain is dead */
    ir_value *y = unflattened(node, made->out[0], heads, size);
    if (y && rewrite_same_shape(&y->type, &node->out[0]->type) && rewrite_replace(node->out[0], y)) {
        ir_node_remove(node);
        context->changed++;
    }
}

static void look(pass_context *context, ir_node *node)
{
    rotation r = {0};
    const ir_type *out = &node->out[0]->type;
    if (out->rank != 4 || !grt_dtype_in(out->dtype, GRT_SET_FLOATS) || !known_dims(&r, node->out[0]) ||
        (!match(&r, ir_in(node, 0), ir_in(node, 1)) && !match(&r, ir_in(node, 1), ir_in(node, 0))) ||
        !rewrite_same_shape(&r.x->type, out))
        return;
    ir_value *made = rotated(context, node, &r); /* what is made in vain is dead */
    if (made && rewrite_same_shape(&made->type, out) && rewrite_replace(node->out[0], made)) {
        ir_node_remove(node);
        context->changed++;
    }
}

static grt_status visit(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph) {
        if (rewrite_is(node, "Add"))
            look(context, node);
        else if (rewrite_is(node, "RotaryEmbedding"))
            move_forward(context, node);
    }
    return GRT_OK;
}

grt_status pass_rotary(pass_context *context)
{
    return rewrite_each_graph(context, visit);
}
