/* SPDX-License-Identifier: Apache-2.0 */
/* A Concat of values that a Transpose makes, which nothing else reads, moves them itself:
 *
 *   Concat(Reshape(Transpose(Reshape(x))), y)  ->  Reshape(graphrt::Concat(Reshape(x), Reshape(y)))
 *
 * so each element is read and written once. Pixels that a transposed convolution weaves come to lie beside
 * those of a skip connection so, and new keys behind those of a cache. Composed as index maps, moves are
 * known by what they do; the axes of all parts are split until those that are moved keep together. */
#include "graph/ir/view.h"
#include "graph/passes/permutation.h"
#include "graph/passes/rewrite.h"

enum { MOST_CONCAT_PARTS = 64, MOST_CHAIN = 24 };

/* The axes that all parts of a Concat have: those in front of the axis that it joins, that one, those behind.
 */
typedef struct joint_axes {
    int32_t n, at; /* at: the axis that is joined */
    index_part loops[GRT_MAX_RANK];
} joint_axes;

/* True if a kernel moves what lies between the value and its source, and is gone with the value. */
static bool moves_for_this_alone(const ir_value *value, const ir_value *source)
{
    for (int32_t i = 0; value != source && value->producer && i < MOST_CHAIN; i++) {
        if (value->n_uses != 1 || rewrite_is_output(value))
            return false;
        if (!ir_is_view(value->producer))
            return value->producer->n_out == 1;
        value = ir_in(value->producer, 0);
    }
    return false;
}

/* Parts of the map whose axes are from `first` to `last`, joined, as further loops; false: too many. */
static bool add_loops(grt_dims *dims, const index_map *map, int32_t first, int32_t last, joint_axes *to)
{
    index_part parts[INDEX_MAP_PARTS];
    int32_t n = 0;
    for (int32_t i = 0; i < map->n; i++)
        if (map->parts[i].axis >= first && map->parts[i].axis <= last)
            parts[n++] = map->parts[i];
    n = index_parts_join(dims, parts, n);
    for (int32_t i = 0; i < n && to->n < GRT_MAX_RANK; i++)
        to->loops[to->n++] = parts[i];
    return to->n < GRT_MAX_RANK;
}

static bool joint_axes_of(grt_dims *dims, const index_map *map, int32_t axis, joint_axes *out)
{
    index_part joined;
    *out = (joint_axes){0};
    if (!index_map_single(dims, map, axis, &joined) || !add_loops(dims, map, 0, axis - 1, out))
        return false;
    out->at = out->n;
    out->loops[out->n++] = joined;
    return add_loops(dims, map, axis + 1, map->rank - 1, out);
}

static bool are_joint(const joint_axes *a, const joint_axes *b)
{
    if (a->n != b->n || a->at != b->at)
        return false;
    for (int32_t i = 0; i < a->n; i++)
        if (i != a->at && a->loops[i].size != b->loops[i].size)
            return false;
    return true;
}

/* A part, read from what it was moved from; p.n is 0 if it is read as it is. */
typedef struct moved_part {
    ir_value *source;
    permutation p;
} moved_part;

/* True if the part is moved; out_axes: by these axes. */
static bool read_moved(ir_value *value, int32_t axis, joint_axes *out_axes, moved_part *out)
{
    grt_dims *dims = value->graph->module->dims;
    index_map map;
    *out = (moved_part){.source = value};
    if (!index_map_of(value, &map, NULL) || map.source == value || map.source->graph != value->graph ||
        map.source->type.data || !moves_for_this_alone(value, map.source) ||
        !grt_dim_equals(dims, map.offset, 0) || !joint_axes_of(dims, &map, axis, out_axes) ||
        !permutation_of_parts(dims, out_axes->loops, out_axes->n, map.source, &out->p)) {
        out->p.n = 0;
        return false;
    }
    out->source = map.source;
    return true;
}

/* The axes of the part that is moved by most: others may keep them together. */
static void choose_axes(const ir_node *concat, int32_t axis, joint_axes *out)
{
    *out = (joint_axes){0};
    for (int32_t i = 0; i < concat->n_in; i++) {
        joint_axes axes;
        moved_part part;
        if (read_moved(ir_in(concat, i), axis, &axes, &part) && axes.n > out->n)
            *out = axes;
    }
}

/* The source of a part under the dims that are moved. */
static ir_value *shape_part(ir_node *before, const moved_part *part, int32_t axis, const joint_axes *axes)
{
    grt_dim to[GRT_MAX_RANK];
    if (part->p.n)
        return rewrite_reshaped(before, part->source, part->p.n, part->p.dims);
    for (int32_t i = 0; i < axes->n; i++)
        to[i] = i == axes->at ? part->source->type.dims[axis] : axes->loops[i].size;
    return rewrite_reshaped(before, part->source, axes->n, to);
}

static ir_node *make_moved_concat(ir_node *before, const moved_part *parts, int32_t axis,
                                  const joint_axes *axes)
{
    int64_t perms[MOST_CONCAT_PARTS * GRT_MAX_RANK];
    ir_value *in[MOST_CONCAT_PARTS];
    for (int32_t i = 0; i < before->n_in; i++) {
        in[i] = shape_part(before, &parts[i], axis, axes);
        if (!in[i])
            return NULL;
        for (int32_t k = 0; k < axes->n; k++)
            perms[i * axes->n + k] = parts[i].p.n ? parts[i].p.perm[k] : k;
    }
    ir_node *node =
        ir_node_create(before->graph, before, "graphrt", "Concat", before->desc.name, before->n_in, in, 1);
    if (node) {
        ir_attr_set_int(node, "axis", axes->at);
        ir_attr_set_ints(node, "perms", perms, (size_t)before->n_in * (size_t)axes->n);
    }
    return node;
}

/* Reads the parts; false if none are moved, or more than one is not: each part is a kernel then, of which
 * there are to be no more than before. */
static bool read_concat_parts(const ir_node *concat, int32_t axis, moved_part *parts, joint_axes *axes)
{
    int32_t moved = 0;
    choose_axes(concat, axis, axes);
    for (int32_t i = 0; axes->n && i < concat->n_in; i++) {
        joint_axes own;
        if (read_moved(ir_in(concat, i), axis, &own, &parts[i]) && are_joint(axes, &own))
            moved++;
        else
            parts[i] = (moved_part){.source = ir_in(concat, i)};
    }
    return moved > 0 && concat->n_in <= moved + 1;
}

static void moved_parts_visit(pass_context *context, ir_node *concat)
{
    moved_part parts[MOST_CONCAT_PARTS];
    joint_axes axes;
    if (!rewrite_is(concat, "Concat") || concat->n_in > MOST_CONCAT_PARTS)
        return;
    const ir_type *type = &concat->out[0]->type;
    if (type->rank < 1)
        return;
    const int32_t axis = (int32_t)grt_axis(grt_attr_int(&concat->desc, "axis", 0), type->rank);
    if (axis < 0 || !read_concat_parts(concat, axis, parts, &axes))
        return;
    ir_value *made = rewrite_offered(context, make_moved_concat(concat, parts, axis, &axes));
    ir_value *y = made ? rewrite_reshaped(concat, made, type->rank, type->dims) : NULL;
    if (y &&
        rewrite_take_over_node(concat, y)) /* what was made is dead without users, as what moved is now */
        context->changed++;
}

grt_status pass_moved_parts(pass_context *context)
{
    return context->target->traits->merges_small_steps || rewrite_is_listed(context->enabled, "moved_parts")
               ? rewrite_each_node(context, moved_parts_visit)
               : GRT_OK;
}
