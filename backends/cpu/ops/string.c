/* SPDX-License-Identifier: Apache-2.0 */
/* Text: RegexFullMatch, StringConcat, StringNormalizer, StringSplit. Bytes of results are always copied, as
 * inputs may be freed first. Strings are UTF-8; invalid bytes are kept unchanged.
 */
#include "backends/cpu/cpu.h"
#include "backends/cpu/regex.h"
#include "backends/cpu/threads.h"
#include "src/base/checked.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

static bool same(grt_string a, grt_string b)
{
    return a.size == b.size && (!a.size || !memcmp(a.data, b.data, a.size));
}

static grt_string string_append(char **at, grt_string s)
{
    grt_string copy = {*at, s.size};
    if (s.size)
        memcpy(*at, s.data, s.size);
    *at += s.size;
    return copy;
}

/* ---- StringConcat ---- */

typedef struct concat_shape {
    int32_t rank;
    int64_t n, dims[GRT_MAX_RANK], a[GRT_MAX_RANK], b[GRT_MAX_RANK];
} concat_shape;

static grt_status concat_reshape(grt_reshape *reshape)
{
    const grt_tensor *a = reshape->in[0], *b = reshape->in[1];
    concat_shape *shape = calloc(1, sizeof *shape);
    if (!shape)
        return grt_fail_memory(sizeof *shape);
    if (!grt_dims_broadcast(a->dims, a->rank, b->dims, b->rank, shape->dims, &shape->rank)) {
        char x[GRT_TYPE_TEXT_SIZE], y[GRT_TYPE_TEXT_SIZE];
        free(shape);
        return grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "%s and %s cannot be broadcast together", grt_tensor_text(a, x),
                           grt_tensor_text(b, y));
    }
    shape->n = grt_dims_product(shape->dims, 0, shape->rank);
    grt_broadcast_strides(a->dims, a->rank, shape->rank, shape->a);
    grt_broadcast_strides(b->dims, b->rank, shape->rank, shape->b);
    reshape->shape = shape;
    return GRT_OK;
}

/* Offset of element i under broadcast strides. */
static int64_t string_offset_of(const concat_shape *shape, const int64_t *strides, int64_t i)
{
    return grt_strided_offset(shape->dims, shape->rank, strides, i);
}

static grt_status string_concat_run(const grt_run *run)
{
    const concat_shape *shape = run->shape;
    const grt_string *a = run->in[0]->data, *b = run->in[1]->data;
    grt_string *out = run->out[0]->data;
    size_t bytes = 0;
    for (int64_t i = 0; i < shape->n; i++)
        if (!grt_add_size(bytes, a[string_offset_of(shape, shape->a, i)].size, &bytes) ||
            !grt_add_size(bytes, b[string_offset_of(shape, shape->b, i)].size, &bytes))
            return grt_fail_memory(SIZE_MAX);
    char *at = run->hooks->alloc_bytes(run, bytes);
    if (!at)
        return grt_fail_memory(bytes);
    for (int64_t i = 0; i < shape->n; i++) {
        grt_string first = string_append(&at, a[string_offset_of(shape, shape->a, i)]);
        grt_string second = string_append(&at, b[string_offset_of(shape, shape->b, i)]);
        out[i] = (grt_string){first.data, first.size + second.size};
    }
    return GRT_OK;
}

/* ---- StringSplit ---- */

typedef struct split_state {
    grt_string delimiter; /* empty: runs of white space */
    int64_t limit;        /* splits, not parts; INT64_MAX if unlimited */
} split_state;

static grt_status split_create(const grt_kernel_node *node, void **out_state)
{
    split_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    const grt_attr *delimiter = grt_attr_find(node->desc, "delimiter");
    if (delimiter && delimiter->kind == GRT_ATTR_STRING)
        state->delimiter = delimiter->s;
    state->limit = grt_attr_int(node->desc, "maxsplit", -1);
    if (state->limit < 0)
        state->limit = INT64_MAX;
    *out_state = state;
    return GRT_OK;
}

static bool string_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Take the next part off the front of *rest. False when nothing is left. `splits` counts those made so far;
 * *done is set when the part taken was the last. */
