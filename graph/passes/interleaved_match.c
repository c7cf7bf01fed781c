/* SPDX-License-Identifier: Apache-2.0 */
/* Finding what an Add or a Reshape rotates: see interleaved_rotary.c for the forms. */
#include "graph/ir/constant.h"
#include "graph/passes/interleaved_rotary.h"
#include "graph/passes/rewrite.h"

enum { RANK = INTERLEAVED_RANK, LAST = INTERLEAVED_LAST };

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

bool interleaved_match(neighbours *r, const ir_node *node)
{
    if (rewrite_is(node, "Add"))
        return match_sum(r, ir_in(node, 0), ir_in(node, 1)) || match_sum(r, ir_in(node, 1), ir_in(node, 0));
    return match_turns(r, node);
}
