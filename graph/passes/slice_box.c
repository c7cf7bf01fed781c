/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/slice_box.h"

#include "graph/ir/constant.h"
#include "src/base/checked.h"

#include <string.h>

void slice_box_of_all(const ir_value *value, slice_box *out)
{
    out->rank = value->type.rank;
    for (int32_t k = 0; k < out->rank; k++) {
        out->starts[k] = 0;
        out->steps[k] = 1;
        out->sizes[k] = value->type.dims[k];
    }
}

bool slice_box_equal(const slice_box *a, const slice_box *b)
{
    if (a->rank != b->rank)
        return false;
    for (int32_t k = 0; k < a->rank; k++)
        if (a->starts[k] != b->starts[k] || a->steps[k] != b->steps[k] || a->sizes[k] != b->sizes[k])
            return false;
    return true;
}

bool slice_box_within(const slice_box *outer, const slice_box *inner, slice_box *out)
{
    slice_box found = {.rank = inner->rank};
    if (outer->rank != inner->rank)
        return false;
    for (int32_t k = 0; k < inner->rank; k++) {
        int64_t offset;
        if (!grt_mul_i64(inner->starts[k], outer->steps[k], &offset) ||
            !grt_add_i64(outer->starts[k], offset, &found.starts[k]) ||
            !grt_mul_i64(inner->steps[k], outer->steps[k], &found.steps[k]))
            return false;
        found.sizes[k] = inner->sizes[k];
    }
    *out = found;
    return true;
}

void slice_box_normalise(const grt_dims *dims, slice_box *b)
{
    for (int32_t k = 0; k < b->rank; k++)
        if (grt_dim_equals(dims, b->sizes[k], 1))
            b->steps[k] = 1;
}

bool slice_box_is_all(const slice_box *b, const ir_value *value)
{
    slice_box all;
    slice_box_of_all(value, &all);
    return slice_box_equal(b, &all);
}

const grt_dims *slice_box_dims(const ir_value *value)
{
    return value->graph->module->dims;
}

/* The part of its input that a Slice takes; false if that is not known, or runs backwards. */
static bool slice_box_of_slice(const ir_node *node, slice_box *out)
{
    const ir_value *x = ir_in(node, 0);
    const int64_t *starts, *axes = NULL, *steps = NULL;
    int64_t n, n_axes, n_steps;
    if (!rewrite_is(node, "Slice") || x->type.rank < 0 || node->out[0]->type.rank != x->type.rank ||
        !ir_const_ints(ir_in(node, 1), &starts, &n) ||
        (ir_in(node, 3) && (!ir_const_ints(ir_in(node, 3), &axes, &n_axes) || n_axes != n)) ||
        (ir_in(node, 4) && (!ir_const_ints(ir_in(node, 4), &steps, &n_steps) || n_steps != n)))
        return false;
    slice_box_of_all(node->out[0], out);
    for (int64_t k = 0; k < n; k++) {
        const int64_t axis = grt_axis(axes ? axes[k] : k, out->rank), step = steps ? steps[k] : 1;
        int64_t dim = INT64_MAX, start = starts[k];
        if (axis < 0 || step < 1)
            return false;
        const bool known = grt_dim_is_const(slice_box_dims(x), x->type.dims[axis], &dim);
        if (start < 0 && !known)
            return false;
        start = start < 0 ? (start < -dim ? 0 : start + dim) : start;
        out->starts[axis] = start > dim ? dim : start;
        out->steps[axis] = step;
    }
    slice_box_normalise(slice_box_dims(x), out);
    return true;
}

bool slice_box_of_write(const ir_node *node, slice_box *out)
{
    size_t n;
    if (!node || !grt_op_is(&node->desc, "graphrt", "WriteSlice"))
        return false;
    slice_box_of_all(ir_in(node, 1), out);
    memcpy(out->starts, grt_attr_ints(&node->desc, "starts", &n), (size_t)out->rank * sizeof *out->starts);
    memcpy(out->steps, grt_attr_ints(&node->desc, "steps", &n), (size_t)out->rank * sizeof *out->steps);
    return true;
}

/* Goes from a value to what it is a slice of: *value is that then, and *at, the place in *value so far, the
 * place in that. False: it is no slice. */
static bool box_step_out(const ir_value **value, slice_box *at)
{
    slice_box cut;
    if (!(*value)->producer || !slice_box_of_slice((*value)->producer, &cut) ||
        !slice_box_within(&cut, at, at))
        return false;
    slice_box_normalise(slice_box_dims(*value), at);
    *value = ir_in((*value)->producer, 0);
    return true;
}

bool slice_box_of_part(const ir_value *part, const ir_value *whole, slice_box *out)
{
    if (part->type.rank < 0)
        return false;
    slice_box_of_all(part, out);
    for (int32_t i = 0; i < MOST_SLICES && box_step_out(&part, out); i++)
        if (part == whole)
            return true;
    return false;
}

bool slice_box_is_part(const ir_value *part, const ir_value *whole, const slice_box *where)
{
    slice_box at;
    return slice_box_of_part(part, whole, &at) && slice_box_equal(&at, where);
}

ir_value *slice_box_written(const ir_value *value, slice_box at)
{
    slice_box wrote;
    for (int32_t i = 0; i <= MOST_SLICES; i++) {
        if (slice_box_of_write(value->producer, &wrote) && slice_box_equal(&at, &wrote))
            return ir_in(value->producer, 1);
        if (!box_step_out(&value, &at))
            break;
    }
    return NULL;
}

int64_t slice_box_dim(const ir_value *value, int32_t axis)
{
    int64_t dim;
    return grt_dim_is_const(slice_box_dims(value), value->type.dims[axis], &dim) ? dim : -1;
}
