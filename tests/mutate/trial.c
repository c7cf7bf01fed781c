/* See trial.h. */
#include "tests/mutate/trial.h"

#include "src/base/status.h"
#include "tests/differential/draw.h"
#include "tests/mutate/content.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is fed is small; claims that go beyond are not honoured. */
enum { MOST_BYTES = 1 << 22, RUNS = 2 };

typedef struct trial {
    grt_runtime *runtime;
    grt_model *model;
    grt_session *session;
    grt_context *context;
    grt_value **inputs;
    size_t n_inputs;
    const char *volatile *stage;
} trial;

/* Equal symbols are equal sizes, mostly small, seldom 0. */
static int64_t open_dim(const char *symbol)
{
    static const int64_t sizes[] = {1, 2, 3, 2, 1, 3, 2, 0};
    unsigned hash = 0;
    if (!symbol)
        return sizes[draw(0, 7)];
    for (; *symbol; symbol++)
        hash = hash * 31 + (unsigned char)*symbol;
    return sizes[hash % 8];
}

/* A tensor that fits the description; NULL: not a small one. */
static grt_value *draw_tensor(const grt_io_info *info)
{
    static const grt_string words[] = {{"", 0}, {"a", 1}, {"-3.5", 4}, {"\xc3\xa9t\xc3\xa9", 5}, {"1 2", 3}};
    grt_tensor t = {.dtype = info->dtype, .rank = info->rank < 0 ? (int32_t)draw(0, 3) : info->rank};
    for (int32_t k = 0; k < t.rank; k++)
        t.dims[k] = info->rank >= 0 && info->dims[k] >= 0
                        ? info->dims[k]
                        : open_dim(info->rank < 0 ? NULL : info->symbols[k]);
    const size_t bytes = grt_tensor_bytes(&t);
    grt_value *value = NULL;
    if (!grt_dtype_bits(t.dtype) || bytes > MOST_BYTES)
        return NULL;
    t.data = malloc(bytes + 1);
    if (!t.data)
        return NULL;
    if (t.dtype == GRT_DTYPE_STRING)
        for (int64_t i = 0; i < grt_tensor_elements(&t); i++)
            ((grt_string *)t.data)[i] = words[draw(0, 4)];
    else
        fill(t.dtype, grt_tensor_elements(&t), t.data, false);
    if (grt_value_from_tensor(&t, &value) != GRT_OK)
        value = NULL;
    free(t.data);
    return value;
}

static grt_value *draw_kind(const grt_io_info *info, grt_kind kind)
{
    grt_value *items[3] = {0}, *value = NULL;
    if (kind == GRT_KIND_TENSOR)
        return draw_tensor(info);
    const size_t n = (size_t)draw(0, kind == GRT_KIND_SEQUENCE ? 3 : 1);
    const grt_kind inner = kind == GRT_KIND_SEQUENCE ? GRT_KIND_TENSOR : info->element_kind;
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        items[i] = inner == GRT_KIND_OPTIONAL ? NULL : draw_kind(info, inner);
        ok = ok && items[i];
    }
    grt_status status = GRT_STATUS_INVALID_ARGUMENT;
    if (ok && kind == GRT_KIND_SEQUENCE)
        status = grt_value_sequence(info->dtype, items, n, &value);
    else if (ok)
        status = grt_value_optional(info->dtype, items[0], &value);
    for (size_t i = 0; i < n; i++)
        grt_value_release(items[i]);
    return status == GRT_OK ? value : NULL;
}

/* False with GRT_OK: there is nothing small that could be fed. */
static bool feed(trial *t, grt_status *status)
{
    t->n_inputs = grt_model_input_count(t->model);
    t->inputs = calloc(t->n_inputs + 1, sizeof *t->inputs);
    for (size_t i = 0; t->inputs && i < t->n_inputs; i++) {
        grt_io_info info;
        if ((*status = grt_model_input(t->model, i, &info)) != GRT_OK)
            return false;
        if (info.has_default && draw(0, 1))
            continue;
        if (!(t->inputs[i] = draw_kind(&info, info.kind)))
            return false;
        if ((*status = grt_context_set_input_value(t->context, i, t->inputs[i])) != GRT_OK)
            return false;
    }
    return t->inputs != NULL;
}

/* Every byte of every output is there to be read. */
static grt_status read_outputs(const trial *t)
{
    static volatile unsigned sum;
    for (size_t i = 0; i < grt_model_output_count(t->model); i++) {
        grt_io_info info;
        GRT_TRY(grt_model_output(t->model, i, &info));
        if (info.kind != GRT_KIND_TENSOR) {
            grt_value *value;
            GRT_TRY(grt_context_get_output_value(t->context, i, &value));
            grt_value_release(value);
            continue;
        }
        grt_tensor out;
        GRT_TRY(grt_context_get_output(t->context, i, &out));
        const size_t bytes = grt_tensor_bytes(&out);
        for (size_t k = 0; k < bytes; k++)
            sum += ((const unsigned char *)out.data)[k];
    }
    return GRT_OK;
}

static grt_status run(trial *t)
{
    grt_status status = GRT_OK;
    grt_session_options options = {.struct_size = sizeof options, .threads = 1};
    grt_model_info info = {.struct_size = sizeof info};
    *t->stage = "session";
    GRT_TRY(grt_model_get_info(t->model, &info));
    GRT_TRY(grt_session_create(t->model, "cpu", &options, &t->session));
    GRT_TRY(grt_context_create(t->session, &t->context));
    *t->stage = "inputs";
    if (!feed(t, &status))
        return status;
    for (int i = 0; i < RUNS; i++) {
        *t->stage = "run";
        GRT_TRY(grt_context_run(t->context));
        *t->stage = "outputs";
        GRT_TRY(read_outputs(t));
    }
    return GRT_OK;
}

trial_end try_model(grt_runtime *runtime, const void *bytes, size_t size, const char *volatile *stage,
                    char *why, size_t why_size)
{
    trial t = {.runtime = runtime, .stage = stage};
    trial_end end = TRIAL_REFUSED;
    grt_error_set("");
    *stage = "open";
    grt_status status = grt_model_open_memory(runtime, bytes, size, &t.model);
    if (status == GRT_OK) {
        status = run(&t);
        end = status == GRT_OK ? TRIAL_RAN : TRIAL_FAILED;
    }
    snprintf(why, why_size, "%s", status == GRT_OK ? "" : grt_last_error());
    if (status == GRT_STATUS_INTERNAL || (status != GRT_OK && !*why)) {
        end = TRIAL_WRONG;
        if (!*why)
            snprintf(why, why_size, "status '%s' without a message", grt_status_text(status));
    }
    *stage = "release";
    for (size_t i = 0; t.inputs && i < t.n_inputs; i++)
        grt_value_release(t.inputs[i]);
    free(t.inputs);
    grt_context_release(t.context);
    grt_session_release(t.session);
    grt_model_release(t.model);
    return end;
}
