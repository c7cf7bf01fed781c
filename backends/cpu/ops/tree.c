/* TreeEnsemble: every sample walks down every tree. The trees are checked once, when the kernel is created,
 * so that walking needs no checks. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/element.h"
#include "backends/cpu/threads.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

typedef enum tree_mode { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, N_MODES } tree_mode;
typedef enum tree_aggregate { AVERAGE, SUM, MIN, MAX, N_AGGREGATES } tree_aggregate;
typedef enum tree_transform { NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT, N_TRANSFORMS } tree_transform;

typedef struct tree_node {
    double split;
    int64_t feature, child[2]; /* child by outcome of the comparison: index of a node, or of a leaf */
    bool leaf[2];
    uint8_t mode;
    bool missing_true;              /* NaN takes the true branch */
    int64_t member_from, member_to; /* MEMBER: its set */
} tree_node;

typedef struct tree_state {
    tree_node *nodes;
    int64_t n_nodes, n_leaves, n_targets, n_features; /* n_features: wanted */
    const int64_t *roots, *targets;
    size_t n_roots;
    const grt_tensor *weights, *members;
    tree_aggregate aggregate;
    tree_transform transform;
} tree_state;

static void tree_destroy(void *pointer)
{
    tree_state *state = pointer;
    free(state->nodes);
    free(state);
}

static grt_status bad_tree(const grt_kernel_node *node, const char *what, int64_t index)
{
    return grt_fail_op(node->desc, GRT_STATUS_INVALID_MODEL, "%s at index %lld", what, (long long)index);
}

/* A list of one number per node. */
static grt_status node_list(const grt_kernel_node *node, const char *name, int64_t n, const int64_t **out)
{
    size_t found;
    *out = grt_attr_ints(node->desc, name, &found);
    if (*out && (int64_t)found != n)
        return grt_fail_op(node->desc, GRT_STATUS_INVALID_MODEL,
                           "attribute %s has %zu elements; there are %lld nodes", name, found, (long long)n);
    return GRT_OK;
}

static grt_status read_nodes(const grt_kernel_node *node, tree_state *state)
{
    const grt_tensor *modes = grt_attr_tensor(node->desc, "nodes_modes"),
                     *splits = grt_attr_tensor(node->desc, "nodes_splits");
    const int64_t *features, *children[2], *leaves[2], *missing;
    int64_t n = grt_tensor_elements(modes), member = 0,
            n_members = state->members ? grt_tensor_elements(state->members) : 0;
    if (grt_tensor_elements(splits) != n || !grt_dtype_in(modes->dtype, GRT_SET_INTS) ||
        !grt_dtype_in(splits->dtype, GRT_SET_FLOATS))
        return grt_fail_op(node->desc, GRT_STATUS_INVALID_MODEL,
                           "nodes_modes (integers) and nodes_splits (floats) must agree in size");
    GRT_TRY(node_list(node, "nodes_featureids", n, &features));
    GRT_TRY(node_list(node, "nodes_falsenodeids", n, &children[0]));
    GRT_TRY(node_list(node, "nodes_truenodeids", n, &children[1]));
    GRT_TRY(node_list(node, "nodes_falseleafs", n, &leaves[0]));
    GRT_TRY(node_list(node, "nodes_trueleafs", n, &leaves[1]));
    GRT_TRY(node_list(node, "nodes_missing_value_tracks_true", n, &missing));
    state->nodes = calloc((size_t)n + 1, sizeof *state->nodes);
    if (!state->nodes)
        return grt_fail_memory((size_t)n * sizeof *state->nodes);
    state->n_nodes = n;
    for (int64_t i = 0; i < n; i++) {
        tree_node *to = &state->nodes[i];
        int64_t mode = grt_tensor_int(modes, i);
        if (mode < 0 || mode >= N_MODES)
            return bad_tree(node, "nodes_modes holds no mode from 0 to 6", i);
        if (features[i] < 0)
            return bad_tree(node, "nodes_featureids is negative", i);
        *to = (tree_node){.split = cpu_element_get(splits, i),
                          .feature = features[i],
                          .mode = (uint8_t)mode,
                          .missing_true = missing && missing[i]};
        state->n_features = features[i] >= state->n_features ? features[i] + 1 : state->n_features;
        for (int side = 0; side < 2; side++) {
            to->child[side] = children[side][i];
            to->leaf[side] = leaves[side][i] != 0;
            if (to->child[side] < 0 || to->child[side] >= (to->leaf[side] ? state->n_leaves : n))
                return bad_tree(node, "a child does not exist", i);
        }
        if (mode != MEMBER)
            continue;
        to->member_from = member; /* sets follow one another, each closed by a NaN */
        while (member < n_members && !isnan(cpu_element_get(state->members, member)))
            member++;
        if (member == n_members)
            return bad_tree(node, "membership_values has no set for the node", i);
        to->member_to = member++;
    }
    return GRT_OK;
}

