/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* qsort_r */
#endif
#include "src/base/value_map.h"

#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

static int value_map_compare_strings(grt_string a, grt_string b)
{
    const size_t n = a.size < b.size ? a.size : b.size;
    const int order = n ? memcmp(a.data, b.data, n) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

int grt_key_compare(const grt_tensor *a, int64_t i, const grt_tensor *b, int64_t j)
{
    if (a->dtype == GRT_DTYPE_STRING)
        return value_map_compare_strings(((const grt_string *)a->data)[i], ((const grt_string *)b->data)[j]);
    const int64_t x = ((const int64_t *)a->data)[i], y = ((const int64_t *)b->data)[j];
    return (x > y) - (x < y);
}

static int value_map_by_key(const void *a, const void *b, void *keys)
{
    return grt_key_compare(keys, *(const int64_t *)a, keys, *(const int64_t *)b);
}

grt_status grt_keys_order(const grt_tensor *keys, int64_t **out_order)
{
    if (!grt_is_key_dtype(keys->dtype))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "the keys of a map are int64 or string, not %s",
                        grt_dtype_name(keys->dtype));
    const size_t n = (size_t)grt_tensor_elements(keys);
    int64_t *order = malloc((n ? n : 1) * sizeof *order);
    if (!order)
        return grt_fail_memory(n * sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = (int64_t)i;
    qsort_r(order, n, sizeof *order, value_map_by_key, (void *)(uintptr_t)keys);
    for (size_t i = 1; i < n; i++)
        if (!grt_key_compare(keys, order[i - 1], keys, order[i])) {
            const grt_status status =
                grt_fail(GRT_STATUS_INVALID_ARGUMENT, "elements %lld and %lld are the same key of a map",
                         (long long)order[i - 1], (long long)order[i]);
            free(order);
            return status;
        }
    *out_order = order;
    return GRT_OK;
}

/* A view of t with its elements in this order; `elements` has room for them. */
static grt_tensor in_order(const grt_tensor *t, const int64_t *order, void *elements)
{
    const size_t size = grt_dtype_size(t->dtype);
    grt_tensor out = *t;
    for (int64_t i = 0; i < t->dims[0]; i++)
        memcpy((char *)elements + (size_t)i * size, (const char *)t->data + (size_t)order[i] * size, size);
    out.data = elements;
    return out;
}

grt_status grt_value_join_map(grt_value *dst, grt_value *keys, grt_value *values)
{
    grt_value *items = calloc(2, sizeof *items);
    if (!items) {
        grt_value_clear(keys);
        grt_value_clear(values);
        return grt_fail_memory(2 * sizeof *items);
    }
    items[0] = *keys;
    items[1] = *values;
    *keys = *values = (grt_value){0};
    grt_value_clear(dst);
    *dst =
        (grt_value){.kind = GRT_KIND_MAP, .t.dtype = items[1].t.dtype, .n = 2, .capacity = 2, .items = items};
    return GRT_OK;
}

grt_status grt_value_make_map(grt_value *dst, const grt_tensor *keys, const grt_tensor *values)
{
    const size_t width = grt_dtype_size(values->dtype), n = (size_t)keys->dims[0];
    int64_t *order;
    size_t bytes;
    if (!width)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s cannot be the values of a map",
                        grt_dtype_name(values->dtype));
    GRT_TRY(grt_keys_order(keys, &order));
    void *elements = NULL;
    if (grt_mul_size(n, sizeof(grt_string), &bytes)) /* the largest element */
        elements = malloc(bytes ? bytes : 1);
    grt_value sorted_keys = {0}, sorted_values = {0};
    grt_status status = elements ? GRT_OK : grt_fail_memory(n * sizeof(grt_string));
    if (status == GRT_OK) {
        const grt_tensor view = in_order(keys, order, elements);
        status = grt_value_copy_tensor(&sorted_keys, &view);
    }
    if (status == GRT_OK) {
        const grt_tensor view = in_order(values, order, elements);
        status = grt_value_copy_tensor(&sorted_values, &view);
    }
    free(elements);
    free(order);
    if (status == GRT_OK)
        return grt_value_join_map(dst, &sorted_keys, &sorted_values);
    grt_value_clear(&sorted_keys);
    return status;
}
