/* SPDX-License-Identifier: Apache-2.0 */
/* Features and labels: ai.onnx.ml's ArrayFeatureExtractor, Binarizer, LabelEncoder, TreeEnsemble, and
 * TfIdfVectorizer. */
#include "graph/ops/ml_parts.h"

#include <string.h>

static const op_attr binarizer_attrs[] = {{"threshold", GRT_ATTR_FLOAT, false}, {0}};

static const op_attr label_attrs[] = {
    {"default_float", GRT_ATTR_FLOAT, false},
    {"default_int64", GRT_ATTR_INT, false},
    {"default_string", GRT_ATTR_STRING, false},
    {"default_tensor", GRT_ATTR_TENSOR, false},
    {"keys_floats", GRT_ATTR_FLOATS, false},
    {"keys_int64s", GRT_ATTR_INTS, false},
    {"keys_strings", GRT_ATTR_STRINGS, false},
    {"keys_tensor", GRT_ATTR_TENSOR, false},
    {"values_floats", GRT_ATTR_FLOATS, false},
    {"values_int64s", GRT_ATTR_INTS, false},
    {"values_strings", GRT_ATTR_STRINGS, false},
    {"values_tensor", GRT_ATTR_TENSOR, false},
    {0},
};

static const op_attr tfidf_attrs[] = {
    {"max_gram_length", GRT_ATTR_INT, true}, {"max_skip_count", GRT_ATTR_INT, true},
    {"min_gram_length", GRT_ATTR_INT, true}, {"mode", GRT_ATTR_STRING, true},
    {"ngram_counts", GRT_ATTR_INTS, true},   {"ngram_indexes", GRT_ATTR_INTS, true},
    {"pool_int64s", GRT_ATTR_INTS, false},   {"pool_strings", GRT_ATTR_STRINGS, false},
    {"weights", GRT_ATTR_FLOATS, false},     {0},
};

/* Columns of X picked by Y; a vector counts as one row. */
static grt_status infer_extractor(infer *inf)
{
    const ir_type *x = inf->in[0], *y = inf->in[1];
    if (x->rank == 0)
        return infer_fail(inf, "the input is a scalar; it must have features to pick from");
    int32_t rank = x->rank == 1 ? 2 : x->rank;
    grt_dim *dims = x->rank < 0 ? NULL : infer_dims(inf, rank);
    if (!dims) {
        infer_set_unknown(inf, 0, x->dtype);
        return GRT_OK;
    }
    dims[0] = grt_dim_const(inf->dims, 1);
    for (int32_t k = 0; k < x->rank - 1; k++)
        dims[k] = x->dims[k];
    dims[rank - 1] = y->rank < 0 ? grt_dim_fresh(inf->dims) : infer_product(inf, y->dims, 0, y->rank);
    infer_set(inf, 0, x->dtype, rank, dims);
    return GRT_OK;
}

/* dtype of the list or tensor that is named with this prefix ("keys_" or "values_"); NONE if there is none or
 * more than one. */
static grt_dtype list_dtype(const infer *inf, const char *strings, const char *ints, const char *floats,
                            const char *tensor)
{
    const char *const names[] = {strings, ints, floats};
    static const grt_dtype dtypes[] = {GRT_DTYPE_STRING, GRT_DTYPE_INT64, GRT_DTYPE_FLOAT};
    const grt_tensor *t = grt_attr_tensor(inf->desc, tensor);
    grt_dtype found = t ? t->dtype : GRT_DTYPE_NONE;
    int n = t != NULL;
    for (int i = 0; i < 3; i++)
        if (grt_attr_find(inf->desc, names[i])) {
            found = dtypes[i];
            n++;
        }
    return n == 1 ? found : GRT_DTYPE_NONE;
}

