/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/pad.h"

#include <stdlib.h>
#include <string.h>

grt_status grt_pad_create(const grt_kernel_node *node, void **out_state)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    const char *mode = grt_attr_string(node->desc, "mode", "constant");
    grt_pad_mode *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (!strcmp(mode, names[k]))
            *state = (grt_pad_mode)k;
    *out_state = state;
    return GRT_OK;
}

/* The used part lies inside the result, empty where padding in front and cropping behind leave nothing of it.
 */
static void place_axis(grt_padding_plan *p, int32_t axis, int64_t dim, int64_t out_dim, int64_t before)
{
    p->first[axis] = before == INT64_MIN ? INT64_MAX : before < 0 ? -before : 0;
    p->at[axis] = before > out_dim ? out_dim : before > 0 ? before : 0;
    const int64_t have = dim - p->first[axis], room = out_dim - p->at[axis];
    p->size[axis] = have < room ? have : room;
    p->size[axis] = p->size[axis] < 0 ? 0 : p->size[axis];
}

static bool is_unknown(const grt_tensor *t)
{
    return t && !t->data && grt_tensor_elements(t) > 0;
}

static grt_status read_pads(const grt_op_desc *desc, const grt_tensor *const *in, int32_t n_in,
                            const grt_tensor *out, grt_padding_plan *p)
{
    const grt_tensor *x = in[0], *pads = in[1], *axes = n_in > 3 ? in[3] : NULL;
    const int64_t n = axes ? grt_tensor_elements(axes) : x->rank;
    if (is_unknown(pads) || is_unknown(axes))
        return grt_fail_op(desc, GRT_STATUS_UNSUPPORTED, "inputs pads and axes must be known before the run");
    if (grt_tensor_elements(pads) != 2 * n)
        return grt_fail_op(desc, GRT_STATUS_INVALID_ARGUMENT, "pads has %lld entries; %lld axes need %lld",
                           (long long)grt_tensor_elements(pads), (long long)n, (long long)(2 * n));
    for (int64_t k = 0; k < n; k++) {
        const int64_t given = axes ? grt_tensor_int(axes, k) : k, axis = grt_axis(given, x->rank);
        if (axis < 0)
            return grt_fail_op(desc, GRT_STATUS_INVALID_ARGUMENT,
                               "axes[%lld] is %lld; for rank %d it must be in [%d, %d]", (long long)k,
                               (long long)given, x->rank, -x->rank, x->rank - 1);
        place_axis(p, (int32_t)axis, x->dims[axis], out->dims[axis], grt_tensor_int(pads, k));
    }
    return GRT_OK;
}

grt_status grt_pad_plan(const grt_op_desc *desc, grt_pad_mode mode, const grt_tensor *const *in, int32_t n_in,
                        const grt_tensor *out, grt_padding_plan *p)
{
    const grt_tensor *x = in[0];
    for (int32_t k = 0; k < x->rank; k++)
        place_axis(p, k, x->dims[k], out->dims[k], 0);
    GRT_TRY(read_pads(desc, in, n_in, out, p));
    p->used = grt_dims_product(p->size, 0, x->rank);
    /* Elements that are cut off are not reflected or repeated. */
    for (int32_t k = 0; mode != GRT_PAD_CONSTANT && k < x->rank; k++)
        if (p->size[k] <= 0 && grt_tensor_elements(out) > 0)
            return grt_fail_op(desc, GRT_STATUS_INVALID_ARGUMENT,
                               "pads leave nothing of axis %d, of size %lld, that could fill its border", k,
                               (long long)x->dims[k]);
    return GRT_OK;
}

void grt_center_plan(const grt_tensor *in, const grt_tensor *out, grt_padding_plan *p)
{
    /* The start gets half, rounded down; the odd element is cut or added at the end. */
    for (int32_t k = 0; k < in->rank; k++) {
        const int64_t more = out->dims[k] - in->dims[k];
        place_axis(p, k, in->dims[k], out->dims[k], more > 0 ? more / 2 : -(-more / 2));
    }
    p->used = grt_dims_product(p->size, 0, in->rank);
}
