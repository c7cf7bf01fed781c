/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by wgmma, for head sizes up to 256 and float16 and bfloat16 on Hopper where there are many rows:
 * as attention_flash.cu, but a warpgroup has 64 rows, and tensor cores read keys and values once for all of
 * them. Blocks stay for several tasks. */
#include "backends/cuda/attention_blocks.cuh"
#include "backends/cuda/attention_levels.cuh"
#include "backends/cuda/attention_mask_tile.cuh"
#include "backends/cuda/attention_rows.cuh"
#include "backends/cuda/bulk_copy.cuh"
#include "backends/cuda/bulk_map.cuh"
#include "backends/cuda/lane_exchange.cuh"
#include "backends/cuda/overlap.cuh"
#include "backends/cuda/warpgroup.cuh"

namespace
{

enum { ROWS = 64, GROUP_WARPS = 4, TILE = 64, PANEL = ROWS * PANEL_ROW };

/* Limited by registers and shared memory. With few rows a block has one group, for more blocks; two where a
 * head has no rows for more. Four leave no registers for masks in pairs. */
template <int SIZE> constexpr int most_groups = SIZE > 128 ? 2 : SIZE > 64 ? 3 : 4;
template <int SIZE> constexpr int stages = SIZE > 128 ? 2 : SIZE > 64 ? 3 : 6;
/* What scores need: a scale; anything; a scale and a mask that has one row for all queries; a scale and a
 * mask that has rows of its own for queries, whose tiles come as those of keys do. */
enum attention_mode { MODE_SCALE, MODE_GENERAL, MODE_BIAS, MODE_TILES, MODES };
/* With tiles of masks beside those of keys: up to so many columns. */
enum { MASKED_COLUMNS = 128 };
template <int SIZE> constexpr int masked_stages = SIZE > 64 ? 2 : 3;
template <int SIZE> constexpr int tasks_ahead = SIZE > 128 ? 1 : 2;
/* Registers that a thread takes for its rows, of what is launched and what the copying warps leave; 0: the
 * launched ones are enough. */
template <int SIZE, int GROUPS>
constexpr int row_registers = GROUPS == 4                 ? 112
                              : GROUPS == 3               ? 160
                              : GROUPS == 2 && SIZE > 128 ? 232
                                                          : 0;
template <int SIZE> constexpr int panels = (SIZE + 63) / 64;

/* GROUPS: of a block. */
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

    /* True if the row can do without keys that a finite number hides: it has seen others, or has none. */
    __device__ __forceinline__ bool has_seen(int r) const
    {
        return this->limits[r].y <= 0 || this->top[r] > SEEN_FROM;
    }

    /* True if the warp's rows need nothing of the tile. Called by all its lanes. Scores and values behind
     * such a mask do not reach the result, also where they are not finite. */
    __device__ __forceinline__ bool needs_none(int dtype, const char *mask, uint32_t warp,
                                               uint32_t lane) const
    {
        bool none = false;
        mask_with_type(dtype, [&](auto of) { none = mask_tile_hides<decltype(of)>(mask, warp, lane); });
        const bool infinite = dtype == GRT_DTYPE_BOOL || dtype == GRT_DTYPE_FLOAT16;
        return none && (infinite || __all_sync(0xffffffffu, has_seen(0) && has_seen(1)));
    }

    /* Scores of N keys become weights, with the tile of a mask. */
    template <int N>
    __device__ __forceinline__ void weigh_tile(const attention_shape &s, const char *mask, float (*score)[4],
                                               int tile, uint32_t warp, uint32_t lane)
    {
        const uint32_t row = warp * WARP_ROWS + (lane >> 2), quad = lane & 3;
        mask_with_type(s.mask_dtype, [&](auto of) {
            mask_tile_add<N, decltype(of)>(mask, (float)s.scale * LOG2E, score, row, quad);
        });
        if (!this->template has_all<N>(tile))
            this->template limit<N>(score, tile, (int)quad);
        this->template become_weights<N>(1.0f, score);
    }

