/* SPDX-License-Identifier: Apache-2.0 */
/* The normalisations. Statistics are float32 (double for double), in two passes; half-precision results are
 * rounded where the definitions have a value of the inputs' type. */
#include "backends/cuda/group_norm.h"
#include "backends/cuda/number.cuh"

#include <stdlib.h>

enum { SCALE = 1, BIAS = 2, MEAN = 3, VARIANCE = 4, THREADS = 256 };

static const grt_tensor *input(const grt_tensor *const *in, int32_t n, int32_t i)
{
    return i < n ? in[i] : NULL;
}

template <class T, class W> __device__ __forceinline__ W rounded(W v)
{
    return cuda_widen(cuda_narrow<T, W>(v));
}

__device__ __forceinline__ float root(float x)
{
    return sqrtf(x);
}
__device__ __forceinline__ double root(double x)
{
    return sqrt(x);
}

/* ---- LayerNormalization, RMSNormalization: rows over the trailing dims ---- */

/* A scale or bias, and how it is walked while a row is. */
typedef struct norm_factor {
    const void *data; /* NULL: none */
    int dtype;
    bool plain; /* one value per element of a row */
    int64_t strides[GRT_MAX_RANK];
} norm_factor;

typedef struct layer_shape {
    int64_t rows, size;
    double epsilon;
    bool rms;
    int32_t rank;
    int64_t dims[GRT_MAX_RANK];
    norm_factor scale, bias;
} layer_shape;

typedef struct layer_outputs {
    void *y, *mean, *inverse;
    int mean_dtype, inverse_dtype;
} layer_outputs;

template <class W>
__device__ __forceinline__ W factor_at(const layer_shape &s, const norm_factor &f, int64_t row, int64_t i)
{
    if (f.plain)
        return cuda_load<W>(f.data, f.dtype, i);
    int64_t at = row * s.size + i, sum = 0;
    for (int32_t d = s.rank - 1; d >= 0; d--) {
        sum += at % s.dims[d] * f.strides[d];
        at /= s.dims[d];
    }
    return cuda_load<W>(f.data, f.dtype, sum);
}

template <class T, int PER_ROW>
__global__ void __launch_bounds__(THREADS)
    layer_rows(const __grid_constant__ layer_shape s, const T *x, layer_outputs out)
{
    using W = typename cuda_wide<T>::type;
    const int lane = threadIdx.x % PER_ROW;
    const int64_t per_block = THREADS / PER_ROW;
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
        const W inverse = 1 / root(squares / (W)s.size + (W)s.epsilon);
        for (int64_t i = lane; out.y && i < s.size; i += PER_ROW) {
            W v = rounded<T, W>((cuda_widen(from[i]) - mean) * inverse);
            v *= factor_at<W>(s, s.scale, row, i);
            if (s.bias.data)
                v = rounded<T, W>(v) + factor_at<W>(s, s.bias, row, i);
            ((T *)out.y)[row * s.size + i] = cuda_narrow<T, W>(v);
        }
        if (lane == 0 && out.mean)
            cuda_store<W>(out.mean, out.mean_dtype, row, mean);
        if (lane == 0 && out.inverse)
            cuda_store<W>(out.inverse, out.inverse_dtype, row, inverse);
    }
}

/* The same with rows in registers, read once, 16 bytes a time; scale and bias are as the rows. VECTORS: of
 * each thread. */
