/* SPDX-License-Identifier: Apache-2.0 */
/* graphc optimize: compile a model to a plan; for described GPUs, choose algorithms too. */
#include "tools/optimize.h"

#include "tools/auto_precision.h"
#include "tools/destination.h"
#include "tools/inputs.h"
#include "tools/inspect.h"
#include "tools/interrupt.h"
#include "tools/piped.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/streamed.h"
#include "tools/targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Dims that algorithms are chosen for. */
typedef struct chosen_shapes {
    input_specs specs;
    grt_input_shape *shapes;
} chosen_shapes;

typedef struct request {
    const char *model, *output;
    grt_compile_options options;
    targets targets;
    chosen_shapes chosen;
    int64_t level;
    char *state; /* pairs OUTPUT=INPUT, a line each */
    json_t *warnings;
    calibration_data data;
    double max_error;
    char *precision; /* that --precision auto chose */
    quantised_model quantised;
    bool json, list_passes;
} request;

static void take_warning(void *user, const grt_finding *finding)
{
    request *r = user;
    if (r->warnings) {
        json_array_append_new(r->warnings, report_finding_json("warning", finding));
        return;
    }
    char place[1024];
    progress_clear();
    tool_error("warning: %s%s", report_place(finding, place, sizeof place), finding->message);
}

static void optimize_show_progress(void *user, const char *phase, double fraction)
{
    (void)user;
    progress_show(fraction, phase);
}

static char *plan_name(const char *model)
{
    size_t n = strlen(model);
    char *name = malloc(n + 5);
    if (!name)
        return NULL;
    if (n > 5 && !strcmp(model + n - 5, ".onnx"))
        n -= 5;
    memcpy(name, model, n);
    memcpy(name + n, ".grt", 5);
    return name;
}

static bool take_shapes(request *r)
{
    const size_t n = r->chosen.specs.n;
    if (n && !r->targets.n) {
        tool_error("--shape is for choosing algorithms: it wants a GPU as --target");
        return false;
    }
    r->chosen.shapes = calloc(n + 1, sizeof *r->chosen.shapes);
    if (!r->chosen.shapes) {
        tool_error("out of memory");
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        const input_spec *spec = &r->chosen.specs.items[i];
        r->chosen.shapes[i] = (grt_input_shape){.input = spec->name, .rank = spec->rank};
        memcpy(r->chosen.shapes[i].dims, spec->dims, sizeof spec->dims);
    }
    r->options.shapes = r->chosen.shapes;
    r->options.n_shapes = n;
    return true;
}

/* warnings: an array if the report is to be JSON, else NULL. */
static int report_plan(const char *model, const char *plan, double ms, json_t *warnings)
{
    struct stat st = {0};
    grt_runtime *runtime = NULL;
    grt_model *opened = NULL;
    grt_model_info info = {.struct_size = sizeof info};
    int code = EXIT_GOOD;
    /* reading it back also proves that it can be read */
    if (grt_runtime_create(&runtime) != GRT_OK || grt_model_open(runtime, plan, &opened) != GRT_OK ||
        grt_model_get_info(opened, &info) != GRT_OK) {
        code = tool_fail();
    } else if (stat(plan, &st) == 0 && warnings) {
        json_t *r = json_object();
        json_object_set_new(r, "model", json_text(model));
        json_object_set_new(r, "plan", json_text(plan));
        json_object_set_new(r, "plan_bytes", json_integer((json_int_t)st.st_size));
        json_object_set_new(r, "optimize_ms", json_real(ms));
        json_object_set_new(r, "nodes", json_integer(info.nodes));
        json_object_set_new(r, "steps", json_integer(info.steps));
        json_object_set_new(r, "parameters", json_integer(info.parameters));
        json_object_set_new(r, "weights_bytes", json_integer((json_int_t)info.weights_bytes));
        json_object_set_new(r, "arena_bytes", json_integer((json_int_t)info.arena_bytes));
        json_object_set_new(r, "tuning", inspect_tuning_json(opened));
        json_object_set(r, "warnings", warnings);
        code = json_print(r) ? EXIT_GOOD : EXIT_BAD;
    } else {
        char size[FIGURE_SIZE];
        tool_print("%s: %lld nodes -> %lld steps, %s, in %.0f ms\n", plan, (long long)info.nodes,
                   (long long)info.steps, figure_bytes((double)st.st_size, size), ms);
        code = inspect_tuning_text(opened) ? EXIT_GOOD : EXIT_BAD;
    }
    grt_model_release(opened);
    grt_runtime_release(runtime);
    return code;
}

