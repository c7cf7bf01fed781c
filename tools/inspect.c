/* SPDX-License-Identifier: Apache-2.0 */
/* graphc inspect: what a model or plan holds. */
#include "tools/inspect.h"

#include "tools/prediction.h"
#include "tools/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct op_count {
    const char *op; /* the model's */
    int64_t steps;
    double flops;
} op_count;

typedef struct op_counts {
    size_t n;
    op_count *items;
} op_counts;

static int by_flops(const void *a, const void *b)
{
    const op_count *x = a, *y = b;
    if (x->flops != y->flops)
        return x->flops < y->flops ? 1 : -1;
    return strcmp(x->op, y->op);
}

static bool count_ops(const grt_model *model, int64_t steps, op_counts *counts)
{
    for (int64_t i = 0; i < steps; i++) {
        grt_step_info step = {.struct_size = sizeof step};
        if (grt_model_step(model, (size_t)i, &step) != GRT_OK) {
            tool_fail();
            return false;
        }
        size_t k = 0;
        while (k < counts->n && strcmp(counts->items[k].op, step.op) != 0)
            k++;
        if (k == counts->n) {
            op_count *grown = realloc(counts->items, (k + 1) * sizeof *grown);
            if (!grown) {
                tool_error("out of memory");
                return false;
            }
            counts->items = grown;
            counts->items[counts->n++] = (op_count){.op = step.op};
        }
        counts->items[k].steps++;
        counts->items[k].flops += step.flops;
    }
    if (counts->n)
        qsort(counts->items, counts->n, sizeof *counts->items, by_flops);
    return true;
}

/* Activation memory at given dims: planned by the null device, which computes nothing. */
static bool plan_memory(const grt_model *model, const input_specs *shapes, uint64_t *out_bytes)
{
    size_t n = grt_model_input_count(model);
    grt_session *session = NULL;
    grt_context *context = NULL;
    grt_value **values = calloc(n + 1, sizeof *values);
    const char **sources = calloc(n + 1, sizeof *sources);
    input_specs zeros = {shapes->n, malloc((shapes->n + 1) * sizeof *zeros.items)};
    bool ok = values && sources && zeros.items;
    for (size_t i = 0; ok && i < shapes->n; i++) {
        zeros.items[i] = shapes->items[i];
        zeros.items[i].source = "zeros";
    }
    grt_context_stats stats = {.struct_size = sizeof stats};
    if (ok && (grt_session_create((grt_model *)model, "null", NULL, &session) != GRT_OK ||
               grt_context_create(session, &context) != GRT_OK)) {
        tool_fail();
        ok = false;
    }
    ok = ok && inputs_bind(model, context, &zeros, 0, values, sources);
    if (ok && (grt_context_run(context) != GRT_OK || grt_context_get_stats(context, &stats) != GRT_OK)) {
        tool_fail();
        ok = false;
    }
    *out_bytes = stats.arena_bytes;
    grt_context_release(context);
    grt_session_release(session);
    inputs_release_values(values, n);
    free(sources);
    free(zeros.items);
    return ok;
}

static void print_io(const grt_model *model, bool output)
{
    size_t n = output ? grt_model_output_count(model) : grt_model_input_count(model);
    for (size_t i = 0; i < n; i++) {
        grt_io_info info = {.struct_size = sizeof info};
        char type[512];
        if ((output ? grt_model_output(model, i, &info) : grt_model_input(model, i, &info)) != GRT_OK)
            continue;
        tool_print("  %-7s %s: %s%s\n", output ? "output" : "input", info.name,
                   figure_io(&info, type, sizeof type), info.has_default ? " (has a default)" : "");
    }
}

typedef struct gpu_count {
    char gpu[128], sm[16];
    int64_t heuristic, tuned;
} gpu_count;

typedef struct gpu_counts {
    size_t n;
    gpu_count *items;
    bool failed;
} gpu_counts;

/* The value of a part `name=value;` of a key; "" without it. */
static void key_part(const char *key, const char *name, char *out, size_t size)
{
    const size_t n = strlen(name);
    out[0] = '\0';
    for (const char *p = key; *p;) {
        const size_t length = strcspn(p, ";");
        if (length > n && !strncmp(p, name, n) && p[n] == '=')
            snprintf(out, size, "%.*s", (int)(length - n - 1), p + n + 1);
        p += length + (p[length] == ';');
    }
}

static void count_choice(void *user, const grt_cache_row *row)
{
    gpu_counts *counts = user;
    gpu_count found = {0};
    size_t i = 0;
    key_part(row->key, "gpu", found.gpu, sizeof found.gpu);
    key_part(row->key, "sm", found.sm, sizeof found.sm);
    while (i < counts->n &&
           (strcmp(counts->items[i].gpu, found.gpu) != 0 || strcmp(counts->items[i].sm, found.sm) != 0))
        i++;
    if (i == counts->n) {
        gpu_count *grown = realloc(counts->items, (i + 1) * sizeof *grown);
        if (!grown) {
            counts->failed = true;
            return;
        }
        counts->items = grown;
        counts->items[counts->n++] = found;
    }
    *(row->tuned ? &counts->items[i].tuned : &counts->items[i].heuristic) += 1;
}

