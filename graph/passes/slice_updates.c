/* SPDX-License-Identifier: Apache-2.0 */
/* Writing into a slice of a tensor, which exporters write as ScatterND or ScatterElements with an index for
 * every row or element, becomes what it is: the updates themselves where the slice is the whole tensor, Pad
 * where the rest is one constant, else graphrt::WriteSlice. A slice that is read after it was written is what
 * was written, and one that is written back as it is changes nothing; so `x[:, 1:][..., 1:] += y`, a write
 * for each pair of brackets, becomes one. */
#include "graph/ir/constant.h"
#include "graph/passes/rewrite.h"
#include "src/base/checked.h"

#include <string.h>

enum { MOST_SLICES = 8 }; /* that are followed from a value to what it was cut out of */

/* In each dim `sizes` of a value's elements, `steps` apart. */
typedef struct box {
    int32_t rank;
    int64_t starts[GRT_MAX_RANK], steps[GRT_MAX_RANK];
    grt_dim sizes[GRT_MAX_RANK];
} box;

/* What a node writes: `updates`, which have box.sizes, into the box of `data`. */
typedef struct update {
    ir_value *data, *updates;
    box box;
    bool adds; /* to what is there */
} update;

/* ---- boxes ---- */

static void box_of_all(const ir_value *value, box *out)
{
    out->rank = value->type.rank;
    for (int32_t k = 0; k < out->rank; k++) {
        out->starts[k] = 0;
        out->steps[k] = 1;
        out->sizes[k] = value->type.dims[k];
    }
}

static bool box_equal(const box *a, const box *b)
{
    if (a->rank != b->rank)
        return false;
    for (int32_t k = 0; k < a->rank; k++)
        if (a->starts[k] != b->starts[k] || a->steps[k] != b->steps[k] || a->sizes[k] != b->sizes[k])
            return false;
    return true;
}