static grt_status infer_label(infer *inf)
{
    grt_dtype key = list_dtype(inf, "keys_strings", "keys_int64s", "keys_floats", "keys_tensor");
    grt_dtype value = list_dtype(inf, "values_strings", "values_int64s", "values_floats", "values_tensor");
    if (!key || !value)
        return infer_fail(inf, "exactly one keys_* and exactly one values_* attribute must be set");
    if (inf->in[0]->dtype && inf->in[0]->dtype != key)
        return infer_fail(inf, "the input is %s, the keys are %s; they must agree",
                          grt_dtype_name(inf->in[0]->dtype), grt_dtype_name(key));
    infer_set_like(inf, 0, value, inf->in[0]);
    return GRT_OK;
}

static void set_strings(ir_node *node, const char *name, const grt_string *words, size_t n)
{
    grt_attr attr = {.name = name, .kind = GRT_ATTR_STRINGS};
    attr.strings.v = words;
    attr.strings.n = n;
    ir_attr_set(node, attr);
}

/* Version 1 has a list of classes only: strings become their number, numbers their string. */
static grt_status upgrade_label(ir_node *node, int32_t opset)
{
    size_t n;
    const grt_string *classes = grt_attr_strings(&node->desc, "classes_strings", &n);
    if (opset >= 2 || !classes)
        return GRT_OK;
    grt_dtype dtype = ir_in(node, 0) ? ir_in(node, 0)->type.dtype : GRT_DTYPE_NONE;
    int64_t *numbers = GRT_ARENA_ARRAY(node->graph->module->arena, int64_t, n);
    if (!numbers)
        return grt_fail_memory(n * sizeof *numbers);
    for (size_t i = 0; i < n; i++)
        numbers[i] = (int64_t)i;
    if (dtype != GRT_DTYPE_STRING && dtype != GRT_DTYPE_INT64)
        return grt_fail_op(
            &node->desc, GRT_STATUS_UNSUPPORTED,
            "version 1 is supported where the input is known to be string or int64; here it is %s",
            grt_dtype_name(dtype));
    bool from_strings = dtype == GRT_DTYPE_STRING;
    set_strings(node, from_strings ? "keys_strings" : "values_strings", classes, n);
    ir_attr_set_ints(node, from_strings ? "values_int64s" : "keys_int64s", numbers, n);
    ir_attr_remove(node, "classes_strings");
    return GRT_OK;
}

static grt_status infer_tfidf(infer *inf)
{
    const ir_type *x = inf->in[0];
    size_t n;
    const int64_t *indexes = grt_attr_ints(inf->desc, "ngram_indexes", &n);
    int64_t width = 0;
    for (size_t i = 0; i < n; i++) {
        if (indexes[i] < 0 || indexes[i] >= INT32_MAX)
            return infer_fail(inf, "ngram_indexes holds %lld; columns are numbered from 0",
                              (long long)indexes[i]);
        width = indexes[i] + 1 > width ? indexes[i] + 1 : width;
    }
    if (!n)
        return infer_fail(inf, "attribute ngram_indexes is empty");
    if (x->rank > 2)
        return infer_fail(inf, "the input has rank %d; it must be [C] or [N, C]", x->rank);
    int32_t rank = x->rank == 2 ? 2 : 1;
    grt_dim *dims = x->rank < 0 ? NULL : infer_dims(inf, rank);
    if (dims) {
        dims[0] = rank == 2 ? x->dims[0] : dims[0];
        dims[rank - 1] = grt_dim_const(inf->dims, width);
    }
    infer_set(inf, 0, GRT_DTYPE_FLOAT, rank, dims);
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "ai.onnx.ml",
     .name = "ArrayFeatureExtractor",
     .since = 1,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .precision = OP_WIDE,
     .infer = infer_extractor},
    {.domain = "ai.onnx.ml",
     .name = "Binarizer",
     .since = 1,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = binarizer_attrs,
     .precision = OP_WIDE,
     .infer = infer_same_as_first},
    {.domain = "ai.onnx.ml",
     .name = "LabelEncoder",
     .since = 4,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = label_attrs,
     .precision = OP_WIDE,
     .infer = infer_label,
     .upgrade = upgrade_label},
    {.domain = "",
     .name = "TfIdfVectorizer",
     .since = 9,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = tfidf_attrs,
     .infer = infer_tfidf},
};
OP_TABLE(ml, rows);
