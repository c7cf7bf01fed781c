/* Expand and Tile: strided copies that visit elements more than once. */
#include "backends/cpu/move.h"

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

static grt_status run_tile(const grt_run *run)
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
    {.op = "Expand", .domain = "", .types = {CPU_MOVABLE}, .run = run_expand},
    {.op = "Tile", .domain = "", .types = {CPU_MOVABLE}, .run = run_tile},
};
CPU_KERNELS(expand, rows);
