/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/sampling.h"

#include "src/base/checked.h"

#include <stdlib.h>

grt_status grt_lp_pool_reshape(grt_reshape *r)
{
    const grt_tensor *x = r->in[0], *y = r->out[0];
    grt_lp_pool *shape = calloc(1, sizeof *shape);
    if (!shape)
        return grt_fail_memory(sizeof *shape);
    cpu_window_read(r->desc, x->rank - 2, x->dims + 2, y->dims + 2, NULL, false, &shape->w);
    shape->planes = x->dims[0] * x->dims[1];
    shape->p = (double)grt_attr_int(r->desc, "p", 2);
    r->shape = shape;
    return GRT_OK;
}

static int64_t sampling_entry(const int64_t *values, size_t n, int32_t i, int64_t fallback)
{
    return i >= 0 && (size_t)i < n ? values[i] : fallback;
}

static void read_unpool(const grt_op_desc *desc, const grt_tensor *x, grt_unpool *shape)
{
    size_t n_kernel, n_strides, n_pads;
    const int64_t *kernel = grt_attr_ints(desc, "kernel_shape", &n_kernel);
    const int64_t *strides = grt_attr_ints(desc, "strides", &n_strides);
    const int64_t *pads = grt_attr_ints(desc, "pads", &n_pads);
    shape->rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++) {
        const int32_t s = i - 2;
        const int64_t edge = sampling_entry(kernel, n_kernel, s, 1) - sampling_entry(pads, n_pads, s, 0) -
                             sampling_entry(pads, n_pads, s + x->rank - 2, 0);
        int64_t *dim = &shape->dims[i];
        *dim = x->dims[i];
        if (i >= 2 && (!grt_mul_i64(x->dims[i] - 1, sampling_entry(strides, n_strides, s, 1), dim) ||
                       !grt_add_i64(*dim, edge, dim)))
            *dim = -1; /* then the product is, too */
    }
    shape->elements = grt_dims_product(shape->dims, 0, shape->rank);
}

grt_status grt_unpool_reshape(grt_reshape *r)
{
    const grt_tensor *x = r->in[0], *index = r->in[1];
    grt_unpool *shape = calloc(1, sizeof *shape);
    if (!shape)
        return grt_fail_memory(sizeof *shape);
    read_unpool(r->desc, x, shape);
    if (x->rank < 3 || r->out[0]->rank != x->rank || shape->elements < 0 ||
        !grt_dims_equal(x->dims, x->rank, index->dims, index->rank)) {
        char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
        free(shape);
        return grt_fail_op(
            r->desc, GRT_STATUS_INVALID_ARGUMENT,
            "input %s and indices %s must have one shape, with spatial dims that the window fits",
            grt_tensor_text(x, a), grt_tensor_text(index, b));
    }
    r->shape = shape;
    return GRT_OK;
}

bool grt_deform_supports(const grt_kernel_node *node, grt_text *why)
{
    if (node->in[GRT_DEFORM_X].rank == 4 || node->in[GRT_DEFORM_X].rank < 0)
        return true;
    grt_text_add(why, "the input has rank %d; images with two spatial dims are supported",
                 node->in[GRT_DEFORM_X].rank);
    return false;
}

static bool sampling_dims_are(const grt_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t want[] = {a, b, c, d};
    return !t || grt_dims_equal(t->dims, t->rank, want, 4);
}

static bool deform_fits(const grt_reshape *r, int64_t groups, int64_t offsets)
{
    const grt_tensor *x = r->in[GRT_DEFORM_X], *w = r->in[GRT_DEFORM_W], *y = r->out[0],
                     *bias = grt_reshape_in(r, GRT_DEFORM_BIAS);
    if (x->rank != 4 || w->rank != 4 || y->rank != 4 || groups <= 0 || offsets <= 0 ||
        x->dims[1] != w->dims[1] * groups || w->dims[0] % groups || x->dims[1] % offsets)
        return false;
    const int64_t batch = x->dims[0], taps = w->dims[2] * w->dims[3], high = y->dims[2], wide = y->dims[3];
    return sampling_dims_are(r->in[GRT_DEFORM_OFFSET], batch, offsets * taps * 2, high, wide) &&
           sampling_dims_are(grt_reshape_in(r, GRT_DEFORM_MASK), batch, offsets * taps, high, wide) &&
           (!bias || grt_tensor_elements(bias) == w->dims[0]);
}

grt_status grt_deform_reshape(grt_reshape *r)
{
    const grt_tensor *x = r->in[GRT_DEFORM_X], *w = r->in[GRT_DEFORM_W];
    const int64_t groups = grt_attr_int(r->desc, "group", 1),
                  offsets = grt_attr_int(r->desc, "offset_group", 1);
    if (!deform_fits(r, groups, offsets))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "input, weight, offset, bias and mask do not fit together with group %lld and "
                           "offset_group %lld; see DeformConv's definition",
                           (long long)groups, (long long)offsets);
    grt_deform *shape = calloc(1, sizeof *shape);
    if (!shape)
        return grt_fail_memory(sizeof *shape);
    cpu_window_read(r->desc, 2, x->dims + 2, r->out[0]->dims + 2, w->dims + 2, false, &shape->w);
    shape->batch = x->dims[0];
    shape->groups = groups;
    shape->offset_groups = offsets;
    shape->channels = x->dims[1];
    shape->out_channels = w->dims[0];
    r->shape = shape;
    return GRT_OK;
}
