/* SPDX-License-Identifier: Apache-2.0 */
/* graphc tune: measure the algorithms that libraries offer for a model on a device; keep the fastest in the
 * cache or in the plan. */
#include "tools/tune.h"

#include "tools/devices.h"
#include "tools/inputs.h"
#include "tools/loaded.h"
#include "tools/progress.h"
#include "tools/report.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
    const char *model, *output, *cache, *device, *fallback;
    bool use_cache, again, json;
    double seconds;
    input_specs inputs;
    json_t *choices; /* NULL: print */
} request;

static bool take_tune_model(void *user, const char *value)
{
    return option_only(&((request *)user)->model, value);
}

static bool take_tune_shape(void *user, const char *value)
{
    return inputs_add_shape(&((request *)user)->inputs, value);
}

static bool take_tune_input(void *user, const char *value)
{
    return inputs_add_source(&((request *)user)->inputs, value);
}

static bool take_cache(void *user, const char *value)
{
    request *r = user;
    r->use_cache = true;
    r->cache = value;
    return true;
}

const tool_option tune_options[] = {
    OPTION_TEXT(request, device, "--device", "DEVICE", "the device to measure on (default: the first GPU)"),
    OPTION_TEXT(request, fallback, "--fallback", "cpu",
                "run ops that the device has no kernel for on the CPU; otherwise they are an error"),
    OPTION_TAKE(take_tune_shape, "--shape", "NAME=2x3x224", "as in graphrun MODEL; may be repeated"),
    OPTION_TAKE(take_tune_input, "--input", "NAME=SOURCE", "as in graphrun MODEL; may be repeated"),
    OPTION_NUMBER(request, seconds, 0, "--seconds", "S",
                  "time to measure for at most (default: 60); what takes longest comes first"),
    OPTION_FLAG(request, again, "--again", "measure what was tuned before, too"),
    OPTION_FILE(
        request, output, "-o", "PLAN",
        "write MODEL, which is a plan, to PLAN with its choices, not to the cache; PLAN may be MODEL"),
    OPTION_FILE(request, output, "--output", "PLAN", NULL),
    OPTION_TAKE(take_cache, "--cache", "[=FILE]",
                "with -o, keep the choices in the cache too; FILE: in this one (default: as graphc cache)"),
    OPTION_CUSTOM_OPS,
    OPTION_FLAG(request, json, "--json", "report as JSON on standard output"),
    OPTION_TABLE_END,
};

/* Ctrl-C ends the measuring, not the program. */
static volatile sig_atomic_t interrupted;

static void interrupt_tuning(int number)
{
    (void)number;
    interrupted = 1;
}

static bool show_tune_progress(void *user, const char *what, double fraction)
{
    (void)user;
    progress_show(fraction, what);
    return !interrupted;
}

static void add_result(json_t *choices, const grt_tune_result *c)
{
    json_t *object = json_object();
    json_object_set_new(object, "op", json_text(c->op));
    json_object_set_new(object, "name", json_text(c->name));
    json_object_set_new(object, "key", json_text(c->key));
    json_object_set_new(object, "steps", json_integer((json_int_t)c->steps));
    json_object_set_new(object, "known", json_boolean(c->known));
    if (!c->known) {
        json_object_set_new(object, "candidates", json_integer((json_int_t)c->candidates));
        json_object_set_new(object, "refused", json_integer((json_int_t)c->refused));
        json_object_set_new(object, "winner", json_integer((json_int_t)c->winner));
        json_object_set_new(object, "before_ms", json_real(c->before_ms));
        json_object_set_new(object, "after_ms", json_real(c->after_ms));
    }
    json_array_append_new(choices, object);
}

static void show_result(void *user, const grt_tune_result *c)
{
    const request *r = user;
    char steps[32] = "";
    progress_clear();
    if (r->choices) {
        add_result(r->choices, c);
        return;
    }
    if (c->steps > 1)
        snprintf(steps, sizeof steps, ", %zu steps", c->steps);
    if (c->known)
        tool_print("%22s  %s '%s'%s\n", "tuned before", c->op, c->name, steps);
    else
        tool_print("%9.4f -> %.4f ms  %s '%s'%s: %s of %zu candidates\n", c->before_ms, c->after_ms, c->op,
                   c->name, steps, c->winner ? "another" : "the heuristic's", c->candidates);
}

static const char *where_kept(void)
{
    char path[4096];
    return grt_cache_path(path, sizeof path) == GRT_OK && *path
               ? "kept in the cache of algorithms"
               : "kept nowhere, as the cache of algorithms is switched off: -o PLAN keeps choices in the "
                 "plan;";
}

static void print_tune_report(const request *r, const grt_tune_report *t, double total_ms)
{
    if (t->steps == 0) {
        tool_print("%s on %s: there is nothing to tune; no step has a choice of algorithms there\n", r->model,
                   r->device);
        if (r->output)
            tool_print("%s is as it was: a copy\n", r->output);
        return;
    }
    tool_print("%s on %s: %zu steps with %zu choices; %zu measured, %zu tuned before, %zu left%s\n", r->model,
               r->device, t->steps, t->choices, t->tuned, t->known, t->choices - t->tuned - t->known,
               t->stopped       ? " (interrupted)"
               : t->out_of_time ? " (the time is over: see --seconds)"
                                : "");
    if (t->tuned)
        tool_print("%zu improved: %.4f -> %.4f ms for the steps that were measured\n", t->improved,
                   t->before_ms, t->after_ms);
    tool_print("%s in %.1f s\n", r->output ? r->output : where_kept(), total_ms / 1e3);
}

