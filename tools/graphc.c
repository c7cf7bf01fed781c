/* SPDX-License-Identifier: Apache-2.0 */
/* graphc: compile, check and inspect models. */
#include "tools/cache.h"
#include "tools/devices.h"
#include "tools/expected_ops.h"
#include "tools/inspect.h"
#include "tools/list_devices.h"
#include "tools/optimize.h"
#include "tools/options.h"
#include "tools/quantised_check.h"
#include "tools/quantize.h"
#include "tools/report.h"
#include "tools/sign.h"
#include "tools/trust.h"
#include "tools/tune.h"

#include <stdio.h>
#include <stdlib.h>

const char *const tool_name = "graphc";

typedef struct check_request {
    const char *model;
    grt_compile_options options;
    bool quantised, json;
} check_request;

static bool take_model_to_check(void *request, const char *value)
{
    return option_only(&((check_request *)request)->model, value);
}

static const tool_option check_options[] = {
    OPTION_TEXT(check_request, options.target, "--device", "DEVICE",
                "KIND or KIND:NUMBER, as graphc devices lists them (default: cpu)"),
    OPTION_FLAG(check_request, options.strict, "--strict",
                "a model that breaks rules of the standard in ways that are otherwise warned of is an error"),
    OPTION_TEXT(check_request, options.free_dims, "--free-dims", "NAME,...",
                "dims of which every use may have a size of its own, '*' for all; otherwise a name has one\n"
                "size in a run"),
    OPTION_FLAG(
        check_request, quantised, "--quantised",
        "of a model that is supported, also what stays in float32 between quantised tensors and why,\n"
        "and the number of integer steps; what stays is no failed check"),
    OPTION_CUSTOM_OPS,
    OPTION_FLAG(check_request, json, "--json", "report as JSON on standard output"),
    OPTION_TABLE_END,
};

typedef struct findings {
    json_t *array; /* NULL: print them */
    size_t invalid;
} findings;

static void show_finding(void *user, const grt_finding *f)
{
    findings *found = user;
    const char *kind = f->status == GRT_STATUS_OK            ? "warning"
                       : f->status == GRT_STATUS_UNSUPPORTED ? "unsupported"
                                                             : "invalid";
    found->invalid += *kind == 'i';
    if (found->array) {
        json_array_append_new(found->array, report_finding_json(kind, f));
        return;
    }
    char place[1024];
    tool_print("%s: %s%s\n", kind, report_place(f, place, sizeof place), f->message);
}

static bool check_report(const char *model, const char *device, size_t n, json_t *array)
{
    if (array) {
        json_t *object = json_object();
        json_object_set_new(object, "model", json_text(model));
        json_object_set_new(object, "device", json_text(device));
        json_object_set_new(object, "supported", json_boolean(n == 0));
        json_object_set_new(object, "findings", array);
        return json_print(object);
    }
    if (n == 0)
        tool_print("%s: everything is supported on %s\n", model, device);
    else
        tool_print("%s: %zu finding%s\n", model, n, n == 1 ? "" : "s");
    return true;
}

/* What the library lacks is a failed check; what breaks the rules of ONNX is bad input. */
static int graphc_check_model(const check_request *r)
{
    size_t n = 0;
    char kind[DEVICE_KIND_SIZE];
    grt_compile_options options = r->options;
    const char *model = r->model, *device = options.target;
    if (!devices_kind(device, kind))
        return EXIT_BAD;
    options.target = kind;
    findings found = {.array = r->json ? json_array() : NULL};
    if (grt_check_model_with(model, &options, show_finding, &found, &n) != GRT_OK) {
        json_decref(found.array);
        return tool_fail();
    }
    if (!check_report(model, device ? device : "cpu", n, found.array))
        return EXIT_BAD;
    if (found.invalid)
        tool_error("%s is not a valid ONNX model", model);
    return found.invalid ? EXIT_BAD : n ? EXIT_CHECK : EXIT_GOOD;
}

static int check_command(const tool_command *command, int argc, char **argv)
{
    check_request r = {.options = {.struct_size = sizeof r.options}};
    int code;
    if (!options_parse(command, argc, argv, &r, take_model_to_check, &code))
        return code;
    if (!option_given(command, r.model))
        return EXIT_BAD;
    return r.quantised ? quantised_check(r.model, &r.options, r.json) : graphc_check_model(&r);
}

typedef struct inspect_request {
    const char *model, *trust;
    input_specs shapes;
    expected_ops expected;
    json_t *near_misses;
    const char *html;
    bool json, dot;
} inspect_request;

static bool take_expected_op(void *request, const char *value)
{
    return expected_ops_add(&((inspect_request *)request)->expected, value);
}

static bool take_shape_to_inspect(void *request, const char *value)
{
    return inputs_add_shape(&((inspect_request *)request)->shapes, value);
}

static bool take_model_to_inspect(void *request, const char *value)
{
    return option_only(&((inspect_request *)request)->model, value);
}

static const tool_option inspect_options[] = {
    OPTION_TAKE(take_shape_to_inspect, "--shape", "NAME=2x3x224",
                "also plan memory for this shape of input NAME; may be repeated"),
    OPTION_TEXT(inspect_request, trust, "--trust", "all|none|KEY", TRUST_HELP),
    OPTION_TAKE(take_expected_op, "--expect", "OP=N",
                "fail (status 1) unless N steps are of this op, as in Attention=12; OP<=N: at most so many;\n"
                "op *: steps of any op; may be repeated"),
    OPTION_CUSTOM_OPS,
    OPTION_FLAG(inspect_request, json, "--json", "report as JSON on standard output"),
    OPTION_FILE(inspect_request, html, "--html", "FILE.html",
                "write a page instead, with each step: what it was made of, FLOPs, bytes, its share"),
    OPTION_FLAG(inspect_request, dot, "--dot", "print the steps as a Graphviz graph instead"),
    OPTION_TABLE_END,
};

