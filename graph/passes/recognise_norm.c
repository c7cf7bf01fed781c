/* SPDX-License-Identifier: Apache-2.0 */
/* RMS and layer normalisation that are written out, over the last dim or over channels. */
#include "graph/passes/recognise.h"
#include "graph/ir/constant.h"

#include <string.h>

enum { CHANNELS = 1 };

/* Input of a mean over one dim, with that dim kept. */
static ir_value *mean_over(const ir_value *value, int32_t *out_axis)
{
    ir_node *mean = rewrite_producer(value, "ReduceMean");
    const int64_t *axes;
    int64_t n;
    if (!mean || !grt_attr_int(&mean->desc, "keepdims", 1) || !ir_const_ints(ir_in(mean, 1), &axes, &n) ||
        n != 1)
        return NULL;
    ir_value *x = ir_in(mean, 0);
    *out_axis = x->type.rank >= 1 ? (int32_t)grt_axis(axes[0], x->type.rank) : -1;
    return *out_axis >= 0 ? x : NULL;
}

/* x, if the value is mean(x * x), over one dim. */
static ir_value *mean_square(const ir_value *value, int32_t *out_axis)
{
    ir_value *square = ir_is_inner(value) ? mean_over(value, out_axis) : NULL;
    ir_node *mul = square && ir_is_inner(square) ? rewrite_producer(square, "Mul") : NULL;
    return mul && ir_in(mul, 0) == ir_in(mul, 1) ? ir_in(mul, 0) : NULL;
}

/* x, if the value is sqrt(mean(x * x) + epsilon), the mean being over one dim. Where nothing is added,
 * epsilon is 0. */
static ir_value *root_mean_square(ir_value *value, double *out_epsilon, int32_t *out_axis)
{
    ir_value *sum = value ? recognise_input_of(value, "Sqrt") : NULL;
    ir_node *add = sum && ir_is_inner(sum) ? rewrite_producer(sum, "Add") : NULL;
    if (sum && !add) {
        *out_epsilon = 0;
        return mean_square(sum, out_axis);
    }
    for (int32_t i = 0; add && i < 2; i++) {
        ir_value *x =
            ir_const_float(ir_in(add, i), out_epsilon) ? mean_square(ir_in(add, 1 - i), out_axis) : NULL;
        if (x)
            return x;
    }
    return NULL;
}

/* x, if the node is x / rms(x), by division or by the reciprocal. */
static ir_value *normalised_over(const ir_node *node, double *out_epsilon, int32_t *out_axis)
{
    if (rewrite_is(node, "Div") && ir_in(node, 0))
        return root_mean_square(ir_in(node, 1), out_epsilon, out_axis) == ir_in(node, 0) ? ir_in(node, 0)
                                                                                         : NULL;
    for (int32_t i = 0; i < 2 && rewrite_is(node, "Mul"); i++) {
        ir_value *root =
            ir_is_inner(ir_in(node, i)) ? recognise_input_of(ir_in(node, i), "Reciprocal") : NULL;
        if (root && root_mean_square(root, out_epsilon, out_axis) == ir_in(node, 1 - i))
            return ir_in(node, 1 - i);
    }
    return NULL;
}

/* The same over the last dim. */
static ir_value *normalised(const ir_node *node, double *out_epsilon)
{
    int32_t axis;
    ir_value *x = normalised_over(node, out_epsilon, &axis);
    return x && axis == x->type.rank - 1 ? x : NULL;
}

static bool is_last_dim_vector(const ir_value *value, const ir_type *of)
{
    return value && value->type.rank == 1 && of->rank >= 1 && value->type.dims[0] == of->dims[of->rank - 1];
}

/* Where d is x - mean(x), over that dim: x. */
static ir_value *centred(const ir_value *d, int32_t axis)
{
    int32_t found;
    ir_node *sub = rewrite_producer(d, "Sub");
    ir_value *x = sub ? ir_in(sub, 0) : NULL;
    return x && ir_in(sub, 1) && ir_in(sub, 1)->n_uses == 1 && mean_over(ir_in(sub, 1), &found) == x &&
                   found == axis
               ? x
               : NULL;
}

