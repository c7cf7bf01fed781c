/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding: pairs of each head's leading elements are rotated by the angle of their position. One
 * thread per pair. */
#include "backends/cuda/each.cuh"
#include "backends/cuda/number.cuh"

namespace
{

struct rotary_state {
    int64_t heads, rotated;
    bool interleaved;
};

struct rotary_shape {
    int64_t batch, heads, length, size, half; /* half: rotated pairs per head */
    int64_t positions;                        /* rows of the caches, with position_ids */
    bool packed;                              /* [batch, length, heads * size] */
};

grt_status create(const grt_kernel_node *node, void **out_state)
{
    rotary_state *s;
    GRT_TRY(cuda_state(&s));
    s->heads = grt_attr_int(node->desc, "num_heads", 0);
    s->rotated = grt_attr_int(node->desc, "rotary_embedding_dim", 0);
    s->interleaved = grt_attr_int(node->desc, "interleaved", 0) != 0;
    *out_state = s;
    return GRT_OK;
}

bool fit(const grt_reshape *r, rotary_shape *sh)
{
    const rotary_state *state = (const rotary_state *)r->state;
    const grt_tensor *x = r->in[0], *ids = r->n_in > 3 ? r->in[3] : NULL;
    sh->packed = x->rank == 3;
    if (x->rank != 4 && (x->rank != 3 || state->heads <= 0 || x->dims[2] % state->heads))
        return false;
    sh->batch = x->dims[0];
    sh->heads = sh->packed ? state->heads : x->dims[1];
    sh->length = x->dims[sh->packed ? 1 : 2];
    sh->size = sh->packed ? x->dims[2] / state->heads : x->dims[3];
    int64_t rotated = state->rotated ? state->rotated : sh->size;
    sh->half = rotated / 2;
    if (rotated < 0 || rotated > sh->size || rotated % 2)
        return false;
    int64_t rows[2] = {sh->batch, sh->length};
    if (ids && !grt_dims_equal(ids->dims, ids->rank, rows, 2))
        return false;
    for (int32_t i = 1; i <= 2; i++) {
        const grt_tensor *cache = r->in[i];
        if (cache->rank != (ids ? 2 : 3) || cache->dims[cache->rank - 1] != sh->half)
            return false;
        if (!ids && (cache->dims[0] != sh->batch || cache->dims[1] != sh->length))
            return false;
    }
    sh->positions = ids ? r->in[1]->dims[0] : 0;
    return !ids || (r->in[2]->dims[0] == sh->positions && (sh->positions > 0 || sh->batch * sh->length == 0));
}

grt_status reshape(grt_reshape *r)
{
    rotary_shape *sh;
    GRT_TRY(cuda_state(&sh));
    if (!fit(r, sh)) {
        char x[GRT_TYPE_TEXT_SIZE], cache[GRT_TYPE_TEXT_SIZE];
        free(sh);
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "input %s does not fit caches of %s: they need half the rotated size as last dim, "
                           "and a row for each "
                           "position",
                           grt_tensor_text(r->in[0], x), grt_tensor_text(r->in[1], cache));
    }
    r->shape = sh;
    return GRT_OK;
}

/* A position outside the caches is reported and clamped. */
template <typename T> grt_status rotate(const grt_run *r)
{
    typedef typename cuda_wide<T>::type W;
    const rotary_shape s = *(const rotary_shape *)r->shape;
    const bool interleaved = ((const rotary_state *)r->state)->interleaved;
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
        return cuda_each(r, s.batch * s.length * s.heads * per, [=] __device__(int64_t i) {
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
    return cuda_each(r, s.batch * s.length * s.heads * per_row, [=] __device__(int64_t i) {
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

grt_status run(const grt_run *r)
{
    CUDA_FOR_FLOATS(r->in[0]->dtype, T, return rotate<T>(r))
    return GRT_OK;
}

bool supports(const grt_kernel_node *node, grt_text *why)
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
     .supports = supports,
     .create = create,
     .destroy = free,
     .reshape = reshape,
     .release_shape = free,
     .run = run},
};

} // namespace
CUDA_KERNELS(rotary, rows);
