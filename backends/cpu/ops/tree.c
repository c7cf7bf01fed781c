/* SPDX-License-Identifier: Apache-2.0 */
/* TreeEnsemble: every sample walks down every tree. Trees of plain comparisons over float32 are walked in a
 * compact form, a block of samples at a time, and trees that differ only in the weights of their leaves (one
 * for each class) are walked once. */
#include "backends/cpu/cpu.h"
#include "src/base/element.h"
#include "backends/cpu/threads.h"
#include "backends/shared/tree.h"
#include "src/base/checked.h"

#include <stdlib.h>

/* feature: its sign says that NaN takes the true branch. child: a node, or ~leaf. */
typedef struct compact_node {
    float split;
    uint32_t feature;
    int32_t child[2];
} compact_node;

enum { MISSING_TRUE = 1u << 31, TOGETHER = 8, BLOCK = 64 };

/* `copies` trees of one form: the leaves of each follow those of the one before at a distance. */
typedef struct compact_tree {
    int32_t root;
    int64_t copies, distance;
} compact_tree;

typedef struct tree_state {
    grt_trees trees;
    compact_node *nodes; /* NULL: there is no compact form */
    compact_tree *forms;
    int64_t n_forms;
} tree_state;

static void tree_destroy(void *pointer)
{
    tree_state *state = pointer;
    grt_trees_release(&state->trees);
    grt_account_free(state->nodes);
    grt_account_free(state->forms);
    free(state);
}

static bool is_compact(const grt_trees *trees)
{
    if (trees->n_nodes > INT32_MAX || trees->n_leaves > INT32_MAX || trees->n_features > INT32_MAX)
        return false;
    for (int64_t i = 0; i < trees->n_nodes; i++)
        if (trees->nodes[i].mode != GRT_TREE_LEQ ||
            (double)(float)trees->nodes[i].split != trees->nodes[i].split)
            return false;
    return true;
}

/* True if the n nodes from b are those from a, with leaves at one constant distance. */
static bool same_form(const grt_trees *trees, int64_t a, int64_t b, int64_t n, int64_t *out_distance)
{
    *out_distance = -1;
    for (int64_t i = 0; i < n; i++) {
        const grt_tree_node *x = &trees->nodes[a + i], *y = &trees->nodes[b + i];
        if (x->split != y->split || x->feature != y->feature || x->missing_true != y->missing_true)
            return false;
        for (int side = 0; side < 2; side++) {
            const int64_t distance = y->child[side] - x->child[side];
            if (x->leaf[side] != y->leaf[side] || (!x->leaf[side] && distance != b - a) ||
                (x->leaf[side] && *out_distance >= 0 && distance != *out_distance) || distance < 0)
                return false;
            *out_distance = x->leaf[side] ? distance : *out_distance;
        }
    }
    return true;
}

static int64_t tree_size(const grt_trees *trees, int64_t root)
{
    return (root + 1 < trees->n_roots ? trees->roots[root + 1] : trees->n_nodes) - trees->roots[root];
}

/* Trees that lie one after another, each from its root on, and are alike. */
static compact_tree form_at(const grt_trees *trees, int64_t root)
{
    compact_tree form = {.root = (int32_t)trees->roots[root], .copies = 1};
    const int64_t n = tree_size(trees, root);
    for (int64_t next = root + 1; n > 0 && next < trees->n_roots; next++, form.copies++) {
        int64_t distance;
        if (tree_size(trees, next) != n ||
            !same_form(trees, trees->roots[next - 1], trees->roots[next], n, &distance) ||
            (form.copies > 1 && distance != form.distance))
            break;
        form.distance = distance;
    }
    return form;
}

static grt_status make_compact(const grt_kernel_node *node, tree_state *state)
{
    const grt_trees *trees = &state->trees;
    GRT_TRY(grt_kernel_alloc(node, (size_t)trees->n_nodes * sizeof *state->nodes, (void **)&state->nodes));
    GRT_TRY(grt_kernel_alloc(node, (size_t)trees->n_roots * sizeof *state->forms, (void **)&state->forms));
    for (int64_t i = 0; i < trees->n_nodes; i++) {
        const grt_tree_node *from = &trees->nodes[i];
        state->nodes[i] = (compact_node){
            .split = (float)from->split,
            .feature = (uint32_t)from->feature | (from->missing_true ? MISSING_TRUE : 0),
        };
        for (int side = 0; side < 2; side++)
            state->nodes[i].child[side] =
                from->leaf[side] ? ~(int32_t)from->child[side] : (int32_t)from->child[side];
    }
    for (int64_t root = 0; root < trees->n_roots; root += state->forms[state->n_forms++].copies)
        state->forms[state->n_forms] = form_at(trees, root);
    return GRT_OK;
}