static void take_near_miss(void *user, const grt_finding *finding)
{
    json_array_append_new(((inspect_request *)user)->near_misses, report_finding_json("near miss", finding));
}

static void print_near_misses(const json_t *near_misses)
{
    size_t i;
    const json_t *miss;
    if (json_array_size(near_misses))
        tool_print("\n");
    json_array_foreach(near_misses, i, miss)
        tool_print("  near miss  %s '%s': %s\n", json_string_value(json_object_get(miss, "op")),
                   json_string_value(json_object_get(miss, "node")),
                   json_string_value(json_object_get(miss, "message")));
}

static bool inspect_print(const inspect_request *r, const grt_model *model)
{
    if (r->html)
        return inspect_html(r->model, r->html, model, &r->shapes, r->near_misses);
    if (r->dot)
        return inspect_dot(model);
    if (r->json)
        return inspect_json(r->model, model, &r->shapes, r->near_misses);
    if (!inspect_text(r->model, model, &r->shapes))
        return false;
    print_near_misses(r->near_misses);
    return true;
}

static int inspect_model(inspect_request *r, const char *trust)
{
    const grt_compile_options options = {
        .struct_size = sizeof options, .trust = trust, .near_miss = take_near_miss, .user = r};
    grt_runtime *runtime = NULL;
    grt_model *model = NULL;
    int code = EXIT_BAD;
    /* Memory is planned on the null device. */
    if (grt_runtime_create(&runtime) != GRT_OK || grt_runtime_set_algo_cache(runtime, "off") != GRT_OK ||
        grt_model_open_with(runtime, r->model, &options, &model) != GRT_OK)
        tool_fail();
    else if (inspect_print(r, model))
        code = expected_ops_check(&r->expected, model);
    grt_model_release(model);
    grt_runtime_release(runtime);
    return code;
}

static bool inspect_one_form(const inspect_request *r)
{
    const int forms = r->json + r->dot + (r->html != NULL);
    if (forms > 1)
        tool_error("inspect: one of --json, --dot and --html, not several");
    return forms <= 1;
}

static int inspect_command(const tool_command *command, int argc, char **argv)
{
    inspect_request r = {.near_misses = json_array()};
    char *trust = NULL;
    int code = EXIT_BAD;
    if (options_parse(command, argc, argv, &r, take_model_to_inspect, &code) &&
        option_given(command, r.model) && inspect_one_form(&r) && trust_read(r.trust, &trust))
        code = inspect_model(&r, trust);
    free(trust);
    json_decref(r.near_misses);
    expected_ops_release(&r.expected);
    inputs_release(&r.shapes);
    return code;
}

static const tool_command commands[] = {
    {"optimize", "MODEL.onnx",
     "Compile an ONNX model to a plan (.grt), which graphrun and libgraphrt load at once.", optimize_options,
     "The plan is written whole or not at all; the same model and options give the same bytes.",
     optimize_command},
    {"check", "MODEL.onnx",
     "List everything that would keep a model from running: node, op, opset, types, shapes.", check_options,
     "Exit status 1 if there is anything to list.", check_command},
    {"quantize", "MODEL.onnx",
     "Write a quantised ONNX model: 8-bit weights and activations, or weights of 8 or 4 bits alone; report "
     "the "
     "error of\n"
     "each layer and of the model.",
     quantize_options,
     "Standard operators, which other runtimes open. The same model, options and samples give the same "
     "bytes. A "
     "run that\n"
     "was interrupted goes on where it was.",
     quantize_command},
    {"inspect", "MODEL",
     "Show what a model (.onnx) or plan (.grt) holds: interface, ops, parameters, FLOPs, memory.",
     inspect_options, NULL, inspect_command},
    {"cache", "ls | why MODEL | prune | export FILE | import FILE",
     "The cache of algorithms that libraries chose for a GPU: list it, explain what a model finds in it, "
     "remove rows,\ncopy it to or from another machine's.",
     cache_options, NULL, cache_command},
    {"tune", "MODEL",
     "Measure the algorithms that a GPU's libraries offer for a model's steps, and keep the fastest: in the "
     "cache, or\n"
     "in the plan.",
     tune_options,
     "Ctrl-C ends it early; what was found is kept. What was tuned before is not measured again. The GPU "
     "should have\n"
     "nothing else to do meanwhile.",
     tune_command},
    {"keygen", "FILE",
     "Make a pair of keys: the secret one in FILE, with which plans are signed, and the public one in "
     "FILE.pub, "
     "which says\n"
     "whose plans are to be trusted.",
     keygen_options, "Neither file is ever overwritten. The secret key is not encrypted.", keygen_command},
    {"sign", "PLAN", "Sign a plan: everything in it, and its external weights.", sign_options,
     "Whatever changes a plan (graphc tune -o) drops its signature: sign last.", sign_command},
    {"devices", "", "List the GPUs of this machine and those that plans can be made for without having them.",
     devices_options, NULL, devices_command},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return options_dispatch("graphc prepares ONNX models for libgraphrt.", commands, argc, argv);
}
