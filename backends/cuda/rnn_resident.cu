/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers whose R stays in the shared memory of the multiprocessors for all steps.
 *
 * Blocks own hidden units; each step needs all of the last step's, which they tell each other
 * (rnn_messages.cuh). Each warp multiplies some of the sum, and keeps its weights for the first of it in
 * registers.
 *
 * Blocks wait for each other, so the launch is cooperative: all run at once, or none.
 *
 * Float32 that must stay so is multiplied as the sum of two TF32 numbers each; only the product of the two
 * small ones is left out, 2^-22 of the whole. */
#include "backends/cuda/rnn.h"
#include "backends/cuda/rnn_cell.cuh"
#include "backends/cuda/rnn_messages.cuh"

namespace
{

template <class T> struct resident_job {
    rnn_data<T> data;
    rnn_places at;
    rnn_tiles tiles;
    bool reverse, relu;
    void *messages;
};

/* A word as it is multiplied: rounded once, as it comes, unless all of it is needed. */
template <class T, bool STRICT> __device__ __forceinline__ uint32_t factor_of(uint32_t word)
{
    return STRICT ? word : tensor_core<T>::operand(word);
}
template <class T, bool STRICT> __device__ __forceinline__ uint4 factors_of(uint4 v)
{
    return make_uint4(factor_of<T, STRICT>(v.x), factor_of<T, STRICT>(v.y), factor_of<T, STRICT>(v.z),
                      factor_of<T, STRICT>(v.w));
}

/* The four words from `word` on of a row of `n` elements; zeros behind its end, and for rows that there are
 * not (NULL). */
template <class T> __device__ __forceinline__ uint4 words_of(const T *row, int64_t n, int32_t word)
{
    enum { EACH = 4 / sizeof(T), ALL = 16 / sizeof(T) };
    const int64_t first = (int64_t)word * EACH;
    union {
        uint4 words;
        T v[ALL];
    } pack;
    pack.words = make_uint4(0, 0, 0, 0);
    if (row && first + ALL <= n && ((uintptr_t)(row + first) & 15) == 0)
        return *(const uint4 *)(row + first);
    if (row)
        for (int k = 0; k < ALL; k++)
            if (first + k < n)
                pack.v[k] = row[first + k];
    return pack.words;
}

/* The block's part of R, in the order of fragments. */
template <class T, bool STRICT>
__device__ void cuda_rnn_resident_load_weights(const resident_job<T> &job, int32_t d, int32_t part,
                                               uint32_t *to)
{
    const rnn_tiles &t = job.tiles;
    const int64_t n = job.at.n.hidden;
    const int32_t quads = t.chunks * 4; /* of words, in a row */
    for (int32_t i = threadIdx.x; i < t.gates * RNN_UNITS * quads; i += RNN_THREADS) {
        const int32_t word = i % quads * 4, row = i / quads, unit = row % RNN_UNITS, gate = row / RNN_UNITS;
        const int64_t j = (int64_t)part * RNN_UNITS + unit;
        const T *from = j < n ? job.data.r + ((d * t.gates + gate) * n + j) * n : nullptr;
        const uint4 v = factors_of<T, STRICT>(words_of<T>(from, n, word));
        to[rnn_fragment_at(t.gates, gate, unit, word)] = v.x;
        to[rnn_fragment_at(t.gates, gate, unit, word + 1)] = v.y;
        to[rnn_fragment_at(t.gates, gate, unit, word + 2)] = v.z;
        to[rnn_fragment_at(t.gates, gate, unit, word + 3)] = v.w;
    }
}

/* The hidden states before the first step, zeros behind their ends. */
template <class T, bool STRICT>
__device__ void load_initial(const resident_job<T> &job, int32_t d, int32_t slice, char *hidden)
{
    const rnn_tiles &t = job.tiles;
    const int32_t quads = t.pitch / 16;
    for (int32_t i = threadIdx.x; i < t.rows * quads; i += RNN_THREADS) {
        const int32_t row = i / quads, quad = i % quads;
        const int64_t b = (int64_t)slice * t.rows + row;
        const bool there = job.data.h0 && b < job.at.n.batch;
        *(uint4 *)(hidden + row * t.pitch + quad * 16) = factors_of<T, STRICT>(
            words_of<T>(there ? job.data.h0 + job.at.state(d, b) : nullptr, job.at.n.hidden, quad * 4));
    }
}

/* c += a b, of float32 in full. */
template <class T, bool STRICT>
__device__ __forceinline__ void cuda_rnn_resident_multiply(float *c, const uint32_t *a, const uint32_t *b)
{
    if constexpr (STRICT) {
        uint32_t high_a[4], low_a[4], high_b[2], low_b[2];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float x = __uint_as_float(a[k]);
            high_a[k] = tensor_core<T>::rounded(x);
            low_a[k] = tensor_core<T>::rounded(x - __uint_as_float(high_a[k]));
        }
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const float x = __uint_as_float(b[k]);
            high_b[k] = tensor_core<T>::rounded(x);
            low_b[k] = tensor_core<T>::rounded(x - __uint_as_float(high_b[k]));
        }
        tensor_core<T>::mma(c, low_a, high_b);
        tensor_core<T>::mma(c, high_a, low_b);
        tensor_core<T>::mma(c, high_a, high_b);
    } else {
        tensor_core<T>::mma(c, a, b);
    }
}

