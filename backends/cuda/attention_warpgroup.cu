/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by wgmma, for head sizes up to 256 and float16 and bfloat16 on Hopper where there are many rows:
 * as attention_flash.cu, but a warpgroup has 64 rows, and tensor cores read keys and values once for all of
 * them. Blocks stay for several tasks. */
#include "backends/cuda/attention_blocks.cuh"
#include "backends/cuda/attention_levels.cuh"
#include "backends/cuda/attention_rows.cuh"
#include "backends/cuda/bulk_copy.cuh"
#include "backends/cuda/bulk_map.cuh"
#include "backends/cuda/lane_exchange.cuh"
#include "backends/cuda/overlap.cuh"
#include "backends/cuda/warpgroup.cuh"

namespace
{

enum { ROWS = 64, TILE = 64, PANEL = ROWS * PANEL_ROW };

/* Limited by registers and shared memory. With few rows a block has one group, for more blocks; two where a
 * head has no rows for more. Four leave no registers for masks in pairs. */
template <int SIZE> constexpr int most_groups = SIZE > 128 ? 2 : SIZE > 64 ? 3 : 4;
template <int SIZE> constexpr int stages = SIZE > 128 ? 2 : SIZE > 64 ? 3 : 6;
template <int SIZE> constexpr int tasks_ahead = SIZE > 128 ? 1 : 2;
/* Registers that a thread takes for its rows, of what is launched and what the copying warps leave; 0: the
 * launched ones are enough. */
template <int SIZE, int GROUPS>
constexpr int row_registers = GROUPS == 4                 ? 112
                              : GROUPS == 3               ? 160
                              : GROUPS == 2 && SIZE > 128 ? 232
                                                          : 0;
template <int SIZE> constexpr int panels = (SIZE + 63) / 64;

template <class T, int SIZE, int GROUPS> struct group_rows : attention_rows<SIZE, GROUPS <= 3, GROUPS <= 3> {
    enum { STEPS = SIZE / 16, PANELS = panels<SIZE> };

    /* Products of the queries, at shared address `q`, with TILE keys at `keys`. */
    template <int N> __device__ __forceinline__ void take_scores(float (*score)[4], uint32_t q, uint32_t keys)
    {
        warpgroup_begin();
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            const uint32_t at = step / 4 * PANEL + step % 4 * 32;
            warpgroup<T, N>::multiply(score, panel_descriptor(q + at), panel_descriptor(keys + at), step > 0);
        }
        warpgroup_commit();
        warpgroup_wait<0>();
        warpgroup_hold<N>(score);
    }

    template <int N> __device__ __forceinline__ void add_values(const float (*weight)[4], uint32_t values)
    {
        uint32_t a[N / 16][4];
#pragma unroll
        for (int k = 0; k < N / 16; k++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float *pair = weight[2 * k + (i >> 1)] + 2 * (i & 1);
                a[k][i] = tensor_core<T>::pair(pair[0], pair[1]);
                asm volatile("" : "+r"(a[k][i])::"memory");
            }
        warpgroup_hold<SIZE>(this->result);
        warpgroup_begin();
#pragma unroll
        for (int k = 0; k < N / 16; k++)
#pragma unroll
            for (int p = 0; p < PANELS; p++) {
                enum { LAST = SIZE - (PANELS - 1) * 64 };
                const uint64_t b = panel_descriptor(values + p * PANEL + k * 16 * PANEL_ROW);
                if (p < PANELS - 1)
                    warpgroup<T, 64>::template multiply<1>(this->result + p * 8, a[k], b, 1);
                else
                    warpgroup<T, LAST>::template multiply<1>(this->result + p * 8, a[k], b, 1);
            }
        warpgroup_commit();
        warpgroup_wait<0>();
        warpgroup_hold<SIZE>(this->result);
    }

