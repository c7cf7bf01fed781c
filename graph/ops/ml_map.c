/* SPDX-License-Identifier: Apache-2.0 */
/* ai.onnx.ml's maps: ZipMap makes them, DictVectorizer and CastMap take them apart. And CategoryMapper, which
 * is a LabelEncoder of two lists. */
#include "graph/ops/foreign.h"
#include "graph/ops/ml_parts.h"

#include "src/base/value_map.h"

#include <string.h>

static const op_attr zip_attrs[] = {
    {"classlabels_int64s", GRT_ATTR_INTS, false}, {"classlabels_strings", GRT_ATTR_STRINGS, false}, {0}};
static const op_attr vectorizer_attrs[] = {
    {"int64_vocabulary", GRT_ATTR_INTS, false}, {"string_vocabulary", GRT_ATTR_STRINGS, false}, {0}};
static const op_attr cast_attrs[] = {{"cast_to", GRT_ATTR_STRING, false},
                                     {"map_form", GRT_ATTR_STRING, false},
                                     {"max_map", GRT_ATTR_INT, false},
                                     {0}};
static const op_attr category_attrs[] = {{"cats_int64s", GRT_ATTR_INTS, false},
                                         {"cats_strings", GRT_ATTR_STRINGS, false},
                                         {"default_int64", GRT_ATTR_INT, false},
                                         {"default_string", GRT_ATTR_STRING, false},
                                         {0}};

static grt_status infer_zip(infer *inf)
{
    const ml_labels labels = ml_labels_of(inf->desc);
    const ir_type *x = inf->in[0];
    int64_t columns;
    if (labels.n < 1)
        return infer_fail(inf, "the class labels are missing: exactly one of the classlabels_* must be set");
    if (x->rank >= 0 && x->rank != 1 && x->rank != 2)
        return infer_fail(inf, "the input has rank %d; it must be [C] or [N, C]", x->rank);
    if (x->rank > 0 && infer_const(inf, x->dims[x->rank - 1], &columns) && columns != labels.n)
        return infer_fail(inf, "there are %lld class labels and %lld columns", (long long)labels.n,
                          (long long)columns);
    inf->out[0] = (ir_type){.kind = GRT_KIND_SEQUENCE,
                            .element_kind = GRT_KIND_MAP,
                            .dtype = x->dtype,
                            .keys = labels.strings ? GRT_DTYPE_STRING : GRT_DTYPE_INT64,
                            .rank = -1};
    return GRT_OK;
}

static grt_status row_ml_map_need_map(const infer *inf, grt_dtype keys)
{
    const ir_type *x = inf->in[0];
    if (x->kind != GRT_KIND_MAP)
        return infer_fail(inf, "input 0 is a %s; it must be a map", grt_kind_name(x->kind));
    if (x->keys && x->keys != keys)
        return infer_fail(inf, "the keys of the map are %s; they must be %s", grt_dtype_name(x->keys),
                          grt_dtype_name(keys));
    return GRT_OK;
}

/* One row, as peers give it; the standard's text calls the output one-dimensional and has no shape for it. */
static void set_row(infer *inf, grt_dtype dtype, grt_dim columns)
{
    grt_dim *dims = infer_dims(inf, 2);
    if (dims) {
        dims[0] = grt_dim_const(inf->dims, 1);
        dims[1] = columns;
    }
    infer_set(inf, 0, dtype, 2, dims);
}

static grt_status ml_map_infer_vectorizer(infer *inf)
{
    size_t n_strings, n_ints;
    const bool strings = grt_attr_strings(inf->desc, "string_vocabulary", &n_strings) != NULL,
               ints = grt_attr_ints(inf->desc, "int64_vocabulary", &n_ints) != NULL;
    if (strings == ints)
        return infer_fail(inf, "exactly one of string_vocabulary and int64_vocabulary must be set");
    GRT_TRY(row_ml_map_need_map(inf, strings ? GRT_DTYPE_STRING : GRT_DTYPE_INT64));
    set_row(inf, inf->in[0]->dtype, grt_dim_const(inf->dims, (int64_t)(strings ? n_strings : n_ints)));
    return GRT_OK;
}

static grt_status cast_dtype(const infer *inf, grt_dtype *out)
{
    static const struct {
        const char *name;
        grt_dtype dtype;
    } types[] = {
        {"TO_FLOAT", GRT_DTYPE_FLOAT}, {"TO_STRING", GRT_DTYPE_STRING}, {"TO_INT64", GRT_DTYPE_INT64}};
    const char *name = grt_attr_string(inf->desc, "cast_to", "TO_FLOAT");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(name, types[i].name)) {
            *out = types[i].dtype;
            return GRT_OK;
        }
    return infer_fail(inf, "attribute cast_to is '%s'; it must be TO_FLOAT, TO_STRING or TO_INT64", name);
}

/* The types that cast_to can name: expand_cast first makes a row of the map's own. */
static grt_status ml_map_need_castable(const infer *inf)
{
    const grt_dtype values = inf->in[0]->dtype;
    if (values && !grt_dtype_in(values, GRT_BIT(FLOAT) | GRT_BIT(INT64) | GRT_BIT(STRING)))
        return infer_fail(inf, "the values of the map are %s; they must be float32, int64 or string",
                          grt_dtype_name(values));
    return GRT_OK;
}

