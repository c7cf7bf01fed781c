/* SPDX-License-Identifier: Apache-2.0 */
/* Joined slices: a Concat that puts all of one value together again, in another order, is one move.
 *
 *   Concat(x[s:], x[:s])                      ->  graphrt::Roll, along more than one axis as one
 *   Concat(x[0::2, 0::2], x[1::2, 0::2], ...) ->  Reshape, Transpose, Reshape
 *
 * The first is how exporters write torch.roll, as windows that shift need it, the second how patches are
 * merged and images are cut into phases. */
#include "graph/passes/permutation.h"
#include "graph/passes/slice_box.h"

#include <string.h>

enum { MOST_JOINED = 64 };

/* What a Concat joins: parts of `source`, all of it. */
typedef struct joined {
    ir_node *node;
    ir_value *source;
    int32_t axis, n;
    slice_box boxes[MOST_JOINED];
} joined;

static bool find_boxes(joined *j, ir_value *source)
{
    for (int32_t i = 0; i < j->n; i++)
        if (!slice_box_of_part(ir_in(j->node, i), source, &j->boxes[i]))
            return false;
    j->source = source;
    return true;
}

/* The nearest value that all are slices of; false if there is none with the same rank and known dims. */
static bool find_source(ir_node *node, joined *j)
{
    const ir_type *out = &node->out[0]->type;
    if (!rewrite_is(node, "Concat") || node->n_in < 2 || node->n_in > MOST_JOINED || out->rank < 1)
        return false;
    *j = (joined){.node = node,
                  .axis = (int32_t)grt_axis(grt_attr_int(&node->desc, "axis", 0), out->rank),
                  .n = node->n_in};
    ir_value *value = ir_in(node, 0);
    for (int32_t i = 0; i < MOST_SLICES && value && rewrite_producer(value, "Slice"); i++) {
        value = ir_in(value->producer, 0);
        if (value->graph == node->graph && value->type.rank == out->rank && find_boxes(j, value))
            return true;
    }
    return false;
}

/* ---- rolls ---- */

/* The part behind `shift`, and the part before it. */
static bool is_roll(const joined *j, int64_t *shift)
{
    const slice_box *first = &j->boxes[0], *second = &j->boxes[1];
    int64_t size;
    if (j->n != 2 || !rewrite_same_shape(&j->source->type, &j->node->out[0]->type) ||
        !grt_dim_is_const(slice_box_dims(j->source), second->sizes[j->axis], &size))
        return false;
    for (int32_t k = 0; k < first->rank; k++)
        if (first->steps[k] != 1 || second->steps[k] != 1 || second->starts[k] ||
            (k != j->axis && first->starts[k]))
            return false;
    *shift = size;
    return size > 0 && first->starts[j->axis] == size && size < slice_box_dim(j->source, j->axis);
}

/* The value as one that was rolled by `shifts` already, if that is what it is, and not along the axis. */
static ir_value *before_roll(ir_value *x, int32_t axis, int64_t *shifts)
{
    const ir_node *node = x->producer;
    size_t n;
    const int64_t *earlier = node && node->graph == x->graph && grt_op_is(&node->desc, "graphrt", "Roll")
                                 ? grt_attr_ints(&node->desc, "shifts", &n)
                                 : NULL;
    if (!earlier || earlier[axis])
        return x;
    memcpy(shifts, earlier, n * sizeof *shifts);
    return ir_in(node, 0);
}

static ir_value *rolled(const pass_context *context, const joined *j, int64_t shift)
{
    int64_t shifts[GRT_MAX_RANK] = {0};
    ir_value *x = before_roll(j->source, j->axis, shifts);
    ir_node *made = ir_node_create(j->node->graph, j->node, "graphrt", "Roll", j->node->desc.name, 1, &x, 1);
    if (!made)
        return NULL;
    shifts[j->axis] = shift;
    ir_attr_set_ints(made, "shifts", shifts, (size_t)x->type.rank);
    if (op_infer_node(made) == GRT_OK && rewrite_supported(context, made, NULL))
        return made->out[0];
    ir_node_remove(made);
    return NULL;
}

/* ---- phases ---- */

/* Axes that are cut by steps, the one whose phases change fastest from part to part first. */
typedef struct phase_axes {
    int32_t n, axis[GRT_MAX_RANK];
    int64_t step[GRT_MAX_RANK];
} phase_axes;

