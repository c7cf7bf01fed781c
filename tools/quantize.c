/* SPDX-License-Identifier: Apache-2.0 */
/* graphc quantize: write a quantised ONNX model, and say what it costs in accuracy. */
#define _GNU_SOURCE /* asprintf */
#include "tools/quantize.h"

#include "tools/calibration_data.h"
#include "tools/interrupt.h"
#include "tools/piped.h"
#include "tools/progress.h"
#include "tools/report.h"

#include <graphrt/quantize.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct request {
    const char *model, *output, *state;
    const char *calibration, *activations, *weights;
    grt_quantize_options options;
    calibration_data data;
    int64_t limit, block;
    char *keep; /* of all --keep */
    bool dynamic, json, lines;
    json_t *layers;
    const char *phase; /* that progress was told of last */
    int tenth;
} request;

static bool take_model(void *user, const char *value)
{
    return option_only(&((request *)user)->model, value);
}

static bool take_data(void *user, const char *value)
{
    return calibration_data_add(&((request *)user)->data, value);
}

static bool take_keep(void *user, const char *value)
{
    request *r = user;
    char *list = NULL;
    if (asprintf(&list, "%s%s%s", r->keep ? r->keep : "", r->keep ? "," : "", value) < 0) {
        tool_error("out of memory");
        return false;
    }
    free(r->keep);
    r->keep = list;
    return true;
}

const tool_option quantize_options[] = {
    OPTION_FILE(request, output, "-o", "FILE", "where the quantised model goes, an .onnx"),
    OPTION_FILE(request, output, "--output", "FILE", "the same"),
    OPTION_TAKE(take_data, "--data", "DIR|NAME=DIR",
                "samples: a directory of .npy or .pb files for each input, DIR/NAME or NAME=DIR, one file a\n"
                "run as in graphrun --input; DIR alone for a model with one input; may be repeated"),
    OPTION_INT(request, limit, 1, INT64_MAX, "--samples", "N", "use the first N samples only"),
    OPTION_FLAG(
        request, dynamic, "--dynamic",
        "MatMul and Gemm alone, whose activations get their scales when the model runs: needs no data"),
    OPTION_TEXT(request, weights, "--weights", "int8|int4|float8",
                "weights of MatMul and Gemm alone; activations stay float32: needs no data"),
    OPTION_INT(
        request, block, 0, INT64_MAX, "--block", "N",
        "with --weights: this many weights share a scale (default: 32, at least 16); 0: one a channel"),
    OPTION_TEXT(request, calibration, "--calibration", "minmax|percentile|mse",
                "how the range of an activation follows from the samples (default: minmax)"),
    OPTION_NUMBER(request, options.percentile, 50, "--percentile", "P",
                  "with --calibration percentile: percent of elements within the range (default: 99.99)"),
    OPTION_TEXT(request, activations, "--activations", "uint8|int8|float8",
                "uint8 with a zero point (default), int8, symmetric, as GPUs want it, or float8: MatMul and\n"
                "Gemm alone, whose weights become float8, too, for GPUs from compute capability 8.9 on"),
    OPTION_TEXT(request, options.ops, "--ops", "OP,...",
                "ops of layers to quantise (default: Conv,MatMul,Gemm; there is ConvTranspose, too)"),
    OPTION_TAKE(take_keep, "--keep", "NAME,...",
                "layers that stay float32, by name as in the report; *, ? and [] as in file names; may\n"
                "be repeated"),
    OPTION_NUMBER(
        request, options.max_error, 0, "--max-error", "E",
        "put layers back to float32, those with the largest error first, until the model's relative\n"
        "error is at most E"),
    OPTION_INT(request, options.measured, 0, INT64_MAX, "--measure", "N",
               "measure errors with N samples, spread over all (default: 16); 0: do not measure"),
    OPTION_FILE(
        request, state, "--state", "FILE",
        "keep statistics of samples in FILE, and use those that are there; default: FILE.calibration\n"
        "beside the result, removed at the end"),
    OPTION_FLAG(request, options.external_weights, "--external-weights",
                "put weights into FILE.data, as is done where a file would have 2 GiB or more"),
    OPTION_FLAG(request, options.allow_symlinks, "--allow-symlinks",
                "follow symbolic links to external data, as in Hugging Face caches"),
    OPTION_CUSTOM_OPS,
    OPTION_FLAG(request, lines, "--progress",
                "say on standard error what is done, also where that is no terminal"),
    OPTION_FLAG(request, json, "--json", "report as JSON on standard output"),
    OPTION_TABLE_END,
};

/* The number of `text` in the list; -1 after printing that it is none of them. */
static int find_word(const char *option, const char *text, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (!strcmp(text, words[i]))
            return i;
    tool_error("%s: '%s' is none of %s, %s%s%s", option, text, words[0], words[1], words[2] ? ", " : "",
               words[2] ? words[2] : "");
    return -1;
}

