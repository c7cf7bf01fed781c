/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormalization. Each channel becomes y = x * a + b; in training mode a and b come from the batch
 * itself. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif
#include "backends/cpu/convert.h"
#include "backends/cpu/cpu.h"
#include "backends/shared/norm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static grt_status batch_norm_reshape(grt_reshape *r)
{
    grt_batch_norm *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    const grt_status status = grt_batch_norm_fit(r, s);
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    r->shape = s;
    r->workspace_bytes = (size_t)s->channels * 2 * sizeof(double);
    return GRT_OK;
}

/* Elements begin.. of x as doubles; block has room for CONVERT_BLOCK. */
static void batch_norm_load(const grt_tensor *x, int64_t begin, int64_t n, double *block)
{
    size_t at = (size_t)begin * grt_dtype_size(x->dtype);
    cpu_convert(x->dtype, (const char *)x->data + at, GRT_DTYPE_DOUBLE, block, 0, n,
                (cpu_convert_options){0});
}

/* Sum over a channel of (x - shift)^power. */
static double channel_sum(const grt_tensor *x, const grt_batch_norm *s, int64_t channel, double shift,
                          int power)
{
    double block[CONVERT_BLOCK], sum = 0;
    for (int64_t n = 0; n < s->batch; n++)
        for (int64_t i = 0; i < s->inner; i += CONVERT_BLOCK) {
            int64_t count = s->inner - i < CONVERT_BLOCK ? s->inner - i : CONVERT_BLOCK;
            batch_norm_load(x, (n * s->channels + channel) * s->inner + i, count, block);
            for (int64_t k = 0; k < count; k++)
                sum += power == 1 ? block[k] - shift : (block[k] - shift) * (block[k] - shift);
        }
    return sum;
}

static void batch_norm_store(const grt_tensor *t, int64_t i, double x)
{
    cpu_convert(GRT_DTYPE_DOUBLE, &x, t->dtype, (char *)t->data + (size_t)i * grt_dtype_size(t->dtype), 0, 1,
                (cpu_convert_options){0});
}

/* Mean and variance of a channel, and what training hands on. */
static void channel_statistics(const grt_run *r, int64_t c, double *mean, double *var)
{
    const grt_batch_norm *s = r->shape;
    *mean = grt_tensor_double(r->in[GRT_NORM_MEAN], c);
    *var = grt_tensor_double(r->in[GRT_NORM_VARIANCE], c);
    if (!s->training)
        return;
    double count = (double)(s->batch * s->inner), old_mean = *mean, old_var = *var;
    *mean = channel_sum(r->in[0], s, c, 0.0, 1) / count;
    *var = channel_sum(r->in[0], s, c, *mean, 2) / count;
    if (r->n_out > 1 && r->out[1])
        batch_norm_store(r->out[1], c, old_mean * s->momentum + *mean * (1.0 - s->momentum));
    if (r->n_out > 2 && r->out[2])
        batch_norm_store(r->out[2], c, old_var * s->momentum + *var * (1.0 - s->momentum));
}

static void batch_norm_scale_row(const grt_tensor *x, const grt_tensor *y, int64_t begin, int64_t n, double a,
                                 double b)
{
    if (x->dtype == GRT_DTYPE_FLOAT) {
        const float *in = (const float *)x->data + begin;
        float *out = (float *)y->data + begin, af = (float)a, bf = (float)b;
        for (int64_t i = 0; i < n; i++)
            out[i] = in[i] * af + bf;
        return;
    }
    double block[CONVERT_BLOCK];
    for (int64_t i = 0; i < n; i += CONVERT_BLOCK) {
        int64_t count = n - i < CONVERT_BLOCK ? n - i : CONVERT_BLOCK;
        batch_norm_load(x, begin + i, count, block);
        for (int64_t k = 0; k < count; k++)
            block[k] = block[k] * a + b;
        cpu_convert(GRT_DTYPE_DOUBLE, block, y->dtype,
                    (char *)y->data + (size_t)(begin + i) * grt_dtype_size(y->dtype), 0, count,
                    (cpu_convert_options){0});
    }
}

static grt_status batch_norm_run(const grt_run *r)
{
    const grt_batch_norm *s = r->shape;
    double *a = r->workspace, *b = a + s->channels;
    for (int64_t c = 0; c < s->channels; c++) {
        double mean, var;
        channel_statistics(r, c, &mean, &var);
        a[c] = grt_tensor_double(r->in[GRT_NORM_SCALE], c) / sqrt(var + s->epsilon);
        b[c] = grt_tensor_double(r->in[GRT_NORM_BIAS], c) - mean * a[c];
    }
    int64_t rows = s->batch * s->channels;
#pragma omp parallel for num_threads(r->threads) if (rows * s->inner >= CPU_GRAIN) schedule(static)
    for (int64_t row = 0; row < rows; row++)
        batch_norm_scale_row(r->in[0], r->out[0], row * s->inner, s->inner, a[row % s->channels],
                             b[row % s->channels]);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "BatchNormalization",
     .types = {CPU_FLOATS, CPU_FLOATS, CPU_FLOATS, CPU_FLOATS},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .reshape = batch_norm_reshape,
     .release_shape = free,
     .run = batch_norm_run},
};
CPU_KERNELS(batch_norm, rows);
