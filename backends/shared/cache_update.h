/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::CacheUpdate over concrete sizes: for each batch and head, `past` entries, padded with zeros or cut
 * to `length`, of which `fresh` are overwritten. */
#ifndef GRT_BACKENDS_SHARED_CACHE_UPDATE_H
#define GRT_BACKENDS_SHARED_CACHE_UPDATE_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_cache_update {
    int64_t batch, heads, past, length, fresh;
    size_t entry_bytes;
    bool circular; /* entries behind the last are the first */
} grt_cache_update;

grt_cache_update grt_cache_update_of(const grt_op_desc *desc, const grt_tensor *past, const grt_tensor *fresh,
                                     const grt_tensor *out);

#ifdef __cplusplus
}
#endif

#endif