template <class T, int PER_ROW, int VECTORS>
__global__ void __launch_bounds__(PER_ROW == 32 ? 128 : PER_ROW)
    layer_vectors(int64_t rows, int size, bool rms, float epsilon, const T *x, const T *scale, const T *bias,
                  T *y)
{
    using V = cuda_vector<T>;
    enum { N = V::N };
    const int lane = threadIdx.x % PER_ROW, per_block = blockDim.x / PER_ROW;
    /* Short rows: factors are loaded together with the row; long rows leave no registers for that. */
    constexpr bool EARLY = VECTORS <= 4;
    V early_scale[EARLY ? VECTORS : 1], early_bias[EARLY ? VECTORS : 1];
    const auto factors_at = [&](int at, V *factor, V *shift) {
        *factor = *(const V *)(scale + at);
        *shift = {};
        if (bias)
            *shift = *(const V *)(bias + at);
    };
    if constexpr (EARLY)
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
            if ((lane + k * PER_ROW) * N < size)
                factors_at((lane + k * PER_ROW) * N, &early_scale[k], &early_bias[k]);
    for (int64_t row = (int64_t)blockIdx.x * per_block + threadIdx.x / PER_ROW; row < rows;
         row += (int64_t)gridDim.x * per_block) {
        float v[VECTORS][N], sum = 0, squares = 0;
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            const int at = (lane + k * PER_ROW) * N;
            V pack = {};
            if (at < size)
                pack = *(const V *)(x + row * size + at);
#pragma unroll
            for (int j = 0; j < N; j++) {
                v[k][j] = cuda_widen(pack.v[j]);
                sum += v[k][j];
            }
        }
        const float mean = rms ? 0.0f : cuda_row_reduce<PER_ROW, cuda_sum, float>(sum, 0) / (float)size;
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
#pragma unroll
            for (int j = 0; j < N; j++) {
                v[k][j] -= mean;
                squares += (lane + k * PER_ROW) * N < size ? v[k][j] * v[k][j] : 0.0f;
            }
        const float inverse =
            1 / sqrtf(cuda_row_reduce<PER_ROW, cuda_sum, float>(squares, 0) / (float)size + epsilon);
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            const int at = (lane + k * PER_ROW) * N;
            if (at >= size)
                continue;
            V factor, shift, result;
            if constexpr (EARLY) {
                factor = early_scale[k];
                shift = early_bias[k];
            } else {
                factors_at(at, &factor, &shift);
            }
#pragma unroll
            for (int j = 0; j < N; j++) {
                float r = rounded<T, float>(v[k][j] * inverse) * cuda_widen(factor.v[j]);
                if (bias)
                    r = rounded<T, float>(r) + cuda_widen(shift.v[j]);
                result.v[j] = cuda_narrow<T, float>(r);
            }
            *(V *)(y + row * size + at) = result;
        }
    }
}

/* Exactly the normalised dims, perhaps behind dims of 1. */
static bool is_row(const grt_tensor *t, const grt_tensor *x, int32_t axis)
{
    const int32_t trailing = x->rank - axis;
    if (t->rank < trailing)
        return false;
    for (int32_t i = 0; i < t->rank - trailing; i++)
        if (t->dims[i] != 1)
            return false;
    return grt_dims_equal(t->dims + t->rank - trailing, trailing, x->dims + axis, trailing);
}

static bool fit_factor(const grt_tensor *t, const grt_tensor *x, int32_t axis, norm_factor *f)
{
    int64_t out[GRT_MAX_RANK];
    int32_t rank;
    if (!t)
        return true;
    if (!grt_dims_broadcast(t->dims, t->rank, x->dims, x->rank, out, &rank) ||
        !grt_dims_equal(out, rank, x->dims, x->rank))
        return false;
    f->dtype = t->dtype;
    f->plain = is_row(t, x, axis);
    grt_broadcast_strides(t->dims, t->rank, x->rank, f->strides);
    return true;
}

static grt_status layer_reshape(grt_reshape *r)
{
    const grt_tensor *x = r->in[0], *scale = r->in[SCALE], *bias = input(r->in, r->n_in, BIAS);
    layer_shape *s = (layer_shape *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    const int32_t axis = x->rank ? (int32_t)grt_axis(grt_attr_int(r->desc, "axis", -1), x->rank) : 0;
    const bool scale_fits = fit_factor(scale, x, axis, &s->scale);
    if (!scale_fits || !fit_factor(bias, x, axis, &s->bias)) {
        char found[GRT_TYPE_TEXT_SIZE], wanted[GRT_TYPE_TEXT_SIZE];
        free(s);
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "%s is %s, which does not broadcast to the input %s",
                           scale_fits ? "the bias" : "the scale",
                           grt_tensor_text(scale_fits ? bias : scale, found), grt_tensor_text(x, wanted));
    }
    s->rows = grt_dims_product(x->dims, 0, axis);
    s->size = grt_dims_product(x->dims, axis, x->rank);
    s->epsilon = (double)grt_attr_float(r->desc, "epsilon", 1e-5f);
    s->rms = !strcmp(r->desc->op, "RMSNormalization");
    s->rank = x->rank;
    memcpy(s->dims, x->dims, sizeof s->dims);
    r->shape = s;
    return GRT_OK;
}

enum { WIDE_ROW = 256, MOST_VECTORS = 8 };

