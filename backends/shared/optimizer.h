/* SPDX-License-Identifier: Apache-2.0 */
/* Adagrad, Adam, Momentum: one step of training for any number of tensors. Attributes, what inputs must be,
 * and the step of an element; all backends compute from these. Inputs are R (rate), T (steps so far), then n
 * each of values, gradients and one or two states; outputs are n values, then the states. */
#ifndef GRT_BACKENDS_SHARED_OPTIMIZER_H
#define GRT_BACKENDS_SHARED_OPTIMIZER_H

#include "backends/kernel.h"
#include "src/base/float.h"

#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum grt_optimizer_kind { GRT_ADAGRAD, GRT_ADAM, GRT_MOMENTUM } grt_optimizer_kind;

typedef struct grt_optimizer {
    grt_optimizer_kind kind;
    bool nesterov;
    double alpha, beta, epsilon, decay, norm, norm_post;
} grt_optimizer;

/* A kernel's create and reshape. The state is a grt_optimizer; free() releases it. */
grt_status grt_optimizer_create(const grt_kernel_node *node, void **out_state);
grt_status grt_optimizer_reshape(grt_reshape *reshape);

/* Tensors of one step: value, gradient and one or two states. */
static inline int32_t grt_optimizer_tensors(const grt_optimizer *optimizer)
{
    return optimizer->kind == GRT_ADAM ? 4 : 3;
}

/* Numbers of one run that all elements share. */
typedef struct grt_optimizer_now {
    double rate, beta;
} grt_optimizer_now;

GRT_INLINE grt_optimizer_now grt_optimizer_prepare(const grt_optimizer *o, double rate, double t)
{
    grt_optimizer_now now = {rate, o->beta};
    if (o->kind == GRT_ADAGRAD)
        now.rate = rate / (1 + t * o->decay);
    else if (o->kind == GRT_ADAM && t > 0) /* states start at zero: undo the bias */
        now.rate = rate * sqrt(1 - pow(o->beta, t)) / (1 - pow(o->alpha, t));
    else if (o->kind == GRT_MOMENTUM && !(t > 0))
        now.beta = 1;
    return now;
}

/* x: value; g: gradient; s, s2: states, updated in place. Returns the new value. */
GRT_INLINE double grt_optimizer_step(const grt_optimizer *o, grt_optimizer_now now, double x, double g,
                                     double *s, double *s2)
{
    g += o->norm * x;
    if (o->kind == GRT_ADAGRAD) {
        *s += g * g;
        return x - now.rate * g / (sqrt(*s) + o->epsilon);
    }
    if (o->kind == GRT_ADAM) {
        *s = o->alpha * *s + (1 - o->alpha) * g;
        *s2 = o->beta * *s2 + (1 - o->beta) * g * g;
        return (1 - o->norm_post) * (x - now.rate * *s / (sqrt(*s2) + o->epsilon));
    }
    *s = o->alpha * *s + now.beta * g;
    return x - now.rate * (o->nesterov ? g + o->alpha * *s : *s);
}

#ifdef __cplusplus
}
#endif
#endif
