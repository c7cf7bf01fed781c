/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/ops/ml_parts.h"

#include <string.h>

ir_value *ml_node(ir_node *before, const char *op, int32_t n_in, ir_value *const *in)
{
    for (int32_t i = 0; i < n_in; i++)
        if (!in[i])
            return NULL;
    return ir_node_out(ir_node_create(before->graph, before, "", op, before->desc.name, n_in, in, 1));
}

ir_value *ml_cast(ir_node *before, ir_value *x, grt_dtype to)
{
    ir_value *y = x && x->type.dtype != to ? ml_node(before, "Cast", 1, &x) : x;
    if (y && y != x)
        ir_attr_set_int(y->producer, "to", to);
    return y;
}

ir_value *ml_floats(ir_graph *graph, grt_dtype dtype, int32_t rank, const int64_t *dims, const float *data)
{
    grt_arena *arena = graph->module->arena;
    grt_tensor *t = GRT_ARENA_NEW(arena, grt_tensor);
    if (!t)
        return NULL;
    *t = (grt_tensor){.dtype = dtype, .rank = rank};
    memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
    const int64_t n = grt_tensor_elements(t);
    t->data = grt_arena_calloc(arena, (size_t)n + 1, grt_dtype_size(dtype));
    if (!t->data)
        return NULL;
    for (int64_t i = 0; data && i < n; i++)
        if (dtype == GRT_DTYPE_DOUBLE)
            ((double *)t->data)[i] = (double)data[i];
        else
            ((float *)t->data)[i] = data[i];
    return ir_constant(graph, NULL, t);
}

ir_value *ml_reduce(ir_node *before, const char *op, ir_value *x)
{
    ir_value *axis = ir_constant_ints(before->graph, before->desc.name, (int64_t[]){-1}, 1);
    return ml_node(before, op, 2, (ir_value *[]){x, axis});
}

grt_status ml_check_transform(const grt_op_desc *desc)
{
    static const char *const known[] = {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"};
    const char *transform = grt_attr_string(desc, "post_transform", "NONE");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(transform, known[i]))
            return GRT_OK;
    return grt_fail_op(
        desc, GRT_STATUS_INVALID_MODEL,
        "attribute post_transform is '%s'; it must be NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or "
        "PROBIT",
        transform);
}

static ir_value *ml_parts_number(ir_node *before, double value)
{
    return ir_constant_scalar(before->graph, before->desc.name, GRT_DTYPE_FLOAT, value);
}

static ir_value *ml_parts_binary(ir_node *before, const char *op, ir_value *a, ir_value *b)
{
    return ml_node(before, op, 2, (ir_value *[]){a, b});
}

/* Softmax of the scores that are not zero; those that are stay so. */
static ir_value *softmax_zero(ir_node *before, ir_value *x)
{
    ir_value *most = ml_reduce(before, "ReduceMax", x);
    ir_value *size = ml_node(before, "Abs", 1, &x);
    ir_value *some = ml_parts_binary(before, "Greater", size, ml_parts_number(before, 1e-7));
    ir_value *away = ml_parts_binary(before, "Sub", x, most);
    ir_value *power = ml_node(before, "Exp", 1, &away);
    power = ml_node(before, "Where", 3, (ir_value *[]){some, power, ml_parts_number(before, 0)});
    return ml_parts_binary(before, "Div", power, ml_reduce(before, "ReduceSum", power));
}

/* The inverse of the normal distribution, by Winitzki's approximation, which ONNX's reference and its peers
 * have. */