static bool count_choices(const grt_model *model, gpu_counts *out)
{
    *out = (gpu_counts){0};
    if (grt_model_choices(model, count_choice, out) != GRT_OK) {
        tool_fail();
        return false;
    }
    if (out->failed)
        tool_error("out of memory");
    return !out->failed;
}

bool inspect_tuning_text(const grt_model *model)
{
    gpu_counts counts;
    bool ok = count_choices(model, &counts);
    for (size_t i = 0; ok && i < counts.n; i++)
        tool_print("  tuning     %s%s%s: %" PRId64 " algorithms chosen, %" PRId64 " measured\n",
                   counts.items[i].gpu[0] ? counts.items[i].gpu : "any GPU",
                   counts.items[i].sm[0] ? ", sm_" : "", counts.items[i].sm, counts.items[i].heuristic,
                   counts.items[i].tuned);
    free(counts.items);
    return ok;
}

json_t *inspect_tuning_json(const grt_model *model)
{
    gpu_counts counts;
    json_t *array = json_array();
    const bool ok = count_choices(model, &counts);
    for (size_t i = 0; ok && i < counts.n; i++) {
        json_t *object = json_object();
        json_object_set_new(object, "gpu", json_text(counts.items[i].gpu));
        json_object_set_new(object, "sm", json_text(counts.items[i].sm));
        json_object_set_new(object, "heuristic", json_integer(counts.items[i].heuristic));
        json_object_set_new(object, "tuned", json_integer(counts.items[i].tuned));
        json_array_append_new(array, object);
    }
    free(counts.items);
    return array;
}

/* One line, however long the text is: --json has all of it. */
static void print_text(const char *name, const char *text)
{
    char line[100];
    if (*text) {
        grt_printable(text, strlen(text), line, sizeof line);
        tool_print("  %s: %s\n", name, line);
    }
}

static bool print_metadata(const grt_model *model)
{
    grt_metadata about = {.struct_size = sizeof about};
    if (grt_model_metadata(model, &about) != GRT_OK) {
        tool_fail();
        return false;
    }
    print_text("domain", about.domain);
    if (about.model_version)
        tool_print("  model version: %" PRId64 "\n", about.model_version);
    print_text("graph", about.graph_name);
    print_text("description", about.description);
    print_text("description of the graph", about.graph_description);
    for (size_t i = 0; i < about.n_entries; i++) {
        char name[64];
        snprintf(name, sizeof name, "metadata %s", about.entries[i].key);
        print_text(name, *about.entries[i].value ? about.entries[i].value : "(empty)");
    }
    return true;
}

static json_t *metadata_object(const grt_model *model)
{
    grt_metadata about = {.struct_size = sizeof about};
    json_t *object = json_object(), *entries = json_object();
    if (grt_model_metadata(model, &about) != GRT_OK)
        return object;
    json_object_set_new(object, "producer_name", json_text(about.producer_name));
    json_object_set_new(object, "producer_version", json_text(about.producer_version));
    json_object_set_new(object, "domain", json_text(about.domain));
    json_object_set_new(object, "model_version", json_integer(about.model_version));
    json_object_set_new(object, "ir_version", json_integer(about.ir_version));
    json_object_set_new(object, "description", json_text(about.description));
    json_object_set_new(object, "graph_name", json_text(about.graph_name));
    json_object_set_new(object, "graph_description", json_text(about.graph_description));
    for (size_t i = 0; i < about.n_entries; i++) {
        char key[256];
        grt_printable(about.entries[i].key, strlen(about.entries[i].key), key, sizeof key);
        json_object_set_new(entries, key, json_text(about.entries[i].value));
    }
    json_object_set_new(object, "entries", entries);
    return object;
}

