/* SPDX-License-Identifier: Apache-2.0 */
/* ai.onnx.ml's FeatureVectorizer, Imputer, LinearClassifier, LinearRegressor, Normalizer, OneHotEncoder and
 * Scaler, each said with ordinary operators. */
#include "graph/ops/ml_parts.h"

#include "src/base/checked.h"

#include <math.h>
#include <string.h>

static const op_attr vectorizer_attrs[] = {{"inputdimensions", GRT_ATTR_INTS, false}, {0}};
static const op_attr imputer_attrs[] = {
    {"imputed_value_floats", GRT_ATTR_FLOATS, false},
    {"imputed_value_int64s", GRT_ATTR_INTS, false},
    {"replaced_value_float", GRT_ATTR_FLOAT, false},
    {"replaced_value_int64", GRT_ATTR_INT, false},
    {0},
};
static const op_attr classifier_attrs[] = {
    {"classlabels_ints", GRT_ATTR_INTS, false},
    {"classlabels_strings", GRT_ATTR_STRINGS, false},
    {"coefficients", GRT_ATTR_FLOATS, true},
    {"intercepts", GRT_ATTR_FLOATS, false},
    {"multi_class", GRT_ATTR_INT, false},
    {"post_transform", GRT_ATTR_STRING, false},
    {0},
};
static const op_attr regressor_attrs[] = {
    {"coefficients", GRT_ATTR_FLOATS, false},
    {"intercepts", GRT_ATTR_FLOATS, false},
    {"post_transform", GRT_ATTR_STRING, false},
    {"targets", GRT_ATTR_INT, false},
    {0},
};
static const op_attr normalizer_attrs[] = {{"norm", GRT_ATTR_STRING, false}, {0}};
static const op_attr one_hot_attrs[] = {
    {"cats_int64s", GRT_ATTR_INTS, false},
    {"cats_strings", GRT_ATTR_STRINGS, false},
    {"zeros", GRT_ATTR_INT, false},
    {0},
};
static const op_attr scaler_attrs[] = {
    {"offset", GRT_ATTR_FLOATS, false},
    {"scale", GRT_ATTR_FLOATS, false},
    {0},
};

static grt_status infer_float(infer *inf)
{
    infer_set_like(inf, 0, GRT_DTYPE_FLOAT, inf->in[0]);
    return GRT_OK;
}

static grt_status expand_scaler(ir_node *node, bool *out_done)
{
    ir_value *x = ir_in(node, 0);
    const grt_dtype dtype = x->type.dtype == GRT_DTYPE_DOUBLE ? GRT_DTYPE_DOUBLE : GRT_DTYPE_FLOAT;
    size_t n_offset, n_scale;
    const float *offset = grt_attr_floats(&node->desc, "offset", &n_offset),
                *scale = grt_attr_floats(&node->desc, "scale", &n_scale);
    x = ml_cast(node, x, dtype);
    if (n_offset)
        x = ml_node(
            node, "Sub", 2,
            (ir_value *[]){x, ml_floats(node->graph, dtype, 1, (int64_t[]){(int64_t)n_offset}, offset)});
    if (n_scale)
        x = ml_node(
            node, "Mul", 2,
            (ir_value *[]){x, ml_floats(node->graph, dtype, 1, (int64_t[]){(int64_t)n_scale}, scale)});
    x = dtype == GRT_DTYPE_FLOAT ? x : ml_node(node, "Cast", 1, &x);
    if (!x)
        return grt_fail_memory(0);
    if (dtype != GRT_DTYPE_FLOAT)
        ir_attr_set_int(x->producer, "to", GRT_DTYPE_FLOAT);
    ml_become(node, 0, x);
    ir_node_remove(node);
    *out_done = true;
    return GRT_OK;
}

/* Rows by their largest element, the sum of absolute values or the root of the sum of squares; what has none
 * stays. */
