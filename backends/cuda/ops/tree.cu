/* SPDX-License-Identifier: Apache-2.0 */
/* TreeEnsemble: a thread walks one sample down one tree; then a thread sums the leaves of a sample in the
 * order of the trees, as on the CPU. */
#include "backends/cuda/each.cuh"
#include "backends/shared/tree.h"

namespace
{

/* All of it in one block of device memory. */
struct tree_state {
    void *block;
    const grt_tree_node *nodes;
    const double *weights, *members;
    const int64_t *roots, *targets;
    int64_t n_targets, n_roots, n_features;
    grt_tree_aggregate aggregate;
    grt_tree_transform transform;
};

void cuda_tree_destroy(void *data)
{
    tree_state *s = (tree_state *)data;
    if (s)
        cudaFree(s->block);
    free(s);
}

/* One part of the block: where it is, and what goes there. */
template <typename T>
grt_status cuda_tree_place(grt_device *device, char **at, const T *from, int64_t n, const T **out)
{
    const size_t bytes = (size_t)n * sizeof(T);
    *out = (const T *)*at;
    if (bytes)
        GRT_TRY(cuda_upload_now(device, *at, from, bytes));
    *at += bytes;
    return GRT_OK;
}

grt_status upload(const grt_kernel_node *node, const grt_trees *t, tree_state *s)
{
    grt_device *const device = node->device;
    const size_t bytes = (size_t)t->n_nodes * sizeof *t->nodes +
                         (size_t)(2 * t->n_leaves + t->n_members + t->n_roots) * sizeof(double);
    GRT_TRY(cuda_keep(node, NULL, bytes, &s->block));
    char *at = (char *)s->block;
    GRT_TRY(cuda_tree_place(device, &at, (const grt_tree_node *)t->nodes, t->n_nodes, &s->nodes));
    GRT_TRY(cuda_tree_place(device, &at, (const double *)t->weights, t->n_leaves, &s->weights));
    GRT_TRY(cuda_tree_place(device, &at, (const double *)t->members, t->n_members, &s->members));
    GRT_TRY(cuda_tree_place(device, &at, t->roots, t->n_roots, &s->roots));
    return cuda_tree_place(device, &at, t->targets, t->n_leaves, &s->targets);
}

grt_status cuda_tree_create(const grt_kernel_node *node, void **out_state)
{
    grt_trees trees;
    tree_state *s;
    GRT_TRY(cuda_state(&s));
    grt_kernel_node host = *node; /* what is read there is not kept */
    host.account = NULL;
    grt_status status = grt_trees_read(&host, &trees);
    s->n_targets = trees.n_targets;
    s->n_roots = trees.n_roots;
    s->n_features = trees.n_features;
    s->aggregate = trees.aggregate;
    s->transform = trees.transform;
    if (status == GRT_OK)
        status = upload(node, &trees, s);
    grt_trees_release(&trees);
    if (status != GRT_OK)
        cuda_tree_destroy(s);
    else
        *out_state = s;
    return status;
}

/* Scores of all samples, then the leaves they came to. */
grt_status cuda_tree_reshape(grt_reshape *r)
{
    const tree_state *s = (const tree_state *)r->state;
    const grt_tensor *x = r->in[0];
    size_t scores, leaves;
    if (x->rank != 2 || x->dims[1] < s->n_features)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input must be samples x features with %lld features or more",
                           (long long)s->n_features);
    if (__builtin_mul_overflow((size_t)x->dims[0], (size_t)s->n_targets * sizeof(double), &scores) ||
        __builtin_mul_overflow((size_t)x->dims[0], (size_t)s->n_roots * sizeof(int64_t), &leaves) ||
        __builtin_add_overflow(scores, leaves, &r->workspace_bytes))
        return grt_fail_memory(SIZE_MAX);
    return GRT_OK;
}

grt_status cuda_tree_run(const grt_run *r)
{
    const tree_state s = *(const tree_state *)r->state;
    const int64_t rows = r->in[0]->dims[0], width = r->in[0]->dims[1];
    const double start = grt_tree_start(s.aggregate, grt_tree_largest(r->in[0]->dtype));
    const cuda_any x = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    double *scores = (double *)r->workspace;
    int64_t *leaves = (int64_t *)(scores + rows * s.n_targets);
    GRT_TRY(cuda_each(r, rows * s.n_roots, [=] __device__(int64_t i) {
        /* neighbouring threads walk the same tree, so its top stays cached */
        const int64_t row = i % rows, tree = i / rows;
        for (int64_t at = s.roots[tree];;) {
            const grt_tree_node *node = &s.nodes[at];
            const int side = grt_tree_side(node, s.members, x.get(row * width + node->feature));
            at = node->child[side];
            if (node->leaf[side]) {
                leaves[i] = at;
                return;
            }
        }
    }));
    return cuda_each(r, rows, [=] __device__(int64_t row) {
        double *mine = scores + row * s.n_targets;
        for (int64_t k = 0; k < s.n_targets; k++)
            mine[k] = start;
        for (int64_t tree = 0; tree < s.n_roots; tree++) {
            const int64_t leaf = leaves[tree * rows + row];
            double *score = mine + s.targets[leaf];
            *score = grt_tree_add(s.aggregate, s.n_roots, *score, s.weights[leaf]);
        }
        grt_tree_finish(s.transform, mine, s.n_targets);
        for (int64_t k = 0; k < s.n_targets; k++)
            out.put(row * s.n_targets + k, mine[k]);
    });
}

const grt_kernel_row rows[] = {
    {.domain = "ai.onnx.ml",
     .op = "TreeEnsemble",
     .types = {GRT_BIT(FLOAT) | GRT_BIT(DOUBLE) | GRT_BIT(FLOAT16)},
     .create = cuda_tree_create,
     .destroy = cuda_tree_destroy,
     .reshape = cuda_tree_reshape,
     .run = cuda_tree_run},
};

} // namespace
CUDA_KERNELS(tree, rows);
