/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNormalization and RMSNormalization, and graphrt::QLayerNormalization, which quantises the result.
 * Statistics are float32 (double for double), in two passes; half-precision results are rounded where the
 * definitions have a value of the inputs' type. */
#include "backends/cuda/number.cuh"
#include "backends/cuda/overlap.cuh"
#include "backends/cuda/levels.cuh"
#include "backends/shared/norm.h"

#include <stdlib.h>

enum { THREADS = 256 };

template <class T, class W> __device__ __forceinline__ W rounded(W v)
{
    return cuda_widen(cuda_narrow<T, W>(v));
}

typedef struct layer_factor {
    const void *data; /* NULL: none */
    int dtype;
} layer_factor;

typedef struct layer_shape {
    grt_layer_norm norm;
    layer_factor scale, bias;
    bool are_constant; /* both */
} layer_shape;

typedef struct layer_outputs {
    void *y, *mean, *inverse;
    int mean_dtype, inverse_dtype;
    cuda_levels levels;
} layer_outputs;

template <class W>
__device__ __forceinline__ W factor_at(const grt_layer_norm &s, const grt_norm_factor &f,
                                       const layer_factor &values, int64_t row, int64_t i)
{
    if (f.is_row)
        return cuda_load<W>(values.data, values.dtype, i);
    int64_t at = row * s.size + i, sum = 0;
    for (int32_t d = s.rank - 1; d >= 0; d--) {
        sum += at % s.dims[d] * f.strides[d];
        at /= s.dims[d];
    }
    return cuda_load<W>(values.data, values.dtype, sum);
}

template <class T, int PER_ROW>
__global__ void __launch_bounds__(THREADS)
    layer_rows(const __grid_constant__ layer_shape shape, const T *x, layer_outputs out)
{
    const grt_layer_norm &s = shape.norm;
    using W = typename cuda_wide<T>::type;
    const int lane = threadIdx.x % PER_ROW;
    const int64_t per_block = THREADS / PER_ROW;
    const cuda_quantiser quantises = out.levels.quantiser(out.levels.unit());
    for (int64_t row = blockIdx.x * per_block + threadIdx.x / PER_ROW; row < s.rows;
         row += gridDim.x * per_block) {
        const T *from = x + row * s.size;
        W mean = 0, squares = 0;
        if (!s.rms) {
            for (int64_t i = lane; i < s.size; i += PER_ROW)
                mean += cuda_widen(from[i]);
            mean = cuda_row_reduce<PER_ROW, cuda_sum, W>(mean, 0) / (W)s.size;
        }
        for (int64_t i = lane; i < s.size; i += PER_ROW) {
            const W d = cuda_widen(from[i]) - mean;
            squares += d * d;
        }
        squares = cuda_row_reduce<PER_ROW, cuda_sum, W>(squares, 0);
        const W inverse = 1 / sqrt(squares / (W)s.size + (W)s.epsilon);
        for (int64_t i = lane; (out.y || out.levels.to) && i < s.size; i += PER_ROW) {
            W v = rounded<T, W>((cuda_widen(from[i]) - mean) * inverse);
            v *= factor_at<W>(s, s.scale, shape.scale, row, i);
            if (shape.bias.data)
                v = rounded<T, W>(v) + factor_at<W>(s, s.bias, shape.bias, row, i);
            if (out.y)
                ((T *)out.y)[row * s.size + i] = cuda_narrow<T, W>(v);
            if (out.levels.to)
                out.levels.to[row * s.size + i] = out.levels.one(quantises, (float)rounded<T, W>(v));
        }
        if (lane == 0 && out.mean)
            cuda_store<W>(out.mean, out.mean_dtype, row, mean);
        if (lane == 0 && out.inverse)
            cuda_store<W>(out.inverse, out.inverse_dtype, row, inverse);
    }
}