static ir_value *probit(ir_node *before, ir_value *p)
{
    const double a = 0.147, pi = 3.14159;
    ir_value *x =
        ml_parts_binary(before, "Sub", ml_parts_binary(before, "Mul", p, ml_parts_number(before, 2)),
                        ml_parts_number(before, 1));
    ir_value *rest =
        ml_parts_binary(before, "Sub", ml_parts_number(before, 1), ml_parts_binary(before, "Mul", x, x));
    ir_value *log = ml_node(before, "Log", 1, &rest);
    ir_value *v =
        ml_parts_binary(before, "Add", ml_parts_binary(before, "Mul", log, ml_parts_number(before, 0.5)),
                        ml_parts_number(before, 2 / (pi * a)));
    ir_value *root = ml_parts_binary(before, "Sub", ml_parts_binary(before, "Mul", v, v),
                                     ml_parts_binary(before, "Mul", log, ml_parts_number(before, 1 / a)));
    root = ml_node(before, "Sqrt", 1, &root);
    root = ml_parts_binary(before, "Sub", root, v);
    root = ml_node(before, "Sqrt", 1, &root);
    ir_value *sign = ml_node(before, "Where", 3,
                             (ir_value *[]){ml_parts_binary(before, "Less", x, ml_parts_number(before, 0)),
                                            ml_parts_number(before, -1), ml_parts_number(before, 1)});
    return ml_parts_binary(before, "Mul", ml_parts_binary(before, "Mul", root, sign),
                           ml_parts_number(before, 1.41421356));
}

ir_value *ml_transform(ir_node *before, ir_value *scores, const char *transform)
{
    if (!strcmp(transform, "NONE"))
        return scores;
    if (!strcmp(transform, "SOFTMAX_ZERO"))
        return softmax_zero(before, scores);
    if (!strcmp(transform, "PROBIT"))
        return probit(before, scores);
    const bool softmax = !strcmp(transform, "SOFTMAX");
    ir_value *y = ml_node(before, softmax ? "Softmax" : "Sigmoid", 1, &scores);
    if (y && softmax)
        ir_attr_set_int(y->producer, "axis", -1);
    return y;
}

ml_labels ml_labels_of(const grt_op_desc *desc)
{
    size_t n_ints, n_strings;
    ml_labels labels = {.ints = grt_attr_ints(desc, "classlabels_ints", &n_ints)};
    if (!labels.ints)
        labels.ints = grt_attr_ints(desc, "classlabels_int64s", &n_ints);
    labels.strings = grt_attr_strings(desc, "classlabels_strings", &n_strings);
    if (labels.strings && n_strings)
        labels.ints = NULL;
    else
        labels.strings = NULL;
    labels.n = (int64_t)(labels.strings ? n_strings : labels.ints ? n_ints : 0);
    return labels;
}

ir_value *ml_labels_constant(ir_graph *graph, const ml_labels *labels)
{
    if (labels->ints)
        return ir_constant_ints(graph, NULL, labels->ints, labels->n);
    grt_tensor *t = GRT_ARENA_NEW(graph->module->arena, grt_tensor);
    if (!t)
        return NULL;
    *t = (grt_tensor){
        .dtype = GRT_DTYPE_STRING, .rank = 1, .dims = {labels->n}, .data = (void *)labels->strings};
    return ir_constant(graph, NULL, t);
}

void ml_become(ir_node *node, int32_t output, ir_value *made)
{
    if (output < node->n_out && node->out[output] && made)
        ir_value_replace(node->out[output], made);
}

/* [1 - p, p] or [-s, s] of one column. */
static ir_value *two_columns(ir_node *before, ir_value *s, bool mirrored)
{
    ir_value *one = ir_constant_scalar(before->graph, before->desc.name, GRT_DTYPE_FLOAT, 1);
    ir_value *other =
        mirrored ? ml_node(before, "Neg", 1, &s) : ml_node(before, "Sub", 2, (ir_value *[]){one, s});
    ir_value *both = ml_node(before, "Concat", 2, (ir_value *[]){other, s});
    if (both)
        ir_attr_set_int(both->producer, "axis", 1);
    return both;
}

