/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_products.h. Columns are [channels of a group, taps, positions]; as many groups at a time as the L2
 * holds, so that products read them from there. */
#include "backends/cuda/conv_products.h"

#include "backends/cuda/number.cuh"
#include "src/base/checked.h"

namespace
{

enum { UNFOLD_THREADS = 256, EACH_THREAD = 4, ENOUGH_CHANNELS = 8 };
#define COLUMNS_WANTED ((int64_t)32 << 20) /* bytes of a call */
#define COLUMNS_MOST   ((int64_t)256 << 20)

int64_t products_taps_of(const cuda_conv_products *c)
{
    return c->kernel[0] * c->kernel[1];
}

/* Windows are where the result is; of transposed convolutions, where the input is. */
const int64_t *conv_positions(const cuda_conv_products *c)
{
    return c->transposed ? c->in : c->out;
}

int64_t n_positions(const cuda_conv_products *c)
{
    return conv_positions(c)[0] * conv_positions(c)[1];
}

/* Numbers in the columns of one group. */
int64_t column_numbers(const cuda_conv_products *c)
{
    return (c->transposed ? c->out_group : c->in_group) * products_taps_of(c) * n_positions(c);
}

struct unfold_sizes {
    int in[2], out[2], kernel[2], stride[2], dilation[2], begin[2];
    int taps, positions;
    int64_t n;
};

unfold_sizes unfold_sizes_of(const cuda_conv_products *c, int64_t n)
{
    unfold_sizes s = {};
    for (int k = 0; k < 2; k++) {
        s.in[k] = (int)c->in[k];
        s.out[k] = (int)c->out[k];
        s.kernel[k] = (int)c->kernel[k];
        s.stride[k] = (int)c->stride[k];
        s.dilation[k] = (int)c->dilation[k];
        s.begin[k] = (int)c->begin[k];
    }
    s.taps = (int)products_taps_of(c);
    s.positions = (int)n_positions(c);
    s.n = n;
    return s;
}

/* EACH_THREAD neighbouring columns of a tap. U: as wide as a number. */
template <class U>
__global__ void __launch_bounds__(UNFOLD_THREADS)
    unfold_columns(const __grid_constant__ unfold_sizes s, const U *x, U *columns)
{
    CUDA_EACH(i, s.n / EACH_THREAD + (s.n % EACH_THREAD != 0))
    {
        int64_t at = i * EACH_THREAD, row = at / s.positions, channel = row / s.taps;
        int place = (int)(at - row * s.positions), tap = (int)(row - channel * s.taps);
        for (int e = 0; e < EACH_THREAD && at < s.n; e++, at++) {
            const int up = place / s.out[1], left = place - up * s.out[1], down = tap / s.kernel[1],
                      right = tap - down * s.kernel[1],
                      y_at = up * s.stride[0] - s.begin[0] + down * s.dilation[0],
                      x_at = left * s.stride[1] - s.begin[1] + right * s.dilation[1];
            columns[at] = y_at >= 0 && x_at >= 0 && y_at < s.in[0] && x_at < s.in[1]
                              ? x[(channel * s.in[0] + y_at) * s.in[1] + x_at]
                              : (U)0;
            if (++place == s.positions) {
                place = 0;
                if (++tap == s.taps) {
                    tap = 0;
                    channel++;
                }
            }
        }
    }
}

/* One result a thread: the sum of what reaches it. */
template <class T>
__global__ void __launch_bounds__(UNFOLD_THREADS)
    fold_columns(const __grid_constant__ unfold_sizes s, const T *columns, T *y)
{
    CUDA_EACH(i, s.n)
    {
        const int pixels = s.out[0] * s.out[1];
        const int64_t channel = i / pixels;
        const int pixel = (int)(i - channel * pixels), up = pixel / s.out[1], left = pixel - up * s.out[1];
        float sum = 0;
        for (int down = 0; down < s.kernel[0]; down++) {
            const int from = up + s.begin[0] - down * s.dilation[0], row = from / s.stride[0];
            if (from < 0 || from % s.stride[0] || row >= s.in[0])
                continue;
            for (int right = 0; right < s.kernel[1]; right++) {
                const int at = left + s.begin[1] - right * s.dilation[1], column = at / s.stride[1];
                if (at < 0 || at % s.stride[1] || column >= s.in[1])
                    continue;
                sum += cuda_widen(columns[(channel * s.taps + down * s.kernel[1] + right) * s.positions +
                                          row * s.in[1] + column]);
            }
        }
        y[i] = cuda_narrow<T, float>(sum);
    }
}

/* x and y: of the first group of the call. */
grt_status products_unfold(const cuda_conv_products *c, const void *x, void *columns, cudaStream_t stream)
{
    const unfold_sizes s = unfold_sizes_of(c, c->together * column_numbers(c));
    const unsigned blocks = cuda_blocks(s.n, UNFOLD_THREADS * EACH_THREAD);
    if (c->dtype == GRT_DTYPE_FLOAT)
        unfold_columns<uint32_t>
            <<<blocks, UNFOLD_THREADS, 0, stream>>>(s, (const uint32_t *)x, (uint32_t *)columns);
    else
        unfold_columns<uint16_t>
            <<<blocks, UNFOLD_THREADS, 0, stream>>>(s, (const uint16_t *)x, (uint16_t *)columns);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <class T>
void products_launch_fold(const cuda_conv_products *c, const void *columns, void *y, cudaStream_t stream)
{
    const unfold_sizes s = unfold_sizes_of(c, c->together * c->out_group * c->out[0] * c->out[1]);
    fold_columns<T>
        <<<cuda_blocks(s.n, UNFOLD_THREADS), UNFOLD_THREADS, 0, stream>>>(s, (const T *)columns, (T *)y);
}

grt_status products_fold(const cuda_conv_products *c, const void *columns, void *y, cudaStream_t stream)
{
    if (c->dtype == GRT_DTYPE_FLOAT)
        products_launch_fold<float>(c, columns, y, stream);
    else if (c->dtype == GRT_DTYPE_FLOAT16)
        products_launch_fold<__half>(c, columns, y, stream);
    else
        products_launch_fold<__nv_bfloat16>(c, columns, y, stream);
    CUDA_LAUNCHED();
    return GRT_OK;
}

size_t columns_bytes(const cuda_conv_products *c)
{
    const size_t bytes = (size_t)(c->together * column_numbers(c)) * grt_dtype_size(c->dtype);
    return (bytes + CUDA_LT_WORKSPACE_ALIGNMENT - 1) & ~(size_t)(CUDA_LT_WORKSPACE_ALIGNMENT - 1);
}

/* The largest divisor of the groups whose columns are few enough. */
int64_t groups_together(const cuda_conv_products *c)
{
    const int64_t bytes = column_numbers(c) * (int64_t)grt_dtype_size(c->dtype);
    int64_t found = 1;
    for (int64_t k = 2; k <= c->groups && k * bytes <= COLUMNS_WANTED; k++)
        if (c->groups % k == 0)
            found = k;
    return found;
}

/* Numbers of a group's filters, of its input, of its result. */
struct group_sizes {
    int64_t w, x, y;
};

group_sizes group_sizes_of(const cuda_conv_products *c)
{
    return {c->in_group * c->out_group * products_taps_of(c), c->in_group * c->in[0] * c->in[1],
            c->out_group * c->out[0] * c->out[1]};
}

} // namespace

bool cuda_conv_products_fits(const cuda_conv_products *c)
{
    const int64_t most = INT32_MAX / 4;
    int64_t columns, pixels[2];
    return (c->dtype == GRT_DTYPE_FLOAT || c->dtype == GRT_DTYPE_FLOAT16 || c->dtype == GRT_DTYPE_BFLOAT16) &&
           c->groups > 1 && c->in_group >= ENOUGH_CHANNELS && products_taps_of(c) > 1 &&
           grt_mul_i64(c->in[0], c->in[1], &pixels[0]) && grt_mul_i64(c->out[0], c->out[1], &pixels[1]) &&
           pixels[0] > 0 && pixels[1] > 0 && pixels[0] <= most && pixels[1] <= most &&
           grt_mul_i64(n_positions(c), (c->transposed ? c->out_group : c->in_group) * products_taps_of(c),
                       &columns) &&
           columns <= COLUMNS_MOST / (int64_t)grt_dtype_size(c->dtype);
}

grt_status cuda_conv_products_plan(cuda_device *device, const grt_op_desc *desc, grt_algo_trial *trial,
                                   cuda_conv_products *c)
{
    const group_sizes group = group_sizes_of(c);
    cuda_lt_matmul m = {};
    c->together = groups_together(c);
    m.dtype = c->dtype;
    m.tf32 = c->tf32;
    m.trans_a = c->transposed;
    m.m = c->transposed ? c->out_group * products_taps_of(c) : c->out_group;
    m.n = n_positions(c);
    m.k = c->transposed ? c->in_group : c->in_group * products_taps_of(c);
    m.batch = c->together;
    m.stride_a = group.w;
    m.stride_b = c->transposed ? group.x : column_numbers(c);
    const int64_t bits = 16 | (group.w | (c->transposed ? group.x : group.y)) * c->together *
                                  (int64_t)grt_dtype_size(c->dtype);
    m.alignment = bits & -bits;
    m.workspace_cap = (size_t)(device->prop.major >= 9 ? 32 : 4) << 20;
    return cuda_lt_plan_create(device, desc, &m, trial, &c->plan);
}

size_t cuda_conv_products_workspace(const cuda_conv_products *c)
{
    return columns_bytes(c) + cuda_lt_plan_workspace(c->plan) + CUDA_LT_WORKSPACE_ALIGNMENT;
}

grt_status cuda_conv_products_run(const cuda_conv_products *c, const grt_op_desc *desc, const void *x,
                                  const void *w, void *y, void *workspace, cudaStream_t stream)
{
    const group_sizes group = group_sizes_of(c);
    const int64_t size = (int64_t)grt_dtype_size(c->dtype) * c->together;
    for (int64_t call = 0; call < c->groups / c->together; call++) {
        const char *image = (const char *)x + call * group.x * size;
        char *result = (char *)y + call * group.y * size;
        cuda_lt_args args = {};
        args.alpha = 1;
        args.a = (const char *)w + call * group.w * size;
        args.b = c->transposed ? (const void *)image : workspace;
        args.y = c->transposed ? workspace : (void *)result;
        args.workspace = (char *)workspace + columns_bytes(c);
        if (!c->transposed)
            GRT_TRY(products_unfold(c, image, workspace, stream));
        GRT_TRY(cuda_lt_plan_run(c->plan, desc, &args, stream));
        if (c->transposed)
            GRT_TRY(products_fold(c, workspace, result, stream));
    }
    return GRT_OK;
}
