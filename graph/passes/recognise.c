/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises exported decompositions of GELU, SiLU, HardSwish, RMS, layer and group normalisation, where the
 * target has a kernel for the fused op, and products of rows that an optimiser has flattened. A pattern is
 * matched from its last node; what it covers must not be used elsewhere. */
#include "graph/passes/rewrite.h"
#include "graph/ir/constant.h"

#include <math.h>
#include <string.h>

/* ---- products ---- */

/* constant * x[0] * x[1] ..., as Mul and Div by constants write it, through nodes that only serve this
 * product. */
enum { MAX_FACTORS = 4 };
typedef struct product {
    double constant;
    int32_t n;
    ir_value *x[MAX_FACTORS];
} product;

static bool collect_factors(ir_value *value, bool root, product *p)
{
    double c;
    ir_node *node = value->producer;
    if (ir_const_float(value, &c)) {
        p->constant *= c;
        return true;
    }
    if (node && (root || ir_is_inner(value)) && rewrite_is(node, "Mul") && ir_in(node, 0) != ir_in(node, 1))
        return collect_factors(ir_in(node, 0), false, p) && collect_factors(ir_in(node, 1), false, p);
    if (node && (root || ir_is_inner(value)) && rewrite_is(node, "Mul") && ir_in(node, 0) == ir_in(node, 1) &&
        p->n + 2 <= MAX_FACTORS) {
        p->x[p->n++] = ir_in(node, 0);
        p->x[p->n++] = ir_in(node, 0);
        return true;
    }
    if (node && (root || ir_is_inner(value)) && rewrite_is(node, "Div") &&
        ir_const_float(ir_in(node, 1), &c)) {
        p->constant /= c;
        return collect_factors(ir_in(node, 0), false, p);
    }
    if (p->n == MAX_FACTORS)
        return false;
    p->x[p->n++] = value;
    return true;
}

static bool factors_of(ir_value *value, product *p)
{
    *p = (product){.constant = 1};
    return value && collect_factors(value, true, p);
}

static bool is_near(double found, double expected)
{
    return fabs(found - expected) <= 1e-4 * fabs(expected);
}

/* x of Add(x, c) or Add(c, x); NULL otherwise. */
static ir_value *plus_constant(const ir_value *value, double expected)
{
    double c;
    ir_node *add = rewrite_producer(value, "Add");
    if (!add || !ir_is_inner(value))
        return NULL;
    for (int32_t i = 0; i < 2; i++)
        if (ir_const_float(ir_in(add, i), &c) && is_near(c, expected))
            return ir_in(add, 1 - i);
    return NULL;
}

/* The input of `op` if that makes the value and only serves here. */
static ir_value *recognise_input_of(const ir_value *value, const char *op)
{
    ir_node *node = ir_is_inner(value) ? rewrite_producer(value, op) : NULL;
    return node ? ir_in(node, 0) : NULL;
}

/* ---- replacing ---- */

/* Replaces the pattern that ends in `node` by `made`. The covered nodes are dead then. */
static bool recognise_put(pass_context *context, ir_node *node, ir_node *made)
{
    if (!made)
        return false;
    if (op_infer_node(made) != GRT_OK || !rewrite_same_shape(&made->out[0]->type, &node->out[0]->type) ||
        made->out[0]->type.dtype != node->out[0]->type.dtype || !rewrite_supported(context, made, NULL) ||
        !rewrite_take_over(node->out[0], made->out[0])) {
        ir_node_remove(made);
        return false;
    }
    ir_node_remove(node);
    context->changed++;
    return true;
}

static ir_node *unary(ir_node *node, const char *op, ir_value *x)
{
    return ir_node_create(node->graph, node, "", op, node->desc.name, 1, &x, 1);
}

/* ---- activations ---- */

/* Two factors: x, and a value made of x by `op`. */
static bool self_times(const product *p, const char *op, ir_value **out_x, ir_value **out_inner)
{
    for (int32_t i = 0; i < 2 && p->n == 2; i++) {
        *out_x = p->x[i];
        *out_inner = recognise_input_of(p->x[1 - i], op);
        if (*out_inner)
            return true;
    }
    return false;
}

/* x * sigmoid(alpha * x) */
static bool find_swish(pass_context *context, ir_node *node, const product *p)
{
    ir_value *x, *inner;
    product scaled;
    if (p->constant != 1 || !self_times(p, "Sigmoid", &x, &inner) || !factors_of(inner, &scaled))
        return false;
    bool plain = inner == x;
    if (!plain && (scaled.n != 1 || scaled.x[0] != x || !ir_is_inner(inner)))
        return false;
    ir_node *made = unary(node, "Swish", x);
    if (made)
        ir_attr_set_float(made, "alpha", plain ? 1 : (float)scaled.constant);
    return recognise_put(context, node, made);
}

