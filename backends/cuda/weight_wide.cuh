/* SPDX-License-Identifier: Apache-2.0 */
/* See weight_product.h: products of many rows by wgmma. Weights are the left operand, in registers: a group
 * of four warps has 64 columns, and all groups of a block the same rows of x, which are read from shared
 * memory. Four more warps bring what comes, as far ahead as there is room. While a group's products of one
 * tile of k are computed, it widens its weights of the next. Scales of blocks are multiplied into weights as
 * DequantizeLinear says, rounded to x's type. */
#ifndef GRT_BACKENDS_CUDA_WEIGHT_WIDE_CUH
#define GRT_BACKENDS_CUDA_WEIGHT_WIDE_CUH

#include "backends/cuda/bulk_copy.cuh"
#include "backends/cuda/warpgroup.cuh"
#include "backends/cuda/weight_finish.cuh"
#include "backends/cuda/weight_number.cuh"
#include "backends/cuda/weight_pack.h"

#include <type_traits>

namespace
{

/* BLOCKS: of k with a scale, in a tile; 0: one scale for each column, which is applied at the end. */
template <class T, cuda_weight_numbers F, int BLOCKS_OF_TILE, int GROUPS_OF_N, int ROWS_OF_X, int AHEAD>
struct wide_form {
    using number = T;
    using reader = weight_reader<T, F>;
    enum {
        BLOCKS = BLOCKS_OF_TILE,
        GROUPS = GROUPS_OF_N,
        ROWS = ROWS_OF_X,
        STAGES = AHEAD,
        TILES = GROUPS * 4,
        COLUMNS = TILES * 16,
        THREADS = GROUPS * 128 + 128,
        /* Registers of a thread that multiplies, and of one that does not: as many as all are launched with.
         */
        BLOCKS_AT_ONCE = GROUPS == 1  ? 3
                         : ROWS <= 64 ? 2
                                      : 1,
        MULTIPLY_REGISTERS = GROUPS == 1  ? 104
                             : ROWS <= 64 ? 96
                                          : 232,
        FETCH_REGISTERS = GROUPS == 1  ? 56
                          : ROWS <= 64 ? 48
                                       : 40,
        AT_ONCE = ROWS < 128 ? ROWS : 128, /* of a product */
        TILE_BYTES = reader::WORDS * 512,
        SCALE_BYTES = BLOCKS * 16 * (int)sizeof(T), /* of a tile */
        ZERO_BYTES = F == CUDA_WEIGHT_E4M3 ? 0 : BLOCKS * 16,
        X_BYTES = ROWS * PANEL_ROW,
        W_AT = X_BYTES,
        SCALES_AT = W_AT + TILES * TILE_BYTES,
        ZEROS_AT = SCALES_AT + TILES * SCALE_BYTES,
        STAGE_BYTES =
            (ZEROS_AT + TILES * ZERO_BYTES + PANEL_ALIGNMENT - 1) / PANEL_ALIGNMENT * PANEL_ALIGNMENT,
        Y_STRIDE = COLUMNS * (int)sizeof(T) + 16,
        Y_BYTES = ROWS * Y_STRIDE,
        ROOM = STAGES * STAGE_BYTES > Y_BYTES ? STAGES *STAGE_BYTES : Y_BYTES,
        SHARED_BYTES = ROOM + 2 * STAGES * 8 + PANEL_ALIGNMENT,
    };
};

struct wide_part {
    int tile_n, row, tile, end;
};

/* The barrier counts this thread once its copies up to here have arrived. */
__device__ __forceinline__ void arrive_with_copies(uint64_t *barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(barrier))
                 : "memory");
}

/* Scales, or zero points, of a stage: a thread has one piece of 16 bytes, or none. BYTES: of a tile. */
struct wide_piece {
    const char *from; /* NULL: none */
    int to;
};

template <int BYTES>
__device__ __forceinline__ wide_piece wide_piece_of(const cuda_weight_product &p, const void *data, int size,
                                                    int first_tile, int columns, int i)
{
    enum { PIECES = BYTES < 16 ? 1 : BYTES / 16 };
    if (BYTES == 0 || !data || i < 0 || i >= columns * PIECES)
        return {NULL, 0};
    return {(const char *)data + (size_t)(first_tile + i / PIECES) * p.blocks * 16 * size + i % PIECES * 16,
            i * 16};
}

