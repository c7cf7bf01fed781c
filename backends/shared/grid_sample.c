/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/grid_sample.h"

#include <stdlib.h>
#include <string.h>

grt_status grt_grid_create(const grt_kernel_node *node, void **out_state)
{
    const char *mode = grt_attr_string(node->desc, "mode", "linear");
    const char *padding = grt_attr_string(node->desc, "padding_mode", "zeros");
    grt_grid *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    s->mode = !strcmp(mode, "nearest") ? GRT_GRID_NEAREST
              : !strcmp(mode, "cubic") ? GRT_GRID_CUBIC
                                       : GRT_GRID_LINEAR;
    s->padding = !strcmp(padding, "border")       ? GRT_GRID_BORDER
                 : !strcmp(padding, "reflection") ? GRT_GRID_REFLECTION
                                                  : GRT_GRID_ZEROS;
    s->align = grt_attr_int(node->desc, "align_corners", 0) != 0;
    *out_state = s;
    return GRT_OK;
}

grt_status grt_grid_reshape(grt_reshape *r)
{
    if (grt_tensor_elements(r->in[0]) == 0 && grt_tensor_elements(r->out[0]) > 0)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "input X has no elements, of which grid asks for samples");
    return GRT_OK;
}

grt_status grt_affine_create(const grt_kernel_node *node, void **out_state)
{
    bool *align = calloc(1, sizeof *align);
    if (!align)
        return grt_fail_memory(sizeof *align);
    *align = grt_attr_int(node->desc, "align_corners", 0) != 0;
    *out_state = align;
    return GRT_OK;
}

grt_status grt_affine_reshape(grt_reshape *r)
{
    const int32_t n = r->out[0]->rank - 2;
    const int64_t want[] = {r->out[0]->dims[0], n, n + 1};
    if (grt_dims_equal(r->in[0]->dims, r->in[0]->rank, want, 3))
        return GRT_OK;
    char found[GRT_TYPE_TEXT_SIZE];
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "theta is %s; expected %lldx%dx%d",
                       grt_tensor_text(r->in[0], found), (long long)want[0], n, n + 1);
}
