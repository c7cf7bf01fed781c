/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/cache_update.h"

#include <string.h>

grt_cache_update grt_cache_update_of(const grt_op_desc *desc, const grt_tensor *past, const grt_tensor *fresh,
                                     const grt_tensor *out)
{
    const int32_t axis = (int32_t)grt_axis(grt_attr_int(desc, "axis", -2), out->rank);
    const int64_t inner = grt_dims_product(out->dims, axis + 1, out->rank);
    return (grt_cache_update){.batch = out->dims[0],
                              .heads = grt_dims_product(out->dims, 1, axis),
                              .past = past->dims[axis],
                              .length = out->dims[axis],
                              .fresh = fresh->dims[axis],
                              .entry_bytes = (size_t)inner * grt_dtype_size(out->dtype),
                              .circular = !strcmp(grt_attr_string(desc, "mode", "linear"), "circular")};
}