static grt_status expand_normalizer(ir_node *node, bool *out_done)
{
    const char *norm = grt_attr_string(&node->desc, "norm", "MAX");
    const char *op = !strcmp(norm, "L1")    ? "ReduceL1"
                     : !strcmp(norm, "L2")  ? "ReduceL2"
                     : !strcmp(norm, "MAX") ? "ReduceMax"
                                            : NULL;
    if (!op)
        return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL,
                           "attribute norm is '%s'; it must be MAX, L1 or L2", norm);
    ir_value *x = ml_cast(node, ir_in(node, 0), GRT_DTYPE_FLOAT), *size = ml_reduce(node, op, x);
    ir_value *zero = ir_constant_scalar(node->graph, node->desc.name, GRT_DTYPE_FLOAT, 0),
             *one = ir_constant_scalar(node->graph, node->desc.name, GRT_DTYPE_FLOAT, 1);
    ir_value *none = ml_node(node, "Equal", 2, (ir_value *[]){size, zero});
    ir_value *divisor = ml_node(node, "Where", 3, (ir_value *[]){none, one, size});
    ir_value *y = ml_node(node, "Div", 2, (ir_value *[]){x, divisor});
    if (!y)
        return grt_fail_memory(0);
    ml_become(node, 0, y);
    ir_node_remove(node);
    *out_done = true;
    return GRT_OK;
}

static grt_status expand_imputer(ir_node *node, bool *out_done)
{
    ir_value *x = ir_in(node, 0), *hole, *value;
    const grt_dtype dtype = x->type.dtype;
    size_t n_floats, n_ints;
    const float *floats = grt_attr_floats(&node->desc, "imputed_value_floats", &n_floats);
    const int64_t *ints = grt_attr_ints(&node->desc, "imputed_value_int64s", &n_ints);
    const bool is_int = dtype == GRT_DTYPE_INT64;
    if (!is_int && dtype != GRT_DTYPE_FLOAT && dtype != GRT_DTYPE_DOUBLE)
        return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL,
                           "the input is %s; it must be float32, float64 or int64", grt_dtype_name(dtype));
    if (is_int ? !n_ints : !n_floats)
        return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL,
                           "attribute %s is missing, and the input is %s",
                           is_int ? "imputed_value_int64s" : "imputed_value_floats", grt_dtype_name(dtype));
    const double replaced = is_int ? 0 : (double)grt_attr_float(&node->desc, "replaced_value_float", 0);
    if (isnan(replaced)) {
        hole = ml_node(node, "IsNaN", 1, &x);
    } else {
        ir_value *marker = is_int ? ir_constant_int(node->graph, node->desc.name,
                                                    grt_attr_int(&node->desc, "replaced_value_int64", 0))
                                  : ir_constant_scalar(node->graph, node->desc.name, dtype, replaced);
        hole = ml_node(node, "Equal", 2, (ir_value *[]){x, marker});
    }
    value = is_int ? ir_constant_ints(node->graph, node->desc.name, ints, (int64_t)n_ints)
                   : ml_floats(node->graph, dtype, 1, (int64_t[]){(int64_t)n_floats}, floats);
    ir_value *y = ml_node(node, "Where", 3, (ir_value *[]){hole, value, x});
    if (!y)
        return grt_fail_memory(0);
    ml_become(node, 0, y);
    ir_node_remove(node);
    *out_done = true;
    return GRT_OK;
}

static grt_status ml_linear_infer_vectorizer(infer *inf)
{
    grt_dim *dims = infer_dims(inf, 2);
    if (!dims)
        return GRT_OK;
    dims[0] = grt_dim_fresh(inf->dims);
    dims[1] = grt_dim_const(inf->dims, 0);
    for (int32_t i = 0; i < inf->n_in; i++) {
        const ir_type *x = inf->in[i];
        if (!x)
            return infer_fail(inf, "input %d is missing", i);
        if (x->rank >= 0 && x->rank != 2)
            return infer_fail(inf, "input %d has rank %d; it must be samples x features", i, x->rank);
        dims[0] = i == 0 && x->rank == 2 ? x->dims[0] : dims[0];
        dims[1] = x->rank == 2 ? grt_dim_add(inf->dims, dims[1], x->dims[1]) : grt_dim_fresh(inf->dims);
    }
    infer_set(inf, 0, GRT_DTYPE_FLOAT, 2, dims);
    return GRT_OK;
}

static grt_status expand_vectorizer(ir_node *node, bool *out_done)
{
    ir_value **in = GRT_ARENA_ARRAY(node->graph->module->arena, ir_value *, node->n_in);
    if (!in)
        return grt_fail_memory(0);
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = ml_cast(node, ir_in(node, i), GRT_DTYPE_FLOAT);
    ir_value *y = ml_node(node, "Concat", node->n_in, in);
    if (!y)
        return grt_fail_memory(0);
    ir_attr_set_int(y->producer, "axis", 1);
    ml_become(node, 0, y);
    ir_node_remove(node);
    *out_done = true;
    return GRT_OK;
}

