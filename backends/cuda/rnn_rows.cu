/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers small enough for a block to have all of R: each block runs all steps of its rows of the
 * batch, and waits for no other (rnn_row_blocks.h).
 *
 * A warp has a part of the hidden units, and all gates of them: what its tensor cores sum is where the gates
 * are computed, in the same lanes. Only hidden states go through shared memory, from one step to the next. */
#include "backends/cuda/rnn.h"
#include "backends/cuda/rnn_gates.cuh"
#include "backends/cuda/rnn_multiply.cuh"

namespace
{

template <class T> struct rows_job {
    rnn_data<T> data;
    rnn_places at;
    rnn_row_blocks rows;
    bool reverse, relu;
};

/* A hidden state as the next step multiplies it. */
template <class T, bool STRICT> __device__ __forceinline__ void store_hidden(T *to, float h)
{
    if constexpr (sizeof(T) == 4 && !STRICT)
        *(uint32_t *)to = tensor_core<T>::rounded(h);
    else
        *to = cuda_narrow<T, float>(h);
}

/* What a lane has of one row: two units, the first j and the other eight behind it. */
template <class T, int GATES> struct lane_row {
    int64_t y, length; /* y: of time 0 and unit 0; -1: nothing is stored */
    const T *from;     /* the inputs of the step that is fetched next, of unit 0 */
    float h[2], c[2];
    T input[2][GATES], coming[2][GATES]; /* widened when they are used: till then nobody waits for them */

    __device__ __forceinline__ void start(const rows_job<T> &job, int32_t d, int64_t row, int32_t j,
                                          bool back)
    {
        const bool there = row < job.at.n.batch;
        const int64_t b = there ? row : 0;
        length = there ? job.at.length(job.data.lengths, b) : 0;
        int64_t x;
        job.at.start(d, (uint32_t)b, &x, &y);
        y = there && job.data.y ? y : -1;
        from = job.data.projected + x + (back && length > 0 ? (length - 1) * job.at.projected_step() : 0);
#pragma unroll
        for (int u = 0; u < 2; u++) {
            const int64_t state = job.at.state(d, b) + j + 8 * u;
            const bool is_unit = there && j + 8 * u < job.at.n.hidden;
            h[u] = is_unit && job.data.h0 ? cuda_widen(job.data.h0[state]) : 0;
            c[u] = is_unit && job.data.c0 ? cuda_widen(job.data.c0[state]) : 0;
#pragma unroll
            for (int g = 0; g < GATES; g++)
                input[u][g] = coming[u][g] = cuda_narrow<T, float>(0);
        }
    }
    /* On its way while other things are waited for. */
    __device__ __forceinline__ void fetch(const rows_job<T> &job, int64_t i, int32_t j, int64_t step,
                                          T (&to)[2][GATES])
    {
        if (i >= length)
            return;
#pragma unroll
        for (int u = 0; u < 2; u++)
            if (j + 8 * u < job.at.n.hidden)
#pragma unroll
                for (int g = 0; g < GATES; g++)
                    to[u][g] = from[g * job.at.n.hidden + j + 8 * u];
        from += step;
    }
    __device__ __forceinline__ void take_coming()
    {
#pragma unroll
        for (int u = 0; u < 2; u++)
#pragma unroll
            for (int g = 0; g < GATES; g++)
                input[u][g] = coming[u][g];
    }
};

template <class T, int GATES, int EIGHTS, bool STRICT, int WARPS>
__global__ void __launch_bounds__(WARPS * 32) recur_rows(const __grid_constant__ rows_job<T> job)
{
    /* EARLY: registers are left for inputs of two steps, which then come while all of a step is computed. */
    enum {
        ROWS = EIGHTS * 8,
        HELD = WARPS > RNN_ROWS_WARPS ? 0 : rnn_chunks_held<GATES, EIGHTS, STRICT>,
        EARLY = EIGHTS == 1 && WARPS <= RNN_ROWS_WARPS
    };
    extern __shared__ __align__(128) char memory[];
    const rnn_row_blocks &t = job.rows;
    const int32_t lane = threadIdx.x % 32, part = threadIdx.x / 32, j = part * RNN_UNITS + lane / 4;
    const int32_t d = blockIdx.x % job.at.directions;
    const int64_t first = (int64_t)(blockIdx.x / job.at.directions) * ROWS, n = job.at.n.hidden;
    const bool back = job.reverse || d == 1;
    const int64_t steps = job.at.n.steps, ahead = job.at.projected_step(), y_step = job.at.y_step(),
                  step = back ? -ahead : ahead;
    char *hidden = memory + t.parts * t.part_bytes;
    for (int32_t p = 0; p < t.parts; p++)
        rnn_load_part<T, STRICT>(job.data, job.at, t.chunks, d, p, (uint32_t *)(memory + p * t.part_bytes));
    for (int k = 0; k < 2; k++) /* the second for the zeros behind its rows' ends */
        rnn_load_initial<T, STRICT>(job.data, job.at, d, first, ROWS, t.pitch, hidden + k * ROWS * t.pitch);
    lane_row<T, GATES> mine[EIGHTS][2];
    rnn_gate_biases<GATES> bias[2];
#pragma unroll
    for (int u = 0; u < 2; u++)
        bias[u] = rnn_read_biases<T, GATES>(j + 8 * u < n ? job.data.bias : nullptr, d, n, j + 8 * u);
#pragma unroll
    for (int e = 0; e < EIGHTS; e++)
#pragma unroll
        for (int k = 0; k < 2; k++) {
            mine[e][k].start(job, d, first + e * 8 + rnn_rows_row(lane % 4 * 2 + k), j, back);
            mine[e][k].fetch(job, 0, j, step, mine[e][k].input);
        }
    __syncthreads();
    const uint32_t *weights = (const uint32_t *)(memory + part * t.part_bytes);
    rnn_chunk_weights<GATES> held[HELD > 0 ? HELD : 1];
#pragma unroll
    for (int k = 0; k < HELD; k++)
        if (k < t.chunks)
            rnn_take_weights<GATES>(weights, k, held[k]);
    for (int64_t i = 0; i < steps; i++) {
        const char *now =
            hidden + (i & 1) * ROWS * t.pitch + rnn_rows_row(lane / 4) * t.pitch + lane % 4 * 16;
        char *next = hidden + ((i + 1) & 1) * ROWS * t.pitch;
        float sum[GATES][EIGHTS][4] = {};
        if (EARLY)
#pragma unroll
            for (int e = 0; e < EIGHTS; e++)
#pragma unroll
                for (int k = 0; k < 2; k++)
                    mine[e][k].fetch(job, i + 1, j, step, mine[e][k].coming);
#pragma unroll
        for (int k = 0; k < HELD; k++)
            if (k < t.chunks)
                rnn_multiply_chunk<T, GATES, EIGHTS, STRICT>(t.pitch, k, held[k], now, sum);
        for (int32_t chunk = HELD; chunk < t.chunks; chunk++) {
            rnn_chunk_weights<GATES> a;
            rnn_take_weights<GATES>(weights, chunk, a);
            rnn_multiply_chunk<T, GATES, EIGHTS, STRICT>(t.pitch, chunk, a, now, sum);
        }
#pragma unroll
        for (int e = 0; e < EIGHTS; e++)
#pragma unroll
            for (int k = 0; k < 2; k++) {
                lane_row<T, GATES> &row = mine[e][k];
                const int32_t at = e * 8 + rnn_rows_row(lane % 4 * 2 + k);
                const bool goes_on = i < row.length;
                T *y = row.y >= 0 ? job.data.y + row.y + (goes_on && back ? row.length - 1 - i : i) * y_step
                                  : nullptr;
#pragma unroll
                for (int u = 0; u < 2; u++) {
                    if (j + 8 * u >= n)
                        continue;
                    float sums[GATES];
#pragma unroll
                    for (int g = 0; g < GATES; g++)
                        sums[g] = sum[g][e][2 * u + k];
                    if (goes_on)
                        rnn_update<T, GATES, STRICT>(row.input[u], bias[u], sums, job.relu, row.h[u],
                                                     row.c[u]);
                    store_hidden<T, STRICT>((T *)(next + at * t.pitch) + j + 8 * u, row.h[u]);
                    if (y) /* behind the end of a row: zeros */
                        y[j + 8 * u] = cuda_narrow<T, float>(goes_on ? row.h[u] : 0.0f);
                }
                if (EARLY)
                    row.take_coming();
                else
                    row.fetch(job, i + 1, j, step, row.input);
            }
        __syncthreads();
    }
#pragma unroll
    for (int e = 0; e < EIGHTS; e++)
#pragma unroll
        for (int k = 0; k < 2; k++)
#pragma unroll
            for (int u = 0; u < 2; u++) {
                const int64_t b = first + e * 8 + rnn_rows_row(lane % 4 * 2 + k), at = j + 8 * u;
                if (b >= job.at.n.batch || at >= n)
                    continue;
                if (job.data.last_h)
                    job.data.last_h[job.at.state(d, b) + at] = cuda_narrow<T, float>(mine[e][k].h[u]);
                if (job.data.last_c)
                    job.data.last_c[job.at.state(d, b) + at] = cuda_narrow<T, float>(mine[e][k].c[u]);
            }
}

/* ---- choice ---- */

template <class T, int GATES, bool STRICT> const void *by_shape(const rnn_row_blocks *t)
{
    return t->parts > RNN_ROWS_WARPS ? (const void *)recur_rows<T, GATES, 1, STRICT, RNN_ROWS_MOST_WARPS>
           : t->rows == 8            ? (const void *)recur_rows<T, GATES, 1, STRICT, RNN_ROWS_WARPS>
                                     : (const void *)recur_rows<T, GATES, 2, STRICT, RNN_ROWS_WARPS>;
}

template <class T, bool STRICT> const void *by_gates_of(int32_t gates, const rnn_row_blocks *t)
{
    return gates == 4   ? by_shape<T, 4, STRICT>(t)
           : gates == 3 ? by_shape<T, 3, STRICT>(t)
                        : by_shape<T, 1, STRICT>(t);
}

const void *rows_kernel_for(const rnn_layer *layer, const rnn_row_blocks *t, grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT16    ? by_gates_of<__half, false>(layer->gates, t)
           : dtype == GRT_DTYPE_BFLOAT16 ? by_gates_of<__nv_bfloat16, false>(layer->gates, t)
           : layer->tf32                 ? by_gates_of<float, false>(layer->gates, t)
                                         : by_gates_of<float, true>(layer->gates, t);
}

template <class T>
grt_status launch_rows(const rnn_layer *layer, const rnn_size *size, const rnn_row_blocks *t, grt_dtype dtype,
                       const void *data, cudaStream_t stream)
{
    rows_job<T> job = {*(const rnn_data<T> *)data, rnn_places_of(layer, size), *t, layer->reverse,
                       layer->act[0][0].kind == GRT_RNN_RELU};
    void *arguments[] = {&job};
    CUDA_TRY(cudaLaunchKernel(rows_kernel_for(layer, t, dtype), dim3((unsigned)t->blocks),
                              dim3((unsigned)t->parts * 32), arguments, t->shared, stream));
    return GRT_OK;
}

} // namespace