/* Standard output gets the plan and nothing else. */
static int optimize_to_stdout(const char *model, const grt_compile_options *options)
{
    streamed s;
    int code = EXIT_BAD;
    interrupt_watch();
    if (streamed_begin(&s)) {
        const grt_status status = grt_compile(model, options, s.path);
        progress_clear();
        code = status != GRT_OK ? tool_fail() : streamed_send(&s) ? EXIT_GOOD : EXIT_BAD;
    }
    streamed_release(&s);
    interrupt_end();
    return code;
}

/* --precision auto may have made another model. */
static const char *compiled_model(const request *r)
{
    return r->quantised.path ? r->quantised.path : r->model;
}

static int optimize_model(request *r)
{
    if (r->output && !strcmp(r->output, "-"))
        return optimize_to_stdout(compiled_model(r), &r->options);
    char *name = r->output ? strdup(r->output) : plan_name(r->model);
    if (!name) {
        tool_error("out of memory");
        return EXIT_BAD;
    }
    r->warnings = r->json ? json_array() : NULL;
    double begin = now_ms();
    interrupt_watch();
    grt_status status = grt_compile(compiled_model(r), &r->options, name);
    double ms = now_ms() - begin;
    progress_clear();
    int code = status == GRT_OK ? report_plan(r->model, name, ms, r->warnings) : tool_fail();
    interrupt_end();
    json_decref(r->warnings);
    free(name);
    return code;
}

static bool asks_auto(const request *r)
{
    return r->options.precision && !strcmp(r->options.precision, "auto");
}

static bool is_auto_possible(const request *r)
{
    if (asks_auto(r) && (!r->data.n_sources || !(r->max_error > 0)))
        tool_error("--precision auto wants samples to measure with (--data DIR) and a limit (--max-error E)");
    else if (!asks_auto(r) && (r->data.n_sources || r->max_error > 0))
        tool_error("--data and --max-error are for --precision auto");
    else if (asks_auto(r) && piped_is(r->model))
        tool_error("--precision auto opens the model more than once: it wants a file");
    else
        return true;
    return false;
}

/* Standard output is the plan's or the report's alone: then nothing is said. */
static bool choose_precision(request *r)
{
    if (!asks_auto(r))
        return true;
    if (!calibration_data_open(&r->data, r->model, r->options.allow_symlinks, 0))
        return false;
    auto_precision a = {.model = r->model,
                        .options = r->options,
                        .data = r->data,
                        .max_error = r->max_error,
                        .quiet = r->json || (r->output && !strcmp(r->output, "-"))};
    interrupt_watch();
    r->precision = auto_precision_find(&a);
    interrupt_end();
    if (r->precision && !a.quiet && !a.quantised.path)
        tool_print("precision: %s\n", r->precision);
    r->data = a.data;
    r->quantised = a.quantised;
    r->options.precision = r->precision;
    return r->precision != NULL;
}

static bool optimize_is_use_possible(const request *r)
{
    const bool streams = r->output && !strcmp(r->output, "-");
    const char *other = r->json ? "--json" : r->options.external_weights ? "--external-weights" : NULL;
    if (streams && other)
        tool_error("-o - does not go with %s: standard output has the plan alone", other);
    else if (!r->output && piped_is(r->model))
        tool_error(
            "the model has no name that the plan's could be made of: -o FILE, or -o - for standard output");
    else if (r->options.choices && !r->targets.n)
        tool_error("--choices is for choosing algorithms: it wants a GPU as --target");
    else
        return true;
    return false;
}

/* Known before minutes of compiling. */
static bool optimize_has_place(const request *r)
{
    if (r->output && !strcmp(r->output, "-"))
        return true;
    char *name = r->output ? strdup(r->output) : plan_name(r->model);
    if (!name)
        tool_error("out of memory");
    const bool ok = name && destination_file("-o", name);
    free(name);
    return ok;
}

static int list_passes(void)
{
    const char *const *names;
    size_t n = grt_pass_names(&names);
    for (size_t i = 0; i < n; i++)
        tool_print("%s\n", names[i]);
    return EXIT_GOOD;
}

static bool take_target(void *user, const char *value)
{
    return targets_add(&((request *)user)->targets, "--target", value);
}

static bool take_chosen_shape(void *user, const char *value)
{
    return inputs_add_shape(&((request *)user)->chosen.specs, value);
}

static bool take_state(void *user, const char *value)
{
    request *r = user;
    const size_t before = r->state ? strlen(r->state) : 0, n = strlen(value);
    char *longer = realloc(r->state, before + n + 2);
    if (!longer || !strchr(value, '=')) {
        tool_error(longer ? "--state wants OUTPUT=INPUT, found '%s'" : "out of memory", value);
        r->state = longer ? longer : r->state;
        return false;
    }
    snprintf(longer + before, n + 2, "%s\n", value);
    r->options.state = r->state = longer;
    return true;
}

static bool optimize_take_data(void *user, const char *value)
{
    return calibration_data_add(&((request *)user)->data, value);
}