/* x times the rows of `coefficients`, plus intercepts: [N, rows]. */
static ir_value *linear(ir_node *node, int64_t rows)
{
    size_t n, n_intercepts;
    const float *c = grt_attr_floats(&node->desc, "coefficients", &n),
                *b = grt_attr_floats(&node->desc, "intercepts", &n_intercepts);
    const int64_t columns = (int64_t)n / rows;
    ir_value *w = ml_floats(node->graph, GRT_DTYPE_FLOAT, 2, (int64_t[]){columns, rows}, NULL);
    float *to = w ? w->type.data->data : NULL;
    for (int64_t i = 0; to && i < rows * columns; i++)
        to[i % columns * rows + i / columns] = c[i];
    ir_value *x = ml_cast(node, ir_in(node, 0), GRT_DTYPE_FLOAT);
    ir_value *y = ml_node(node, "MatMul", 2, (ir_value *[]){x, w});
    if (!n_intercepts)
        return y;
    return ml_node(node, "Add", 2,
                   (ir_value *[]){y, ml_floats(node->graph, GRT_DTYPE_FLOAT, 1, (int64_t[]){rows}, b)});
}

static grt_status check_linear(const infer *inf, int64_t rows)
{
    size_t n, n_intercepts;
    const ir_type *x = inf->in[0];
    int64_t features;
    grt_attr_floats(inf->desc, "coefficients", &n);
    grt_attr_floats(inf->desc, "intercepts", &n_intercepts);
    if (rows < 1 || !n || (int64_t)n % rows || (n_intercepts && (int64_t)n_intercepts != rows))
        return infer_fail(inf, "%zu coefficients and %zu intercepts do not make %lld rows", n, n_intercepts,
                          (long long)rows);
    GRT_TRY(ml_check_samples(inf));
    if (x->rank == 2 && infer_const(inf, x->dims[1], &features) && features != (int64_t)n / rows)
        return infer_fail(inf, "the input has %lld features, the coefficients are for %lld",
                          (long long)features, (long long)((int64_t)n / rows));
    return GRT_OK;
}

static grt_status ml_linear_infer_regressor(infer *inf)
{
    const int64_t targets = grt_attr_int(inf->desc, "targets", 1);
    GRT_TRY(check_linear(inf, targets));
    ml_infer_scores(inf, GRT_DTYPE_FLOAT, targets);
    return GRT_OK;
}

static grt_status ml_linear_expand_regressor(ir_node *node, bool *out_done)
{
    GRT_TRY(ml_check_transform(&node->desc));
    ir_value *y = linear(node, grt_attr_int(&node->desc, "targets", 1));
    y = ml_transform(node, y, grt_attr_string(&node->desc, "post_transform", "NONE"));
    if (!y)
        return grt_fail_memory(0);
    ml_become(node, 0, y);
    ir_node_remove(node);
    *out_done = true;
    return GRT_OK;
}

/* One row of coefficients for each class; with two classes one may do. */
static int64_t classifier_rows(const grt_op_desc *desc)
{
    size_t n;
    grt_attr_floats(desc, "intercepts", &n);
    return n ? (int64_t)n : ml_labels_of(desc).n;
}

static grt_status ml_linear_infer_classifier(infer *inf)
{
    const int64_t rows = classifier_rows(inf->desc);
    GRT_TRY(check_linear(inf, rows));
    return ml_infer_classifier(inf, rows);
}

static grt_status ml_linear_expand_classifier(ir_node *node, bool *out_done)
{
    const int64_t rows = classifier_rows(&node->desc);
    GRT_TRY(ml_check_transform(&node->desc));
    *out_done = true;
    return ml_classify(node, linear(node, rows), rows, 0, false);
}

static size_t categories(const grt_op_desc *desc, const int64_t **out_ints, const grt_string **out_strings)
{
    size_t n_ints, n_strings;
    *out_ints = grt_attr_ints(desc, "cats_int64s", &n_ints);
    *out_strings = grt_attr_strings(desc, "cats_strings", &n_strings);
    return *out_ints && n_ints ? n_ints : n_strings;
}

