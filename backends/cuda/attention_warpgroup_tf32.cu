/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of float32 as TF32 by wgmma, on Hopper. As attention_warpgroup.cu, but tensor cores would drop
 * bits of float32 numbers and cannot read values across the sum. So a warpgroup rounds keys and values to
 * nearest in registers and writes them to shared memory, values transposed; the others have 64 rows each. */
#include "backends/cuda/attention_rows.cuh"
#include "backends/cuda/attention_tf32_fetch.cuh"
#include "backends/cuda/lane_exchange.cuh"
#include "backends/cuda/overlap.cuh"

namespace
{

struct rings {
    ring keys, values;
};

/* What a lane has of its two rows' queries, as they are in memory: 16 bytes of every 16 columns. Rows beyond
 * the last are copies of it. */
template <int SIZE> struct group_queries {
    float4 row[2][SIZE / 16];

    __device__ __forceinline__ void load(const attention_shape &s, const attention_data &d,
                                         const attention_block_task &t, int first, int lane)
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int64_t at = min(first + (lane >> 2) + 8 * r, (int)s.q_len - 1);
            const int column = (lane & 3) * CHUNK;
            const float *from = (const float *)d.q + attention_at(s.q, t.batch, {t.head, at}) + column;
#pragma unroll
            for (int i = 0; i < SIZE / 16; i++)
                row[r][i] = load_chunk(from + i * 16, i * 16 + column < s.size);
        }
    }
};

template <int SIZE> struct group_rows : attention_rows<SIZE, true> {
    using memory = block_memory<SIZE>;
    enum { STEPS = SIZE / 8, PARTS = SIZE > 128 ? 2 : 1 };
    uint32_t q[shares_queries<SIZE> ? 1 : STEPS][4];

    template <bool GENERAL>
    __device__ __forceinline__ void begin(const attention_shape &s, const attention_data &d,
                                          const attention_block_task &t, int first, int lane)
    {
        const int last = (int)s.q_len - 1;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int row = first + (lane >> 2) + 8 * r;
            attention_rows<SIZE, true>::template begin<GENERAL>(s, d, t.batch, {t.head, row}, row <= last, r);
        }
    }

    /* Four lanes have 16 columns of a row, and exchange them. */
    __device__ __forceinline__ void set_queries(const group_queries<SIZE> &from, int quad)
    {
#pragma unroll
        for (int r = 0; r < 2; r++)
#pragma unroll
            for (int i = 0; i < SIZE / 16; i++) {
                const float4 v = from.row[r][i];
                uint32_t word[4] = {half_added(v.x), half_added(v.y), half_added(v.z), half_added(v.w)};
                exchange(word, quad);
#pragma unroll
                for (int k = 0; k < 4; k++)
                    q[2 * i + k / 2][k % 2 * 2 + r] = word[k];
            }
    }

    /* Products of the queries, in registers or at shared address `queries`, with N keys. */
    template <int N>
    __device__ __forceinline__ void take_scores(float (*score)[4], uint32_t queries, uint32_t keys)
    {
        const uint64_t b = panel_descriptor(keys), a = panel_descriptor(queries);
        warpgroup_begin();
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            const uint64_t b_at = b + (step / 4 * memory::PANEL + step % 4 * 32) / 16;
            if constexpr (shares_queries<SIZE>)
                warpgroup_tf32<N>::multiply(score, a + (step / 4 * memory::QUERY_PANEL + step % 4 * 32) / 16,
                                            b_at, step > 0);
            else
                warpgroup_tf32<N>::multiply(score, q[step], b_at, step > 0);
        }
        warpgroup_commit();
        warpgroup_wait<0>();
        warpgroup_hold<N>(score);
    }

    template <int N> __device__ __forceinline__ void add_values(const float (*weight)[4], uint32_t values)
    {
        uint32_t a[N / 8][4];
#pragma unroll
        for (int k = 0; k < N / 8; k++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                /* A NaN is in the sum of the weights too. */
                a[k][i] = __float_as_uint(weight[k][i % 2 * 2 + i / 2]) + 0x1000;
                asm volatile("" : "+r"(a[k][i])::"memory");
            }
        const uint64_t b = panel_descriptor(values);
        warpgroup_hold<SIZE>(this->result);
        warpgroup_begin();
#pragma unroll
        for (int k = 0; k < N / 8; k++)
#pragma unroll
            for (int part = 0; part < PARTS; part++)
                warpgroup_tf32<SIZE / PARTS>::multiply(
                    this->result + part * (SIZE / PARTS / 8), a[k],
                    b + (k / 4 * memory::VALUE_PANEL + part * (SIZE / PARTS) * PANEL_ROW + k % 4 * 32) / 16,
                    1);
        warpgroup_commit();
        warpgroup_wait<0>();
        warpgroup_hold<SIZE>(this->result);
    }

    /* N keys from number `tile` on. A warp without rows only takes part in what the group does together. */
    template <int N, bool GENERAL>
    __device__ __forceinline__ void take(const attention_shape &s, const void *mask, uint32_t queries,
                                         memory &m, const rings &at, int tile, bool idle, int lane)
    {
        float score[N / 8][4];
        barrier_wait(&m.key_full[at.keys.at], at.keys.phase);
        take_scores<N>(score, queries, shared_at(m.keys[at.keys.at]));
        if (lane == 0)
            barrier_arrive(&m.key_empty[at.keys.at]);
        if (!idle)
            this->template weigh<N, GENERAL>(s, mask, score, tile, lane);
        barrier_wait(&m.value_full[at.values.at], at.values.phase);
        add_values<N>(score, shared_at(m.values[at.values.at]));
        if (lane == 0)
            barrier_arrive(&m.value_empty[at.values.at]);
    }

    static __device__ __forceinline__ void skip(memory &m, const rings &at, int lane)
    {
        barrier_wait(&m.key_full[at.keys.at], at.keys.phase);
        barrier_wait(&m.value_full[at.values.at], at.values.phase);
        if (lane == 0) {
            barrier_arrive(&m.key_empty[at.keys.at]);
            barrier_arrive(&m.value_empty[at.values.at]);
        }
    }

    /* The warp's rows, `left` of them at most, from `y` on, `size` columns of each. */
    __device__ __forceinline__ void store(float *y, int64_t stride, int left, int size, int lane)
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int row = (lane >> 2) + 8 * r;
            const float inverse = this->inverse(r);
            float *to = y + row * stride + 2 * (lane & 3);
            if (row < left)
