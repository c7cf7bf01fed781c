/* SPDX-License-Identifier: Apache-2.0 */
/* Writing into a slice of a tensor, which exporters write as ScatterND or ScatterElements with an index for
 * every row or element, becomes what it is: the updates themselves where the slice is the whole tensor, Pad
 * where the rest is one constant, Concat where all of it is written, else graphrt::WriteSlice. A slice that
 * is read after it was written is what was written, and one that is written back as it is changes nothing; so
 * `x[:, 1:][..., 1:] += y`, a write for each pair of brackets, becomes one. */
#include "graph/ir/constant.h"
#include "graph/passes/joined_writes.h"
#include "graph/passes/scatter_write.h"

#include <string.h>

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
    return identity ? x : scatter_write_transposed(before, x, all);
}

/* torch.export writes along the first dim, between transposes that bring the dim to the front and back. The
 * update is then of what was transposed, and `perm` (room for a rank) brings its result into the order of the
 * node's. False, with nothing changed, where that saves none. */
static bool move_before_transpose(ir_node *node, scatter_write *u, int64_t *perm)
{
    const ir_node *user = rewrite_only_user(node->out[0]), *before = u->data->producer;
    int64_t back[GRT_MAX_RANK];
    if (!before || !transpose_perm(before, perm) || !rewrite_is(user, "Transpose"))
        return false;
    const slice_box b = u->box;
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
static ir_value *join_writes(scatter_write *u)
{
    slice_box inner;
    while (slice_box_of_write(u->data->producer, &inner) && slice_box_equal(&inner, &u->box))
        u->data = ir_in(u->data->producer, 0);
    for (;;) {
        if (slice_box_is_part(u->updates, u->data, &u->box) ||
            slice_box_written(u->data, u->box) == u->updates)
            return u->data;
        const ir_node *write = u->updates->producer;
        if (!slice_box_of_write(write, &inner) || !slice_box_is_part(ir_in(write, 0), u->data, &u->box) ||
            !slice_box_within(&u->box, &inner, &u->box))
            return NULL;
        slice_box_normalise(slice_box_dims(u->data), &u->box);
        u->updates = ir_in(write, 1);
    }
    return NULL;
}

/* The box of data; data itself if that is all of it. */
static ir_value *slice_to_add_to(const pass_context *context, ir_node *before, const scatter_write *u)
{
    const int32_t rank = u->box.rank;
    int64_t ends[GRT_MAX_RANK], axes[GRT_MAX_RANK], size;
    if (slice_box_is_all(&u->box, u->data))
        return u->data;
    for (int32_t k = 0; k < rank; k++) {
        const bool known = grt_dim_is_const(slice_box_dims(u->data), u->box.sizes[k], &size);
        if (!known && u->box.sizes[k] != u->data->type.dims[k])
            return NULL;
        ends[k] = known ? u->box.starts[k] + (size - 1) * u->box.steps[k] + 1 : INT64_MAX;
        axes[k] = k;
    }
    ir_graph *graph = before->graph;
    ir_value *in[] = {u->data, ir_constant_ints(graph, NULL, u->box.starts, rank),
                      ir_constant_ints(graph, NULL, ends, rank), ir_constant_ints(graph, NULL, axes, rank),
                      ir_constant_ints(graph, NULL, u->box.steps, rank)};
    return rewrite_offered(context, ir_node_create(graph, before, "", "Slice", before->desc.name, 5, in, 1));
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

static ir_value *write_padded(const pass_context *context, ir_node *before, const scatter_write *u)
{
    const int32_t rank = u->box.rank;
    int64_t pads[2 * GRT_MAX_RANK], size;
    for (int32_t k = 0; k < rank; k++) {
        if (u->box.steps[k] != 1 || !grt_dim_is_const(slice_box_dims(u->data), u->box.sizes[k], &size) ||
            slice_box_dim(u->data, k) < 0)
            return NULL;
        pads[k] = u->box.starts[k];
        pads[rank + k] = slice_box_dim(u->data, k) - pads[k] - size;
    }
    ir_value *rest = only_element(u->data);
    ir_value *in[] = {u->updates, ir_constant_ints(before->graph, NULL, pads, 2 * rank), rest};
    if (!rest)
        return NULL;
    return rewrite_offered(context,
                           ir_node_create(before->graph, before, "", "Pad", before->desc.name, 3, in, 1));
}

static ir_value *write_box(const pass_context *context, ir_node *before, const scatter_write *u)
{
    ir_value *in[] = {u->data, u->updates};
    ir_node *made =
        ir_node_create(before->graph, before, "graphrt", "WriteSlice", before->desc.name, 2, in, 1);
    if (!made)
        return NULL;
    ir_attr_set_ints(made, "starts", u->box.starts, (size_t)u->box.rank);
    ir_attr_set_ints(made, "steps", u->box.steps, (size_t)u->box.rank);
    return rewrite_offered(context, made);
}

/* The value of the update; NULL if the target cannot compute it. */
static ir_value *updated(const pass_context *context, ir_node *before, scatter_write *u)
{
    if (u->adds) {
        ir_value *old = slice_to_add_to(context, before, u);
        ir_value *in[] = {old, u->updates};
        u->updates = old ? rewrite_offered(context, ir_node_create(before->graph, before, "", "Add",
                                                                   before->desc.name, 2, in, 1))
                         : NULL;
        u->adds = false;
        if (!u->updates)
            return NULL;
    }
    if (slice_box_is_all(&u->box, u->data))
        return u->updates;
    ir_value *made = join_writes(u);
    made = made ? made : joined_writes(context, before, u);
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
    scatter_write u = {.data = ir_in(node, 0), .updates = ir_in(node, 2)};
    if (indices->type.data || indices->type.rank != 2 || u.data->type.rank < 2 ||
        !grt_dim_equals(slice_box_dims(indices), indices->type.dims[1], 1) ||
        u.updates->type.rank != u.data->type.rank ||
        !grt_dim_is_const(slice_box_dims(indices), indices->type.dims[0], &rows) ||
        rows > slice_box_dim(u.data, 0) / LEAST_SHARE)
        return false;
    slice_box_of_all(u.updates, &u.box);
    if (!move_before_transpose(node, &u, perm))
        return false;
    ir_value *each = index_of_each(node, indices, u.updates, (int32_t)perm[0]);
    ir_value *in[] = {u.data, each, u.updates};
    ir_node *made =
        each ? ir_node_create(node->graph, node, "", "ScatterElements", node->desc.name, 3, in, 1) : NULL;
    if (made)
        ir_attr_set_int(made, "axis", perm[0]);
    ir_value *out = rewrite_offered(context, made);
    out = out ? slice_updates_in_order(node, out, perm) : NULL;
    return out && rewrite_same_shape(&out->type, &node->out[0]->type) && rewrite_take_over(node->out[0], out);
}

/* ---- the sweep ---- */

static bool replace_scatter(pass_context *context, ir_node *node)
{
    scatter_write u;
    int64_t perm[GRT_MAX_RANK];
    ir_value *result = node->out[0];
    if (!scatter_write_read(node, &u))
        return false;
    slice_box_normalise(slice_box_dims(u.data), &u.box);
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
    slice_box at;
    if (!rewrite_is(node, "Slice") || node->out[0]->type.rank < 0)
        return false;
    slice_box_of_all(node->out[0], &at);
    ir_value *updates = slice_box_written(node->out[0], at);
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