/* Where a thread's pieces of a tile of k come from. */
struct wide_source {
    const char *w;
    int columns;
    wide_piece scale, zero;
};

template <class F>
__device__ __forceinline__ wide_source wide_source_of(const cuda_weight_product &p, const wide_part &part,
                                                      int thread)
{
    using T = typename F::number;
    wide_source from;
    from.w = (const char *)p.w + ((size_t)part.tile_n * p.tiles_k) * F::TILE_BYTES +
             thread % (F::TILE_BYTES / 16) * 16;
    from.columns = min(p.tiles_n - part.tile_n, (int)F::TILES);
    from.scale =
        wide_piece_of<F::SCALE_BYTES>(p, p.scales, (int)sizeof(T), part.tile_n, from.columns, thread);
    from.zero = wide_piece_of<F::ZERO_BYTES>(p, p.zeros, 1, part.tile_n, from.columns, 127 - thread);
    return from;
}

template <class F>
__device__ __forceinline__ void wide_fetch_weights(const cuda_weight_product &p, const wide_source &from,
                                                   int tile, char *stage, uint64_t *full, int thread)
{
    enum { PIECES = F::TILES * F::TILE_BYTES / 16 / 128, OF_TILE = F::TILE_BYTES / 16 };
    const int block = F::BLOCKS == 1 ? tile >> (p.block_log - 6) : tile;
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        const int column = (i * 128 + thread) / OF_TILE;
        if (column < from.columns)
            fetch(stage + F::W_AT + (i * 128 + thread) * 16,
                  from.w + ((size_t)column * p.tiles_k + tile) * F::TILE_BYTES, true);
    }
    if (from.scale.from)
        fetch(stage + F::SCALES_AT + from.scale.to, from.scale.from + (size_t)block * F::SCALE_BYTES, true);
    if (from.zero.from)
        fetch(stage + F::ZEROS_AT + from.zero.to, from.zero.from + (size_t)block * F::ZERO_BYTES, true);
    arrive_with_copies(full);
}

/* By the four warps that do not multiply: x by the bulk copy engine, all else, which is small and does not
 * depend on the kernel in front, by threads. */
template <class F>
__device__ __forceinline__ void wide_fetch(const cuda_weight_product &p, const CUtensorMap *map,
                                           const wide_part &part, char *stages, uint64_t *full,
                                           uint64_t *empty, int thread)
{
    const wide_source from = wide_source_of<F>(p, part, thread);
    const int room = min(part.tile + (int)F::STAGES, part.end);
    ring place = {0, 0};
    for (int tile = part.tile; tile < room; tile++)
        wide_fetch_weights<F>(p, from, tile, stages + (tile - part.tile) * F::STAGE_BYTES,
                              &full[tile - part.tile], thread);
    overlap_wait();
    for (int tile = part.tile; tile < part.end; tile++, place.next(F::STAGES)) {
        char *const stage = stages + place.at * F::STAGE_BYTES;
        barrier_wait(&empty[place.at], place.phase ^ 1);
        if (thread == 0) {
            barrier_expect(&full[place.at], F::X_BYTES);
            bulk_fetch(stage, map, tile * 64, part.row, 0, 0, &full[place.at]);
        }
        if (tile >= room)
            wide_fetch_weights<F>(p, from, tile, stage, &full[place.at], thread);
    }
    wait_for<0>();
}

__device__ __forceinline__ uint32_t wide_times(uint32_t a, uint32_t b, __half)
{
    const __half2 c = __hmul2(*(const __half2 *)&a, *(const __half2 *)&b);
    return *(const uint32_t *)&c;
}
__device__ __forceinline__ uint32_t wide_times(uint32_t a, uint32_t b, __nv_bfloat16)
{
    const __nv_bfloat162 c = __hmul2(*(const __nv_bfloat162 *)&a, *(const __nv_bfloat162 *)&b);
    return *(const uint32_t *)&c;
}

