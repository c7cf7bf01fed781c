/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of few query rows, as when a language model adds a token: float16 and bfloat16 on tensor cores,
 * with 16 keys as the rows of the left operand, and then 16 columns of the values, so that 8 query rows are
 * enough to fill an instruction. Nothing but time on the way to memory counts here:
 *
 *   - a block has some of the keys of one key head, for all query rows that read it; a warp takes 16 or 32
 *     keys at a time, whose rows go from memory to the registers that the instructions read. Which of a row's
 *     columns an instruction calls the first does not matter, so that each lane reads 16 bytes in a row;
 *   - keys and values of a step are asked for at once, and those of the next while this one is computed;
 *   - before the kernel in front has ended, the past is asked for into the L2 cache, which is right whoever
 *     writes it;
 *   - the blocks of a head are a cluster: all but one send their sums to its shared memory. Devices without
 *     clusters, and more blocks than a cluster has, send them to the workspace (attention_split.cu). */
#include "backends/cuda/attention_rows.cuh"
#include "backends/cuda/attention_keys_join.cuh"
#include "backends/cuda/attention_keys_lane.cuh"
#include "backends/cuda/overlap.cuh"
#include "backends/cuda/shared_limit.h"

namespace
{

template <class F>
__global__ void __launch_bounds__(MOST_WARPS * 32, 1)
    keys_kernel(const __grid_constant__ keys_task task, const __grid_constant__ attention_shape s,
                const void *mask, float *partial)
{
    using T = typename F::T;
    extern __shared__ __align__(16) float parts[]; /* of the warps, then of the cluster's blocks */
    __shared__ uint64_t arrived;
    const keys_rows rows = keys_rows_of<F>(task);
    const int warp = (int)threadIdx.x / 32, warps = (int)blockDim.x / 32, part = rows.rows * F::ROW;
    overlap_let_next_begin();
    keys_expect_parts(task, rows.rows, &arrived);
    const keys_source<F> keys = keys_source_of<F>(task, rows.batch, task.k, task.k_batch, task.k_head,
                                                  task.k_row, task.past_key, task.size),
                         values = keys_source_of<F>(task, rows.batch, task.v, task.v_batch, task.v_head,
                                                    task.v_row, task.past_value, task.v_size);
    keys_range range = {task.low, task.high, task.end};
    keys_share share = keys_share_of<F>(task, range, rows);
    if (!F::GENERAL || !task.nonpad) {
        keys.expect(share);
        values.expect(share);
    }
    keys_lane<F> lane;
    lane.begin(task, rows);
    lane.limit(task, range);
    overlap_wait();
    if (F::GENERAL && task.nonpad) { /* which the kernel in front may have written */
        range = keys_range_of(task, task.nonpad[rows.batch]);
        share = keys_share_of<F>(task, range, rows);
        lane.limit(task, range);
    }
    const int step = warps * KEYS;
    const bool of_bool = F::GENERAL && s.mask_dtype == GRT_DTYPE_BOOL;
    const uint8_t *const bools = of_bool ? (const uint8_t *)mask : NULL;
    const void *const numbers = of_bool ? NULL : mask;
    int at = share.from + warp * KEYS;
    lane.load_queries(task);
    lane.load_keys(keys, at, step, share.to);
    if (F::GENERAL)
        lane.load_mask(task, s, bools, at, step, share.to);
    lane.load_values(values, at, step, share.to);
    while (at < share.to) {
        const int next = at + F::GROUPS * step;
        float score[F::GROUPS][F::EIGHTS][4];
        lane.multiply_keys(score);
        if (next < share.to)
            lane.load_keys(keys, next, step, share.to);
        lane.weigh(task, s, numbers, score, at, step, share.to);
        if (F::GENERAL && next < share.to)
            lane.load_mask(task, s, bools, next, step, share.to);
        lane.add_values(score);
        if (next < share.to)
            lane.load_values(values, next, step, share.to);
        at = next;
    }
    lane.leave(parts + warp * part);
    if (task.clustered)
        cluster_wait(); /* the first block is ready for parts */
    __syncthreads();
    float *const joined = parts + warps * part;
    for (int i = (int)threadIdx.x; i < rows.rows * (F::SIZE / 2); i += (int)blockDim.x) {
        const int row = i / (F::SIZE / 2), column = i % (F::SIZE / 2) * 2;
        if (!F::WHOLE && column >= task.v_size)
            continue;
        const keys_sums all = keys_join<MOST_WARPS>(parts + row * F::ROW, warps, part, column, F::SIZE);
        if (task.clustered) {
            const float *const to = joined + (int)blockIdx.x * part + row * F::ROW;
            cluster_send(to + column, all.values, &arrived);
            if (column == 0)
                cluster_send(to + F::SIZE, all.ends, &arrived);
        } else if (gridDim.x > 1) {
            float *const to = attention_partial_at(s, partial, rows.batch, keys_row(task, rows.first + row),
                                                   (int)blockIdx.x);
            *(float2 *)(to + column) = all.values;
            if (column == 0)
                *(float2 *)(to + task.v_size) = all.ends;
        } else {
            keys_store<T>(task, rows.batch, keys_row(task, rows.first + row), column, all);
        }
    }
    if (!task.clustered || blockIdx.x != 0)
        return;
    cluster_receive(&arrived);
    for (int i = (int)threadIdx.x; i < rows.rows * (F::SIZE / 2); i += (int)blockDim.x) {
        const int row = i / (F::SIZE / 2), column = i % (F::SIZE / 2) * 2;
        if (F::WHOLE || column < task.v_size)
            keys_store<T>(
                task, rows.batch, keys_row(task, rows.first + row), column,
                keys_join<MOST_PARTS>(joined + row * F::ROW, (int)gridDim.x, part, column, F::SIZE));
    }
}

/* Calls `use` with the form of a shape. */
template <class T, int SIZE, bool WHOLE, class U>
void keys_with_rows(const attention_shape *s, bool general, U use)
{
    constexpr bool ALWAYS = !WHOLE;
    if (s->fold * s->q_len <= 8)
        general ? use(keys_form<T, SIZE, WHOLE, 1, true>()) : use(keys_form<T, SIZE, WHOLE, 1, ALWAYS>());
    else if constexpr (SIZE <= 128)
        general ? use(keys_form<T, SIZE, WHOLE, 2, true>()) : use(keys_form<T, SIZE, WHOLE, 2, ALWAYS>());
}

template <class T, int SIZE, class U> void keys_with_columns(const attention_shape *s, bool general, U use)
{
    if (attention_is_whole(s))
        keys_with_rows<T, SIZE, true>(s, general, use);
    else
        keys_with_rows<T, SIZE, false>(s, general, use);
}

template <class T, class U> void keys_with_size(const attention_shape *s, bool general, U use)
{
    switch (s->columns) {
    case 32:
        return keys_with_rows<T, 32, true>(s, general, use);
    case 64:
        return keys_with_columns<T, 64>(s, general, use);
    case 96:
        return keys_with_columns<T, 96>(s, general, use);
    case 128:
        return keys_with_columns<T, 128>(s, general, use);
    default:
        return keys_with_columns<T, 256>(s, general, use);
    }
}

template <class U> void keys_with_form(const attention_shape *s, grt_dtype dtype, bool general, U use)
{
    if (dtype == GRT_DTYPE_FLOAT16)
        keys_with_size<__half>(s, general, use);
    else
        keys_with_size<__nv_bfloat16>(s, general, use);
}

} // namespace