/* x * hardsigmoid(x) with the slope and offset of hardswish */
static bool find_hard_swish(pass_context *context, ir_node *node, const product *p)
{
    ir_value *x, *inner;
    if (p->constant != 1 || !self_times(p, "HardSigmoid", &x, &inner) || inner != x)
        return false;
    const ir_node *sigmoid = p->x[0] == x ? p->x[1]->producer : p->x[0]->producer;
    if (!is_near((double)grt_attr_float(&sigmoid->desc, "alpha", 0.2f), 1.0 / 6) ||
        !is_near((double)grt_attr_float(&sigmoid->desc, "beta", 0.5f), 0.5))
        return false;
    return recognise_put(context, node, unary(node, "HardSwish", x));
}

/* erf's argument: x / sqrt(2) */
static bool is_erf_argument(ir_value *value, const ir_value *x)
{
    product p;
    return factors_of(value, &p) && p.n == 1 && p.x[0] == x && is_near(p.constant, 0.70710678);
}

/* tanh's argument: sqrt(2 / pi) * (x + 0.044715 x^3), or with x taken out */
static bool is_tanh_argument(ir_value *value, const ir_value *x)
{
    product p, cube;
    if (!factors_of(value, &p) || !is_near(p.constant, 0.79788456))
        return false;
    if (p.n == 2) { /* x * (1 + 0.044715 x^2) */
        for (int32_t i = 0; i < 2; i++) {
            ir_value *square = plus_constant(p.x[1 - i], 1);
            if (p.x[i] == x && square && factors_of(square, &cube) && cube.n == 2 && cube.x[0] == x &&
                cube.x[1] == x)
                return is_near(cube.constant, 0.044715);
        }
        return false;
    }
    ir_node *add = p.n == 1 && ir_is_inner(p.x[0]) ? rewrite_producer(p.x[0], "Add") : NULL;
    for (int32_t i = 0; add && i < 2; i++)
        if (ir_in(add, i) == x && factors_of(ir_in(add, 1 - i), &cube) && cube.n == 3 && cube.x[0] == x &&
            cube.x[1] == x && cube.x[2] == x)
            return is_near(cube.constant, 0.044715);
    return false;
}

/* 0.5 * x * (1 + f(x)) with f the error function, or tanh of a polynomial */
static bool find_gelu(pass_context *context, ir_node *node, const product *p)
{
    for (int32_t i = 0; i < 2 && p->n == 2 && is_near(p->constant, 0.5); i++) {
        ir_value *x = p->x[i], *f = plus_constant(p->x[1 - i], 1);
        ir_value *erf = f ? recognise_input_of(f, "Erf") : NULL,
                 *tanh = f ? recognise_input_of(f, "Tanh") : NULL;
        bool exact = erf && is_erf_argument(erf, x);
        if (!exact && !(tanh && is_tanh_argument(tanh, x)))
            continue;
        ir_node *made = unary(node, "Gelu", x);
        if (made)
            ir_attr_set_string(made, "approximate", exact ? "none" : "tanh");
        return recognise_put(context, node, made);
    }
    return false;
}

/* ---- normalisation over the last dim, or over channels ---- */

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

