/* SPDX-License-Identifier: Apache-2.0 */
/* CoupleProbabilities: a classifier's probabilities of its classes from those of each pair of classes, by the
 * iteration of Wu, Lin and Weng (2004), method 2. It stops early by definition: every runtime's results are
 * those of its first iterate within the bound, so the bound, the start and the order of the updates are
 * fixed. */
#include "backends/cpu/cpu.h"

#include "src/base/checked.h"

#include <math.h>
#include <string.h>

enum { MOST_ROUNDS = 100 };

typedef struct coupling {
    int64_t classes;
    float *r;       /* [classes, classes]: r[i, j] is the probability of i, given i or j */
    float *q;       /* the same: the quadratic form that is minimised */
    float *product; /* [classes]: q times p */
} coupling;

static size_t coupling_floats(int64_t classes)
{
    return (size_t)(classes * (2 * classes + 1));
}

static void set_pairs(coupling *c, const float *pairs)
{
    const int64_t n = c->classes;
    for (int64_t i = 0; i < n; i++) {
        c->r[i * n + i] = 0;
        for (int64_t j = i + 1; j < n; j++, pairs++) {
            c->r[i * n + j] = *pairs;
            c->r[j * n + i] = 1 - *pairs;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        float own = 0;
        for (int64_t j = 0; j < n; j++) {
            own += c->r[j * n + i] * c->r[j * n + i];
            c->q[i * n + j] = -c->r[j * n + i] * c->r[i * n + j];
        }
        c->q[i * n + i] = own;
    }
}

/* How far p is from the optimum, where all elements of q p equal p q p, which goes to *out_form. */
static float refresh(coupling *c, const float *p, float *out_form)
{
    const int64_t n = c->classes;
    float form = 0, error = 0;
    for (int64_t i = 0; i < n; i++) {
        c->product[i] = 0;
        for (int64_t j = 0; j < n; j++)
            c->product[i] += c->q[i * n + j] * p[j];
        form += p[i] * c->product[i];
    }
    for (int64_t i = 0; i < n; i++)
        error = fmaxf(error, fabsf(c->product[i] - form));
    *out_form = form;
    return error;
}

static void couple(coupling *c, const float *pairs, float *p)
{
    const int64_t n = c->classes;
    const float bound = 0.005f / (float)n;
    set_pairs(c, pairs);
    for (int64_t i = 0; i < n; i++)
        p[i] = 1 / (float)n;
    for (int round = 0; round < MOST_ROUNDS; round++) {
        float form;
        if (refresh(c, p, &form) < bound)
            return;
        for (int64_t i = 0; i < n; i++) {
            const float step = (form - c->product[i]) / c->q[i * n + i], sum = 1 + step;
            p[i] += step;
            form = (form + step * (step * c->q[i * n + i] + 2 * c->product[i])) / sum / sum;
            for (int64_t j = 0; j < n; j++) {
                c->product[j] = (c->product[j] + step * c->q[i * n + j]) / sum;
                p[j] /= sum;
            }
        }
    }
}

static grt_status reshape_couple(grt_reshape *reshape)
{
    const int64_t classes = grt_attr_int(reshape->desc, "classes", 0);
    size_t bytes;
    if (reshape->in[0]->dims[1] != classes * (classes - 1) / 2)
        return grt_fail_op(reshape->desc, GRT_STATUS_INTERNAL, "%lld pairs do not make %lld classes",
                           (long long)reshape->in[0]->dims[1], (long long)classes);
    if (!grt_mul_size(coupling_floats(classes), sizeof(float), &bytes))
        return grt_fail_memory(SIZE_MAX);
    reshape->workspace_bytes = bytes;
    return GRT_OK;
}

static grt_status run_couple(const grt_run *run)
{
    const int64_t rows = run->in[0]->dims[0], pairs = run->in[0]->dims[1], n = run->out[0]->dims[1];
    coupling c = {.classes = n, .r = run->workspace};
    c.q = c.r + n * n;
    c.product = c.q + n * n;
    for (int64_t row = 0; row < rows; row++)
        couple(&c, (const float *)run->in[0]->data + row * pairs, (float *)run->out[0]->data + row * n);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "CoupleProbabilities",
     .types = {GRT_BIT(FLOAT)},
     .reshape = reshape_couple,
     .run = run_couple},
};
CPU_KERNELS(ml_svm, rows);