/* The part `inner` of the part `outer`. */
static bool box_within(const box *outer, const box *inner, box *out)
{
    box found = {.rank = inner->rank};
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

/* Steps between single elements mean nothing: boxes that are the same have the same steps. */
static void box_normalise(const grt_dims *dims, box *b)
{
    for (int32_t k = 0; k < b->rank; k++)
        if (grt_dim_equals(dims, b->sizes[k], 1))
            b->steps[k] = 1;
}

static bool box_is_all(const box *b, const ir_value *value)
{
    box all;
    box_of_all(value, &all);
    return box_equal(b, &all);
}

static const grt_dims *slice_updates_dims(const ir_value *value)
{
    return value->graph->module->dims;
}

/* The part of its input that a Slice takes; false if that is not known, or runs backwards. */
static bool box_of_slice(const ir_node *node, box *out)
{
    const ir_value *x = ir_in(node, 0);
    const int64_t *starts, *axes = NULL, *steps = NULL;
    int64_t n, n_axes, n_steps;
    if (!rewrite_is(node, "Slice") || x->type.rank < 0 || node->out[0]->type.rank != x->type.rank ||
        !ir_const_ints(ir_in(node, 1), &starts, &n) ||
        (ir_in(node, 3) && (!ir_const_ints(ir_in(node, 3), &axes, &n_axes) || n_axes != n)) ||
        (ir_in(node, 4) && (!ir_const_ints(ir_in(node, 4), &steps, &n_steps) || n_steps != n)))
        return false;
    box_of_all(node->out[0], out);
    for (int64_t k = 0; k < n; k++) {
        const int64_t axis = grt_axis(axes ? axes[k] : k, out->rank), step = steps ? steps[k] : 1;
        int64_t dim = INT64_MAX, start = starts[k];
        if (axis < 0 || step < 1)
            return false;
        const bool known = grt_dim_is_const(slice_updates_dims(x), x->type.dims[axis], &dim);
        if (start < 0 && !known)
            return false;
        start = start < 0 ? (start < -dim ? 0 : start + dim) : start;
        out->starts[axis] = start > dim ? dim : start;
        out->steps[axis] = step;
    }
    box_normalise(slice_updates_dims(x), out);
    return true;
}

/* The box of `data` that a WriteSlice writes. */
static bool box_of_write(const ir_node *node, box *out)
{
    size_t n;
    if (!node || !grt_op_is(&node->desc, "graphrt", "WriteSlice"))
        return false;
    box_of_all(ir_in(node, 1), out);
    memcpy(out->starts, grt_attr_ints(&node->desc, "starts", &n), (size_t)out->rank * sizeof *out->starts);
    memcpy(out->steps, grt_attr_ints(&node->desc, "steps", &n), (size_t)out->rank * sizeof *out->steps);
    return true;
}

/* Goes from a value to what it is a slice of: *value is that then, and *at, the place in *value so far, the
 * place in that. False: it is no slice. */
static bool box_step_out(const ir_value **value, box *at)
{
    box cut;
    if (!(*value)->producer || !box_of_slice((*value)->producer, &cut) || !box_within(&cut, at, at))
        return false;
    box_normalise(slice_updates_dims(*value), at);
    *value = ir_in((*value)->producer, 0);
    return true;
}

/* True if `part` is the slice `where` of `whole`. */
static bool box_is_part(const ir_value *part, const ir_value *whole, const box *where)
{
    box at;
    if (part->type.rank < 0)
        return false;
    box_of_all(part, &at);
    for (int32_t i = 0; i < MOST_SLICES && box_step_out(&part, &at); i++)
        if (part == whole && box_equal(&at, where))
            return true;
    return false;
}

/* The value that was written to the slice `at` of `value`, last of all; NULL if it is not known. */
static ir_value *what_was_written(const ir_value *value, box at)
{
    box wrote;
    for (int32_t i = 0; i <= MOST_SLICES; i++) {
        if (box_of_write(value->producer, &wrote) && box_equal(&at, &wrote))
            return ir_in(value->producer, 1);
        if (!box_step_out(&value, &at))
            break;
    }
    return NULL;
}

/* ---- indices ---- */

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

static int64_t known_dim(const ir_value *value, int32_t axis)
{
    int64_t dim;
    return grt_dim_is_const(slice_updates_dims(value), value->type.dims[axis], &dim) ? dim : -1;
}

static ir_value *slice_updates_transposed(ir_node *before, ir_value *x, const int64_t *perm)
{
    ir_node *node = ir_node_create(before->graph, before, "", "Transpose", before->desc.name, 1, &x, 1);
    if (!node)
        return NULL;
    ir_attr_set_ints(node, "perm", perm, (size_t)x->type.rank);
    return op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

/* The updates of a ScatterND, whose leading dims are those of its indices, with a dim for each of data's. */
static ir_value *updates_by_dim(ir_node *node, const nest *t, const box *b)
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
        x = slice_updates_transposed(node, x, perm);
    return x ? rewrite_reshaped(node, x, b->rank, final) : NULL;
}

static bool read_scatter_nd(ir_node *node, update *out)
{
    const ir_value *data = ir_in(node, 0);
    const grt_tensor *indices = ir_in(node, 1)->type.data;
    nest t = {.indices = indices, .depth = indices->dims[indices->rank - 1]};
    t.n = grt_dims_product(indices->dims, 0, indices->rank - 1);
    if (t.n < 1 || t.depth < 1 || t.depth > data->type.rank)
        return false;
    for (int32_t k = 0; k < t.depth; k++)
        t.dims[k] = known_dim(data, k);
    if (!nest_read(&t))
        return false;
    box_of_all(data, &out->box);
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

static bool read_scatter_elements(ir_node *node, update *out)
{
    const ir_value *data = ir_in(node, 0);
    const grt_tensor *indices = ir_in(node, 1)->type.data;
    const int32_t axis = (int32_t)grt_axis(grt_attr_int(&node->desc, "axis", 0), data->type.rank);
    const int64_t n = grt_tensor_elements(indices);
    if (axis < 0 || indices->rank != data->type.rank || n < 1)
        return false;
    const int64_t inner = grt_dims_product(indices->dims, axis + 1, indices->rank),
                  size = indices->dims[axis], dim = known_dim(data, axis),
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
    box_of_all(out->updates, &out->box);
    for (int32_t k = 0; k < indices->rank; k++)
        if (!grt_dim_equals(slice_updates_dims(data), out->box.sizes[k], indices->dims[k]) ||
            (k != axis && known_dim(data, k) < indices->dims[k]))
            return false;
    out->box.starts[axis] = start;
    out->box.steps[axis] = step;
    return true;
}

static bool read_scatter(ir_node *node, update *out)
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

/* ---- transposes around an update ---- */

static bool transpose_perm(const ir_node *node, int64_t *perm)
{
    size_t n;
    if (!rewrite_is(node, "Transpose") || ir_in(node, 0)->type.rank < 0)
        return false;
    const int64_t *given = grt_attr_ints(&node->desc, "perm", &n);
    const int32_t rank = ir_in(node, 0)->type.rank;
    if (given && n != (size_t)rank)
        return false;
    for (int32_t k = 0; k < rank; k++)
        perm[k] = given ? given[k] : rank - 1 - k;
    return true;
}

/* x with its dims in the order of perm; transposes in front of it are joined with that. */
static ir_value *slice_updates_in_order(ir_node *before, ir_value *x, const int64_t *perm)
{
    int64_t inner[GRT_MAX_RANK], all[GRT_MAX_RANK];
    const int32_t rank = x->type.rank;
    bool identity = true;
    memcpy(all, perm, (size_t)rank * sizeof *all);
    for (int32_t i = 0; i < MOST_SLICES && x->producer && transpose_perm(x->producer, inner); i++) {
        for (int32_t k = 0; k < rank; k++)
            all[k] = inner[all[k]];
        x = ir_in(x->producer, 0);
    }
    for (int32_t k = 0; k < rank; k++)
        identity = identity && all[k] == k;
    return identity ? x : slice_updates_transposed(before, x, all);
}

/* torch.export writes along the first dim, between transposes that bring the dim to the front and back. The
 * update is then of what was transposed, and `perm` (room for a rank) brings its result into the order of the
 * node's. False, with nothing changed, where that saves none. */
static bool move_before_transpose(ir_node *node, update *u, int64_t *perm)
{
    const ir_node *user = rewrite_only_user(node->out[0]), *before = u->data->producer;
    int64_t back[GRT_MAX_RANK];
    if (!before || !transpose_perm(before, perm) || !rewrite_is(user, "Transpose"))
        return false;
    const box b = u->box;
    for (int32_t k = 0; k < b.rank; k++)
        back[perm[k]] = k;
    ir_value *updates = slice_updates_in_order(node, u->updates, back);
    if (!updates)
        return false;
    u->updates = updates;
    u->data = ir_in(before, 0);
    for (int32_t k = 0; k < b.rank; k++) {
        u->box.starts[perm[k]] = b.starts[k];
        u->box.steps[perm[k]] = b.steps[k];
        u->box.sizes[perm[k]] = b.sizes[k];
    }
    return true;
}

/* ---- what is written ---- */

/* Writing a slice of data back that was itself written into is one write, and none if it was not. What was
 * written there before is lost. */
static ir_value *join_writes(update *u)
{
    box inner;
    while (box_of_write(u->data->producer, &inner) && box_equal(&inner, &u->box))
        u->data = ir_in(u->data->producer, 0);
    for (;;) {
        if (box_is_part(u->updates, u->data, &u->box) || what_was_written(u->data, u->box) == u->updates)
            return u->data;
        const ir_node *write = u->updates->producer;
        if (!box_of_write(write, &inner) || !box_is_part(ir_in(write, 0), u->data, &u->box) ||
            !box_within(&u->box, &inner, &u->box))
            return NULL;
        box_normalise(slice_updates_dims(u->data), &u->box);
        u->updates = ir_in(write, 1);
    }
    return NULL;
}

static ir_value *offered(const pass_context *context, ir_node *made)
{
    if (!made)
        return NULL;
    if (op_infer_node(made) == GRT_OK && rewrite_supported(context, made, NULL))
        return made->out[0];
    ir_node_remove(made);
    return NULL;
}

/* The box of data; data itself if that is all of it. */
static ir_value *slice_to_add_to(const pass_context *context, ir_node *before, const update *u)
{
    const int32_t rank = u->box.rank;
    int64_t ends[GRT_MAX_RANK], axes[GRT_MAX_RANK], size;
    if (box_is_all(&u->box, u->data))
        return u->data;
    for (int32_t k = 0; k < rank; k++) {
        const bool known = grt_dim_is_const(slice_updates_dims(u->data), u->box.sizes[k], &size);
        if (!known && u->box.sizes[k] != u->data->type.dims[k])
            return NULL;
        ends[k] = known ? u->box.starts[k] + (size - 1) * u->box.steps[k] + 1 : INT64_MAX;
        axes[k] = k;
    }
    ir_graph *graph = before->graph;
    ir_value *in[] = {u->data, ir_constant_ints(graph, NULL, u->box.starts, rank),
                      ir_constant_ints(graph, NULL, ends, rank), ir_constant_ints(graph, NULL, axes, rank),
                      ir_constant_ints(graph, NULL, u->box.steps, rank)};
    return offered(context, ir_node_create(graph, before, "", "Slice", before->desc.name, 5, in, 1));
}

/* One element that all of a constant's are equal to; NULL if they are not. */
static ir_value *only_element(ir_value *value)
{
    const grt_tensor *t = value->type.data;
    const size_t size = t ? grt_dtype_size(t->dtype) : 0;
    const int64_t n = t ? grt_tensor_elements(t) : 0;
    if (!size || n < 1 || t->dtype == GRT_DTYPE_STRING ||
        (n > 1 && memcmp(t->data, (const char *)t->data + size, size * (size_t)(n - 1)) != 0))
        return NULL;
    grt_tensor *one = ir_constant_create(value->graph->module, t->dtype, 0, NULL);
    if (!one)
        return NULL;
    memcpy(one->data, t->data, size);
    return ir_constant(value->graph, NULL, one);
}

static ir_value *write_padded(const pass_context *context, ir_node *before, const update *u)
{
    const int32_t rank = u->box.rank;
    int64_t pads[2 * GRT_MAX_RANK], size;
    for (int32_t k = 0; k < rank; k++) {
        if (u->box.steps[k] != 1 || !grt_dim_is_const(slice_updates_dims(u->data), u->box.sizes[k], &size) ||
            known_dim(u->data, k) < 0)
            return NULL;
        pads[k] = u->box.starts[k];
        pads[rank + k] = known_dim(u->data, k) - pads[k] - size;
    }
    ir_value *rest = only_element(u->data);
    ir_value *in[] = {u->updates, ir_constant_ints(before->graph, NULL, pads, 2 * rank), rest};
    if (!rest)
        return NULL;
    return offered(context, ir_node_create(before->graph, before, "", "Pad", before->desc.name, 3, in, 1));
}

static ir_value *write_box(const pass_context *context, ir_node *before, const update *u)
{
    ir_value *in[] = {u->data, u->updates};
    ir_node *made =
        ir_node_create(before->graph, before, "graphrt", "WriteSlice", before->desc.name, 2, in, 1);
    if (!made)
        return NULL;
    ir_attr_set_ints(made, "starts", u->box.starts, (size_t)u->box.rank);
    ir_attr_set_ints(made, "steps", u->box.steps, (size_t)u->box.rank);
    return offered(context, made);
}

/* The value of the update; NULL if the target cannot compute it. */
static ir_value *updated(const pass_context *context, ir_node *before, update *u)
{
    if (u->adds) {
        ir_value *old = slice_to_add_to(context, before, u);
        ir_value *in[] = {old, u->updates};
        u->updates = old ? offered(context, ir_node_create(before->graph, before, "", "Add",
                                                           before->desc.name, 2, in, 1))
                         : NULL;
        u->adds = false;
        if (!u->updates)
            return NULL;
    }
    if (box_is_all(&u->box, u->data))
        return u->updates;
    ir_value *made = join_writes(u);
    made = made ? made : write_padded(context, before, u);
    return made ? made : write_box(context, before, u);
}

/* ---- rows whose places only the run knows ---- */

/* Indices of rows as those of elements along `axis` of `updates`. */
static ir_value *index_of_each(ir_node *before, ir_value *rows, ir_value *updates, int32_t axis)
{
    ir_graph *graph = before->graph;
    const int32_t rank = updates->type.rank;
    int64_t dims[GRT_MAX_RANK];
    for (int32_t k = 0; k < rank; k++)
        dims[k] = k == axis ? -1 : 1;
    ir_value *list[] = {rows, ir_constant_ints(graph, NULL, dims, rank)};
    ir_value *line = ir_node_out(ir_node_create(graph, before, "", "Reshape", before->desc.name, 2, list, 1));
    ir_value *shape =
        ir_node_out(ir_node_create(graph, before, "", "Shape", before->desc.name, 1, &updates, 1));
    ir_value *both[] = {line, shape};
    ir_value *each = ir_node_out(ir_node_create(graph, before, "", "Expand", before->desc.name, 2, both, 1));
    return line && shape && each && op_infer_node(line->producer) == GRT_OK &&
                   op_infer_node(shape->producer) == GRT_OK && op_infer_node(each->producer) == GRT_OK
               ? each
               : NULL;
}

/* Rows at computed places, as of a cache, are written between two Transposes, too. Along the axis itself,
 * each element has an index, but the whole is not moved twice. Only where the rows are not as many. */
static bool replace_row_scatter(pass_context *context, ir_node *node)
{
    enum { LEAST_SHARE = 4 };
    int64_t perm[GRT_MAX_RANK], rows;
    if (!rewrite_is(node, "ScatterND") ||
        strcmp(grt_attr_string(&node->desc, "reduction", "none"), "none") != 0)
        return false;
    ir_value *indices = ir_in(node, 1);
    update u = {.data = ir_in(node, 0), .updates = ir_in(node, 2)};
    if (indices->type.data || indices->type.rank != 2 || u.data->type.rank < 2 ||
        !grt_dim_equals(slice_updates_dims(indices), indices->type.dims[1], 1) ||
        u.updates->type.rank != u.data->type.rank ||
        !grt_dim_is_const(slice_updates_dims(indices), indices->type.dims[0], &rows) ||
        rows > known_dim(u.data, 0) / LEAST_SHARE)
        return false;
    box_of_all(u.updates, &u.box);
    if (!move_before_transpose(node, &u, perm))
        return false;
    ir_value *each = index_of_each(node, indices, u.updates, (int32_t)perm[0]);
    ir_value *in[] = {u.data, each, u.updates};
    ir_node *made =
        each ? ir_node_create(node->graph, node, "", "ScatterElements", node->desc.name, 3, in, 1) : NULL;
    if (made)
        ir_attr_set_int(made, "axis", perm[0]);
    ir_value *out = offered(context, made);
    out = out ? slice_updates_in_order(node, out, perm) : NULL;
    return out && rewrite_same_shape(&out->type, &node->out[0]->type) && rewrite_take_over(node->out[0], out);
}

/* ---- the sweep ---- */

static bool replace_scatter(pass_context *context, ir_node *node)
{
    update u;
    int64_t perm[GRT_MAX_RANK];
    ir_value *result = node->out[0];
    if (!read_scatter(node, &u))
        return false;
    box_normalise(slice_updates_dims(u.data), &u.box);
    const bool turned = move_before_transpose(node, &u, perm);
    ir_value *made = updated(context, node, &u);
    if (made && turned)
        made = slice_updates_in_order(node, made, perm);
    if (!made || !rewrite_same_shape(&made->type, &result->type))
        return false;
    const bool is_new = turned || (made != u.data && made != u.updates);
    return is_new && made->producer && made->producer->next == node ? rewrite_take_over(result, made)
                                                                    : rewrite_replace(result, made);
}

/* A slice of what was written into just there is what was written. */
static bool replace_slice(ir_node *node)
{
    box at;
    if (!rewrite_is(node, "Slice") || node->out[0]->type.rank < 0)
        return false;
    box_of_all(node->out[0], &at);
    ir_value *updates = what_was_written(node->out[0], at);
    return updates && rewrite_replace(node->out[0], updates);
}

/* So that slices are seen through transposes between two updates. */
static bool replace_transpose(ir_node *node)
{
    int64_t perm[GRT_MAX_RANK];
    if (!transpose_perm(node, perm) || !rewrite_is(ir_in(node, 0)->producer, "Transpose"))
        return false;
    ir_value *x = slice_updates_in_order(node, ir_in(node, 0), perm);
    return x && (x->producer && x->producer->next == node ? rewrite_take_over(node->out[0], x)
                                                          : rewrite_replace(node->out[0], x));
}

static grt_status slice_updates_visit(pass_context *context, ir_graph *graph)
{
    for (ir_node *node = graph->first, *next; node; node = next) {
        const bool gone = replace_scatter(context, node) || replace_row_scatter(context, node) ||
                          replace_slice(node) || replace_transpose(node);
        next = node->next; /* another node may be gone too */
        if (gone && ir_node_is_unused(node))
            ir_node_remove(node);
        context->changed += gone;
    }
    return GRT_OK;
}

grt_status pass_slice_updates(pass_context *context)
{
    return rewrite_each_graph(context, slice_updates_visit);
}
