/* SPDX-License-Identifier: Apache-2.0 */
/* Tree ensembles as kernels walk them, on the CPU and in device code. They are checked once, when a kernel is
 * created, so that walking needs no checks. */
#ifndef GRT_BACKENDS_SHARED_TREE_H
#define GRT_BACKENDS_SHARED_TREE_H

#include "backends/kernel.h"
#include "src/base/float.h"

#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum grt_tree_mode {
    GRT_TREE_LEQ,
    GRT_TREE_LT,
    GRT_TREE_GTE,
    GRT_TREE_GT,
    GRT_TREE_EQ,
    GRT_TREE_NEQ,
    GRT_TREE_MEMBER,
    GRT_TREE_N_MODES
} grt_tree_mode;
typedef enum grt_tree_aggregate {
    GRT_TREE_AVERAGE,
    GRT_TREE_SUM,
    GRT_TREE_MIN,
    GRT_TREE_MAX,
    GRT_TREE_N_AGGREGATES
} grt_tree_aggregate;
typedef enum grt_tree_transform {
    GRT_TREE_NONE,
    GRT_TREE_SOFTMAX,
    GRT_TREE_LOGISTIC,
    GRT_TREE_SOFTMAX_ZERO,
    GRT_TREE_PROBIT,
    GRT_TREE_N_TRANSFORMS
} grt_tree_transform;

typedef struct grt_tree_node {
    double split;
    int64_t feature, child[2]; /* child by outcome of the comparison: index of a node, or of a leaf */
    bool leaf[2];
    uint8_t mode;
    bool missing_true;              /* NaN takes the true branch */
    int64_t member_from, member_to; /* MEMBER: its set */
} grt_tree_node;

typedef struct grt_trees {
    grt_tree_node *nodes;
    double *weights, *members;                                            /* of leaves; of sets */
    const int64_t *roots, *targets;                                       /* targets: of leaves */
    int64_t n_nodes, n_leaves, n_members, n_targets, n_roots, n_features; /* n_features: wanted */
    grt_tree_aggregate aggregate;
    grt_tree_transform transform;
} grt_trees;

/* From the attributes, which live as long as the node. Release in any case. */
grt_status grt_trees_read(const grt_kernel_node *node, grt_trees *out_trees);
void grt_trees_release(grt_trees *trees);

GRT_INLINE bool grt_tree_compare(const grt_tree_node *node, const double *members, double x)
{
    switch ((grt_tree_mode)node->mode) {
    case GRT_TREE_LEQ:
        return x <= node->split;
    case GRT_TREE_LT:
        return x < node->split;
    case GRT_TREE_GTE:
        return x >= node->split;
    case GRT_TREE_GT:
        return x > node->split;
    case GRT_TREE_EQ:
        return x == node->split;
    case GRT_TREE_NEQ:
        return x != node->split;
    default:
        for (int64_t i = node->member_from; i < node->member_to; i++)
            if (members[i] == x)
                return true;
        return false;
    }
}

/* Which child a value leads to. */
GRT_INLINE int grt_tree_side(const grt_tree_node *node, const double *members, double x)
{
    return (x != x && node->missing_true) || grt_tree_compare(node, members, x);
}

/* Before the first tree; `largest` is the greatest number of the output's type. */
GRT_INLINE double grt_tree_start(grt_tree_aggregate aggregate, double largest)
{
    return aggregate == GRT_TREE_MIN ? largest : aggregate == GRT_TREE_MAX ? -largest : 0;
}

GRT_INLINE double grt_tree_add(grt_tree_aggregate aggregate, int64_t n_roots, double score, double weight)
{
    if (aggregate == GRT_TREE_MIN)
        return fmin(score, weight);
    if (aggregate == GRT_TREE_MAX)
        return fmax(score, weight);
    return score + (aggregate == GRT_TREE_AVERAGE ? weight / (double)n_roots : weight);
}

GRT_INLINE void grt_tree_softmax(double *scores, int64_t n, bool keep_zeros)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        max = fmax(max, scores[i]);
    for (int64_t i = 0; i < n; i++) {
        scores[i] = keep_zeros && scores[i] == 0 ? 0 : exp(scores[i] - max);
        sum += scores[i];
    }
    for (int64_t i = 0; sum > 0 && i < n; i++)
        scores[i] /= sum;
}

/* Inverse of the normal distribution function, by Newton steps from a rational start (Winitzki's inverse
 * error function). */
GRT_INLINE double grt_tree_probit(double p)
{
    if (!(p > 0 && p < 1))
        return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
    double y = 2 * p - 1, l = log1p(-y * y), t = 2 / (M_PI * 0.147) + l / 2;
    double x = copysign(sqrt(sqrt(t * t - l / 0.147) - t), y) * M_SQRT2;
    for (int i = 0; i < 3; i++)
        x -= (0.5 * erfc(-x / M_SQRT2) - p) / (exp(-x * x / 2) / sqrt(2 * M_PI));
    return x;
}

GRT_INLINE void grt_tree_finish(grt_tree_transform transform, double *scores, int64_t n)
{
    if (transform == GRT_TREE_SOFTMAX || transform == GRT_TREE_SOFTMAX_ZERO)
        grt_tree_softmax(scores, n, transform == GRT_TREE_SOFTMAX_ZERO);
    for (int64_t i = 0; i < n && transform == GRT_TREE_LOGISTIC; i++)
        scores[i] = 1 / (1 + exp(-scores[i]));
    for (int64_t i = 0; i < n && transform == GRT_TREE_PROBIT; i++)
        scores[i] = grt_tree_probit(scores[i]);
}

/* The greatest number of an input's type. */
static inline double grt_tree_largest(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_DOUBLE    ? 0x1.fffffffffffffp1023
           : dtype == GRT_DTYPE_FLOAT16 ? 65504
                                        : 0x1.fffffep127;
}

#ifdef __cplusplus
}
#endif
#endif
