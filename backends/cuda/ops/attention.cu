/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: which kernel takes a node's shapes (attention_plan.h), and what it needs around it. */
#include "backends/cuda/attention_levels.cuh"
#include "backends/cuda/attention_plain.cuh"
#include "backends/cuda/overlap.cuh"
#include "backends/cuda/shared_limit.h"

#include <stdlib.h>

typedef struct attention_state {
    grt_attention of;
    bool tf32, quantises;
} attention_state;

/* ---- kernels ---- */

/* Past and new rows, one after the other for each head. */
template <class T>
__global__ void join(const __grid_constant__ attention_shape s, const void *now, const void *past,
                     attention_view view, int64_t size, T *to)
{
    overlap_let_next_begin();
    overlap_wait();
    CUDA_EACH(i, s.batch * s.kv_heads * s.total * size)
    {
        const int64_t row = i / size, head = row / s.total;
        to[i] = key_row<T>(s, now, past, view, size, head / s.kv_heads, head % s.kv_heads,
                           row % s.total)[i % size];
    }
}

/* What a kernel that cannot quantise has left; the last numbers are fewer than eight. */
template <class T>
__global__ void attention_quantise(int64_t n, const T *from, const __grid_constant__ cuda_levels levels)
{
    using V = cuda_vector<T>;
    const cuda_pair_quantiser<T> quantises(levels.quantiser(levels.unit()));
    CUDA_EACH(i, (n + V::N - 1) / V::N)
    {
        if (i * V::N + V::N <= n) {
            const uint4 v = *(const uint4 *)(from + i * V::N);
            const uint32_t words[4] = {v.x, v.y, v.z, v.w};
            levels.store(quantises, words, levels.to + i * V::N);
        } else {
            for (int64_t k = i * V::N; k < n; k++)
                levels.to[k] = levels.one(quantises.one, cuda_widen(from[k]));
        }
    }
}

/* ---- create ---- */

static bool cuda_attention_supports(const grt_kernel_node *node, grt_text *why)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        if (!grt_node_has(node, i))
            continue;
        const grt_dtype dtype = node->in[i].dtype;
        const bool ok = i == ATTENTION_MASK ? grt_dtype_in(dtype, GRT_SET_FLOATS | GRT_BIT(BOOL))
                        : i == ATTENTION_NONPAD
                            ? dtype == GRT_DTYPE_INT64
                            : grt_dtype_in(dtype, GRT_SET_FLOATS) && dtype == node->in[ATTENTION_Q].dtype;
        if (ok)
            continue;
        if (why)
            grt_text_add(why,
                         "input %d is %s; supported are Q, K, V and pasts of one floating-point type, "
                         "floating-point or bool "
                         "masks",
                         i, grt_dtype_name(dtype));
        return false;
    }
    if (node->n_in > ATTENTION_V && node->in[ATTENTION_V].rank == 4 &&
        node->in[ATTENTION_V].dims[3] > MAX_VALUES) {
        if (why)
            grt_text_add(why, "the value size is %lld; supported is up to %d",
                         (long long)node->in[ATTENTION_V].dims[3], MAX_VALUES);
        return false;
    }
    return true;
}

static bool cuda_attention_supports_levels(const grt_kernel_node *node, grt_text *why)
{
    grt_kernel_node attends = *node;
    attends.n_in = ATTENTION_Y_SCALE;
    const bool fits = grt_dtype_in(node->in[ATTENTION_Q].dtype, GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16)) &&
                      node->in[ATTENTION_Y_SCALE].dtype == GRT_DTYPE_FLOAT &&
                      grt_dtype_in(node->in[ATTENTION_Y_ZERO].dtype,
                                   GRT_SET_BYTES | GRT_BIT(FLOAT8E4M3FN) | GRT_BIT(FLOAT8E5M2));
    if (!fits && why)
        grt_text_add(why, "inputs of 16 bits, a float32 scale and results of 8 bits are needed");
    return fits && cuda_attention_supports(&attends, why);
}

static grt_status cuda_attention_create(const grt_kernel_node *node, void **out_state)
{
    attention_state *state = (attention_state *)calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    grt_attention_read(node->desc, &state->of);
    state->tf32 = !strcmp(grt_attr_string(node->desc, "math", ""), "tf32");
    state->quantises = grt_op_is(node->desc, "graphrt", "QAttention");
    *out_state = state;
    return GRT_OK;
}