/* A constant of one number for each channel of `of`, as a vector; NULL if the value is none. */
static ir_value *channel_vector(const ir_value *value, const ir_type *of)
{
    const grt_tensor *t = value ? value->type.data : NULL;
    const int32_t at = t ? CHANNELS - (of->rank - t->rank) : -1;
    if (!t || at < 0 || t->dims[at] != grt_tensor_elements(t) || value->type.dims[at] != of->dims[CHANNELS])
        return NULL;
    grt_tensor *vector = ir_constant_create(value->graph->module, t->dtype, 1, &t->dims[at]);
    if (!vector)
        return NULL;
    memcpy(vector->data, t->data, grt_tensor_bytes(t));
    return ir_constant(value->graph, NULL, vector);
}

/* Channels become the last dim, or come back. */
static ir_value *channels_moved(ir_node *before, ir_value *x, bool last)
{
    int64_t order[GRT_MAX_RANK];
    const int32_t rank = x->type.rank;
    for (int32_t k = 0; k < rank; k++)
        order[k] = k == 0 ? 0 : last ? (k == rank - 1 ? CHANNELS : k + 1) : k == CHANNELS ? rank - 1 : k - 1;
    ir_node *node = ir_node_create(before->graph, before, "", "Transpose", before->desc.name, 1, &x, 1);
    if (!node)
        return NULL;
    ir_attr_set_ints(node, "perm", order, (size_t)rank);
    return op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

/* Over the channels of images, as of models of pictures that write it out: between transposes, which `layout`
 * and `moves` take away where convolutions have channels last, too. */
static bool put_channel_norm(pass_context *context, ir_node *node, ir_value *x, const ir_value *scale,
                             const ir_value *bias, double epsilon)
{
    ir_value *in[3] = {NULL, channel_vector(scale, &x->type), channel_vector(bias, &x->type)};
    if (!in[1] || !in[2] || !(in[0] = channels_moved(node, x, true)))
        return false;
    ir_node *made = ir_node_create(node->graph, node, "", "LayerNormalization", node->desc.name, 3, in, 1);
    if (!made)
        return false;
    ir_attr_set_float(made, "epsilon", (float)epsilon);
    ir_value *back = op_infer_node(made) == GRT_OK && rewrite_supported(context, made, NULL)
                         ? channels_moved(node, made->out[0], false)
                         : NULL;
    return back && recognise_put(context, node, back->producer);
}

/* w, if the value is w / sqrt(mean(d * d) + epsilon), by division or by the reciprocal; then *out_d is d. */
static ir_value *scale_by_root(const ir_value *value, ir_value **out_d, double *out_epsilon,
                               int32_t *out_axis)
{
    ir_node *mul = rewrite_producer(value, "Mul"), *div = rewrite_producer(value, "Div");
    if (div && (*out_d = root_mean_square(ir_in(div, 1), out_epsilon, out_axis)))
        return ir_in(div, 0);
    for (int32_t i = 0; mul && i < 2; i++) {
        ir_value *root = ir_is_inner(ir_in(mul, i)) ? recognise_input_of(ir_in(mul, i), "Reciprocal") : NULL;
        if (root && (*out_d = root_mean_square(root, out_epsilon, out_axis)))
            return ir_in(mul, 1 - i);
    }
    return NULL;
}

/* x * s + (bias - mean(x) * s), s = scale / rms(x - mean(x)), as TensorFlow writes it: the parts of a layer
 * norm over the last dim, of which each is used here alone. */
static bool shifted_norm(ir_node *node, int32_t i, ir_value **in, double *out_epsilon)
{
    ir_node *mul = ir_is_inner(ir_in(node, i)) ? rewrite_producer(ir_in(node, i), "Mul") : NULL;
    ir_node *sub = ir_is_inner(ir_in(node, 1 - i)) ? rewrite_producer(ir_in(node, 1 - i), "Sub") : NULL;
    ir_node *moved = sub && ir_is_inner(ir_in(sub, 1)) ? rewrite_producer(ir_in(sub, 1), "Mul") : NULL;
    for (int32_t k = 0; mul && moved && k < 4; k++) {
        ir_value *x = ir_in(mul, k & 1), *s = ir_in(mul, !(k & 1)), *mean = ir_in(moved, k >> 1), *d = NULL;
        int32_t axis, of_mean;
        if (ir_in(moved, !(k >> 1)) != s || s->n_uses != 2 || mean->n_uses != 2 ||
            mean_over(mean, &of_mean) != x)
            continue;
        in[0] = x;
        in[1] = scale_by_root(s, &d, out_epsilon, &axis);
        in[2] = ir_in(sub, 0);
        ir_node *centre = in[1] ? rewrite_producer(d, "Sub") : NULL;
        return centre && d->n_uses == 2 && ir_in(centre, 0) == x && ir_in(centre, 1) == mean &&
               axis == of_mean && axis == x->type.rank - 1 && is_last_dim_vector(in[1], &x->type) &&
               is_last_dim_vector(in[2], &x->type);
    }
    return false;
}

static bool recognise_shifted_norm(pass_context *context, ir_node *node)
{
    ir_value *in[3];
    double epsilon;
    if (!shifted_norm(node, 0, in, &epsilon) && !shifted_norm(node, 1, in, &epsilon))
        return false;
    ir_node *made = ir_node_create(node->graph, node, "", "LayerNormalization", node->desc.name, 3, in, 1);
    if (made)
        ir_attr_set_float(made, "epsilon", (float)epsilon);
    return recognise_put(context, node, made);
}

bool recognise_layer_norm(pass_context *context, ir_node *node)
{
    if (!rewrite_is(node, "Add"))
        return false;
    if (recognise_shifted_norm(context, node))
        return true;
    for (int32_t i = 0; i < 2; i++) {
        ir_node *mul = ir_is_inner(ir_in(node, i)) ? rewrite_producer(ir_in(node, i), "Mul") : NULL;
        ir_value *bias = ir_in(node, 1 - i);
        for (int32_t k = 0; mul && k < 2; k++) {
            double epsilon;
            int32_t axis;
            ir_value *scale = ir_in(mul, 1 - k), *unit = ir_in(mul, k);
            ir_value *d = ir_is_inner(unit) ? normalised_over(unit->producer, &epsilon, &axis) : NULL;
            ir_value *x =
                d && d->n_uses == 3 ? centred(d, axis) : NULL; /* twice in its square, once divided */
            if (x && axis == CHANNELS && x->type.rank > 2)
                return put_channel_norm(context, node, x, scale, bias, epsilon);
            if (!x || axis != x->type.rank - 1 || !is_last_dim_vector(scale, &x->type) ||
                !is_last_dim_vector(bias, &x->type))
                continue;
            ir_node *made = ir_node_create(node->graph, node, "", "LayerNormalization", node->desc.name, 3,
                                           (ir_value *[]){x, scale, bias}, 1);
            if (made)
                ir_attr_set_float(made, "epsilon", (float)epsilon);
            return recognise_put(context, node, made);
        }
    }
    return false;
}

/* x / rms(x), where it may be computed in float32 between two casts, as models of 16-bit floats do. In a
 * model that is narrowed to that type x may be float32 in the file: then *out_narrows. */
static ir_value *normalised_wide(const pass_context *context, ir_value *unit, double *out_epsilon,
                                 bool *out_narrows)
{
    ir_node *narrow = ir_is_inner(unit) ? rewrite_producer(unit, "Cast") : NULL;
    ir_value *wide = narrow ? ir_in(narrow, 0) : unit;
    ir_value *x = ir_is_inner(wide) ? normalised(wide->producer, out_epsilon) : NULL;
    *out_narrows = false;
    if (!x || !narrow)
        return x;
    ir_node *widen = x->type.dtype == GRT_DTYPE_FLOAT ? rewrite_producer(x, "Cast") : NULL;
    ir_value *from = widen ? ir_in(widen, 0) : NULL;
    if (from && from->type.dtype == unit->type.dtype)
        return from;
    *out_narrows = x->type.dtype == GRT_DTYPE_FLOAT && unit->type.dtype == GRT_DTYPE_FLOAT16 &&
                   context->precision == GRT_PRECISION_FLOAT16;
    return *out_narrows ? x : NULL;
}

static ir_value *recognise_narrowed(ir_node *before, ir_value *x, grt_dtype dtype)
{
    ir_node *cast = ir_node_create(before->graph, before, "", "Cast", before->desc.name, 1, &x, 1);
    if (!cast)
        return NULL;
    ir_attr_set_int(cast, "to", dtype);
    return op_infer_node(cast) == GRT_OK ? cast->out[0] : NULL;
}

bool recognise_rms_norm(pass_context *context, ir_node *node)
{
    for (int32_t i = 0; i < 2; i++) {
        double epsilon;
        bool narrows;
        ir_value *unit = ir_in(node, i), *scale = ir_in(node, 1 - i);
        ir_value *x = unit ? normalised_wide(context, unit, &epsilon, &narrows) : NULL;
        if (!x || !is_last_dim_vector(scale, &x->type) ||
            scale->type.dtype != (narrows ? unit->type.dtype : x->type.dtype))
            continue;
        ir_value *whole = x->n_uses == 3 && !narrows ? centred(x, x->type.rank - 1)
                                                     : NULL; /* twice in its square, once divided */
        ir_value *read = narrows ? recognise_narrowed(node, x, unit->type.dtype) : whole ? whole : x;
        ir_node *made =
            read ? ir_node_create(node->graph, node, "", whole ? "LayerNormalization" : "RMSNormalization",
                                  node->desc.name, 2, (ir_value *[]){read, scale}, 1)
                 : NULL;
        if (made)
            ir_attr_set_float(made, "epsilon", (float)epsilon);
        return recognise_put(context, node, made); /* a cast that nobody reads is removed by `dce` */
    }
    return false;
}

/* The Clip from below, by *out_least, that makes the value, where it is written for each column or once. */
static const ir_node *recognise_bound(const ir_value *value, double *out_least)
{
    const ir_node *expand = value ? rewrite_producer(value, "Expand") : NULL;
    const ir_node *clip = rewrite_producer(expand ? ir_in(expand, 0) : value, "Clip");
    return clip && ir_const_float(ir_in(clip, 1), out_least) && !ir_in(clip, 2) ? clip : NULL;
}

bool recognise_unit_rows(pass_context *context, ir_node *node)
{
    const double least = 5.9e-8;
    double e;
    ir_value *x = ir_in(node, 0);
    const ir_node *clip = rewrite_is(node, "Div") ? recognise_bound(ir_in(node, 1), &e) : NULL;
    const ir_node *norm = clip ? rewrite_producer(ir_in(clip, 0), "ReduceL2") : NULL;
    const int64_t *axes;
    int64_t n;
    if (!norm || e <= 0 || e > least || ir_in(norm, 0) != x || context->precision != GRT_PRECISION_FLOAT16 ||
        !context->target->traits->half_floats || !grt_attr_int(&norm->desc, "keepdims", 1) ||
        !ir_const_ints(ir_in(norm, 1), &axes, &n) || n != 1)
        return false;
    ir_node *made = recognise_unary(node, "LpNormalization", x);
    if (made)
        ir_attr_set_int(made, "axis", grt_axis(axes[0], x->type.rank));
    return recognise_put(context, node, made);
}