/* Part i starts at phase i / (steps of the axes before) mod step of each axis. */
static bool has_phases(const joined *j, const phase_axes *axes)
{
    for (int32_t i = 0; i < j->n; i++) {
        int64_t starts[GRT_MAX_RANK] = {0}, rest = i;
        for (int32_t k = 0; k < axes->n; k++) {
            starts[axes->axis[k]] = rest % axes->step[k];
            rest /= axes->step[k];
        }
        if (rest || memcmp(starts, j->boxes[i].starts, (size_t)j->boxes[i].rank * sizeof *starts) ||
            memcmp(j->boxes[i].steps, j->boxes[0].steps, (size_t)j->boxes[0].rank * sizeof *starts))
            return false;
    }
    return true;
}

/* The order is that in which the parts' starts begin to move. */
static bool find_phase_axes(const joined *j, phase_axes *axes)
{
    int64_t parts = 1;
    axes->n = 0;
    for (int32_t i = 1; i < j->n; i *= (int32_t)axes->step[axes->n - 1]) {
        int32_t moved = -1;
        for (int32_t k = 0; k < j->boxes[i].rank; k++)
            if (j->boxes[i].starts[k] && moved < 0)
                moved = k;
        if (moved < 0 || moved == j->axis || axes->n == GRT_MAX_RANK || j->boxes[i].steps[moved] < 2 ||
            j->boxes[i].steps[moved] > j->n)
            return false;
        axes->axis[axes->n] = moved;
        axes->step[axes->n++] = j->boxes[i].steps[moved];
        parts *= j->boxes[i].steps[moved];
    }
    return parts == j->n && has_phases(j, axes);
}

/* Every axis is all there: a part's size times the step. */
static bool takes_all(const joined *j, const phase_axes *axes)
{
    grt_dims *dims = j->source->graph->module->dims;
    for (int32_t a = 0; a < j->boxes[0].rank; a++) {
        int64_t step = 1;
        for (int32_t k = 0; k < axes->n; k++)
            step = axes->axis[k] == a ? axes->step[k] : step;
        if (j->boxes[0].steps[a] != step && step != 1)
            return false;
        for (int32_t i = 0; i < j->n; i++)
            if (grt_dim_mulc(dims, j->boxes[i].sizes[a], step) != j->source->type.dims[a])
                return false;
    }
    return true;
}

static ir_value *phases_first(const joined *j, const phase_axes *axes)
{
    const ir_type *out = &j->node->out[0]->type;
    grt_dims *dims = j->source->graph->module->dims;
    permutation p = {0};
    int32_t whole[GRT_MAX_RANK], phase[GRT_MAX_RANK], n = 0;
    for (int32_t a = 0; a < out->rank; a++) {
        phase[a] = -1;
        whole[a] = p.n;
        p.dims[p.n++] = j->boxes[0].sizes[a];
        for (int32_t k = 0; k < axes->n; k++)
            if (axes->axis[k] == a) {
                phase[a] = p.n;
                p.dims[p.n++] = grt_dim_const(dims, axes->step[k]);
            }
    }
    for (int32_t a = 0; a < out->rank; a++) {
        for (int32_t k = axes->n - 1; a == j->axis && k >= 0; k--)
            p.perm[n++] = phase[axes->axis[k]];
        p.perm[n++] = whole[a];
    }
    return permutation_apply(j->node, j->source, &p, out->rank, out->dims);
}

static void joined_slices_look(pass_context *context, ir_node *node)
{
    joined j;
    phase_axes axes;
    int64_t shift;
    ir_value *y = NULL;
    if (!find_source(node, &j))
        return;
    if (is_roll(&j, &shift))
        y = rolled(context, &j, shift);
    else if (find_phase_axes(&j, &axes) && takes_all(&j, &axes))
        y = phases_first(&j, &axes);
    if (y && rewrite_replace_node(node, y))
        context->changed++;
}

static void joined_slices_visit(pass_context *context, ir_node *node)
{
    if (node->n_out == 1 && node->out[0])
        joined_slices_look(context, node);
}

grt_status pass_joined_slices(pass_context *context)
{
    return rewrite_each_node(context, joined_slices_visit);
}
