/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/mutate/trial.h"

#include "src/exec/execute.h"
#include "tests/differential/draw.h"
#include "tests/mutate/content.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Inputs are small; larger sizes are not provided. */
enum { RUNS = 2 };
static const size_t most_bytes[] = {[TRIAL_TAME] = 1 << 22, [TRIAL_WILD] = 1 << 16};

/* Runs of the main graph and of bodies together, of one model. Bounds legal endless loops: the linker
 * redirects calls of grt_frame_run here (-Wl,--wrap). */
enum { MOST_FRAME_RUNS = 500 };

static int frame_runs;

grt_status __real_grt_frame_run(grt_frame *frame);
grt_status __wrap_grt_frame_run(grt_frame *frame);
grt_status __wrap_grt_frame_run(grt_frame *frame)
{
    if (frame_runs++ >= MOST_FRAME_RUNS)
        return grt_fail(GRT_STATUS_CANCELLED, "%d runs of graphs and bodies are enough", MOST_FRAME_RUNS);
    return __real_grt_frame_run(frame);
}

typedef struct trial {
    grt_runtime *runtime;
    grt_model *model;
    grt_session *session;
    grt_context *context;
    trial_inputs kind;
    unsigned salt; /* what symbols mean in this run */
    grt_value **inputs;
    size_t n_inputs;
    const char *volatile *stage;
} trial;

/* Equal symbols are equal sizes, mostly small, seldom 0. */
static int64_t open_dim(const trial *t, const char *symbol)
{
    static const int64_t tame[] = {1, 2, 3, 2, 1, 3, 2, 0}, wild[] = {1, 2, 0, 3, 5, 8, 17, 33};
    const int64_t *sizes = t->kind == TRIAL_WILD ? wild : tame;
    unsigned hash = t->salt;
    if (!symbol)
        return sizes[draw(0, 7)];
    for (; *symbol; symbol++)
        hash = hash * 31 + (unsigned char)*symbol;
    return sizes[hash % 8];
}

/* Mistakes of callers. */
static void spoil(grt_tensor *t)
{
    if (t->rank && !draw(0, 31))
        t->dims[draw(0, t->rank - 1)] = draw_dim();
    if (t->rank < GRT_MAX_RANK && !draw(0, 63))
        t->dims[t->rank++] = draw_dim();
    if (t->dtype != GRT_DTYPE_STRING && !draw(0, 63))
        t->dtype = draw_number();
}

static void fill_strings(int64_t n, grt_string *strings, bool wild)
{
    static const char nothing[300];
    static const grt_string words[] = {{"", 0},
                                       {"a", 1},
                                       {"-3.5", 4},
                                       {"\xc3\xa9t\xc3\xa9", 5},
                                       {"1 2", 3}, /* tame */
                                       {"\xff\xc0\x80", 3},
                                       {"nan", 3},
                                       {"1e999", 5},
                                       {nothing, sizeof nothing}};
    for (int64_t i = 0; i < n; i++)
        strings[i] = words[draw(0, wild ? 8 : 4)];
}

/* A tensor that fits the description, or nearly; NULL: not a small one. */
static grt_value *draw_tensor(const trial *of, const grt_io_info *info)
{
    const bool wild = of->kind == TRIAL_WILD;
    grt_tensor t = {.dtype = info->dtype, .rank = info->rank < 0 ? (int32_t)draw(0, 3) : info->rank};
    for (int32_t k = 0; k < t.rank; k++)
        t.dims[k] = info->rank >= 0 && info->dims[k] >= 0
                        ? info->dims[k]
                        : open_dim(of, info->rank < 0 ? NULL : info->symbols[k]);
    if (wild)
        spoil(&t);
    const size_t bytes = grt_tensor_bytes(&t);
    grt_value *value = NULL;
    if (!grt_dtype_bits(t.dtype) || bytes > most_bytes[of->kind])
        return NULL;
    t.data = malloc(bytes + 1);
    if (!t.data)
        return NULL;
    if (t.dtype == GRT_DTYPE_STRING)
        fill_strings(grt_tensor_elements(&t), t.data, wild);
    else
        fill(t.dtype, grt_tensor_elements(&t), t.data, wild);
    if (grt_value_from_tensor(&t, &value) != GRT_OK)
        value = NULL;
    free(t.data);
    return value;
}

/* Keys in some order, some of them twice: then there is no map. */
static grt_value *draw_map(const trial *of, const grt_io_info *info)
{
    static const grt_string words[] = {{"a", 1}, {"b", 1}, {"", 0}, {"1", 1}};
    int64_t numbers[4];
    grt_io_info values = *info;
    grt_tensor t, keys = {.dtype = draw(0, 1) ? GRT_DTYPE_INT64 : GRT_DTYPE_STRING, .rank = 1};
    values.rank = 1;
    values.dims[0] = keys.dims[0] = draw(0, 4);
    values.symbols[0] = NULL;
    for (int64_t i = 0; i < 4; i++)
        numbers[i] = draw(0, 15) ? 3 - i : draw(-3, 3);
    keys.data = keys.dtype == GRT_DTYPE_INT64 ? (void *)numbers : (void *)(uintptr_t)words;
    grt_value *drawn = draw_tensor(of, &values), *map = NULL;
    if (!drawn || grt_value_tensor(drawn, &t) != GRT_OK || grt_value_map(&keys, &t, &map) != GRT_OK)
        map = NULL;
    grt_value_release(drawn);
    return map;
}

