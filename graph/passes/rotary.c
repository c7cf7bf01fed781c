/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary position embedding, as exporters write it out, becomes RotaryEmbedding:
 *
 *   x * cos + concat(-x[D/2..], x[..D/2]) * sin
 *   concat(a * cos - b * sin, b * cos + a * sin) with a = x[..D/2], b = x[D/2..], or
 *                                                     a = x[0::2], b = x[1::2]
 *
 * with constant tables of shape [sequence, D], whose halves are equal, or with tables that are computed from
 * angles which are joined with themselves; the second form has tables of half the size. Heads may be
 * transposed to the front before that, behind it, or anywhere in between: all nodes but the tables treat
 * heads and positions alike. The rotation is done before the transpose, so that attention can take its inputs
 * as they were; that also goes for rotations that were one node from the start. */
#include "graph/ir/constant.h"
#include "graph/passes/rewrite.h"
#include "graph/passes/rotary_nodes.h"
#include "graph/passes/rotary_repeats.h"

#include <string.h>

static ir_node *inner(const ir_value *value, const char *op)
{
    return ir_is_inner(value) ? rewrite_producer(value, op) : NULL;
}

/* ---- transposes on the way ---- */

static const int64_t swap_heads[] = {0, 2, 1, 3};

/* True if `to` has the dims of `from`, heads and positions exchanged. */
static bool is_exchanged(const ir_type *from, const ir_type *to)
{
    return from->rank == 4 && to->rank == 4 && from->dims[0] == to->dims[0] && from->dims[1] == to->dims[2] &&
           from->dims[2] == to->dims[1] && from->dims[3] == to->dims[3];
}

/* The same where one of both is 1, so that the elements have one order. */
static bool is_moved_one(const grt_dims *dims, const ir_type *from, const ir_type *to)
{
    return is_exchanged(from, to) &&
           (grt_dim_equals(dims, from->dims[1], 1) || grt_dim_equals(dims, from->dims[2], 1));
}

/* [batch, sequence, heads, size], where x was transposed from that, or the other way round. */
static ir_value *untransposed(const ir_value *x)
{
    ir_node *node = rewrite_producer(x, "Transpose");
    size_t n;
    const int64_t *perm = node ? grt_attr_ints(&node->desc, "perm", &n) : NULL;
    if (perm)
        return n == 4 && !memcmp(perm, swap_heads, sizeof swap_heads) ? ir_in(node, 0) : NULL;
    node = rewrite_producer(x, "Reshape");
    return node && is_moved_one(node->graph->module->dims, &ir_in(node, 0)->type, &x->type) ? ir_in(node, 0)
                                                                                            : NULL;
}

/* A value of the rotation, as the result has its dims or with heads and positions exchanged. */
typedef struct spot {
    ir_value *value;
    bool swapped;
} spot;

static bool same_spot(spot a, spot b)
{
    if (a.value == b.value)
        return a.swapped == b.swapped;
    const ir_node *of_a = a.value ? rewrite_producer(a.value, "Reshape") : NULL;
    const ir_node *of_b = b.value ? rewrite_producer(b.value, "Reshape") : NULL;
    return of_a && of_b && ir_in(of_a, 0) == ir_in(of_b, 0) && a.swapped != b.swapped &&
           is_moved_one(of_a->graph->module->dims, &a.value->type, &b.value->type);
}

/* What the value was before transposes, whoever reads it. */
static spot rotary_source_of(spot at)
{
    for (ir_value *x; at.value && (x = untransposed(at.value)); at.value = x)
        at.swapped = !at.swapped;
    return at;
}

/* The node of that op that makes the value, perhaps transposed; nothing else reads it on the way. */
static ir_node *inner_at(spot *at, const char *op)
{
    for (ir_value *x; ir_is_inner(at->value) && (x = untransposed(at->value)); at->value = x)
        at->swapped = !at->swapped;
    return inner(at->value, op);
}

static spot input_at(const ir_node *node, int32_t i, bool swapped)
{
    return (spot){ir_in(node, i), swapped};
}

/* ---- matching ---- */