/* A chunk's weights as a lane has them: of each gate, for each of two multiplications. */
template <int GATES> using chunk_weights = uint32_t[GATES][2][4];

template <int GATES>
__device__ __forceinline__ void take_weights(const uint32_t *weights, int32_t chunk, chunk_weights<GATES> &to)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int gate = 0; gate < GATES; gate++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            *(uint4 *)to[gate][half] =
                *(const uint4 *)(weights + (((chunk * GATES + gate) * 2 + half) * 32 + lane) * 4);
}

/* How many chunks of a warp stay in registers: 128 of them, or what sums of more rows leave. Float32 in full
 * needs the registers for the parts of each number. */
template <int GATES, int EIGHTS, bool STRICT>
constexpr int chunks_held = STRICT || EIGHTS > 2             ? 0
                            : 128 / EIGHTS / (GATES * 8) < 4 ? 128 / EIGHTS / (GATES * 8)
                                                             : 4;

template <int GATES, int EIGHTS, bool STRICT> struct held_weights {
    enum { HELD = chunks_held<GATES, EIGHTS, STRICT> };
    chunk_weights<GATES> chunk[HELD > 0 ? HELD : 1];

    __device__ __forceinline__ void take(const rnn_tiles &t, const uint32_t *weights)
    {
#pragma unroll
        for (int k = 0; k < HELD; k++)
            if ((int)threadIdx.x / 32 + k * RNN_WARPS < t.chunks)
                take_weights<GATES>(weights, threadIdx.x / 32 + k * RNN_WARPS, chunk[k]);
    }
};

template <class T, int GATES, int EIGHTS, bool STRICT>
__device__ __forceinline__ void multiply_chunk(const rnn_tiles &t, int32_t chunk,
                                               const chunk_weights<GATES> &a, const char *hidden,
                                               float (&sum)[GATES][EIGHTS][4])
{
    const int lane = threadIdx.x % 32;
    uint32_t b[EIGHTS][4];
#pragma unroll
    for (int e = 0; e < EIGHTS; e++)
        *(uint4 *)b[e] = *(const uint4 *)(hidden + (e * 8 + lane / 4) * t.pitch +
                                          chunk * RNN_CHUNK_WORDS * 4 + lane % 4 * 16);
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int gate = 0; gate < GATES; gate++)
#pragma unroll
            for (int e = 0; e < EIGHTS; e++)
                cuda_rnn_resident_multiply<T, STRICT>(sum[gate][e], a[gate][half], b[e] + 2 * half);
}

/* The warp's share of the sums, of all units and rows of the block, to part[gate][unit][row]. */
template <class T, int GATES, int EIGHTS, bool STRICT>
__device__ __forceinline__ void multiply_chunks(const rnn_tiles &t,
                                                const held_weights<GATES, EIGHTS, STRICT> &held,
                                                const uint32_t *weights, const char *hidden, float *part)
{
    enum { HELD = chunks_held<GATES, EIGHTS, STRICT> };
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float sum[GATES][EIGHTS][4] = {};
    if (warp >= t.splits)
        return;
#pragma unroll
    for (int k = 0; k < HELD; k++)
        if (warp + k * RNN_WARPS < t.chunks)
            multiply_chunk<T, GATES, EIGHTS, STRICT>(t, warp + k * RNN_WARPS, held.chunk[k], hidden, sum);
    for (int32_t chunk = warp + HELD * RNN_WARPS; chunk < t.chunks; chunk += RNN_WARPS) {
        chunk_weights<GATES> a;
        take_weights<GATES>(weights, chunk, a);
        multiply_chunk<T, GATES, EIGHTS, STRICT>(t, chunk, a, hidden, sum);
    }
    float *to = part + warp * GATES * RNN_UNITS * t.rows;
#pragma unroll
    for (int gate = 0; gate < GATES; gate++)
#pragma unroll
        for (int e = 0; e < EIGHTS; e++) {
            float *at = to + (gate * RNN_UNITS + lane / 4) * t.rows + e * 8 + lane % 4 * 2;
            *(float2 *)at = make_float2(sum[gate][e][0], sum[gate][e][1]);
            *(float2 *)(at + 8 * t.rows) = make_float2(sum[gate][e][2], sum[gate][e][3]);
        }
}

