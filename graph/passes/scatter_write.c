/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/scatter_write.h"

#include <string.h>

static int64_t constant_index(const grt_tensor *t, int64_t i)
{
    return t->dtype == GRT_DTYPE_INT32 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i];
}

/* Index i into a dim: counted from the front. -1 if it is outside, or if that is not known. */
static int64_t placed_index(const grt_tensor *t, int64_t i, int64_t dim)
{
    const int64_t index = constant_index(t, i);
    if (index < 0)
        return dim < 0 || index < -dim ? -1 : index + dim;
    return dim >= 0 && index >= dim ? -1 : index;
}

/* Tuples of indices, read as a loop nest: `parts` of them, each over another dim, from the innermost to the
 * outermost. */
typedef struct nest {
    const grt_tensor *indices;
    int64_t n, depth;
    int64_t dims[GRT_MAX_RANK]; /* of data; -1: not known */
    int32_t parts;
    int64_t sizes[GRT_MAX_RANK], steps[GRT_MAX_RANK];
    int32_t axes[GRT_MAX_RANK];
} nest;

static int64_t nest_index(const nest *t, int64_t row, int64_t axis)
{
    return placed_index(t->indices, row * t->depth + axis, t->dims[axis]);
}

/* The dim in which `row` is behind the first tuple; -1 unless it is one. */
static int32_t nest_axis(const nest *t, int64_t row, int64_t *out_step)
{
    int32_t found = -1;
    for (int32_t k = 0; k < t->depth; k++) {
        const int64_t step = nest_index(t, row, k) - nest_index(t, 0, k);
        if (step && (found >= 0 || step < 0))
            return -1;
        if (step) {
            found = k;
            *out_step = step;
        }
    }
    return found;
}

/* Adds the loop over blocks of `block` tuples. */
static bool nest_add(nest *t, int64_t block)
{
    int64_t step = 0, next, size = 1;
    const int32_t axis = nest_axis(t, block, &step);
    for (int32_t i = 0; i < t->parts; i++)
        if (t->axes[i] == axis)
            return false;
    if (axis < 0 || t->parts == GRT_MAX_RANK)
        return false;
    for (size = 2; size <= (t->n - 1) / block; size++)
        if (nest_axis(t, size * block, &next) != axis || next != size * step)
            break;
    t->axes[t->parts] = axis;
    t->steps[t->parts] = step;
    t->sizes[t->parts++] = size;
    return true;
}

/* True if every tuple is where the loops say. */
static bool nest_holds(const nest *t)
{
    int64_t at[GRT_MAX_RANK] = {0}, expected[GRT_MAX_RANK];
    for (int32_t k = 0; k < t->depth; k++)
        expected[k] = nest_index(t, 0, k);
    for (int64_t row = 0; row < t->n; row++) {
        for (int32_t k = 0; k < t->depth; k++)
            if (expected[k] < 0 || nest_index(t, row, k) != expected[k])
                return false;
        for (int32_t i = 0; i < t->parts; i++) {
            expected[t->axes[i]] += t->steps[i];
            if (++at[i] < t->sizes[i])
                break;
            expected[t->axes[i]] -= t->sizes[i] * t->steps[i];
            at[i] = 0;
        }
    }
    return true;
}

static bool nest_read(nest *t)
{
    for (int64_t block = 1; block < t->n; block *= t->sizes[t->parts - 1])
        if (t->n % block || !nest_add(t, block))
            return false;
    return nest_holds(t);
}

