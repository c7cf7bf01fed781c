/* SPDX-License-Identifier: Apache-2.0 */
/* ai.onnx.ml: SVMRegressor and SVMClassifier, as products with their support vectors. */
#include "graph/ops/foreign.h"
#include "graph/ops/ml_parts.h"

#include "src/base/checked.h"

#include <string.h>

static const op_attr regressor_attrs[] = {
    {"coefficients", GRT_ATTR_FLOATS, true},
    {"kernel_params", GRT_ATTR_FLOATS, false},
    {"kernel_type", GRT_ATTR_STRING, false},
    {"n_supports", GRT_ATTR_INT, false},
    {"one_class", GRT_ATTR_INT, false},
    {"post_transform", GRT_ATTR_STRING, false},
    {"rho", GRT_ATTR_FLOATS, true},
    {"support_vectors", GRT_ATTR_FLOATS, false},
    {0},
};
static const op_attr classifier_attrs[] = {
    {"classlabels_ints", GRT_ATTR_INTS, false},
    {"classlabels_strings", GRT_ATTR_STRINGS, false},
    {"coefficients", GRT_ATTR_FLOATS, true},
    {"kernel_params", GRT_ATTR_FLOATS, false},
    {"kernel_type", GRT_ATTR_STRING, false},
    {"post_transform", GRT_ATTR_STRING, false},
    {"prob_a", GRT_ATTR_FLOATS, false},
    {"prob_b", GRT_ATTR_FLOATS, false},
    {"rho", GRT_ATTR_FLOATS, true},
    {"support_vectors", GRT_ATTR_FLOATS, false},
    {"vectors_per_class", GRT_ATTR_INTS, false},
    {0},
};

/* Rows of floats of one attribute. */
typedef struct vectors {
    const float *data;
    int64_t n, features;
} vectors;

static grt_status read_vectors(const ir_node *node, int64_t n, vectors *out)
{
    size_t count;
    const float *data = grt_attr_floats(&node->desc, "support_vectors", &count);
    if (n < 1 || !count || (int64_t)count % n)
        return foreign_invalid(node, "%zu numbers in support_vectors do not make %lld vectors", count,
                               (long long)n);
    *out = (vectors){data, n, (int64_t)count / n};
    return GRT_OK;
}