    /* The warp's rows, `left` of them at most, from element `at` of the result on, `size` columns of each.
     * Groups of four lanes exchange values, so that each writes eight side by side. */
    __device__ __forceinline__ void store(T *y, const cuda_levels &levels, int64_t at, int64_t stride,
                                          int left, int size, int lane)
    {
        const int quad = lane & 3;
        const cuda_pair_quantiser<T> quantises(levels.quantiser(levels.unit()));
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int row = (lane >> 2) + 8 * r;
            const float inverse = this->inverse(r);
#pragma unroll
            for (int c = 0; c < SIZE / 8; c += 4) {
                uint32_t pair[4];
#pragma unroll
                for (int i = 0; i < 4; i++)
                    pair[i] = tensor_core<T>::pair(this->result[c + i][2 * r] * inverse,
                                                   this->result[c + i][2 * r + 1] * inverse);
                exchange(pair, quad);
                const int64_t to = at + row * stride + (c + quad) * 8;
                if (row >= left || (c + quad) * 8 >= size)
                    continue;
                if (levels.to)
                    levels.store(quantises, pair, levels.to + to);
                else
                    /* In assembly: the compiler splits some of these stores. */
                    asm volatile("st.global.v4.b32 [%0], {%1,%2,%3,%4};" ::"l"(y + to), "r"(pair[0]),
                                 "r"(pair[1]), "r"(pair[2]), "r"(pair[3])
                                 : "memory");
            }
        }
    }

    /* N keys from number `tile` on. A warp without rows only takes part in what the group does together. */
    template <int N, bool GENERAL>
    __device__ __forceinline__ void take(const attention_shape &s, const void *mask, uint32_t q,
                                         uint32_t keys, uint32_t values, int tile, bool idle, int lane)
    {
        float score[N / 8][4];
        take_scores<N>(score, q, keys);
        if (!idle)
            this->template weigh<N, GENERAL>(s, mask, score, tile, lane);
        add_values<N>(score, values);
    }
};

/* Tasks of a block are GROUPS x 64 rows of a head, and TILE of its keys and values after the other. A further
 * warpgroup issues the copies, as far ahead as there is room, across tasks. */
template <int SIZE, int GROUPS> struct block_memory {
    enum { STAGES = stages<SIZE>, TASKS = tasks_ahead<SIZE>, MATRIX = panels<SIZE> * PANEL };
    char q[TASKS][GROUPS][MATRIX];
    char keys[STAGES][MATRIX], values[STAGES][MATRIX];
    uint64_t tile_full[STAGES], tile_empty[STAGES], q_full[TASKS], q_empty[TASKS];
};

struct attention_maps {
    CUtensorMap q, k, v;
};

template <int SIZE, int GROUPS>
__device__ __forceinline__ void fetch_tasks(const attention_shape &s, const int64_t *nonpad,
                                            const attention_maps &maps, uint32_t tasks,
                                            block_memory<SIZE, GROUPS> &m)
{
    using memory = block_memory<SIZE, GROUPS>;
    enum { MATRIX = memory::MATRIX, PANELS = panels<SIZE> };
    ring place = {0, 0}, q = {0, 0};
    for (uint32_t task = blockIdx.x; task < tasks; task += gridDim.x, q.next(memory::TASKS)) {
        const attention_block_task t = attention_block_task_at(s, nonpad, task, GROUPS * ROWS, TILE);
        barrier_wait(&m.q_empty[q.at], q.phase ^ 1);
        barrier_expect(&m.q_full[q.at], GROUPS * MATRIX);
        for (int g = 0; g < GROUPS; g++)
            for (int p = 0; p < PANELS; p++)
                bulk_fetch(m.q[q.at][g] + p * PANEL, &maps.q, p * 64, t.first + g * ROWS, t.head, t.batch,
                           &m.q_full[q.at]);
        for (int tile = t.from; tile < t.to; tile += TILE, place.next(memory::STAGES)) {
            barrier_wait(&m.tile_empty[place.at], place.phase ^ 1);
            barrier_expect(&m.tile_full[place.at], 2 * MATRIX);
            for (int p = 0; p < PANELS; p++) {
                bulk_fetch(m.keys[place.at] + p * PANEL, &maps.k, p * 64, tile, t.kv_head, t.batch,
                           &m.tile_full[place.at]);
                bulk_fetch(m.values[place.at] + p * PANEL, &maps.v, p * 64, tile, t.kv_head, t.batch,
                           &m.tile_full[place.at]);
            }
        }
    }
}

