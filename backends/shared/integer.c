/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/integer.h"

#include <stdlib.h>
#include <string.h>

const grt_integer_places *grt_integer_places_of(const grt_op_desc *desc)
{
    static const grt_integer_places integer = {.zero_a = 2, .b = 1, .zero_b = 3};
    static const grt_integer_places qlinear = {1, 2, 3, 4, 5, 6, 7, 8};
    return !strncmp(desc->op, "QLinear", 7) ? &qlinear : &integer;
}

/* One, or n of them; omitted ones pass. */
static bool counts(const grt_reshape *r, int32_t place, int64_t n, int64_t or_n)
{
    const grt_tensor *t = grt_integer_in(r->in, r->n_in, place);
    const int64_t found = t ? grt_tensor_elements(t) : 1;
    return found == 1 || found == n || found == or_n;
}

static grt_status integer_misfit(const grt_reshape *r)
{
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "shapes do not fit: matrices or channels must agree, and scales and zero points be "
                       "one number, one per row "
                       "(left matrix, output) or one per column or output channel (right matrix, weight)");
}

static bool conv_fits(const grt_reshape *r, const grt_integer_places *at, int64_t groups)
{
    const grt_tensor *x = r->in[0], *w = r->in[at->b], *y = r->out[0],
                     *bias = grt_integer_in(r->in, r->n_in, at->bias);
    return x->rank >= 3 && w->rank == x->rank && groups >= 1 && x->dims[1] == w->dims[1] * groups &&
           w->dims[0] % groups == 0 && y->rank == x->rank && y->dims[1] == w->dims[0] &&
           counts(r, at->zero_a, 1, 1) && counts(r, at->scale_a, 1, 1) &&
           counts(r, at->zero_b, w->dims[0], 1) && counts(r, at->scale_b, w->dims[0], 1) &&
           counts(r, at->zero_y, 1, 1) && counts(r, at->scale_y, 1, 1) &&
           (!bias || grt_tensor_elements(bias) == w->dims[0]);
}

grt_status grt_integer_conv_reshape(grt_reshape *r)
{
    const grt_integer_places *at = grt_integer_places_of(r->desc);
    const grt_tensor *x = r->in[0], *w = r->in[at->b];
    const int64_t groups = grt_attr_int(r->desc, "group", 1);
    if (!conv_fits(r, at, groups))
        return integer_misfit(r);
    grt_integer_conv *shape = calloc(1, sizeof *shape);
    if (!shape)
        return grt_fail_memory(sizeof *shape);
    cpu_window_read(r->desc, x->rank - 2, x->dims + 2, r->out[0]->dims + 2, w->dims + 2, false, &shape->w);
    shape->batch = x->dims[0];
    shape->groups = groups;
    shape->in_channels = w->dims[1];
    shape->out_channels = w->dims[0];
    r->shape = shape;
    return GRT_OK;
}

static bool fit_matmul(const grt_reshape *r, const grt_integer_places *at, grt_integer_matmul *s)
{
    const grt_tensor *a = r->in[0], *b = r->in[at->b];
    if (a->rank < 1 || b->rank < 1)
        return false;
    s->m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    s->k = a->dims[a->rank - 1];
    s->n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    const int32_t lead_a = a->rank > 1 ? a->rank - 2 : 0, lead_b = b->rank > 1 ? b->rank - 2 : 0;
    if (b->dims[lead_b] != s->k || !grt_dims_broadcast(a->dims, lead_a, b->dims, lead_b, s->dims, &s->lead))
        return false;
    grt_broadcast_strides(a->dims, lead_a, s->lead, s->a);
    grt_broadcast_strides(b->dims, lead_b, s->lead, s->b);
    s->batch = grt_dims_product(s->dims, 0, s->lead);
    const int64_t rows = grt_dims_product(a->dims, 0, lead_a) * s->m,
                  columns = grt_dims_product(b->dims, 0, lead_b) * s->n;
    return counts(r, at->zero_a, s->m, rows) && counts(r, at->scale_a, s->m, rows) &&
           counts(r, at->zero_b, s->n, columns) && counts(r, at->scale_b, s->n, columns) &&
           counts(r, at->zero_y, s->m, s->batch * s->m) && counts(r, at->scale_y, s->m, s->batch * s->m) &&
           grt_tensor_elements(r->out[0]) == s->batch * s->m * s->n;
}

grt_status grt_integer_matmul_reshape(grt_reshape *r)
{
    grt_integer_matmul *shape = calloc(1, sizeof *shape);
    if (!shape)
        return grt_fail_memory(sizeof *shape);
    if (!fit_matmul(r, grt_integer_places_of(r->desc), shape)) {
        free(shape);
        return integer_misfit(r);
    }
    r->shape = shape;
    return GRT_OK;
}

bool grt_qlinear_supports(const grt_kernel_node *node, grt_text *why)
{
    static const grt_dtype_set bytes = GRT_SET_BYTES,
                               scales = GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16);
    const grt_dtype_set want[] = {bytes, scales, bytes, bytes, scales, bytes, scales, bytes, GRT_BIT(INT32)};
    for (int32_t i = 0; i < node->n_in && i < 9; i++)
        if (grt_node_has(node, i) && !grt_dtype_in(node->in[i].dtype, want[i])) {
            grt_text_add(why,
                         "input %d is %s; supported are int8 and uint8 data, zero points of these types, "
                         "float scales",
                         i, grt_dtype_name(node->in[i].dtype));
            return false;
        }
    return true;
}
