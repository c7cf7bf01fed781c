/* SPDX-License-Identifier: Apache-2.0 */
/* Where batches begin and end: values that become one, and members of it. */
#include "graph/passes/batch.h"

#include "graph/ir/constant.h"
#include "src/base/checked.h"

#include <string.h>

ir_value *batch_constants(batch *b, ir_graph *graph, ir_value *const *members)
{
    const grt_tensor *first = members[0]->type.data;
    const size_t each = grt_tensor_bytes(first);
    int64_t dims[GRT_MAX_RANK] = {b->n};
    if (first->rank >= GRT_MAX_RANK)
        return NULL;
    memcpy(dims + 1, first->dims, (size_t)first->rank * sizeof first->dims[0]);
    grt_tensor *all = ir_constant_create(graph->module, first->dtype, first->rank + 1, dims);
    if (!all)
        return NULL;
    for (int64_t i = 0; i < b->n; i++)
        memcpy((char *)all->data + (size_t)i * each, members[i]->type.data->data, each);
    return ir_constant(graph, NULL, all);
}

static bool follow_each_other(const batch *b, int64_t step, const int64_t *starts)
{
    for (int64_t i = 1; i < b->n; i++)
        if (starts[i] != starts[i - 1] + step)
            return false;
    return true;
}

/* whole[.., start .. start + size, ..] */
static ir_value *batch_cut(batch *b, ir_value *whole, int32_t axis, int64_t start, int64_t size)
{
    ir_graph *graph = b->before->graph;
    const int64_t end = start + size, along = axis;
    if (grt_dim_equals(graph->module->dims, whole->type.dims[axis], size))
        return whole;
    ir_value *in[] = {whole, ir_constant_ints(graph, b->name, &start, 1),
                      ir_constant_ints(graph, b->name, &end, 1), ir_constant_ints(graph, b->name, &along, 1)};
    return in[1] && in[2] && in[3] ? batch_finish(b, batch_make(b, "Slice", 4, in)) : NULL;
}

static ir_value *gathered(batch *b, ir_value *whole, int32_t axis, ir_value *indices)
{
    ir_node *node = indices ? batch_make(b, "Gather", 2, (ir_value *[]){whole, indices}) : NULL;
    if (node)
        ir_attr_set_int(node, "axis", axis);
    return batch_finish(b, node);
}

/* The ranges as the rows of one Gather, wherever they begin. */
static ir_value *picked(batch *b, ir_value *whole, int32_t axis, int64_t step, const int64_t *starts)
{
    int64_t *indices = GRT_ARENA_ARRAY(b->scratch, int64_t, b->n * step);
    for (int64_t i = 0; indices && i < b->n; i++)
        for (int64_t k = 0; k < step; k++)
            indices[i * step + k] = starts[i] + k;
    return indices
               ? gathered(b, whole, axis, ir_constant_ints(b->before->graph, b->name, indices, b->n * step))
               : NULL;
}

ir_value *batch_ranges(batch *b, ir_value *whole, int32_t axis, int64_t width, const int64_t *starts)
{
    const int64_t step = width ? width : 1;
    const int32_t rank = whole->type.rank;
    grt_dims *table = b->context->module->dims;
    int64_t total;
    if (!grt_mul_i64(b->n, step, &total) || rank >= GRT_MAX_RANK)
        return NULL;
    ir_value *x = follow_each_other(b, step, starts) ? batch_cut(b, whole, axis, starts[0], total)
                                                     : picked(b, whole, axis, step, starts);
    if (!x || !width)
        return batch_moved_axis(b, x, axis, 0);
    grt_dim *dims = batch_new_dims(b, rank + 1);
    for (int32_t i = 0; dims && i < rank; i++)
        dims[i < axis ? i : i + 1] = x->type.dims[i];
    if (!dims)
        return NULL;
    dims[axis] = grt_dim_const(table, b->n);
    dims[axis + 1] = grt_dim_const(table, width);
    return batch_moved_axis(b, batch_reshaped(b, x, rank + 1, dims), axis, 0);
}

ir_value *batch_part(batch *b, ir_value *value, int32_t axis, int64_t start, int64_t width)
{
    if (width)
        return batch_cut(b, value, axis + 1, start, width);
    return gathered(b, value, axis + 1, ir_constant_int(b->before->graph, b->name, start));
}

ir_value *batch_join(batch *b, ir_value *value, int32_t axis)
{
    const int32_t rank = value->type.rank - 1;
    ir_value *x = batch_moved_axis(b, value, 0, axis);
    grt_dim *dims = batch_new_dims(b, rank);
    for (int32_t i = 0; dims && i < rank; i++)
        dims[i] = value->type.dims[i + 1];
    if (!x || !dims)
        return NULL;
    dims[axis] = grt_dim_mulc(b->context->module->dims, dims[axis], b->n);
    return batch_reshaped(b, x, rank, dims);
}

ir_value *batch_reduce(batch *b, ir_value *value, const char *op, ir_value *start)
{
    const int64_t first = 0;
    ir_value *in[] = {value, ir_constant_ints(b->before->graph, b->name, &first, 1)};
    ir_node *node = in[1] ? batch_make(b, op, 2, in) : NULL;
    if (node)
        ir_attr_set_int(node, "keepdims", 0);
    ir_value *made = batch_finish(b, node);
    return start ? batch_binary(b, "Add", start, made) : made;
}

ir_value *batch_member(batch *b, ir_value *value, int64_t i)
{
    return gathered(b, value, 0, ir_constant_int(b->before->graph, b->name, i));
}