/* Over the lanes of a row. Other rows of the warp may have come to their end. */
template <int PER_ROW> __device__ __forceinline__ float layer_row_sum(float v)
{
    if constexpr (PER_ROW < 32) {
        const unsigned lanes = ((1u << PER_ROW) - 1) << (threadIdx.x % 32 / PER_ROW * PER_ROW);
#pragma unroll
        for (int step = PER_ROW / 2; step > 0; step /= 2)
            v += __shfl_xor_sync(lanes, v, step);
        return v;
    } else {
        return cuda_row_reduce<PER_ROW, cuda_sum, float>(v, 0);
    }
}

/* 16 bytes of a row, moved as words: taken apart element by element, each load would wait for the one in
 * front of it. */
template <class T> struct layer_words {
    enum { N = 16 / sizeof(T) };
    uint32_t w[4];

    /* Where nothing is, `absent`. */
    static __device__ __forceinline__ layer_words at(const T *from, bool there, uint32_t absent = 0)
    {
        uint4 v = make_uint4(absent, absent, absent, absent);
        if (there)
            v = *(const uint4 *)from;
        return {{v.x, v.y, v.z, v.w}};
    }
    __device__ __forceinline__ float operator[](int j) const
    {
        return cuda_widen(((const T *)w)[j]);
    }
};

/* What is centred becomes results, and their levels. */
__device__ __forceinline__ void finish_words(const float (&v)[4], float inverse,
                                             const layer_words<float> &factor,
                                             const layer_words<float> &shift, const cuda_levels &levels,
                                             const cuda_quantiser &quantises, float *y, uint8_t *to)
{
    float result[4];
#pragma unroll
    for (int j = 0; j < 4; j++)
        result[j] = v[j] * inverse * factor[j] + shift[j];
    if (y)
        *(float4 *)y = make_float4(result[0], result[1], result[2], result[3]);
    if (to)
        levels.store(quantises, result, to);
}
template <class T>
__device__ __forceinline__ void finish_words(const float (&v)[8], float inverse, const layer_words<T> &factor,
                                             const layer_words<T> &shift, const cuda_levels &levels,
                                             const cuda_pair_quantiser<T> &quantises, T *y, uint8_t *to)
{
    using pair = typename cuda_pair<T>::type;
    uint32_t result[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const pair both = __hadd2_rn(__hmul2_rn(cuda_pair<T>::of(v[2 * j] * inverse, v[2 * j + 1] * inverse),
                                                *(const pair *)&factor.w[j]),
                                     *(const pair *)&shift.w[j]);
        result[j] = *(const uint32_t *)&both;
    }
    if (y)
        *(uint4 *)y = make_uint4(result[0], result[1], result[2], result[3]);
    if (to)
        levels.store(quantises, result, to);
}

template <class T> struct layer_quantiser {
    using type = cuda_pair_quantiser<T>;
};
template <> struct layer_quantiser<float> {
    using type = cuda_quantiser;
};

template <int PER_ROW> constexpr int layer_threads = PER_ROW <= 32 ? 128 : PER_ROW;

/* The same with rows in registers, read once, 16 bytes a time, while the row before is computed; scale and
 * bias are as the rows. VECTORS: of each thread. */
