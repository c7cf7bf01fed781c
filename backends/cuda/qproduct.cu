/* SPDX-License-Identifier: Apache-2.0 */
/* See qproduct.h. Where all numbers are constant the epilogue is made on the host when the session is made,
 * otherwise by a kernel in front of the product. */
#include "backends/cuda/qproduct.h"

#include "backends/cuda/walk.h"
#include "src/base/tensor.h"

#include <math.h>

/* The activation of a sum; false: there is no such. */
static bool read_sum_activation(const grt_op_desc *desc, grt_act *out)
{
    const char *name = grt_attr_string(desc, "sum_activation", "");
    *out = {GRT_ACT_NONE, grt_attr_float(desc, "sum_alpha", 0), grt_attr_float(desc, "sum_beta", 0)};
    return grt_act_find(name, strlen(name), &out->kind);
}

bool cuda_qproduct_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_act act, sum;
    if (!grt_act_read(node->desc, &act, why) || !read_sum_activation(node->desc, &sum))
        return false;
    const grt_dtype_set of_residual = grt_node_has(node, QP_Y_SCALE) ? GRT_SET_BYTES
                                                                     : (grt_dtype_set)1 << node->out[0].dtype,
                        results = GRT_SET_BYTES | GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16);
    const bool residual = grt_node_has(node, QP_RESIDUAL),
               after = residual && !grt_node_has(node, QP_SUM_SCALE);
    const bool fits =
        grt_qproduct_types_fit(node) && grt_dtype_in(node->out[0].dtype, results) &&
        (!residual || grt_dtype_in(node->in[QP_RESIDUAL].dtype, of_residual)) && grt_act_is_limit(sum) &&
        (!after || act.kind == GRT_ACT_NONE || (grt_act_is_limit(act) && grt_node_has(node, QP_Y_SCALE)));
    if (!fits && why)
        grt_text_add(why,
                     "8-bit tensors with float32 scales are needed, and Relu, Clip or no activation behind "
                     "a sum");
    return fits;
}

bool cuda_qproduct_has_row(const grt_kernel_node *node, int64_t n)
{
    return grt_node_has(node, QP_RESIDUAL) && grt_node_has(node, QP_SUM_SCALE) &&
           grt_node_has(node, QP_R_SCALE) && node->in[QP_RESIDUAL].data &&
           grt_tensor_elements(&node->in[QP_RESIDUAL]) == n;
}

bool cuda_qproduct_is_constant(const grt_kernel_node *node)
{
    for (int32_t i = QP_X_SCALE; i < node->n_in; i++)
        if (i != QP_RESIDUAL && grt_node_has(node, i) && !node->in[i].data)
            return false;
    return true;
}

static const void *cuda_qproduct_data_of(const grt_tensor *const *in, int32_t n_in, int32_t i)
{
    return i < n_in && in[i] ? in[i]->data : NULL;
}

static bool is_each(const grt_tensor *const *in, int32_t n_in, int32_t i)
{
    return i < n_in && in[i] && grt_tensor_elements(in[i]) > 1;
}

static bool is_signed(const grt_tensor *const *in, int32_t n_in, int32_t i)
{
    return i < n_in && in[i] && in[i]->dtype == GRT_DTYPE_INT8;
}