    /* N keys from number `tile` on. A warp without rows only takes part in what the group does together. */
    template <int N, int MODE>
    __device__ __forceinline__ void take(const attention_shape &s, const void *mask, const float *bias,
                                         const char *mask_tile, uint32_t q, uint32_t keys, uint32_t values,
                                         int tile, bool idle, int warp, int lane)
    {
        float score[N / 8][4];
        take_scores<N>(score, q, keys);
        if (!idle && MODE == MODE_TILES)
            weigh_tile<N>(s, mask_tile, score, tile, warp, lane);
        else if (!idle)
            this->template weigh<N, MODE != MODE_SCALE, MODE == MODE_BIAS>(s, mask, score, tile, lane, bias);
        add_values<N>(score, values);
    }
};

/* Tasks of a team are GROUPS x 64 rows of a head, and TILE of its keys and values after the other. A block
 * has one team, or two, which hide each other's ends. A further warpgroup issues the copies, as far ahead as
 * there is room, across tasks, and reads masks that all rows of a head share. */
template <int SIZE, int GROUPS, int TEAMS, int MODE> struct alignas(PANEL_ALIGNMENT) team_memory {
    enum {
        TILES = MODE == MODE_TILES,
        STAGES = TILES       ? masked_stages<SIZE>
                 : TEAMS > 1 ? 4
                             : stages<SIZE>,
        TASKS = tasks_ahead<SIZE>,
        MATRIX = panels<SIZE> * PANEL,
        MASKS = TILES ? GROUPS : 1,
        MASK = TILES ? CUDA_MASK_ROWS * CUDA_MASK_KEYS * (int)sizeof(float) : 16 /* none */
    };
    char q[TASKS][GROUPS][MATRIX];
    char keys[STAGES][MATRIX], values[STAGES][MATRIX];
    char masks[STAGES][MASKS][MASK];
    float bias[STAGES][TILE]; /* of keys, times log2(e) */
    uint64_t tile_full[STAGES], tile_empty[STAGES], q_full[TASKS], q_empty[TASKS];
};

struct attention_maps {
    CUtensorMap q, k, v, mask;
    uint32_t mask_size; /* of its elements; MODE_TILES */
};

/* Of all teams, one after the other. */
template <int TEAMS> __device__ __forceinline__ uint32_t first_task(int team)
{
    return blockIdx.x * TEAMS + team;
}
template <int TEAMS> __device__ __forceinline__ uint32_t next_task(uint32_t task)
{
    return task + gridDim.x * TEAMS;
}

/* The task's mask for keys from `tile` on: a tile of each group. */
template <int GROUPS, class MASKS>
__device__ __forceinline__ void fetch_masks(const attention_shape &s, const attention_maps &maps,
                                            const attention_block_task &t, int tile, MASKS &masks,
                                            uint64_t *full)
{
    const int head = s.mask_strides[1] ? t.head : 0, batch = s.mask_strides[0] ? t.batch : 0,
              columns = (int)cuda_mask_columns(maps.mask_size);
    for (int g = 0; g < GROUPS; g++)
        for (int key = 0; key < CUDA_MASK_KEYS; key += columns)
            bulk_fetch(masks[g] + key / columns * PANEL, &maps.mask, tile + key, t.first + g * ROWS, head,
                       batch, full);
}

template <int SIZE, int GROUPS, int TEAMS, int MODE>
__device__ __forceinline__ void fetch_tasks(const attention_shape &s, const int64_t *nonpad,
                                            const attention_maps &maps, uint32_t tasks, int team,
                                            team_memory<SIZE, GROUPS, TEAMS, MODE> &m)
{
    using memory = team_memory<SIZE, GROUPS, TEAMS, MODE>;
    enum { MATRIX = memory::MATRIX, PANELS = panels<SIZE> };
    const uint32_t masks = MODE == MODE_TILES ? GROUPS * cuda_mask_bytes(maps.mask_size) : 0;
    ring place = {0, 0}, q = {0, 0};
    for (uint32_t task = first_task<TEAMS>(team); task < tasks;
         task = next_task<TEAMS>(task), q.next(memory::TASKS)) {
        const attention_block_task t = attention_block_task_at(s, nonpad, task, GROUPS * ROWS, TILE);
        barrier_wait(&m.q_empty[q.at], q.phase ^ 1);
        barrier_expect(&m.q_full[q.at], GROUPS * MATRIX);
        for (int g = 0; g < GROUPS; g++)
            for (int p = 0; p < PANELS; p++)
                bulk_fetch(m.q[q.at][g] + p * PANEL, &maps.q, p * 64, t.first + g * ROWS, t.head, t.batch,
                           &m.q_full[q.at]);
        for (int tile = t.from; tile < t.to; tile += TILE, place.next(memory::STAGES)) {
            barrier_wait(&m.tile_empty[place.at], place.phase ^ 1);
            barrier_expect(&m.tile_full[place.at], 2 * MATRIX + masks);
            if constexpr (MODE == MODE_TILES)
                fetch_masks<GROUPS>(s, maps, t, tile, m.masks[place.at], &m.tile_full[place.at]);
            for (int p = 0; p < PANELS; p++) {
                bulk_fetch(m.keys[place.at] + p * PANEL, &maps.k, p * 64, tile, t.kv_head, t.batch,
                           &m.tile_full[place.at]);
                bulk_fetch(m.values[place.at] + p * PANEL, &maps.v, p * 64, tile, t.kv_head, t.batch,
                           &m.tile_full[place.at]);
            }
        }
    }
}

