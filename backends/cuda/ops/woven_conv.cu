/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::WovenConv. The convolution's kernel stores each result where it belongs if it can (conv_weave.h);
 * if not, a copy follows it. So do copies of the parts beside it. */
#include "backends/cuda/conv_weave.h"
#include "backends/cuda/copy.h"

extern "C" {
#include "backends/cuda/conv_weights.h"
#include "backends/shared/woven_conv.h"
}

namespace
{

const grt_kernel_row *cuda_woven_find_conv(const grt_kernel_node *conv, grt_text *why)
{
    const grt_kernel_table *const table = &cuda_kernels_conv;
    return grt_kernel_find(&table, 1, conv, why);
}

bool cuda_woven_conv_supports(const grt_kernel_node *node, grt_text *why)
{
    return grt_woven_conv_supports(node, cuda_woven_find_conv, why);
}

grt_status create_woven_conv(const grt_kernel_node *node, void **out_state)
{
    return grt_woven_conv_create(node, cuda_woven_find_conv, (grt_woven_conv **)out_state);
}

void destroy_woven_conv(void *state)
{
    grt_woven_conv_destroy((grt_woven_conv *)state);
}

struct woven_conv_shape {
    grt_woven_shape woven;
    bool is_placed;    /* by its kernel, from to_offset on */
    int64_t to_offset; /* in numbers */
    cuda_copy own, *parts;
};

void release_woven_conv(void *data)
{
    woven_conv_shape *s = (woven_conv_shape *)data;
    if (!s)
        return;
    grt_woven_conv_release(&s->woven);
    free(s->parts);
    free(s);
}

void plan_woven_copy(cuda_copy *copy, grt_dtype dtype, const grt_woven_move *move)
{
    cuda_copy_begin(copy, dtype);
    copy->to_offset = move->to_offset;
    for (int32_t k = 0; k < move->rank; k++)
        cuda_copy_axis(copy, move->dims[k], move->to[k], move->from[k]);
    cuda_copy_end(copy);
}

/* False: numbers that kernels do not count in. */
bool weave_of(const woven_conv_shape *s, const grt_tensor *y, cuda_gemm_weave *out)
{
    enum { WIDTH = 2, CHANNELS = 3, MOST = 1 << 20 };
    const int64_t *block = s->woven.conv->block, *dims = s->woven.result.dims;
    *out = {true,
            (int32_t)dims[WIDTH],
            {(int32_t)block[0], (int32_t)block[1]},
            (int32_t)(dims[CHANNELS] / (block[0] * block[1])),
            (int32_t)y->dims[CHANNELS]};
    return dims[WIDTH] > 0 && dims[WIDTH] <= MOST && dims[CHANNELS] <= MOST && y->dims[CHANNELS] <= MOST &&
           out->channels > 0;
}

grt_status plan_woven_conv(grt_reshape *r, woven_conv_shape *s)
{
    const int32_t parts = r->n_in > GRT_WOVEN_PARTS ? r->n_in - GRT_WOVEN_PARTS : 0;
    const grt_dtype dtype = r->in[0]->dtype;
    grt_woven_move move;
    cuda_gemm_weave weave;
    GRT_TRY(grt_woven_conv_prepare(r, &s->woven));
    s->parts = (cuda_copy *)calloc((size_t)parts + 1, sizeof *s->parts);
    if (!s->parts)
        return grt_fail_memory((size_t)(parts + 1) * sizeof *s->parts);
    grt_woven_conv_own(&s->woven, r, &move);
    plan_woven_copy(&s->own, dtype, &move);
    s->to_offset = move.to_offset;
    s->is_placed = weave_of(s, r->out[0], &weave) && cuda_conv_weave(s->woven.inner, &weave, move.to_offset);
    for (int32_t i = 0; i < parts; i++) {
        grt_woven_conv_part(&s->woven, r, GRT_WOVEN_PARTS + i, &move);
        plan_woven_copy(&s->parts[i], dtype, &move);
    }
    r->workspace_bytes = s->woven.inner_bytes + (s->is_placed ? 0 : s->woven.result_bytes);
    return GRT_OK;
}

grt_status reshape_woven_conv(grt_reshape *r)
{
    woven_conv_shape *s;
    GRT_TRY(cuda_state(&s));
    const grt_status status = plan_woven_conv(r, s);
    if (status != GRT_OK) {
        release_woven_conv(s);
        return status;
    }
    r->shape = s;
    return GRT_OK;
}

grt_status run_woven_conv(const grt_run *r)
{
    const woven_conv_shape *s = (const woven_conv_shape *)r->shape;
    char *y = (char *)r->out[0]->data, *workspace = (char *)r->workspace;
    if (s->is_placed) {
        GRT_TRY(grt_woven_conv_run(&s->woven, r, y + s->to_offset * s->own.size, workspace));
    } else {
        GRT_TRY(grt_woven_conv_run(&s->woven, r, workspace, workspace + s->woven.result_bytes));
        GRT_TRY(cuda_copy_run(&s->own, y, workspace, cuda_stream(r)));
    }
    for (int32_t i = GRT_WOVEN_PARTS; i < r->n_in; i++)
        GRT_TRY(cuda_copy_run(&s->parts[i - GRT_WOVEN_PARTS], y, r->in[i]->data, cuda_stream(r)));
    return GRT_OK;
}

const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "WovenConv",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .flags = GRT_KERNEL_TUNES | GRT_KERNEL_CHOOSES,
     .supports = cuda_woven_conv_supports,
     .pack = cuda_conv_weights_pack,
     .create = create_woven_conv,
     .destroy = destroy_woven_conv,
     .reshape = reshape_woven_conv,
     .release_shape = release_woven_conv,
     .run = run_woven_conv},
};

} // namespace
CUDA_KERNELS(woven_conv, rows);