grt_status ml_classify(ir_node *node, ir_value *scores, int64_t n_scores, double threshold, bool mirrored)
{
    const ml_labels labels = ml_labels_of(&node->desc);
    const char *transform = grt_attr_string(&node->desc, "post_transform", "NONE");
    ir_graph *graph = node->graph;
    ir_value *which, *axis = ir_constant_ints(graph, node->desc.name, (int64_t[]){1}, 1);
    if (n_scores == 1 && !strcmp(transform, "PROBIT"))
        return grt_fail_op(&node->desc, GRT_STATUS_UNSUPPORTED,
                           "post_transform is PROBIT, which makes no two probabilities of a single score");
    if (n_scores == 1) { /* SOFTMAX is for several */
        ir_value *limit = ir_constant_scalar(graph, node->desc.name, GRT_DTYPE_FLOAT, threshold);
        ir_value *above = ml_node(node, "Greater", 2, (ir_value *[]){scores, limit});
        ir_value *number = above ? ml_node(node, "Cast", 1, &above) : NULL;
        if (number)
            ir_attr_set_int(number->producer, "to", GRT_DTYPE_INT64);
        which = ml_node(node, "Squeeze", 2, (ir_value *[]){number, axis});
        const bool logistic = !strcmp(transform, "LOGISTIC");
        ir_value *s = logistic ? ml_transform(node, scores, transform) : scores;
        scores = two_columns(node, s, mirrored && !logistic);
    } else {
        which = ml_node(node, "ArgMax", 1, &scores);
        if (which) {
            ir_attr_set_int(which->producer, "axis", 1);
            ir_attr_set_int(which->producer, "keepdims", 0);
        }
        scores = ml_transform(node, scores, transform);
    }
    ir_value *label = ml_node(node, "Gather", 2, (ir_value *[]){ml_labels_constant(graph, &labels), which});
    if (!label || !scores)
        return grt_fail_memory(0);
    ml_become(node, 0, label);
    ml_become(node, 1, scores);
    ir_node_remove(node);
    return GRT_OK;
}

grt_status ml_check_samples(const infer *inf)
{
    const int32_t rank = inf->in[0]->rank;
    if (rank >= 0 && rank != 2)
        return infer_fail(inf, "the input has rank %d; it must be samples x features", rank);
    return GRT_OK;
}

void ml_infer_scores(infer *inf, grt_dtype dtype, int64_t n_scores)
{
    const ir_type *x = inf->in[0];
    grt_dim *dims = infer_dims(inf, 2);
    if (dims) {
        dims[0] = x->rank == 2 ? x->dims[0] : grt_dim_fresh(inf->dims);
        dims[1] = grt_dim_const(inf->dims, n_scores);
    }
    infer_set(inf, 0, dtype, 2, dims);
}

grt_status ml_infer_targets(infer *inf, grt_dtype dtype)
{
    const int64_t targets = grt_attr_int(inf->desc, "n_targets", 1);
    GRT_TRY(ml_check_samples(inf));
    if (targets < 1)
        return infer_fail(inf, "attribute n_targets is %lld; it must be positive", (long long)targets);
    ml_infer_scores(inf, dtype, targets);
    return GRT_OK;
}

grt_status ml_infer_classifier(infer *inf, int64_t n_scores)
{
    const ml_labels labels = ml_labels_of(inf->desc);
    const ir_type *x = inf->in[0];
    if (labels.n < 1)
        return infer_fail(inf, "the class labels are missing: exactly one of the classlabels_* must be set");
    if (n_scores != labels.n && !(n_scores == 1 && labels.n == 2))
        return infer_fail(inf, "there are %lld class labels and %lld scores", (long long)labels.n,
                          (long long)n_scores);
    GRT_TRY(ml_check_samples(inf));
    grt_dim *label = infer_dims(inf, 1), *score = infer_dims(inf, 2);
    if (label && score) {
        label[0] = score[0] = x->rank == 2 ? x->dims[0] : grt_dim_fresh(inf->dims);
        score[1] = grt_dim_const(inf->dims, labels.n);
    }
    infer_set(inf, 0, labels.strings ? GRT_DTYPE_STRING : GRT_DTYPE_INT64, 1, label);
    if (inf->n_out > 1)
        infer_set(inf, 1, GRT_DTYPE_FLOAT, 2, score);
    return GRT_OK;
}
