/* SPDX-License-Identifier: Apache-2.0 */
/* Features and labels: ArrayFeatureExtractor, Binarizer, LabelEncoder, TfIdfVectorizer. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* qsort_r */
#endif
#include "backends/cpu/cpu.h"
#include "src/base/element.h"

#include <stdlib.h>
#include <string.h>

/* ---- ArrayFeatureExtractor ---- */

static grt_status extractor_run(const grt_run *run)
{
    const grt_tensor *x = run->in[0], *y = run->in[1];
    int64_t n = grt_tensor_elements(y), width = x->dims[x->rank - 1],
            rows = grt_dims_product(x->dims, 0, x->rank - 1);
    size_t element = grt_dtype_size(x->dtype);
    for (int64_t k = 0; k < n; k++) {
        int64_t column = grt_tensor_int(y, k);
        if (column < 0 || column >= width)
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "feature %lld does not exist; there are %lld, from 0", (long long)column,
                               (long long)width);
        for (int64_t row = 0; row < rows; row++)
            memcpy((char *)run->out[0]->data + (size_t)(row * n + k) * element,
                   (const char *)x->data + (size_t)(row * width + column) * element, element);
    }
    if (x->dtype != GRT_DTYPE_STRING)
        return GRT_OK;
    /* Bytes are copied, as the input may be freed before the output is read. */
    grt_string *out = run->out[0]->data;
    for (int64_t i = 0; i < rows * n; i++) {
        char *bytes = run->hooks->alloc_bytes(run, out[i].size);
        if (!bytes)
            return grt_fail_memory(out[i].size);
        if (out[i].size)
            memcpy(bytes, out[i].data, out[i].size);
        out[i].data = bytes;
    }
    return GRT_OK;
}

static grt_status extractor_reshape(grt_reshape *reshape)
{
    return reshape->in[0]->rank > 0 ? GRT_OK
                                    : grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT,
                                                  "the input is a scalar; it has no features");
}

/* ---- Binarizer ---- */

static grt_status binarizer_create(const grt_kernel_node *node, void **out_state)
{
    float *threshold = malloc(sizeof *threshold);
    if (!threshold)
        return grt_fail_memory(sizeof *threshold);
    *threshold = grt_attr_float(node->desc, "threshold", 0);
    *out_state = threshold;
    return GRT_OK;
}

static grt_status binarizer_run(const grt_run *run)
{
    const float *threshold = run->state;
    int64_t n = grt_tensor_elements(run->in[0]);
#pragma omp parallel for num_threads(run->threads) if (n > CPU_GRAIN)
    for (int64_t i = 0; i < n; i++)
        grt_element_put(run->out[0], i, grt_element_get(run->in[0], i) > (double)*threshold);
    return GRT_OK;
}

/* ---- LabelEncoder: binary search in the sorted keys ---- */

typedef struct label_state {
    grt_tensor keys, values, fallback; /* views of attributes */
    int64_t *order; /* indices of the keys, sorted; equal keys: the last one of the model first */
    int64_t n;
    float default_float;
    int64_t default_int;
    grt_string default_string;
    int64_t default_any; /* one element of the values' dtype */
} label_state;

