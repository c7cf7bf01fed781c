/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers small enough for a block to have all of R: each block runs all steps of its rows of the
 * batch, and waits for no other (rnn_row_blocks.h).
 *
 * A warp has a part of the hidden units, and all gates of them: what its tensor cores sum is where the gates
 * are computed, in the same lanes. Only hidden states go through shared memory, from one step to the next,
 * and of R what registers do not hold. */
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

/* What is the same for all rows that a lane has. Steps are from one that is computed to the next, in numbers:
 * of the inputs, and of the output; behind a row's end the output goes forward whichever way the row was
 * read. */
struct lane_place {
    int32_t d, j; /* direction, and the first of the lane's units */
    bool is_unit[2];
    int64_t step, step_y, ahead_y;
};

/* What a lane has of one row: two units, the first j and the other eight behind it. Units behind the last one
 * have no weights, inputs or biases, and stay zeros. */
template <class T, int GATES> struct lane_row {
    int32_t b, length; /* b: the batch's end for a row that there is not, whose length is 0 */
    const T *from;     /* the inputs of the step that is fetched next, of unit 0 */
    T *to;             /* unit 0 of this step's output; NULL: nobody wants it */
    float h[2], c[2];
    T input[2][GATES], coming[2][GATES]; /* widened when they are used: till then nobody waits for them */

    __device__ __forceinline__ void start(const rows_job<T> &job, const lane_place &at, int64_t row,
                                          bool back)
    {
        const bool there = row < job.at.n.batch;
        b = (int32_t)(there ? row : job.at.n.batch);
        length = there ? (int32_t)job.at.length(job.data.lengths, b) : 0;
        const int32_t first = back && length > 0 ? length - 1 : 0;
        int64_t x, y;
        job.at.start(at.d, (uint32_t)(there ? row : 0), &x, &y);
        from = job.data.projected + x + first * job.at.projected_step();
        to = there && job.data.y ? job.data.y + y + first * at.ahead_y : nullptr;
#pragma unroll
        for (int u = 0; u < 2; u++) {
            const bool is_unit = there && at.is_unit[u];
            const int64_t state = is_unit ? job.at.state(at.d, b) + at.j + 8 * u : 0;
            h[u] = is_unit && job.data.h0 ? cuda_widen(job.data.h0[state]) : 0;
            c[u] = is_unit && job.data.c0 ? cuda_widen(job.data.c0[state]) : 0;
#pragma unroll
            for (int g = 0; g < GATES; g++)
                input[u][g] = coming[u][g] = cuda_narrow<T, float>(0);
        }
    }
    /* On its way while other things are waited for. */
    __device__ __forceinline__ void fetch(const rows_job<T> &job, const lane_place &at, int32_t i,
                                          T (&inputs)[2][GATES])
    {
        if (i >= length)
            return;
#pragma unroll
        for (int u = 0; u < 2; u++)
            if (at.is_unit[u])
#pragma unroll
                for (int g = 0; g < GATES; g++)
                    inputs[u][g] = from[g * job.at.n.hidden + at.j + 8 * u];
        from += at.step;
    }
    __device__ __forceinline__ void take_coming()
    {
#pragma unroll
        for (int u = 0; u < 2; u++)
#pragma unroll
            for (int g = 0; g < GATES; g++)
                input[u][g] = coming[u][g];
    }
    /* A step that the row has not leaves its states. */
    template <bool STRICT>
    __device__ __forceinline__ void update(int u, const rnn_gate_biases<GATES> &bias,
                                           const float (&sums)[GATES], bool relu, bool goes_on)
    {
        float new_h = h[u], new_c = c[u];
        rnn_update<T, GATES, STRICT>(input[u], bias, sums, relu, new_h, new_c);
        h[u] = goes_on ? new_h : h[u];
        c[u] = goes_on ? new_c : c[u];
    }
    /* Behind the end of the row: zeros. */
    __device__ __forceinline__ void write(const rows_job<T> &job, const lane_place &at, int32_t i)
    {
        if (!to)
            return;
        if (i == length && i > 0 && at.step_y != at.ahead_y) /* a step in front of the first */
            to += (i + 1) * at.ahead_y;
#pragma unroll
        for (int u = 0; u < 2; u++)
            if (at.is_unit[u])
                to[at.j + 8 * u] = cuda_narrow<T, float>(i < length ? h[u] : 0.0f);
        to += i < length ? at.step_y : at.ahead_y;
    }
};

/* Step i of the first FOURS rows of a lane, of eight rows whose next hidden states lie from `next` on: gates
 * from sums, states, output, and the inputs of the step behind it. */
template <int FOURS, bool STRICT, bool EARLY, class T, int GATES, int EIGHTS>
__device__ __forceinline__ void
finish_step(const rows_job<T> &job, const lane_place &at, const rnn_gate_biases<GATES> (&bias)[2],
            const float (&sum)[GATES][EIGHTS][4], int e, int32_t i, char *next, lane_row<T, GATES> (&mine)[2])
{
    /* Without a branch: the chains of all units and rows are under way at once. */
#pragma unroll
    for (int k = 0; k < FOURS; k++)
#pragma unroll
        for (int u = 0; u < 2; u++) {
            float sums[GATES];
#pragma unroll
            for (int g = 0; g < GATES; g++)
                sums[g] = sum[g][e][2 * u + k];
            mine[k].template update<STRICT>(u, bias[u], sums, job.relu, i < mine[k].length);
        }
#pragma unroll
    for (int k = 0; k < FOURS; k++) {
        T *to = (T *)(next + rnn_rows_row(threadIdx.x % 4 * 2 + k) * job.rows.pitch) + at.j;
        store_hidden<T, STRICT>(to, mine[k].h[0]);
        store_hidden<T, STRICT>(to + 8, mine[k].h[1]);
        mine[k].write(job, at, i);
        if (EARLY)
            mine[k].take_coming();
        else
            mine[k].fetch(job, at, i + 1, mine[k].input);
    }
}

