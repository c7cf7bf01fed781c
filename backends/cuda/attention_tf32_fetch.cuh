/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values on their way to attention_warpgroup_tf32.cu's tiles: warpgroups read them into registers,
 * round them to nearest and write them to shared memory, values transposed. What comes next is on its way
 * while a part is written. */
#ifndef GRT_BACKENDS_CUDA_ATTENTION_TF32_FETCH_CUH
#define GRT_BACKENDS_CUDA_ATTENTION_TF32_FETCH_CUH

#include "backends/cuda/attention_blocks.cuh"
#include "backends/cuda/attention_plan.h"
#include "backends/cuda/bulk_copy.cuh"
#include "backends/cuda/warpgroup_tf32.cuh"

#include <type_traits>

enum {
    ROWS = CUDA_ATTENTION_ROWS,
    MOST_GROUPS = CUDA_ATTENTION_GROUPS,
    FETCHERS = 128,
    ROW_NUMBERS = PANEL_ROW / 4,
    CHUNK = 4
};

/* Heads above 96 leave no registers for queries, which then lie in shared memory, and little room there. */
template <int SIZE> constexpr bool shares_queries = SIZE > 96;
template <int SIZE> constexpr int tile_keys = SIZE > 128 ? 32 : 64;
template <int SIZE> constexpr int key_slots = SIZE == 128 || SIZE > 160 ? 2 : 3;
template <int SIZE> constexpr int value_slots = SIZE > 192 ? 1 : SIZE == 128 || SIZE > 160 ? 2 : 3;
/* Registers of threads with rows, and of those that fetch: in all what is launched. */
template <int SIZE>
constexpr int row_registers = SIZE > 192   ? 184
                              : SIZE > 160 ? 168
                              : SIZE > 128 ? 152
                              : SIZE > 96  ? 144
                                           : 184;
template <int SIZE> constexpr int fetch_registers = 256 - row_registers<SIZE>;
/* What a thread that fetches reads at once, in 16 bytes; the next as many are on their way by then. */
template <int SIZE> constexpr int part_chunks = SIZE > 96 && SIZE <= 192 ? 8 : 4;
/* Panels of 32 columns. */
template <int SIZE> constexpr int panels = (SIZE + ROW_NUMBERS - 1) / ROW_NUMBERS;

/* Rings of slots with a tile each. Keys: panels of 32 columns and a row a key. Values: panels of 32 keys and
 * a row a column. Behind them the queries of all groups, where they are shared. */
template <int SIZE> struct block_memory {
    enum {
        KEYS = tile_keys<SIZE>,
        PANEL = KEYS * PANEL_ROW,
        VALUE_PANEL = SIZE * PANEL_ROW,
        QUERY_PANEL = ROWS * PANEL_ROW,
        QUERIES = shares_queries<SIZE> ? panels<SIZE> * QUERY_PANEL : 0
    };
    char keys[key_slots<SIZE>][panels<SIZE> * PANEL];
    char values[value_slots<SIZE>][KEYS / ROW_NUMBERS * VALUE_PANEL];
    union {
        struct {
            uint64_t key_full[key_slots<SIZE>], key_empty[key_slots<SIZE>];
            uint64_t value_full[value_slots<SIZE>], value_empty[value_slots<SIZE>];
        };
        char whole[PANEL_ALIGNMENT];
    };
};

static __device__ __forceinline__ uint32_t shared_at(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

static __device__ __forceinline__ float4 load_chunk(const float *from, bool there)
{
    return there ? __ldg((const float4 *)from) : make_float4(0, 0, 0, 0);
}

/* To nearest, of which tensor cores drop the rest. A NaN stays one. */
static __device__ __forceinline__ uint32_t half_added(float x)
{
    return x == x ? __float_as_uint(x) + 0x1000 : __float_as_uint(x);
}

static __device__ __forceinline__ void store_chunk(uint32_t to, float a, float b, float c, float d)
{
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(half_added(a)), "r"(half_added(b)),
                 "r"(half_added(c)), "r"(half_added(d))
                 : "memory");
}