static grt_value *draw_kind(const trial *t, const grt_io_info *info, grt_kind kind)
{
    grt_value *items[3] = {0}, *value = NULL;
    if (kind == GRT_KIND_TENSOR)
        return draw_tensor(t, info);
    if (kind == GRT_KIND_MAP)
        return draw_map(t, info);
    const size_t n = (size_t)draw(0, kind == GRT_KIND_SEQUENCE ? 3 : 1);
    const bool tensors = kind == GRT_KIND_SEQUENCE && info->element_kind != GRT_KIND_MAP;
    const grt_kind inner = tensors ? GRT_KIND_TENSOR : info->element_kind;
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        items[i] = inner == GRT_KIND_OPTIONAL ? NULL : draw_kind(t, info, inner);
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

static void drop_inputs(trial *t)
{
    for (size_t i = 0; t->inputs && i < t->n_inputs; i++)
        grt_value_release(t->inputs[i]);
    free(t->inputs);
    t->inputs = NULL;
}

/* False with GRT_OK: there is nothing small that could be fed. */
static bool feed(trial *t, grt_status *status)
{
    drop_inputs(t);
    t->salt = t->kind == TRIAL_WILD ? (unsigned)draw(0, 7) : 0;
    t->n_inputs = grt_model_input_count(t->model);
    t->inputs = calloc(t->n_inputs + 1, sizeof *t->inputs);
    for (size_t i = 0; t->inputs && i < t->n_inputs; i++) {
        grt_io_info info = {.struct_size = sizeof info};
        if ((*status = grt_model_input(t->model, i, &info)) != GRT_OK)
            return false;
        if (info.has_default && draw(0, 1)) {
            if ((*status = grt_context_set_input_value(t->context, i, NULL)) != GRT_OK)
                return false;
            continue;
        }
        if (!(t->inputs[i] = draw_kind(t, &info, info.kind)))
            return false;
        if ((*status = grt_context_set_input_value(t->context, i, t->inputs[i])) != GRT_OK)
            return false;
    }
    return t->inputs != NULL;
}

static volatile unsigned sum;

/* Reads every byte of every output. */
static grt_status read_outputs(const trial *t)
{
    for (size_t i = 0; i < grt_model_output_count(t->model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
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

/* With the inputs that there are, or with new ones. */
static grt_status run_once(trial *t, bool again)
{
    grt_status status = GRT_OK;
    *t->stage = "inputs";
    if (!again && !feed(t, &status))
        return status;
    *t->stage = "run";
    GRT_TRY(grt_context_run(t->context));
    *t->stage = "outputs";
    return read_outputs(t);
}

/* Devices that take all ops check the steps that the CPU has no kernels for, too. */
static grt_status check_steps(trial *t)
{
    grt_session *session = NULL;
    *t->stage = "session on null";
    const grt_status status = grt_session_create(t->model, "null", NULL, &session);
    grt_session_release(session);
    if (status == GRT_STATUS_INTERNAL)
        return status;
    grt_error_set("");
    return GRT_OK;
}

/* A context goes on after a run that failed, if only with other inputs. */
static grt_status run(trial *t)
{
    grt_status status = GRT_OK;
    grt_session_options options = {.struct_size = sizeof options, .threads = 1};
    grt_model_info info = {.struct_size = sizeof info};
    GRT_TRY(check_steps(t));
    *t->stage = "session";
    GRT_TRY(grt_model_get_info(t->model, &info));
    GRT_TRY(grt_session_create(t->model, "cpu", &options, &t->session));
    GRT_TRY(grt_context_create(t->session, &t->context));
    for (int i = 0; i < RUNS && (status == GRT_OK || t->kind == TRIAL_WILD); i++)
        status = run_once(t, i && t->kind == TRIAL_TAME);
    return status;
}

trial_end try_model(grt_runtime *runtime, const void *bytes, size_t size, const char *target,
                    trial_inputs inputs, const char *volatile *stage, char *why, size_t why_size)
{
    trial t = {.runtime = runtime, .kind = inputs, .stage = stage};
    const grt_compile_options options = {.struct_size = sizeof options, .target = target};
    trial_end end = TRIAL_REFUSED;
    frame_runs = 0;
    grt_error_set("");
    *stage = "open";
    grt_status status = grt_model_open_memory_with(runtime, bytes, size, &options, &t.model);
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
    drop_inputs(&t);
    grt_context_release(t.context);
    grt_session_release(t.session);
    grt_model_release(t.model);
    return end;
}