static bool string_next_part(const split_state *state, grt_string *rest, int64_t splits, bool *done,
                             grt_string *part)
{
    size_t end = 0, skip = state->delimiter.size;
    if (*done)
        return false;
    if (!skip) {
        while (rest->size && string_is_space(*rest->data))
            *rest = (grt_string){rest->data + 1, rest->size - 1};
        if (!rest->size)
            return false;
        while (end < rest->size && !string_is_space(rest->data[end]))
            end++;
        skip = end < rest->size;
    } else {
        while (end + skip <= rest->size && memcmp(rest->data + end, state->delimiter.data, skip) != 0)
            end++;
        if (end + skip > rest->size) {
            end = rest->size;
            skip = 0;
        }
    }
    if (splits >= state->limit) {
        end = rest->size;
        skip = 0;
    }
    *part = (grt_string){rest->data, end};
    *done = !skip;
    *rest = (grt_string){rest->size ? rest->data + end + skip : rest->data, rest->size - end - skip};
    return true;
}

static int64_t count_parts(const split_state *state, grt_string s)
{
    int64_t n = 0;
    bool done = false;
    grt_string part;
    while (string_next_part(state, &s, n, &done, &part))
        n++;
    return n;
}

static grt_status string_split_run(const grt_run *run)
{
    const split_state *state = run->state;
    const grt_tensor *x = run->in[0];
    const grt_string *in = x->data;
    int64_t n = grt_tensor_elements(x), width = 0, dims[GRT_MAX_RANK + 1];
    size_t bytes = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t parts = count_parts(state, in[i]);
        width = parts > width ? parts : width;
        if (!grt_add_size(bytes, in[i].size, &bytes))
            return grt_fail_memory(SIZE_MAX);
    }
    if (x->rank == GRT_MAX_RANK)
        return grt_fail_op(run->desc, GRT_STATUS_UNSUPPORTED,
                           "the result would have rank %d; at most %d is supported", x->rank + 1,
                           GRT_MAX_RANK);
    memcpy(dims, x->dims, sizeof x->dims);
    dims[x->rank] = width;
    if (run->out[0])
        GRT_TRY(run->hooks->alloc_output(run, 0, x->rank + 1, dims));
    if (run->n_out > 1 && run->out[1])
        GRT_TRY(run->hooks->alloc_output(run, 1, x->rank, x->dims));
    char *at = run->hooks->alloc_bytes(run, bytes);
    if (!at)
        return grt_fail_memory(bytes);
    for (int64_t i = 0; i < n; i++) {
        grt_string rest = in[i], part;
        int64_t parts = 0;
        bool done = false;
        while (string_next_part(state, &rest, parts, &done, &part)) {
            if (run->out[0])
                ((grt_string *)run->out[0]->data)[i * width + parts] = string_append(&at, part);
            parts++;
        }
        for (int64_t k = parts; run->out[0] && k < width; k++)
            ((grt_string *)run->out[0]->data)[i * width + k] = (grt_string){at, 0};
        if (run->n_out > 1 && run->out[1])
            ((int64_t *)run->out[1]->data)[i] = parts;
    }
    return GRT_OK;
}

/* ---- StringNormalizer ---- */

typedef enum letter_case { KEEP_CASE, LOWER_CASE, UPPER_CASE } letter_case;

typedef struct normalizer_state {
    letter_case action;
    bool case_sensitive;
    locale_t locale;       /* 0 if no UTF-8 locale exists: then only ASCII letters change */
    grt_string *stopwords; /* in lower case unless case_sensitive */
    size_t n_stopwords;
    char *bytes;
} normalizer_state;

/* Characters of UTF-8; a byte that starts none is returned as -1 with length 1. */
static size_t string_decode(grt_string s, size_t at, int64_t *code)
{
    const unsigned char *p = (const unsigned char *)s.data + at;
    size_t n = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 : *p >> 3 == 30 ? 4 : 0;
    *code = n == 1 ? *p : n ? *p & (0x7f >> n) : -1;
    if (!n || at + n > s.size) {
        *code = -1;
        return 1;
    }
    for (size_t i = 1; i < n; i++) {
        if (p[i] >> 6 != 2) {
            *code = -1;
            return 1;
        }
        *code = *code << 6 | (p[i] & 0x3f);
    }
    return n;
}