typedef struct rotation {
    spot x;    /* where the result's dims are [batch, heads, sequence, size], or, if */
    bool rows; /* this is set, [batch, sequence, heads, size] */
    const grt_tensor *cos, *sin;
    ir_value *made_cos, *made_sin;      /* [batch, sequence, size], where they are computed */
    int64_t batch, heads, length, size; /* where they are symbols, batch is 1 and length 0 */
    bool halves;                        /* tables have size / 2 columns */
    bool in_turns;                      /* elements of both halves of x take turns */
} rotation;

/* The same where one Split makes both halves. */
static ir_value *split_of(const ir_value *value, int64_t from, int64_t to)
{
    ir_node *split = value ? rewrite_producer(value, "Split") : NULL;
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

/* The Slice along the last dim that makes the value, from `start` on. NULL if it is none. */
static ir_node *last_slice_of(const ir_value *value, int64_t start, int64_t step)
{
    ir_node *slice = value ? rewrite_producer(value, "Slice") : NULL;
    const ir_value *x = slice ? ir_in(slice, 0) : NULL;
    int64_t first, axis, found = 1;
    return x && x->type.rank == 4 && ir_const_int(ir_in(slice, 1), &first) &&
                   ir_const_int(ir_in(slice, 3), &axis) &&
                   (!ir_in(slice, 4) || ir_const_int(ir_in(slice, 4), &found)) && grt_axis(axis, 4) == 3 &&
                   first == start && found == step
               ? slice
               : NULL;
}

/* x, if one Slice makes of it the part [from, to) of its last dim. */
static ir_value *slice_of(const ir_value *value, int64_t from, int64_t to)
{
    const ir_node *slice = last_slice_of(value, from, 1);
    int64_t end;
    return slice && ir_const_int(ir_in(slice, 2), &end) && (end == to || (end > to && from > 0))
               ? ir_in(slice, 0)
               : NULL;
}

/* What the value is a part of; value NULL if it is none. */
static spot part_of(spot at, int64_t from, int64_t to)
{
    at = rotary_source_of(at);
    ir_value *x = split_of(at.value, from, to);
    return rotary_source_of((spot){x ? x : slice_of(at.value, from, to), at.swapped});
}

/* What the value has every second element of, from the first or the second on; value NULL if it has not. */
static spot neighbour_of(spot at, bool second, int64_t size)
{
    at = rotary_source_of(at);
    const ir_node *slice = last_slice_of(at.value, second, 2);
    ir_value *x = slice ? ir_in(slice, 0) : NULL;
    const grt_dims *dims = x ? x->graph->module->dims : NULL;
    const bool fits = x && grt_dim_equals(dims, x->type.dims[3], size) &&
                      grt_dim_equals(dims, at.value->type.dims[3], size / 2);
    return rotary_source_of((spot){fits ? x : NULL, at.swapped});
}

/* One half of what r rotates. */
static spot rotary_half_of(const rotation *r, spot at, bool high)
{
    const int64_t half = r->size / 2;
    return r->in_turns ? neighbour_of(at, high, r->size)
                       : part_of(at, high ? half : 0, high ? r->size : half);
}

/* x, if the value is concat(-x[half..], x[..half]); else value NULL. */
static spot half_turn_of(spot at, int64_t size)
{
    const spot none = {NULL, false};
    ir_node *concat = inner_at(&at, "Concat");
    if (!concat || concat->n_in != 2 || at.value->type.rank != 4 ||
        grt_axis(grt_attr_int(&concat->desc, "axis", 0), 4) != 3)
        return none;
    spot negated = input_at(concat, 0, at.swapped);
    ir_node *neg = inner_at(&negated, "Neg");
    const spot high = neg ? part_of(input_at(neg, 0, negated.swapped), size / 2, size) : none;
    return high.value && same_spot(part_of(input_at(concat, 1, at.swapped), 0, size / 2), high) ? high : none;
}

static int64_t table_columns(const rotation *r)
{
    return r->halves ? r->size / 2 : r->size;
}

/* A constant of floats that is [length, columns] among ones, with equal halves if it is for all of a head.
 * rows: a dim for heads lies between these. */
static const grt_tensor *rotary_table_of(const ir_value *value, const rotation *r, bool rows)
{
    const int64_t length = r->length, size = table_columns(r);
    const grt_tensor *t = value ? value->type.data : NULL;
    const int32_t at = t ? t->rank - (rows ? 3 : 2) : 0;
    if (!t || !grt_dtype_in(t->dtype, GRT_SET_FLOATS) || t->rank < 2 || t->rank > 4 ||
        grt_tensor_elements(t) != length * size || t->dims[t->rank - 1] != size ||
        (at < 0 ? length != 1 : t->dims[at] != length))
        return NULL;
    const char *row = t->data;
    const size_t half = (size_t)(size / 2) * grt_dtype_size(t->dtype);
    for (int64_t i = 0; i < length && !r->halves; i++, row += 2 * half)
        if (memcmp(row, row + half, half))
            return NULL;
    return t;
}

static bool known_dims(rotation *r, const grt_dims *dims, const ir_type *out)
{
    const grt_dim *dim = out->dims;
    if (!grt_dim_is_const(dims, dim[0], &r->batch))
        r->batch = 1; /* the node's table is repeated for the batch of the run */
    if (!grt_dim_is_const(dims, dim[r->rows ? 1 : 2], &r->length))
        r->length = 0;
    return grt_dim_is_const(dims, dim[r->rows ? 2 : 1], &r->heads) &&
           grt_dim_is_const(dims, dim[3], &r->size) && r->heads > 0 && r->size >= 2 && r->size % 2 == 0;
}

enum { MOST_TABLE_STEPS = 8 };

/* What a table is made of step by step: of concat(a, a) along its last dim, by steps that treat all elements
 * alike. */
typedef struct table_steps {
    ir_value *half;                        /* a */
    const ir_node *node[MOST_TABLE_STEPS]; /* from the last one back */
    int32_t n;
} table_steps;

static bool has_equal_halves(const ir_value *value, table_steps *steps)
{
    double c;
    for (steps->n = 0; steps->n < MOST_TABLE_STEPS && value && value->producer; steps->n++) {
        const ir_node *node = value->producer;
        if (rewrite_is(node, "Concat")) {
            steps->half = ir_in(node, 0);
            return node->n_in == 2 && ir_in(node, 0) == ir_in(node, 1) &&
                   grt_axis(grt_attr_int(&node->desc, "axis", 0), value->type.rank) == value->type.rank - 1;
        }
        const bool scaled = rewrite_is(node, "Mul") && ir_const_float(ir_in(node, 1), &c);
        if (!scaled && !rewrite_is(node, "Cos") && !rewrite_is(node, "Sin") && !rewrite_is(node, "Cast"))
            return false;
        steps->node[steps->n] = node;
        value = ir_in(node, 0);
    }
    return false;
}

/* [batch, sequence, size] of a computed table that turns a value of that type as it is: the table has one
 * head, and, if `rows`, heads behind positions. */
static ir_value *made_table_of(const ir_value *value, const ir_type *x, const rotation *r)
{
    const bool rows = r->rows;
    const ir_node *node = value ? value->producer : NULL;
    if (!node || !node->row || !(node->row->flags & OP_VIEW) || value->type.rank != 4 ||
        value->type.dtype != x->dtype)
        return NULL;
    ir_value *table = ir_in(node, 0);
    const int32_t heads = rows ? 2 : 1, length = rows ? 1 : 2;
    const grt_dims *dims = value->graph->module->dims;
    const grt_dim *to = value->type.dims, *from = table->type.dims;
    const bool fits = table->type.rank == 3 && grt_dim_equals(dims, to[heads], 1) && from[0] == to[0] &&
                      from[1] == to[length] && from[2] == to[3] && from[1] == x->dims[length] &&
                      grt_dim_equals(dims, from[2], table_columns(r)) &&
                      (from[0] == x->dims[0] || grt_dim_equals(dims, from[0], 1));
    table_steps steps;
    return fits && (r->halves || has_equal_halves(table, &steps)) ? table : NULL;
}

/* A table beside a value whose dims are the result's, or exchanged. */
static bool find_tables(rotation *r, spot cos, spot sin, const ir_type *out)
{
    const bool cos_rows = r->rows != cos.swapped, sin_rows = r->rows != sin.swapped;
    r->cos = r->batch > 0 && r->length > 0 ? rotary_table_of(cos.value, r, cos_rows) : NULL;
    r->sin = r->cos ? rotary_table_of(sin.value, r, sin_rows) : NULL;
    if (r->sin)
        return true;
    if (cos.swapped || sin.swapped)
        return false;
    r->made_cos = made_table_of(cos.value, out, r);
    r->made_sin = made_table_of(sin.value, out, r);
    return r->made_cos && r->made_sin;
}

/* The Add's operands: a = x * cos, b = turned x * sin. */
static bool match(rotation *r, ir_value *a, ir_value *b, const ir_type *out)
{
    spot at_a = {a, false}, at_b = {b, false};
    ir_node *plain = inner_at(&at_a, "Mul"), *turned = inner_at(&at_b, "Mul");
    for (int i = 0; plain && turned && i < 2; i++) {
        r->x = half_turn_of(input_at(turned, i, at_b.swapped), r->size);
        for (int k = 0; r->x.value && k < 2; k++)
            if (same_spot(rotary_source_of(input_at(plain, k, at_a.swapped)), r->x) &&
                find_tables(r, input_at(plain, 1 - k, at_a.swapped), input_at(turned, 1 - i, at_b.swapped),
                            out))
                return true;
    }
    return false;
}

/* x and the table, where the value is table * a half of x; else x.value is NULL. */
static spot turned_half(const rotation *r, spot at, bool high, spot *out_table)
{
    const spot none = {NULL, false};
    ir_node *mul = inner_at(&at, "Mul");
    for (int32_t i = 0; mul && i < 2; i++) {
        const spot x = rotary_half_of(r, input_at(mul, i, at.swapped), high);
        *out_table = input_at(mul, 1 - i, at.swapped);
        if (x.value)
            return x;
    }
    return none;
}

/* What is joined: low * cos - high * sin, high * cos + low * sin. */
static bool match_halves(rotation *r, ir_value *const *joined, const ir_type *out)
{
    spot at_low = {joined[0], false}, at_high = {joined[1], false};
    const ir_node *low = inner_at(&at_low, "Sub"), *high = inner_at(&at_high, "Add");
    spot cos, sin, other_cos, other_sin;
    r->halves = true;
    r->x = low && high ? turned_half(r, input_at(low, 0, at_low.swapped), false, &cos) : (spot){NULL, false};
    if (!r->x.value || !same_spot(turned_half(r, input_at(low, 1, at_low.swapped), true, &sin), r->x))
        return false;
    for (int32_t i = 0; i < 2; i++)
        if (same_spot(turned_half(r, input_at(high, i, at_high.swapped), true, &other_cos), r->x) &&
            same_spot(turned_half(r, input_at(high, 1 - i, at_high.swapped), false, &other_sin), r->x) &&
            same_spot(cos, other_cos) && same_spot(sin, other_sin))
            return find_tables(r, cos, sin, out);
    return false;
}

static bool match_either_halves(rotation *r, ir_value *const *joined, const ir_type *out)
{
    if (match_halves(r, joined, out))
        return true;
    r->in_turns = true;
    return match_halves(r, joined, out);
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
        memcpy(to, (const char *)table->data + (size_t)(i % r->length) * (r->halves ? 1 : 2) * half, half);
    return ir_constant(graph, NULL, cache);
}

/* The left half of a table that is computed: its steps are done to the half. */
static ir_value *half_of(ir_node *before, const rotation *r, ir_value *table)
{
    table_steps steps;
    if (r->halves)
        return table;
    if (!has_equal_halves(table, &steps))
        return NULL;
    ir_value *x = steps.half;
    for (int32_t i = steps.n - 1; i >= 0 && x; i--) {
        const ir_node *like = steps.node[i];
        ir_node *node = rotary_add_node(before, like->desc.op, like->n_in, (ir_value *[]){x, ir_in(like, 1)});
        if (!node)
            return NULL;
        ir_attrs_copy(node, like);
        x = op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
    }
    return x;
}

/* [batch, sequence, heads * size] of [batch, sequence, heads, size]. */
static ir_node *flattened(ir_node *before, ir_value *x, int64_t heads, int64_t size)
{
    return rotary_reshape(before, x, (int64_t[]){0, 0, heads * size}, 3);
}

/* [batch, sequence, heads, size] again. */
static ir_value *unflattened(ir_node *before, ir_value *flat, int64_t heads, int64_t size)
{
    ir_node *split = rotary_reshape(before, flat, (int64_t[]){0, 0, heads, size}, 4);
    return split ? split->out[0] : NULL;
}

/* x with its first half in front of the second, which took turns. */
static ir_value *out_of_turns(ir_node *before, ir_value *x, int64_t size)
{
    ir_node *pairs = rotary_reshape(before, x, (int64_t[]){0, 0, 0, size / 2, 2}, 5);
    ir_node *turned = pairs ? rotary_add_node(before, "Transpose", 1, pairs->out) : NULL;
    if (!turned)
        return NULL;
    ir_attr_set_ints(turned, "perm", (int64_t[]){0, 1, 2, 4, 3}, 5);
    if (op_infer_node(turned) != GRT_OK)
        return NULL;
    ir_node *whole = rotary_reshape(before, turned->out[0], (int64_t[]){0, 0, 0, size}, 4);
    return whole ? whole->out[0] : NULL;
}

/* The rotation of x in front of `last`; its result has the shape of last's. */
static ir_value *rotary_rotated(pass_context *context, ir_node *last, const rotation *r)
{
    const bool rows = r->rows != r->x.swapped; /* x is [batch, sequence, heads, size] */
    ir_value *cos = r->made_cos ? half_of(last, r, r->made_cos) : cache_of(r, r->cos, last->graph);
    ir_value *sin = r->made_sin ? half_of(last, r, r->made_sin) : cache_of(r, r->sin, last->graph);
    ir_value *x = r->in_turns ? out_of_turns(last, r->x.value, r->size) : r->x.value;
    ir_node *join = x && rows ? flattened(last, x, r->heads, r->size) : NULL;
    if (!cos || !sin || !x || (rows && !join))
        return NULL;
    ir_node *node =
        rotary_add_node(last, "RotaryEmbedding", 3, (ir_value *[]){join ? join->out[0] : x, cos, sin});
    if (!node)
        return NULL;
    if (join)
        ir_attr_set_int(node, "num_heads", r->heads);
    if (!rotary_widen(node) || op_infer_node(node) != GRT_OK || !rewrite_supported(context, node, NULL))
        return NULL;
    ir_value *y = join ? unflattened(last, node->out[0], r->heads, r->size) : node->out[0];
    return y && r->x.swapped ? rotary_exchanged(last, y) : y;
}

/* Who reads the batch alone of what was transposed reads it of what that was. */
static void read_batch_of(ir_value *x, ir_value *rows)
{
    for (ir_use *use = x->uses, *next; use; use = next) {
        next = use->next;
        if (rewrite_is(use->node, "Shape") && grt_attr_int(&use->node->desc, "start", 0) == 0 &&
            grt_attr_int(&use->node->desc, "end", 0) == 1)
            ir_node_set_input(use->node, use->index, rows);
    }
}

/* A rotation that is one node already goes in front of the transpose to heads. */
static void move_forward(pass_context *context, ir_node *node)
{
    ir_value *x = ir_in(node, 0);
    ir_value *rows = x->type.rank == 4 ? untransposed(x) : NULL;
    const grt_dims *dims = node->graph->module->dims;
    int64_t heads, size;
    if (!rows || !rewrite_is_read_once(x) || !grt_dim_is_const(dims, x->type.dims[1], &heads) ||
        !grt_dim_is_const(dims, x->type.dims[3], &size) || heads * size <= 0)
        return;
    ir_node *join = flattened(node, rows, heads, size);
    if (!join)
        return;
    ir_value *in[] = {join->out[0], ir_in(node, 1), ir_in(node, 2), ir_in(node, 3)};
    ir_node *made = rotary_add_node(node, "RotaryEmbedding", in[3] ? 4 : 3, in);
    if (!made)
        return;
    ir_attrs_copy(made, node);
    ir_attr_set_int(made, "num_heads", heads);
    if (op_infer_node(made) != GRT_OK || !rewrite_supported(context, made, NULL))
        return; /* unused nodes are dead */
    ir_value *y = unflattened(node, made->out[0], heads, size);
    y = y ? rotary_exchanged(node, y) : NULL;
    if (y && rewrite_same_shape(&y->type, &node->out[0]->type) && rewrite_replace(node->out[0], y)) {
        ir_node_remove(node);
        read_batch_of(x, rows);
        context->changed++;
    }
}

/* x has the result's dims, once it is exchanged as the result is. */
static bool has_dims_of(spot x, const ir_type *out)
{
    return x.swapped ? is_exchanged(&x.value->type, out) : rewrite_same_shape(&x.value->type, out);
}

/* Finds the rotation that makes a value of that type: the sum of both terms, or both joined. */
static bool find_rotation(rotation *r, const grt_dims *dims, ir_value *const *terms, bool joined,
                          const ir_type *out)
{
    ir_value *const other[] = {terms[1], terms[0]};
    for (int rows = 0; rows < 2; rows++) {
        *r = (rotation){.rows = rows != 0};
        if (!known_dims(r, dims, out))
            continue;
        if (joined ? match_either_halves(r, terms, out)
                   : match(r, terms[0], terms[1], out) || match(r, other[0], other[1], out))
            return has_dims_of(r->x, out);
    }
    return false;
}

/* What the terms are, rotated in front of the node; NULL if they are no rotation. Unused nodes are dead. */
static ir_value *rotation_of_terms(pass_context *context, ir_node *node, ir_value *const *terms, bool joined,
                                   const ir_type *out)
{
    rotation r;
    if (out->rank != 4 || !grt_dtype_in(out->dtype, GRT_SET_FLOATS) ||
        !find_rotation(&r, context->module->dims, terms, joined, out))
        return NULL;
    ir_value *made = rotary_rotated(context, node, &r);
    return made && rewrite_same_shape(&made->type, out) ? made : NULL;
}

static void rotary_look(pass_context *context, ir_node *node, bool joined)
{
    ir_value *const terms[] = {ir_in(node, 0), ir_in(node, 1)};
    ir_value *made = rotation_of_terms(context, node, terms, joined, &node->out[0]->type);
    if (made && rewrite_replace(node->out[0], made)) {
        ir_node_remove(node);
        context->changed++;
    }
}

/* The type of both joined along the last of four dims. False if they cannot be halves. */
static bool type_of_pair(grt_dims *dims, ir_value *const *pair, grt_dim *to, ir_type *out)
{
    if (!rewrite_producer(pair[0], "Sub") || !rewrite_producer(pair[1], "Add") || pair[0]->type.rank != 4 ||
        !rewrite_same_shape(&pair[0]->type, &pair[1]->type))
        return false;
    memcpy(to, pair[0]->type.dims, 4 * sizeof *to);
    to[3] = grt_dim_mulc(dims, to[3], 2);
    *out = pair[0]->type;
    out->dims = to;
    return true;
}

/* Both halves that follow each other from input i on, rotated; NULL if they are none. */
static ir_value *rotation_from(pass_context *context, ir_node *concat, int32_t i)
{
    if (i + 1 >= concat->n_in)
        return NULL;
    ir_value *const pair[] = {ir_in(concat, i), ir_in(concat, i + 1)};
    grt_dim to[4];
    ir_type type;
    return type_of_pair(context->module->dims, pair, to, &type)
               ? rotation_of_terms(context, concat, pair, true, &type)
               : NULL;
}

/* Halves that are joined with what is not rotated of a head at once. Inputs close up in one sweep. */
static void look_among_joined(pass_context *context, ir_node *concat)
{
    int32_t n = 0;
    for (int32_t i = 0; i < concat->n_in; i++) {
        ir_value *made = rotation_from(context, concat, i);
        if (made || n < i)
            ir_node_set_input(concat, n, made ? made : ir_in(concat, i));
        i += made != NULL;
        n++;
    }
    context->changed += concat->n_in - n;
    ir_node_drop_inputs(concat, n);
}

static bool joins_heads(const ir_node *node)
{
    return rewrite_is(node, "Concat") && node->n_in > 1 && node->out[0]->type.rank == 4 &&
           grt_axis(grt_attr_int(&node->desc, "axis", 0), 4) == 3;
}

static void rotary_visit(pass_context *context, ir_node *node)
{
    const bool joined = joins_heads(node);
    if (joined && node->n_in > 2)
        look_among_joined(context, node);
    else if (joined || rewrite_is(node, "Add"))
        rotary_look(context, node, joined);
    else if (rewrite_is(node, "RotaryEmbedding") && !rotary_before_repeats(context, node))
        move_forward(context, node);
}

grt_status pass_rotary(pass_context *context)
{
    return rewrite_each_node(context, rotary_visit);
}
