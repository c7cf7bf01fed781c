/* SPDX-License-Identifier: Apache-2.0 */
/* ConvInteger, MatMulInteger, QLinearConv, QLinearMatMul: 8-bit numbers less their zero points, summed in
 * int32 that wraps. A thread per output element. */
#include "backends/cuda/each.cuh"
#include "backends/shared/window.h"

namespace
{

/* Positions of inputs by role; 0: the op has none (input 0 is always the data). */
struct places {
    int32_t scale_a, zero_a, b, scale_b, zero_b, scale_y, zero_y, bias;
};
const places integer_places = {0, 2, 1, 0, 3, 0, 0, 0}, qlinear_places = {1, 2, 3, 4, 5, 6, 7, 8};

const places &places_of(const grt_op_desc *desc)
{
    return !strncmp(desc->op, "QLinear", 7) ? qlinear_places : integer_places;
}

const grt_tensor *at_place(const grt_tensor *const *in, int32_t n_in, int32_t i)
{
    return i && i < n_in ? in[i] : NULL;
}

/* A zero point or scale: one for all, or one each; per matrix or per row of all matrices. */
struct levels {
    cuda_any t;
    int64_t n;

    __device__ double get(int64_t per_matrix, int64_t matrix, int64_t i) const
    {
        return n == 1 ? t.get(0) : t.get(n > per_matrix ? matrix * per_matrix + i : i);
    }
    __device__ int32_t zero(int64_t per_matrix, int64_t matrix, int64_t i) const
    {
        return t ? (int32_t)get(per_matrix, matrix, i) : 0;
    }
};

levels levels_of(const grt_run *r, int32_t i)
{
    const grt_tensor *t = at_place(r->in, r->n_in, i);
    return {cuda_any_of(t), t ? grt_tensor_elements(t) : 0};
}

bool counts(const grt_reshape *r, int32_t i, int64_t n, int64_t or_n)
{
    const grt_tensor *t = at_place(r->in, r->n_in, i);
    int64_t found = t ? grt_tensor_elements(t) : 1;
    return found == 1 || found == n || found == or_n;
}

grt_status misfit(const grt_reshape *r)
{
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "shapes do not fit: matrices or channels must agree, and scales and zero points be "
                       "one number, one per row "
                       "(left matrix, output) or one per column or output channel (right matrix, weight)");
}

__device__ int32_t load(const cuda_any &t, int64_t i)
{
    return t.dtype == GRT_DTYPE_INT8 ? ((const int8_t *)t.data)[i] : ((const uint8_t *)t.data)[i];
}

/* ---- convolutions ---- */

struct conv_shape {
    cpu_window w;
    int64_t groups, in_channels, out_channels; /* in_channels: per group */
};

grt_status reshape_conv(grt_reshape *r)
{
    const places &at = places_of(r->desc);
    const grt_tensor *x = r->in[0], *w = r->in[at.b], *y = r->out[0],
                     *bias = at_place(r->in, r->n_in, at.bias);
    int64_t groups = grt_attr_int(r->desc, "group", 1);
    if (x->rank < 3 || w->rank != x->rank || groups < 1 || x->dims[1] != w->dims[1] * groups ||
        w->dims[0] % groups || y->rank != x->rank || y->dims[1] != w->dims[0] ||
        !counts(r, at.zero_a, 1, 1) || !counts(r, at.scale_a, 1, 1) || !counts(r, at.zero_b, w->dims[0], 1) ||
        !counts(r, at.scale_b, w->dims[0], 1) || !counts(r, at.zero_y, 1, 1) ||
        !counts(r, at.scale_y, 1, 1) || (bias && grt_tensor_elements(bias) != w->dims[0]))
        return misfit(r);
    conv_shape *sh;
    GRT_TRY(cuda_state(&sh));
    cpu_window_read(r->desc, x->rank - 2, x->dims + 2, y->dims + 2, w->dims + 2, false, &sh->w);
    sh->groups = groups;
    sh->in_channels = w->dims[1];
    sh->out_channels = w->dims[0];
    r->shape = sh;
    return GRT_OK;
}

