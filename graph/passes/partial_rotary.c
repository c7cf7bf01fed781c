/* SPDX-License-Identifier: Apache-2.0 */
/* Rotations of a part of each head, as exporters write them out: the part is cut off, rotated (which pass
 * rotary has found by now) and joined with the rest again. RotaryEmbedding leaves the rest as it is by
 * itself, so that attention can take what it makes as it lies. */
#include "graph/passes/rewrite.h"

#include <string.h>

enum { HEADS = 4 };

/* Elements [from, to) of the last dim of a value with heads, and whether heads and positions are exchanged
 * behind that. */
typedef struct part {
    ir_value *source;
    int64_t from, to;
    bool exchanged;
    bool rows; /* the source of what is rotated is [batch, sequence, heads, size] */
} part;

static bool exchanges(const ir_node *transpose)
{
    size_t n;
    const int64_t *perm = transpose ? grt_attr_ints(&transpose->desc, "perm", &n) : NULL;
    return perm && n == HEADS && perm[0] == 0 && perm[1] == 2 && perm[2] == 1;
}

static ir_value *unexchanged(ir_value *value, bool *exchanged)
{
    const ir_node *transpose = rewrite_is_read_once(value) ? rewrite_producer(value, "Transpose") : NULL;
    if (!exchanges(transpose))
        return value;
    *exchanged = !*exchanged;
    return ir_in(transpose, 0);
}

static bool read_part(ir_value *value, part *p)
{
    int64_t axis, step = 1, size;
    value = unexchanged(value, &p->exchanged);
    const ir_node *slice = rewrite_is_read_once(value) ? rewrite_producer(value, "Slice") : NULL;
    p->source = slice ? ir_in(slice, 0) : NULL;
    if (!p->source || p->source->type.rank != HEADS || !ir_const_int(ir_in(slice, 1), &p->from) ||
        !ir_const_int(ir_in(slice, 2), &p->to) || !ir_const_int(ir_in(slice, 3), &axis) ||
        (ir_in(slice, 4) && !ir_const_int(ir_in(slice, 4), &step)) || step != 1 ||
        grt_axis(axis, HEADS) != HEADS - 1 ||
        !grt_dim_is_const(slice->graph->module->dims, p->source->type.dims[HEADS - 1], &size))
        return false;
    p->from += p->from < 0 ? size : 0;
    p->to = p->to > size ? size : p->to < 0 ? p->to + size : p->to;
    p->source = unexchanged(p->source, &p->exchanged);
    return p->from >= 0 && p->from < p->to;
}

/* The rotation that makes the value, which has heads and positions as `out` has, or exchanged; what it
 * rotates. NULL if there is none. */
static ir_node *rotation_of(ir_value *value, part *p)
{
    value = unexchanged(value, &p->exchanged);
    ir_node *node = value->n_uses == 1 ? rewrite_producer(value, "Reshape") : NULL;
    ir_value *y = node ? ir_in(node, 0) : value;
    ir_node *rotary = y->n_uses == 1 ? rewrite_producer(y, "RotaryEmbedding") : NULL;
    ir_value *x = rotary ? ir_in(rotary, 0) : NULL;
    const ir_node *join = x && x->type.rank == 3 ? rewrite_producer(x, "Reshape") : NULL;
    if (!x || grt_attr_int(&rotary->desc, "rotary_embedding_dim", 0) ||
        (x->type.rank == 3) != (node && join) || (join && !rewrite_is_read_once(x)))
        return NULL;
    const bool behind = p->exchanged;
    if (!read_part(join ? ir_in(join, 0) : x, p))
        return NULL;
    p->rows = (join != NULL) != (p->exchanged != behind);
    return rotary;
}

