/* SPDX-License-Identifier: Apache-2.0 */
#include "src/session/kept_weights.h"

#include <stdlib.h>

void grt_kept_weights_init(grt_kept_weights *kept)
{
    pthread_mutex_init(&kept->lock, NULL);
    atomic_init(&kept->number, 0);
}

void grt_kept_weights_clear(grt_kept_weights *kept)
{
    grt_weights_version_give(kept->newest);
    pthread_mutex_destroy(&kept->lock);
}

grt_weights_version *grt_kept_weights_take(grt_kept_weights *kept, unsigned *out_number)
{
    pthread_mutex_lock(&kept->lock);
    grt_weights_version *newest = kept->newest;
    if (newest)
        atomic_fetch_add_explicit(&newest->refs, 1, memory_order_relaxed);
    *out_number = atomic_load_explicit(&kept->number, memory_order_relaxed);
    pthread_mutex_unlock(&kept->lock);
    return newest;
}

void grt_weights_version_give(grt_weights_version *version)
{
    if (!version || atomic_fetch_sub_explicit(&version->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (int32_t i = 0; i < version->n; i++)
        grt_value_clear(&version->values[i]);
    free(version->values);
    free(version);
}
