/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/index_map.h"

#include "graph/passes/rewrite.h"

#include <string.h>

enum { MOST_MOVES = 24 }; /* of a chain that is followed, so that a pass stays linear */

static grt_dim one(grt_dims *dims)
{
    return grt_dim_const(dims, 1);
}

static bool index_map_is_one(const grt_dims *dims, grt_dim dim)
{
    return grt_dim_equals(dims, dim, 1);
}

static bool index_map_add_part(index_map *map, grt_dim size, grt_dim stride, int32_t axis)
{
    if (map->n == INDEX_MAP_PARTS)
        return false;
    map->parts[map->n++] = (index_part){size, stride, axis};
    return true;
}

bool index_map_of_dims(grt_dims *dims, int32_t rank, const grt_dim *sizes, index_map *map)
{
    grt_dim stride = one(dims), strides[INDEX_MAP_PARTS];
    if (rank < 0 || rank > INDEX_MAP_PARTS)
        return false;
    *map = (index_map){.offset = grt_dim_const(dims, 0), .rank = rank};
    for (int32_t i = rank - 1; i >= 0; i--) {
        if (grt_dim_equals(dims, sizes[i], 0))
            return false;
        strides[i] = stride;
        stride = grt_dim_mul(dims, stride, sizes[i]);
    }
    for (int32_t i = 0; i < rank; i++)
        if (!index_map_is_one(dims, sizes[i]))
            index_map_add_part(map, sizes[i], strides[i], i);
    return true;
}

/* The map of a value onto itself. False if its shape is not known or it has too many parts: then the
 * map's content is undefined. */
static bool index_map_identity(ir_value *value, index_map *map)
{
    const ir_type *type = &value->type;
    if (type->kind != GRT_KIND_TENSOR ||
        !index_map_of_dims(value->graph->module->dims, type->rank, type->dims, map))
        return false;
    map->source = value;
    return true;
}

/* ---- reshape ---- */

/* True if `inner` goes on where a step of `outer` begins, so that both are one loop. */
static bool follows(grt_dims *dims, const index_part *outer, const index_part *inner)
{
    return outer->stride == grt_dim_mul(dims, inner->size, inner->stride);
}

int32_t index_parts_join(grt_dims *dims, index_part *parts, int32_t n)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++) {
        if (kept && follows(dims, &parts[kept - 1], &parts[i])) {
            parts[kept - 1].size = grt_dim_mul(dims, parts[kept - 1].size, parts[i].size);
            parts[kept - 1].stride = parts[i].stride;
        } else {
            parts[kept++] = parts[i];
        }
    }
    return kept;
}

bool index_map_divide(grt_dims *dims, grt_dim a, grt_dim b, grt_dim *out)
{
    int64_t x, y;
    if (grt_dim_is_const(dims, a, &x) && grt_dim_is_const(dims, b, &y)) {
        if (y <= 0 || x % y)
            return false;
        *out = grt_dim_const(dims, x / y);
        return true;
    }
    *out = grt_dim_divide_exact(dims, a, b);
    return grt_dim_mul(dims, *out, b) == a;
}

/* Takes parts of `size` in all from the end of the `*n` in `from`; they are put in front of those in `to`. */
static bool take_axis(grt_dims *dims, index_part *from, int32_t *n, grt_dim size, int32_t axis,
                      index_part *to, int32_t *first)
{
    grt_dim rest;
    while (!index_map_is_one(dims, size)) {
        index_part *last = *n ? &from[*n - 1] : NULL;
        if (!last || *first == 0)
            return false;
        index_part *taken = &to[--*first];
        *taken = (index_part){last->size, last->stride, axis};
        if (last->size == size) {
            --*n;
            return true;
        }
        if (index_map_divide(dims, size, last->size, &rest)) {
            --*n;
            size = rest;
        } else if (index_map_divide(dims, last->size, size, &rest)) {
            taken->size = size;
            last->stride = grt_dim_mul(dims, last->stride, size);
            last->size = rest;
            return true;
        } else {
            return false;
        }
    }
    return true;
}