template <class T, int SIZE, int GROUPS, bool GENERAL>
__device__ __forceinline__ void attend_tasks(const attention_shape &s, const attention_data &d,
                                             const cuda_levels &levels, uint32_t tasks,
                                             block_memory<SIZE, GROUPS> &m, int group)
{
    using memory = block_memory<SIZE, GROUPS>;
    enum { CHUNKS = SIZE / 8 };
    const int lane = threadIdx.x & 31, warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5 & 3, 0);
    ring place = {0, 0}, queries = {0, 0};
    for (uint32_t task = blockIdx.x; task < tasks; task += gridDim.x, queries.next(memory::TASKS)) {
        const attention_block_task t = attention_block_task_at(s, d.nonpad, task, GROUPS * ROWS, TILE);
        const int first = t.first + group * ROWS, mine = first + warp * WARP_ROWS, rows = (int)s.q_len;
        const bool idle = mine >= rows;
        group_rows<T, SIZE, GROUPS> w;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int row = mine + (lane >> 2) + 8 * r;
            w.template begin<GENERAL>(s, d, t.batch, {t.head, row}, row < rows, r);
        }
        const int2 keys = attention_group_limits(s, d.nonpad, t.batch, first, ROWS);
        const uint32_t q = (uint32_t)__cvta_generic_to_shared(m.q[queries.at][group]);
        barrier_wait(&m.q_full[queries.at], queries.phase);
        for (int tile = t.from; tile < t.to; tile += TILE, place.next(memory::STAGES)) {
            barrier_wait(&m.tile_full[place.at], place.phase);
            if (tile < keys.y && tile + TILE > keys.x) {
                const uint32_t k = (uint32_t)__cvta_generic_to_shared(m.keys[place.at]),
                               v = (uint32_t)__cvta_generic_to_shared(m.values[place.at]);
                if (t.to - tile > SHORT_TILE)
                    w.template take<TILE, GENERAL>(s, d.mask, q, k, v, tile, idle, lane);
                else
                    w.template take<SHORT_TILE, GENERAL>(s, d.mask, q, k, v, tile, idle, lane);
            }
            if (lane == 0)
                barrier_arrive(&m.tile_empty[place.at]);
        }
        if (lane == 0)
            barrier_arrive(&m.q_empty[queries.at]);
        w.store((T *)d.y, levels, attention_at(s.y, t.batch, {t.head, mine}), s.y.row, rows - mine,
                (int)s.v_size, lane);
    }
}

template <class T, int SIZE, int GROUPS, bool GENERAL>
__global__ void __launch_bounds__(GROUPS * 128 + 128, 1)
    cuda_attention_warpgroup_attend(const __grid_constant__ attention_shape s,
                                    const __grid_constant__ attention_data d,
                                    const __grid_constant__ attention_maps maps, uint32_t tasks,
                                    const __grid_constant__ cuda_levels levels)
{
    enum { WARPS = GROUPS * 4, TAKES = row_registers<SIZE, GROUPS> };
    extern __shared__ char raw[];
    block_memory<SIZE, GROUPS> &m = *(block_memory<SIZE, GROUPS> *)(((uintptr_t)raw + PANEL_ALIGNMENT - 1) /
                                                                    PANEL_ALIGNMENT * PANEL_ALIGNMENT);
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
    if (threadIdx.x == WARPS * 32) {
        bulk_map_fetch(&maps.q);
        bulk_map_fetch(&maps.k);
        bulk_map_fetch(&maps.v);
    }
    if (threadIdx.x == 0) {
        for (int i = 0; i < stages<SIZE>; i++) {
            barrier_init(&m.tile_full[i], 1);
            barrier_init(&m.tile_empty[i], WARPS);
        }
        for (int i = 0; i < tasks_ahead<SIZE>; i++) {
            barrier_init(&m.q_full[i], 1);
            barrier_init(&m.q_empty[i], WARPS);
        }
        barrier_init_done();
    }
    __syncthreads();
    overlap_wait();
    overlap_let_next_begin();
    if (warp < WARPS) {
        if constexpr (TAKES > 0)
            warpgroup_take_registers<TAKES>();
        attend_tasks<T, SIZE, GROUPS, GENERAL>(s, d, levels, tasks, m, warp >> 2);
    } else {
        if constexpr (TAKES > 0)
            warpgroup_leave_registers<32>();
        if (threadIdx.x == WARPS * 32)
            fetch_tasks<SIZE, GROUPS>(s, d.nonpad, maps, tasks, m);
    }
}

struct choice {
    void *kernel;
    int groups;
    size_t bytes;
};

template <class T, int SIZE, int GROUPS> choice choose_mask(bool general)
{
    return {general ? (void *)cuda_attention_warpgroup_attend<T, SIZE, GROUPS, true>
                    : (void *)cuda_attention_warpgroup_attend<T, SIZE, GROUPS, false>,
            GROUPS, sizeof(block_memory<SIZE, GROUPS>) + PANEL_ALIGNMENT};
}

