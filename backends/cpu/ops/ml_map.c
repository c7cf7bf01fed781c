/* SPDX-License-Identifier: Apache-2.0 */
/* Maps: ZipMap, DictVectorizer and CastMap. */
#include "backends/cpu/cpu.h"
#include "src/base/value_map.h"

#include <stdlib.h>
#include <string.h>

/* The labels or the vocabulary of a node, as its attributes have them, and their ascending order. */
typedef struct dictionary {
    grt_tensor keys;
    int64_t *order;   /* equal keys lie beside each other, in the order of the model */
    grt_value sorted; /* ZipMap: the keys in their order, once for all maps */
} dictionary;

static void dictionary_destroy(void *state)
{
    dictionary *d = state;
    grt_account_free(d->order);
    grt_value_clear(&d->sorted);
    free(d);
}

static grt_tensor ml_map_keys_of(const grt_op_desc *desc, const char *ints, const char *strings)
{
    size_t n;
    grt_tensor t = {.dtype = GRT_DTYPE_STRING, .rank = 1};
    t.data = (void *)(uintptr_t)grt_attr_strings(desc, strings, &n);
    if (!t.data || !n) {
        t.dtype = GRT_DTYPE_INT64;
        t.data = (void *)(uintptr_t)grt_attr_ints(desc, ints, &n);
    }
    t.dims[0] = (int64_t)n;
    return t;
}

/* Of maps, a key that is there; *out_at is its place. */
static bool ml_map_find_key(const grt_tensor *keys, const grt_tensor *wanted, int64_t i, int64_t *out_at)
{
    int64_t low = 0, high = keys->dims[0];
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = grt_key_compare(keys, middle, wanted, i);
        if (!order) {
            *out_at = middle;
            return true;
        }
        *(order < 0 ? &low : &high) = order < 0 ? middle + 1 : middle;
    }
    return false;
}

static grt_status order_keys(const grt_kernel_node *node, dictionary *d)
{
    const size_t bytes = (size_t)d->keys.dims[0] * sizeof *d->order;
    int64_t *order;
    GRT_TRY(grt_keys_order(&d->keys, &order));
    const grt_status status = grt_kernel_alloc(node, bytes, (void **)&d->order);
    if (status == GRT_OK)
        memcpy(d->order, order, bytes);
    free(order);
    return status;
}

static grt_status sort_keys(const grt_kernel_node *node, dictionary *d)
{
    GRT_TRY(order_keys(node, d));
    const size_t size = grt_dtype_size(d->keys.dtype), n = (size_t)d->keys.dims[0];
    char *elements = malloc(n * size + 1);
    if (!elements)
        return grt_fail_memory(n * size);
    for (size_t i = 0; i < n; i++)
        memcpy(elements + i * size, (const char *)d->keys.data + (size_t)d->order[i] * size, size);
    grt_tensor view = d->keys;
    view.data = elements;
    grt_account *const before = grt_account_enter(node->account); /* maps share the value: it is a buffer */
    const grt_status status = grt_value_copy_tensor(&d->sorted, &view);
    grt_account_enter(before);
    free(elements);
    return status;
}

static grt_status zip_create(const grt_kernel_node *node, void **out_state)
{
    dictionary *d = calloc(1, sizeof *d);
    if (!d)
        return grt_fail_memory(sizeof *d);
    d->keys = ml_map_keys_of(node->desc, "classlabels_int64s", "classlabels_strings");
    const grt_status status = sort_keys(node, d);
    if (status != GRT_OK) {
        dictionary_destroy(d);
        return status == GRT_STATUS_OUT_OF_MEMORY
                   ? status
                   : grt_fail_op(node->desc, GRT_STATUS_INVALID_MODEL, "%s", grt_last_error());
    }
    *out_state = d;
    return GRT_OK;
}

static grt_status zip_row(const dictionary *d, const grt_tensor *x, int64_t row, grt_value *out)
{
    grt_value keys = {0}, values = {0};
    const size_t size = grt_dtype_size(x->dtype), n = (size_t)d->keys.dims[0];
    const char *from = (const char *)x->data + (size_t)row * n * size;
    GRT_TRY(grt_value_share(&keys, &d->sorted));
    const grt_status status = grt_value_alloc(&values, x->dtype, 1, d->keys.dims);
    if (status != GRT_OK) {
        grt_value_clear(&keys);
        return status;
    }
    for (size_t i = 0; i < n; i++)
        memcpy((char *)values.t.data + i * size, from + (size_t)d->order[i] * size, size);
    return grt_value_join_map(out, &keys, &values);
}

static grt_status zip_run(const grt_run *run)
{
    const dictionary *d = run->state;
    const grt_tensor *x = run->in[0];
    grt_value *out = (grt_value *)run->out[0], *item;
    if ((x->rank != 1 && x->rank != 2) || x->dims[x->rank - 1] != d->keys.dims[0])
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input must have a column for each of the %lld class labels",
                           (long long)d->keys.dims[0]);
    *out = (grt_value){.kind = GRT_KIND_SEQUENCE, .t.dtype = x->dtype};
    const int64_t rows = x->rank == 2 ? x->dims[0] : 1;
    for (int64_t row = 0; row < rows; row++) {
        GRT_TRY(grt_value_insert(out, out->n, &item));
        GRT_TRY(zip_row(d, x, row, item));
    }
    return GRT_OK;
}