/* The same chunks of R are in a lane's registers and in shared memory as rnn_row_blocks_plan says. */
template <class T, int GATES, int EIGHTS, bool STRICT, int WARPS>
__global__ void __launch_bounds__(WARPS * 32) recur_rows(const __grid_constant__ rows_job<T> job)
{
    /* EARLY: registers are left for inputs of two steps, which then come while all of a step is computed. */
    enum {
        ROWS = EIGHTS * 8,
        HELD = STRICT || WARPS > RNN_ROWS_WARPS ? 0 : RNN_ROWS_HELD(GATES, EIGHTS),
        EARLY = EIGHTS == 1 && WARPS <= RNN_ROWS_WARPS
    };
    extern __shared__ __align__(128) char memory[];
    const rnn_row_blocks &t = job.rows;
    const int32_t lane = threadIdx.x % 32, part = threadIdx.x / 32;
    const int32_t d = blockIdx.x % job.at.directions;
    const int64_t first = (int64_t)(blockIdx.x / job.at.directions) * ROWS, n = job.at.n.hidden;
    const bool back = job.reverse || d == 1;
    const int64_t ahead = job.at.projected_step(), ahead_y = job.at.y_step();
    const int32_t j = part * RNN_UNITS + lane / 4;
    const lane_place at = {d,      j, {j < n, j + 8 < n}, back ? -ahead : ahead, back ? -ahead_y : ahead_y,
                           ahead_y};
    char *hidden = memory + t.parts * t.part_bytes;
    rnn_chunk_weights<GATES> held[HELD > 0 ? HELD : 1];
#pragma unroll
    for (int k = 0; k < HELD; k++)
        if (k < t.chunks)
            rnn_read_weights<T, GATES, STRICT>(job.data, job.at, d, part, k, held[k]);
    for (int32_t p = 0; p < t.parts; p++)
        rnn_load_part<T, STRICT>(job.data, job.at, t.held, t.chunks, d, p,
                                 (uint32_t *)(memory + p * t.part_bytes));
    for (int k = 0; k < 2; k++) /* the second for the zeros behind its rows' ends */
        rnn_load_initial<T, STRICT>(job.data, job.at, d, first, ROWS, t.pitch, hidden + k * ROWS * t.pitch);
    lane_row<T, GATES> mine[EIGHTS][2];
    rnn_gate_biases<GATES> bias[2];
#pragma unroll
    for (int u = 0; u < 2; u++)
        bias[u] = rnn_read_biases<T, GATES>(at.is_unit[u] ? job.data.bias : nullptr, d, n, j + 8 * u);
#pragma unroll
    for (int e = 0; e < EIGHTS; e++)
#pragma unroll
        for (int k = 0; k < 2; k++) {
            mine[e][k].start(job, at, first + e * 8 + rnn_rows_row(lane % 4 * 2 + k), back);
            mine[e][k].fetch(job, at, 0, mine[e][k].input);
        }
    __syncthreads();
    const uint32_t *weights = (const uint32_t *)(memory + part * t.part_bytes);
    for (int32_t i = 0; i < job.at.n.steps; i++) {
        const char *now =
            hidden + (i & 1) * ROWS * t.pitch + rnn_rows_row(lane / 4) * t.pitch + lane % 4 * 16;
        char *next = hidden + ((i + 1) & 1) * ROWS * t.pitch;
        float sum[GATES][EIGHTS][4] = {};
        if (EARLY)
#pragma unroll
            for (int e = 0; e < EIGHTS; e++)
#pragma unroll
                for (int k = 0; k < 2; k++)
                    mine[e][k].fetch(job, at, i + 1, mine[e][k].coming);
#pragma unroll
        for (int k = 0; k < HELD; k++)
            if (k < t.chunks)
                rnn_multiply_chunk<T, GATES, EIGHTS, STRICT>(t.pitch, k, held[k], now, sum);
        for (int32_t chunk = t.held; chunk < t.chunks; chunk++) {
            rnn_chunk_weights<GATES> a;
            rnn_take_weights<GATES>(weights, chunk - t.held, a);
            rnn_multiply_chunk<T, GATES, EIGHTS, STRICT>(t.pitch, chunk, a, now, sum);
        }
#pragma unroll
        for (int e = 0; e < EIGHTS; e++) {
            char *to = next + e * 8 * t.pitch;
            if (first + e * 8 + 4 < job.at.n.batch)
                finish_step<2, STRICT, EARLY>(job, at, bias, sum, e, i, to, mine[e]);
            else /* the second rows of all lanes are not there */
                finish_step<1, STRICT, EARLY>(job, at, bias, sum, e, i, to, mine[e]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int e = 0; e < EIGHTS; e++)
#pragma unroll
        for (int k = 0; k < 2; k++)
#pragma unroll
            for (int u = 0; u < 2; u++) {
                const lane_row<T, GATES> &row = mine[e][k];
                if (row.b >= job.at.n.batch || !at.is_unit[u])
                    continue;
                const int64_t state = job.at.state(d, row.b) + j + 8 * u;
                if (job.data.last_h)
                    job.data.last_h[state] = cuda_narrow<T, float>(row.h[u]);
                if (job.data.last_c)
                    job.data.last_c[state] = cuda_narrow<T, float>(row.c[u]);
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
           size->steps < INT32_MAX &&
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