cuda_qsource cuda_qproduct_source(const grt_op_desc *desc, const grt_tensor *const *in, int32_t n_in)
{
    cuda_qsource s = {};
    const void *bias = cuda_qproduct_data_of(in, n_in, QP_BIAS);
    const bool whole = bias && in[QP_BIAS]->dtype == GRT_DTYPE_INT32;
    s.x_scale = (const float *)cuda_qproduct_data_of(in, n_in, QP_X_SCALE);
    s.w_scale = (const float *)cuda_qproduct_data_of(in, n_in, QP_W_SCALE);
    s.y_scale = (const float *)cuda_qproduct_data_of(in, n_in, QP_Y_SCALE);
    s.r_scale = (const float *)cuda_qproduct_data_of(in, n_in, QP_R_SCALE);
    s.sum_scale = (const float *)cuda_qproduct_data_of(in, n_in, QP_SUM_SCALE);
    s.x_zero = cuda_qproduct_data_of(in, n_in, QP_X_ZERO);
    s.w_zero = cuda_qproduct_data_of(in, n_in, QP_W_ZERO);
    s.y_zero = cuda_qproduct_data_of(in, n_in, QP_Y_ZERO);
    s.r_zero = cuda_qproduct_data_of(in, n_in, QP_R_ZERO);
    s.sum_zero = cuda_qproduct_data_of(in, n_in, QP_SUM_ZERO);
    s.bias = whole ? NULL : (const float *)bias;
    s.int_bias = whole ? (const int32_t *)bias : NULL;
    s.x_signed = is_signed(in, n_in, QP_X);
    s.w_signed = is_signed(in, n_in, QP_W);
    s.y_signed = is_signed(in, n_in, QP_Y_ZERO);
    s.r_signed = is_signed(in, n_in, QP_RESIDUAL);
    s.sum_signed = is_signed(in, n_in, QP_SUM_ZERO);
    s.w_scale_each = is_each(in, n_in, QP_W_SCALE);
    s.w_zero_each = is_each(in, n_in, QP_W_ZERO);
    grt_act_read(desc, &s.act, NULL);
    read_sum_activation(desc, &s.sum_act);
    s.in_units = s.y_scale && grt_act_is_limit(s.act);
    return s;
}

static __host__ __device__ int32_t level_at(const void *data, bool is_signed, int64_t i)
{
    if (!data)
        return 0;
    return is_signed ? ((const int8_t *)data)[i] : ((const uint8_t *)data)[i];
}

static __host__ __device__ int32_t cuda_qproduct_weight_zero(const cuda_qsource &s, int64_t level)
{
    return level_at(s.w_zero, s.w_signed, s.w_zero_each ? level : 0) - (s.w_signed ? 0 : 128);
}

grt_act cuda_qproduct_activation(const grt_op_desc *desc, grt_dtype y)
{
    grt_act act;
    grt_act_read(desc, &act, NULL);
    return grt_act_is_limit(act) && grt_dtype_in(y, GRT_SET_BYTES) ? grt_act{GRT_ACT_NONE, 0, 0} : act;
}

bool cuda_qproduct_has_zeros(const cuda_qsource *source)
{
    for (int64_t i = 0; i < (source->w_zero_each ? source->levels : 1); i++)
        if (cuda_qproduct_weight_zero(*source, i) != 0)
            return true;
    return false;
}

/* Limits of what is rounded to a type with this scale and zero point, behind an activation. */
static __host__ __device__ void cuda_qproduct_set_limits(grt_act act, float scale, int32_t zero,
                                                         bool of_signed, float *low, float *high)
{
    const float least = (float)((of_signed ? -128 : 0) - zero),
                most = (float)((of_signed ? 127 : 255) - zero);
    const bool clip = act.kind == GRT_ACT_CLIP;
    *low = least;
    *high = most;
    if (!clip && act.kind != GRT_ACT_RELU)
        return;
    *low = fminf(fmaxf(clip ? act.a / scale : 0.0f, least), most);
    *high = fmaxf(fminf(clip ? act.b / scale : INFINITY, most), least);
}

static __host__ __device__ void fill_head(const cuda_qsource &s, cuda_qhead *head)
{
    const float y_scale = s.y_scale ? *s.y_scale : 1.0f, sum_scale = s.sum_scale ? *s.sum_scale : y_scale;
    cuda_qhead h = {};
    h.y_zero = level_at(s.y_zero, s.y_signed, 0);
    h.r_zero = level_at(s.r_zero, s.r_signed, 0);
    h.x_zero = level_at(s.x_zero, s.x_signed, 0);
    h.sum_zero = level_at(s.sum_zero, s.sum_signed, 0);
    h.r_scale = (s.r_scale ? *s.r_scale : 1.0f) / sum_scale;
    h.y_scale = y_scale / sum_scale;
    h.y_unit = s.in_units ? 1.0f : y_scale;
    h.bound = INFINITY;
    cuda_qproduct_set_limits(s.act, y_scale, h.y_zero, s.y_signed, &h.low, &h.high);
    cuda_qproduct_set_limits(s.sum_act, sum_scale, h.sum_zero, s.sum_signed, &h.sum_low, &h.sum_high);
    for (int i = 0; i < CUDA_QCHUNK; i++)
        h.outside[i] = (uint8_t)h.x_zero;
    *head = h;
}

