/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding, of one input or of queries and keys at once: pairs of each head's leading elements are
 * rotated by the angle of their position. One thread per pair, or per 16 bytes of firsts. */
#include "backends/cuda/each_early.cuh"
#include "backends/cuda/number.cuh"
#include "backends/shared/rotary.h"

namespace
{

/* Everything that a run reads and writes, of one input or two. */
template <typename T> struct rotary_task {
    const T *x[2], *cosine, *sine;
    T *y[2];
    const int64_t *ids; /* NULL: the caches have a row for each position of x */
    grt_rotary_dims dims[2];
    cuda_watch watch;
};

/* The row of the caches for a row of x; those are in memory order: [batch, heads, length] or [batch, length,
 * heads]. */
template <typename I> __device__ __forceinline__ I rotary_position(const grt_rotary_dims &s, I row)
{
    const I heads = (I)s.heads, length = (I)s.length;
    const I batch = row / (heads * length);
    return batch * length + (s.packed ? row / heads : row) % length;
}

/* The same where the positions are given. One that the caches do not have is told to the host; the nearest
 * one is taken. */
template <typename T> __device__ __forceinline__ int64_t rotary_id(const rotary_task<T> &task, int64_t cache)
{
    if (!task.ids)
        return cache;
    const int64_t id = task.ids[cache], last = task.dims[0].positions - 1;
    return cuda_check(task.watch, id, cache, 0, last) ? id : id < 0 ? (int64_t)0 : last;
}

/* Items of the first input, then of the second; all of them fit 31 bits. */
template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    rotate_vectors(const __grid_constant__ rotary_task<T> task, uint32_t first, uint32_t n)
{
    typedef cuda_vector<T> vector;
    typedef typename cuda_wide<T>::type W;
    overlap_let_next_begin();
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const uint32_t part = i >= first, half = (uint32_t)task.dims[0].half, per = half / vector::N,
                   at = part ? i - first : i, row = at / per, p = (at - row * per) * vector::N,
                   cache = rotary_position<uint32_t>(task.dims[part], row),
                   heads = (uint32_t)task.dims[part].heads,
                   apart = (uint32_t)task.dims[part].all_heads - heads;
    const int64_t where = (int64_t)(row + row / heads * apart) * 2 * half + p;
    const T *const from = task.x[part] + where;
    T *const to = task.y[part] + where;
    overlap_wait();
    vector a = *(const vector *)from, b = *(const vector *)(from + half);
    const int64_t angle = rotary_id(task, cache) * half + p;
    const vector c = *(const vector *)(task.cosine + angle), s = *(const vector *)(task.sine + angle);
#pragma unroll
    for (int k = 0; k < vector::N; k++) {
        const W low = cuda_widen(a.v[k]), high = cuda_widen(b.v[k]), cos = cuda_widen(c.v[k]),
                sin = cuda_widen(s.v[k]);
        a.v[k] = cuda_narrow<T, W>(cos * low - sin * high);
        b.v[k] = cuda_narrow<T, W>(sin * low + cos * high);
    }
    *(vector *)to = a;
    *(vector *)(to + half) = b;
}

template <typename T>
bool rotates_vectors(const rotary_task<T> &task, int32_t n, bool interleaved, int64_t (&items)[2])
{
    typedef cuda_vector<T> vector;
    bool fits = !interleaved && cuda_is_vector(task.cosine) && cuda_is_vector(task.sine);
    for (int32_t i = 0; i < n; i++) {
        const grt_rotary_dims &s = task.dims[i];
        items[i] = s.batch * s.length * s.heads * (s.half / vector::N);
        fits = fits && s.half > 0 && s.size == 2 * s.half && s.half == task.dims[0].half &&
               s.half % vector::N == 0 && cuda_is_vector(task.x[i]) && cuda_is_vector(task.y[i]) &&
               items[i] < INT32_MAX / 2;
    }
    return fits;
}

/* Any input, a pair at a time. */
template <typename T>
grt_status rotate_each(const grt_run *r, const rotary_task<T> &task, int32_t of, bool interleaved)
{
    typedef typename cuda_wide<T>::type W;
    const grt_rotary_dims &s = task.dims[of];
    const int64_t rest = s.size - 2 * s.half, per_row = s.half + rest;
    return cuda_each_early(r, s.batch * s.length * s.heads * per_row, [=] __device__(int64_t i) {
        const grt_rotary_dims &dims = task.dims[of];
        const T *const x = task.x[of];
        T *const y = task.y[of];
        int64_t row = i / per_row, p = i - row * per_row, at = grt_rotary_row(&dims, row) * dims.size;
        if (p >= dims.half) { /* what is not rotated */
            y[at + dims.half + p] = x[at + dims.half + p];
            return;
        }
        const int64_t angle = rotary_id(task, rotary_position<int64_t>(dims, row)) * dims.half + p;
        int64_t first = at + (interleaved ? 2 * p : p), second = interleaved ? first + 1 : first + dims.half;
        W a = cuda_widen(x[first]), b = cuda_widen(x[second]);
        W c = cuda_widen(task.cosine[angle]), n = cuda_widen(task.sine[angle]);
        y[first] = cuda_narrow<T, W>(c * a - n * b);
        y[second] = cuda_narrow<T, W>(n * a + c * b);
    });
}

template <typename T> grt_status rotate(const grt_run *r)
{
    enum { BLOCK = 64 /* for a token, more processors than one */ };
    const grt_rotary *state = (const grt_rotary *)r->state;
    rotary_task<T> task = {};
    for (int32_t i = 0; i < state->n; i++) {
        task.x[i] = (const T *)r->in[grt_rotary_input(i)]->data;
        task.y[i] = (T *)r->out[i]->data;
        task.dims[i] = ((const grt_rotary_dims *)r->shape)[i];
    }
    task.cosine = (const T *)r->in[1]->data;
    task.sine = (const T *)r->in[2]->data;
    task.ids = (const int64_t *)grt_run_data(r, 3);
    GRT_TRY(cuda_watch_begin(r, "position_ids", &task.watch));
    if (task.dims[0].heads < task.dims[0].all_heads && task.x[0] != task.y[0]) { /* what is not rotated */
        CUDA_TRY(cudaMemcpyAsync(task.y[0], task.x[0], grt_tensor_bytes(r->in[0]), cudaMemcpyDeviceToDevice,
                                 cuda_stream(r)));
        task.x[0] = task.y[0];
    }
    int64_t items[2] = {};
    if (rotates_vectors(task, state->n, state->interleaved, items)) {
        const int64_t n = items[0] + items[1];
        if (n > 0)
            CUDA_TRY(overlap_launch(((const cuda_device *)r->device)->prop.major >= 9, rotate_vectors<T>,
                                    (unsigned)((n + BLOCK - 1) / BLOCK), BLOCK, 0, cuda_stream(r), task,
                                    (uint32_t)items[0], (uint32_t)n));
        return GRT_OK;
    }
    for (int32_t i = 0; i < state->n; i++)
        GRT_TRY(rotate_each(r, task, i, state->interleaved));
    return GRT_OK;
}

grt_status cuda_rotary_run(const grt_run *r)
{
    CUDA_FOR_FLOATS(r->in[0]->dtype, T, return rotate<T>(r))
    return GRT_OK;
}

bool cuda_rotary_supports(const grt_kernel_node *node, grt_text *why)
{
    if (node->in[1].dtype == node->in[0].dtype && node->in[2].dtype == node->in[0].dtype)
        return true;
    if (why)
        grt_text_add(why, "caches of the input's type");
    return false;
}

#define ROTARY(space, name, positions)                                                                     \
    {                                                                                                      \
        .domain = space, .op = name, .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, positions}, \
        .flags = GRT_KERNEL_IN_PLACE(0), .supports = cuda_rotary_supports, .create = grt_rotary_create,    \
        .destroy = free, .reshape = grt_rotary_reshape, .release_shape = free, .run = cuda_rotary_run      \
    }
const grt_kernel_row rows[] = {
    ROTARY("", "RotaryEmbedding", GRT_BIT(INT64)),
    ROTARY("graphrt", "RotaryEmbedding", GRT_BIT(INT64)),
    ROTARY("graphrt", "RotaryEmbeddings", 0),
};

} // namespace
CUDA_KERNELS(rotary, rows);