static grt_status tree_create(const grt_kernel_node *node, void **out_state)
{
    tree_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    grt_status status = grt_trees_read(node, &state->trees);
    if (status == GRT_OK && node->in[0].dtype == GRT_DTYPE_FLOAT && is_compact(&state->trees))
        status = make_compact(node, state);
    if (status != GRT_OK) {
        tree_destroy(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

static grt_status tree_reshape(grt_reshape *reshape)
{
    const grt_trees *state = &((const tree_state *)reshape->state)->trees;
    const grt_tensor *x = reshape->in[0];
    if (x->rank != 2 || x->dims[1] < state->n_features)
        return grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input must be samples x features with %lld features or more",
                           (long long)state->n_features);
    if (!grt_mul_size((size_t)state->n_targets, BLOCK * sizeof(double) * (size_t)reshape->threads,
                      &reshape->workspace_bytes))
        return grt_fail_memory(SIZE_MAX);
    return GRT_OK;
}

static int64_t find_leaf(const grt_trees *state, int64_t root, const grt_tensor *x, int64_t row)
{
    for (int64_t at = root;;) {
        const grt_tree_node *node = &state->nodes[at];
        const int side =
            grt_tree_side(node, state->members, grt_element_get(x, row * x->dims[1] + node->feature));
        at = node->child[side];
        if (node->leaf[side])
            return at;
    }
}

static void score_row(const grt_run *run, int64_t row, double *scores)
{
    const grt_trees *state = &((const tree_state *)run->state)->trees;
    for (int64_t r = 0; r < state->n_roots; r++) {
        const int64_t leaf = find_leaf(state, state->roots[r], run->in[0], row);
        double *score = &scores[state->targets[leaf]];
        *score = grt_tree_add(state->aggregate, state->n_roots, *score, state->weights[leaf]);
    }
}

/* The leaves of n <= TOGETHER samples, interleaved to hide latency. */
static inline __attribute__((always_inline)) void
find_leaves(const compact_node *nodes, int32_t root, const float *x, int64_t stride, int n, int32_t *leaf)
{
    for (int i = 0; i < n; i++)
        leaf[i] = root;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < n; i++) {
            if (leaf[i] < 0)
                continue;
            const compact_node *node = &nodes[leaf[i]];
            const float value = x[i * stride + (node->feature & ~(uint32_t)MISSING_TRUE)];
            const bool missing = value != value && node->feature & MISSING_TRUE;
            leaf[i] = node->child[(value <= node->split) | missing];
            more |= leaf[i] >= 0;
        }
    }
    for (int i = 0; i < n; i++)
        leaf[i] = ~leaf[i];
}

/* Samples are the inner loop: a tree stays in the cache while they go through it. */
static void score_block(const grt_run *run, int64_t row, int64_t n, double *scores)
{
    const tree_state *state = run->state;
    const grt_trees *trees = &state->trees;
    const int64_t stride = run->in[0]->dims[1];
    const float *x = (const float *)run->in[0]->data + row * stride;
    for (int64_t f = 0; f < state->n_forms; f++) {
        const compact_tree *form = &state->forms[f];
        for (int64_t i = 0; i < n; i += TOGETHER) {
            int32_t leaves[TOGETHER];
            const int together = n - i < TOGETHER ? (int)(n - i) : (int)TOGETHER;
            if (together == TOGETHER) /* a number that the compiler knows */
                find_leaves(state->nodes, form->root, x + i * stride, stride, TOGETHER, leaves);
            else
                find_leaves(state->nodes, form->root, x + i * stride, stride, together, leaves);
            for (int k = 0; k < together; k++)
                for (int64_t copy = 0; copy < form->copies; copy++) {
                    const int64_t leaf = leaves[k] + copy * form->distance;
                    double *score = &scores[(i + k) * trees->n_targets + trees->targets[leaf]];
                    *score = grt_tree_add(trees->aggregate, trees->n_roots, *score, trees->weights[leaf]);
                }
        }
    }
}

static grt_status tree_run(const grt_run *run)
{
    const tree_state *state = run->state;
    const grt_trees *trees = &state->trees;
    const int64_t rows = run->in[0]->dims[0], n = trees->n_targets;
    const double start = grt_tree_start(trees->aggregate, grt_tree_largest(run->in[0]->dtype));
#pragma omp parallel for num_threads(run->threads) if (rows * trees->n_roots > CPU_GRAIN / 32)
    for (int64_t row = 0; row < rows; row += BLOCK) {
        const int64_t block = rows - row < BLOCK ? rows - row : BLOCK;
        double *scores = (double *)run->workspace + cpu_thread() * n * BLOCK;
        for (int64_t i = 0; i < block * n; i++)
            scores[i] = start;
        if (state->nodes)
            score_block(run, row, block, scores);
        for (int64_t i = 0; i < block; i++) {
            if (!state->nodes)
                score_row(run, row + i, scores + i * n);
            grt_tree_finish(trees->transform, scores + i * n, n);
            for (int64_t k = 0; k < n; k++)
                grt_element_put(run->out[0], (row + i) * n + k, scores[i * n + k]);
        }
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