/* ---- shapes ---- */

static attention_view cuda_attention_view_of(bool packed, int64_t heads, int64_t length, int64_t size)
{
    if (packed)
        return {length * heads * size, size, heads * size};
    return {heads * length * size, length * size, size};
}

static grt_status cuda_attention_fit(const grt_reshape *r, attention_shape *s)
{
    const attention_state *state = (const attention_state *)r->state;
    GRT_TRY(grt_attention_fit(&state->of, r, s));
    if (r->n_in > ATTENTION_MASK && r->in[ATTENTION_MASK])
        s->mask_dtype = r->in[ATTENTION_MASK]->dtype;
    s->padded = r->n_in > ATTENTION_NONPAD && r->in[ATTENTION_NONPAD];
    if (s->joined) { /* the heads of queries, then those of keys, then those of values, side by side */
        const int64_t width = (s->q_heads + 2 * s->kv_heads) * s->size;
        s->q = s->k = s->v = {s->q_len * width, s->size, width};
        s->y = cuda_attention_view_of(true, s->q_heads, s->q_len, s->size);
        return GRT_OK;
    }
    const bool packed = r->in[ATTENTION_Q]->rank == 3;
    s->q = cuda_attention_view_of(packed, s->q_heads, s->q_len, s->size);
    s->k = cuda_attention_view_of(packed, s->kv_heads, s->kv_len, s->size);
    s->v = cuda_attention_view_of(packed, s->kv_heads, s->kv_len, s->v_size);
    s->y = cuda_attention_view_of(packed, s->q_heads, s->q_len, s->v_size);
    return GRT_OK;
}

/* Call `use` with the kernel for a type and a size of values. */
template <class T, class F> static void cuda_attention_with_kernel(int64_t v_size, F use)
{
    if (v_size <= 32)
        use(attend<T, 1>);
    else if (v_size <= 64)
        use(attend<T, 2>);
    else if (v_size <= 128)
        use(attend<T, 4>);
    else if (v_size <= 256)
        use(attend<T, 8>);
    else
        use(attend<T, MAX_VALUES / 32>);
}

static cudaError_t cuda_attention_prepare(const attention_shape *s, grt_dtype dtype)
{
    switch (s->kernel) {
    case ATTENTION_FLASH:
        return attention_flash_prepare(s, dtype);
    case ATTENTION_WARPGROUP:
        return attention_warpgroup_prepare(s, dtype);
    case ATTENTION_TF32:
        return attention_tf32_prepare(s);
    case ATTENTION_FLOAT:
        return attention_float_prepare(s);
    case ATTENTION_KEYS:
        return attention_keys_prepare(s, dtype);
    default:
        return cudaSuccess;
    }
}

