/* SPDX-License-Identifier: Apache-2.0 */
/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss, straight from their definitions: no log-softmax
 * tensor is made unless it is asked for. Sums over targets are in double and in index order, so results do
 * not depend on the number of threads; exponentials of float32 are taken and added up by vectors. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/dispatch.h"
#include "backends/cpu/pointwise_loops.h"
#include "backends/cpu/rows.h"
#include "src/base/checked.h"
#include "src/base/element.h"
#include "src/base/int64.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum reduction { REDUCE_NONE, REDUCE_MEAN, REDUCE_SUM } reduction;

typedef struct loss_state {
    reduction reduction;
    bool softmax, ignores;
    int64_t ignore;
} loss_state;

static grt_status loss_create(const grt_kernel_node *node, void **out_state)
{
    loss_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    const char *name = grt_attr_string(node->desc, "reduction", "mean");
    state->reduction = !strcmp(name, "none") ? REDUCE_NONE : !strcmp(name, "sum") ? REDUCE_SUM : REDUCE_MEAN;
    state->softmax = grt_op_is(node->desc, "", "SoftmaxCrossEntropyLoss");
    state->ignores = grt_attr_find(node->desc, "ignore_index") != NULL;
    state->ignore = grt_attr_int(node->desc, "ignore_index", 0);
    *out_state = state;
    return GRT_OK;
}

/* Input [N, C, d1...], target [N, d1...], weight [C]: dims that were symbols while compiling are known only
 * now. */
static bool loss_fits(const grt_tensor *x, const grt_tensor *target, const grt_tensor *weights)
{
    bool same = x->rank >= 2 && target->rank == x->rank - 1;
    for (int32_t i = 0; same && i < target->rank; i++)
        same = target->dims[i] == x->dims[i ? i + 1 : 0];
    return same && (!weights || (weights->rank == 1 && weights->dims[0] == x->dims[1]));
}

/* Loss and weight of each target, to be summed. */
static grt_status loss_reshape(grt_reshape *reshape)
{
    size_t n;
    if (!loss_fits(reshape->in[0], reshape->in[1], reshape->n_in > 2 ? reshape->in[2] : NULL)) {
        char x[GRT_TYPE_TEXT_SIZE], target[GRT_TYPE_TEXT_SIZE];
        return grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "input %s and target %s do not fit: N x C x d1 ... and N x d1 ..., with C weights",
                           grt_tensor_text(reshape->in[0], x), grt_tensor_text(reshape->in[1], target));
    }
    if (!grt_mul_size(grt_tensor_bytes(reshape->in[1]), 4,
                      &n)) /* targets have 4 bytes or more; two doubles each */
        return grt_fail_memory(SIZE_MAX);
    reshape->workspace_bytes = n;
    return GRT_OK;
}

/* log(sum(exp(x))) over the classes of one target. */
static double log_sum_exp(const grt_tensor *x, int64_t at, int64_t classes, int64_t stride)
{
    double max = -INFINITY, sum = 0;
    for (int64_t c = 0; c < classes; c++)
        max = fmax(max, grt_element_get(x, at + c * stride));
    if (isinf(max))
        return max;
    for (int64_t c = 0; c < classes; c++)
        sum += exp(grt_element_get(x, at + c * stride) - max);
    return max + log(sum);
}

enum { LOSS_BLOCK = 512 };

CPU_BODY subtract_max_body(const float *x, int64_t n, float max, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] - max;
}
CPU_DISPATCH(subtract_max, (const float *x, int64_t n, float max, float *y), (x, n, max, y))

static void exponentials(float *v, int64_t n)
{
    const void *const in[] = {v};
    const float none[2] = {0};
    cpu_pw_f32()->typed[PW_Exp](n, v, in, (const uint8_t[]){0}, none);
}

/* The same, of classes that are neighbours. */
static double log_sum_exp_row(const float *x, int64_t classes)
{
    double max, sum = 0, part;
    float e[LOSS_BLOCK];
    cpu_rows_best()->fold(CPU_FOLD_LARGEST, x, 1, classes, &max);
    for (int64_t c = 0; c < classes && !isinf(max); c += LOSS_BLOCK) {
        const int64_t n = grt_min64(LOSS_BLOCK, classes - c);
        subtract_max(x + c, n, (float)max, e);
        exponentials(e, n);
        cpu_rows_best()->fold(CPU_FOLD_SUM, e, 1, n, &part);
        sum += part;
    }
    return isinf(max) ? max : max + log(sum);
}

CPU_BODY raise_maxima_body(const float *x, int64_t n, float *max)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        max[i] = x[i] > max[i] || x[i] != x[i] ? x[i] : max[i];
}
CPU_DISPATCH(raise_maxima, (const float *x, int64_t n, float *max), (x, n, max))

CPU_BODY subtract_maxima_body(const float *x, int64_t n, const float *max, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] - max[i];
}
CPU_DISPATCH(subtract_maxima, (const float *x, int64_t n, const float *max, float *y), (x, n, max, y))

