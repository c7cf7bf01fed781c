/* SPDX-License-Identifier: Apache-2.0 */
/* Transpose, DepthToSpace, SpaceToDepth: one strided copy each. */
#include "backends/cpu/move.h"

#include <string.h>

typedef struct transpose_state {
    bool given;
    int32_t perm[GRT_MAX_RANK];
} transpose_state;

static grt_status create_transpose(const grt_kernel_node *node, void **out_state)
{
    size_t n;
    const int64_t *perm = grt_attr_ints(node->desc, "perm", &n);
    GRT_TRY(cpu_state(sizeof(transpose_state), out_state));
    transpose_state *state = *out_state;
    state->given = perm != NULL;
    for (size_t k = 0; k < n && k < GRT_MAX_RANK; k++)
        state->perm[k] = (int32_t)perm[k];
    return GRT_OK;
}

static grt_status run_transpose(const grt_run *run)
{
    const transpose_state *state = run->state;
    const grt_tensor *in = run->in[0];
    grt_tensor *out = run->out[0];
    int64_t from[GRT_MAX_RANK], to[GRT_MAX_RANK];
    grt_dims_strides(in->dims, in->rank, from);
    grt_dims_strides(out->dims, out->rank, to);
    cpu_move move = {.size = grt_dtype_size(in->dtype)};
    for (int32_t k = 0; k < in->rank; k++)
        cpu_move_axis(&move, out->dims[k], to[k], from[state->given ? state->perm[k] : in->rank - 1 - k]);
    cpu_move_run(&move, out->data, in->data, run->threads);
    return GRT_OK;
}

typedef struct block_state {
    int64_t block;
    bool columns_first; /* CRD: the depth is the slowest part of the channel */
} block_state;

static grt_status create_block(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(block_state), out_state));
    block_state *state = *out_state;
    state->block = grt_attr_int(node->desc, "blocksize", 1);
    state->columns_first = !strcmp(grt_attr_string(node->desc, "mode", "DCR"), "CRD");
    return GRT_OK;
}

/* The deep side [n, c*b*b, h, w] and the wide side [n, c, h*b, w*b] walked together. */
static void move_blocks(const grt_run *run, const block_state *state, const grt_tensor *deep,
                        const grt_tensor *wide, bool to_wide)
{
    int64_t b = state->block, c = wide->dims[1], h = deep->dims[2], w = deep->dims[3];
    int64_t area = h * w, depth_step = state->columns_first ? b * b * area : area;
    int64_t block_step = state->columns_first ? area : c * area;
    const int64_t dims[] = {deep->dims[0], c, h, b, w, b};
    const int64_t deep_strides[] = {deep->dims[1] * area, depth_step, w, b * block_step, 1, block_step};
    const int64_t wide_strides[] = {deep->dims[1] * area, area * b * b, w * b * b, w * b, b, 1};
    cpu_move move = {.size = grt_dtype_size(deep->dtype)};
    for (int k = 0; k < 6; k++)
        cpu_move_axis(&move, dims[k], to_wide ? wide_strides[k] : deep_strides[k],
                      to_wide ? deep_strides[k] : wide_strides[k]);
    cpu_move_run(&move, to_wide ? wide->data : deep->data, to_wide ? deep->data : wide->data, run->threads);
}

static grt_status run_depth_to_space(const grt_run *run)
{
    move_blocks(run, run->state, run->in[0], run->out[0], true);
    return GRT_OK;
}

static grt_status run_space_to_depth(const grt_run *run)
{
    move_blocks(run, run->state, run->out[0], run->in[0], false);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "Transpose",
     .domain = "",
     .types = {CPU_MOVABLE},
     .create = create_transpose,
     .destroy = free,
     .run = run_transpose},
    {.op = "DepthToSpace",
     .domain = "",
     .types = {CPU_MOVABLE},
     .create = create_block,
     .destroy = free,
     .run = run_depth_to_space},
    {.op = "SpaceToDepth",
     .domain = "",
     .types = {CPU_MOVABLE},
     .create = create_block,
     .destroy = free,
     .run = run_space_to_depth},
};
CPU_KERNELS(transpose, rows);
