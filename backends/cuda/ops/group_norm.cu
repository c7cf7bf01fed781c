/* SPDX-License-Identifier: Apache-2.0 */
/* GroupNormalization and InstanceNormalization: a group of channels of one image, over many blocks
 * (group_norm.h), a block each, or a warp each where there are many short ones. In domain graphrt, channels
 * may be last, and an activation may follow. */
#include "backends/cuda/activate.cuh"
#include "backends/cuda/group_norm.h"
#include "backends/cuda/number.cuh"
#include "backends/shared/norm.h"

#include <stdlib.h>

enum { THREADS = 256 };

typedef struct group_shape {
    grt_group_norm norm;
    int scale_dtype, bias_dtype;
    bool spread; /* over many blocks, as `shares` says */
    cuda_group_norm shares;
} group_shape;

/* WIDTH threads a group. */
template <class T, bool LAST, int WIDTH>
__global__ void __launch_bounds__(THREADS)
    group_rows(group_shape shape, const T *x, const void *scale, const void *bias, T *y)
{
    const grt_group_norm &s = shape.norm;
    using W = typename cuda_wide<T>::type;
    enum { GROUPS = THREADS / WIDTH };
    const int64_t n = s.channels * s.pixels;
    const int thread = threadIdx.x % WIDTH;
    for (int64_t row = (int64_t)blockIdx.x * GROUPS + threadIdx.x / WIDTH; row < s.rows;
         row += (int64_t)gridDim.x * GROUPS) {
        const int64_t first = row % s.groups * s.channels, all = s.groups * s.channels;
        const int64_t begin = LAST ? row / s.groups * s.pixels * all + first : row * n;
        auto at = [&](int64_t i) { return begin + (LAST ? i / s.channels * all + i % s.channels : i); };
        W mean = 0, squares = 0;
        for (int64_t i = thread; i < n; i += WIDTH)
            mean += cuda_widen(x[at(i)]);
        mean = cuda_row_reduce<WIDTH, cuda_sum, W>(mean, 0) / (W)n;
        for (int64_t i = thread; i < n; i += WIDTH) {
            const W d = cuda_widen(x[at(i)]) - mean;
            squares += d * d;
        }
        squares = cuda_row_reduce<WIDTH, cuda_sum, W>(squares, 0);
        const W inverse = 1 / sqrt(squares / (W)n + (W)s.epsilon);
        for (int64_t i = thread; i < n; i += WIDTH) {
            const int64_t channel = first + (LAST ? i % s.channels : i / s.pixels);
            const W v = (cuda_widen(x[at(i)]) - mean) * inverse;
            const W scaled = v * cuda_load<W>(scale, shape.scale_dtype, channel) +
                             cuda_load<W>(bias, shape.bias_dtype, channel);
            y[at(i)] = cuda_narrow<T, W>(cuda_activate<W>(shape.shares.act, scaled));
        }
    }
}

static bool cuda_group_norm_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_act act;
    return grt_act_read(node->desc, &act, why);
}

static grt_status cuda_group_norm_reshape(grt_reshape *r)
{
    group_shape *s = (group_shape *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    const grt_status status = grt_group_norm_fit(r, &s->norm);
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    s->scale_dtype = r->in[GRT_NORM_SCALE]->dtype;
    s->bias_dtype = r->in[GRT_NORM_BIAS]->dtype;
    s->shares = {s->norm.last,     r->in[0]->dims[0], s->norm.groups,
                 s->norm.channels, s->norm.pixels,    (float)s->norm.epsilon,
                 s->scale_dtype,   s->bias_dtype,     {GRT_ACT_NONE, 0, 0}};
    grt_act_read(r->desc, &s->shares.act, NULL);
    s->spread = cuda_group_norm_plan(&s->shares, r->in[0]->dtype,
                                     ((const cuda_device *)r->device)->prop.multiProcessorCount);
    if (s->spread)
        r->workspace_bytes = cuda_group_norm_workspace(&s->shares);
    r->shape = s;
    return GRT_OK;
}

template <class T> static void launch_group(const grt_run *r, const group_shape *s)
{
    enum { WARP = 32, SHORT = 512, MANY = 1024 };
    const bool by_warp = s->norm.channels * s->norm.pixels <= SHORT && s->norm.rows >= MANY;
    auto kernel = by_warp        ? s->norm.last ? group_rows<T, true, WARP> : group_rows<T, false, WARP>
                         : s->norm.last ? group_rows<T, true, THREADS>
                                 : group_rows<T, false, THREADS>;
    kernel<<<cuda_blocks(s->norm.rows, by_warp ? THREADS / WARP : 1), THREADS, 0, (cudaStream_t)r->stream>>>(
        *s, (const T *)r->in[0]->data, r->in[GRT_NORM_SCALE]->data, r->in[GRT_NORM_BIAS]->data,
        (T *)r->out[0]->data);
}

static grt_status run_cuda_group_norm(const grt_run *r)
{
    const group_shape *s = (const group_shape *)r->shape;
    if (s->norm.rows * s->norm.channels * s->norm.pixels == 0)
        return GRT_OK;
    if (!s->spread || !cuda_group_norm_run(&s->shares, r->in[0]->dtype, r->in[0]->data,
                                           r->in[GRT_NORM_SCALE]->data, r->in[GRT_NORM_BIAS]->data,
                                           r->out[0]->data, r->workspace, (cudaStream_t)r->stream))
        CUDA_FOR_FLOATS(r->in[0]->dtype, T, launch_group<T>(r, s));
    CUDA_LAUNCHED();
    return GRT_OK;
}

#define GROUP(in, name)                                                                                  \
    {                                                                                                    \
        .domain = in, .op = name, .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},             \
        .supports = cuda_group_norm_supports, .reshape = cuda_group_norm_reshape, .release_shape = free, \
        .run = run_cuda_group_norm                                                                       \
    }

static const grt_kernel_row rows[] = {
    GROUP("", "GroupNormalization"),
    GROUP("", "InstanceNormalization"),
    GROUP("graphrt", "GroupNormalization"),
    GROUP("graphrt", "InstanceNormalization"),
};
CUDA_KERNELS(group_norm, rows);
