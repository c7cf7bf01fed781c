/* SPDX-License-Identifier: Apache-2.0 */
/* Maps as values: a tensor of keys in ascending order, each once, and a tensor of as many values. */
#ifndef GRT_BASE_VALUE_MAP_H
#define GRT_BASE_VALUE_MAP_H

#include "src/base/value.h"

static inline bool grt_is_key_dtype(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_INT64 || dtype == GRT_DTYPE_STRING;
}
/* Negative, 0 or positive: how element i of a stands to element j of b. Both are INT64 or both STRING. */
int grt_key_compare(const grt_tensor *a, int64_t i, const grt_tensor *b, int64_t j);
/* The position of each key in ascending order. Errors: INVALID_ARGUMENT for a dtype that keys cannot have,
 * and for a key that comes twice. *out_order is malloc'ed. */
grt_status grt_keys_order(const grt_tensor *keys, int64_t **out_order);

/* dst (cleared first) becomes the map from keys to values; both have one dim of one size and are copied. */
grt_status grt_value_make_map(grt_value *dst, const grt_tensor *keys, const grt_tensor *values);
/* The same of two tensors that are a map already; they are empty afterwards, also on failure. */
grt_status grt_value_join_map(grt_value *dst, grt_value *keys, grt_value *values);
static inline const grt_tensor *grt_map_keys(const grt_value *map)
{
    return &map->items[0].t;
}
static inline const grt_tensor *grt_map_values(const grt_value *map)
{
    return &map->items[1].t;
}

#endif