/* By one warp: a mask that has one row for all queries, as biases; -inf where there is none. */
template <int SIZE, int GROUPS, int TEAMS, int MODE>
__device__ __forceinline__ void fetch_biases(const attention_shape &s, const attention_data &d,
                                             uint32_t tasks, int team,
                                             team_memory<SIZE, GROUPS, TEAMS, MODE> &m, int lane)
{
    using memory = team_memory<SIZE, GROUPS, TEAMS, MODE>;
    const int there = (int)min(s.total, s.mask_len);
    ring place = {0, 0};
    for (uint32_t task = first_task<TEAMS>(team); task < tasks; task = next_task<TEAMS>(task)) {
        const attention_block_task t = attention_block_task_at(s, d.nonpad, task, GROUPS * ROWS, TILE);
        const int64_t at = attention_mask_at(s, t.batch, {t.head, 0});
        for (int tile = t.from; tile < t.to; tile += TILE, place.next(memory::STAGES)) {
            float bias[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int key = tile + 2 * lane + i;
                bias[i] =
                    key < there
                        ? attention_bounded(masked(s, d.mask, at + key * s.mask_strides[3], 0.0f)) * LOG2E
                        : -CUDART_INF_F;
            }
            barrier_wait(&m.tile_empty[place.at], place.phase ^ 1);
            *(float2 *)&m.bias[place.at][2 * lane] = make_float2(bias[0], bias[1]);
            __syncwarp();
            if (lane == 0)
                barrier_arrive(&m.tile_full[place.at]);
        }
    }
}

/* True if it is for all threads of a group, which call this together. */
__device__ __forceinline__ bool group_all(int group, bool mine)
{
    uint32_t all;
    asm volatile("{.reg .pred mine, all;\n"
                 "setp.ne.u32 mine, %2, 0;\n"
                 "bar.red.and.pred all, %1, 128, mine;\n"
                 "selp.u32 %0, 1, 0, all;}"
                 : "=r"(all)
                 : "r"(group + 1), "r"((uint32_t)mine)
                 : "memory");
    return all != 0;
}