/* A part of a tile of COUNT keys: what a thread has of it, MOST times 16 bytes of rows that are 16 apart,
 * panel by panel. */
template <int SIZE, int COUNT, int MOST> struct key_part {
    enum {
        STEP = FETCHERS / 8,
        PANELS = panels<SIZE>,
        EACH = PANELS * COUNT / STEP,
        PARTS = (EACH + MOST - 1) / MOST,
        NUMBERS = EACH / PARTS
    };
    static_assert(EACH % PARTS == 0, "parts are equal");
    float4 v[NUMBERS];

    static __device__ __forceinline__ int down(int part, int i)
    {
        return (part * NUMBERS + i) / PANELS * STEP;
    }
    static __device__ __forceinline__ int panel(int part, int i)
    {
        return (part * NUMBERS + i) % PANELS;
    }

    /* Of rows from `from` on, `left` of which are there. */
    __device__ __forceinline__ void load(int part, const float *from, int64_t step, int columns, int left,
                                         int thread)
    {
        const int row = thread / 8, column = thread % 8 * CHUNK;
        from += row * step + column;
#pragma unroll
        for (int i = 0; i < NUMBERS; i++)
            v[i] = load_chunk(from + down(part, i) * step + panel(part, i) * ROW_NUMBERS,
                              down(part, i) < left - row && panel(part, i) * ROW_NUMBERS < columns - column);
    }

    __device__ __forceinline__ void store(int part, uint32_t to, int thread) const
    {
        const int row = thread / 8, chunk = thread % 8;
        to += row * PANEL_ROW + ((chunk ^ (row & 7)) << 4);
#pragma unroll
        for (int i = 0; i < NUMBERS; i++)
            store_chunk(to + panel(part, i) * COUNT * PANEL_ROW + down(part, i) * PANEL_ROW, v[i].x, v[i].y,
                        v[i].z, v[i].w);
    }
};

/* A part of a tile's values: squares of 4 x 4, which are transposed. A sum has no order: keys 2 i and 2 i + 1
 * of eight take the places i and i + 4, which is where a lane has their weights. */
template <int SIZE> struct value_part {
    enum {
        ALL_KEYS = tile_keys<SIZE> == 2 * ROW_NUMBERS, /* half of the threads have the second panel of keys */
        STEP = ALL_KEYS ? ROW_NUMBERS : 2 * ROW_NUMBERS,
        SQUARES = (SIZE + STEP - 1) / STEP,
        EACH = part_chunks<SIZE> / CHUNK,
        PARTS = (SQUARES + EACH - 1) / EACH
    };
    float4 v[EACH][4];

    static __device__ __forceinline__ int column_of(int thread)
    {
        return (thread >> 3 & 7) * CHUNK + (ALL_KEYS ? 0 : (thread >> 6) * ROW_NUMBERS);
    }

    __device__ __forceinline__ void load(int part, const float *from, int64_t step, int columns, int left,
                                         int thread)
    {
        const int place = thread & 7, column = column_of(thread),
                  key = (place >> 1) * 8 + (place & 1) + (ALL_KEYS ? (thread >> 6) * ROW_NUMBERS : 0);
        from += key * step + column;
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int across = (part * EACH + i) * STEP;
                v[i][j] =
                    load_chunk(from + 2 * j * step + across, 2 * j < left - key && across < columns - column);
            }
    }

    __device__ __forceinline__ void store(int part, uint32_t to, int thread) const
    {
        const int column = column_of(thread), chunk = (thread & 7) ^ (column & 4);
        to += (ALL_KEYS ? (thread >> 6) * SIZE * PANEL_ROW : 0) + column * PANEL_ROW;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int across = (part * EACH + i) * STEP;
            if (across + column >= SIZE)
                continue;
            const uint32_t row = to + across * PANEL_ROW;
            store_chunk(row + (chunk << 4), v[i][0].x, v[i][1].x, v[i][2].x, v[i][3].x);
            store_chunk(row + PANEL_ROW + ((chunk ^ 1) << 4), v[i][0].y, v[i][1].y, v[i][2].y, v[i][3].y);
            store_chunk(row + 2 * PANEL_ROW + ((chunk ^ 2) << 4), v[i][0].z, v[i][1].z, v[i][2].z, v[i][3].z);
            store_chunk(row + 3 * PANEL_ROW + ((chunk ^ 3) << 4), v[i][0].w, v[i][1].w, v[i][2].w, v[i][3].w);
        }
    }
};