/* As a residual's number becomes one in units of the sum's scale. */
static __host__ __device__ float row_number(const cuda_qsource &s, int64_t level)
{
    const float unit = *s.r_scale / *s.sum_scale;
    return (float)(level_at(s.row, s.r_signed, level) - level_at(s.r_zero, s.r_signed, 0)) * unit;
}

static __host__ __device__ void fill_column(const cuda_qsource &s, const int32_t *sums, int64_t j,
                                            const cuda_qfinish &f)
{
    int32_t *offset = (int32_t *)f.offset, *zero = (int32_t *)f.zero;
    float *scale = (float *)f.scale, *bias = (float *)f.bias, *row = (float *)f.row;
    const int64_t level = j % s.levels;
    const float y_scale = s.in_units ? *s.y_scale : 1.0f;
    const uint32_t x_zero = (uint32_t)level_at(s.x_zero, s.x_signed, 0),
                   w_zero = (uint32_t)cuda_qproduct_weight_zero(s, level), sum = sums ? (uint32_t)sums[j] : 0;
    uint32_t o = x_zero * (sum - (uint32_t)s.depth * w_zero) - w_zero * (uint32_t)s.filled * x_zero;
    if (!sums)
        o = 0;
    if (s.int_bias)
        o -= (uint32_t)s.int_bias[level];
    offset[j] = (int32_t)o;
    zero[j] = sums ? (int32_t)w_zero : 0;
    scale[j] = *s.x_scale * s.w_scale[s.w_scale_each ? level : 0] / y_scale;
    bias[j] = s.bias ? s.bias[level] / y_scale : 0.0f;
    row[j] = s.row ? row_number(s, level) : 0.0f;
}

static int64_t cuda_qproduct_padded(int64_t columns)
{
    return (columns + 15) / 16 * 16;
}

size_t cuda_qfinish_bytes(int64_t columns)
{
    return sizeof(cuda_qhead) + 5 * (size_t)cuda_qproduct_padded(columns) * sizeof(float);
}

cuda_qfinish cuda_qfinish_at(const void *memory, int64_t columns)
{
    const int32_t *ints = (const int32_t *)((const char *)memory + sizeof(cuda_qhead));
    const int64_t padded = cuda_qproduct_padded(columns);
    const float *floats = (const float *)(ints + 2 * padded);
    return {(const cuda_qhead *)memory, ints, ints + padded, floats, floats + padded, floats + 2 * padded};
}

/* Of what a column's sum, which is exact, becomes by its scale and bias. */
static float bound_of_column(const cuda_qsource *s, int64_t j, const cuda_qfinish *f)
{
    const float levels = 256, whole = s->int_bias ? fabsf((float)s->int_bias[j % s->levels]) : 0.0f;
    return ((float)s->depth * levels * levels + whole) * fabsf(f->scale[j]) + fabsf(f->bias[j]);
}

void cuda_qfinish_fill(const cuda_qsource *source, const int32_t *sums, void *memory)
{
    const cuda_qfinish f = cuda_qfinish_at(memory, source->columns);
    fill_head(*source, (cuda_qhead *)memory);
    float bound = 0;
    for (int64_t j = 0; j < source->columns; j++) {
        fill_column(*source, sums, j, f);
        const float column = bound_of_column(source, j, &f);
        bound = isnan(bound) || column <= bound ? bound : column;
    }
    ((cuda_qhead *)memory)->bound = bound;
}

static __global__ void __launch_bounds__(CUDA_BLOCK)
    fill_all(const __grid_constant__ cuda_qsource s, const int32_t *sums,
             const __grid_constant__ cuda_qfinish f)
{
    if (blockIdx.x == 0 && threadIdx.x == 0)
        fill_head(s, (cuda_qhead *)f.head);
    CUDA_ITEMS (j, s.columns)
        fill_column(s, sums, j, f);
}

grt_status cuda_qfinish_enqueue(const cuda_qsource *source, const int32_t *sums, void *memory,
                                cudaStream_t stream)
{
    fill_all<<<cuda_grid(source->columns), CUDA_BLOCK, 0, stream>>>(*source, sums,
                                                                    cuda_qfinish_at(memory, source->columns));
    CUDA_LAUNCHED();
    return GRT_OK;
}