static size_t string_encode(int64_t code, char *out)
{
    unsigned char *p = (unsigned char *)out;
    if (code < 0x80) {
        p[0] = (unsigned char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; code >>= 6)
        p[i] = (unsigned char)(0x80 | (code & 0x3f));
    p[0] = (unsigned char)((0xf00u >> n & 0xf0u) | (unsigned)code);
    return n;
}

static int64_t change_letter(const normalizer_state *state, letter_case to, int64_t code)
{
    if (code < 0x80 || !state->locale) {
        bool lower = code >= 'a' && code <= 'z', upper = code >= 'A' && code <= 'Z';
        return to == UPPER_CASE && lower ? code - 32 : to == LOWER_CASE && upper ? code + 32 : code;
    }
    return to == UPPER_CASE ? (int64_t)towupper_l((wint_t)code, state->locale)
                            : (int64_t)towlower_l((wint_t)code, state->locale);
}

/* Room for a changed string: a letter may take up to 4 bytes where the other case takes 1. */
static size_t changed_room(size_t size)
{
    return size > SIZE_MAX / 4 ? SIZE_MAX : size * 4;
}

static grt_string change_case(const normalizer_state *state, letter_case to, grt_string s, char **at)
{
    if (to == KEEP_CASE)
        return string_append(at, s);
    grt_string out = {*at, 0};
    for (size_t i = 0; i < s.size;) {
        int64_t code;
        size_t n = string_decode(s, i, &code);
        if (code < 0)
            *(*at)++ = s.data[i];
        else
            *at += string_encode(change_letter(state, to, code), *at);
        i += n;
    }
    out.size = (size_t)(*at - out.data);
    return out;
}

static void normalizer_destroy(void *pointer)
{
    normalizer_state *state = pointer;
    if (state->locale)
        freelocale(state->locale);
    grt_account_free(state->stopwords);
    grt_account_free(state->bytes);
    free(state);
}

static grt_status keep_stopwords(const grt_kernel_node *node, normalizer_state *state,
                                 const grt_string *words, size_t n)
{
    size_t bytes = 1;
    for (size_t i = 0; i < n; i++)
        if (!grt_add_size(bytes, changed_room(words[i].size), &bytes))
            return grt_fail_memory(SIZE_MAX);
    GRT_TRY(grt_kernel_alloc(node, n * sizeof *words, (void **)&state->stopwords));
    GRT_TRY(grt_kernel_alloc(node, bytes, (void **)&state->bytes));
    char *at = state->bytes;
    for (size_t i = 0; i < n; i++)
        state->stopwords[i] =
            change_case(state, state->case_sensitive ? KEEP_CASE : LOWER_CASE, words[i], &at);
    state->n_stopwords = n;
    return GRT_OK;
}

static grt_status normalizer_create(const grt_kernel_node *node, void **out_state)
{
    normalizer_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    const char *action = grt_attr_string(node->desc, "case_change_action", "NONE");
    const char *locale = grt_attr_string(node->desc, "locale", "C.UTF-8");
    size_t n;
    const grt_string *words = grt_attr_strings(node->desc, "stopwords", &n);
    state->action = !strcmp(action, "LOWER") ? LOWER_CASE : !strcmp(action, "UPPER") ? UPPER_CASE : KEEP_CASE;
    state->case_sensitive = grt_attr_int(node->desc, "is_case_sensitive", 0) != 0;
    state->locale = newlocale(LC_CTYPE_MASK, locale, (locale_t)0);
    if (!state->locale) /* if the model's locale is not installed, any UTF-8 locale serves */
        state->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    grt_status status = keep_stopwords(node, state, words, n);
    if (status != GRT_OK) {
        normalizer_destroy(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

static bool is_stopword(const normalizer_state *state, grt_string s)
{
    for (size_t i = 0; i < state->n_stopwords; i++)
        if (same(s, state->stopwords[i]))
            return true;
    return false;
}

static grt_status normalizer_run(const grt_run *run)
{
    const normalizer_state *state = run->state;
    const grt_tensor *x = run->in[0];
    const grt_string *in = x->data;
    int64_t n = grt_tensor_elements(x), kept = 0, dims[2] = {1, 1};
    size_t bytes = 1;
    if ((x->rank != 1 && x->rank != 2) || (x->rank == 2 && x->dims[0] != 1))
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT, "the input must be [C] or [1, C]");
    for (int64_t i = 0; i < n; i++) /* room for the result and for a lower-case copy to compare */
        if (!grt_add_size(bytes, changed_room(in[i].size), &bytes) ||
            !grt_add_size(bytes, changed_room(in[i].size), &bytes))
            return grt_fail_memory(SIZE_MAX);
    char *at = run->hooks->alloc_bytes(run, bytes);
    bool *keep = (bool *)run->hooks->alloc_bytes(run, (size_t)n + 1);
    if (!at || !keep)
        return grt_fail_memory(bytes);
    for (int64_t i = 0; i < n; i++) {
        grt_string key = in[i];
        if (!state->case_sensitive && state->n_stopwords)
            key = change_case(state, LOWER_CASE, in[i], &at);
        keep[i] = !is_stopword(state, key);
        kept += keep[i];
    }
    dims[x->rank - 1] = kept ? kept : 1; /* nothing left: one empty string */
    GRT_TRY(run->hooks->alloc_output(run, 0, x->rank, dims));
    grt_string *out = run->out[0]->data;
    if (!kept)
        out[0] = (grt_string){at, 0};
    for (int64_t i = 0, k = 0; i < n; i++)
        if (keep[i])
            out[k++] = change_case(state, state->action, in[i], &at);
    return GRT_OK;
}

/* ---- RegexFullMatch ---- */

static grt_status regex_create(const grt_kernel_node *node, void **out_state)
{
    const grt_attr *pattern = grt_attr_find(node->desc, "pattern");
    grt_string text = pattern && pattern->kind == GRT_ATTR_STRING ? pattern->s : (grt_string){"", 0};
    cpu_regex *regex = NULL;
    grt_status status = cpu_regex_compile(text.data, text.size, &regex);
    if (status != GRT_OK)
        return grt_fail_context(status, "RegexFullMatch node '%s'", node->desc->name);
    *out_state = regex;
    return GRT_OK;
}

static void regex_destroy(void *state)
{
    cpu_regex_release(state);
}

static grt_status regex_reshape(grt_reshape *reshape)
{
    size_t bytes = grt_align_up(cpu_regex_scratch_bytes(reshape->state), 64);
    return grt_mul_size(bytes, (size_t)reshape->threads, &reshape->workspace_bytes)
               ? GRT_OK
               : grt_fail_memory(SIZE_MAX);
}

static grt_status regex_run(const grt_run *run)
{
    const grt_string *in = run->in[0]->data;
    bool *out = run->out[0]->data;
    int64_t n = grt_tensor_elements(run->in[0]);
    size_t bytes = grt_align_up(cpu_regex_scratch_bytes(run->state), 64);
#pragma omp parallel for num_threads(run->threads) if (n > CPU_GRAIN / 256)
    for (int64_t i = 0; i < n; i++)
        out[i] = cpu_regex_full_match(run->state, in[i].data, in[i].size,
                                      (char *)run->workspace + (size_t)cpu_thread() * bytes);
    return GRT_OK;
}

#define STRINGS                          \
    {                                    \
        GRT_BIT(STRING), GRT_BIT(STRING) \
    }
static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "StringConcat",
     .types = STRINGS,
     .reshape = concat_reshape,
     .release_shape = free,
     .run = string_concat_run},
    {.domain = "",
     .op = "StringSplit",
     .types = STRINGS,
     .flags = GRT_KERNEL_DYNAMIC,
     .create = split_create,
     .destroy = free,
     .run = string_split_run},
    {.domain = "",
     .op = "StringNormalizer",
     .types = STRINGS,
     .flags = GRT_KERNEL_DYNAMIC,
     .create = normalizer_create,
     .destroy = normalizer_destroy,
     .run = normalizer_run},
    {.domain = "",
     .op = "RegexFullMatch",
     .types = STRINGS,
     .create = regex_create,
     .destroy = regex_destroy,
     .reshape = regex_reshape,
     .run = regex_run},
};
CPU_KERNELS(string, rows);