/* A warp's weights of a tile as operands of four products. */
template <class F>
__device__ __forceinline__ void wide_widen(const cuda_weight_product &p, const char *stage, int tile,
                                           int lane, uint32_t column_zeros, uint32_t (&a)[4][4])
{
    using T = typename F::number;
    enum { WORDS = F::reader::WORDS, STEPS = F::BLOCKS > 1 ? 4 / F::BLOCKS : 4 };
    enum { SCALES = F::BLOCKS ? F::BLOCKS : 1 };
    const int g = lane / 4;
    uint32_t words[4 * WORDS], scales[SCALES], zeros[SCALES];
    weight_read_words<typename F::reader>(stage + F::W_AT + tile * F::TILE_BYTES, lane, words);
#pragma unroll
    for (int b = 0; b < SCALES; b++) {
        scales[b] =
            F::BLOCKS ? ((const uint32_t *)(stage + F::SCALES_AT + tile * F::SCALE_BYTES))[b * 8 + g] : 0;
        zeros[b] = column_zeros;
        if (F::ZERO_BYTES && p.zeros)
            zeros[b] = ((const uint16_t *)(stage + F::ZEROS_AT + tile * F::ZERO_BYTES))[b * 8 + g];
    }
#pragma unroll
    for (int step = 0; step < 4; step++) {
        const int b = F::BLOCKS ? step / STEPS : 0;
        const uint32_t scale[2] = {__byte_perm(scales[b], 0, 0x1010), __byte_perm(scales[b], 0, 0x3232)};
        uint32_t zero[2];
        F::reader::prepare(zeros[b], zero);
        F::reader::read(&words[step * WORDS], zero, a[step]);
#pragma unroll
        for (int i = 0; i < 4 && F::BLOCKS; i++)
            a[step][i] = wide_times(a[step][i], scale[i % 2], T{});
    }
#pragma unroll
    for (int step = 0; step < 4; step++)
        asm volatile("" : "+r"(a[step][0]), "+r"(a[step][1]), "+r"(a[step][2]), "+r"(a[step][3]));
}

template <class F>
__device__ __forceinline__ void wide_issue(uint32_t x, uint32_t (&a)[4][4], float (&sum)[F::ROWS / 8][4])
{
    using T = typename F::number;
    warpgroup_hold<F::ROWS>(sum);
    warpgroup_begin();
#pragma unroll
    for (int step = 0; step < 4; step++)
#pragma unroll
        for (int m = 0; m < F::ROWS; m += F::AT_ONCE)
            warpgroup<T, F::AT_ONCE>::template multiply<0>(
                sum + m / 8, a[step], panel_descriptor(x + m * PANEL_ROW + step * 32), 1);
    warpgroup_commit();
}

template <class F>
__device__ __forceinline__ void wide_finish_tile(uint64_t *empty, int at, int lane,
                                                 float (&sum)[F::ROWS / 8][4])
{
    warpgroup_wait<0>();
    warpgroup_hold<F::ROWS>(sum);
    if (lane == 0)
        barrier_arrive(&empty[at]);
}

template <class F>
__device__ __forceinline__ void wide_multiply(const cuda_weight_product &p, const wide_part &part,
                                              const char *stages, uint64_t *full, uint64_t *empty, int tile,
                                              int lane, float (&sum)[F::ROWS / 8][4])
{
    const uint32_t x = (uint32_t)__cvta_generic_to_shared(stages),
                   zeros = weight_column_zeros(p, part.tile_n + tile, lane / 4);
    uint32_t a[4][4], b[4][4];
    int left = part.end - part.tile, now;
    ring place = {0, 0};
    if (left <= 0)
        return;
    barrier_wait(&full[0], 0);
    wide_widen<F>(p, stages, tile, lane, zeros, a);
    while (left > 1) {
        wide_issue<F>(x + place.at * F::STAGE_BYTES, a, sum);
        now = place.at;
        place.next(F::STAGES);
        barrier_wait(&full[place.at], place.phase);
        wide_widen<F>(p, stages + place.at * F::STAGE_BYTES, tile, lane, zeros, b);
        wide_finish_tile<F>(empty, now, lane, sum);
        wide_issue<F>(x + place.at * F::STAGE_BYTES, b, sum);
        now = place.at;
        left -= 2;
        if (left) {
            place.next(F::STAGES);
            barrier_wait(&full[place.at], place.phase);
            wide_widen<F>(p, stages + place.at * F::STAGE_BYTES, tile, lane, zeros, a);
        }
        wide_finish_tile<F>(empty, now, lane, sum);
    }
    if (left) {
        wide_issue<F>(x + place.at * F::STAGE_BYTES, a, sum);
        wide_finish_tile<F>(empty, place.at, lane, sum);
    }
}