/* Each node may be reached once only: then walks end. */
static grt_status check_walks(const grt_kernel_node *node, const tree_state *state)
{
    int64_t n = state->n_nodes, depth = 0;
    int64_t *stack = malloc(((size_t)n + 1) * sizeof *stack);
    bool *seen = calloc((size_t)n + 1, 1);
    grt_status status = stack && seen ? GRT_OK : grt_fail_memory((size_t)n * sizeof *stack);
    for (size_t r = 0; status == GRT_OK && r < state->n_roots; r++) {
        if (state->roots[r] < 0 || state->roots[r] >= n || seen[state->roots[r]]) {
            status = bad_tree(node, "tree_roots names no node, or one of another tree,", (int64_t)r);
            break;
        }
        seen[state->roots[r]] = true;
        stack[depth++] = state->roots[r];
        while (depth && status == GRT_OK) {
            int64_t at = stack[--depth];
            for (int side = 0; side < 2 && status == GRT_OK; side++) {
                int64_t child = state->nodes[at].child[side];
                if (state->nodes[at].leaf[side])
                    continue;
                if (seen[child])
                    status = bad_tree(node, "a node has two parents, or the tree a cycle,", child);
                else
                    stack[depth++] = child;
                seen[child] = true;
            }
        }
    }
    free(stack);
    free(seen);
    return status;
}

static grt_status read_tree(const grt_kernel_node *node, tree_state *state)
{
    size_t n_targets;
    int64_t aggregate = grt_attr_int(node->desc, "aggregate_function", SUM);
    int64_t transform = grt_attr_int(node->desc, "post_transform", NONE);
    state->weights = grt_attr_tensor(node->desc, "leaf_weights");
    state->members = grt_attr_tensor(node->desc, "membership_values");
    state->targets = grt_attr_ints(node->desc, "leaf_targetids", &n_targets);
    state->roots = grt_attr_ints(node->desc, "tree_roots", &state->n_roots);
    state->n_targets = grt_attr_int(node->desc, "n_targets", 1);
    state->n_leaves = (int64_t)n_targets;
    if (aggregate < 0 || aggregate >= N_AGGREGATES || transform < 0 || transform >= N_TRANSFORMS)
        return grt_fail_op(node->desc, GRT_STATUS_INVALID_MODEL,
                           "aggregate_function must be 0 to 3, post_transform 0 to 4");
    state->aggregate = (tree_aggregate)aggregate;
    state->transform = (tree_transform)transform;
    if (!grt_dtype_in(state->weights->dtype, GRT_SET_FLOATS) ||
        grt_tensor_elements(state->weights) != state->n_leaves ||
        (state->members && !grt_dtype_in(state->members->dtype, GRT_SET_FLOATS)))
        return grt_fail_op(
            node->desc, GRT_STATUS_INVALID_MODEL,
            "leaf_weights must be as many floats as leaf_targetids has elements, membership_values floats");
    for (int64_t i = 0; i < state->n_leaves; i++)
        if (state->targets[i] < 0 || state->targets[i] >= state->n_targets)
            return bad_tree(node, "leaf_targetids lies outside [0, n_targets)", i);
    GRT_TRY(read_nodes(node, state));
    return check_walks(node, state);
}