static bool take_onnx_model(void *user, const char *value)
{
    return option_only(&((request *)user)->model, value);
}

const tool_option optimize_options[] = {
    OPTION_TEXT(request, output, "-o", "FILE",
                "where the plan goes (default: MODEL with .grt instead of .onnx); -: standard output"),
    OPTION_TEXT(request, output, "--output", "FILE", NULL),
    OPTION_INT(request, level, 0, 2, "--level", "N",
               "0: only what execution needs, 1: clean and fold, 2: everything (default)"),
    OPTION_TEXT(request, options.disable_passes, "--disable-pass", "NAME,...", "leave passes out"),
    OPTION_TEXT(request, options.enable_passes, "--enable-pass", "NAME,...",
                "run passes that the target does not ask for"),
    OPTION_FLAG(request, list_passes, "--list-passes", "print the names of all passes and do nothing else"),
    OPTION_TEXT(
        request, options.precision, "--precision", "P",
        "of float32 models: fp32 (as the model says; the default, save models in half that a mask\n"
        "made float32), tf32 (products may round to it), fp16 or bf16 (weights and activations; sums,\n"
        "inputs and outputs stay float32); NODE=P behind it, separated by commas, for single nodes.\n"
        "exact: every node of a model with 16-bit floats is rounded, as ONNX's reference does.\n"
        "auto: what is fastest within --max-error"),
    OPTION_TAKE(optimize_take_data, "--data", "DIR",
                "for --precision auto: samples as for graphc quantize, .npy or .pb files; NAME=DIR for one\n"
                "input; may be repeated"),
    OPTION_NUMBER(
        request, max_error, 0, "--max-error", "E",
        "for --precision auto: most error of an output against float32, as a root of squares: 0.01 is\n"
        "1 %"),
    OPTION_TAKE(take_target, "--target", "KIND|GPU",
                "kind of device that it is made for (default: cpu); the others run it if they have kernels\n"
                "for its steps. Or a GPU, by name or compute capability (h200, sm_90): its kind, and the\n"
                "algorithms of its libraries are chosen now, with no such GPU in this machine; may be\n"
                "repeated"),
    OPTION_TAKE(take_chosen_shape, "--shape", "NAME=2x3x224",
                "choose for this shape of input NAME (default: unknown dims 1); may be repeated"),
    OPTION_TEXT(request, options.choices, "--choices", "FILE",
                "with a GPU as target: a file of graphc cache export from a machine with such a GPU; its\n"
                "choices go before those made here"),
    OPTION_FLAG(request, options.external_weights, "--external-weights",
                "put weights into FILE.CHECKSUM.weights beside the plan"),
    OPTION_FLAG(request, options.allow_symlinks, "--allow-symlinks",
                "follow symbolic links to external data, as in Hugging Face caches"),
    OPTION_FLAG(request, options.strict, "--strict",
                "a model that breaks rules of the standard in ways that are otherwise warned of is an error"),
    OPTION_TEXT(request, options.free_dims, "--free-dims", "NAME,...",
                "dims of which every use may have a size of its own, '*' for all; otherwise a name has one\n"
                "size in a run"),
    OPTION_TEXT(request, options.keep_weights, "--keep-weights", "NAME,...",
                "initializers that programs may replace (grt_session_set_weights): they become inputs with\n"
                "defaults"),
    OPTION_TAKE(take_state, "--state", "OUTPUT=INPUT",
                "the plan declares that this output is state, the input of the next run (grt_state_create);\n"
                "may be repeated"),
    OPTION_CUSTOM_OPS,
    OPTION_FLAG(request, json, "--json", "report as JSON on standard output"),
    OPTION_TABLE_END,
};

int optimize_command(const tool_command *command, int argc, char **argv)
{
    request r = {.options = {.struct_size = sizeof r.options,
                             .progress = optimize_show_progress,
                             .cancel = interrupt_asked,
                             .warning = take_warning},
                 .level = -1};
    int code = EXIT_BAD;
    if (options_parse(command, argc, argv, &r, take_onnx_model, &code)) {
        r.options.optimization = (grt_optimization)(GRT_OPTIMIZATION_NONE + r.level); /* -1: the default */
        if (r.list_passes)
            code = list_passes();
        else if (option_given(command, r.model) && optimize_is_use_possible(&r) && is_auto_possible(&r) &&
                 optimize_has_place(&r) && take_shapes(&r)) {
            targets_set(&r.targets, &r.options);
            r.options.user = &r;
            code = choose_precision(&r) ? optimize_model(&r) : EXIT_BAD;
        }
    }
    calibration_data_release(&r.data);
    free(r.precision);
    quantised_model_release(&r.quantised);
    targets_release(&r.targets);
    inputs_release(&r.chosen.specs);
    free(r.chosen.shapes);
    free(r.state);
    return code;
}
