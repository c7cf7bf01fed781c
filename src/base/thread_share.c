/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/thread_share.h"

grt_thread_grant grt_thread_share_take(grt_thread_share *share, int32_t threads)
{
    const int limit = atomic_load_explicit(&share->limit, memory_order_relaxed);
    if (limit == 0) /* runs of a microsecond write to no memory that they share */
        return (grt_thread_grant){0};
    int used = atomic_load_explicit(&share->used, memory_order_relaxed);
    int counted;
    do
        counted = threads <= limit - used ? threads : 1;
    while (!atomic_compare_exchange_weak_explicit(&share->used, &used, used + counted, memory_order_relaxed,
                                                  memory_order_relaxed));
    return (grt_thread_grant){.counted = counted, .alone = counted < threads};
}

void grt_thread_share_give(grt_thread_share *share, grt_thread_grant grant)
{
    if (grant.counted > 0)
        atomic_fetch_sub_explicit(&share->used, grant.counted, memory_order_relaxed);
}