static grt_status vectorizer_create(const grt_kernel_node *node, void **out_state)
{
    grt_tensor *keys = malloc(sizeof *keys);
    if (!keys)
        return grt_fail_memory(sizeof *keys);
    *keys = ml_map_keys_of(node->desc, "int64_vocabulary", "string_vocabulary");
    *out_state = keys;
    return GRT_OK;
}

static grt_status cpu_ml_map_need_map(const grt_run *run, grt_dtype keys, const grt_value **out_map)
{
    const grt_value *map = (const grt_value *)run->in[0];
    if (map->kind != GRT_KIND_MAP || grt_map_keys(map)->dtype != keys)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT, "the input must be a map from %s",
                           grt_dtype_name(keys));
    *out_map = map;
    return GRT_OK;
}

/* Element i of `out` is value `at` of the map. */
static void ml_map_take(grt_tensor *out, int64_t i, const grt_value *map, int64_t at)
{
    const size_t size = grt_dtype_size(out->dtype);
    memcpy((char *)out->data + (size_t)i * size, (const char *)grt_map_values(map)->data + (size_t)at * size,
           size);
}

/* A row of zeros, or of empty strings. */
static grt_status make_row(const grt_run *run, const grt_value *map, int64_t columns)
{
    grt_value *out = (grt_value *)run->out[0];
    GRT_TRY(grt_value_alloc(out, grt_map_values(map)->dtype, 2, (int64_t[]){1, columns}));
    const size_t bytes = grt_tensor_bytes(&out->t);
    memset(out->t.data, 0, bytes);
    return GRT_OK;
}

/* Strings are those of the map, which may be gone before the output is. */
static grt_status keep_strings(const grt_run *run)
{
    grt_value *out = (grt_value *)run->out[0];
    return out->t.dtype == GRT_DTYPE_STRING ? grt_value_copy_tensor(out, &out->t) : GRT_OK;
}

static grt_status vectorizer_run(const grt_run *run)
{
    const grt_tensor *words = run->state;
    const grt_value *map;
    int64_t at;
    GRT_TRY(cpu_ml_map_need_map(run, words->dtype, &map));
    GRT_TRY(make_row(run, map, words->dims[0]));
    for (int64_t i = 0; i < words->dims[0]; i++)
        if (ml_map_find_key(grt_map_keys(map), words, i, &at))
            ml_map_take(run->out[0], i, map, at);
    return keep_strings(run);
}

static grt_status cast_create(const grt_kernel_node *node, void **out_state)
{
    int64_t *columns = malloc(sizeof *columns);
    if (!columns)
        return grt_fail_memory(sizeof *columns);
    const bool sparse = !strcmp(grt_attr_string(node->desc, "map_form", "DENSE"), "SPARSE");
    *columns = sparse ? grt_attr_int(node->desc, "max_map", 1) : -1;
    *out_state = columns;
    return GRT_OK;
}

/* Dense: the values in the order of their keys. Sparse: value k in column k, as far as there are columns. */
static grt_status cast_run(const grt_run *run)
{
    const int64_t columns = *(const int64_t *)run->state;
    const grt_value *map;
    GRT_TRY(cpu_ml_map_need_map(run, GRT_DTYPE_INT64, &map));
    const int64_t *keys = grt_map_keys(map)->data, n = grt_map_keys(map)->dims[0];
    if (columns >= 0 && n && keys[0] < 0)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "key %lld is negative; in the form SPARSE keys are columns", (long long)keys[0]);
    GRT_TRY(make_row(run, map, columns < 0 ? n : columns));
    for (int64_t i = 0; i < n && (columns < 0 || keys[i] < columns); i++)
        ml_map_take(run->out[0], columns < 0 ? i : keys[i], map, i);
    return keep_strings(run);
}

#define PLAIN GRT_SET_PLAIN | GRT_BIT(STRING)
static const grt_kernel_row rows[] = {
    {.domain = "ai.onnx.ml",
     .op = "ZipMap",
     .types = {GRT_SET_PLAIN},
     .flags = GRT_KERNEL_VALUES,
     .create = zip_create,
     .destroy = dictionary_destroy,
     .run = zip_run},
    {.domain = "ai.onnx.ml",
     .op = "DictVectorizer",
     .types = {PLAIN},
     .flags = GRT_KERNEL_VALUES,
     .create = vectorizer_create,
     .destroy = free,
     .run = vectorizer_run},
    {.domain = "ai.onnx.ml",
     .op = "CastMap",
     .types = {PLAIN},
     .flags = GRT_KERNEL_VALUES,
     .create = cast_create,
     .destroy = free,
     .run = cast_run},
};
CPU_KERNELS(ml_map, rows);