grt_status run_conv(const grt_run *r)
{
    const places at = places_of(r->desc);
    const conv_shape s = *(const conv_shape *)r->shape;
    const cuda_any x = cuda_any_in(r, 0), weight = cuda_any_in(r, at.b), y = cuda_any_out(r, 0);
    const cuda_any bias = at.bias ? cuda_any_in(r, at.bias) : cuda_any_of(NULL);
    const levels za = levels_of(r, at.zero_a), zb = levels_of(r, at.zero_b), zy = levels_of(r, at.zero_y);
    const levels sa = levels_of(r, at.scale_a), sb = levels_of(r, at.scale_b), sy = levels_of(r, at.scale_y);
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        const cpu_window &w = s.w;
        int64_t place = i % w.out_pixels, channel = i / w.out_pixels % s.out_channels,
                batch = i / w.out_pixels / s.out_channels;
        int64_t first = (batch * s.groups + channel / (s.out_channels / s.groups)) * s.in_channels;
        int32_t x_zero = za.zero(1, 0, 0), w_zero = zb.zero(s.out_channels, 0, channel);
        uint32_t sum = 0;
        for (int64_t tap = 0; tap < w.taps; tap++) {
            int64_t rest = tap, left = place, from = 0, scale = 1;
            bool inside = true;
            for (int32_t k = w.spatial - 1; k >= 0 && inside; k--) {
                int64_t p = left % w.out[k] * w.stride[k] - w.begin[k] + rest % w.kernel[k] * w.dilation[k];
                left /= w.out[k];
                rest /= w.kernel[k];
                inside = p >= 0 && p < w.in[k];
                from += p * scale;
                scale *= w.in[k];
            }
            for (int64_t c = 0; inside && c < s.in_channels; c++)
                sum += (uint32_t)(load(x, (first + c) * w.in_pixels + from) - x_zero) *
                       (uint32_t)(load(weight, (channel * s.in_channels + c) * w.taps + tap) - w_zero);
        }
        if (!sy.t) {
            ((int32_t *)y.data)[i] = (int32_t)sum;
            return;
        }
        double scale = sa.get(1, 0, 0) * sb.get(s.out_channels, 0, channel) / sy.get(1, 0, 0);
        int64_t add = bias ? bias.whole(channel) : 0;
        y.put(i, rint((double)((int32_t)sum + add) * scale) + zy.zero(1, 0, 0));
    });
}

/* ---- matrix products ---- */

struct matrix_shape {
    int64_t m, n, k, batch;
    int32_t lead;                                                 /* leading dims of the output */
    int64_t dims[GRT_MAX_RANK], a[GRT_MAX_RANK], b[GRT_MAX_RANK]; /* strides in matrices */
};

bool fit(const grt_reshape *r, const places &at, matrix_shape *s)
{
    const grt_tensor *a = r->in[0], *b = r->in[at.b];
    if (a->rank < 1 || b->rank < 1)
        return false;
    s->m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    s->k = a->dims[a->rank - 1];
    s->n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    int32_t lead_a = a->rank > 1 ? a->rank - 2 : 0, lead_b = b->rank > 1 ? b->rank - 2 : 0;
    if (b->dims[b->rank > 1 ? b->rank - 2 : 0] != s->k ||
        !grt_dims_broadcast(a->dims, lead_a, b->dims, lead_b, s->dims, &s->lead))
        return false;
    grt_broadcast_strides(a->dims, lead_a, s->lead, s->a);
    grt_broadcast_strides(b->dims, lead_b, s->lead, s->b);
    s->batch = grt_dims_product(s->dims, 0, s->lead);
    int64_t rows = grt_dims_product(a->dims, 0, lead_a) * s->m,
            columns = grt_dims_product(b->dims, 0, lead_b) * s->n;
    return counts(r, at.zero_a, s->m, rows) && counts(r, at.scale_a, s->m, rows) &&
           counts(r, at.zero_b, s->n, columns) && counts(r, at.scale_b, s->n, columns) &&
           counts(r, at.zero_y, s->m, s->batch * s->m) && counts(r, at.scale_y, s->m, s->batch * s->m) &&
           grt_tensor_elements(r->out[0]) == s->batch * s->m * s->n;
}