/* Positions and their limits are less than 2^29, so that sums of them fit 31 bits. */
static bool keys_fit(const attention_shape *s, grt_dtype dtype)
{
    const int64_t grid = 65535, most = (1 << 29) - 1;
    const attention_view *const views[] = {&s->q, &s->k, &s->v, &s->y};
    bool fits = (dtype == GRT_DTYPE_FLOAT16 || dtype == GRT_DTYPE_BFLOAT16) && s->batch <= grid &&
                s->kv_heads <= grid && s->total <= most && s->size >= 32 && s->v_size >= 32;
    for (const attention_view *view : views)
        fits = fits && view->head <= INT32_MAX && view->row <= INT32_MAX;
    return fits;
}

bool attention_keys_takes(const attention_shape *s, grt_dtype dtype)
{
    return keys_fit(s, dtype) && s->fold == s->group &&
           s->fold * s->q_len <= (s->columns <= 128 ? (int)MOST_ROWS : 8);
}

bool attention_keys_takes_many(const attention_shape *s, grt_dtype dtype, const struct cudaDeviceProp *device)
{
    enum { MOST_KEYS = 512 };
    const int64_t processors = device->multiProcessorCount;
    return device->major >= 9 && keys_fit(s, dtype) && attention_is_whole(s) && s->columns <= 128 &&
           s->total <= MOST_KEYS && s->q_len <= MOST_KEYS && s->batch * s->kv_heads <= processors &&
           s->batch * s->kv_heads * keys_row_blocks(s) <= processors;
}