static ir_value *partial_rotary_put(ir_node *before, const char *op, int32_t n, ir_value *const *in)
{
    for (int32_t i = 0; i < n; i++)
        if (!in[i])
            return NULL;
    ir_node *node = ir_node_create(before->graph, before, "", op, before->desc.name, n, in, 1);
    return node && op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

static ir_value *partial_rotary_ints(ir_node *before, const int64_t *v, int64_t n)
{
    return ir_constant_ints(before->graph, before->desc.name, v, n);
}

/* The source, cut to what is rotated or stays. */
static ir_value *partial_rotary_cut(ir_node *before, const part *p, int64_t size)
{
    if (!p->from && grt_dim_equals(before->graph->module->dims, p->source->type.dims[HEADS - 1], size))
        return p->source;
    return partial_rotary_put(before, "Slice", 4,
                              (ir_value *[]){p->source, partial_rotary_ints(before, &p->from, 1),
                                             partial_rotary_ints(before, (int64_t[]){p->from + size}, 1),
                                             partial_rotary_ints(before, (int64_t[]){HEADS - 1}, 1)});
}

/* What rotates the first `width` numbers of each head of x; heads: 0 if dims of x say. */
static ir_value *partial_rotary_rotate(pass_context *context, ir_node *before, const ir_node *rotary,
                                       ir_value *x, int64_t heads, int64_t width)
{
    ir_value *in[] = {x, ir_in(rotary, 1), ir_in(rotary, 2), ir_in(rotary, 3)};
    ir_node *node = x ? ir_node_create(before->graph, before, "", "RotaryEmbedding", before->desc.name,
                                       in[3] ? 4 : 3, in, 1)
                      : NULL;
    if (!node)
        return NULL;
    ir_attrs_copy(node, rotary);
    if (heads)
        ir_attr_set_int(node, "num_heads", heads);
    ir_attr_set_int(node, "rotary_embedding_dim", width);
    return op_infer_node(node) == GRT_OK && rewrite_supported(context, node, NULL) ? node->out[0] : NULL;
}

/* [batch, sequence, heads, size] as [batch, sequence, heads * size], rotated, and back, exchanged if the part
 * was. */
static ir_value *rotated_behind(pass_context *context, ir_node *before, const ir_node *rotary, const part *p,
                                int64_t size, int64_t width)
{
    int64_t heads;
    if (!grt_dim_is_const(before->graph->module->dims, p->source->type.dims[2], &heads))
        return NULL;
    ir_value *x =
        partial_rotary_put(before, "Reshape", 2,
                           (ir_value *[]){partial_rotary_cut(before, p, size),
                                          partial_rotary_ints(before, (int64_t[]){0, 0, heads * size}, 3)});
    ir_value *y =
        partial_rotary_put(before, "Reshape", 2,
                           (ir_value *[]){partial_rotary_rotate(context, before, rotary, x, heads, width),
                                          partial_rotary_ints(before, (int64_t[]){0, 0, heads, size}, 4)});
    if (!p->exchanged)
        return y;
    ir_node *back =
        y ? ir_node_create(before->graph, before, "", "Transpose", before->desc.name, 1, &y, 1) : NULL;
    if (!back)
        return NULL;
    ir_attr_set_ints(back, "perm", (int64_t[]){0, 2, 1, 3}, HEADS);
    return op_infer_node(back) == GRT_OK ? back->out[0] : NULL;
}

/* [batch, heads, sequence, size] as it lies, as one token has it: its exchange is a view, which is gone by
 * now. */
static ir_value *rotated_in_place(pass_context *context, ir_node *before, const ir_node *rotary,
                                  const part *p, int64_t size, int64_t width)
{
    const ir_value *x = ir_in(rotary, 0);
    return x->type.rank == HEADS && !p->exchanged
               ? partial_rotary_rotate(context, before, rotary, partial_rotary_cut(before, p, size), 0, width)
               : NULL;
}

static void join(pass_context *context, ir_node *concat)
{
    part turned = {0}, rest = {0};
    if (!rewrite_is(concat, "Concat") || concat->n_in != 2 || concat->out[0]->type.rank != HEADS ||
        grt_axis(grt_attr_int(&concat->desc, "axis", 0), HEADS) != HEADS - 1)
        return;
    const ir_node *rotary = rotation_of(ir_in(concat, 0), &turned);
    if (!rotary || !read_part(ir_in(concat, 1), &rest) || turned.source != rest.source ||
        turned.exchanged != rest.exchanged || turned.to != rest.from)
        return;
    ir_node *const previous = concat->prev;
    const int64_t size = rest.to - turned.from, width = turned.to - turned.from;
    ir_value *y = turned.rows ? rotated_behind(context, concat, rotary, &turned, size, width)
                              : rotated_in_place(context, concat, rotary, &turned, size, width);
    if (y && rewrite_same_shape(&y->type, &concat->out[0]->type) && rewrite_replace_node(concat, y)) {
        context->changed++;
        return;
    }
    while (concat->prev != previous)
        ir_node_remove(concat->prev);
}

grt_status pass_partial_rotary(pass_context *context)
{
    return rewrite_each_node(context, join);
}
