/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding: pairs of each head's leading elements are rotated by the angle of their position. One
 * thread per pair. */
#include "backends/cuda/each_early.cuh"
#include "backends/cuda/number.cuh"
#include "backends/shared/rotary.h"

namespace
{

/* A position that the caches do not have is told to the host; the nearest one is taken. */
template <typename T> grt_status rotate(const grt_run *r)
{
    typedef typename cuda_wide<T>::type W;
    const grt_rotary_dims s = *(const grt_rotary_dims *)r->shape;
    const bool interleaved = ((const grt_rotary *)r->state)->interleaved;
    const T *x = (const T *)r->in[0]->data, *cosine = (const T *)r->in[1]->data,
            *sine = (const T *)r->in[2]->data;
    const int64_t *ids = r->n_in > 3 && r->in[3] ? (const int64_t *)r->in[3]->data : NULL;
    T *y = (T *)r->out[0]->data;
    cuda_watch watch;
    GRT_TRY(cuda_watch_begin(r, "position_ids", &watch));
    const int64_t rest = s.size - 2 * s.half, per_row = s.half + rest;
    /* The row of the caches for a row of x; those are in memory order: [batch, heads, length] or [batch,
     * length, heads]. */
    const auto position = [=] __device__(int64_t row) {
        const int64_t batch = row / (s.heads * s.length),
                      at = s.packed ? row / s.heads % s.length : row % s.length;
        const int64_t cache = batch * s.length + at;
        if (!ids)
            return cache;
        const int64_t id = ids[cache];
        return cuda_check(watch, id, cache, 0, s.positions - 1) ? id : id < 0 ? (int64_t)0 : s.positions - 1;
    };
    typedef cuda_vector<T> vector;
    if (!interleaved && rest == 0 && s.half % vector::N == 0 && cuda_is_vector(x) && cuda_is_vector(y) &&
        cuda_is_vector(cosine) && cuda_is_vector(sine)) {
        const int64_t per = s.half / vector::N;
        return cuda_each_early(r, s.batch * s.length * s.heads * per, [=] __device__(int64_t i) {
            const int64_t row = i / per, p = (i - row * per) * vector::N, cache = position(row) * s.half + p;
            T *to = y + row * s.size + p;
            const T *from = x + row * s.size + p;
            vector a = *(const vector *)from, b = *(const vector *)(from + s.half);
            const vector c = *(const vector *)(cosine + cache), n = *(const vector *)(sine + cache);
#pragma unroll
            for (int k = 0; k < vector::N; k++) {
                const W low = cuda_widen(a.v[k]), high = cuda_widen(b.v[k]), cos = cuda_widen(c.v[k]),
                        sin = cuda_widen(n.v[k]);
                a.v[k] = cuda_narrow<T, W>(cos * low - sin * high);
                b.v[k] = cuda_narrow<T, W>(sin * low + cos * high);
            }
            *(vector *)to = a;
            *(vector *)(to + s.half) = b;
        });
    }
    return cuda_each_early(r, s.batch * s.length * s.heads * per_row, [=] __device__(int64_t i) {
        int64_t row = i / per_row, p = i - row * per_row, at = row * s.size;
        if (p >= s.half) { /* what is not rotated */
            y[at + s.half + p] = x[at + s.half + p];
            return;
        }
        int64_t cache = position(row);
        int64_t first = at + (interleaved ? 2 * p : p), second = interleaved ? first + 1 : first + s.half;
        W a = cuda_widen(x[first]), b = cuda_widen(x[second]);
        W c = cuda_widen(cosine[cache * s.half + p]), n = cuda_widen(sine[cache * s.half + p]);
        y[first] = cuda_narrow<T, W>(c * a - n * b);
        y[second] = cuda_narrow<T, W>(n * a + c * b);
    });
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

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "RotaryEmbedding",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_BIT(INT64)},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .supports = cuda_rotary_supports,
     .create = grt_rotary_create,
     .destroy = free,
     .reshape = grt_rotary_reshape,
     .release_shape = free,
     .run = cuda_rotary_run},
};

} // namespace
CUDA_KERNELS(rotary, rows);