/* Sigmoid and tanh: in full for float32, to 1e-7 of 1 where products are narrower. */
template <bool FULL> __device__ __forceinline__ float sigmoid(float x)
{
    return FULL ? 1 / (1 + expf(-x)) : __fdividef(1, 1 + __expf(-x));
}
template <bool FULL> __device__ __forceinline__ float hyperbolic_tangent(float x)
{
    return FULL ? tanhf(x) : 1 - __fdividef(2, 1 + __expf(2 * x));
}

/* One unit of one row: its place, its state, and the step's inputs. */
template <class T, int GATES, bool FULL> struct unit {
    bool there;
    int64_t b, j, length;
    float h, c, bias[GATES], inner_bias;
    T input[GATES]; /* widened when they are used: till then nobody waits for them */

    __device__ __forceinline__ void start(const resident_job<T> &job, int32_t d, int64_t b_, int64_t j_)
    {
        const int64_t n = job.at.n.hidden;
        b = b_;
        j = j_;
        there = b < job.at.n.batch && j < n;
        length = there ? job.at.length(job.data.lengths, b) : 0;
        h = there && job.data.h0 ? cuda_widen(job.data.h0[job.at.state(d, b) + j]) : 0;
        c = there && job.data.c0 ? cuda_widen(job.data.c0[job.at.state(d, b) + j]) : 0;
        inner_bias = 0;
#pragma unroll
        for (int g = 0; g < GATES; g++) {
            bias[g] = 0;
            input[g] = cuda_narrow<T, float>(0);
            if (!there || !job.data.bias)
                continue;
            const T *all = job.data.bias + d * 2 * GATES * n + g * n + j;
            const float outer = cuda_widen(all[0]), inner = cuda_widen(all[GATES * n]);
            /* GRU adds R's bias of the hidden gate within the reset. */
            bias[g] = GATES == 3 && g == 2 ? outer : outer + inner;
            inner_bias = inner;
        }
    }
    __device__ __forceinline__ int64_t time(const resident_job<T> &job, int32_t d, int64_t i) const
    {
        return job.reverse || d == 1 ? length - 1 - i : i;
    }
    /* On its way while other things are waited for. */
    __device__ __forceinline__ void fetch(const resident_job<T> &job, int32_t d, int64_t i)
    {
        if (i >= length)
            return;
        const T *from = job.data.projected + job.at.projected(d, time(job, d, i), b) + j;
#pragma unroll
        for (int g = 0; g < GATES; g++)
            input[g] = from[g * job.at.n.hidden];
    }
    __device__ __forceinline__ void update(const float *sums, bool relu)
    {
        float x[GATES];
#pragma unroll
        for (int g = 0; g < GATES; g++)
            x[g] = cuda_widen(input[g]) + bias[g] + (GATES == 3 && g == 2 ? 0 : sums[g]);
        if constexpr (GATES == 4) {
            c = sigmoid<FULL>(x[2]) * c + sigmoid<FULL>(x[0]) * hyperbolic_tangent<FULL>(x[3]);
            h = sigmoid<FULL>(x[1]) * hyperbolic_tangent<FULL>(c);
        } else if constexpr (GATES == 3) {
            const float keep = sigmoid<FULL>(x[0]);
            const float fresh = hyperbolic_tangent<FULL>(x[2] + sigmoid<FULL>(x[1]) * (sums[2] + inner_bias));
            h = (1 - keep) * fresh + keep * h;
        } else {
            h = !relu ? hyperbolic_tangent<FULL>(x[0]) : x[0] < 0 ? 0 : x[0];
        }
    }
};