static bool read_words(request *r)
{
    static const char *const calibrations[] = {"minmax", "percentile", "mse", NULL},
                             *const activations[] = {"uint8", "int8", "float8", NULL},
                             *const weights[] = {"int8", "int4", "float8", NULL};
    static const grt_dtype activation_dtypes[] = {GRT_DTYPE_UINT8, GRT_DTYPE_INT8, GRT_DTYPE_FLOAT8E4M3FN},
                           weight_dtypes[] = {GRT_DTYPE_INT8, GRT_DTYPE_INT4, GRT_DTYPE_FLOAT8E4M3FN};
    const int c = r->calibration ? find_word("--calibration", r->calibration, calibrations) : 0,
              a = r->activations ? find_word("--activations", r->activations, activations) : 0,
              w = r->weights ? find_word("--weights", r->weights, weights) : 0;
    if (c < 0 || a < 0 || w < 0)
        return false;
    r->options.calibration = (grt_calibration)c;
    r->options.activations = activation_dtypes[a];
    r->options.weights = r->weights ? weight_dtypes[w] : GRT_DTYPE_NONE;
    r->options.mode = r->weights   ? GRT_QUANTIZE_WEIGHTS
                      : r->dynamic ? GRT_QUANTIZE_DYNAMIC
                                   : GRT_QUANTIZE_STATIC;
    r->options.block = r->block ? r->block : -1;
    return true;
}

static bool quantize_is_use_possible(const request *r)
{
    const bool is_static = !r->dynamic && !r->weights;
    const char *other = r->calibration   ? "--calibration"
                        : r->activations ? "--activations"
                        : r->state       ? "--state"
                                         : NULL;
    if (!r->output)
        tool_error("quantize: -o FILE says where the quantised model goes");
    else if (piped_is(r->model))
        tool_error("quantize: the model is read more than once: give a file");
    else if (r->dynamic && r->weights)
        tool_error("quantize: --dynamic or --weights, not both");
    else if (is_static && !r->data.n_sources)
        tool_error(
            "quantize: --data DIR says where samples of the inputs are; --dynamic and --weights need none");
    else if (!is_static && other)
        tool_error(
            "quantize: %s is for activations with scales from samples: neither --dynamic nor --weights",
            other);
    else if (r->block && r->block < 16)
        tool_error("--block: %lld is neither 0 nor at least 16", (long long)r->block);
    else if (!r->weights && r->block != 32)
        tool_error("quantize: --block is for --weights");
    else
        return true;
    return false;
}

static bool give_sample(void *user, size_t index, grt_value **values)
{
    return calibration_data_sample(&((request *)user)->data, index, values);
}

static void quantize_show_progress(void *user, const char *phase, double fraction)
{
    request *r = user;
    progress_show(fraction, phase);
    const int tenth = (int)(fraction * 10);
    if (!r->lines || (phase == r->phase && tenth == r->tenth))
        return;
    r->phase = phase;
    r->tenth = tenth;
    progress_clear();
    fprintf(stderr, "%s: %s %d%%\n", tool_name, phase, tenth * 10);
}

/* 20 log10(1 / relative error). */
static double decibels(double error)
{
    return error > 0 ? -20 * log10(error) : INFINITY;
}

static json_t *json_measured(double value)
{
    return value >= 0 && isfinite(value) ? json_real(value) : json_null();
}

static void take_layer(void *user, const grt_quantize_layer *layer)
{
    json_t *object = json_object();
    json_object_set_new(object, "name", json_text(layer->name));
    json_object_set_new(object, "op", json_text(layer->op));
    json_object_set_new(object, "weights", json_integer((json_int_t)layer->weights));
    json_object_set_new(object, "kept", layer->kept ? json_text(layer->kept) : json_null());
    json_object_set_new(object, "weight_error",
                        layer->kept ? json_null() : json_measured(layer->weight_error));
    json_object_set_new(object, "error", json_measured(layer->error));
    json_object_set_new(object, "sqnr_db",
                        layer->error > 0 ? json_measured(decibels(layer->error)) : json_null());
    json_array_append_new(((request *)user)->layers, object);
}

static bool print_json(const request *r, const grt_quantize_report *q, double ms)
{
    json_t *o = json_object();
    json_object_set_new(o, "model", json_text(r->model));
    json_object_set_new(o, "output", json_text(r->output));
    json_object_set_new(o, "layers", json_integer(q->layers));
    json_object_set_new(o, "quantised", json_integer(q->quantised));
    json_object_set_new(o, "put_back", json_integer(q->put_back));
    json_object_set_new(o, "values", json_integer(q->values));
    json_object_set_new(o, "folded_norms", json_integer(q->folded));
    json_object_set_new(o, "opset_before", json_integer(q->opset_before));
    json_object_set_new(o, "opset", json_integer(q->opset));
    json_object_set_new(o, "samples", json_integer(q->samples));
    json_object_set_new(o, "resumed", json_integer(q->resumed));
    json_object_set_new(o, "measured", json_integer(q->measured));
    json_object_set_new(o, "error", json_measured(q->error));
    json_object_set_new(o, "sqnr_db", q->error > 0 ? json_measured(decibels(q->error)) : json_null());
    json_object_set_new(o, "largest_error", json_measured(q->largest_error));
    json_object_set_new(o, "bytes_before", json_integer((json_int_t)q->bytes_before));
    json_object_set_new(o, "bytes", json_integer((json_int_t)q->bytes));
    json_object_set_new(o, "quantize_ms", json_real(ms));
    json_object_set(o, "layer", r->layers);
    return json_print(o);
}

