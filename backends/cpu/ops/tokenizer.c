/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft's Tokenizer: each string becomes a row of tokens, which are what an expression matches, or
 * what is left between the matches of separators. */
#include "backends/cpu/move.h"
#include "backends/cpu/regex.h"
#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

typedef struct tokenizer {
    cpu_regex **patterns; /* the separators, applied one after another; or the tokens' expression */
    size_t n;
    bool tokens;     /* the pattern matches tokens */
    bool characters; /* each character is a token */
    bool mark;       /* a row begins with 0x02 and ends with 0x03 */
    int64_t least;   /* characters of a token; shorter ones are left out */
    grt_string pad;
    size_t scratch_bytes; /* of the largest pattern */
} tokenizer;

/* Spans of one string that are tokens. */
typedef struct spans {
    grt_string *v;
    size_t n, room;
} spans;

static grt_status add_span(spans *to, const char *data, size_t size)
{
    if (to->n == to->room) {
        const size_t room = to->room ? 2 * to->room : 64;
        grt_string *v = realloc(to->v, room * sizeof *v);
        if (!v)
            return grt_fail_memory(room * sizeof *v);
        to->v = v;
        to->room = room;
    }
    to->v[to->n++] = (grt_string){data, size};
    return GRT_OK;
}

static int64_t count_characters(const char *data, size_t size)
{
    int64_t n = 0;
    for (size_t i = 0; i < size; i++)
        n += ((unsigned char)data[i] >> 6) != 2; /* not a continuation of one */
    return n;
}

static grt_status add_token(const tokenizer *t, spans *to, const char *data, size_t size)
{
    return count_characters(data, size) < t->least ? GRT_OK : add_span(to, data, size);
}

/* Bytes of the character at data, at most `left`. */
static size_t character_bytes(const char *data, size_t left)
{
    size_t n = left ? 1 : 0;
    while (n < left && n < 4 && ((unsigned char)data[n] >> 6) == 2)
        n++;
    return n;
}

/* What pattern `which` makes of `text`. After an empty match the search goes on behind the next character. */
static grt_status apply_pattern(const tokenizer *t, size_t which, grt_string text, void *scratch, spans *to)
{
    size_t from = 0, begin, end;
    while (from <= text.size &&
           cpu_regex_find(t->patterns[which], text.data, text.size, from, scratch, &begin, &end)) {
        GRT_TRY(t->tokens ? add_token(t, to, text.data + begin, end - begin)
                          : add_token(t, to, text.data + from, begin - from));
        if (end == begin && end == text.size)
            return GRT_OK;
        from = end > begin ? end : end + character_bytes(text.data + end, text.size - end);
    }
    return t->tokens ? GRT_OK : add_token(t, to, text.data + from, text.size - from);
}

static grt_status split_characters(grt_string text, spans *to)
{
    for (size_t at = 0, n; at < text.size; at += n) {
        n = character_bytes(text.data + at, text.size - at);
        GRT_TRY(add_span(to, text.data + at, n));
    }
    return GRT_OK;
}

/* Appends the tokens of one string; `spare` is memory for the rounds in between. */
static grt_status tokenize(const tokenizer *t, grt_string text, void *scratch, spans *to, spans *spare)
{
    if (t->characters)
        return split_characters(text, to);
    if (t->n == 1)
        return apply_pattern(t, 0, text, scratch, to);
    spans row = {0};
    grt_status status = add_span(&row, text.data, text.size);
    for (size_t k = 0; k < t->n && status == GRT_OK; k++) {
        spare->n = 0;
        for (size_t i = 0; i < row.n && status == GRT_OK; i++)
            status = apply_pattern(t, k, row.v[i], scratch, spare);
        const spans made = *spare;
        *spare = row;
        row = made;
    }
    for (size_t i = 0; i < row.n && status == GRT_OK; i++)
        status = add_span(to, row.v[i].data, row.v[i].size);
    free(row.v);
    return status;
}

static void tokenizer_destroy(void *pointer)
{
    tokenizer *t = pointer;
    for (size_t i = 0; i < t->n; i++)
        cpu_regex_release(t->patterns[i]);
    free(t->patterns);
    free(t);
}

static grt_status compile_patterns(const grt_op_desc *desc, tokenizer *t, const grt_string *patterns,
                                   size_t n)
{
    t->patterns = calloc(n, sizeof(cpu_regex *));
    if (!t->patterns)
        return grt_fail_memory(n * sizeof(cpu_regex *));
    for (; t->n < n; t->n++) {
        const grt_status status =
            cpu_regex_compile(patterns[t->n].data, patterns[t->n].size, &t->patterns[t->n]);
        if (status != GRT_OK)
            return grt_fail_context(status, "Tokenizer node '%s', pattern %zu", desc->name, t->n);
        const size_t bytes = cpu_regex_scratch_bytes(t->patterns[t->n]);
        t->scratch_bytes = bytes > t->scratch_bytes ? bytes : t->scratch_bytes;
    }
    return GRT_OK;
}