/* FEW: the batch has fewer rows than the one slice. */
template <class T, int GATES, int EIGHTS, bool STRICT, bool FEW>
__global__ void __launch_bounds__(RNN_THREADS, 1)
    cuda_rnn_resident_recur(const __grid_constant__ resident_job<T> job)
{
    enum { ROWS = EIGHTS * 8, ITEMS = RNN_UNITS * ROWS, EACH = (ITEMS + RNN_THREADS - 1) / RNN_THREADS };
    using messages = rnn_messages<T, GATES, STRICT>;
    extern __shared__ __align__(128) char memory[];
    const rnn_tiles &t = job.tiles;
    const int32_t part_of = blockIdx.x % t.parts, slice = blockIdx.x / t.parts % t.slices,
                  d = blockIdx.x / t.parts / t.slices;
    uint32_t *weights = (uint32_t *)memory;
    char *hidden = memory + (size_t)t.chunks * GATES * RNN_UNITS * RNN_CHUNK_WORDS * 4;
    float *part = (float *)(hidden + ROWS * t.pitch);
    unit<T, GATES, STRICT> units[EACH];
    const bool works = (int)threadIdx.x < ITEMS; /* whole warps */
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int32_t item = threadIdx.x + e * RNN_THREADS;
        units[e].start(job, d, works ? (int64_t)slice * ROWS + rnn_item_row(item, ROWS) : job.at.n.batch,
                       (int64_t)part_of * RNN_UNITS + rnn_item_unit(item, ROWS));
        units[e].fetch(job, d, 0);
    }
    cuda_rnn_resident_load_weights<T, STRICT>(job, d, part_of, weights);
    load_initial<T, STRICT>(job, d, slice, hidden);
    held_weights<GATES, EIGHTS, STRICT> held;
    __syncthreads();
    held.take(t, weights);
    /* Of few rows, those that there are not stay zeros: nobody sends them, nobody waits for them. */
    const int32_t rows = FEW ? (int32_t)job.at.n.batch : ROWS;
    for (int64_t i = 0; i < job.at.n.steps; i++) {
        if (i > 0)
            messages::receive(t, job.messages, (uint32_t)i, d, slice, rows, hidden);
        __syncthreads();
        multiply_chunks<T, GATES, EIGHTS, STRICT>(t, held, weights, hidden, part);
        __syncthreads();
        if (!works)
            continue;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int32_t item = threadIdx.x + e * RNN_THREADS;
            const int32_t row = rnn_item_row(item, ROWS), at = rnn_item_unit(item, ROWS);
            unit<T, GATES, STRICT> &u = units[e];
            float sums[GATES] = {};
            for (int32_t k = 0; k < t.splits; k++)
#pragma unroll
                for (int g = 0; g < GATES; g++)
                    sums[g] += part[((k * GATES + g) * RNN_UNITS + at) * ROWS + row];
            if (i < u.length)
                u.update(sums, job.relu);
            const uint32_t word = messages::word_of(u.h);
            if (i + 1 < job.at.n.steps && (!FEW || row < rows) && (sizeof(T) == 4 || item % 2 == 0))
                messages::send(job.messages,
                               rnn_message_at(&t, (int32_t)i + 1, d, slice, row) +
                                   ((int64_t)part_of * RNN_UNITS + at) * (int32_t)sizeof(T) / 4,
                               word, (uint32_t)i + 1);
            if (u.there && job.data.y) /* behind the end of a row: zeros */
                job.data.y[job.at.y(d, i < u.length ? u.time(job, d, i) : i, u.b) + u.j] =
                    cuda_narrow<T, float>(i < u.length ? u.h : 0.0f);
            u.fetch(job, d, i + 1);
        }
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const unit<T, GATES, STRICT> &u = units[e];
        if (u.there && job.data.last_h)
            job.data.last_h[job.at.state(d, u.b) + u.j] = cuda_narrow<T, float>(u.h);
        if (u.there && job.data.last_c)
            job.data.last_c[job.at.state(d, u.b) + u.j] = cuda_narrow<T, float>(u.c);
    }
}

/* ---- choice ---- */

/* Batches of fewer than eight rows are common; between eight and 32, what rows too many cost is little. */
template <class T, int GATES, bool STRICT> const void *by_rows(int32_t rows, int64_t batch)
{
    return rows == 8 && batch < 8 ? (const void *)cuda_rnn_resident_recur<T, GATES, 1, STRICT, true>
           : rows == 8            ? (const void *)cuda_rnn_resident_recur<T, GATES, 1, STRICT, false>
           : rows == 16           ? (const void *)cuda_rnn_resident_recur<T, GATES, 2, STRICT, false>
                                  : (const void *)cuda_rnn_resident_recur<T, GATES, 4, STRICT, false>;
}

