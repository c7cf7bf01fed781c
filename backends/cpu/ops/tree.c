/* TreeEnsemble: every sample walks down every tree. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/element.h"
#include "backends/cpu/threads.h"
#include "backends/tree.h"

#include <stdlib.h>

static void tree_destroy(void *pointer)
{
    grt_trees_release(pointer);
    free(pointer);
}

static grt_status tree_create(const grt_kernel_node *node, void **out_state)
{
    grt_trees *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    grt_status status = grt_trees_read(node, state);
    if (status != GRT_OK) {
        tree_destroy(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

static grt_status tree_reshape(grt_reshape *reshape)
{
    const grt_trees *state = reshape->state;
    const grt_tensor *x = reshape->in[0];
    if (x->rank != 2 || x->dims[1] < state->n_features)
        return grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input must be samples x features with %lld features or more",
                           (long long)state->n_features);
    reshape->workspace_bytes = (size_t)state->n_targets * sizeof(double) * (size_t)reshape->threads;
    return GRT_OK;
}

static int64_t find_leaf(const grt_trees *state, int64_t root, const grt_tensor *x, int64_t row)
{
    for (int64_t at = root;;) {
        const grt_tree_node *node = &state->nodes[at];
        const int side =
            grt_tree_side(node, state->members, cpu_element_get(x, row * x->dims[1] + node->feature));
        at = node->child[side];
        if (node->leaf[side])
            return at;
    }
}

static void score_row(const grt_run *run, int64_t row, double *scores)
{
    const grt_trees *state = run->state;
    const double start = grt_tree_start(state->aggregate, grt_tree_largest(run->in[0]->dtype));
    for (int64_t i = 0; i < state->n_targets; i++)
        scores[i] = start;
    for (int64_t r = 0; r < state->n_roots; r++) {
        const int64_t leaf = find_leaf(state, state->roots[r], run->in[0], row);
        double *score = &scores[state->targets[leaf]];
        *score = grt_tree_add(state->aggregate, state->n_roots, *score, state->weights[leaf]);
    }
    grt_tree_finish(state->transform, scores, state->n_targets);
}

static grt_status tree_run(const grt_run *run)
{
    const grt_trees *state = run->state;
    int64_t rows = run->in[0]->dims[0], n = state->n_targets;
#pragma omp parallel for num_threads(run->threads) if (rows * state->n_roots > CPU_GRAIN / 32)
    for (int64_t row = 0; row < rows; row++) {
        double *scores = (double *)run->workspace + cpu_thread() * n;
        score_row(run, row, scores);
        for (int64_t i = 0; i < n; i++)
            cpu_element_put(run->out[0], row * n + i, scores[i]);
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "ai.onnx.ml",
     .op = "TreeEnsemble",
     .types = {GRT_BIT(FLOAT) | GRT_BIT(DOUBLE) | GRT_BIT(FLOAT16)},
     .create = tree_create,
     .destroy = tree_destroy,
     .reshape = tree_reshape,
     .run = tree_run},
};
CPU_KERNELS(tree, rows);