bool rnn_rows_takes(const rnn_layer *layer, const rnn_size *size, grt_dtype dtype,
                    const struct cudaDeviceProp *device, rnn_row_blocks *out_rows)
{
    return device->major >= 8 && dtype != GRT_DTYPE_DOUBLE && rnn_gates_are_usual(layer) &&
           rnn_row_blocks_plan(layer->gates, layer->directions, size->batch, size->hidden,
                               (int32_t)grt_dtype_size(dtype), dtype == GRT_DTYPE_FLOAT && !layer->tf32,
                               device->multiProcessorCount, device->sharedMemPerBlockOptin, out_rows);
}

cudaError_t rnn_rows_prepare(const rnn_layer *layer, const rnn_row_blocks *rows, grt_dtype dtype)
{
    int device = 0, most = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(rows_kernel_for(layer, rows, dtype),
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, most);
    return error;
}

grt_status rnn_rows_run(const rnn_layer *layer, const rnn_size *size, const rnn_row_blocks *rows,
                        grt_dtype dtype, const void *data, cudaStream_t stream)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT16:
        return launch_rows<__half>(layer, size, rows, dtype, data, stream);
    case GRT_DTYPE_BFLOAT16:
        return launch_rows<__nv_bfloat16>(layer, size, rows, dtype, data, stream);
    default:
        return launch_rows<float>(layer, size, rows, dtype, data, stream);
    }
}
