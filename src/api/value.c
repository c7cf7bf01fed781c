/* SPDX-License-Identifier: Apache-2.0 */
/* The public side of values. */
#include "src/base/structs.h"
#include "src/base/value_map.h"

#include <stdlib.h>

static grt_status box_value(grt_value made, grt_value **out_value)
{
    grt_value *value = malloc(sizeof *value);
    if (!value) {
        grt_value_clear(&made);
        return grt_fail_memory(sizeof *value);
    }
    *value = made;
    *out_value = value;
    return GRT_OK;
}

grt_status grt_value_from_tensor(const grt_tensor *tensor, grt_value **out_value)
{
    if (!tensor || !out_value || tensor->rank < 0 || tensor->rank > GRT_MAX_RANK ||
        !grt_dtype_bits(tensor->dtype))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_value_from_tensor: a NULL, no dtype, or a rank outside 0..%d", GRT_MAX_RANK);
    if (tensor->memory != GRT_MEMORY_HOST && tensor->memory != GRT_MEMORY_PINNED)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_value_from_tensor: the tensor is not in host memory");
    GRT_TRY(grt_reserved_check(tensor->reserved, sizeof tensor->reserved, "grt_tensor"));
    size_t bytes = grt_tensor_bytes(tensor);
    if (bytes == SIZE_MAX || (bytes && !tensor->data))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_value_from_tensor: the tensor has no data or no valid dims");
    grt_value made = {0};
    GRT_TRY(grt_value_copy_tensor(&made, tensor));
    return box_value(made, out_value);
}

grt_status grt_value_sequence(grt_dtype dtype, grt_value *const *items, size_t n, grt_value **out_value)
{
    if (!out_value || (n && !items) || !grt_dtype_bits(dtype))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_value_sequence: items or out_value is NULL, or no dtype");
    grt_value made = {.kind = GRT_KIND_SEQUENCE, .t = {.dtype = dtype}};
    for (size_t i = 0; i < n; i++) {
        grt_value *slot;
        grt_status status =
            items[i] ? GRT_OK
                     : grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_value_sequence: item %zu is NULL", i);
        if (status == GRT_OK && items[i]->kind == GRT_KIND_OPTIONAL)
            status = grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_value_sequence: item %zu is an optional", i);
        if (status == GRT_OK && items[i]->t.dtype != dtype)
            status = grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                              "grt_value_sequence: item %zu is of %s, the sequence of %s", i,
                              grt_dtype_name(items[i]->t.dtype), grt_dtype_name(dtype));
        if (status == GRT_OK)
            status = grt_value_insert(&made, i, &slot);
        if (status == GRT_OK)
            status = grt_value_copy(slot, items[i]);
        if (status != GRT_OK) {
            grt_value_clear(&made);
            return status;
        }
    }
    return box_value(made, out_value);
}

grt_status grt_value_optional(grt_dtype dtype, const grt_value *item, grt_value **out_value)
{
    if (!out_value || !grt_dtype_bits(dtype))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_value_optional: out_value is NULL, or no dtype");
    if (item && (item->kind >= GRT_KIND_OPTIONAL || item->t.dtype != dtype))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_value_optional: the item is a %s of %s, must be a tensor or sequence of %s",
                        grt_kind_name(item->kind), grt_dtype_name(item->t.dtype), grt_dtype_name(dtype));
    grt_value made = {.kind = GRT_KIND_OPTIONAL, .t = {.dtype = dtype}}, *slot;
    if (item) {
        grt_status status = grt_value_insert(&made, 0, &slot);
        if (status == GRT_OK)
            status = grt_value_copy(slot, item);
        if (status != GRT_OK) {
            grt_value_clear(&made);
            return status;
        }
    }
    return box_value(made, out_value);
}

static bool is_map_part(const grt_tensor *t)
{
    const size_t bytes = t && t->rank == 1 ? grt_tensor_bytes(t) : SIZE_MAX;
    return bytes != SIZE_MAX && (!bytes || t->data) &&
           (t->memory == GRT_MEMORY_HOST || t->memory == GRT_MEMORY_PINNED);
}

grt_status grt_value_map(const grt_tensor *keys, const grt_tensor *values, grt_value **out_value)
{
    if (!out_value || !is_map_part(keys) || !is_map_part(values) || keys->dims[0] != values->dims[0])
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_value_map: a NULL, or keys and values are not two tensors of one dim of one "
                        "size in host memory");
    GRT_TRY(grt_reserved_check(keys->reserved, sizeof keys->reserved, "grt_tensor"));
    GRT_TRY(grt_reserved_check(values->reserved, sizeof values->reserved, "grt_tensor"));
    grt_value made = {0};
    GRT_TRY(grt_value_make_map(&made, keys, values));
    return box_value(made, out_value);
}

void grt_value_release(grt_value *value)
{
    if (!value)
        return;
    grt_value_clear(value);
    free(value);
}

grt_kind grt_value_kind(const grt_value *value)
{
    return value ? value->kind : GRT_KIND_TENSOR;
}

grt_status grt_value_tensor(const grt_value *value, grt_tensor *out_tensor)
{
    if (!value || !out_tensor || value->kind != GRT_KIND_TENSOR)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_value_tensor: a NULL, or the value is not a tensor");
    *out_tensor = value->t;
    return GRT_OK;
}

size_t grt_value_count(const grt_value *value)
{
    return !value || value->kind == GRT_KIND_TENSOR ? 0 : value->n;
}

const grt_value *grt_value_item(const grt_value *value, size_t index)
{
    return index < grt_value_count(value) ? &value->items[index] : NULL;
}