/* In the workspace: a result that is quantised by a kernel of its own. */
static size_t attention_result_at(const attention_shape *s)
{
    enum { ALIGNMENT = 256 };
    return (attention_partial_bytes(s) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static grt_status cuda_attention_reshape(grt_reshape *r)
{
    const cuda_device *device = (const cuda_device *)r->device;
    attention_shape *s = (attention_shape *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    grt_status status = cuda_attention_fit(r, s);
    if (status == GRT_OK && r->n_out > ATTENTION_QK && r->out[ATTENTION_QK])
        s->qk_dtype = r->out[ATTENTION_QK]->dtype;
    const size_t element = r->in[ATTENTION_Q]->dtype == GRT_DTYPE_DOUBLE ? sizeof(double) : sizeof(float);
    if (status == GRT_OK && (s->v_size > MAX_VALUES || s->size > MAX_VALUES))
        status = grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                             "head sizes are %lld and %lld; the CUDA backend supports up to %d",
                             (long long)s->size, (long long)s->v_size, MAX_VALUES);
    if (status == GRT_OK) {
        s->shared_bytes = (size_t)(TILE * (s->size + 1) + TILE * s->v_size + BLOCK_ROWS * s->size) * element;
        if (s->shared_bytes > device->prop.sharedMemPerBlockOptin)
            status = grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                                 "head sizes %lld and %lld want %zu bytes of shared memory; the GPU "
                                 "has %zu",
                                 (long long)s->size, (long long)s->v_size, s->shared_bytes,
                                 device->prop.sharedMemPerBlockOptin);
    }
    cudaError_t error = cudaSuccess;
    if (status == GRT_OK && s->shared_bytes > 48 * 1024)
        CUDA_FOR_FLOATS(r->in[ATTENTION_Q]->dtype, T,
                        cuda_attention_with_kernel<T>(s->v_size, [&](auto kernel) {
                            error = cuda_allow_shared((const void *)kernel);
                        }));
    if (status == GRT_OK && error == cudaSuccess) {
        attention_choose(s, r->in[ATTENTION_Q]->dtype, ((const attention_state *)r->state)->tf32,
                         &device->prop);
        error = cuda_attention_prepare(s, r->in[ATTENTION_Q]->dtype);
        r->workspace_bytes = attention_partial_bytes(s);
        if (((const attention_state *)r->state)->quantises)
            r->workspace_bytes = attention_result_at(s) + (size_t)grt_tensor_elements(r->out[ATTENTION_Y]) *
                                                              grt_dtype_size(r->in[ATTENTION_Q]->dtype);
    }
    if (error != cudaSuccess)
        status = cuda_fail(error, "cudaFuncSetAttribute", __FILE__, __LINE__);
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    r->shape = s;
    return GRT_OK;
}

/* ---- run ---- */

static void *out_of(const grt_run *r, int32_t i)
{
    return i < r->n_out && r->out[i] ? r->out[i]->data : NULL;
}

template <class T>
static cudaError_t cuda_attention_launch(const attention_shape *s, const attention_data *d, const grt_run *r)
{
    cudaStream_t stream = (cudaStream_t)r->stream;
    const cuda_device *device = (const cuda_device *)r->device;
    const bool overlaps = device->prop.major >= 9;
    const int64_t keys = s->batch * s->kv_heads * s->total * s->size,
                  values = s->batch * s->kv_heads * s->total * s->v_size;
    cudaError_t error = cudaSuccess;
    if (out_of(r, ATTENTION_PRESENT_KEY) && keys > 0)
        error = overlap_launch(overlaps, join<T>, cuda_blocks(keys, 256), 256, 0, stream, *s, d->k,
                               d->past_key, s->k, s->size, (T *)out_of(r, ATTENTION_PRESENT_KEY));
    if (error == cudaSuccess && out_of(r, ATTENTION_PRESENT_VALUE) && values > 0)
        error = overlap_launch(overlaps, join<T>, cuda_blocks(values, 256), 256, 0, stream, *s, d->v,
                               d->past_value, s->v, s->v_size, (T *)out_of(r, ATTENTION_PRESENT_VALUE));
    if (error != cudaSuccess)
        return error;
    if (s->kernel != ATTENTION_PLAIN && attention_tiles_aligned(s, d)) {
        if (s->kernel == ATTENTION_FLASH)
            error = attention_flash(s, d, r->in[ATTENTION_Q]->dtype,
                                    overlaps && s->few && r->in[ATTENTION_Q]->dtype != GRT_DTYPE_FLOAT,
                                    stream); /* many small blocks that begin early share processors */
        else if (s->kernel == ATTENTION_WARPGROUP)
            return attention_warpgroup(s, d, r->in[ATTENTION_Q]->dtype, device->prop.multiProcessorCount,
                                       stream);
        else if (s->kernel == ATTENTION_TF32)
            return attention_tf32(s, d, device->prop.multiProcessorCount, stream);
        else if (s->kernel == ATTENTION_KEYS)
            error = attention_keys(s, d, r->in[ATTENTION_Q]->dtype, overlaps, stream);
        else
            attention_float(s, d, device->prop.multiProcessorCount, stream);
        if (error == cudaSuccess && s->splits > 1 && !s->clustered)
            error = attention_merge(s, d, r->in[ATTENTION_Q]->dtype, overlaps, stream);
        return error;
    }
    const int64_t tasks = s->batch * s->q_heads * ((s->q_len + BLOCK_ROWS - 1) / BLOCK_ROWS);
    if (tasks > 0)
        cuda_attention_with_kernel<T>(s->v_size, [&](auto kernel) {
            kernel<<<cuda_blocks(tasks, 1), THREADS, s->shared_bytes, stream>>>(*s, *d);
        });
    return cudaSuccess;
}

static attention_data attention_data_of(const grt_run *r)
{
    const attention_shape *s = (const attention_shape *)r->shape;
    attention_data d = {};
    d.q = r->in[ATTENTION_Q]->data;
    if (s->joined) {
        const size_t head = (size_t)s->size * grt_dtype_size(r->in[ATTENTION_Q]->dtype);
        d.k = (const char *)d.q + (size_t)s->q_heads * head;
        d.v = (const char *)d.k + (size_t)s->kv_heads * head;
    } else {
        d.k = r->in[ATTENTION_K]->data;
        d.v = r->in[ATTENTION_V]->data;
    }
    d.past_key = grt_run_data(r, ATTENTION_PAST_KEY);
    d.past_value = grt_run_data(r, ATTENTION_PAST_VALUE);
    d.mask = grt_run_data(r, ATTENTION_MASK);
    d.nonpad = (const int64_t *)grt_run_data(r, ATTENTION_NONPAD);
    d.y = out_of(r, ATTENTION_Y);
    d.qk = s->total > 0 ? out_of(r, ATTENTION_QK) : NULL;
    d.partial = (float *)r->workspace;
    return d;
}

static grt_status cuda_attention_run(const grt_run *r)
{
    const attention_data d = attention_data_of(r);
    cudaError_t error = cudaSuccess;
    CUDA_FOR_FLOATS(r->in[ATTENTION_Q]->dtype, T,
                    error = cuda_attention_launch<T>((const attention_shape *)r->shape, &d, r));
    CUDA_TRY(error);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <class T>
static cudaError_t cuda_attention_launch_levels(const attention_shape *s, attention_data *d,
                                                const cuda_levels *levels, const grt_run *r)
{
    const int64_t n = grt_tensor_elements(r->out[ATTENTION_Y]);
    d->y = (char *)r->workspace + attention_result_at(s);
    const cudaError_t error = cuda_attention_launch<T>(s, d, r);
    attention_quantise<T>
        <<<cuda_blocks((n + 7) / 8, 256), 256, 0, (cudaStream_t)r->stream>>>(n, (const T *)d->y, *levels);
    return error;
}

static grt_status cuda_attention_run_quantised(const grt_run *r)
{
    const attention_shape *s = (const attention_shape *)r->shape;
    const grt_tensor *y = r->out[ATTENTION_Y];
    const cuda_device *device = (const cuda_device *)r->device;
    const grt_dtype dtype = r->in[ATTENTION_Q]->dtype;
    const cuda_levels levels = {(uint8_t *)y->data, (const float *)r->in[ATTENTION_Y_SCALE]->data,
                                r->in[ATTENTION_Y_ZERO]->data, y->dtype};
    attention_data d = attention_data_of(r);
    if (grt_tensor_elements(y) == 0)
        return GRT_OK;
    cudaError_t error;
    if (s->kernel == ATTENTION_WARPGROUP && attention_tiles_aligned(s, &d))
        error = attention_warpgroup_quantised(s, &d, &levels, dtype, device->prop.multiProcessorCount,
                                              (cudaStream_t)r->stream);
    else if (dtype == GRT_DTYPE_FLOAT16)
        error = cuda_attention_launch_levels<__half>(s, &d, &levels, r);
    else
        error = cuda_attention_launch_levels<__nv_bfloat16>(s, &d, &levels, r);
    CUDA_TRY(error);
    CUDA_LAUNCHED();
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "QAttention",
     .supports = cuda_attention_supports_levels,
     .create = cuda_attention_create,
     .destroy = free,
     .reshape = cuda_attention_reshape,
     .release_shape = free,
     .run = cuda_attention_run_quantised},
    {.domain = "",
     .op = "Attention",
     .supports = cuda_attention_supports,
     .create = cuda_attention_create,
     .destroy = free,
     .reshape = cuda_attention_reshape,
     .release_shape = free,
     .run = cuda_attention_run},
    {.domain = "graphrt",
     .op = "Attention",
     .supports = cuda_attention_supports,
     .create = cuda_attention_create,
     .destroy = free,
     .reshape = cuda_attention_reshape,
     .release_shape = free,
     .run = cuda_attention_run},
};
CUDA_KERNELS(attention, rows);
