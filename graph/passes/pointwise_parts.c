/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/pointwise_parts.h"

#include "graph/ir/view.h"
#include "graph/passes/index_map.h"
#include "src/base/pointwise_parts.h"

enum {
    VECTOR = 8,       /* elements: shorter pieces than these cost more than a copy that can have them whole */
    LEAST_BYTES = 32, /* of a range: memory is read by so many */
    LONG = 256, /* elements of a range that may begin anywhere: all of its vectors but the ends lie in it */
    MOST_STEPS = 24,   /* of a chain that is looked at */
    MOST_READERS = 64, /* of a value, which are looked at for each of them */
};

static bool only_groups_read(const ir_value *value)
{
    if (!value->n_uses || value->n_uses > MOST_READERS || rewrite_is_output(value))
        return false;
    for (const ir_use *use = value->uses; use; use = use->next)
        if (!use->node || use->graph != value->graph || use->node->mark < 0)
            return false;
    return true;
}

/* True if something is copied on the way from the source. */
static bool is_copied(const ir_value *value, const ir_value *source)
{
    for (int32_t i = 0; value != source && value->producer && i < MOST_STEPS; i++) {
        if (!ir_is_view(value->producer))
            return true;
        value = ir_in(value->producer, 0);
    }
    return false;
}

static bool elements_of(const grt_dims *dims, const ir_type *type, int64_t *out)
{
    *out = 1;
    for (int32_t k = 0; k < type->rank; k++) {
        int64_t size;
        if (!grt_dim_is_const(dims, type->dims[k], &size) || size <= 0 || *out > INT64_MAX / size)
            return false;
        *out *= size;
    }
    return true;
}

/* A map as ranges: elements of one, and from the beginning of one to the next. One range: all of the source.
 */
typedef struct ranges {
    int64_t offset, length, pitch;
} ranges;

/* Ranges that begin anywhere are read element by element, but by neighbouring threads, and the copy would be
 * moved so, too. */
static bool is_read_well(const ranges *r, grt_dtype dtype)
{
    const bool whole = r->offset % VECTOR == 0 && r->length % VECTOR == 0 && r->pitch % VECTOR == 0;
    return whole ? r->length * (int64_t)grt_dtype_size(dtype) >= LEAST_BYTES : r->length >= LONG;
}

static bool ranges_of(const grt_dims *dims, const index_map *map, const index_part *parts, int32_t n,
                      ranges *r)
{
    int64_t stride;
    if (n < 1 || n > 2 || !grt_dim_is_const(dims, parts[n - 1].stride, &stride) || stride != 1 ||
        !grt_dim_is_const(dims, parts[n - 1].size, &r->length) ||
        !grt_dim_is_const(dims, map->offset, &r->offset))
        return false;
    const bool known = n == 2 ? grt_dim_is_const(dims, parts[0].stride, &r->pitch)
                              : elements_of(dims, &map->source->type, &r->pitch);
    return known && r->offset >= 0 && r->pitch > r->length && r->offset <= r->pitch - r->length &&
           is_read_well(r, map->source->type.dtype);
}

/* The axis of the value whose elements, and those of the axes behind it, are a range. */
static bool find_axis(const grt_dims *dims, const ir_type *type, const ranges *r, pointwise_part *out)
{
    int64_t inner = 1, size;
    for (int32_t k = type->rank; k-- > 0; inner *= size) {
        if (!grt_dim_is_const(dims, type->dims[k], &size) || size <= 0 || size > r->length / inner)
            return false;
        if (inner * size != r->length)
            continue;
        out->axis = k;
        out->size = r->pitch / inner;
        out->start = r->offset / inner;
        return size >= PW_LEAST_PART && r->pitch % inner == 0 && r->offset % inner == 0;
    }
    return false;
}

bool pointwise_part_of(ir_value *value, pointwise_part *out)
{
    grt_dims *dims = value->graph->module->dims;
    index_map map;
    ranges r;
    if (!value->producer || value->type.kind != GRT_KIND_TENSOR || value->type.rank < 1 ||
        !only_groups_read(value) || !index_map_of(value, &map, NULL) || map.source == value ||
        map.source->graph != value->graph || map.source->type.data || !is_copied(value, map.source))
        return false;
    out->source = map.source;
    map.n = index_parts_join(dims, map.parts, map.n);
    return ranges_of(dims, &map, map.parts, map.n, &r) && find_axis(dims, &value->type, &r, out);
}

ir_value *pointwise_part_source(ir_node *before, const ir_value *value, const pointwise_part *part)
{
    grt_dim to[GRT_MAX_RANK];
    for (int32_t k = 0; k < value->type.rank; k++)
        to[k] =
            k == part->axis ? grt_dim_const(before->graph->module->dims, part->size) : value->type.dims[k];
    return rewrite_reshaped(before, part->source, value->type.rank, to);
}

bool pointwise_is_joined(const ir_value *value)
{
    const ir_node *concat = rewrite_producer(value, "Concat");
    const grt_dims *dims = value->graph->module->dims;
    const int32_t last = value->type.rank - 1;
    if (!concat || concat->graph != value->graph || concat->n_in < 2 || concat->n_in > PW_MOST_JOINED ||
        last < 0 || grt_axis(grt_attr_int(&concat->desc, "axis", 0), last + 1) != last ||
        ir_is_view(concat) || !only_groups_read(value))
        return false;
    for (int32_t i = 0; i < concat->n_in; i++) {
        const ir_value *part = ir_in(concat, i);
        int64_t size;
        if (!part || part->type.rank != last + 1 || !grt_dim_is_const(dims, part->type.dims[last], &size) ||
            size <= 0 || size % VECTOR)
            return false;
    }
    return true;
}