bool index_map_reshape(grt_dims *dims, index_map *map, int32_t rank, const grt_dim *to)
{
    index_part made[INDEX_MAP_PARTS];
    int32_t n = index_parts_join(dims, map->parts, map->n), first = INDEX_MAP_PARTS;
    for (int32_t axis = rank - 1; axis >= 0; axis--)
        if (!take_axis(dims, map->parts, &n, to[axis], axis, made, &first))
            return false;
    if (n)
        return false;
    map->rank = rank;
    map->n = INDEX_MAP_PARTS - first;
    memcpy(map->parts, made + first, (size_t)map->n * sizeof *made);
    return true;
}

/* ---- the other moves ---- */

bool index_map_transpose(index_map *map, const int64_t *perm)
{
    index_part made[INDEX_MAP_PARTS];
    int32_t n = 0;
    for (int32_t axis = 0; axis < map->rank; axis++)
        for (int32_t i = 0; i < map->n; i++)
            if (map->parts[i].axis == perm[axis]) {
                made[n] = map->parts[i];
                made[n++].axis = axis;
            }
    if (n != map->n)
        return false;
    memcpy(map->parts, made, (size_t)n * sizeof *made);
    return true;
}

/* Size of an axis as the map has it. */
static grt_dim axis_size(grt_dims *dims, const index_map *map, int32_t axis)
{
    grt_dim size = one(dims);
    for (int32_t i = 0; i < map->n; i++)
        if (map->parts[i].axis == axis)
            size = grt_dim_mul(dims, size, map->parts[i].size);
    return size;
}

bool index_map_expand(grt_dims *dims, index_map *map, int32_t rank, const grt_dim *to)
{
    index_map made = {.source = map->source, .offset = map->offset, .rank = rank};
    const int32_t more = rank - map->rank;
    if (more < 0)
        return false;
    for (int32_t axis = 0; axis < rank; axis++) {
        const grt_dim size = axis < more ? one(dims) : axis_size(dims, map, axis - more);
        if (size != to[axis]) {
            if (!index_map_is_one(dims, size) ||
                !index_map_add_part(&made, to[axis], grt_dim_const(dims, 0), axis))
                return false;
            continue;
        }
        for (int32_t i = 0; i < map->n; i++)
            if (map->parts[i].axis == axis - more &&
                !index_map_add_part(&made, map->parts[i].size, map->parts[i].stride, axis))
                return false;
    }
    *map = made;
    return true;
}

int32_t index_map_axis(grt_dims *dims, const index_map *map, int32_t axis, index_part *out)
{
    int32_t n = 0;
    for (int32_t i = 0; i < map->n; i++)
        if (map->parts[i].axis == axis)
            out[n++] = map->parts[i];
    return index_parts_join(dims, out, n);
}

bool index_map_single(grt_dims *dims, const index_map *map, int32_t axis, index_part *out)
{
    index_part parts[INDEX_MAP_PARTS];
    const int32_t n = index_map_axis(dims, map, axis, parts);
    *out = n ? parts[0] : (index_part){one(dims), grt_dim_const(dims, 0), axis};
    return n <= 1;
}

bool index_map_is_whole(grt_dims *dims, const index_map *map)
{
    index_map flat = *map, source;
    const int32_t n = index_parts_join(dims, flat.parts, flat.n);
    if (!grt_dim_equals(dims, map->offset, 0) || !index_map_identity(map->source, &source))
        return false;
    const int32_t m = index_parts_join(dims, source.parts, source.n);
    return n == m && n <= 1 &&
           (!n ||
            (flat.parts[0].size == source.parts[0].size && flat.parts[0].stride == source.parts[0].stride));
}

/* `size` elements of an axis from `start` on, `step` apart. The axis vanishes if `size` is 1. */
static bool take_range(grt_dims *dims, index_map *map, int32_t axis, int64_t start, int64_t step,
                       grt_dim size)
{
    index_part part;
    if (start < 0 || step < 1 || !index_map_single(dims, map, axis, &part))
        return false;
    index_map made = {.source = map->source,
                      .offset = grt_dim_add(dims, map->offset, grt_dim_mulc(dims, part.stride, start)),
                      .rank = map->rank};
    bool done = index_map_is_one(dims, size);
    for (int32_t i = 0; i < map->n; i++) {
        if (map->parts[i].axis != axis) {
            if (map->parts[i].axis > axis && !done) {
                done = true;
                index_map_add_part(&made, size, grt_dim_mulc(dims, part.stride, step), axis);
            }
            index_map_add_part(&made, map->parts[i].size, map->parts[i].stride, map->parts[i].axis);
        }
    }
    if (!done)
        index_map_add_part(&made, size, grt_dim_mulc(dims, part.stride, step), axis);
    *map = made;
    return true;
}