/* A constant [rows, columns], or its transpose. */
static ir_value *matrix(ir_node *node, const float *data, int64_t rows, int64_t columns, bool transpose)
{
    const int64_t dims[] = {transpose ? columns : rows, transpose ? rows : columns};
    ir_value *m = ml_floats(node->graph, GRT_DTYPE_FLOAT, 2, dims, transpose ? NULL : data);
    for (int64_t r = 0; m && transpose && r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            ((float *)m->type.data->data)[c * rows + r] = data[r * columns + c];
    return m;
}

static ir_value *ml_svm_number(ir_node *node, double value)
{
    return put_scalar(node, GRT_DTYPE_FLOAT, value);
}

/* Squared distances [samples, vectors]: of differences, unless these would take much memory. */
static ir_value *distances(ir_node *node, ir_value *x, const vectors *v)
{
    enum { MOST = 1 << 16 };
    static const int64_t middle[] = {1}, last[] = {2}, second[] = {1};
    if (v->n <= MOST / v->features) {
        ir_value *difference = put2(node, "Sub", put_unsqueeze(node, x, middle, 1),
                                    matrix(node, v->data, v->n, v->features, false));
        return with_int(put2(node, "ReduceSumSquare", difference, put_ints(node, last, 1)), "keepdims", 0);
    }
    ir_value *squares = matrix(node, v->data, 1, v->n, false);
    for (int64_t i = 0; squares && i < v->n; i++) {
        double sum = 0;
        for (int64_t k = 0; k < v->features; k++)
            sum += (double)v->data[i * v->features + k] * (double)v->data[i * v->features + k];
        ((float *)squares->type.data->data)[i] = (float)sum;
    }
    ir_value *own = with_int(put2(node, "ReduceSumSquare", x, put_ints(node, second, 1)), "keepdims", 1);
    ir_value *dot = put2(node, "MatMul", x, matrix(node, v->data, v->n, v->features, true));
    ir_value *sum =
        put2(node, "Sub", put2(node, "Add", own, squares), put2(node, "Mul", dot, ml_svm_number(node, 2)));
    return put2(node, "Max", sum, ml_svm_number(node, 0));
}

/* [samples, vectors] */
static grt_status kernel(ir_node *node, ir_value *x, const vectors *v, ir_value **out)
{
    size_t n;
    const char *type = grt_attr_string(&node->desc, "kernel_type", "LINEAR");
    const float *params = grt_attr_floats(&node->desc, "kernel_params", &n);
    const double gamma = n > 0 ? (double)params[0] : 0, coef0 = n > 1 ? (double)params[1] : 0,
                 degree = n > 2 ? (double)params[2] : 0;
    if (!strcmp(type, "RBF")) {
        *out = put1(node, "Exp", put2(node, "Mul", distances(node, x, v), ml_svm_number(node, -gamma)));
        return GRT_OK;
    }
    *out = put2(node, "MatMul", x, matrix(node, v->data, v->n, v->features, true));
    if (!strcmp(type, "LINEAR"))
        return GRT_OK;
    *out = put2(node, "Add", put2(node, "Mul", *out, ml_svm_number(node, gamma)), ml_svm_number(node, coef0));
    if (!strcmp(type, "POLY"))
        *out = put2(node, "Pow", *out, ml_svm_number(node, degree));
    else if (!strcmp(type, "SIGMOID"))
        *out = put1(node, "Tanh", *out);
    else
        return foreign_invalid(node, "attribute kernel_type is '%s'; it must be LINEAR, POLY, RBF or SIGMOID",
                               type);
    return GRT_OK;
}

/* The samples as floats; their number of features must be the vectors'. */
static grt_status samples(ir_node *node, int64_t features, ir_value **out)
{
    int64_t size;
    GRT_TRY(foreign_need(node, 0, "X"));
    ir_value *x = ir_in(node, 0);
    if (x->type.rank >= 0 && x->type.rank != 2)
        return foreign_invalid(node, "the input has rank %d; it must be samples x features", x->type.rank);
    if (foreign_dim(x, 1, &size) && size != features)
        return foreign_invalid(node, "the input has %lld features, the support vectors %lld", (long long)size,
                               (long long)features);
    *out = put_cast(node, x, GRT_DTYPE_FLOAT);
    return GRT_OK;
}

static grt_status rewrite_regressor(ir_node *node)
{
    size_t n, n_rho;
    const float *coefficients = grt_attr_floats(&node->desc, "coefficients", &n),
                *rho = grt_attr_floats(&node->desc, "rho", &n_rho);
    const int64_t supports = grt_attr_int(&node->desc, "n_supports", 0);
    ir_value *x, *k;
    if (!n || !n_rho || (supports && supports != (int64_t)n))
        return foreign_invalid(node, "there are %zu coefficients and %zu in rho for n_supports = %lld", n,
                               n_rho, (long long)supports);
    GRT_TRY(ml_check_transform(&node->desc));
    if (supports) {
        vectors v;
        GRT_TRY(read_vectors(node, supports, &v));
        GRT_TRY(samples(node, v.features, &x));
        GRT_TRY(kernel(node, x, &v, &k));
    } else { /* one coefficient a feature */
        GRT_TRY(samples(node, (int64_t)n, &k));
    }
    ir_value *y = put2(node, "MatMul", k, matrix(node, coefficients, (int64_t)n, 1, false));
    y = put2(node, "Add", y, ml_svm_number(node, (double)rho[0]));
    if (grt_attr_int(&node->desc, "one_class", 0))
        y = put3(node, "Where", put2(node, "Greater", y, ml_svm_number(node, 0)), ml_svm_number(node, 1),
                 ml_svm_number(node, -1));
    else
        y = ml_transform(node, y, grt_attr_string(&node->desc, "post_transform", "NONE"));
    return foreign_done1(node, y);
}

typedef struct classifier {
    ml_labels labels;
    int64_t classes, pairs;
    vectors v;
    const int64_t *per_class; /* support vectors of each class */
    const float *coefficients, *rho, *prob_a, *prob_b;
    bool probabilities;
} classifier;

static grt_status read_classifier(const ir_node *node, classifier *c)
{
    size_t n_classes, n_coefficients, n_rho, n_a, n_b, need = 0;
    *c = (classifier){.labels = ml_labels_of(&node->desc)};
    c->per_class = grt_attr_ints(&node->desc, "vectors_per_class", &n_classes);
    c->coefficients = grt_attr_floats(&node->desc, "coefficients", &n_coefficients);
    c->rho = grt_attr_floats(&node->desc, "rho", &n_rho);
    c->prob_a = grt_attr_floats(&node->desc, "prob_a", &n_a);
    c->prob_b = grt_attr_floats(&node->desc, "prob_b", &n_b);
    c->classes = (int64_t)n_classes;
    c->probabilities = n_a > 0;
    if (!n_classes)
        return foreign_unsupported(node,
                                   "there are no vectors_per_class: a linear model without support vectors");
    if (n_classes < 2 || n_classes > 1000 || c->labels.n != c->classes)
        return foreign_invalid(node, "vectors_per_class has %zu classes, and there are %lld labels",
                               n_classes, (long long)c->labels.n);
    int64_t total = 0;
    for (size_t i = 0; i < n_classes; i++)
        if (c->per_class[i] < 0 || c->per_class[i] > INT32_MAX)
            return foreign_invalid(node, "vectors_per_class[%zu] is %lld", i, (long long)c->per_class[i]);
        else
            total += c->per_class[i];
    GRT_TRY(read_vectors(node, total, &c->v));
    c->pairs = c->classes * (c->classes - 1) / 2;
    if (!grt_mul_size((size_t)total, n_classes - 1, &need) || need != n_coefficients ||
        (int64_t)n_rho != c->pairs || n_a != n_b || (c->probabilities && (int64_t)n_a != c->pairs))
        return foreign_invalid(
            node, "coefficients, rho, prob_a and prob_b do not fit %lld classes and %lld vectors",
            (long long)c->classes, (long long)total);
    return ml_check_transform(&node->desc);
}

/* [vectors, pairs]: what each vector has for the decision between two classes; and [pairs, classes] twice:
 * whose vote a decision is when positive, and when not. */
typedef struct decisions {
    ir_value *weights, *positive, *negative;
} decisions;

static decisions decide(ir_node *node, const classifier *c)
{
    const int64_t weights[] = {c->v.n, c->pairs}, votes[] = {c->pairs, c->classes};
    decisions d = {ml_floats(node->graph, GRT_DTYPE_FLOAT, 2, weights, NULL),
                   ml_floats(node->graph, GRT_DTYPE_FLOAT, 2, votes, NULL),
                   ml_floats(node->graph, GRT_DTYPE_FLOAT, 2, votes, NULL)};
    int64_t pair = 0, start_i = 0;
    for (int64_t i = 0; d.weights && d.positive && d.negative && i < c->classes;
         start_i += c->per_class[i++]) {
        int64_t start_j = start_i + c->per_class[i];
        for (int64_t j = i + 1; j < c->classes; start_j += c->per_class[j++], pair++) {
            float *w = d.weights->type.data->data;
            for (int64_t k = start_i; k < start_i + c->per_class[i]; k++)
                w[k * c->pairs + pair] = c->coefficients[(j - 1) * c->v.n + k];
            for (int64_t k = start_j; k < start_j + c->per_class[j]; k++)
                w[k * c->pairs + pair] = c->coefficients[i * c->v.n + k];
            ((float *)d.positive->type.data->data)[pair * c->classes + i] = 1;
            ((float *)d.negative->type.data->data)[pair * c->classes + j] = 1;
        }
    }
    return d;
}

/* Of all classes, from the decisions between two: a logistic function of each is the probability of the first
 * of both. */
static ir_value *probabilities(ir_node *node, const classifier *c, ir_value *scores)
{
    ir_value *pairs = put2(node, "Mul", scores, matrix(node, c->prob_a, 1, c->pairs, false));
    pairs = put2(node, "Add", pairs, matrix(node, c->prob_b, 1, c->pairs, false));
    pairs = put1(node, "Sigmoid", put1(node, "Neg", pairs));
    pairs = put3(node, "Clip", pairs, ml_svm_number(node, 1e-7), ml_svm_number(node, 1 - 1e-7));
    ir_node *couple = ir_node_create(node->graph, node, "graphrt", "CoupleProbabilities", node->desc.name, 1,
                                     (ir_value *[]){pairs}, 1);
    return with_int(ir_node_out(couple), "classes", c->classes);
}

/* The decision between two classes stands for both. */
static grt_status transform_scores(ir_node *node, const classifier *c, ir_value **scores)
{
    const char *transform = grt_attr_string(&node->desc, "post_transform", "NONE");
    const bool single = c->classes == 2 && !c->probabilities;
    if (single && !strcmp(transform, "PROBIT"))
        return foreign_unsupported(
            node, "post_transform is PROBIT, which makes no two probabilities of a single score");
    const bool mirrored = !strcmp(transform, "NONE") || !strcmp(transform, "LOGISTIC");
    if (single)
        *scores = put_concat(node, 1, 2,
                             (ir_value *[]){mirrored ? put1(node, "Neg", *scores)
                                                     : put2(node, "Sub", ml_svm_number(node, 1), *scores),
                                            *scores});
    if (!single || !strcmp(transform, "LOGISTIC"))
        *scores = ml_transform(node, *scores, transform);
    return GRT_OK;
}

static grt_status rewrite_classifier(ir_node *node)
{
    classifier c;
    ir_value *x, *k;
    GRT_TRY(read_classifier(node, &c));
    GRT_TRY(samples(node, c.v.features, &x));
    GRT_TRY(kernel(node, x, &c.v, &k));
    const decisions d = decide(node, &c);
    ir_value *scores = put2(node, "MatMul", k, d.weights);
    scores = put2(node, "Add", scores, matrix(node, c.rho, 1, c.pairs, false));
    ir_value *positive =
        put_cast(node, put2(node, "Greater", scores, ml_svm_number(node, 0)), GRT_DTYPE_FLOAT);
    ir_value *votes =
        put2(node, "Add", put2(node, "MatMul", positive, d.positive),
             put2(node, "MatMul", put2(node, "Sub", ml_svm_number(node, 1), positive), d.negative));
    ir_value *which = with_int(with_int(put1(node, "ArgMax", votes), "axis", 1), "keepdims", 0);
    ir_value *label = put2(node, "Gather", ml_labels_constant(node->graph, &c.labels), which);
    if (c.probabilities)
        scores = probabilities(node, &c, scores);
    GRT_TRY(transform_scores(node, &c, &scores));
    return foreign_done(node, 2, (ir_value *[]){label, scores});
}

/* [samples, pairs of classes] to [samples, classes] */
static grt_status infer_couple(infer *inf)
{
    ml_infer_scores(inf, GRT_DTYPE_FLOAT, grt_attr_int(inf->desc, "classes", 0));
    return GRT_OK;
}

static const op_attr couple_attrs[] = {{"classes", GRT_ATTR_INT, true}, {0}};

#define ML "ai.onnx.ml"
static const op_row rows[] = {
    {.domain = "graphrt",
     .name = "CoupleProbabilities",
     .since = 1,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = couple_attrs,
     .precision = OP_WIDE,
     .infer = infer_couple},
    FOREIGN(ML, "SVMRegressor", 1, 1, 1, 1, regressor_attrs, rewrite_regressor),
    FOREIGN(ML, "SVMClassifier", 1, 1, 1, 2, classifier_attrs, rewrite_classifier),
};
OP_TABLE(ml_svm, rows);