/* A thread has sums of two columns, of rows in pairs. */
template <class F>
__device__ __forceinline__ void wide_store_partial(const cuda_weight_product &p, const wide_part &part,
                                                   int tile, int lane, const float (&sum)[F::ROWS / 8][4])
{
#pragma unroll
    for (int i = 0; i < F::ROWS / 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int row = part.row + i * 8 + lane % 4 * 2 + j % 2,
                      column = (part.tile_n + tile) * 16 + lane / 4 + j / 2 * 8;
            if (row < p.m && column < p.n)
                p.partial[((size_t)blockIdx.z * p.m + row) * p.n + column] =
                    F::BLOCKS ? sum[i][j] : sum[i][j] * weight_column_scale<typename F::number>(p, column);
        }
}

/* Results of a block's rows come together in shared memory, so that neighbours are written at once. */
template <class F>
__device__ __forceinline__ void wide_gather(const cuda_weight_product &p, const wide_part &part, int tile,
                                            int lane, const float (&sum)[F::ROWS / 8][4], char *y)
{
    using T = typename F::number;
    float scale[2] = {1.0f, 1.0f}, bias[2] = {0.0f, 0.0f};
#pragma unroll
    for (int c = 0; c < 2; c++) {
        const int column = (part.tile_n + tile) * 16 + lane / 4 + c * 8;
        if (column >= p.n)
            continue;
        if (F::BLOCKS == 0)
            scale[c] = weight_column_scale<T>(p, column);
        if (p.bias)
            bias[c] = cuda_load<float>(p.bias, p.bias_dtype, column);
    }
#pragma unroll
    for (int i = 0; i < F::ROWS / 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int row = i * 8 + lane % 4 * 2 + j % 2, column = tile * 16 + lane / 4 + j / 2 * 8;
            float x = sum[i][j] * scale[j / 2] + bias[j / 2];
            if (p.residual && part.row + row < p.m && part.tile_n * 16 + column < p.n)
                x += cuda_widen(
                    ((const T *)p.residual)[(size_t)(part.row + row) * p.n + part.tile_n * 16 + column]);
            if (p.act.kind != GRT_ACT_NONE)
                x = cuda_activate_rare(p.act, x);
            *(T *)(y + row * F::Y_STRIDE + column * (int)sizeof(T)) = cuda_narrow<T, float>(x);
        }
}

/* By the threads of all groups. */
template <class F>
__device__ __forceinline__ void wide_write(const cuda_weight_product &p, const wide_part &part, const char *y)
{
    using T = typename F::number;
    enum { EACH = 16 / (int)sizeof(T), PIECES = F::COLUMNS / EACH };
    const int rows = min(p.m - part.row, (int)F::ROWS), first = part.tile_n * 16;
    for (int i = (int)threadIdx.x; i < rows * PIECES; i += F::GROUPS * 128) {
        const int row = i / PIECES, of = i % PIECES * EACH;
        T *const to = (T *)p.y + (size_t)(part.row + row) * p.n + first + of;
        const T *const from = (const T *)(y + row * F::Y_STRIDE) + of;
        if (first + of + EACH <= p.n && ((uintptr_t)to & 15) == 0) {
            *(uint4 *)to = *(const uint4 *)from;
            continue;
        }
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (first + of + j < p.n)
                to[j] = from[j];
    }
}