template <class T, int SIZE, int GROUPS, int TEAMS, int MODE>
__device__ __forceinline__ void attend_tasks(const attention_shape &s, const attention_data &d,
                                             const cuda_levels &levels, uint32_t tasks, int team,
                                             team_memory<SIZE, GROUPS, TEAMS, MODE> &m, int group)
{
    using memory = team_memory<SIZE, GROUPS, TEAMS, MODE>;
    enum { CHUNKS = SIZE / 8 };
    const int lane = threadIdx.x & 31, warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5 & 3, 0);
    ring place = {0, 0}, queries = {0, 0};
    for (uint32_t task = first_task<TEAMS>(team); task < tasks;
         task = next_task<TEAMS>(task), queries.next(memory::TASKS)) {
        const attention_block_task t = attention_block_task_at(s, d.nonpad, task, GROUPS * ROWS, TILE);
        const int first = t.first + group * ROWS, mine = first + warp * WARP_ROWS, rows = (int)s.q_len;
        const bool idle = mine >= rows;
        group_rows<T, SIZE, GROUPS * TEAMS> w;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int row = mine + (lane >> 2) + 8 * r;
            w.template begin<MODE == MODE_GENERAL>(s, d, t.batch, {t.head, row}, row < rows, r);
        }
        const int2 keys = attention_group_limits(s, d.nonpad, t.batch, first, ROWS);
        const uint32_t q = (uint32_t)__cvta_generic_to_shared(m.q[queries.at][group]);
        barrier_wait(&m.q_full[queries.at], queries.phase);
        for (int tile = t.from; tile < t.to; tile += TILE, place.next(memory::STAGES)) {
            barrier_wait(&m.tile_full[place.at], place.phase);
            const char *mask = m.masks[place.at][MODE == MODE_TILES ? group : 0];
            bool takes = tile < keys.y && tile + TILE > keys.x;
            if constexpr (MODE == MODE_TILES)
                takes = takes && !group_all(group, idle || w.needs_none(s.mask_dtype, mask, warp, lane));
            if (takes) {
                const uint32_t k = (uint32_t)__cvta_generic_to_shared(m.keys[place.at]),
                               v = (uint32_t)__cvta_generic_to_shared(m.values[place.at]);
                const float *bias = m.bias[place.at];
                if (t.to - tile > SHORT_TILE)
                    w.template take<TILE, MODE>(s, d.mask, bias, mask, q, k, v, tile, idle, warp, lane);
                else
                    w.template take<SHORT_TILE, MODE>(s, d.mask, bias, mask, q, k, v, tile, idle, warp, lane);
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

template <class T, int SIZE, int GROUPS, int TEAMS, int MODE>
__global__ void __launch_bounds__(GROUPS *TEAMS * 128 + 128, 1)
    cuda_attention_warpgroup_attend(const __grid_constant__ attention_shape s,
                                    const __grid_constant__ attention_data d,
                                    const __grid_constant__ attention_maps maps, uint32_t tasks,
                                    const __grid_constant__ cuda_levels levels)
{
    enum { TEAM = GROUPS * GROUP_WARPS, WARPS = TEAM * TEAMS, TAKES = row_registers<SIZE, GROUPS * TEAMS> };
    using memory = team_memory<SIZE, GROUPS, TEAMS, MODE>;
    extern __shared__ char raw[];
    memory *all = (memory *)(((uintptr_t)raw + PANEL_ALIGNMENT - 1) / PANEL_ALIGNMENT * PANEL_ALIGNMENT);
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
    if (threadIdx.x == WARPS * 32) {
        bulk_map_fetch(&maps.q);
        bulk_map_fetch(&maps.k);
        bulk_map_fetch(&maps.v);
        if (MODE == MODE_TILES)
            bulk_map_fetch(&maps.mask);
    }
    if (threadIdx.x == 0) {
        for (int team = 0; team < TEAMS; team++) {
            memory &m = all[team];
            for (int i = 0; i < memory::STAGES; i++) {
                barrier_init(&m.tile_full[i], MODE == MODE_BIAS ? 2 : 1);
                barrier_init(&m.tile_empty[i], TEAM);
            }
            for (int i = 0; i < memory::TASKS; i++) {
                barrier_init(&m.q_full[i], 1);
                barrier_init(&m.q_empty[i], TEAM);
            }
        }
        barrier_init_done();
    }
    __syncthreads();
    overlap_wait();
    overlap_let_next_begin();
    if (warp < WARPS) {
        if constexpr (TAKES > 0)
            warpgroup_take_registers<TAKES>();
        const int team = warp / TEAM;
        attend_tasks<T, SIZE, GROUPS, TEAMS, MODE>(s, d, levels, tasks, team, all[team],
                                                   warp % TEAM / GROUP_WARPS);
    } else {
        if constexpr (TAKES > 0)
            warpgroup_leave_registers<32>();
        const int team = (warp - WARPS) / 2, lane = threadIdx.x & 31;
        if (team < TEAMS) {
            if ((warp - WARPS) % 2 == 0 && lane == 0)
                fetch_tasks<SIZE, GROUPS, TEAMS, MODE>(s, d.nonpad, maps, tasks, team, all[team]);
            if ((warp - WARPS) % 2 == 1 && MODE == MODE_BIAS)
                fetch_biases<SIZE, GROUPS, TEAMS, MODE>(s, d, tasks, team, all[team], lane);
        }
    }
}

struct choice {
    void *kernel;
    int groups, teams;
    size_t bytes;
};

template <class T, int SIZE, int GROUPS, int TEAMS, int MODE> choice warpgroup_choice()
{
    return {(void *)cuda_attention_warpgroup_attend<T, SIZE, GROUPS, TEAMS, MODE>, GROUPS, TEAMS,
            TEAMS * sizeof(team_memory<SIZE, GROUPS, TEAMS, MODE>) + PANEL_ALIGNMENT};
}

template <class T, int SIZE, int GROUPS> choice choose_mode(attention_mode mode)
{
    if constexpr (SIZE <= MASKED_COLUMNS && GROUPS <= 2)
        if (mode == MODE_TILES)
            return warpgroup_choice<T, SIZE, GROUPS, 1, MODE_TILES>();
    return mode == MODE_SCALE ? warpgroup_choice<T, SIZE, GROUPS, 1, MODE_SCALE>()
                              : warpgroup_choice<T, SIZE, GROUPS, 1, MODE_GENERAL>();
}

/* Two groups have the registers and the shared memory for masks, four have not. */
bool has_two_groups(const attention_shape *s, attention_mode mode, int most)
{
    return s->warps == 2 * GROUP_WARPS || mode == MODE_TILES ||
           (mode == MODE_GENERAL && s->mask_dtype && most > 3);
}

template <class T, int SIZE> choice choose_groups(const attention_shape *s, attention_mode mode)
{
    return s->warps == GROUP_WARPS                      ? choose_mode<T, SIZE, 1>(mode)
           : has_two_groups(s, mode, most_groups<SIZE>) ? choose_mode<T, SIZE, 2>(mode)
                                                        : choose_mode<T, SIZE, most_groups<SIZE>>(mode);
}

/* Two teams, of heads of up to 64 numbers: where a multiprocessor has several tasks of two groups. */
template <class T> choice choose_teams(const attention_shape *s, attention_mode mode)
{
    if (s->warps != 2 * GROUP_WARPS || mode == MODE_GENERAL || mode == MODE_TILES || !s->paired)
        return choose_groups<T, 64>(s, mode);
    return mode == MODE_SCALE ? warpgroup_choice<T, 64, 2, 2, MODE_SCALE>()
                              : warpgroup_choice<T, 64, 2, 2, MODE_BIAS>();
}

template <class T> choice cuda_attention_warpgroup_choose(const attention_shape *s, attention_mode mode)
{
    switch (s->columns) {
    case 32:
        return choose_groups<T, 32>(s, mode);
    case 64:
        return choose_teams<T>(s, mode);
    case 96:
        return choose_groups<T, 96>(s, mode);
    case 128:
        return choose_groups<T, 128>(s, mode);
    default:
        return choose_groups<T, 256>(s, mode);
    }
}

choice choice_for(const attention_shape *s, grt_dtype dtype, attention_mode mode)
{
    return dtype == GRT_DTYPE_FLOAT16 ? cuda_attention_warpgroup_choose<__half>(s, mode)
                                      : cuda_attention_warpgroup_choose<__nv_bfloat16>(s, mode);
}

/* True if the bulk copy engine can read it, and heads have rows for more than two groups: with fewer, warps
 * that read pairs of it have not been slow. */
bool has_mask_tiles(const attention_shape *s, const void *mask)
{
    const int64_t size = (int64_t)grt_dtype_size((grt_dtype)s->mask_dtype);
    uint64_t places = (uintptr_t)mask;
    for (int i = 0; i < 3; i++)
        places |= (uint64_t)(s->mask_strides[i] * size);
    return mask && size <= (int64_t)sizeof(float) && s->mask_strides[3] == 1 && s->mask_strides[2] > 0 &&
           places % 16 == 0 && s->columns <= MASKED_COLUMNS && s->q_len > 2 * ROWS;
}

attention_mode mode_of(const attention_shape *s, const attention_data *d)
{
    if (attention_scales_only(s, d))
        return MODE_SCALE;
    if (!d->mask || s->softcap > 0)
        return MODE_GENERAL;
    return s->mask_strides[2] == 0 ? MODE_BIAS : has_mask_tiles(s, d->mask) ? MODE_TILES : MODE_GENERAL;
}

cudaError_t map(const attention_shape *s, grt_dtype dtype, const attention_view &view, int64_t size,
                int64_t rows, int64_t heads, const void *data, CUtensorMap *out)
{
    const cuda_tensor_view of = {dtype,
                                 {(uint64_t)size, (uint64_t)rows, (uint64_t)heads, (uint64_t)s->batch},
                                 {1, (uint64_t)view.row, (uint64_t)view.head, (uint64_t)view.batch}};
    return cuda_tensor_map_encode(s->encode, &of, data, ROWS, out);
}

/* Dims along which the mask is the same have size 1; any stride does for those. */
cudaError_t map_mask(const attention_shape *s, const void *mask, attention_maps *maps)
{
    const int64_t sizes[] = {s->batch, s->q_heads, s->q_len};
    const grt_dtype dtype = (grt_dtype)s->mask_dtype;
    cuda_tensor_view of = {dtype, {(uint64_t)s->mask_len}, {1}};
    for (int i = 0; i < 3; i++) {
        const bool same = s->mask_strides[i] == 0;
        of.dims[3 - i] = same ? 1 : (uint64_t)sizes[i];
        of.strides[3 - i] = (uint64_t)s->mask_strides[same ? 2 : i];
    }
    maps->mask_size = (uint32_t)grt_dtype_size(dtype);
    return cuda_tensor_map_lines(s->encode, &of, mask, CUDA_MASK_ROWS, cuda_mask_line(maps->mask_size),
                                 &maps->mask);
}

cudaError_t map_all(const attention_shape *s, const attention_data *d, grt_dtype dtype, attention_mode mode,
                    attention_maps *maps)
{
    cudaError_t error = map(s, dtype, s->q, s->size, s->q_len, s->q_heads, d->q, &maps->q);
    if (error == cudaSuccess)
        error = map(s, dtype, s->k, s->size, s->kv_len, s->kv_heads, d->k, &maps->k);
    if (error == cudaSuccess)
        error = map(s, dtype, s->v, s->v_size, s->kv_len, s->kv_heads, d->v, &maps->v);
    if (error == cudaSuccess && mode == MODE_TILES)
        error = map_mask(s, d->mask, maps);
    return error;
}

} // namespace

/* Microseconds, but for a factor: of the multiprocessor that has most to do. */
static double warpgroup_time(const attention_shape *s, int groups, int multiprocessors)
{
    return (double)((attention_tasks(s, groups * ROWS) + multiprocessors - 1) / multiprocessors) *
           (2 + groups);
}

/* One group where there are few rows, for more blocks; two where a head has no rows for more, or where more
 * would leave multiprocessors without rows. */
void attention_warpgroup_choose(attention_shape *s, int multiprocessors)
{
    const int most = s->columns > 128  ? most_groups<256>
                     : s->columns > 64 ? most_groups<128>
                                       : most_groups<64>;
    const bool two = s->q_len <= 2 * ROWS ||
                     warpgroup_time(s, 2, multiprocessors) < warpgroup_time(s, most, multiprocessors);
    const int groups = s->few ? 1 : two ? 2 : most;
    s->warps = groups * GROUP_WARPS;
    s->paired = attention_tasks(s, groups * ROWS) > multiprocessors;
}

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
    for (int mode = MODE_SCALE; mode < MODES && error == cudaSuccess; mode++) {
        const choice c = choice_for(s, dtype, (attention_mode)mode);
        error = cudaFuncSetAttribute(c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c.bytes);
    }
    return error;
}