template <class T, int PER_ROW, int VECTORS>
static void launch_vectors(const layer_shape *s, const void *x, void *y, cudaStream_t stream)
{
    /* With few rows, one warp per block, to use all multiprocessors. */
    const int threads = PER_ROW > 32 ? PER_ROW : s->rows < 1024 ? 32 : 128;
    layer_vectors<T, PER_ROW, VECTORS><<<cuda_blocks(s->rows, threads / PER_ROW), threads, 0, stream>>>(
        s->rows, (int)s->size, s->rms, (float)s->epsilon, (const T *)x, (const T *)s->scale.data,
        (const T *)s->bias.data, (T *)y);
}

template <class T, int PER_ROW>
static void launch_as_wide(const layer_shape *s, int vectors, const void *x, void *y, cudaStream_t stream)
{
    if (vectors <= 1)
        launch_vectors<T, PER_ROW, 1>(s, x, y, stream);
    else if (vectors <= 2)
        launch_vectors<T, PER_ROW, 2>(s, x, y, stream);
    else if (vectors <= 4)
        launch_vectors<T, PER_ROW, 4>(s, x, y, stream);
    else
        launch_vectors<T, PER_ROW, MOST_VECTORS>(s, x, y, stream);
}

/* False if the rows, their factors or outputs are not what the kernel for vectors takes. */
template <class T>
static bool launch_fast(const layer_shape *s, int dtype, const void *x, const layer_outputs &out,
                        cudaStream_t stream)
{
    const int64_t n = cuda_vector<T>::N, vectors = s->size / n;
    const bool fits = sizeof(T) <= 4 && s->size > 0 && s->size % n == 0 &&
                      vectors <= WIDE_ROW * MOST_VECTORS && out.y && !out.mean && !out.inverse &&
                      s->scale.plain && s->scale.dtype == dtype &&
                      (!s->bias.data || (s->bias.plain && s->bias.dtype == dtype)) && cuda_is_vector(x) &&
                      cuda_is_vector(out.y) && cuda_is_vector(s->scale.data) && cuda_is_vector(s->bias.data);
    if (!fits)
        return false;
    if constexpr (sizeof(T) <= 4) {
        if (vectors <= 32 * 4 || (vectors <= 32 * MOST_VECTORS && s->rows >= 1024))
            launch_as_wide<T, 32>(s, (int)((vectors + 31) / 32), x, out.y, stream);
        else
            launch_as_wide<T, WIDE_ROW>(s, (int)((vectors + WIDE_ROW - 1) / WIDE_ROW), x, out.y, stream);
    }
    return true;
}

template <class T>
static void launch_layer(const layer_shape *s, int dtype, const void *x, layer_outputs out,
                         cudaStream_t stream)
{
    if (launch_fast<T>(s, dtype, x, out, stream))
        return;
    enum { WARP_SIZES = 512 };
    if (s->size <= WARP_SIZES)
        layer_rows<T, 32><<<cuda_blocks(s->rows, THREADS / 32), THREADS, 0, stream>>>(*s, (const T *)x, out);
    else
        layer_rows<T, THREADS><<<cuda_blocks(s->rows, 1), THREADS, 0, stream>>>(*s, (const T *)x, out);
}