/* x, if the value is sqrt(mean(x * x) + epsilon), the mean being over one dim. */
static ir_value *root_mean_square(ir_value *value, double *out_epsilon, int32_t *out_axis)
{
    ir_value *sum = value ? recognise_input_of(value, "Sqrt") : NULL;
    ir_node *add = sum && ir_is_inner(sum) ? rewrite_producer(sum, "Add") : NULL;
    for (int32_t i = 0; add && i < 2; i++) {
        const ir_value *mean = ir_in(add, 1 - i);
        ir_value *square = ir_const_float(ir_in(add, i), out_epsilon) && ir_is_inner(mean)
                               ? mean_over(mean, out_axis)
                               : NULL;
        ir_node *mul = ir_is_inner(square) ? rewrite_producer(square, "Mul") : NULL;
        if (mul && ir_in(mul, 0) == ir_in(mul, 1))
            return ir_in(mul, 0);
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

/* (x - mean) / sqrt(var + eps) * w + b, from its Add */
static bool find_layer_norm(pass_context *context, ir_node *node)
{
    if (!rewrite_is(node, "Add"))
        return false;
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

/* x / rms(x) * w, from its last Mul; layer normalisation without a bias if x is y - mean(y). */
static bool find_rms_norm(pass_context *context, ir_node *node)
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

/* x / max(norm(x), e) over one axis, as float16 that is to come. It knows no norm between zero and 5.9e-8: e
 * below divides zeros alone, and rows may be divided by their norms wherever those are not zero. */
static bool find_unit_rows(pass_context *context, ir_node *node)
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
    ir_node *made = unary(node, "LpNormalization", x);
    if (made)
        ir_attr_set_int(made, "axis", grt_axis(axes[0], x->type.rank));
    return recognise_put(context, node, made);
}

/* ---- group normalisation ---- */

static const float *recognise_constant_floats(const ir_value *value)
{
    const grt_tensor *t = value ? value->type.data : NULL;
    return t && t->dtype == GRT_DTYPE_FLOAT ? t->data : NULL;
}

/* n floats of a new constant, to be filled; NULL if that cannot be. */
static ir_value *new_floats(ir_graph *graph, int64_t n, float **out)
{
    grt_tensor *t = ir_constant_create(graph->module, GRT_DTYPE_FLOAT, 1, &n);
    if (!t)
        return NULL;
    *out = t->data;
    return ir_constant(graph, NULL, t);
}

static bool is_constant_dim(const ir_node *node, grt_dim dim, int64_t *out)
{
    return grt_dim_is_const(node->graph->module->dims, dim, out) && *out > 0;
}

/* Groups of channels seen as channels: Reshape to [N, groups, ...], InstanceNormalization, Reshape back. */
static bool find_group_norm(pass_context *context, ir_node *node)
{
    ir_value *unit = rewrite_is(node, "Reshape") ? ir_in(node, 0) : NULL;
    ir_node *norm = ir_is_inner(unit) ? rewrite_producer(unit, "InstanceNormalization") : NULL;
    ir_value *x = norm ? recognise_input_of(ir_in(norm, 0), "Reshape") : NULL;
    const float *scale = norm ? recognise_constant_floats(ir_in(norm, 1)) : NULL,
                *bias = norm ? recognise_constant_floats(ir_in(norm, 2)) : NULL;
    int64_t groups, channels;
    if (!x || !scale || !bias || x->type.rank < 3 || x->type.dtype != GRT_DTYPE_FLOAT ||
        unit->type.rank < 3 || x->type.dims[0] != unit->type.dims[0] ||
        !rewrite_same_shape(&x->type, &node->out[0]->type) ||
        !is_constant_dim(node, unit->type.dims[1], &groups) ||
        !is_constant_dim(node, x->type.dims[1], &channels) || channels % groups)
        return false;
    float *wide_scale, *wide_bias;
    ir_value *in[] = {x, new_floats(node->graph, channels, &wide_scale),
                      new_floats(node->graph, channels, &wide_bias)};
    if (!in[1] || !in[2])
        return false;
    for (int64_t c = 0; c < channels; c++) {
        wide_scale[c] = scale[c / (channels / groups)];
        wide_bias[c] = bias[c / (channels / groups)];
    }
    ir_node *made = ir_node_create(node->graph, node, "", "GroupNormalization", node->desc.name, 3, in, 1);
    if (made) {
        ir_attr_set_int(made, "num_groups", groups);
        ir_attr_set_float(made, "epsilon", grt_attr_float(&norm->desc, "epsilon", 1e-5f));
    }
    return recognise_put(context, node, made);
}

/* A constant that has one value for each channel (dim 1) of `type`. */
static const float *recognise_per_channel(const ir_node *node, const ir_value *value, const ir_type *type,
                                          int64_t channels)
{
    const float *v = recognise_constant_floats(value);
    const int32_t rank = v ? value->type.rank : -1, at = rank - (type->rank - 1);
    for (int32_t i = 0; i < rank; i++)
        if (!grt_dim_equals(node->graph->module->dims, value->type.dims[i], i == at ? channels : 1))
            return NULL;
    return at == 0 || at == 1 ? v : NULL;
}

/* What multiplies the channels of a group normalisation, or is added to them, joins its scale and bias. */
static bool widen_group_norm(pass_context *context, ir_node *node)
{
    const bool mul = rewrite_is(node, "Mul");
    for (int32_t i = 0; i < 2 && (mul || rewrite_is(node, "Add")); i++) {
        ir_value *unit = ir_in(node, i);
        ir_node *norm = ir_is_inner(unit) ? rewrite_producer(unit, "GroupNormalization") : NULL;
        const float *scale = norm ? recognise_constant_floats(ir_in(norm, 1)) : NULL,
                    *bias = norm ? recognise_constant_floats(ir_in(norm, 2)) : NULL;
        int64_t channels;
        if (!scale || !bias || unit->type.rank < 3 || !is_constant_dim(node, unit->type.dims[1], &channels))
            continue;
        const float *factor = recognise_per_channel(node, ir_in(node, 1 - i), &unit->type, channels);
        float *new_scale, *new_bias;
        ir_value *in[] = {ir_in(norm, 0), new_floats(node->graph, channels, &new_scale),
                          new_floats(node->graph, channels, &new_bias)};
        if (!factor || !in[1] || !in[2])
            continue;
        for (int64_t c = 0; c < channels; c++) {
            new_scale[c] = mul ? scale[c] * factor[c] : scale[c];
            new_bias[c] = mul ? bias[c] * factor[c] : bias[c] + factor[c];
        }
        ir_node *made =
            ir_node_create(node->graph, node, "", "GroupNormalization", node->desc.name, 3, in, 1);
        if (made)
            ir_attrs_copy(made, norm);
        return recognise_put(context, node, made);
    }
    return false;
}

/* ---- products of rows ---- */

/* Gemm that is no more than x W (+ b). */
static bool recognise_is_plain_gemm(const ir_node *node)
{
    const ir_value *bias = ir_in(node, 2);
    return rewrite_is(node, "Gemm") && !grt_attr_int(&node->desc, "transA", 0) &&
           !grt_attr_int(&node->desc, "transB", 0) && grt_attr_float(&node->desc, "alpha", 1.0f) == 1.0f &&
           grt_attr_float(&node->desc, "beta", 1.0f) == 1.0f && (!bias || bias->type.rank == 1);
}

/* A Gemm whose rows get more dims behind it, where an Add reads them, as ONNX Runtime's MatMulAddFusion
 * leaves it: the rows get them in front, so that the Add can join the product. */
static void find_product_of_rows(pass_context *context, ir_node *node)
{
    const ir_type *out = &node->out[0]->type;
    ir_node *gemm =
        rewrite_is(node, "Reshape") && ir_is_inner(ir_in(node, 0)) ? ir_in(node, 0)->producer : NULL;
    const ir_node *user = rewrite_only_user(node->out[0]);
    grt_dim dims[GRT_MAX_RANK];
    if (!gemm || !recognise_is_plain_gemm(gemm) || !rewrite_is(user, "Add") || out->rank < 3 ||
        gemm->out[0]->type.rank != 2 || ir_in(gemm, 0)->type.rank != 2 ||
        out->dims[out->rank - 1] != gemm->out[0]->type.dims[1])
        return;
    for (int32_t i = 0; i < out->rank - 1; i++)
        dims[i] = out->dims[i];
    dims[out->rank - 1] = ir_in(gemm, 0)->type.dims[1];
    ir_value *in[] = {rewrite_reshaped(node, ir_in(gemm, 0), out->rank, dims), ir_in(gemm, 1)};
    ir_node *made = in[0] ? ir_node_create(node->graph, node, "", "MatMul", gemm->desc.name, 2, in, 1) : NULL;
    if (made && ir_in(gemm, 2) && op_infer_node(made) == GRT_OK)
        made = ir_node_create(node->graph, node, "", "Add", gemm->desc.name, 2,
                              (ir_value *[]){made->out[0], ir_in(gemm, 2)}, 1);
    recognise_put(context, node, made);
}

/* ---- the sweep ---- */

static void recognise_look(pass_context *context, ir_node *node)
{
    product p;
    if (find_group_norm(context, node) || widen_group_norm(context, node) || find_unit_rows(context, node) ||
        !rewrite_is(node, "Mul"))
        return;
    if (factors_of(node->out[0], &p) &&
        (find_gelu(context, node, &p) || find_swish(context, node, &p) || find_hard_swish(context, node, &p)))
        return;
    find_rms_norm(context, node);
}

/* A node that makes floats which somebody uses: what a pattern covered is dead. */
static bool is_live_float(const ir_node *node)
{
    return node->n_out && node->out[0] && node->out[0]->n_uses &&
           grt_dtype_in(node->out[0]->type.dtype, GRT_SET_FLOATS);
}

/* Layer normalisation first: it holds what looks like an RMS normalisation. */
static grt_status recognise_visit(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        if (is_live_float(node))
            find_layer_norm(context, node);
    IR_FOR_EACH_NODE (node, graph)
        if (is_live_float(node))
            recognise_look(context, node);
    IR_FOR_EACH_NODE (node, graph)
        if (is_live_float(node))
            find_product_of_rows(context, node);
    return GRT_OK;
}

grt_status pass_recognise(pass_context *context)
{
    return rewrite_each_graph(context, recognise_visit);
}