static grt_status ml_linear_infer_one_hot(infer *inf)
{
    const ir_type *x = inf->in[0];
    const int64_t *ints;
    const grt_string *strings;
    const size_t n = categories(inf->desc, &ints, &strings);
    if (!n)
        return infer_fail(inf, "there are no categories: one of cats_int64s and cats_strings must be set");
    if (x->dtype && (x->dtype == GRT_DTYPE_STRING) != (strings != NULL))
        return infer_fail(inf, "the input is %s; the categories are %s", grt_dtype_name(x->dtype),
                          strings ? "strings" : "int64");
    grt_dim *dims = x->rank < 0 || x->rank >= GRT_MAX_RANK ? NULL : infer_dims(inf, x->rank + 1);
    if (!dims) {
        infer_set_unknown(inf, 0, GRT_DTYPE_FLOAT);
        return GRT_OK;
    }
    for (int32_t i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    dims[x->rank] = grt_dim_const(inf->dims, (int64_t)n);
    infer_set(inf, 0, GRT_DTYPE_FLOAT, x->rank + 1, dims);
    return GRT_OK;
}

/* Categories are numbered, and what is none of them has the number n, of which OneHot makes zeros. With
 * zeros = 0 it is an error: Gather says that a list of n has no element n. */
static grt_status expand_one_hot(ir_node *node, bool *out_done)
{
    grt_arena *arena = node->graph->module->arena;
    const int64_t *ints;
    const grt_string *strings;
    const int64_t n = (int64_t)categories(&node->desc, &ints, &strings);
    const bool zeros = grt_attr_int(&node->desc, "zeros", 1) != 0;
    ir_value *x = ir_in(node, 0);
    x = strings ? x : ml_cast(node, x, GRT_DTYPE_INT64);
    ir_node *encoder =
        x ? ir_node_create(node->graph, node, "ai.onnx.ml", "LabelEncoder", node->desc.name, 1, &x, 1) : NULL;
    int64_t *numbers = GRT_ARENA_ARRAY(arena, int64_t, n);
    if (!encoder || !numbers)
        return grt_fail_memory(0);
    for (int64_t i = 0; i < n; i++)
        numbers[i] = i;
    if (strings) {
        grt_attr keys = {.name = "keys_strings", .kind = GRT_ATTR_STRINGS};
        keys.strings.v = strings;
        keys.strings.n = (size_t)n;
        ir_attr_set(encoder, keys);
    } else {
        ir_attr_set_ints(encoder, "keys_int64s", ints, (size_t)n);
    }
    ir_attr_set_ints(encoder, "values_int64s", numbers, (size_t)n);
    ir_attr_set_int(encoder, "default_int64", n);
    ir_value *number = encoder->out[0];
    if (!zeros)
        number = ml_node(node, "Gather", 2,
                         (ir_value *[]){ir_constant_ints(node->graph, node->desc.name, numbers, n), number});
    ir_value *y = ml_node(
        node, "OneHot", 3,
        (ir_value *[]){number, ir_constant_int(node->graph, node->desc.name, n),
                       ml_floats(node->graph, GRT_DTYPE_FLOAT, 1, (int64_t[]){2}, (const float[]){0, 1})});
    if (!y)
        return grt_fail_memory(0);
    ml_become(node, 0, y);
    ir_node_remove(node);
    *out_done = true;
    return GRT_OK;
}

#define ML(op, inputs, outputs, attributes, rule, ...)                                               \
    {                                                                                                \
        .domain = "ai.onnx.ml", .name = op, .since = 1, .min_in = 1, .max_in = inputs, .min_out = 1, \
        .max_out = outputs, .attrs = attributes, .infer = rule, .expand = __VA_ARGS__                \
    }
static const op_row rows[] = {
    ML("FeatureVectorizer", OP_VARIADIC, 1, vectorizer_attrs, ml_linear_infer_vectorizer, expand_vectorizer),
    ML("Imputer", 1, 1, imputer_attrs, infer_same_as_first, expand_imputer),
    ML("LinearClassifier", 1, 2, classifier_attrs, ml_linear_infer_classifier, ml_linear_expand_classifier),
    ML("LinearRegressor", 1, 1, regressor_attrs, ml_linear_infer_regressor, ml_linear_expand_regressor),
    ML("Normalizer", 1, 1, normalizer_attrs, infer_float, expand_normalizer),
    ML("OneHotEncoder", 1, 1, one_hot_attrs, ml_linear_infer_one_hot, expand_one_hot),
    ML("Scaler", 1, 1, scaler_attrs, infer_float, expand_scaler),
};
OP_TABLE(ml_linear, rows);
