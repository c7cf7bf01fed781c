/* Rotary position embedding, as exporters write it out, becomes RotaryEmbedding:
 *
 *   x * cos + concat(-x[D/2..], x[..D/2]) * sin
 *
 * with constant tables of shape [sequence, D], whose halves are equal. Where x is transposed from [batch,
 * sequence, heads, size], the rotation is done before that, so that attention can take its inputs as they
 * were. */
#include "graph/passes/passes.h"

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
    int64_t batch, heads, length, size;
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

/* x, if the value is the part [from, to) of its last dim. */
static ir_value *part_of(const ir_value *value, int64_t from, int64_t to)
{
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

static bool fixed_dims(rotation *r, const ir_value *value)
{
    int64_t *out[4] = {&r->batch, &r->heads, &r->length, &r->size};
    for (int i = 0; i < 4; i++)
        if (!grt_dim_is_const(value->graph->module->dims, value->type.dims[i], out[i]))
            return false;
    return r->batch * r->heads * r->length > 0 && r->size >= 2 && r->size % 2 == 0;
}

/* The Add's operands: a = x * cos, b = turned x * sin. */
static bool match(rotation *r, const ir_value *a, const ir_value *b)
{
    ir_node *plain = inner(a, "Mul"), *turned = inner(b, "Mul");
    for (int i = 0; plain && turned && i < 2; i++) {
        r->x = half_turn_of(ir_in(turned, i), r->size);
        r->sin = r->x ? table_of(ir_in(turned, 1 - i), r->length, r->size) : NULL;
        for (int k = 0; r->sin && k < 2; k++)
            if (ir_in(plain, k) == r->x && (r->cos = table_of(ir_in(plain, 1 - k), r->length, r->size)))
                return true;
    }
    return false;
}

/* ---- replacing ---- */

/* [batch, length, size / 2]: the left half of the table, for every batch. */
static ir_value *cache_of(const rotation *r, const grt_tensor *table, ir_graph *graph)
{
    grt_arena *arena = graph->module->arena;
    grt_tensor t = {.dtype = table->dtype, .rank = 3, .dims = {r->batch, r->length, r->size / 2}};
    const size_t half = (size_t)(r->size / 2) * grt_dtype_size(t.dtype);
    char *to = grt_arena_alloc(arena, grt_tensor_bytes(&t));
    t.data = to;
    for (int64_t i = 0; to && i < r->batch * r->length; i++, to += half)
        memcpy(to, (const char *)table->data + (size_t)(i % r->length) * 2 * half, half);
    const grt_tensor *kept = t.data ? grt_arena_memdup(arena, &t, sizeof t) : NULL;
    return kept ? ir_constant(graph, NULL, kept) : NULL;
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

static const int64_t swap_heads[] = {0, 2, 1, 3};

/* [batch, sequence, heads, size], where x was transposed from that. */
static ir_value *untransposed(const ir_value *x)
{
    ir_node *node = rewrite_producer(x, "Transpose");
    size_t n;
    const int64_t *perm = node ? grt_attr_ints(&node->desc, "perm", &n) : NULL;
    return perm && n == 4 && !memcmp(perm, swap_heads, sizeof swap_heads) ? ir_in(node, 0) : NULL;
}

/* The rotation of x in front of `last`; its result has the shape of last's. */
static ir_value *rotated(pass_context *context, ir_node *last, const rotation *r)
{
    ir_value *cos = cache_of(r, r->cos, last->graph), *sin = cache_of(r, r->sin, last->graph);
    ir_value *flat = untransposed(r->x);
    ir_node *join = flat ? reshape(last, flat, (int64_t[]){0, 0, r->heads * r->size}, 3) : NULL;
    if (!cos || !sin || (flat && !join))
        return NULL;
    ir_node *node =
        add_node(last, "RotaryEmbedding", 3, (ir_value *[]){join ? join->out[0] : r->x, cos, sin});
    if (!node)
        return NULL;
    if (join)
        ir_attr_set_int(node, "num_heads", r->heads);
    if (op_infer_node(node) != GRT_OK || !rewrite_supported(context, node, NULL))
        return NULL;
    if (!join)
        return node->out[0];
    ir_node *split = reshape(last, node->out[0], (int64_t[]){0, 0, r->heads, r->size}, 4);
    ir_node *back = split ? add_node(last, "Transpose", 1, &split->out[0]) : NULL;
    if (!back)
        return NULL;
    ir_attr_set_ints(back, "perm", swap_heads, 4);
    return op_infer_node(back) == GRT_OK ? back->out[0] : NULL;
}

static void look(pass_context *context, ir_node *node)
{
    rotation r = {0};
    const ir_type *out = &node->out[0]->type;
    if (out->rank != 4 || !grt_dtype_in(out->dtype, GRT_SET_FLOATS) || !fixed_dims(&r, node->out[0]) ||
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
    IR_FOR_EACH_NODE (node, graph)
        if (rewrite_is(node, "Add"))
            look(context, node);
    return GRT_OK;
}

grt_status pass_rotary(pass_context *context)
{
    return rewrite_each_graph(context, visit);
}