static int ml_compare_strings(grt_string a, grt_string b)
{
    size_t n = a.size < b.size ? a.size : b.size;
    int order = n ? memcmp(a.data, b.data, n) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

/* Element i of a against element j of b, of one dtype. NaN equals NaN and comes last. */
static int ml_compare(const grt_tensor *a, int64_t i, const grt_tensor *b, int64_t j)
{
    if (a->dtype == GRT_DTYPE_STRING)
        return ml_compare_strings(((const grt_string *)a->data)[i], ((const grt_string *)b->data)[j]);
    if (grt_dtype_in(a->dtype, GRT_SET_INTS)) {
        int64_t x = grt_tensor_int(a, i), y = grt_tensor_int(b, j);
        return (x > y) - (x < y);
    }
    double x = grt_element_get(a, i), y = grt_element_get(b, j);
    if (isnan(x) || isnan(y))
        return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

static int compare_keys(const void *a, const void *b, void *keys)
{
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    int order = ml_compare(keys, i, keys, j);
    return order ? order : (i < j) - (i > j);
}

static grt_tensor list_view(grt_dtype dtype, const void *data, size_t n)
{
    return (grt_tensor){.dtype = dtype, .rank = 1, .dims = {(int64_t)n}, .data = (void *)(uintptr_t)data};
}

/* The list attribute that is present, as a tensor. */
static grt_tensor ml_list_of(const grt_op_desc *desc, const char *const names[4])
{
    const grt_attr *attr = NULL;
    for (int i = 0; i < 4 && !attr; i++)
        attr = grt_attr_find(desc, names[i]);
    if (!attr)
        return (grt_tensor){0};
    if (attr->kind == GRT_ATTR_TENSOR)
        return *attr->t;
    if (attr->kind == GRT_ATTR_STRINGS)
        return list_view(GRT_DTYPE_STRING, attr->strings.v, attr->strings.n);
    return attr->kind == GRT_ATTR_INTS ? list_view(GRT_DTYPE_INT64, attr->ints.v, attr->ints.n)
                                       : list_view(GRT_DTYPE_FLOAT, attr->floats.v, attr->floats.n);
}

static void label_destroy(void *pointer)
{
    label_state *state = pointer;
    grt_account_free(state->order);
    free(state);
}

static void set_fallback(const grt_op_desc *desc, label_state *state)
{
    static const char unused[] = "_Unused";
    const grt_tensor *tensor = grt_attr_tensor(desc, "default_tensor");
    const grt_attr *word = grt_attr_find(desc, "default_string");
    state->default_float = grt_attr_float(desc, "default_float", -0.0f);
    state->default_int = grt_attr_int(desc, "default_int64", -1);
    state->default_string =
        word && word->kind == GRT_ATTR_STRING ? word->s : (grt_string){unused, sizeof unused - 1};
    state->fallback = list_view(state->values.dtype, &state->default_any, 1);
    if (state->values.dtype == GRT_DTYPE_STRING)
        state->fallback.data = &state->default_string;
    else
        grt_element_put(&state->fallback, 0,
                        grt_dtype_in(state->values.dtype, GRT_SET_FLOATS) ? (double)state->default_float
                                                                          : -1);
    if (state->values.dtype == GRT_DTYPE_INT64)
        state->default_any = state->default_int;
    if (tensor)
        state->fallback = *tensor;
}

static grt_status label_create(const grt_kernel_node *node, void **out_state)
{
    static const char *const keys[] = {"keys_strings", "keys_int64s", "keys_floats", "keys_tensor"};
    static const char *const values[] = {"values_strings", "values_int64s", "values_floats", "values_tensor"};
    label_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    state->keys = ml_list_of(node->desc, keys);
    state->values = ml_list_of(node->desc, values);
    state->n = grt_tensor_elements(&state->keys);
    set_fallback(node->desc, state);
    bool fits = state->n == grt_tensor_elements(&state->values) && state->keys.dtype == node->in[0].dtype &&
                state->fallback.dtype == state->values.dtype && grt_tensor_elements(&state->fallback) == 1;
    const grt_status status =
        fits ? grt_kernel_alloc(node, (size_t)state->n * sizeof *state->order, (void **)&state->order)
             : grt_fail_op(node->desc, GRT_STATUS_INVALID_MODEL,
                           "needs as many values as keys, keys of the input's dtype, and a default of the "
                           "values' dtype");
    if (status != GRT_OK) {
        label_destroy(state);
        return status;
    }
    for (int64_t i = 0; i < state->n; i++)
        state->order[i] = i;
    qsort_r(state->order, (size_t)state->n, sizeof *state->order, compare_keys, &state->keys);
    *out_state = state;
    return GRT_OK;
}

/* Index of the value for element i of x; -1 if no key fits. */
static int64_t find_label(const label_state *state, const grt_tensor *x, int64_t i)
{
    int64_t lo = 0, hi = state->n;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (ml_compare(&state->keys, state->order[mid], x, i) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    bool found = lo < state->n && !ml_compare(&state->keys, state->order[lo], x, i);
    return found ? state->order[lo] : -1;
}

static grt_status label_run(const grt_run *run)
{
    const label_state *state = run->state;
    const grt_tensor *x = run->in[0];
    size_t element = grt_dtype_size(state->values.dtype);
    int64_t n = grt_tensor_elements(x);
#pragma omp parallel for num_threads(run->threads) if (n > CPU_GRAIN / 8)
    for (int64_t i = 0; i < n; i++) {
        int64_t label = find_label(state, x, i);
        const char *from =
            label < 0 ? state->fallback.data : (const char *)state->values.data + (size_t)label * element;
        memcpy((char *)run->out[0]->data + (size_t)i * element, from,
               element); /* strings: the session's own bytes */
    }
    return GRT_OK;
}

/* ---- TfIdfVectorizer: n-grams of the pool, sorted, searched for each window of the input ---- */

typedef struct ngram {
    int64_t size, at; /* elements of the pool */
    int64_t column;
} ngram;

typedef struct tfidf_state {
    const int64_t *ints; /* one of the two pools */
    const grt_string *strings;
    ngram *grams; /* sorted by size, then content */
    size_t n_grams;
    int64_t min, max, skips, width;
    bool count, weigh; /* mode TF, TFIDF count; IDF and TFIDF weigh */
    const float *weights;
} tfidf_state;

static void tfidf_destroy(void *pointer)
{
    tfidf_state *state = pointer;
    grt_account_free(state->grams);
    free(state);
}

static int compare_grams(const void *a, const void *b, void *pointer)
{
    const tfidf_state *state = pointer;
    const ngram *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    for (int64_t i = 0; i < x->size; i++) {
        int order = 0;
        if (state->strings) {
            order = ml_compare_strings(state->strings[x->at + i], state->strings[y->at + i]);
        } else {
            int64_t p = state->ints[x->at + i], q = state->ints[y->at + i];
            order = (p > q) - (p < q);
        }
        if (order)
            return order;
    }
    return 0;
}

static grt_status collect_grams(const grt_kernel_node *node, tfidf_state *state, size_t pool)
{
    size_t n_counts, n_indexes, n_weights, gram = 0;
    const int64_t *counts = grt_attr_ints(node->desc, "ngram_counts", &n_counts);
    const int64_t *indexes = grt_attr_ints(node->desc, "ngram_indexes", &n_indexes);
    state->weights = grt_attr_floats(node->desc, "weights", &n_weights);
    for (size_t i = 0; i < n_indexes; i++) {
        if (indexes[i] < 0 || indexes[i] >= INT32_MAX)
            return grt_fail_op(node->desc, GRT_STATUS_INVALID_MODEL,
                               "ngram_indexes[%zu] is %lld; it must be the place of an output", i,
                               (long long)indexes[i]);
        state->width = indexes[i] + 1 > state->width ? indexes[i] + 1 : state->width;
    }
    GRT_TRY(grt_kernel_alloc(node, n_indexes * sizeof *state->grams, (void **)&state->grams));
    for (size_t s = 0; s < n_counts; s++) {
        int64_t size = (int64_t)s + 1, end = s + 1 < n_counts ? counts[s + 1] : (int64_t)pool;
        if (counts[s] < 0 || counts[s] > end || end > (int64_t)pool)
            return grt_fail_op(node->desc, GRT_STATUS_INVALID_MODEL,
                               "ngram_counts[%zu] is %lld; the pool has %zu elements", s,
                               (long long)counts[s], pool);
        for (int64_t at = counts[s]; at + size <= end; at += size, gram++) {
            if (gram >= n_indexes)
                return grt_fail_op(node->desc, GRT_STATUS_INVALID_MODEL,
                                   "the pool has more n-grams than ngram_indexes, %zu", n_indexes);
            if (size >= state->min && size <= state->max)
                state->grams[state->n_grams++] = (ngram){size, at, indexes[gram]};
        }
    }
    if (state->weights && (int64_t)n_weights < state->width)
        return grt_fail_op(node->desc, GRT_STATUS_INVALID_MODEL, "there are %zu weights for %lld columns",
                           n_weights, (long long)state->width);
    qsort_r(state->grams, state->n_grams, sizeof *state->grams, compare_grams, state);
    return GRT_OK;
}

static grt_status tfidf_create(const grt_kernel_node *node, void **out_state)
{
    tfidf_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    const char *mode = grt_attr_string(node->desc, "mode", "");
    size_t n_ints, n_strings;
    state->ints = grt_attr_ints(node->desc, "pool_int64s", &n_ints);
    state->strings = grt_attr_strings(node->desc, "pool_strings", &n_strings);
    state->min = grt_attr_int(node->desc, "min_gram_length", 1);
    state->max = grt_attr_int(node->desc, "max_gram_length", 1);
    state->skips = grt_attr_int(node->desc, "max_skip_count", 0);
    state->count = strcmp(mode, "IDF") != 0;
    state->weigh = strcmp(mode, "TF") != 0;
    grt_status status = GRT_OK;
    if (strcmp(mode, "TF") && strcmp(mode, "IDF") && strcmp(mode, "TFIDF"))
        status = grt_fail_op(node->desc, GRT_STATUS_INVALID_MODEL,
                             "attribute mode is '%s'; it must be TF, IDF or TFIDF", mode);
    else if ((node->in[0].dtype == GRT_DTYPE_STRING) != (state->strings != NULL) ||
             (!state->ints && !state->strings))
        status = grt_fail_op(node->desc, GRT_STATUS_INVALID_MODEL,
                             "string inputs need pool_strings, numbers pool_int64s");
    else if (state->min < 1 || state->max < state->min || state->skips < 0)
        status = grt_fail_op(node->desc, GRT_STATUS_INVALID_MODEL,
                             "gram lengths %lld to %lld with %lld skips make no sense", (long long)state->min,
                             (long long)state->max, (long long)state->skips);
    if (status == GRT_OK)
        status = collect_grams(node, state, state->strings ? n_strings : n_ints);
    if (status != GRT_OK) {
        tfidf_destroy(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

/* Order of a pool n-gram and the `gram->size` input elements at, at + step, ... */
static int compare_window(const tfidf_state *state, const ngram *gram, const grt_tensor *x, int64_t at,
                          int64_t step)
{
    for (int64_t i = 0; i < gram->size; i++) {
        int order;
        if (state->strings) {
            order = ml_compare_strings(state->strings[gram->at + i],
                                       ((const grt_string *)x->data)[at + i * step]);
        } else {
            int64_t p = state->ints[gram->at + i], q = grt_tensor_int(x, at + i * step);
            order = (p > q) - (p < q);
        }
        if (order)
            return order;
    }
    return 0;
}

/* Column of the n-gram in this window; of equal n-grams in the pool the last one counts. -1: none. */
static int64_t find_gram(const tfidf_state *state, int64_t size, const grt_tensor *x, int64_t at,
                         int64_t step)
{
    size_t lo = 0, hi = state->n_grams;
    const ngram *best = NULL;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const ngram *gram = &state->grams[mid];
        int order =
            gram->size != size ? (gram->size < size ? -1 : 1) : compare_window(state, gram, x, at, step);
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < state->n_grams && state->grams[lo].size == size &&
           !compare_window(state, &state->grams[lo], x, at, step);
         lo++)
        best = !best || state->grams[lo].at > best->at ? &state->grams[lo] : best;
    return best ? best->column : -1;
}

static void count_row(const tfidf_state *state, const grt_tensor *x, int64_t from, int64_t n, float *counts)
{
    for (int64_t step = 1; step - 1 <= state->skips && step <= n; step++)
        for (int64_t size = state->min; size <= state->max; size++) {
            if (size == 1 && step > 1) /* single elements have no gaps: counted once */
                continue;
            if (size > 1 && step > (n - 1) / (size - 1))
                break;
            for (int64_t at = 0; at + (size - 1) * step < n; at++) {
                int64_t column = find_gram(state, size, x, from + at, step);
                if (column >= 0)
                    counts[column]++;
            }
        }
}

static grt_status tfidf_run(const grt_run *run)
{
    const tfidf_state *state = run->state;
    const grt_tensor *x = run->in[0];
    int64_t rows = x->rank == 2 ? x->dims[0] : 1, n = x->rank ? x->dims[x->rank - 1] : 1;
#pragma omp parallel for num_threads(run->threads) if (rows * n > CPU_GRAIN / 8)
    for (int64_t row = 0; row < rows; row++) {
        float *out = (float *)run->out[0]->data + row * state->width;
        memset(out, 0, (size_t)state->width * sizeof *out);
        count_row(state, x, row * n, n, out);
        for (int64_t i = 0; i < state->width; i++) {
            float weight = state->weigh && state->weights ? state->weights[i] : 1;
            out[i] = weight * (state->count ? out[i] : out[i] > 0 ? 1.0f : 0.0f);
        }
    }
    return GRT_OK;
}

#define ML_NUMBERS (GRT_BIT(FLOAT) | GRT_BIT(DOUBLE) | GRT_BIT(INT64) | GRT_BIT(INT32))
static const grt_kernel_row rows[] = {
    {.domain = "ai.onnx.ml",
     .op = "ArrayFeatureExtractor",
     .types = {ML_NUMBERS | GRT_BIT(STRING), GRT_BIT(INT64)},
     .reshape = extractor_reshape,
     .run = extractor_run},
    {.domain = "ai.onnx.ml",
     .op = "Binarizer",
     .types = {ML_NUMBERS},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .create = binarizer_create,
     .destroy = free,
     .run = binarizer_run},
    {.domain = "ai.onnx.ml",
     .op = "LabelEncoder",
     .types = {ML_NUMBERS | GRT_BIT(STRING) | GRT_BIT(INT16)},
     .create = label_create,
     .destroy = label_destroy,
     .run = label_run},
    {.domain = "",
     .op = "TfIdfVectorizer",
     .types = {GRT_BIT(STRING) | GRT_BIT(INT32) | GRT_BIT(INT64)},
     .create = tfidf_create,
     .destroy = tfidf_destroy,
     .run = tfidf_run},
};
CPU_KERNELS(ml, rows);