ir_value *scatter_write_transposed(ir_node *before, ir_value *x, const int64_t *perm)
{
    ir_node *node = ir_node_create(before->graph, before, "", "Transpose", before->desc.name, 1, &x, 1);
    if (!node)
        return NULL;
    ir_attr_set_ints(node, "perm", perm, (size_t)x->type.rank);
    return op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

/* The updates of a ScatterND, whose leading dims are those of its indices, with a dim for each of data's. */
static ir_value *updates_by_dim(ir_node *node, const nest *t, const slice_box *b)
{
    ir_value *x = ir_in(node, 2);
    ir_module *module = node->graph->module;
    const int32_t rest = b->rank - (int32_t)t->depth, rank = t->parts + rest;
    grt_dim *dims = GRT_ARENA_ARRAY(module->arena, grt_dim, rank + 1),
            *final = grt_arena_memdup(module->arena, b->sizes, (size_t)b->rank * sizeof *b->sizes);
    int64_t perm[GRT_MAX_RANK];
    bool sorted = true;
    if (!dims || !final)
        return NULL;
    for (int32_t i = 0; i < t->parts; i++) { /* the outermost first */
        int32_t before = 0, part = t->parts - 1 - i;
        dims[i] = grt_dim_const(module->dims, t->sizes[part]);
        for (int32_t k = 0; k < t->parts; k++)
            before += t->axes[k] < t->axes[part];
        perm[before] = i;
        sorted = sorted && before == i;
    }
    for (int32_t i = 0; i < rest; i++) {
        dims[t->parts + i] = b->sizes[t->depth + i];
        perm[t->parts + i] = t->parts + i;
    }
    if (!sorted)
        x = rewrite_reshaped(node, x, rank, dims);
    if (x && !sorted)
        x = scatter_write_transposed(node, x, perm);
    return x ? rewrite_reshaped(node, x, b->rank, final) : NULL;
}

static bool read_scatter_nd(ir_node *node, scatter_write *out)
{
    const ir_value *data = ir_in(node, 0);
    const grt_tensor *indices = ir_in(node, 1)->type.data;
    nest t = {.indices = indices, .depth = indices->dims[indices->rank - 1]};
    t.n = grt_dims_product(indices->dims, 0, indices->rank - 1);
    if (t.n < 1 || t.depth < 1 || t.depth > data->type.rank)
        return false;
    for (int32_t k = 0; k < t.depth; k++)
        t.dims[k] = slice_box_dim(data, k);
    if (!nest_read(&t))
        return false;
    slice_box_of_all(data, &out->box);
    for (int32_t k = 0; k < t.depth; k++) {
        out->box.starts[k] = nest_index(&t, 0, k);
        out->box.sizes[k] = grt_dim_const(node->graph->module->dims, 1);
    }
    for (int32_t i = 0; i < t.parts; i++) {
        out->box.steps[t.axes[i]] = t.steps[i];
        out->box.sizes[t.axes[i]] = grt_dim_const(node->graph->module->dims, t.sizes[i]);
    }
    out->updates = updates_by_dim(node, &t, &out->box);
    return out->updates;
}

static bool read_scatter_elements(ir_node *node, scatter_write *out)
{
    const ir_value *data = ir_in(node, 0);
    const grt_tensor *indices = ir_in(node, 1)->type.data;
    const int32_t axis = (int32_t)grt_axis(grt_attr_int(&node->desc, "axis", 0), data->type.rank);
    const int64_t n = grt_tensor_elements(indices);
    if (axis < 0 || indices->rank != data->type.rank || n < 1)
        return false;
    const int64_t inner = grt_dims_product(indices->dims, axis + 1, indices->rank),
                  size = indices->dims[axis], dim = slice_box_dim(data, axis),
                  start = placed_index(indices, 0, dim),
                  step = size > 1 ? placed_index(indices, inner, dim) - start : 1;
    if (start < 0 || step < 1)
        return false;
    for (int64_t i = 0; i < n; i++)
        if (placed_index(indices, i, dim) != start + i / inner % size * step)
            return false;
    out->updates = ir_in(node, 2);
    if (out->updates->type.rank != indices->rank)
        return false;
    slice_box_of_all(out->updates, &out->box);
    for (int32_t k = 0; k < indices->rank; k++)
        if (!grt_dim_equals(slice_box_dims(data), out->box.sizes[k], indices->dims[k]) ||
            (k != axis && slice_box_dim(data, k) < indices->dims[k]))
            return false;
    out->box.starts[axis] = start;
    out->box.steps[axis] = step;
    return true;
}

bool scatter_write_read(ir_node *node, scatter_write *out)
{
    const bool nd = rewrite_is(node, "ScatterND");
    if (!nd && !rewrite_is(node, "ScatterElements"))
        return false;
    const char *reduction = grt_attr_string(&node->desc, "reduction", "none");
    const ir_value *indices = ir_in(node, 1);
    out->data = ir_in(node, 0);
    out->adds = !strcmp(reduction, "add");
    if ((strcmp(reduction, "none") && !out->adds) || out->data->type.rank < 1 || !indices->type.data ||
        indices->type.data->rank < 1 || !grt_dtype_in(indices->type.dtype, GRT_BIT(INT32) | GRT_BIT(INT64)))
        return false;
    return nd ? read_scatter_nd(node, out) : read_scatter_elements(node, out);
}