/* ---- nodes ---- */

/* Start of a range: counted from the end where negative; false if that is not known. */
static bool absolute(const grt_dims *dims, grt_dim size, int64_t *start)
{
    int64_t n;
    if (*start >= 0)
        return true;
    if (!grt_dim_is_const(dims, size, &n) || *start < -n)
        return false;
    *start += n;
    return true;
}

static bool step_slice(grt_dims *dims, const ir_node *node, const ir_value *value, index_map *map)
{
    (void)value;
    const int64_t *starts, *axes = NULL, *steps = NULL;
    int64_t n, m;
    const ir_type *in = &ir_in(node, 0)->type, *out = &node->out[0]->type;
    if (!ir_const_ints(ir_in(node, 1), &starts, &n) ||
        (ir_in(node, 3) && (!ir_const_ints(ir_in(node, 3), &axes, &m) || m != n)) ||
        (ir_in(node, 4) && (!ir_const_ints(ir_in(node, 4), &steps, &m) || m != n)))
        return false;
    for (int64_t i = 0; i < n; i++) {
        const int64_t axis = axes ? grt_axis(axes[i], in->rank) : i;
        int64_t start = starts[i], size;
        if (axis < 0 || axis >= in->rank || !absolute(dims, in->dims[axis], &start))
            return false;
        if (start == 0 && (!steps || steps[i] == 1) && in->dims[axis] == out->dims[axis])
            continue;
        if (start && grt_dim_is_const(dims, in->dims[axis], &size) && start >= size)
            return false;
        if (!take_range(dims, map, (int32_t)axis, start, steps ? steps[i] : 1, out->dims[axis]))
            return false;
    }
    return true;
}

/* Parts whose place is found by adding up those before. Lists of more are branches (pass `batch_branches`).
 */
enum { MOST_SPLIT = 256 };

static bool step_split(grt_dims *dims, const ir_node *node, const ir_value *value, index_map *map)
{
    const ir_type *in = &ir_in(node, 0)->type;
    const int64_t axis = grt_axis(grt_attr_int(&node->desc, "axis", 0), in->rank);
    int64_t start = 0, size;
    if (axis < 0 || value->out_index >= MOST_SPLIT)
        return false;
    for (int32_t i = 0; i < value->out_index; i++) {
        const ir_value *part = node->out[i];
        if (!part || part->type.rank != in->rank || !grt_dim_is_const(dims, part->type.dims[axis], &size))
            return false;
        start += size;
    }
    return take_range(dims, map, (int32_t)axis, start, 1, value->type.dims[axis]);
}

/* One index, or some that follow each other. */
static bool step_gather(grt_dims *dims, const ir_node *node, const ir_value *value, index_map *map)
{
    (void)value;
    const ir_type *in = &ir_in(node, 0)->type, *out = &node->out[0]->type;
    const ir_value *indices = ir_in(node, 1);
    const int64_t *index;
    int64_t n, size = 0;
    const int64_t axis = grt_axis(grt_attr_int(&node->desc, "axis", 0), in->rank);
    if (axis < 0 || !indices || indices->type.rank > 1 || !ir_const_ints(indices, &index, &n) || n < 1)
        return false;
    int64_t start = index[0];
    if (!absolute(dims, in->dims[axis], &start) || start > INT64_MAX - n ||
        (grt_dim_is_const(dims, in->dims[axis], &size) && start + n > size) ||
        !rewrite_are_neighbours(node, index, n, start, size))
        return false;
    if (!take_range(dims, map, (int32_t)axis, start, 1, grt_dim_const(dims, n)))
        return false;
    return indices->type.rank == 1 || index_map_reshape(dims, map, out->rank, out->dims);
}

static bool step_transpose(grt_dims *dims, const ir_node *node, const ir_value *value, index_map *map)
{
    (void)dims, (void)value;
    size_t n;
    const int64_t *perm = grt_attr_ints(&node->desc, "perm", &n);
    int64_t reversed[INDEX_MAP_PARTS];
    for (int32_t i = 0; i < map->rank; i++)
        reversed[i] = map->rank - 1 - i;
    return (!perm || n == (size_t)map->rank) && index_map_transpose(map, perm ? perm : reversed);
}