static grt_status layer_run(const grt_run *r)
{
    layer_shape s = *(const layer_shape *)r->shape;
    const grt_tensor *bias = input(r->in, r->n_in, BIAS);
    layer_outputs out = {0};
    if (s.rows == 0)
        return GRT_OK;
    s.scale.data = r->in[SCALE]->data;
    s.bias.data = bias ? bias->data : NULL;
    out.y = r->out[0] && s.size ? r->out[0]->data : NULL;
    if (r->n_out > 1 && r->out[1]) {
        out.mean = r->out[1]->data;
        out.mean_dtype = r->out[1]->dtype;
    }
    if (r->n_out > 2 && r->out[2]) {
        out.inverse = r->out[2]->data;
        out.inverse_dtype = r->out[2]->dtype;
    }
    CUDA_FOR_FLOATS(r->in[0]->dtype, T,
                    launch_layer<T>(&s, r->in[0]->dtype, r->in[0]->data, out, (cudaStream_t)r->stream));
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* ---- GroupNormalization, InstanceNormalization ---- */

/* A group of channels of one image: over many blocks (group_norm.h), or a block each. In domain graphrt,
 * channels may be last. */

typedef struct group_shape {
    int64_t rows, groups, channels, pixels; /* channels: per group */
    double epsilon;
    int scale_dtype, bias_dtype;
    bool last, spread;
    cuda_group_norm norm; /* spread over many blocks */
} group_shape;

template <class T, bool LAST>
__global__ void __launch_bounds__(THREADS)
    group_rows(group_shape s, const T *x, const void *scale, const void *bias, T *y)
{
    using W = typename cuda_wide<T>::type;
    const int64_t n = s.channels * s.pixels;
    for (int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
        const int64_t first = row % s.groups * s.channels, all = s.groups * s.channels;
        const int64_t begin = LAST ? row / s.groups * s.pixels * all + first : row * n;
        auto at = [&](int64_t i) { return begin + (LAST ? i / s.channels * all + i % s.channels : i); };
        W mean = 0, squares = 0;
        for (int64_t i = threadIdx.x; i < n; i += THREADS)
            mean += cuda_widen(x[at(i)]);
        mean = cuda_row_reduce<THREADS, cuda_sum, W>(mean, 0) / (W)n;
        for (int64_t i = threadIdx.x; i < n; i += THREADS) {
            const W d = cuda_widen(x[at(i)]) - mean;
            squares += d * d;
        }
        squares = cuda_row_reduce<THREADS, cuda_sum, W>(squares, 0);
        const W inverse = 1 / root(squares / (W)n + (W)s.epsilon);
        for (int64_t i = threadIdx.x; i < n; i += THREADS) {
            const int64_t channel = first + (LAST ? i % s.channels : i / s.pixels);
            const W v = (cuda_widen(x[at(i)]) - mean) * inverse;
            y[at(i)] = cuda_narrow<T, W>(v * cuda_load<W>(scale, s.scale_dtype, channel) +
                                         cuda_load<W>(bias, s.bias_dtype, channel));
        }
    }
}

static grt_status check_channels(const grt_reshape *r, int32_t from, int32_t to, int64_t channels)
{
    char found[GRT_TYPE_TEXT_SIZE];
    for (int32_t i = from; i <= to; i++)
        if (grt_tensor_elements(r->in[i]) != channels)
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "input %d is %s; expected %lld elements, one per channel", i,
                               grt_tensor_text(r->in[i], found), (long long)channels);
    return GRT_OK;
}

