/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::WovenConv: the convolution, then a copy for it and for each part beside it. */
#include "backends/cpu/conv.h"
#include "backends/cpu/move.h"
#include "backends/shared/woven_conv.h"

static const grt_kernel_row *cpu_woven_find_conv(const grt_kernel_node *conv, grt_text *why)
{
    const grt_kernel_table *const table = &cpu_kernels_conv;
    return grt_kernel_find(&table, 1, conv, why);
}

static bool cpu_woven_conv_supports(const grt_kernel_node *node, grt_text *why)
{
    return grt_woven_conv_supports(node, cpu_woven_find_conv, why);
}

static grt_status woven_conv_create(const grt_kernel_node *node, void **out_state)
{
    return grt_woven_conv_create(node, cpu_woven_find_conv, (grt_woven_conv **)out_state);
}

static void woven_conv_destroy(void *state)
{
    grt_woven_conv_destroy(state);
}

typedef struct woven_conv_shape {
    grt_woven_shape woven;
    grt_woven_move own;
    grt_woven_move parts[]; /* of further inputs */
} woven_conv_shape;

static void woven_conv_release(void *data)
{
    woven_conv_shape *s = data;
    if (s)
        grt_woven_conv_release(&s->woven);
    free(s);
}

static grt_status woven_conv_reshape(grt_reshape *r)
{
    const int32_t parts = r->n_in > GRT_WOVEN_PARTS ? r->n_in - GRT_WOVEN_PARTS : 0;
    const size_t bytes = sizeof(woven_conv_shape) + (size_t)parts * sizeof(grt_woven_move);
    woven_conv_shape *s = calloc(1, bytes);
    if (!s)
        return grt_fail_memory(bytes);
    const grt_status status = grt_woven_conv_prepare(r, &s->woven);
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    grt_woven_conv_own(&s->woven, r, &s->own);
    for (int32_t i = 0; i < parts; i++)
        grt_woven_conv_part(&s->woven, r, GRT_WOVEN_PARTS + i, &s->parts[i]);
    r->shape = s;
    r->workspace_bytes = s->woven.result_bytes + s->woven.inner_bytes;
    return GRT_OK;
}

static void move_woven(const grt_run *run, const grt_woven_move *woven, const void *from)
{
    const size_t size = grt_dtype_size(run->out[0]->dtype);
    cpu_move move = {.size = size};
    for (int32_t k = 0; k < woven->rank; k++)
        cpu_move_axis(&move, woven->dims[k], woven->to[k], woven->from[k]);
    cpu_move_run(&move, cpu_at(run->out[0]->data, woven->to_offset, size), from, run->threads);
}

static grt_status woven_conv_run(const grt_run *run)
{
    const woven_conv_shape *s = run->shape;
    char *result = run->workspace;
    GRT_TRY(grt_woven_conv_run(&s->woven, run, result, result + s->woven.result_bytes));
    move_woven(run, &s->own, result);
    for (int32_t i = GRT_WOVEN_PARTS; i < run->n_in; i++)
        move_woven(run, &s->parts[i - GRT_WOVEN_PARTS], run->in[i]->data);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "WovenConv",
     .types = {GRT_BIT(FLOAT)},
     .supports = cpu_woven_conv_supports,
     .create = woven_conv_create,
     .destroy = woven_conv_destroy,
     .reshape = woven_conv_reshape,
     .release_shape = woven_conv_release,
     .run = woven_conv_run},
};
CPU_KERNELS(woven_conv, rows);