static bool is_sparse(const grt_op_desc *desc)
{
    return !strcmp(grt_attr_string(desc, "map_form", "DENSE"), "SPARSE");
}

static grt_status ml_map_infer_cast(infer *inf)
{
    grt_dtype dtype;
    const char *form = grt_attr_string(inf->desc, "map_form", "DENSE");
    const int64_t most = grt_attr_int(inf->desc, "max_map", 1);
    GRT_TRY(row_ml_map_need_map(inf, GRT_DTYPE_INT64));
    GRT_TRY(ml_map_need_castable(inf));
    GRT_TRY(cast_dtype(inf, &dtype));
    if (strcmp(form, "DENSE") != 0 && !is_sparse(inf->desc))
        return infer_fail(inf, "attribute map_form is '%s'; it must be DENSE or SPARSE", form);
    if (is_sparse(inf->desc) && (most < 1 || most > INT32_MAX))
        return infer_fail(inf, "attribute max_map is %lld; it must be a positive number of elements",
                          (long long)most);
    set_row(inf, dtype, is_sparse(inf->desc) ? grt_dim_const(inf->dims, most) : grt_dim_fresh(inf->dims));
    return GRT_OK;
}

/* Kernels take values as they are; what changes their type is a Cast. */
static grt_status expand_cast(ir_node *node, bool *out_done)
{
    const grt_dtype from = ir_in(node, 0)->type.dtype, to = node->out[0]->type.dtype;
    *out_done = false;
    if (from == to || from == GRT_DTYPE_NONE)
        return GRT_OK;
    if (from == GRT_DTYPE_STRING && is_sparse(&node->desc))
        return grt_fail_op(&node->desc, GRT_STATUS_UNSUPPORTED,
                           "a map to strings cannot be cast to %s in the form SPARSE: what it lacks would be "
                           "empty text, which is no number",
                           grt_dtype_name(to));
    ir_node *plain = ir_node_create(node->graph, node, "ai.onnx.ml", "CastMap", node->desc.name, 1,
                                    (ir_value *[]){ir_in(node, 0)}, 1);
    if (!plain)
        return grt_fail_memory(0);
    ir_attrs_copy(plain, node);
    ir_attr_set_string(plain, "cast_to",
                       from == GRT_DTYPE_STRING  ? "TO_STRING"
                       : from == GRT_DTYPE_INT64 ? "TO_INT64"
                                                 : "TO_FLOAT");
    GRT_TRY(op_infer_node(plain));
    ir_value *cast = ml_cast(node, plain->out[0], to);
    if (!cast)
        return grt_fail_memory(0);
    ml_become(node, 0, cast);
    ir_node_remove(node);
    *out_done = true;
    return GRT_OK;
}

static grt_status rewrite_category(ir_node *node)
{
    size_t n_words, n_numbers;
    const grt_string *words = grt_attr_strings(&node->desc, "cats_strings", &n_words);
    const int64_t *numbers = grt_attr_ints(&node->desc, "cats_int64s", &n_numbers);
    const grt_dtype dtype = ir_in(node, 0) ? ir_in(node, 0)->type.dtype : GRT_DTYPE_NONE;
    if (!words || !numbers || n_words != n_numbers)
        return foreign_invalid(node, "cats_strings has %zu entries and cats_int64s %zu; they are pairs",
                               n_words, n_numbers);
    if (dtype != GRT_DTYPE_STRING && dtype != GRT_DTYPE_INT64)
        return foreign_unsupported(node, "the input is %s; it must be known to be string or int64",
                                   grt_dtype_name(dtype));
    const bool from_words = dtype == GRT_DTYPE_STRING;
    ir_value *y = ml_node(node, "Identity", 1, (ir_value *[]){ir_in(node, 0)});
    if (!y)
        return grt_fail_memory(0);
    ir_node *encoder = y->producer;
    ir_node_become(encoder, "ai.onnx.ml", "LabelEncoder");
    grt_attr list = {.name = from_words ? "keys_strings" : "values_strings", .kind = GRT_ATTR_STRINGS};
    list.strings.v = words;
    list.strings.n = n_words;
    ir_attr_set(encoder, list);
    ir_attr_set_ints(encoder, from_words ? "values_int64s" : "keys_int64s", numbers, n_numbers);
    if (from_words)
        ir_attr_set_int(encoder, "default_int64", grt_attr_int(&node->desc, "default_int64", -1));
    else
        ir_attr_set_string(encoder, "default_string",
                           grt_attr_string(&node->desc, "default_string", "_Unused"));
    return foreign_done1(node, y);
}

#define ML "ai.onnx.ml"
#define MAP(op, kinds, attributes, rule, expansion)                                                   \
    {                                                                                                 \
        .domain = ML, .name = op, .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,   \
        .attrs = attributes, .flags = kinds, .precision = OP_WIDE, .infer = rule, .expand = expansion \
    }
static const op_row rows[] = {
    MAP("ZipMap", 0, zip_attrs, infer_zip, NULL),
    MAP("DictVectorizer", OP_ANY_KIND, vectorizer_attrs, ml_map_infer_vectorizer, NULL),
    MAP("CastMap", OP_ANY_KIND | OP_EXPANDS_ALWAYS, cast_attrs, ml_map_infer_cast, expand_cast),
    FOREIGN(ML, "CategoryMapper", 1, 1, 1, 1, category_attrs, rewrite_category),
};
OP_TABLE(ml_map, rows);