static grt_status group_reshape(grt_reshape *r)
{
    const grt_tensor *x = r->in[0];
    const bool last = !strcmp(grt_attr_string(r->desc, "layout", "NCHW"), "NHWC");
    const int64_t channels = x->dims[last ? x->rank - 1 : 1];
    GRT_TRY(check_channels(r, SCALE, BIAS, channels));
    group_shape *s = (group_shape *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    s->groups =
        !strcmp(r->desc->op, "GroupNormalization") ? grt_attr_int(r->desc, "num_groups", 1) : channels;
    s->channels = s->groups > 0 ? channels / s->groups : 0;
    s->rows = x->dims[0] * s->groups;
    s->pixels = last ? grt_dims_product(x->dims, 1, x->rank - 1) : grt_dims_product(x->dims, 2, x->rank);
    s->last = last;
    s->epsilon = (double)grt_attr_float(r->desc, "epsilon", 1e-5f);
    s->scale_dtype = r->in[SCALE]->dtype;
    s->bias_dtype = r->in[BIAS]->dtype;
    s->norm = {last,      x->dims[0],        s->groups,      s->channels,
               s->pixels, (float)s->epsilon, s->scale_dtype, s->bias_dtype};
    s->spread =
        cuda_group_norm_plan(&s->norm, x->dtype, ((const cuda_device *)r->device)->prop.multiProcessorCount);
    if (s->spread)
        r->workspace_bytes = cuda_group_norm_workspace(&s->norm);
    r->shape = s;
    return GRT_OK;
}

template <class T> static void launch_group(const grt_run *r, const group_shape *s)
{
    auto kernel = s->last ? group_rows<T, true> : group_rows<T, false>;
    kernel<<<cuda_blocks(s->rows, 1), THREADS, 0, (cudaStream_t)r->stream>>>(
        *s, (const T *)r->in[0]->data, r->in[SCALE]->data, r->in[BIAS]->data, (T *)r->out[0]->data);
}

static grt_status group_run(const grt_run *r)
{
    const group_shape *s = (const group_shape *)r->shape;
    if (s->rows * s->channels * s->pixels == 0)
        return GRT_OK;
    if (!s->spread ||
        !cuda_group_norm_run(&s->norm, r->in[0]->dtype, r->in[0]->data, r->in[SCALE]->data, r->in[BIAS]->data,
                             r->out[0]->data, r->workspace, (cudaStream_t)r->stream))
        CUDA_FOR_FLOATS(r->in[0]->dtype, T, launch_group<T>(r, s));
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* ---- BatchNormalization ---- */

/* Each channel becomes x * a + b, in training mode by the batch's own statistics. */

typedef struct batch_shape {
    int64_t batch, channels, inner;
    double epsilon, momentum;
    bool training;
} batch_shape;

/* What is read and written besides x and y. */
typedef struct batch_tensors {
    const void *in[5];
    int in_dtype[5];
    void *out[3];
    int out_dtype[3];
} batch_tensors;

/* a and b of one channel per block. */
template <class T>
__global__ void __launch_bounds__(THREADS) batch_affine(batch_shape s, batch_tensors t, double *ab)
{
    const T *x = (const T *)t.in[0];
    const int64_t count = s.batch * s.inner;
    for (int64_t c = blockIdx.x; c < s.channels; c += gridDim.x) {
        double mean = cuda_load<double>(t.in[MEAN], t.in_dtype[MEAN], c);
        double variance = cuda_load<double>(t.in[VARIANCE], t.in_dtype[VARIANCE], c);
        if (s.training) {
            double sum = 0, squares = 0;
            for (int64_t i = threadIdx.x; i < count; i += THREADS)
                sum += (double)cuda_widen(x[(i / s.inner * s.channels + c) * s.inner + i % s.inner]);
            const double own = cuda_row_reduce<THREADS, cuda_sum, double>(sum, 0) / (double)count;
            for (int64_t i = threadIdx.x; i < count; i += THREADS) {
                const double d =
                    (double)cuda_widen(x[(i / s.inner * s.channels + c) * s.inner + i % s.inner]) - own;
                squares += d * d;
            }
            const double spread = cuda_row_reduce<THREADS, cuda_sum, double>(squares, 0) / (double)count;
            if (threadIdx.x == 0 && t.out[1])
                cuda_store<double>(t.out[1], t.out_dtype[1], c, mean * s.momentum + own * (1 - s.momentum));
            if (threadIdx.x == 0 && t.out[2])
                cuda_store<double>(t.out[2], t.out_dtype[2], c,
                                   variance * s.momentum + spread * (1 - s.momentum));
            mean = own;
            variance = spread;
        }
        if (threadIdx.x == 0) {
            const double a =
                cuda_load<double>(t.in[SCALE], t.in_dtype[SCALE], c) / sqrt(variance + s.epsilon);
            ab[2 * c] = a;
            ab[2 * c + 1] = cuda_load<double>(t.in[BIAS], t.in_dtype[BIAS], c) - mean * a;
        }
    }
}

template <class T> __global__ void batch_apply(batch_shape s, const T *x, const double *ab, T *y)
{
    using W = typename cuda_wide<T>::type;
    CUDA_EACH(i, s.batch * s.channels * s.inner)
    {
        const int64_t c = i / s.inner % s.channels;
        y[i] = cuda_narrow<T, W>(cuda_widen(x[i]) * (W)ab[2 * c] + (W)ab[2 * c + 1]);
    }
}

/* A vector has one channel. */
static grt_status batch_reshape(grt_reshape *r)
{
    const grt_tensor *x = r->in[0];
    const int64_t channels = x->rank > 1 ? x->dims[1] : 1;
    GRT_TRY(check_channels(r, SCALE, VARIANCE, channels));
    batch_shape *s = (batch_shape *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    s->batch = x->rank ? x->dims[0] : 1;
    s->channels = channels;
    s->inner = x->rank > 2 ? grt_dims_product(x->dims, 2, x->rank) : 1;
    s->epsilon = (double)grt_attr_float(r->desc, "epsilon", 1e-5f);
    s->momentum = (double)grt_attr_float(r->desc, "momentum", 0.9f);
    s->training = grt_attr_int(r->desc, "training_mode", 0) != 0;
    r->workspace_bytes = (size_t)channels * 2 * sizeof(double);
    r->shape = s;
    return GRT_OK;
}

template <class T>
static void launch_batch(const batch_shape *s, const batch_tensors *t, double *ab, cudaStream_t stream)
{
    batch_affine<T><<<cuda_blocks(s->channels, 1), THREADS, 0, stream>>>(*s, *t, ab);
    batch_apply<T><<<cuda_blocks(s->batch * s->channels * s->inner, THREADS), THREADS, 0, stream>>>(
        *s, (const T *)t->in[0], ab, (T *)t->out[0]);
}

static grt_status batch_run(const grt_run *r)
{
    const batch_shape *s = (const batch_shape *)r->shape;
    batch_tensors t = {};
    for (int32_t i = 0; i < 5; i++) {
        t.in[i] = r->in[i]->data;
        t.in_dtype[i] = r->in[i]->dtype;
    }
    for (int32_t i = 0; i < 3 && i < r->n_out; i++)
        if (r->out[i]) {
            t.out[i] = r->out[i]->data;
            t.out_dtype[i] = r->out[i]->dtype;
        }
    if (s->batch * s->channels * s->inner == 0)
        return GRT_OK;
    CUDA_FOR_FLOATS(r->in[0]->dtype, T,
                    launch_batch<T>(s, &t, (double *)r->workspace, (cudaStream_t)r->stream));
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* ---- LRN: each element divided by a power of the squares in the channels around it ---- */

typedef struct lrn_shape {
    int64_t n, channels, pixels, before, after; /* channels of the window on either side */
    float alpha, beta, bias;                    /* alpha: already divided by the size */
} lrn_shape;

template <class T> __global__ void lrn(lrn_shape s, const T *x, T *y)
{
    using W = typename cuda_wide<T>::type;
    CUDA_EACH(i, s.n)
    {
        const int64_t channel = i / s.pixels % s.channels;
        const int64_t from = channel > s.before ? channel - s.before : 0;
        const int64_t to = channel + s.after < s.channels ? channel + s.after + 1 : s.channels;
        W sum = 0;
        for (int64_t c = from; c < to; c++) {
            const W v = cuda_widen(x[i + (c - channel) * s.pixels]);
            sum += v * v;
        }
        y[i] = cuda_narrow<T, W>(cuda_widen(x[i]) * (W)pow((W)s.bias + (W)s.alpha * sum, -(W)s.beta));
    }
}

static grt_status lrn_reshape(grt_reshape *r)
{
    lrn_shape *s = (lrn_shape *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    const grt_tensor *x = r->in[0];
    const int64_t size = grt_attr_int(r->desc, "size", 1);
    s->n = grt_tensor_elements(x);
    s->channels = x->dims[1];
    s->pixels = grt_dims_product(x->dims, 2, x->rank);
    s->before = (size - 1) / 2;
    s->after = size - 1 - s->before;
    s->alpha = grt_attr_float(r->desc, "alpha", 1e-4f) / (float)size;
    s->beta = grt_attr_float(r->desc, "beta", 0.75f);
    s->bias = grt_attr_float(r->desc, "bias", 1.0f);
    r->shape = s;
    return GRT_OK;
}

static grt_status lrn_run(const grt_run *r)
{
    const lrn_shape *s = (const lrn_shape *)r->shape;
    if (s->n == 0)
        return GRT_OK;
    CUDA_FOR_FLOATS(r->in[0]->dtype, T,
                    lrn<T><<<cuda_blocks(s->n, THREADS), THREADS, 0, (cudaStream_t)r->stream>>>(
                        *s, (const T *)r->in[0]->data, (T *)r->out[0]->data));
    CUDA_LAUNCHED();
    return GRT_OK;
}

#define FLOATS3                                        \
    {                                                  \
        GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS \
    }
#define LAYER .types = FLOATS3, .reshape = layer_reshape, .release_shape = free, .run = layer_run
#define GROUP .types = FLOATS3, .reshape = group_reshape, .release_shape = free, .run = group_run

static const grt_kernel_row rows[] = {
    {.domain = "", .op = "LayerNormalization", LAYER},
    {.domain = "", .op = "RMSNormalization", LAYER},
    {.domain = "", .op = "GroupNormalization", GROUP},
    {.domain = "", .op = "InstanceNormalization", GROUP},
    {.domain = "graphrt", .op = "GroupNormalization", GROUP},
    {.domain = "graphrt", .op = "InstanceNormalization", GROUP},
    {.domain = "",
     .op = "BatchNormalization",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .reshape = batch_reshape,
     .release_shape = free,
     .run = batch_run},
    {.domain = "",
     .op = "LRN",
     .types = {GRT_SET_FLOATS},
     .reshape = lrn_reshape,
     .release_shape = free,
     .run = lrn_run},
};
CUDA_KERNELS(norm, rows);