CPU_BODY add_doubles_body(const float *x, int64_t n, double *sum)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        sum[i] += (double)x[i];
}
CPU_DISPATCH(add_doubles, (const float *x, int64_t n, double *sum), (x, n, sum))

/* The same of n targets that are neighbours, n <= LOSS_BLOCK; their classes are `inner` values apart. */
static void log_sum_exp_block(const float *x, int64_t classes, int64_t inner, int64_t n, double *out)
{
    float max[LOSS_BLOCK], e[LOSS_BLOCK];
    for (int64_t i = 0; i < n; i++) {
        max[i] = -INFINITY;
        out[i] = 0;
    }
    for (int64_t c = 0; c < classes; c++)
        raise_maxima(x + c * inner, n, max);
    for (int64_t c = 0; c < classes; c++) {
        subtract_maxima(x + c * inner, n, max, e);
        exponentials(e, n);
        add_doubles(e, n, out);
    }
    for (int64_t i = 0; i < n; i++)
        out[i] = isinf(max[i]) ? (double)max[i] : (double)max[i] + log(out[i]);
}

/* Of all targets of float32. */
static void log_sum_exps(const grt_tensor *x, int64_t images, int64_t inner, int threads, double *out)
{
    const int64_t classes = x->dims[1], block = grt_min64(LOSS_BLOCK, inner),
                  blocks = inner > 0 ? (inner + block - 1) / block : 0;
    const float *data = x->data;
    const bool many = images * classes * inner > CPU_GRAIN;
#pragma omp parallel for num_threads(threads) if (many) schedule(static)
    for (int64_t t = 0; t < images * blocks; t++) {
        const int64_t image = t / blocks, first = t % blocks * block;
        const float *from = data + image * classes * inner + first;
        if (inner == 1 && classes > 0)
            out[image] = log_sum_exp_row(from, classes);
        else
            log_sum_exp_block(from, classes, inner, grt_min64(block, inner - first),
                              out + image * inner + first);
    }
}

static grt_status loss_run(const grt_run *run)
{
    const loss_state *state = run->state;
    const grt_tensor *x = run->in[0], *target = run->in[1], *weights = run->n_in > 2 ? run->in[2] : NULL;
    grt_tensor *log_prob = run->n_out > 1 ? run->out[1] : NULL;
    int64_t classes = x->dims[1], inner = grt_dims_product(x->dims, 2, x->rank),
            n = grt_tensor_elements(target);
    double *loss = run->workspace, *weight = loss + n;
    int64_t bad = INT64_MAX;
    const bool floats = state->softmax && x->dtype == GRT_DTYPE_FLOAT;
    if (floats)
        log_sum_exps(x, x->dims[0], inner, run->threads, loss);
#pragma omp parallel for num_threads(run->threads) if (n * classes > CPU_GRAIN) reduction(min : bad)
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i / inner * classes * inner + i % inner, t = grt_tensor_int(target, i);
        double lse = floats ? loss[i] : state->softmax ? log_sum_exp(x, at, classes, inner) : 0;
        for (int64_t c = 0; log_prob && c < classes; c++)
            grt_element_put(log_prob, at + c * inner, grt_element_get(x, at + c * inner) - lse);
        loss[i] = weight[i] = 0;
        if (state->ignores && t == state->ignore)
            continue;
        if (t < 0 || t >= classes) {
            bad = i < bad ? i : bad;
            continue;
        }
        weight[i] = weights ? grt_element_get(weights, t) : 1;
        loss[i] = weight[i] * (lse - grt_element_get(x, at + t * inner));
    }
    if (bad < n)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "target %lld is class %lld; there are %lld classes, numbered from 0 (ignore_index "
                           "excepts one number)",
                           (long long)bad, (long long)grt_tensor_int(target, bad), (long long)classes);
    double sum = 0, total = 0;
    for (int64_t i = 0; i < n; i++) {
        if (state->reduction == REDUCE_NONE)
            grt_element_put(run->out[0], i, loss[i]);
        sum += loss[i];
        total += weight[i];
    }
    if (state->reduction != REDUCE_NONE)
        grt_element_put(run->out[0], 0, state->reduction == REDUCE_MEAN ? sum / total : sum);
    return GRT_OK;
}

#define TYPES                                                           \
    {                                                                   \
        GRT_SET_FLOATS, GRT_BIT(INT32) | GRT_BIT(INT64), GRT_SET_FLOATS \
    }
static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "NegativeLogLikelihoodLoss",
     .types = TYPES,
     .create = loss_create,
     .destroy = free,
     .reshape = loss_reshape,
     .run = loss_run},
    {.domain = "",
     .op = "SoftmaxCrossEntropyLoss",
     .types = TYPES,
     .create = loss_create,
     .destroy = free,
     .reshape = loss_reshape,
     .run = loss_run},
};
CPU_KERNELS(loss, rows);
