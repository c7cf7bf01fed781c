/* GroupNormalization and InstanceNormalization: statistics per group of channels, scale and bias per channel.
 */
#include "backends/cpu/cpu.h"
#include "backends/cpu/element.h"
#include "backends/cpu/norm.h"

#include <math.h>
#include <stdlib.h>

typedef struct group_shape {
    int64_t rows, groups, channels, pixels; /* channels: per group */
    double epsilon;
    bool plain;
} group_shape;

enum { SCALE = 1, BIAS = 2 };

static grt_status group_reshape(grt_reshape *r)
{
    const grt_tensor *x = r->in[0];
    const int64_t channels = x->dims[1];
    char found[GRT_TYPE_TEXT_SIZE];
    for (int32_t i = SCALE; i <= BIAS; i++)
        if (grt_tensor_elements(r->in[i]) != channels)
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "input %d is %s; expected %lld elements, one per channel", i,
                               grt_tensor_text(r->in[i], found), (long long)channels);
    group_shape *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    s->groups =
        grt_op_is(r->desc, "", "GroupNormalization") ? grt_attr_int(r->desc, "num_groups", 1) : channels;
    s->channels = s->groups > 0 ? channels / s->groups : 0;
    s->rows = x->dims[0] * s->groups;
    s->pixels = grt_dims_product(x->dims, 2, x->rank);
    s->epsilon = (double)grt_attr_float(r->desc, "epsilon", 1e-5f);
    s->plain = x->dtype == GRT_DTYPE_FLOAT && r->in[SCALE]->dtype == GRT_DTYPE_FLOAT &&
               r->in[BIAS]->dtype == GRT_DTYPE_FLOAT;
    r->shape = s;
    return GRT_OK;
}

static void run_row(const grt_run *r, const group_shape *s, int64_t row)
{
    const int64_t n = s->channels * s->pixels, first = row % s->groups * s->channels;
    const float *x = (const float *)r->in[0]->data + row * n, *scale = r->in[SCALE]->data,
                *bias = r->in[BIAS]->data;
    float *y = (float *)r->out[0]->data + row * n, mean, variance;
    cpu_norm_stats(x, n, false, &mean, &variance);
    const float factor = 1.0f / sqrtf(variance + (float)s->epsilon);
    for (int64_t c = 0; c < s->channels; c++) {
        const float a = factor * scale[first + c];
        cpu_norm_affine(x + c * s->pixels, y + c * s->pixels, s->pixels, mean, a, bias[first + c]);
    }
}

static void run_row_exact(const grt_run *r, const group_shape *s, int64_t row)
{
    const int64_t n = s->channels * s->pixels, first = row % s->groups * s->channels;
    const grt_tensor *x = r->in[0];
    double mean = 0.0, squares = 0.0;
    for (int64_t i = 0; i < n; i++)
        mean += cpu_element_get(x, row * n + i) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double d = cpu_element_get(x, row * n + i) - mean;
        squares += d * d;
    }
    const double factor = 1.0 / sqrt(squares / (double)n + s->epsilon);
    for (int64_t i = 0; i < n; i++) {
        const int64_t channel = first + i / s->pixels;
        const double v = (cpu_element_get(x, row * n + i) - mean) * factor;
        cpu_element_put(r->out[0], row * n + i,
                        v * cpu_element_get(r->in[SCALE], channel) + cpu_element_get(r->in[BIAS], channel));
    }
}

static grt_status group_run(const grt_run *r)
{
    const group_shape *s = r->shape;
#pragma omp parallel for num_threads(r->threads) if (s->rows * s->channels * s->pixels > CPU_GRAIN)
    for (int64_t row = 0; row < s->rows; row++)
        if (s->plain)
            run_row(r, s, row);
        else
            run_row_exact(r, s, row);
    return GRT_OK;
}

#define ROW(name)                                                                            \
    {                                                                                        \
        .domain = "", .op = name, .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS}, \
        .reshape = group_reshape, .release_shape = free, .run = group_run                    \
    }

static const grt_kernel_row rows[] = {ROW("GroupNormalization"), ROW("InstanceNormalization")};
CPU_KERNELS(group_norm, rows);