static void print_layer(const json_t *layer)
{
    const json_t *kept = json_object_get(layer, "kept"), *error = json_object_get(layer, "error"),
                 *db = json_object_get(layer, "sqnr_db");
    char figure[64] = "";
    if (json_is_number(error) && json_is_number(db))
        snprintf(figure, sizeof figure, "%.5f (%.1f dB)", json_number_value(error), json_number_value(db));
    tool_print("  %-12s %-20s %s%s%s\n", json_string_value(json_object_get(layer, "op")), figure,
               json_string_value(json_object_get(layer, "name")), json_is_string(kept) ? ": float32, " : "",
               json_is_string(kept) ? json_string_value(kept) : "");
}

static void print_report(const request *r, const grt_quantize_report *q, double ms)
{
    size_t i;
    const json_t *layer;
    char before[FIGURE_SIZE], after[FIGURE_SIZE];
    tool_print("%s: layers, and the error of each with the float32 model's inputs\n", r->model);
    json_array_foreach(r->layers, i, layer) print_layer(layer);
    if (q->opset != q->opset_before)
        tool_print("opset raised from %lld to %lld\n", (long long)q->opset_before, (long long)q->opset);
    if (q->resumed)
        tool_print("%lld of %lld samples were seen by an earlier call\n", (long long)q->resumed,
                   (long long)q->samples);
    tool_print("%s: %lld of %lld layers quantised, weights of %s in %s, %.1f s\n", r->output,
               (long long)q->quantised, (long long)q->layers, figure_bytes((double)q->bytes_before, before),
               figure_bytes((double)q->bytes, after), ms / 1000);
    if (q->error >= 0)
        tool_print(
            "error of the model's outputs, of %lld samples: %.5f (%.1f dB), of one element at most %g\n",
            (long long)q->measured, q->error, decibels(q->error), q->largest_error);
    else
        tool_print("errors were not measured%s\n",
                   r->data.n_sources ? "" : ": --data DIR has samples to measure with");
}

/* The same call may succeed later, and then does not begin anew. */
static bool is_worth_another_call(grt_status status)
{
    return status == GRT_STATUS_CANCELLED || status == GRT_STATUS_IO || status == GRT_STATUS_OUT_OF_MEMORY;
}

static int quantize_model(request *r, const char *state)
{
    grt_quantize_report report = {.struct_size = sizeof report};
    r->options.n_samples = r->data.n;
    r->options.samples_id = r->data.id;
    r->options.state = r->options.mode == GRT_QUANTIZE_STATIC ? state : NULL;
    r->options.keep = r->keep;
    r->options.user = r;
    r->layers = json_array();
    const double begin = now_ms();
    interrupt_watch();
    const grt_status status = grt_quantize(r->model, &r->options, r->output, &report);
    const double ms = now_ms() - begin;
    progress_clear();
    int code = EXIT_BAD;
    if (status != GRT_OK)
        code = tool_fail();
    else {
        if (!r->json)
            print_report(r, &report, ms);
        code = !r->json || print_json(r, &report, ms) ? EXIT_GOOD : EXIT_BAD;
    }
    if (!r->state && !is_worth_another_call(status))
        unlink(state);
    interrupt_end();
    json_decref(r->layers);
    return code;
}

static int quantize_request(request *r)
{
    char *state = NULL;
    if (r->data.n_sources &&
        !calibration_data_open(&r->data, r->model, r->options.allow_symlinks, (size_t)r->limit))
        return EXIT_BAD;
    if (asprintf(&state, "%s%s", r->state ? r->state : r->output, r->state ? "" : ".calibration") < 0) {
        tool_error("out of memory");
        return EXIT_BAD;
    }
    const int code = quantize_model(r, state);
    free(state);
    return code;
}

int quantize_command(const tool_command *command, int argc, char **argv)
{
    request r = {.options = {.struct_size = sizeof r.options,
                             .measured = 16,
                             .sample = give_sample,
                             .progress = quantize_show_progress,
                             .cancel = interrupt_asked,
                             .layer = take_layer},
                 .block = 32};
    int code = EXIT_BAD;
    if (options_parse(command, argc, argv, &r, take_model, &code) && option_given(command, r.model) &&
        quantize_is_use_possible(&r) && read_words(&r)) {
        r.options.measured = r.options.measured ? r.options.measured : -1;
        code = quantize_request(&r);
    }
    calibration_data_release(&r.data);
    free(r.keep);
    return code;
}