template <class T, int PER_ROW, int VECTORS>
__global__ void __launch_bounds__(layer_threads<PER_ROW>)
    layer_vectors(int64_t rows, int size, bool rms, float epsilon, const T *x, const T *scale, const T *bias,
                  bool are_constant, T *y, const __grid_constant__ cuda_levels levels)
{
    using words = layer_words<T>;
    enum { N = words::N };
    const int lane = threadIdx.x % PER_ROW, per_block = blockDim.x / PER_ROW;
    overlap_let_next_begin();
    if (!are_constant)
        overlap_wait();
    /* Short rows: factors are loaded together with the row; long rows leave no registers for that. */
    constexpr bool EARLY = VECTORS <= 4;
    words factor[EARLY ? VECTORS : 1], shift[EARLY ? VECTORS : 1];
    const auto load_factors = [&](int at, words *of_scale, words *of_bias) {
        const uint32_t minus_zero = sizeof(T) == 2 ? 0x80008000u : 0x80000000u; /* changes no sum */
        *of_scale = words::at(scale + at, at < size);
        *of_bias = words::at(bias + at, bias && at < size, minus_zero);
    };
    if constexpr (EARLY)
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
            load_factors((lane + k * PER_ROW) * N, &factor[k], &shift[k]);
    if (are_constant)
        overlap_wait();
    const cuda_level_unit unit = levels.unit();
    const int64_t first = (int64_t)blockIdx.x * per_block + threadIdx.x / PER_ROW,
                  step = (int64_t)gridDim.x * per_block;
    words next[VECTORS];
    const auto read = [&](int64_t row) {
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            const int at = (lane + k * PER_ROW) * N;
            next[k] = words::at(x + row * size + at, at < size);
        }
    };
    if (EARLY && first < rows)
        read(first);
    const typename layer_quantiser<T>::type quantises(levels.quantiser(unit.here()));
    for (int64_t row = first; row < rows; row += step) {
        float v[VECTORS][N], sum = 0, squares = 0;
        if constexpr (!EARLY)
            read(row);
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            float part = 0;
#pragma unroll
            for (int j = 0; j < N; j++) {
                v[k][j] = next[k][j];
                part += v[k][j];
            }
            sum += part;
        }
        if (EARLY && row + step < rows)
            read(row + step);
        const float mean = rms ? 0.0f : layer_row_sum<PER_ROW>(sum) / (float)size;
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            float part = 0;
#pragma unroll
            for (int j = 0; j < N; j++) {
                v[k][j] -= mean;
                part += v[k][j] * v[k][j];
            }
            squares += (lane + k * PER_ROW) * N < size ? part : 0.0f;
        }
        const float inverse = 1 / sqrtf(layer_row_sum<PER_ROW>(squares) / (float)size + epsilon);
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            const int at = (lane + k * PER_ROW) * N;
            if (at >= size)
                continue;
            if constexpr (!EARLY)
                load_factors(at, &factor[0], &shift[0]);
            finish_words(v[k], inverse, factor[EARLY ? k : 0], shift[EARLY ? k : 0], levels, quantises,
                         y ? y + row * size + at : nullptr,
                         levels.to ? levels.to + row * size + at : nullptr);
        }
    }
}