cudaError_t attention_warpgroup_quantised(const attention_shape *s, const attention_data *d,
                                          const cuda_levels *levels, grt_dtype dtype, int multiprocessors,
                                          cudaStream_t stream)
{
    const attention_mode mode = mode_of(s, d);
    const choice c = choice_for(s, dtype, mode);
    uint32_t tasks = (uint32_t)attention_tasks(s, c.groups * ROWS);
    attention_maps maps = {};
    const cudaError_t error = map_all(s, d, dtype, mode, &maps);
    if (error != cudaSuccess)
        return error;
    void *arguments[] = {(void *)s, (void *)d, &maps, &tasks, (void *)levels};
    const uint32_t blocks = (tasks + c.teams - 1) / c.teams;
    const bool is_short = blocks <= (uint32_t)multiprocessors;
    cudaLaunchAttribute early;
    const cudaLaunchConfig_t config =
        overlap_config(is_short, dim3(is_short ? blocks : (unsigned)multiprocessors),
                       dim3(128 * c.groups * c.teams + 128), c.bytes, stream, &early);
    return cudaLaunchKernelExC(&config, c.kernel, arguments);
}

cudaError_t attention_warpgroup(const attention_shape *s, const attention_data *d, grt_dtype dtype,
                                int multiprocessors, cudaStream_t stream)
{
    const cuda_levels none = {};
    return attention_warpgroup_quantised(s, d, &none, dtype, multiprocessors, stream);
}