template <class T, int SIZE> choice choose_groups(const attention_shape *s, bool general)
{
    return s->few                 ? choose_mask<T, SIZE, 1>(general)
           : s->q_len <= 2 * ROWS ? choose_mask<T, SIZE, 2>(general)
                                  : choose_mask<T, SIZE, most_groups<SIZE>>(general);
}

template <class T> choice cuda_attention_warpgroup_choose(const attention_shape *s, bool general)
{
    switch (s->columns) {
    case 32:
        return choose_groups<T, 32>(s, general);
    case 64:
        return choose_groups<T, 64>(s, general);
    case 96:
        return choose_groups<T, 96>(s, general);
    case 128:
        return choose_groups<T, 128>(s, general);
    default:
        return choose_groups<T, 256>(s, general);
    }
}

choice choice_for(const attention_shape *s, grt_dtype dtype, bool general)
{
    return dtype == GRT_DTYPE_FLOAT16 ? cuda_attention_warpgroup_choose<__half>(s, general)
                                      : cuda_attention_warpgroup_choose<__nv_bfloat16>(s, general);
}

cudaError_t map(const attention_shape *s, grt_dtype dtype, const attention_view &view, int64_t size,
                int64_t rows, int64_t heads, const void *data, CUtensorMap *out)
{
    const cuda_tensor_view of = {dtype,
                                 {(uint64_t)size, (uint64_t)rows, (uint64_t)heads, (uint64_t)s->batch},
                                 {1, (uint64_t)view.row, (uint64_t)view.head, (uint64_t)view.batch}};
    return cuda_tensor_map_encode(s->encode, &of, data, ROWS, out);
}

} // namespace

/* A tile is one bulk copy: no past (a second tensor), no padded rows that must not be read, no folded heads.
 */
bool attention_warpgroup_takes(const attention_shape *s, grt_dtype dtype, const struct cudaDeviceProp *device)
{
    return device->major == 9 && device->minor == 0 &&
           (dtype == GRT_DTYPE_FLOAT16 || dtype == GRT_DTYPE_BFLOAT16) && s->past == 0 && !s->padded &&
           s->kv_len > 0 && s->kv_len <= INT32_MAX - TILE && s->fold == 1 && s->splits == 1;
}

cudaError_t attention_warpgroup_prepare(const attention_shape *s, grt_dtype dtype)
{
    cudaError_t error = cudaSuccess;
    for (int general = 0; general < 2 && error == cudaSuccess; general++) {
        const choice c = choice_for(s, dtype, general);
        error = cudaFuncSetAttribute(c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c.bytes);
    }
    return error;
}

cudaError_t attention_warpgroup_quantised(const attention_shape *s, const attention_data *d,
                                          const cuda_levels *levels, grt_dtype dtype, int multiprocessors,
                                          cudaStream_t stream)
{
    const choice c = choice_for(s, dtype, !attention_scales_only(s, d));
    uint32_t tasks = (uint32_t)attention_tasks(s, c.groups * ROWS);
    attention_maps maps;
    cudaError_t error = map(s, dtype, s->q, s->size, s->q_len, s->q_heads, d->q, &maps.q);
    if (error == cudaSuccess)
        error = map(s, dtype, s->k, s->size, s->kv_len, s->kv_heads, d->k, &maps.k);
    if (error == cudaSuccess)
        error = map(s, dtype, s->v, s->v_size, s->kv_len, s->kv_heads, d->v, &maps.v);
    if (error != cudaSuccess)
        return error;
    void *arguments[] = {(void *)s, (void *)d, &maps, &tasks, (void *)levels};
    const bool is_short = tasks <= (uint32_t)multiprocessors;
    cudaLaunchAttribute early;
    const cudaLaunchConfig_t config =
        overlap_config(is_short, dim3(is_short ? tasks : (unsigned)multiprocessors),
                       dim3(128 * c.groups + 128), c.bytes, stream, &early);
    return cudaLaunchKernelExC(&config, c.kernel, arguments);
}

cudaError_t attention_warpgroup(const attention_shape *s, const attention_data *d, grt_dtype dtype,
                                int multiprocessors, cudaStream_t stream)
{
    const cuda_levels none = {};
    return attention_warpgroup_quantised(s, d, &none, dtype, multiprocessors, stream);
}