template <class T, bool STRICT> const void *by_gates(const rnn_tiles *t, int64_t batch)
{
    return t->gates == 4   ? by_rows<T, 4, STRICT>(t->rows, batch)
           : t->gates == 3 ? by_rows<T, 3, STRICT>(t->rows, batch)
                           : by_rows<T, 1, STRICT>(t->rows, batch);
}

const void *cuda_rnn_resident_kernel_for(const rnn_layer *layer, const rnn_tiles *t, int64_t batch,
                                         grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT16    ? by_gates<__half, false>(t, batch)
           : dtype == GRT_DTYPE_BFLOAT16 ? by_gates<__nv_bfloat16, false>(t, batch)
           : layer->tf32                 ? by_gates<float, false>(t, batch)
                                         : by_gates<float, true>(t, batch);
}

/* The activations that ONNX takes where none are named; RNN may have Relu. */
bool cuda_is_usual(const rnn_layer *layer)
{
    if (layer->clip != 0 || layer->coupled || (layer->kind == GRT_RNN_GRU && !layer->linear_before_reset))
        return false;
    for (int32_t d = 0; d < layer->directions; d++) {
        const grt_rnn_act_kind first = layer->act[d][0].kind;
        if (layer->kind == GRT_RNN_PLAIN
                ? (first != GRT_RNN_TANH && first != GRT_RNN_RELU) || first != layer->act[0][0].kind
                : first != GRT_RNN_SIGMOID || layer->act[d][1].kind != GRT_RNN_TANH)
            return false;
        if (layer->kind == GRT_RNN_LSTM && layer->act[d][2].kind != GRT_RNN_TANH)
            return false;
    }
    return true;
}

template <class T>
grt_status cuda_rnn_resident_launch(const rnn_layer *layer, const rnn_size *size, const rnn_tiles *tiles,
                                    grt_dtype dtype, const void *data, void *messages, cudaStream_t stream)
{
    resident_job<T> job = {*(const rnn_data<T> *)data,
                           rnn_places_of(layer, size),
                           *tiles,
                           layer->reverse,
                           layer->act[0][0].kind == GRT_RNN_RELU,
                           messages};
    cudaLaunchAttribute together = {};
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)rnn_blocks(tiles));
    config.blockDim = dim3(RNN_THREADS);
    config.dynamicSmemBytes = tiles->shared;
    config.stream = stream;
    config.attrs = &together;
    config.numAttrs = 1;
    void *arguments[] = {&job};
    CUDA_TRY(cudaMemsetAsync(messages, 0, tiles->message_bytes, stream)); /* no step is 0 */
    CUDA_TRY(cudaLaunchKernelExC(&config, cuda_rnn_resident_kernel_for(layer, tiles, size->batch, dtype),
                                 arguments));
    return GRT_OK;
}

} // namespace

bool rnn_resident_takes(const rnn_layer *layer, const rnn_size *size, grt_dtype dtype,
                        const struct cudaDeviceProp *device, rnn_tiles *out_tiles)
{
    return device->major >= 8 && dtype != GRT_DTYPE_DOUBLE && cuda_is_usual(layer) &&
           size->steps <= INT32_MAX &&
           rnn_tiles_plan(layer->gates, layer->directions, size->batch, size->hidden,
                          (int32_t)grt_dtype_size(dtype), device->multiProcessorCount,
                          device->sharedMemPerBlockOptin, out_tiles);
}

cudaError_t rnn_resident_prepare(const rnn_layer *layer, const rnn_size *size, const rnn_tiles *tiles,
                                 grt_dtype dtype)
{
    int device = 0, most = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(cuda_rnn_resident_kernel_for(layer, tiles, size->batch, dtype),
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, most);
    return error;
}

grt_status rnn_resident_run(const rnn_layer *layer, const rnn_size *size, const rnn_tiles *tiles,
                            grt_dtype dtype, const void *data, void *messages, cudaStream_t stream)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT16:
        return cuda_rnn_resident_launch<__half>(layer, size, tiles, dtype, data, messages, stream);
    case GRT_DTYPE_BFLOAT16:
        return cuda_rnn_resident_launch<__nv_bfloat16>(layer, size, tiles, dtype, data, messages, stream);
    default:
        return cuda_rnn_resident_launch<float>(layer, size, tiles, dtype, data, messages, stream);
    }
}