/* Keys that any row may look at, without lengths. */
static int64_t keys_seen(const attention_shape *s)
{
    const bool ends = s->causal || s->right >= 0;
    if (s->left < 0 || !ends)
        return s->total;
    const int64_t seen = s->left + s->q_len + (s->causal ? 0 : s->right);
    return seen < s->total ? seen : s->total;
}

/* How many blocks share a head's keys: as many as processors have a place for at once, as long as there are
 * keys for them. Clusters leave some processors out, as all of their blocks have to be on neighbouring ones.
 */
void attention_keys_spread(attention_shape *s, const struct cudaDeviceProp *device)
{
    enum { LEAST_GROUPS = 16, GROUPS_OF_BLOCK = 8, MANY_GROUPS = 512, MOST_SPLITS = 128 };
    enum { LEAST_SPLITS = 4 /* for the second kernel to pay */ };
    const bool clusters = device->major >= 9;
    const int64_t groups = (keys_seen(s) + KEYS - 1) / KEYS,
                  heads = s->batch * s->kv_heads * keys_row_blocks(s),
                  processors = device->multiProcessorCount, useful = groups / GROUPS_OF_BLOCK;
    int64_t wanted = (clusters ? processors * 3 / 4 : processors) / heads;
    s->clustered = clusters && (wanted <= 2 * MOST_PARTS || groups < MANY_GROUPS);
    const int64_t most = s->clustered ? (int64_t)MOST_PARTS : (int64_t)MOST_SPLITS;
    wanted = wanted < most ? wanted : most;
    int64_t parts = wanted < useful ? wanted : useful;
    if (groups <= LEAST_GROUPS || parts < (s->clustered ? 2 : (int64_t)LEAST_SPLITS))
        parts = 1;
    const int64_t each = groups ? (groups - 1) / parts + 1 : 1;
    s->splits = groups ? (int)((groups - 1) / each + 1) : 1;
    s->clustered = s->clustered && s->splits > 1;
    s->warps = (int)(each < MOST_WARPS ? each : MOST_WARPS);
}

cudaError_t attention_keys_prepare(const attention_shape *s, grt_dtype dtype)
{
    cudaError_t error = cudaSuccess;
    for (int general = 0; general < 2 && error == cudaSuccess; general++)
        keys_with_form(s, dtype, general, [&](auto form) {
            using F = decltype(form);
            error = cuda_allow_shared((const void *)keys_kernel<F>); /* clustered or not */
        });
    return error;
}

cudaError_t attention_keys(const attention_shape *s, const attention_data *d, grt_dtype dtype, bool overlaps,
                           cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;
    keys_with_form(s, dtype, d->nonpad || !attention_scales_only(s, d), [&](auto form) {
        using F = decltype(form);
        const keys_task task = keys_task_of(s, d);
        cudaLaunchAttribute attributes[2];
        cudaLaunchConfig_t config = overlap_config(
            overlaps,
            dim3((unsigned)s->splits, (unsigned)s->kv_heads, (unsigned)(s->batch * task.row_blocks)),
            dim3((unsigned)s->warps * 32),
            (size_t)keys_bytes<F>(s->warps, s->clustered ? s->splits : 0,
                                  task.rows < MOST_ROWS ? task.rows : (int)MOST_ROWS),
            stream, attributes);
        if (s->clustered) {
            cudaLaunchAttribute *const cluster = &attributes[config.numAttrs++];
            *cluster = {};
            cluster->id = cudaLaunchAttributeClusterDimension;
            cluster->val.clusterDim = {(unsigned)s->splits, 1, 1};
        }
        error = cudaLaunchKernelEx(&config, keys_kernel<F>, task, *s, d->mask, d->partial);
    });
    return error;
}