static bool print_tune_json(request *r, const grt_tune_report *t, double total_ms)
{
    json_t *object = json_object();
    json_object_set_new(object, "model", json_text(r->model));
    json_object_set_new(object, "device", json_text(r->device));
    json_object_set_new(object, "plan", r->output ? json_text(r->output) : json_null());
    json_object_set_new(object, "steps", json_integer((json_int_t)t->steps));
    json_object_set_new(object, "choices", json_integer((json_int_t)t->choices));
    json_object_set_new(object, "tuned", json_integer((json_int_t)t->tuned));
    json_object_set_new(object, "known", json_integer((json_int_t)t->known));
    json_object_set_new(object, "improved", json_integer((json_int_t)t->improved));
    json_object_set_new(object, "before_ms", json_real(t->before_ms));
    json_object_set_new(object, "after_ms", json_real(t->after_ms));
    json_object_set_new(object, "stopped", json_boolean(t->stopped));
    json_object_set_new(object, "out_of_time", json_boolean(t->out_of_time));
    json_object_set_new(object, "tune_ms", json_real(total_ms));
    json_object_set(object, "results", r->choices);
    return json_print(object);
}

typedef struct rows {
    grt_cache_row *list;
    size_t n, capacity;
    bool failed;
} rows;

static void *copy_row_bytes(const void *data, size_t size)
{
    char *copy = malloc(size + 1);
    if (copy) {
        memcpy(copy, data, size);
        copy[size] = '\0';
    }
    return copy;
}

/* All algorithms of the model's steps go into the plan, measured or not, so that sessions make no query. */
static void collect_choice(void *user, const grt_cache_lookup *lookup)
{
    rows *r = user;
    if (!lookup->row)
        return;
    if (r->n == r->capacity) {
        const size_t grown = r->capacity ? 2 * r->capacity : 64;
        grt_cache_row *list = realloc(r->list, grown * sizeof *list);
        r->failed = r->failed || !list;
        if (!list)
            return;
        r->list = list;
        r->capacity = grown;
    }
    grt_cache_row copy = *lookup->row;
    copy.key = copy_row_bytes(copy.key, strlen(copy.key));
    copy.data = copy_row_bytes(copy.data, copy.size);
    r->failed = r->failed || !copy.key || !copy.data;
    r->list[r->n++] = copy;
}

/* A changed plan has no signature. */
static void tell_of_signature(const request *r, const grt_model *model)
{
    grt_model_info info = {.struct_size = sizeof info};
    if (grt_model_get_info(model, &info) == GRT_OK && *info.signer)
        tool_error("note: %s is signed, %s is not: sign it again (graphc sign)", r->model, r->output);
}

static bool write_tuned_plan(const request *r, grt_runtime *runtime)
{
    rows found = {0};
    bool ok = grt_cache_lookups(runtime, collect_choice, &found) == GRT_OK;
    if (ok && found.failed) {
        tool_error("out of memory");
        ok = false;
    } else if (!ok || grt_plan_add_tuning(r->model, r->output, found.list, found.n) != GRT_OK)
        ok = tool_fail() == EXIT_GOOD;
    for (size_t i = 0; i < found.n; i++) {
        free((char *)found.list[i].key);
        free((void *)found.list[i].data);
    }
    free(found.list);
    return ok;
}

static int tune_loaded(request *r, const loaded *l)
{
    const double begin = now_ms();
    const size_t n = grt_model_input_count(l->model);
    grt_value **values = calloc(n + 1, sizeof *values);
    const char **sources = calloc(n + 1, sizeof *sources);
    const grt_tune_options options = {.struct_size = sizeof options,
                                      .seconds = r->seconds,
                                      .again = r->again,
                                      .progress = show_tune_progress,
                                      .result = show_result,
                                      .user = r};
    grt_tune_report report = {.struct_size = sizeof report};
    int code = EXIT_BAD;
    if (values && sources && inputs_bind(l->model, l->context, &r->inputs, 0, values, sources)) {
        const grt_status status = grt_context_tune(l->context, &options, &report);
        progress_clear();
        if (status != GRT_OK)
            code = tool_fail();
        else if (!r->output || write_tuned_plan(r, l->runtime)) {
            if (r->output && report.steps)
                tell_of_signature(r, l->model);
            const double ms = now_ms() - begin;
            code = EXIT_GOOD;
            if (!r->json)
                print_tune_report(r, &report, ms);
            else if (!print_tune_json(r, &report, ms))
                code = EXIT_BAD;
        }
    }
    inputs_release_values(values, n);
    free(sources);
    return code;
}

static int tune_model(request *r)
{
    loaded l;
    int code = EXIT_BAD;
    struct sigaction action = {.sa_handler = interrupt_tuning,
                               .sa_flags = (int)SA_RESETHAND}; /* twice: at once */
    if (r->cache || (r->output && !r->use_cache))
        setenv("GRAPHRT_ALGO_CACHE", r->cache ? r->cache : "off", 1);
    if (loaded_open(&l, r->model, r->device, r->fallback, 0, NULL) != GRT_OK)
        tool_fail();
    else {
        sigaction(SIGINT, &action, NULL);
        r->choices = r->json ? json_array() : NULL;
        code = tune_loaded(r, &l);
        json_decref(r->choices);
    }
    loaded_release(&l);
    return code;
}

int tune_command(const tool_command *command, int argc, char **argv)
{
    request r = {0};
    int code;
    r.device = devices_accelerator();
    if (options_parse(command, argc, argv, &r, take_tune_model, &code))
        code = option_given(command, r.model) ? tune_model(&r) : EXIT_BAD;
    inputs_release(&r.inputs);
    return code;
}
