/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/tree.h"

#include "src/base/element.h"

#include <stdlib.h>
#include <string.h>

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

static grt_status tree_read_nodes(const grt_kernel_node *node, grt_trees *state)
{
    const grt_tensor *modes = grt_attr_tensor(node->desc, "nodes_modes"),
                     *splits = grt_attr_tensor(node->desc, "nodes_splits");
    const int64_t *features, *children[2], *leaves[2], *missing;
    int64_t n = grt_tensor_elements(modes), member = 0;
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
    GRT_TRY(grt_kernel_alloc(node, (size_t)n * sizeof *state->nodes, (void **)&state->nodes));
    memset(state->nodes, 0, (size_t)n * sizeof *state->nodes);
    state->n_nodes = n;
    for (int64_t i = 0; i < n; i++) {
        grt_tree_node *to = &state->nodes[i];
        int64_t mode = grt_tensor_int(modes, i);
        if (mode < 0 || mode >= GRT_TREE_N_MODES)
            return bad_tree(node, "nodes_modes holds no mode from 0 to 6", i);
        if (features[i] < 0 || features[i] == INT64_MAX)
            return bad_tree(node, "nodes_featureids is negative or too large", i);
        *to = (grt_tree_node){.split = grt_element_get(splits, i),
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
        if (mode != GRT_TREE_MEMBER)
            continue;
        to->member_from = member; /* sets follow one another, each closed by a NaN */
        while (member < state->n_members && !isnan(state->members[member]))
            member++;
        if (member == state->n_members)
            return bad_tree(node, "membership_values has no set for the node", i);
        to->member_to = member++;
    }
    return GRT_OK;
}

/* Each node may be reached once only: then walks end. */
static grt_status check_walks(const grt_kernel_node *node, const grt_trees *state)
{
    int64_t n = state->n_nodes, depth = 0;
    int64_t *stack = malloc(((size_t)n + 1) * sizeof *stack);
    bool *seen = calloc((size_t)n + 1, 1);
    grt_status status = stack && seen ? GRT_OK : grt_fail_memory((size_t)n * sizeof *stack);
    for (int64_t r = 0; status == GRT_OK && r < state->n_roots; r++) {
        if (state->roots[r] < 0 || state->roots[r] >= n || seen[state->roots[r]]) {
            status = bad_tree(node, "tree_roots names no node, or one of another tree,", r);
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

/* Floats of any type as doubles. */
static grt_status read_floats(const grt_kernel_node *node, const grt_tensor *t, double **out)
{
    const int64_t n = grt_tensor_elements(t);
    GRT_TRY(grt_kernel_alloc(node, (size_t)n * sizeof **out, (void **)out));
    for (int64_t i = 0; i < n; i++)
        (*out)[i] = grt_element_get(t, i);
    return GRT_OK;
}

void grt_trees_release(grt_trees *trees)
{
    grt_account_free(trees->nodes);
    grt_account_free(trees->weights);
    grt_account_free(trees->members);
}

grt_status grt_trees_read(const grt_kernel_node *node, grt_trees *out_trees)
{
    const grt_tensor *weights = grt_attr_tensor(node->desc, "leaf_weights"),
                     *members = grt_attr_tensor(node->desc, "membership_values");
    const int64_t aggregate = grt_attr_int(node->desc, "aggregate_function", GRT_TREE_SUM);
    const int64_t transform = grt_attr_int(node->desc, "post_transform", GRT_TREE_NONE);
    size_t n_leaves, n_roots;
    *out_trees = (grt_trees){.n_targets = grt_attr_int(node->desc, "n_targets", 1)};
    out_trees->targets = grt_attr_ints(node->desc, "leaf_targetids", &n_leaves);
    out_trees->roots = grt_attr_ints(node->desc, "tree_roots", &n_roots);
    out_trees->n_leaves = (int64_t)n_leaves;
    out_trees->n_roots = (int64_t)n_roots;
    if (aggregate < 0 || aggregate >= GRT_TREE_N_AGGREGATES || transform < 0 ||
        transform >= GRT_TREE_N_TRANSFORMS)
        return grt_fail_op(node->desc, GRT_STATUS_INVALID_MODEL,
                           "aggregate_function must be 0 to 3, post_transform 0 to 4");
    out_trees->aggregate = (grt_tree_aggregate)aggregate;
    out_trees->transform = (grt_tree_transform)transform;
    if (!grt_dtype_in(weights->dtype, GRT_SET_FLOATS) ||
        grt_tensor_elements(weights) != out_trees->n_leaves ||
        (members && !grt_dtype_in(members->dtype, GRT_SET_FLOATS)))
        return grt_fail_op(
            node->desc, GRT_STATUS_INVALID_MODEL,
            "leaf_weights must be as many floats as leaf_targetids has elements, membership_values floats");
    for (int64_t i = 0; i < out_trees->n_leaves; i++)
        if (out_trees->targets[i] < 0 || out_trees->targets[i] >= out_trees->n_targets)
            return bad_tree(node, "leaf_targetids is outside [0, n_targets)", i);
    GRT_TRY(read_floats(node, weights, &out_trees->weights));
    if (members)
        GRT_TRY(read_floats(node, members, &out_trees->members));
    out_trees->n_members = members ? grt_tensor_elements(members) : 0;
    GRT_TRY(tree_read_nodes(node, out_trees));
    return check_walks(node, out_trees);
}