#pragma unroll
                for (int c = 0; c < SIZE / 8; c++)
                    if (c * 8 + 2 * (lane & 3) < size)
                        tensor_core<float>::store(to + c * 8, this->result[c][2 * r] * inverse,
                                                  this->result[c][2 * r + 1] * inverse);
        }
    }
};

/* The threads of one group wait for each other. */
__device__ __forceinline__ void group_wait(int group)
{
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}

template <int SIZE, bool GENERAL>
__device__ __forceinline__ void attend_tasks(const attention_shape &s, const attention_data &d,
                                             uint32_t tasks, int block_rows, block_memory<SIZE> &m, int group)
{
    using memory = block_memory<SIZE>;
    const int thread = threadIdx.x & 127, lane = threadIdx.x & 31,
              warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5 & 3, 0);
    rings at = {};
    char *memory_end = (char *)(&m + 1);
    const uint32_t queries = shared_at(memory_end) + group * memory::QUERIES;
    uint32_t task = blockIdx.x;
    attention_block_task t = attention_block_task_at(s, d.nonpad, task, block_rows, memory::KEYS);
    group_queries<SIZE> ahead;
    if constexpr (!shares_queries<SIZE>)
        ahead.load(s, d, t, t.first + group * ROWS + warp * WARP_ROWS, lane);
    for (;;) {
        const int first = t.first + group * ROWS, mine = first + warp * WARP_ROWS, rows = (int)s.q_len;
        group_rows<SIZE> w;
        w.template begin<GENERAL>(s, d, t, mine, lane);
        if constexpr (shares_queries<SIZE>) {
            const float *from = (const float *)d.q + attention_at(s.q, t.batch, {t.head, first});
            key_part<SIZE, ROWS, ROWS> all;
            all.load(0, from, s.q.row, (int)s.size, rows - first, thread);
            group_wait(group); /* the previous task's products are done in all warps */
            all.store(0, queries, thread);
            publish_shared();
            group_wait(group);
        } else {
            w.set_queries(ahead, lane & 3);
        }
        const int2 keys = attention_group_limits(s, d.nonpad, t.batch, first, ROWS);
        for (int tile = t.from; tile < t.to; tile += memory::KEYS) {
            if (tile >= keys.y || tile + memory::KEYS <= keys.x)
                w.skip(m, at, lane);
            else if (t.to - tile > SHORT_TILE)
                w.template take<memory::KEYS, GENERAL>(s, d.mask, queries, m, at, tile, mine >= rows, lane);
            else
                w.template take<SHORT_TILE, GENERAL>(s, d.mask, queries, m, at, tile, mine >= rows, lane);
            at.keys.next(key_slots<SIZE>);
            at.values.next(value_slots<SIZE>);
        }
        /* The next queries are on their way while results are stored. */
        float *y = (float *)d.y + attention_at(s.y, t.batch, {t.head, mine});
        task += gridDim.x;
        if (task < tasks) {
            t = attention_block_task_at(s, d.nonpad, task, block_rows, memory::KEYS);
            if constexpr (!shares_queries<SIZE>)
                ahead.load(s, d, t, t.first + group * ROWS + warp * WARP_ROWS, lane);
        }
        w.store(y, s.y.row, rows - mine, (int)s.v_size, lane);
        if (task >= tasks)
            break;
    }
}

