/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::CacheUpdate. */
#include "backends/cpu/move.h"
#include "backends/shared/cache_update.h"

#include <string.h>

static grt_status cache_update_check(const grt_run *run, const grt_cache_update *s)
{
    const grt_tensor *at = grt_run_in(run, 3);
    for (int64_t b = 0; b < s->batch; b++) {
        const int64_t start = at ? cpu_index(at, b) : 0;
        if (start < 0 || s->fresh > s->length || (!s->circular && start > s->length - s->fresh))
            return grt_fail_op(
                run->desc, GRT_STATUS_INVALID_ARGUMENT,
                "write_indices[%lld] is %lld; %lld entries do not fit into an axis of size %lld from there",
                (long long)b, (long long)start, (long long)s->fresh, (long long)s->length);
    }
    return GRT_OK;
}

/* A head's entries that were there, and zeros behind them. */
static void cache_update_pad(const grt_cache_update *s, char *to, const char *past)
{
    const size_t whole = (size_t)s->length * s->entry_bytes,
                 kept = (size_t)(s->past < s->length ? s->past : s->length) * s->entry_bytes;
    memcpy(to, past, kept);
    memset(to + kept, 0, whole - kept);
}

static void cache_update_write(const grt_cache_update *s, char *to, const char *fresh, int64_t start)
{
    const int64_t at = s->circular ? start % s->length : start,
                  left = s->length - at < s->fresh ? s->length - at : s->fresh;
    memcpy(to + (size_t)at * s->entry_bytes, fresh, (size_t)left * s->entry_bytes);
    memcpy(to, fresh + (size_t)left * s->entry_bytes, (size_t)(s->fresh - left) * s->entry_bytes);
}

static grt_status run_cache_update(const grt_run *run)
{
    enum { WORTH_THREADS = 1 << 18 /* bytes */ };
    const grt_tensor *past = run->in[0], *fresh = run->in[1], *at = grt_run_in(run, 3), *out = run->out[0];
    const grt_cache_update s = grt_cache_update_of(run->desc, past, fresh, out);
    const bool in_place = out->data == past->data;
    GRT_TRY(cache_update_check(run, &s));
    const int32_t threads = grt_tensor_bytes(out) < WORTH_THREADS ? 1 : run->threads;
    if (grt_tensor_elements(out) == 0)
        return GRT_OK;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t head = 0; head < s.batch * s.heads; head++) {
        char *const to = (char *)out->data + (size_t)(head * s.length) * s.entry_bytes;
        if (!in_place)
            cache_update_pad(&s, to, (const char *)past->data + (size_t)(head * s.past) * s.entry_bytes);
        if (s.fresh > 0)
            cache_update_write(&s, to, (const char *)fresh->data + (size_t)(head * s.fresh) * s.entry_bytes,
                               at ? cpu_index(at, head / s.heads) : 0);
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "CacheUpdate",
     .domain = "graphrt",
     .types = {CPU_MOVABLE, CPU_MOVABLE, GRT_BIT(INT64), CPU_INDEX},
     .flags = GRT_KERNEL_IN_PLACE(0) | GRT_KERNEL_READS(2),
     .run = run_cache_update},
};
CPU_KERNELS(cache_update, rows);
