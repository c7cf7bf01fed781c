/* SPDX-License-Identifier: Apache-2.0 */
/* Expand and Tile: strided copies that visit elements more than once. */
#include "backends/cpu/move.h"

/* The shape input may be removed from the plan, so the dims were not checked yet. */
static grt_status expand_misfit(const grt_reshape *r)
{
    char from[GRT_TYPE_TEXT_SIZE], to[GRT_TYPE_TEXT_SIZE];
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "cannot make %s of %s",
                       grt_tensor_text(r->out[0], to), grt_tensor_text(r->in[0], from));
}

static grt_status check_expand(grt_reshape *r)
{
    const grt_tensor *in = r->in[0], *out = r->out[0];
    bool fits = in->rank <= out->rank;
    for (int32_t k = 0; fits && k < in->rank; k++)
        fits = in->dims[k] == 1 || in->dims[k] == out->dims[out->rank - in->rank + k];
    return fits ? GRT_OK : expand_misfit(r);
}

static grt_status check_tile(grt_reshape *r)
{
    const grt_tensor *in = r->in[0], *out = r->out[0];
    bool fits = in->rank == out->rank;
    for (int32_t k = 0; fits && k < in->rank; k++)
        fits = in->dims[k] ? out->dims[k] % in->dims[k] == 0 : out->dims[k] == 0;
    return fits ? GRT_OK : expand_misfit(r);
}

static grt_status run_expand(const grt_run *run)
{
    const grt_tensor *in = run->in[0];
    grt_tensor *out = run->out[0];
    int64_t from[GRT_MAX_RANK], to[GRT_MAX_RANK];
    grt_broadcast_strides(in->dims, in->rank, out->rank, from);
    grt_dims_strides(out->dims, out->rank, to);
    cpu_move move = {.size = grt_dtype_size(in->dtype)};
    for (int32_t k = 0; k < out->rank; k++)
        cpu_move_axis(&move, out->dims[k], to[k], from[k]);
    cpu_move_run(&move, out->data, in->data, run->threads);
    return GRT_OK;
}

static grt_status expand_run_tile(const grt_run *run)
{
    const grt_tensor *in = run->in[0];
    grt_tensor *out = run->out[0];
    int64_t from[GRT_MAX_RANK], to[GRT_MAX_RANK];
    if (grt_tensor_elements(out) == 0)
        return GRT_OK;
    grt_dims_strides(in->dims, in->rank, from);
    grt_dims_strides(out->dims, out->rank, to);
    cpu_move move = {.size = grt_dtype_size(in->dtype)};
    for (int32_t k = 0; k < out->rank; k++) {
        cpu_move_axis(&move, out->dims[k] / in->dims[k], to[k] * in->dims[k], 0);
        cpu_move_axis(&move, in->dims[k], to[k], from[k]);
    }
    cpu_move_run(&move, out->data, in->data, run->threads);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "Expand", .domain = "", .types = {CPU_MOVABLE}, .reshape = check_expand, .run = run_expand},
    {.op = "Tile", .domain = "", .types = {CPU_MOVABLE}, .reshape = check_tile, .run = expand_run_tile},
};
CPU_KERNELS(expand, rows);