template <int SIZE, bool GENERAL>
__global__ void __launch_bounds__(MOST_GROUPS * 128 + 2 * FETCHERS, 1)
    cuda_attention_tf32_attend(const __grid_constant__ attention_shape s,
                               const __grid_constant__ attention_data d, uint32_t tasks)
{
    extern __shared__ char raw[];
    block_memory<SIZE> &m = *(block_memory<SIZE> *)(raw + (-shared_at(raw) & (PANEL_ALIGNMENT - 1)));
    const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0), groups = (int)blockDim.x / 128 - 2,
              thread = threadIdx.x & 127;
    if (threadIdx.x == 0) {
        for (int i = 0; i < key_slots<SIZE>; i++) {
            barrier_init(&m.key_full[i], FETCHERS / 32);
            barrier_init(&m.key_empty[i], groups * 4);
        }
        for (int i = 0; i < value_slots<SIZE>; i++) {
            barrier_init(&m.value_full[i], FETCHERS / 32);
            barrier_init(&m.value_empty[i], groups * 4);
        }
        barrier_init_done();
    }
    __syncthreads();
    overlap_wait();
    overlap_let_next_begin();
    if (group < groups) {
        warpgroup_take_registers<row_registers<SIZE>>();
        attend_tasks<SIZE, GENERAL>(s, d, tasks, groups * ROWS, m, group);
    } else {
        warpgroup_leave_registers<fetch_registers<SIZE>>();
        if (group == groups)
            fetch_tasks<SIZE, false>(s, d, tasks, groups * ROWS, m, thread);
        else
            fetch_tasks<SIZE, true>(s, d, tasks, groups * ROWS, m, thread);
    }
}

struct choice {
    void *kernel;
    size_t bytes, bytes_per_group;
};

template <int SIZE> choice attention_tf32_kernel(bool general)
{
    return {general ? (void *)cuda_attention_tf32_attend<SIZE, true>
                    : (void *)cuda_attention_tf32_attend<SIZE, false>,
            sizeof(block_memory<SIZE>) + PANEL_ALIGNMENT, block_memory<SIZE>::QUERIES};
}

choice cuda_attention_tf32_choose(const attention_shape *s, bool general)
{
    switch (cuda_attention_columns(s->size, s->v_size)) {
    case 32:
        return attention_tf32_kernel<32>(general);
    case 64:
        return attention_tf32_kernel<64>(general);
    case 80:
        return attention_tf32_kernel<80>(general);
    case 96:
        return attention_tf32_kernel<96>(general);
    case 128:
        return attention_tf32_kernel<128>(general);
    case 160:
        return attention_tf32_kernel<160>(general);
    case 192:
        return attention_tf32_kernel<192>(general);
    default:
        return attention_tf32_kernel<256>(general);
    }
}

int groups_for(const attention_shape *s, int multiprocessors)
{
    return cuda_attention_groups(s->batch * s->q_heads, s->q_len, multiprocessors);
}

} // namespace

/* No past (a second tensor) and no folded heads. */
bool attention_tf32_takes(const attention_shape *s, grt_dtype dtype, const struct cudaDeviceProp *device)
{
    return device->major == 9 && device->minor == 0 && dtype == GRT_DTYPE_FLOAT && s->past == 0 &&
           s->kv_len > 0 && s->kv_len <= INT32_MAX - ROWS && s->fold == 1 && s->splits == 1 &&
           cuda_attention_columns(s->size, s->v_size) && groups_for(s, device->multiProcessorCount);
}

cudaError_t attention_tf32_prepare(const attention_shape *s)
{
    cudaError_t error = cudaSuccess;
    for (int general = 0; general < 2 && error == cudaSuccess; general++) {
        const choice c = cuda_attention_tf32_choose(s, general);
        error = cudaFuncSetAttribute(c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     (int)(c.bytes + MOST_GROUPS * c.bytes_per_group));
    }
    return error;
}

cudaError_t attention_tf32(const attention_shape *s, const attention_data *d, int multiprocessors,
                           cudaStream_t stream)
{
    const choice c = cuda_attention_tf32_choose(s, !attention_scales_only(s, d));
    const int groups = groups_for(s, multiprocessors);
    uint32_t tasks = (uint32_t)attention_tasks(s, groups * ROWS);
    void *arguments[] = {(void *)s, (void *)d, &tasks};
    const bool is_short = tasks <= (uint32_t)multiprocessors;
    cudaLaunchAttribute early;
    const cudaLaunchConfig_t config = overlap_config(
        is_short, dim3(is_short ? tasks : (unsigned)multiprocessors), dim3(128 * groups + 2 * FETCHERS),
        c.bytes + groups * c.bytes_per_group, stream, &early);
    return cudaLaunchKernelExC(&config, c.kernel, arguments);
}