static grt_status tree_create(const grt_kernel_node *node, void **out_state)
{
    tree_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    grt_status status = read_tree(node, state);
    if (status != GRT_OK) {
        tree_destroy(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

static grt_status tree_reshape(grt_reshape *reshape)
{
    const tree_state *state = reshape->state;
    const grt_tensor *x = reshape->in[0];
    if (x->rank != 2 || x->dims[1] < state->n_features)
        return grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input must be samples x features with %lld features or more",
                           (long long)state->n_features);
    reshape->workspace_bytes = (size_t)state->n_targets * sizeof(double) * (size_t)reshape->threads;
    return GRT_OK;
}

static bool compare(const tree_state *state, const tree_node *node, double x)
{
    switch ((tree_mode)node->mode) {
    case LEQ:
        return x <= node->split;
    case LT:
        return x < node->split;
    case GTE:
        return x >= node->split;
    case GT:
        return x > node->split;
    case EQ:
        return x == node->split;
    case NEQ:
        return x != node->split;
    default:
        for (int64_t i = node->member_from; i < node->member_to; i++)
            if (cpu_element_get(state->members, i) == x)
                return true;
        return false;
    }
}

static int64_t find_leaf(const tree_state *state, int64_t root, const grt_tensor *x, int64_t row)
{
    for (int64_t at = root;;) {
        const tree_node *node = &state->nodes[at];
        double value = cpu_element_get(x, row * x->dims[1] + node->feature);
        bool side = isnan(value) && node->missing_true ? true : compare(state, node, value);
        at = node->child[side];
        if (node->leaf[side])
            return at;
    }
}

static void softmax(double *scores, int64_t n, bool keep_zeros)
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
static double probit(double p)
{
    if (!(p > 0 && p < 1))
        return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
    double y = 2 * p - 1, l = log1p(-y * y), t = 2 / (M_PI * 0.147) + l / 2;
    double x = copysign(sqrt(sqrt(t * t - l / 0.147) - t), y) * M_SQRT2;
    for (int i = 0; i < 3; i++)
        x -= (0.5 * erfc(-x / M_SQRT2) - p) / (exp(-x * x / 2) / sqrt(2 * M_PI));
    return x;
}

static void transform(const tree_state *state, double *scores)
{
    int64_t n = state->n_targets;
    if (state->transform == SOFTMAX || state->transform == SOFTMAX_ZERO)
        softmax(scores, n, state->transform == SOFTMAX_ZERO);
    for (int64_t i = 0; i < n && state->transform == LOGISTIC; i++)
        scores[i] = 1 / (1 + exp(-scores[i]));
    for (int64_t i = 0; i < n && state->transform == PROBIT; i++)
        scores[i] = probit(scores[i]);
}

static double largest(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_DOUBLE ? DBL_MAX : dtype == GRT_DTYPE_FLOAT16 ? 65504 : (double)FLT_MAX;
}

static void score_row(const grt_run *run, int64_t row, double *scores)
{
    const tree_state *state = run->state;
    double start = largest(run->in[0]->dtype);
    for (int64_t i = 0; i < state->n_targets; i++)
        scores[i] = state->aggregate == MIN ? start : state->aggregate == MAX ? -start : 0;
    for (size_t r = 0; r < state->n_roots; r++) {
        int64_t leaf = find_leaf(state, state->roots[r], run->in[0], row);
        double weight = cpu_element_get(state->weights, leaf), *score = &scores[state->targets[leaf]];
        if (state->aggregate == MIN)
            *score = fmin(*score, weight);
        else if (state->aggregate == MAX)
            *score = fmax(*score, weight);
        else
            *score += state->aggregate == AVERAGE ? weight / (double)state->n_roots : weight;
    }
    transform(state, scores);
}

static grt_status tree_run(const grt_run *run)
{
    const tree_state *state = run->state;
    int64_t rows = run->in[0]->dims[0], n = state->n_targets;
#pragma omp parallel for num_threads(run->threads) if (rows * (int64_t)state->n_roots > CPU_GRAIN / 32)
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