bool inspect_text(const char *path, const grt_model *model, const input_specs *shapes)
{
    grt_model_info info = {.struct_size = sizeof info};
    op_counts counts = {0};
    char text[FIGURE_SIZE], more[FIGURE_SIZE];
    if (grt_model_get_info(model, &info) != GRT_OK) {
        tool_fail();
        return false;
    }
    uint64_t bytes = 0;
    if (!count_ops(model, info.steps, &counts) || (shapes->n && !plan_memory(model, shapes, &bytes))) {
        free(counts.items);
        return false;
    }
    tool_print("%s\n", path);
    tool_print("  from %s, opset %" PRId64 ", for %s%s%s\n",
               info.producer[0] ? info.producer : "an unnamed producer", info.opset, info.target,
               info.options[0] ? ", options " : "", info.options);
    if (*info.signer)
        tool_print("  signed by  %s%s\n", info.signer,
                   info.verified ? ", which is right" : ", as it says: --trust looks whether that is right");
    bool ok = print_metadata(model);
    print_io(model, false);
    print_io(model, true);
    tool_print("  %" PRId64 " nodes in the model, %" PRId64 " steps to execute\n", info.nodes, info.steps);
    tool_print("  parameters %s (%s)\n", figure_count((double)info.parameters, text),
               figure_bytes((double)info.weights_bytes, more));
    tool_print("  FLOPs      %s a run, unknown dims taken as 1\n", figure_count(info.flops, text));
    tool_print("  arena      %s of activations, unknown dims taken as 1\n",
               figure_bytes((double)info.arena_bytes, text));
    if (shapes->n)
        tool_print("  arena at the given shapes: %s\n", figure_bytes((double)bytes, text));
    prediction memory;
    prediction_make((grt_model *)model, shapes, &memory);
    prediction_print(&memory);
    ok = inspect_tuning_text(model) && ok;
    tool_print("\n  %-32s %8s %12s\n", "op", "steps", "FLOPs");
    for (size_t i = 0; i < counts.n; i++)
        tool_print("  %-32s %8" PRId64 " %12s\n", counts.items[i].op, counts.items[i].steps,
                   figure_count(counts.items[i].flops, text));
    free(counts.items);
    return ok;
}

static json_t *io_array(const grt_model *model, bool output)
{
    json_t *array = json_array();
    size_t n = output ? grt_model_output_count(model) : grt_model_input_count(model);
    for (size_t i = 0; i < n; i++) {
        grt_io_info info = {.struct_size = sizeof info};
        if ((output ? grt_model_output(model, i, &info) : grt_model_input(model, i, &info)) == GRT_OK)
            json_array_append_new(array, json_io(&info));
    }
    return array;
}

static json_t *ops_object(const op_counts *counts)
{
    json_t *ops = json_object();
    for (size_t i = 0; i < counts->n; i++) {
        json_t *op = json_object();
        json_object_set_new(op, "steps", json_integer(counts->items[i].steps));
        json_object_set_new(op, "flops", json_real(counts->items[i].flops));
        json_object_set_new(ops, counts->items[i].op, op);
    }
    return ops;
}

static json_t *pass_array(void)
{
    const char *const *names;
    json_t *array = json_array();
    size_t n = grt_pass_names(&names);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(array, json_text(names[i]));
    return array;
}

bool inspect_json(const char *path, const grt_model *model, const input_specs *shapes, json_t *near_misses)
{
    grt_model_info info = {.struct_size = sizeof info};
    op_counts counts = {0};
    uint64_t bytes = 0;
    if (grt_model_get_info(model, &info) != GRT_OK) {
        tool_fail();
        return false;
    }
    gpu_counts choices = {0};
    bool ok = count_ops(model, info.steps, &counts) && count_choices(model, &choices) &&
              (!shapes->n || plan_memory(model, shapes, &bytes));
    if (!ok) {
        free(counts.items);
        return false;
    }
    json_t *object = json_object(), *memory = json_object();
    json_object_set_new(object, "model", json_text(path));
    json_object_set_new(object, "producer", json_text(info.producer));
    json_object_set_new(object, "opset", json_integer(info.opset));
    json_object_set_new(object, "metadata", metadata_object(model));
    json_object_set_new(object, "target", json_text(info.target));
    json_object_set_new(object, "options", json_text(info.options));
    json_object_set_new(object, "signer", *info.signer ? json_text(info.signer) : json_null());
    json_object_set_new(object, "verified", json_boolean(info.verified));
    json_object_set_new(object, "passes", pass_array());
    json_object_set_new(object, "nodes", json_integer(info.nodes));
    json_object_set_new(object, "steps", json_integer(info.steps));
    json_object_set_new(object, "parameters", json_integer(info.parameters));
    json_object_set_new(object, "weights_bytes", json_integer((json_int_t)info.weights_bytes));
    json_object_set_new(object, "arena_bytes", json_integer((json_int_t)info.arena_bytes));
    json_object_set_new(object, "flops", json_real(info.flops));
    json_object_set_new(object, "inputs", io_array(model, false));
    json_object_set_new(object, "outputs", io_array(model, true));
    json_object_set_new(object, "ops", ops_object(&counts));
    json_object_set_new(memory, "default", json_integer((json_int_t)info.arena_bytes));
    if (shapes->n)
        json_object_set_new(memory, "given_shapes", json_integer((json_int_t)bytes));
    prediction session;
    prediction_make((grt_model *)model, shapes, &session);
    json_object_set_new(memory, "session", prediction_json(&session));
    json_object_set_new(object, "memory", memory);
    json_object_set_new(object, "tuning", inspect_tuning_json(model));
    json_object_set(object, "near_misses", near_misses);
    free(counts.items);
    return json_print(object);
}
