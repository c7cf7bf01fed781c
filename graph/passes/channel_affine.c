/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/channel_affine.h"
#include "graph/passes/rewrite.h"
#include "src/base/float.h"

#include <math.h>

bool channel_affine_store(const grt_tensor *t, int64_t i, double value)
{
    switch (t->dtype) {
    case GRT_DTYPE_FLOAT:
        ((float *)t->data)[i] = (float)value;
        return true;
    case GRT_DTYPE_DOUBLE:
        ((double *)t->data)[i] = value;
        return true;
    case GRT_DTYPE_FLOAT16:
        ((uint16_t *)t->data)[i] = grt_float_to_half((float)value);
        return true;
    case GRT_DTYPE_BFLOAT16:
        ((uint16_t *)t->data)[i] = grt_float_to_bfloat16((float)value);
        return true;
    default:
        return false;
    }
}

bool channel_affine_init(channel_affine *a, grt_arena *arena, int64_t n)
{
    a->n = n;
    a->scale = GRT_ARENA_ARRAY(arena, double, n);
    a->shift = GRT_ARENA_ARRAY(arena, double, n);
    for (int64_t i = 0; a->scale && i < n; i++)
        a->scale[i] = 1;
    return a->scale && a->shift;
}

static const grt_tensor *channel_affine_parameter(const ir_value *value, int64_t n)
{
    const grt_tensor *t = value ? value->type.data : NULL;
    return t && t->rank == 1 && t->dims[0] == n && grt_dtype_in(t->dtype, GRT_SET_FLOATS) ? t : NULL;
}

bool channel_affine_read_norm(const ir_node *node, channel_affine *a, grt_arena *arena, int64_t n)
{
    const grt_tensor *p[4];
    if (!rewrite_is(node, "BatchNormalization") || grt_attr_int(&node->desc, "training_mode", 0) ||
        node->n_in != 5)
        return false;
    for (int32_t i = 1; i < node->n_out; i++)
        if (node->out[i] && node->out[i]->n_uses)
            return false;
    for (int i = 0; i < 4; i++)
        if (!(p[i] = channel_affine_parameter(ir_in(node, 1 + i), n)))
            return false;
    if (!channel_affine_init(a, arena, n))
        return false;
    double epsilon = (double)grt_attr_float(&node->desc, "epsilon", 1e-5f);
    for (int64_t i = 0; i < n; i++) {
        a->scale[i] = grt_tensor_double(p[0], i) / sqrt(grt_tensor_double(p[3], i) + epsilon);
        a->shift[i] = grt_tensor_double(p[1], i) - grt_tensor_double(p[2], i) * a->scale[i];
    }
    a->scales = a->shifts = true;
    return true;
}

/* A constant that varies over those dims only. */
static bool channel_affine_varies(const grt_tensor *t, const channel_place *m)
{
    const int32_t rank = m->value->type.rank;
    if (!t || !grt_dtype_in(t->dtype, GRT_SET_FLOATS) || t->rank > rank)
        return false;
    for (int32_t i = 0; i < t->rank; i++) {
        const int32_t k = i + rank - t->rank - m->channel;
        if (t->dims[i] != 1 && (k < 0 || k >= m->n_dims || t->dims[i] != m->sizes[k]))
            return false;
    }
    return true;
}

/* Its element for channel c. */
static double channel_affine_element(const grt_tensor *t, const channel_place *m, int64_t c)
{
    int64_t at = 0, stride = 1;
    for (int32_t k = m->n_dims - 1; k >= 0; c /= m->sizes[k--]) {
        const int32_t i = m->channel + k - (m->value->type.rank - t->rank);
        if (i < 0 || t->dims[i] == 1)
            continue;
        at += c % m->sizes[k] * stride;
        stride *= t->dims[i];
    }
    return grt_tensor_double(t, at);
}

bool channel_affine_read_arithmetic(const ir_node *node, const channel_place *m, channel_affine *a,
                                    grt_arena *arena, int64_t n)
{
    bool add = rewrite_is(node, "Add"), sub = rewrite_is(node, "Sub"), mul = rewrite_is(node, "Mul");
    if (!add && !sub && !mul && !rewrite_is(node, "Div"))
        return false;
    int32_t at = ir_in(node, 0) == m->value ? 1 : 0;
    const ir_value *value = ir_in(node, at);
    const grt_tensor *t = value ? value->type.data : NULL;
    if (!channel_affine_varies(t, m) || (at == 0 && !add && !mul) || !channel_affine_init(a, arena, n))
        return false;
    for (int64_t i = 0; i < n; i++) {
        double v = channel_affine_element(t, m, i);
        if (add || sub)
            a->shift[i] = add ? v : -v;
        else
            a->scale[i] = mul ? v : 1 / v;
        if (!isfinite(a->scale[i]) || !isfinite(a->shift[i]))
            return false; /* what it does to zeros and infinities must stay */
    }
    a->shifts = add || sub;
    a->scales = !a->shifts;
    return true;
}
