/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormalization. Each channel becomes y = x * a + b; in training mode a and b come from the batch
 * itself. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif
#include "backends/cpu/convert.h"
#include "backends/cpu/cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct state {
    double epsilon, momentum;
    bool training;
} state;

typedef struct shape {
    int64_t batch, channels, inner;
} shape;

static grt_status create(const grt_kernel_node *node, void **out_state)
{
    state *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    s->epsilon = (double)grt_attr_float(node->desc, "epsilon", 1e-5f);
    s->momentum = (double)grt_attr_float(node->desc, "momentum", 0.9f);
    s->training = grt_attr_int(node->desc, "training_mode", 0) != 0;
    *out_state = s;
    return GRT_OK;
}

/* A vector has one channel. */
static grt_status reshape(grt_reshape *r)
{
    const grt_tensor *x = r->in[0];
    shape *sh = calloc(1, sizeof *sh);
    if (!sh)
        return grt_fail_memory(sizeof *sh);
    sh->batch = x->rank ? x->dims[0] : 1;
    sh->channels = x->rank > 1 ? x->dims[1] : 1;
    sh->inner = x->rank > 2 ? grt_dims_product(x->dims, 2, x->rank) : 1;
    for (int32_t i = 1; i < 5; i++)
        if (grt_tensor_elements(r->in[i]) != sh->channels) {
            int64_t channels = sh->channels;
            free(sh);
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "input %d has %lld elements, expected %lld, one per channel", i,
                               (long long)grt_tensor_elements(r->in[i]), (long long)channels);
        }
    r->shape = sh;
    r->workspace_bytes = (size_t)sh->channels * 2 * sizeof(double);
    return GRT_OK;
}

/* Elements begin.. of x as doubles; block has room for CONVERT_BLOCK. */
static void load(const grt_tensor *x, int64_t begin, int64_t n, double *block)
{
    size_t at = (size_t)begin * grt_dtype_size(x->dtype);
    cpu_convert(x->dtype, (const char *)x->data + at, GRT_DTYPE_DOUBLE, block, 0, n,
                (cpu_convert_options){0});
}

/* Sum over a channel of (x - shift)^power. */
static double channel_sum(const grt_tensor *x, const shape *sh, int64_t channel, double shift, int power)
{
    double block[CONVERT_BLOCK], sum = 0;
    for (int64_t n = 0; n < sh->batch; n++)
        for (int64_t i = 0; i < sh->inner; i += CONVERT_BLOCK) {
            int64_t count = sh->inner - i < CONVERT_BLOCK ? sh->inner - i : CONVERT_BLOCK;
            load(x, (n * sh->channels + channel) * sh->inner + i, count, block);
            for (int64_t k = 0; k < count; k++)
                sum += power == 1 ? block[k] - shift : (block[k] - shift) * (block[k] - shift);
        }
    return sum;
}

static void store(const grt_tensor *t, int64_t i, double x)
{
    cpu_convert(GRT_DTYPE_DOUBLE, &x, t->dtype, (char *)t->data + (size_t)i * grt_dtype_size(t->dtype), 0, 1,
                (cpu_convert_options){0});
}

/* Mean and variance of a channel, and what training hands on. */
static void channel_statistics(const grt_run *r, int64_t c, double *mean, double *var)
{
    const state *s = r->state;
    const shape *sh = r->shape;
    *mean = grt_tensor_double(r->in[3], c);
    *var = grt_tensor_double(r->in[4], c);
    if (!s->training)
        return;
    double count = (double)(sh->batch * sh->inner), old_mean = *mean, old_var = *var;
    *mean = channel_sum(r->in[0], sh, c, 0.0, 1) / count;
    *var = channel_sum(r->in[0], sh, c, *mean, 2) / count;
    if (r->n_out > 1 && r->out[1])
        store(r->out[1], c, old_mean * s->momentum + *mean * (1.0 - s->momentum));
    if (r->n_out > 2 && r->out[2])
        store(r->out[2], c, old_var * s->momentum + *var * (1.0 - s->momentum));
}

static void scale_row(const grt_tensor *x, const grt_tensor *y, int64_t begin, int64_t n, double a, double b)
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
        load(x, begin + i, count, block);
        for (int64_t k = 0; k < count; k++)
            block[k] = block[k] * a + b;
        cpu_convert(GRT_DTYPE_DOUBLE, block, y->dtype,
                    (char *)y->data + (size_t)(begin + i) * grt_dtype_size(y->dtype), 0, count,
                    (cpu_convert_options){0});
    }
}

static grt_status run(const grt_run *r)
{
    const state *s = r->state;
    const shape *sh = r->shape;
    double *a = r->workspace, *b = a + sh->channels;
    for (int64_t c = 0; c < sh->channels; c++) {
        double mean, var;
        channel_statistics(r, c, &mean, &var);
        a[c] = grt_tensor_double(r->in[1], c) / sqrt(var + s->epsilon);
        b[c] = grt_tensor_double(r->in[2], c) - mean * a[c];
    }
    int64_t rows = sh->batch * sh->channels;
#pragma omp parallel for num_threads(r->threads) if (rows * sh->inner >= CPU_GRAIN) schedule(static)
    for (int64_t row = 0; row < rows; row++)
        scale_row(r->in[0], r->out[0], row * sh->inner, sh->inner, a[row % sh->channels],
                  b[row % sh->channels]);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "BatchNormalization",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .create = create,
     .destroy = free,
     .reshape = reshape,
     .release_shape = free,
     .run = run},
};
CPU_KERNELS(batch_norm, rows);