static grt_status tokenizer_create(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(tokenizer), out_state));
    tokenizer *t = *out_state;
    size_t n;
    const grt_string *separators = grt_attr_strings(node->desc, "separators", &n);
    const grt_attr *expression = grt_attr_find(node->desc, "tokenexp"),
                   *pad = grt_attr_find(node->desc, "pad_value");
    t->tokens = n == 0;
    t->mark = grt_attr_int(node->desc, "mark", 0) != 0;
    t->least = grt_attr_int(node->desc, "mincharnum", 1);
    t->pad = pad && pad->kind == GRT_ATTR_STRING ? pad->s : (grt_string){"", 0};
    const grt_string one =
        expression && expression->kind == GRT_ATTR_STRING ? expression->s : (grt_string){"", 0};
    t->characters = t->tokens ? one.size == 1 && *one.data == '.' : n == 1 && separators[0].size == 0;
    const grt_status status =
        t->characters ? GRT_OK
                      : compile_patterns(node->desc, t, t->tokens ? &one : separators, t->tokens ? 1 : n);
    if (status != GRT_OK)
        tokenizer_destroy(t);
    return status;
}

static grt_status tokenizer_reshape(grt_reshape *reshape)
{
    const tokenizer *t = reshape->state;
    reshape->workspace_bytes = t->scratch_bytes;
    return GRT_OK;
}

/* Copies the tokens, row by row; tokens of string i end at ends[i]. */
static grt_status write_rows(const grt_run *run, const spans *found, const size_t *ends)
{
    const tokenizer *t = run->state;
    const grt_tensor *x = run->in[0];
    const int64_t n = grt_tensor_elements(x);
    size_t width = 0, bytes = t->pad.size + 2;
    for (int64_t i = 0; i < n; i++) {
        const size_t own = ends[i] - (i ? ends[i - 1] : 0);
        width = own > width ? own : width;
    }
    for (size_t k = 0; k < found->n; k++)
        if (!grt_add_size(bytes, found->v[k].size, &bytes))
            return grt_fail_memory(SIZE_MAX);
    width += width && t->mark ? 2 : 0;
    int64_t dims[GRT_MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    dims[x->rank] = (int64_t)width;
    GRT_TRY(run->hooks->alloc_output(run, 0, x->rank + 1, dims));
    char *at = run->hooks->alloc_bytes(run, bytes);
    if (!at)
        return grt_fail_memory(bytes);
    const grt_string pad = {at, t->pad.size}, first = {at + pad.size, 1}, last = {at + pad.size + 1, 1};
    memcpy(at, t->pad.data, pad.size);
    at[pad.size] = 0x02;
    at[pad.size + 1] = 0x03;
    at += pad.size + 2;
    grt_string *out = run->out[0]->data;
    for (int64_t i = 0; width && i < n; i++) {
        grt_string *const row_end = out + width;
        if (t->mark)
            *out++ = first;
        for (size_t k = i ? ends[i - 1] : 0; k < ends[i]; k++) {
            memcpy(at, found->v[k].data, found->v[k].size);
            *out++ = (grt_string){at, found->v[k].size};
            at += found->v[k].size;
        }
        if (t->mark)
            *out++ = last;
        while (out < row_end)
            *out++ = pad;
    }
    return GRT_OK;
}

static grt_status tokenizer_run(const grt_run *run)
{
    const grt_tensor *x = run->in[0];
    const grt_string *in = x->data;
    const int64_t n = grt_tensor_elements(x);
    spans found = {0}, spare = {0};
    size_t *ends = calloc((size_t)n + 1, sizeof *ends);
    grt_status status = ends ? GRT_OK : grt_fail_memory((size_t)n * sizeof *ends);
    for (int64_t i = 0; i < n && status == GRT_OK; i++) {
        status = tokenize(run->state, in[i], run->workspace, &found, &spare);
        ends[i] = found.n;
    }
    if (status == GRT_OK)
        status = write_rows(run, &found, ends);
    free(found.v);
    free(spare.v);
    free(ends);
    return status;
}

static const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "Tokenizer",
     .types = {GRT_BIT(STRING)},
     .flags = GRT_KERNEL_DYNAMIC,
     .create = tokenizer_create,
     .destroy = tokenizer_destroy,
     .reshape = tokenizer_reshape,
     .run = tokenizer_run},
};
CPU_KERNELS(tokenizer, rows);