static grt_status cuda_layer_norm_reshape(grt_reshape *r)
{
    layer_shape *s = (layer_shape *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    const grt_status status = grt_layer_norm_fit(r, &s->norm);
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    const grt_tensor *bias = grt_reshape_in(r, GRT_NORM_BIAS);
    s->scale.dtype = r->in[GRT_NORM_SCALE]->dtype;
    s->bias.dtype = bias ? bias->dtype : GRT_DTYPE_NONE;
    s->are_constant = r->in[GRT_NORM_SCALE]->data && (!bias || bias->data);
    r->shape = s;
    return GRT_OK;
}

enum { WIDE_ROW = 256, MOST_VECTORS = 8, MANY_ROWS = 1024 };

/* Of many rows, as many blocks as keep memory busy, or fewer, so that all have as many rows. */
static int64_t layer_even_blocks(int64_t blocks, int vectors, int multiprocessors)
{
    enum { VECTORS_TOGETHER = 12 /* of a thread of all blocks of a multiprocessor */ };
    const int64_t together = VECTORS_TOGETHER / vectors * (int64_t)multiprocessors,
                  each = (blocks + together - 1) / together;
    return (blocks + each - 1) / each;
}

template <class T, int PER_ROW, int VECTORS>
static void cuda_layer_norm_launch_vectors(const layer_shape *s, const void *x, const layer_outputs &out,
                                           const grt_run *r)
{
    const cudaDeviceProp *prop = &((const cuda_device *)r->device)->prop;
    /* With few rows, one warp per block, to use all multiprocessors. */
    const int threads = PER_ROW > 32 ? PER_ROW : s->norm.rows < MANY_ROWS ? 32 : layer_threads<PER_ROW>;
    int64_t blocks = (s->norm.rows + threads / PER_ROW - 1) / (threads / PER_ROW);
    if (VECTORS <= 4 && PER_ROW == 32)
        blocks = layer_even_blocks(blocks, VECTORS, prop->multiProcessorCount);
    overlap_launch(prop->major >= 9, layer_vectors<T, PER_ROW, VECTORS>, cuda_blocks(blocks, 1), threads, 0,
                   (cudaStream_t)r->stream, s->norm.rows, (int)s->norm.size, s->norm.rms,
                   (float)s->norm.epsilon, (const T *)x, (const T *)s->scale.data, (const T *)s->bias.data,
                   s->are_constant, (T *)out.y, out.levels);
}

template <class T, int PER_ROW>
static void launch_as_wide(const layer_shape *s, int vectors, const void *x, const layer_outputs &out,
                           const grt_run *r)
{
    if (vectors <= 1)
        cuda_layer_norm_launch_vectors<T, PER_ROW, 1>(s, x, out, r);
    else if (vectors <= 2)
        cuda_layer_norm_launch_vectors<T, PER_ROW, 2>(s, x, out, r);
    else if (vectors <= 3)
        cuda_layer_norm_launch_vectors<T, PER_ROW, 3>(s, x, out, r);
    else if (vectors <= 4)
        cuda_layer_norm_launch_vectors<T, PER_ROW, 4>(s, x, out, r);
    else
        cuda_layer_norm_launch_vectors<T, PER_ROW, MOST_VECTORS>(s, x, out, r);
}

/* One vector a lane, as many lanes a row as it has vectors. */
template <class T>
static void launch_short(const layer_shape *s, int vectors, const void *x, const layer_outputs &out,
                         const grt_run *r)
{
    if (vectors <= 4)
        cuda_layer_norm_launch_vectors<T, 4, 1>(s, x, out, r);
    else if (vectors <= 8)
        cuda_layer_norm_launch_vectors<T, 8, 1>(s, x, out, r);
    else
        cuda_layer_norm_launch_vectors<T, 16, 1>(s, x, out, r);
}

/* False if the rows, their factors or outputs are not what the kernel for vectors takes. */
template <class T>
static bool launch_fast(const layer_shape *s, int dtype, const void *x, const layer_outputs &out,
                        const grt_run *r)
{
    const int64_t n = cuda_vector<T>::N, vectors = s->norm.size / n;
    const bool fits =
        sizeof(T) <= 4 && s->norm.size > 0 && s->norm.size % n == 0 && vectors <= WIDE_ROW * MOST_VECTORS &&
        (out.y || out.levels.to) && !out.mean && !out.inverse && cuda_is_vector(out.levels.to) &&
        s->norm.scale.is_row && s->scale.dtype == dtype &&
        (!s->bias.data || (s->norm.bias.is_row && s->bias.dtype == dtype)) && cuda_is_vector(x) &&
        cuda_is_vector(out.y) && cuda_is_vector(s->scale.data) && cuda_is_vector(s->bias.data);
    if (!fits)
        return false;
    if constexpr (sizeof(T) <= 4) {
        if (vectors <= 16 && s->norm.rows >= MANY_ROWS) /* several rows a warp */
            launch_short<T>(s, (int)vectors, x, out, r);
        else if (vectors <= 32 * 4 || (vectors <= 32 * MOST_VECTORS && s->norm.rows >= MANY_ROWS))
            launch_as_wide<T, 32>(s, (int)((vectors + 31) / 32), x, out, r);
        else
            launch_as_wide<T, WIDE_ROW>(s, (int)((vectors + WIDE_ROW - 1) / WIDE_ROW), x, out, r);
    }
    return true;
}

template <class T>
static void launch_layer(const layer_shape *s, int dtype, const void *x, layer_outputs out, const grt_run *r)
{
    if (launch_fast<T>(s, dtype, x, out, r))
        return;
    enum { WARP_SIZES = 512 };
    if (s->norm.size <= WARP_SIZES)
        layer_rows<T, 32><<<cuda_blocks(s->norm.rows, THREADS / 32), THREADS, 0, (cudaStream_t)r->stream>>>(
            *s, (const T *)x, out);
    else
        layer_rows<T, THREADS>
            <<<cuda_blocks(s->norm.rows, 1), THREADS, 0, (cudaStream_t)r->stream>>>(*s, (const T *)x, out);
}

static grt_status cuda_layer_norm_enqueue(const grt_run *r, const layer_outputs &out)
{
    layer_shape s = *(const layer_shape *)r->shape;
    const grt_tensor *bias = grt_run_in(r, GRT_NORM_BIAS);
    if (s.norm.rows == 0)
        return GRT_OK;
    s.scale.data = r->in[GRT_NORM_SCALE]->data;
    s.bias.data = bias ? bias->data : NULL;
    CUDA_FOR_FLOATS(r->in[0]->dtype, T, launch_layer<T>(&s, r->in[0]->dtype, r->in[0]->data, out, r));
    CUDA_LAUNCHED();
    return GRT_OK;
}

static grt_status cuda_layer_norm_run(const grt_run *r)
{
    const bool some = ((const layer_shape *)r->shape)->norm.size > 0;
    layer_outputs out = {0};
    out.y = r->out[0] && some ? r->out[0]->data : NULL;
    if (r->n_out > 1 && r->out[1]) {
        out.mean = r->out[1]->data;
        out.mean_dtype = r->out[1]->dtype;
    }
    if (r->n_out > 2 && r->out[2]) {
        out.inverse = r->out[2]->data;
        out.inverse_dtype = r->out[2]->dtype;
    }
    return cuda_layer_norm_enqueue(r, out);
}

enum { Y_SCALE = 3, Y_ZERO = 4 };

static bool cuda_layer_norm_supports_levels(const grt_kernel_node *node, grt_text *why)
{
    const bool fits =
        node->in[Y_SCALE].dtype == GRT_DTYPE_FLOAT &&
        grt_dtype_in(node->in[Y_ZERO].dtype, GRT_SET_BYTES | GRT_BIT(FLOAT8E4M3FN) | GRT_BIT(FLOAT8E5M2));
    if (!fits && why)
        grt_text_add(why, "a float32 scale and results of 8 bits are needed");
    return fits;
}

static grt_status cuda_run_quantised_norm(const grt_run *r)
{
    layer_outputs out = {0};
    if (grt_tensor_elements(r->out[0]) == 0)
        return GRT_OK;
    out.levels = {(uint8_t *)r->out[0]->data, (const float *)r->in[Y_SCALE]->data, r->in[Y_ZERO]->data,
                  r->out[0]->dtype};
    out.y = r->n_out > 1 && r->out[1] ? r->out[1]->data : NULL;
    return cuda_layer_norm_enqueue(r, out);
}

#define LAYER(name)                                                                           \
    {                                                                                         \
        .domain = "", .op = name, .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},  \
        .reshape = cuda_layer_norm_reshape, .release_shape = free, .run = cuda_layer_norm_run \
    }

#define NARROW (GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16))

static const grt_kernel_row rows[] = {
    LAYER("LayerNormalization"),
    LAYER("RMSNormalization"),
    {.domain = "graphrt",
     .op = "QLayerNormalization",
     .types = {NARROW, NARROW, NARROW,
               GRT_BIT(FLOAT) | GRT_SET_BYTES | GRT_BIT(FLOAT8E4M3FN) | GRT_BIT(FLOAT8E5M2)},
     .supports = cuda_layer_norm_supports_levels,
     .reshape = cuda_layer_norm_reshape,
     .release_shape = free,
     .run = cuda_run_quantised_norm},
};
CUDA_KERNELS(layer_norm, rows);