grt_status reshape_matrix(grt_reshape *r)
{
    matrix_shape *s;
    GRT_TRY(cuda_state(&s));
    if (!fit(r, places_of(r->desc), s)) {
        free(s);
        return misfit(r);
    }
    r->shape = s;
    return GRT_OK;
}

grt_status run_matrix(const grt_run *r)
{
    const places at = places_of(r->desc);
    const matrix_shape s = *(const matrix_shape *)r->shape;
    const cuda_any a = cuda_any_in(r, 0), b = cuda_any_in(r, at.b), y = cuda_any_out(r, 0);
    const levels za = levels_of(r, at.zero_a), zb = levels_of(r, at.zero_b), zy = levels_of(r, at.zero_y);
    const levels sa = levels_of(r, at.scale_a), sb = levels_of(r, at.scale_b), sy = levels_of(r, at.scale_y);
    return cuda_each(r, s.batch * s.m * s.n, [=] __device__(int64_t i) {
        int64_t j = i % s.n, row = i / s.n % s.m, item = i / s.n / s.m, rest = item, a_item = 0, b_item = 0;
        for (int32_t k = s.lead - 1; k >= 0; k--) {
            a_item += rest % s.dims[k] * s.a[k];
            b_item += rest % s.dims[k] * s.b[k];
            rest /= s.dims[k];
        }
        int32_t a_zero = za.zero(s.m, a_item, row), b_zero = zb.zero(s.n, b_item, j);
        uint32_t sum = 0;
        for (int64_t k = 0; k < s.k; k++)
            sum += (uint32_t)(load(a, (a_item * s.m + row) * s.k + k) - a_zero) *
                   (uint32_t)(load(b, (b_item * s.k + k) * s.n + j) - b_zero);
        if (!sy.t) {
            ((int32_t *)y.data)[i] = (int32_t)sum;
            return;
        }
        double scale = sa.get(s.m, a_item, row) / sy.get(s.m, item, row);
        y.put(i, rint((double)(int32_t)sum * scale * sb.get(s.n, b_item, j)) + zy.zero(s.m, item, row));
    });
}

#define BYTES  (GRT_BIT(INT8) | GRT_BIT(UINT8))
#define SCALES (GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16))

/* Inputs beyond the fourth are not covered by a row's types. */
bool supports_qlinear(const grt_kernel_node *node, grt_text *why)
{
    static const grt_dtype_set want[] = {BYTES, SCALES, BYTES, BYTES,         SCALES,
                                         BYTES, SCALES, BYTES, GRT_BIT(INT32)};
    for (int32_t i = 0; i < node->n_in && i < 9; i++)
        if (grt_node_has(node, i) && !grt_dtype_in(node->in[i].dtype, want[i])) {
            if (why)
                grt_text_add(why,
                             "input %d is %s; supported are int8 and uint8 data, zero points of these types, "
                             "float scales",
                             i, grt_dtype_name(node->in[i].dtype));
            return false;
        }
    return true;
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "ConvInteger",
     .types = {BYTES, BYTES, BYTES, BYTES},
     .reshape = reshape_conv,
     .release_shape = free,
     .run = run_conv},
    {.domain = "",
     .op = "MatMulInteger",
     .types = {BYTES, BYTES, BYTES, BYTES},
     .reshape = reshape_matrix,
     .release_shape = free,
     .run = run_matrix},
    {.domain = "",
     .op = "QLinearConv",
     .supports = supports_qlinear,
     .reshape = reshape_conv,
     .release_shape = free,
     .run = run_conv},
    {.domain = "",
     .op = "QLinearMatMul",
     .supports = supports_qlinear,
     .reshape = reshape_matrix,
     .release_shape = free,
     .run = run_matrix},
};

} // namespace
CUDA_KERNELS(integer, rows);