/* A step from the map of a node's input 0 to that of `value`, one of its outputs. */
typedef bool map_step(grt_dims *dims, const ir_node *node, const ir_value *value, index_map *map);

static bool step_reshape(grt_dims *dims, const ir_node *node, const ir_value *value, index_map *map)
{
    return rewrite_is(node, "Identity") || index_map_reshape(dims, map, value->type.rank, value->type.dims);
}

static bool step_expand(grt_dims *dims, const ir_node *node, const ir_value *value, index_map *map)
{
    (void)node;
    return index_map_expand(dims, map, value->type.rank, value->type.dims);
}

/* Each of these ops moves elements in a way of its own; views do in one way. */
static const struct {
    const char *op;
    map_step *apply;
} steps[] = {{"Transpose", step_transpose},
             {"Expand", step_expand},
             {"Slice", step_slice},
             {"Split", step_split},
             {"Gather", step_gather}};

/* NULL if the node does not move elements. */
static map_step *step_of(const ir_node *node)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (rewrite_is(node, steps[i].op))
            return steps[i].apply;
    return rewrite_has(node, OP_VIEW) ? step_reshape : NULL;
}

static bool apply_node(grt_dims *dims, const ir_node *node, const ir_value *value, index_map *map)
{
    const ir_type *out = &value->type;
    if (out->kind != GRT_KIND_TENSOR || out->rank < 0 || out->rank > INDEX_MAP_PARTS)
        return false;
    map_step *step = step_of(node);
    return step && step(dims, node, value, map);
}

/* x of x * c or x / c with a scalar constant c, which multiplies *scale. */
static ir_value *index_map_unscaled(const ir_node *node, double *scale)
{
    double c;
    const bool div = rewrite_is(node, "Div");
    if (!div && !rewrite_is(node, "Mul"))
        return NULL;
    for (int32_t i = 0; i < (div ? 1 : 2); i++) {
        ir_value *x = ir_in(node, i);
        if (ir_const_float(ir_in(node, 1 - i), &c) && c != 0 &&
            rewrite_same_shape(&x->type, &node->out[0]->type)) {
            *scale *= div ? 1 / c : c;
            return x;
        }
    }
    return NULL;
}

bool index_map_of(ir_value *value, index_map *map, double *scale)
{
    ir_value *chain[MOST_MOVES + 1] = {value};
    double scales[MOST_MOVES + 1] = {1}; /* between chain[i] and chain[0] */
    int32_t n = 0;
    grt_dims *dims = value->graph->module->dims;
    for (const ir_node *node = value->producer; node && n < MOST_MOVES; node = chain[n]->producer) {
        double factor = 1;
        ir_value *x = step_of(node) ? ir_in(node, 0) : scale ? index_map_unscaled(node, &factor) : NULL;
        if (!x || node->graph != value->graph)
            break;
        chain[++n] = x;
        scales[n] = scales[n - 1] * factor;
    }
    /* From the farthest source that allows all moves behind it. */
    while (n > 0) {
        int32_t i = n;
        bool ok = index_map_identity(chain[n], map);
        while (ok && i > 0) {
            const ir_node *node = chain[--i]->producer;
            ok = !step_of(node) || apply_node(dims, node, chain[i], map);
        }
        if (ok)
            break;
        n = n == i ? i - 1 : i;
    }
    if (scale)
        *scale *= scales[n];
    return n > 0 || index_map_identity(value, map);
}

bool index_map_onto(ir_value *value, ir_value *source, index_map *map)
{
    ir_value *chain[MOST_MOVES + 1] = {value};
    int32_t n = 0;
    while (chain[n] != source) {
        const ir_node *node = chain[n]->producer;
        ir_value *x = node && node->graph == value->graph && step_of(node) ? ir_in(node, 0) : NULL;
        if (!x || n == MOST_MOVES)
            return false;
        chain[++n] = x;
    }
    bool ok = index_map_identity(source, map);
    for (int32_t i = n; ok && i > 0; i--)
        ok = apply_node(value->graph->module->dims, chain[i - 1]->producer, chain[i - 1], map);
    return ok;
}
