/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers whose R stays in the shared memory of the multiprocessors for all steps.
 *
 * Blocks own hidden units; each step needs all of the last step's, which they tell each other
 * (rnn_messages.cuh). Each warp multiplies some of the sum, and keeps its weights for the first of it in
 * registers.
 *
 * Blocks wait for each other, so the launch is cooperative: all run at once, or none.
 */
#include "backends/cuda/rnn.h"
#include "backends/cuda/rnn_gates.cuh"
#include "backends/cuda/rnn_messages.cuh"
#include "backends/cuda/rnn_multiply.cuh"

namespace
{

template <class T> struct resident_job {
    rnn_data<T> data;
    rnn_places at;
    rnn_tiles tiles;
    bool reverse, relu;
    void *messages;
};

template <int GATES, int EIGHTS, bool STRICT> struct held_weights {
    enum { HELD = rnn_chunks_held<GATES, EIGHTS, STRICT> };
    rnn_chunk_weights<GATES> chunk[HELD > 0 ? HELD : 1];

    __device__ __forceinline__ void take(const rnn_tiles &t, const uint32_t *weights)
    {
#pragma unroll
        for (int k = 0; k < HELD; k++)
            if ((int)threadIdx.x / 32 + k * RNN_WARPS < t.chunks)
                rnn_take_weights<GATES>(weights, threadIdx.x / 32 + k * RNN_WARPS, chunk[k]);
    }
};

/* The warp's share of the sums, of all units and rows of the block, to part[gate][unit][row]. */
template <class T, int GATES, int EIGHTS, bool STRICT>
__device__ __forceinline__ void multiply_chunks(const rnn_tiles &t,
                                                const held_weights<GATES, EIGHTS, STRICT> &held,
                                                const uint32_t *weights, const char *hidden, float *part)
{
    enum { HELD = rnn_chunks_held<GATES, EIGHTS, STRICT> };
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const char *from = hidden + lane / 4 * t.pitch + lane % 4 * 16;
    float sum[GATES][EIGHTS][4] = {};
    if (warp >= t.splits)
        return;
#pragma unroll
    for (int k = 0; k < HELD; k++)
        if (warp + k * RNN_WARPS < t.chunks)
            rnn_multiply_chunk<T, GATES, EIGHTS, STRICT>(t.pitch, warp + k * RNN_WARPS, held.chunk[k], from,
                                                         sum);
    for (int32_t chunk = warp + HELD * RNN_WARPS; chunk < t.chunks; chunk += RNN_WARPS) {
        rnn_chunk_weights<GATES> a;
        rnn_take_weights<GATES>(weights, chunk, a);
        rnn_multiply_chunk<T, GATES, EIGHTS, STRICT>(t.pitch, chunk, a, from, sum);
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

/* One unit of one row: its place, its state, and the step's inputs. */
template <class T, int GATES> struct unit {
    bool there;
    int64_t length;
    int64_t from, y; /* of time 0: the place of the first gate's input, and the one in Y */
    float h, c;
    rnn_gate_biases<GATES> bias;
    T input[GATES]; /* widened when they are used: till then nobody waits for them */

    __device__ __forceinline__ void start(const resident_job<T> &job, int32_t d, int64_t b, int64_t j)
    {
        const int64_t n = job.at.n.hidden;
        there = b < job.at.n.batch && j < n;
        length = there ? job.at.length(job.data.lengths, b) : 0;
        h = there && job.data.h0 ? cuda_widen(job.data.h0[job.at.state(d, b) + j]) : 0;
        c = there && job.data.c0 ? cuda_widen(job.data.c0[job.at.state(d, b) + j]) : 0;
        job.at.start(d, (uint32_t)b, &from, &y);
        from += j;
        y += j;
        bias = rnn_read_biases<T, GATES>(there ? job.data.bias : nullptr, d, n, j);
#pragma unroll
        for (int g = 0; g < GATES; g++)
            input[g] = cuda_narrow<T, float>(0);
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
        const T *gates = job.data.projected + from + time(job, d, i) * job.at.projected_step();
#pragma unroll
        for (int g = 0; g < GATES; g++)
            input[g] = gates[g * job.at.n.hidden];
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
    unit<T, GATES> units[EACH];
    const bool works = (int)threadIdx.x < ITEMS; /* whole warps */
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int32_t item = threadIdx.x + e * RNN_THREADS;
        units[e].start(job, d, works ? (int64_t)slice * ROWS + rnn_item_row(item, ROWS) : job.at.n.batch,
                       (int64_t)part_of * RNN_UNITS + rnn_item_unit(item, ROWS));
        units[e].fetch(job, d, 0);
    }
    rnn_load_part<T, STRICT>(job.data, job.at, 0, t.chunks, d, part_of, weights);
    rnn_load_initial<T, STRICT>(job.data, job.at, d, (int64_t)slice * ROWS, ROWS, t.pitch, hidden);
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
            unit<T, GATES> &u = units[e];
            float sums[GATES] = {};
            for (int32_t k = 0; k < t.splits; k++)
#pragma unroll
                for (int g = 0; g < GATES; g++)
                    sums[g] += part[((k * GATES + g) * RNN_UNITS + at) * ROWS + row];
            if (i < u.length)
                rnn_update<T, GATES, STRICT>(u.input, u.bias, sums, job.relu, u.h, u.c);
            const uint32_t word = messages::word_of(u.h);
            if (i + 1 < job.at.n.steps && (!FEW || row < rows) && (sizeof(T) == 4 || item % 2 == 0))
                messages::send(job.messages,
                               rnn_message_at(&t, (int32_t)i + 1, d, slice, row) +
                                   ((int64_t)part_of * RNN_UNITS + at) * (int32_t)sizeof(T) / 4,
                               word, (uint32_t)i + 1);
            if (u.there && job.data.y) /* behind the end of a row: zeros */
                job.data.y[u.y + (i < u.length ? u.time(job, d, i) : i) * job.at.y_step()] =
                    cuda_narrow<T, float>(i < u.length ? u.h : 0.0f);
            u.fetch(job, d, i + 1);
        }
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const unit<T, GATES> &u = units[e];
        const int32_t item = threadIdx.x + e * RNN_THREADS;
        const int64_t at = job.at.state(d, (int64_t)slice * ROWS + rnn_item_row(item, ROWS)) +
                           (int64_t)part_of * RNN_UNITS + rnn_item_unit(item, ROWS);
        if (u.there && job.data.last_h)
            job.data.last_h[at] = cuda_narrow<T, float>(u.h);
        if (u.there && job.data.last_c)
            job.data.last_c[at] = cuda_narrow<T, float>(u.c);
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
    return device->major >= 8 && dtype != GRT_DTYPE_DOUBLE && rnn_gates_are_usual(layer) &&
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
