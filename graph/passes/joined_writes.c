/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/joined_writes.h"

#include "graph/ir/constant.h"

#include <string.h>

static ir_value *concat(const pass_context *context, ir_node *before, ir_value **parts, int32_t n,
                        int32_t axis)
{
    ir_node *made =
        ir_node_create(before->graph, before, "", "Concat", before->desc.name, (size_t)n, parts, 1);
    if (!made)
        return NULL;
    ir_attr_set_int(made, "axis", axis);
    return rewrite_offered(context, made);
}

/* What makes the value in the same graph; Identities are passed over. NULL: nothing does. */
static const ir_node *writes_maker(const ir_node *reader, const ir_value *value)
{
    const ir_node *node = value->producer;
    while (rewrite_is(node, "Identity"))
        node = ir_in(node, 0)->producer;
    return node && node->graph == reader->graph ? node : NULL;
}

/* True if the box is all of the value but along `axis`, where its elements follow each other. */
static bool is_cut_along(const slice_box *b, const ir_value *value, int32_t axis)
{
    for (int32_t k = 0; k < b->rank; k++)
        if (b->steps[k] != 1 || (k != axis && (b->starts[k] || b->sizes[k] != value->type.dims[k])))
            return false;
    return true;
}

/* ---- into what was padded ---- */

/* The only amount that the node pads with a constant; false if there are others, or it pads otherwise. */
static bool only_padding(const ir_node *pad, int32_t rank, int32_t *out_at, int64_t *out_amount)
{
    const int64_t *pads;
    int64_t n;
    *out_amount = 0;
    if (!rewrite_is(pad, "Pad") || strcmp(grt_attr_string(&pad->desc, "mode", "constant"), "constant") != 0 ||
        ir_in(pad, 3) || !ir_const_ints(ir_in(pad, 1), &pads, &n) || n != 2 * (int64_t)rank)
        return false;
    for (int32_t i = 0; i < 2 * rank; i++)
        if (pads[i]) {
            if (*out_amount)
                return false;
            *out_at = i;
            *out_amount = pads[i];
        }
    return *out_amount > 0;
}

/* What is padded and the updates, where all that was added is written over. */
static ir_value *join_padded(const pass_context *context, ir_node *before, const scatter_write *u)
{
    const int32_t rank = u->box.rank;
    const ir_node *pad = writes_maker(before, u->data);
    int32_t at;
    int64_t amount;
    if (!pad || !only_padding(pad, rank, &at, &amount))
        return NULL;
    const int32_t axis = at % rank;
    const bool front = at < rank;
    if (!is_cut_along(&u->box, u->data, axis) ||
        u->box.starts[axis] != (front ? 0 : slice_box_dim(u->data, axis) - amount) ||
        !grt_dim_equals(slice_box_dims(u->data), u->box.sizes[axis], amount))
        return NULL;
    ir_value *x = ir_in(pad, 0);
    return concat(context, before, (ir_value *[]){front ? u->updates : x, front ? x : u->updates}, 2, axis);
}

/* ---- side by side ---- */

enum { MOST_WRITES = 8 };

/* Updates along an axis, from the front to the back. They do not overlap. */
typedef struct written {
    int32_t n, axis;
    ir_value *parts[MOST_WRITES];
    int64_t starts[MOST_WRITES], sizes[MOST_WRITES], total;
} written;

/* The axis along which the box is not all of the value; -1 if it is all, or more such axes than one. */
static int32_t cut_axis(const slice_box *b, const ir_value *value)
{
    int32_t found = -1;
    for (int32_t k = 0; k < b->rank; k++)
        if (b->sizes[k] != value->type.dims[k]) {
            if (found >= 0)
                return -1;
            found = k;
        }
    return found;
}

/* False if the box is no such part, or one of those there are overlaps it. */
static bool writes_add_part(written *w, const ir_value *data, const slice_box *b, ir_value *part)
{
    int64_t size;
    int32_t at = 0;
    if (w->n == MOST_WRITES || !is_cut_along(b, data, w->axis) ||
        !grt_dim_is_const(slice_box_dims(data), b->sizes[w->axis], &size))
        return false;
    const int64_t start = b->starts[w->axis];
    if (size < 1 || start < 0 || start > slice_box_dim(data, w->axis) - size)
        return false;
    while (at < w->n && w->starts[at] < start)
        at++;
    if ((at > 0 && w->starts[at - 1] + w->sizes[at - 1] > start) ||
        (at < w->n && start + size > w->starts[at]))
        return false;
    for (int32_t i = w->n++; i > at; i--) {
        w->parts[i] = w->parts[i - 1];
        w->starts[i] = w->starts[i - 1];
        w->sizes[i] = w->sizes[i - 1];
    }
    w->parts[at] = part;
    w->starts[at] = start;
    w->sizes[at] = size;
    w->total += size;
    return true;
}

/* The updates of writes of writes, where nothing is left of what they are written to. */
static ir_value *join_beside(const pass_context *context, ir_node *before, const scatter_write *u)
{
    written w = {.axis = cut_axis(&u->box, u->data)};
    slice_box box = u->box;
    ir_value *part = u->updates;
    if (w.axis < 0)
        return NULL;
    const int64_t whole = slice_box_dim(u->data, w.axis);
    for (const ir_value *data = u->data; writes_add_part(&w, u->data, &box, part);) {
        if (w.total == whole)
            return concat(context, before, w.parts, w.n, w.axis);
        const ir_node *write = writes_maker(before, data);
        if (!slice_box_of_write(write, &box))
            return NULL;
        data = ir_in(write, 0);
        part = ir_in(write, 1);
    }
    return NULL;
}

ir_value *joined_writes(const pass_context *context, ir_node *before, const scatter_write *u)
{
    ir_value *made = join_padded(context, before, u);
    return made ? made : join_beside(context, before, u);
}
