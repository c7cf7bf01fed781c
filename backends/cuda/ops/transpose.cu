/* SPDX-License-Identifier: Apache-2.0 */
/* Transpose, DepthToSpace, SpaceToDepth. */
#include "backends/cuda/copy.h"

namespace
{

struct transpose_state {
    bool given;
    int32_t perm[GRT_MAX_RANK];
};

grt_status cuda_create_transpose(const grt_kernel_node *node, void **out_state)
{
    size_t n;
    const int64_t *perm = grt_attr_ints(node->desc, "perm", &n);
    transpose_state *state;
    GRT_TRY(cuda_state(&state));
    state->given = perm != NULL;
    for (size_t k = 0; k < n && k < GRT_MAX_RANK; k++)
        state->perm[k] = (int32_t)perm[k];
    *out_state = state;
    return GRT_OK;
}

grt_status reshape_transpose(grt_reshape *r)
{
    const transpose_state *state = (const transpose_state *)r->state;
    const grt_tensor *in = r->in[0], *out = r->out[0];
    int64_t from[GRT_MAX_RANK], to[GRT_MAX_RANK];
    cuda_copy *copy;
    GRT_TRY(cuda_state(&copy));
    grt_dims_strides(in->dims, in->rank, from);
    grt_dims_strides(out->dims, out->rank, to);
    cuda_copy_begin(copy, in->dtype);
    for (int32_t k = 0; k < in->rank; k++)
        cuda_copy_axis(copy, out->dims[k], to[k], from[state->given ? state->perm[k] : in->rank - 1 - k]);
    cuda_copy_end(copy);
    r->shape = copy;
    return GRT_OK;
}

struct block_state {
    int64_t block;
    bool columns_first; /* CRD: the depth is the slowest part of the channel */
};

grt_status cuda_create_block(const grt_kernel_node *node, void **out_state)
{
    block_state *state;
    GRT_TRY(cuda_state(&state));
    state->block = grt_attr_int(node->desc, "blocksize", 1);
    state->columns_first = !strcmp(grt_attr_string(node->desc, "mode", "DCR"), "CRD");
    *out_state = state;
    return GRT_OK;
}

/* The deep side [n, c*b*b, h, w] and the wide side [n, c, h*b, w*b] walked together. */
grt_status reshape_blocks(grt_reshape *r)
{
    const block_state *state = (const block_state *)r->state;
    bool to_wide = !strcmp(r->desc->op, "DepthToSpace");
    const grt_tensor *deep = r->in[0], *wide = r->out[0];
    if (!to_wide)
        deep = r->out[0], wide = r->in[0];
    int64_t b = state->block, c = wide->dims[1], h = deep->dims[2], w = deep->dims[3];
    int64_t area = h * w, depth_step = state->columns_first ? b * b * area : area;
    int64_t block_step = state->columns_first ? area : c * area;
    const int64_t dims[] = {deep->dims[0], c, h, b, w, b};
    const int64_t deep_strides[] = {deep->dims[1] * area, depth_step, w, b * block_step, 1, block_step};
    const int64_t wide_strides[] = {deep->dims[1] * area, area * b * b, w * b * b, w * b, b, 1};
    /* in the order of the destination */
    const int wide_order[] = {0, 1, 2, 3, 4, 5}, crd_order[] = {0, 1, 3, 5, 2, 4},
              dcr_order[] = {0, 3, 5, 1, 2, 4};
    const int *order = to_wide ? wide_order : state->columns_first ? crd_order : dcr_order;
    cuda_copy *copy;
    GRT_TRY(cuda_state(&copy));
    cuda_copy_begin(copy, deep->dtype);
    for (int k = 0; k < 6; k++) {
        int a = order[k];
        cuda_copy_axis(copy, dims[a], to_wide ? wide_strides[a] : deep_strides[a],
                       to_wide ? deep_strides[a] : wide_strides[a]);
    }
    cuda_copy_end(copy);
    r->shape = copy;
    return GRT_OK;
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Transpose",
     .types = {CUDA_MOVABLE},
     .create = cuda_create_transpose,
     .destroy = free,
     .reshape = reshape_transpose,
     .release_shape = free,
     .run = cuda_copy_only},
    {.domain = "",
     .op = "DepthToSpace",
     .types = {CUDA_MOVABLE},
     .create = cuda_create_block,
     .destroy = free,
     .reshape = reshape_blocks,
     .release_shape = free,
     .run = cuda_copy_only},
    {.domain = "",
     .op = "SpaceToDepth",
     .types = {CUDA_MOVABLE},
     .create = cuda_create_block,
     .destroy = free,
     .reshape = reshape_blocks,
     .release_shape = free,
     .run = cuda_copy_only},
};

} // namespace
CUDA_KERNELS(transpose, rows);