/* The tiles of a block, one after the other, across its tasks. */
template <int SIZE> struct tile_walk {
    const attention_shape &s;
    const attention_view &view;
    const int64_t *nonpad;
    const float *data, *from;
    uint32_t task, tasks;
    int block_rows, tile, to;

    __device__ __forceinline__ bool more() const
    {
        return task < tasks;
    }
    __device__ __forceinline__ int left() const
    {
        return to - tile;
    }
    /* The first tile of this task or a later one. */
    __device__ __forceinline__ void find()
    {
        for (; task < tasks; task += gridDim.x) {
            const attention_block_task t =
                attention_block_task_at(s, nonpad, task, block_rows, tile_keys<SIZE>);
            tile = t.from;
            to = t.to;
            from = data + t.batch * view.batch + t.kv_head * view.head + tile * view.row;
            if (tile < to)
                break;
        }
    }
    __device__ __forceinline__ void next()
    {
        tile += tile_keys<SIZE>;
        from += tile_keys<SIZE> * view.row;
        if (tile < to)
            return;
        task += gridDim.x;
        find();
    }
};

/* One warpgroup fetches all tasks' keys, another one their values. */
template <int SIZE, bool VALUES>
static __device__ __forceinline__ void fetch_tasks(const attention_shape &s, const attention_data &d,
                                                   uint32_t tasks, int block_rows, block_memory<SIZE> &m,
                                                   int thread)
{
    using part =
        std::conditional_t<VALUES, value_part<SIZE>, key_part<SIZE, tile_keys<SIZE>, part_chunks<SIZE>>>;
    enum {
        SLOTS = VALUES ? value_slots<SIZE> : key_slots<SIZE>,
        MATRIX = VALUES ? sizeof m.values[0] : sizeof m.keys[0],
        PARTS = part::PARTS
    };
    uint64_t *full = VALUES ? m.value_full : m.key_full, *empty = VALUES ? m.value_empty : m.key_empty;
    const uint32_t slots = shared_at(VALUES ? m.values[0] : m.keys[0]);
    const attention_view &view = VALUES ? s.v : s.k;
    const int columns = (int)(VALUES ? s.v_size : s.size);
    tile_walk<SIZE> walk = {
        s, view, d.nonpad, (const float *)(VALUES ? d.v : d.k), NULL, blockIdx.x, tasks, block_rows, 0, 0};
    part parts[2];
    ring place = {0, 0};
    walk.find();
    if (walk.more())
        parts[0].load(0, walk.from, view.row, columns, walk.left(), thread);
    while (walk.more())
#pragma unroll
        for (int k = 0; k < 2 * PARTS; k++) { /* two tiles, so that registers are known by name */
            const int now = k % PARTS;
            if (now == 0 && !walk.more())
                break;
            if (now == PARTS - 1)
                walk.next();
            if (now < PARTS - 1 || walk.more())
                parts[(k + 1) & 1].load((now + 1) % PARTS, walk.from, view.row, columns, walk.left(), thread);
            if (now == 0)
                barrier_wait(&empty[place.at], place.phase ^ 1);
            parts[k & 1].store(now, slots + place.at * MATRIX, thread);
            if (now < PARTS - 1)
                continue;
            publish_shared();
            __syncwarp();
            if (thread % 32 == 0)
                barrier_arrive(&full[place.at]);
            place.next(SLOTS);
        }
}

#endif