template <class F>
__global__ void __launch_bounds__(F::THREADS, F::BLOCKS_AT_ONCE)
    weight_wide_kernel(const __grid_constant__ cuda_weight_product p, const __grid_constant__ CUtensorMap map)
{
    extern __shared__ char raw[];
    char *const stages = (char *)(((uintptr_t)raw + PANEL_ALIGNMENT - 1) / PANEL_ALIGNMENT * PANEL_ALIGNMENT);
    uint64_t *const full = (uint64_t *)(stages + F::ROOM), *const empty = full + F::STAGES;
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0), lane = (int)threadIdx.x % 32,
              begin = (int)blockIdx.z * p.split_tiles;
    const wide_part part = {(int)blockIdx.x * F::TILES, (int)blockIdx.y * F::ROWS, begin,
                            min(begin + p.split_tiles, p.tiles_k)};
    if (threadIdx.x == 0) {
        for (int i = 0; i < F::STAGES; i++) {
            barrier_init(&full[i], 1 + 128);
            barrier_init(&empty[i], F::GROUPS * 4);
        }
        barrier_init_done();
    }
    __syncthreads();
    overlap_let_next_begin();
    if (warp >= F::GROUPS * 4) {
        warpgroup_leave_registers<F::FETCH_REGISTERS>();
        wide_fetch<F>(p, &map, part, stages, full, empty, (int)threadIdx.x - F::GROUPS * 128);
        return;
    }
    warpgroup_take_registers<F::MULTIPLY_REGISTERS>();
    float sum[F::ROWS / 8][4] = {};
    wide_multiply<F>(p, part, stages, full, empty, warp, lane, sum);
    overlap_wait();
    if (p.partial) {
        wide_store_partial<F>(p, part, warp, lane, sum);
        return;
    }
    asm volatile("bar.sync 1, %0;" ::"n"(F::GROUPS * 128) : "memory"); /* all have read all stages */
    wide_gather<F>(p, part, warp, lane, sum, stages);
    asm volatile("bar.sync 1, %0;" ::"n"(F::GROUPS * 128) : "memory");
    wide_write<F>(p, part, stages);
}

/* ---- launches ---- */

template <class F>
grt_status wide_launch(const cuda_weight_product *p, const cuda_weight_choice *choice, cudaStream_t stream)
{
    using T = typename F::number;
    if (!p) {
        CUDA_TRY(cudaFuncSetAttribute(weight_wide_kernel<F>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      F::SHARED_BYTES));
        return GRT_OK;
    }
    const uint64_t k = (uint64_t)p->k;
    const cuda_tensor_view x = {std::is_same<T, __half>::value ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_BFLOAT16,
                                {k, (uint64_t)p->m, 1, 1},
                                {1, k, k, k}};
    CUtensorMap map;
    CUDA_TRY(cuda_tensor_map_encode(choice->encode, &x, p->x, F::ROWS, &map));
    const dim3 grid((unsigned)((p->tiles_n + F::TILES - 1) / F::TILES),
                    (unsigned)((p->m + F::ROWS - 1) / F::ROWS), (unsigned)choice->splits);
    CUDA_TRY(overlap_launch(choice->overlaps, weight_wide_kernel<F>, grid, F::THREADS, F::SHARED_BYTES,
                            stream, *p, map));
    return choice->splits > 1 ? weight_add<T>(p, choice->splits, choice->overlaps, stream) : GRT_OK;
}

template <class T, cuda_weight_numbers F, int BLOCKS>
grt_status wide_use_rows(const cuda_weight_product *p, const cuda_weight_choice *choice, cudaStream_t stream)
{
    switch (choice->spread) {
    case CUDA_WEIGHT_WIDE_32:
        return wide_launch<wide_form<T, F, BLOCKS, 2, 32, 6>>(p, choice, stream);
    case CUDA_WEIGHT_WIDE_64:
        return wide_launch<wide_form<T, F, BLOCKS, 2, 64, 6>>(p, choice, stream);
    case CUDA_WEIGHT_WIDE_128:
        return wide_launch<wide_form<T, F, BLOCKS, 2, 128, 6>>(p, choice, stream);
    default:
        return wide_launch<wide_form<T, F, BLOCKS, 2, 256, 5>>(p, choice, stream);
    }
}

/* Blocks of 16 have a kernel for 4 bits only. */
template <class T, cuda_weight_numbers F>
grt_status wide_use_blocks(const cuda_weight_product *p, const cuda_weight_choice *choice,
                           cudaStream_t stream)
{
    switch (choice->blocks) {
    case 0:
        return wide_use_rows<T, F, 0>(p, choice, stream);
    case 1:
    case 2:
        return wide_use_rows<T, F, 1>(p, choice, stream);
    case 4:
        return wide_use_rows<T, F, 2>(p, choice, stream);
    default:
        return wide_use_rows < T, F, F == CUDA_WEIGHT_4 ? 4 : 2 > (p, choice, stream);
    }
}

template <class T>
grt_status wide_use(const cuda_weight_product *p, cuda_weight_numbers numbers,
                    const cuda_weight_choice *choice, cudaStream_t stream)
{
    return weight_with_numbers(
        numbers, [&](auto n) { return wide_use_blocks<T, decltype(n)::value>(p, choice, stream); });
}

} // namespace

#endif
