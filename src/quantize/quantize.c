/* SPDX-License-Identifier: Apache-2.0 */
/* grt_quantize: read, fold, calibrate, measure, put back, write. */
#include <graphrt/quantize.h>

#include "src/base/output.h"
#include "src/base/structs.h"
#include "src/quantize/fold_norm.h"
#include "src/quantize/measure.h"
#include "src/quantize/observe.h"
#include "src/quantize/opset.h"
#include "src/quantize/options.h"
#include "src/base/file_map.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PUT_BACK "put back to float32, for the model's error"

typedef struct quantizing {
    grt_quantize_options options; /* with defaults set */
    document base;                /* float32 */
    quant_layers layers;
    samples samples;
    observed observed;
    scale_zero *scales;
    model_error error;
    grt_quantize_report report;
} quantizing;

/* The parts of a comma-separated list, NULL at the end. */
static const char **split_list(grt_arena *arena, const char *text)
{
    size_t n = 1;
    for (const char *p = text; *p; p++)
        n += *p == ',';
    const char **parts = GRT_ARENA_ARRAY(arena, const char *, n + 1);
    for (size_t i = 0; parts && i < n; i++) {
        const size_t size = strcspn(text, ",");
        parts[i] = grt_arena_strndup(arena, text, size);
        text += size + (text[size] != 0);
    }
    return parts;
}

static grt_status check_ops(const char *const *ops)
{
    static const char *const known[] = {"Conv", "ConvTranspose", "MatMul", "Gemm", NULL};
    for (; *ops; ops++) {
        const char *const *k = known;
        while (*k && strcmp(*k, *ops) != 0)
            k++;
        if (!*k)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "there are no layers of op '%s'; there are Conv, ConvTranspose, MatMul and Gemm",
                            *ops);
    }
    return GRT_OK;
}

static grt_status keep_layers(quantizing *q)
{
    const char **parts = q->options.keep ? split_list(q->base.arena, q->options.keep) : NULL;
    for (; parts && *parts; parts++) {
        size_t found = 0;
        for (size_t i = 0; i < q->layers.n; i++) {
            quant_layer *layer = &q->layers.layers[i];
            if (fnmatch(*parts, node_title(q->base.nodes[layer->node]), 0) != 0)
                continue;
            found++;
            layer->kept = layer->kept ? layer->kept : "kept by name";
        }
        if (!found)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "no layer to keep has the name '%s'; a report without keep lists them", *parts);
    }
    return document_check(&q->base);
}

static int64_t needed_opset(const grt_quantize_options *o)
{
    if (o->mode != GRT_QUANTIZE_WEIGHTS)
        return quantize_options_float8(o) ? 19 : 13;
    return o->block > 0 || o->weights == GRT_DTYPE_INT4 ? 21 : o->weights == GRT_DTYPE_FLOAT8E4M3FN ? 19 : 13;
}

/* The IR version that an opset came with, as far as types of this room's making need it. */
static int64_t needed_ir(int64_t opset)
{
    return opset >= 21 ? 10 : opset >= 19 ? 9 : 8;
}

static grt_status read_model(quantizing *q, const char *path)
{
    const compile_source source = {.path = path, .allow_symlinks = q->options.allow_symlinks};
    size_t folded;
    GRT_TRY(document_open(&q->base, &source));
    q->report.opset_before = q->base.opset;
    for (size_t i = 0; i < q->base.n_weights; i++)
        q->report.bytes_before +=
            q->base.weights[i]->message ? 0 : grt_tensor_bytes(&q->base.weights[i]->tensor);
    GRT_TRY(document_fold_norms(&q->base, &folded));
    q->report.folded = (int64_t)folded;
    GRT_TRY(document_raise_opset(&q->base, needed_opset(&q->options)));
    q->report.opset = q->base.opset;
    if (q->base.ir_version < needed_ir(q->base.opset))
        q->base.ir_version = needed_ir(q->base.opset);
    return GRT_OK;
}

static grt_status quantize_find_layers(quantizing *q)
{
    const char *const *ops = split_list(q->base.arena, q->options.ops);
    GRT_TRY(document_check(&q->base));
    GRT_TRY(check_ops(ops));
    const layer_rules rules = {ops, q->options.mode != GRT_QUANTIZE_STATIC ||
                                        quantize_options_float8(&q->options)};
    GRT_TRY(layers_find(&q->layers, &q->base, &rules));
    if (q->options.mode == GRT_QUANTIZE_STATIC)
        layers_number_values(&q->layers);
    GRT_TRY(keep_layers(q));
    q->report.layers = (int64_t)q->layers.n;
    if (layers_active(&q->layers))
        return GRT_OK;
    const char *why = q->layers.n ? q->layers.layers[0].kept : NULL;
    return grt_fail(
        GRT_STATUS_INVALID_ARGUMENT,
        "there is nothing to quantise: of %zu layers with constant float32 weights (%s), none can be "
        "quantised%s%s%s%s",
        q->layers.n, q->options.ops, why ? "; '" : "",
        why ? node_title(q->base.nodes[q->layers.layers[0].node]) : "", why ? "': " : "", why ? why : "");
}

static value_range quantize_range_of(const grt_quantize_options *o, const statistics *s)
{
    const bool symmetric = o->activations != GRT_DTYPE_UINT8;
    switch (o->calibration) {
    case GRT_CALIBRATION_PERCENTILE:
        return statistics_percentile(s, o->percentile);
    case GRT_CALIBRATION_MSE:
        return statistics_least_error(s, symmetric ? 255 : 256, symmetric);
    default:
        return statistics_extremes(s);
    }
}

static void keep_odd_layers(quantizing *q)
{
    for (size_t i = 0; i < q->layers.n; i++) {
        quant_layer *layer = &q->layers.layers[i];
        const quant_value *values[] = {layer->in, layer->tail};
        for (size_t k = 0; k < 2 && !layer->kept; k++)
            if (values[k] && values[k]->slot >= 0 && q->observed.list[values[k]->slot].odd)
                layer->kept = k ? "its output has elements that are not finite"
                                : "its input has elements that are not finite";
    }
}

static grt_status calibrate(quantizing *q)
{
    if (q->options.mode != GRT_QUANTIZE_STATIC)
        return GRT_OK;
    GRT_TRY(observe_values(&q->layers, &q->samples, OBSERVED_BYTES, &q->observed));
    q->report.samples = (int64_t)q->options.n_samples;
    q->report.resumed = (int64_t)q->observed.resumed;
    q->scales = calloc(q->observed.n + 1, sizeof *q->scales);
    if (!q->scales)
        return grt_fail_memory(q->observed.n * sizeof *q->scales);
    for (size_t i = 0; i < q->observed.n; i++)
        q->scales[i] =
            scale_of_range(quantize_range_of(&q->options, &q->observed.list[i]), q->options.activations);
    keep_odd_layers(q);
    return layers_active(&q->layers)
               ? GRT_OK
               : grt_fail(
                     GRT_STATUS_INVALID_ARGUMENT,
                     "there is nothing to quantise: all layers have inputs or outputs that are not finite");
}

static rewriting rewriting_of(quantizing *q)
{
    layers_decide(&q->layers);
    /* values without layers have no scales, and without static scales none is wanted */
    for (size_t i = 0; q->options.mode != GRT_QUANTIZE_STATIC && i < q->layers.n_values; i++)
        q->layers.values[i].wanted = q->layers.values[i].carried = false;
    return (rewriting){&q->options, &q->layers, q->scales};
}

static bool measures(const quantizing *q)
{
    return measured_samples(&q->samples) > 0;
}

/* With the first n of `order` in float32. */
static grt_status measure_with(quantizing *q, quant_layer **order, size_t n_order, size_t n)
{
    document d = {0};
    for (size_t i = 0; i < n_order; i++)
        order[i]->kept = i < n ? PUT_BACK : NULL;
    const rewriting r = rewriting_of(q);
    grt_status status = rewrite_document(&r, &d);
    if (status == GRT_OK)
        status = measure_model(&q->base, &d, &q->samples, &q->error);
    document_release(&d);
    return status;
}

static bool is_good(const quantizing *q)
{
    return q->options.max_error <= 0 || q->error.relative <= q->options.max_error;
}

static int larger_error_first(const void *a, const void *b)
{
    const quant_layer *x = *(quant_layer *const *)a, *y = *(quant_layer *const *)b;
    if (x->error != y->error)
        return x->error > y->error ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* The least number of layers in float32 that is good enough, found by doubling and bisection: more of them
 * are taken to be better. What is settled on was measured. */
static grt_status put_back(quantizing *q, quant_layer **order, size_t n)
{
    size_t bad = 0, good = 1;
    GRT_TRY(measure_with(q, order, n, 0));
    if (is_good(q))
        return GRT_OK;
    while (good < n) {
        GRT_TRY(measure_with(q, order, n, good));
        if (is_good(q))
            break;
        bad = good;
        good *= 2;
    }
    good = good < n ? good : n;
    while (good - bad > 1) {
        const size_t middle = bad + (good - bad) / 2;
        GRT_TRY(measure_with(q, order, n, middle));
        *(is_good(q) ? &good : &bad) = middle;
    }
    if (good == n)
        return grt_fail(
            GRT_STATUS_INVALID_ARGUMENT,
            "the model's error is above max_error %g with any layer quantised; with only the one of the "
            "least error, '%s', it is %g",
            q->options.max_error, node_title(q->base.nodes[order[n - 1]->node]), q->error.relative);
    q->report.put_back = (int64_t)good;
    return measure_with(q, order, n, good);
}

static grt_status measure_all(quantizing *q)
{
    const rewriting r = rewriting_of(q);
    GRT_TRY(measure_layers(&r, &q->samples));
    quant_layer **order = calloc(q->layers.n + 1, sizeof *order);
    size_t n = 0;
    if (!order)
        return grt_fail_memory(0);
    for (size_t i = 0; i < q->layers.n; i++)
        if (!q->layers.layers[i].kept)
            order[n++] = &q->layers.layers[i];
    qsort(order, n, sizeof *order, larger_error_first);
    const grt_status status = put_back(q, order, n);
    free(order);
    q->report.measured = (int64_t)measured_samples(&q->samples);
    return status;
}

/* What was done, for whoever has the file or a plan of it. */
static grt_status describe_result(const quantizing *q, document *d)
{
    static const char *const modes[] = {"static", "dynamic", "weights alone"};
    grt_text text = {0};
    grt_text_add(&text, "%s: %zu of %zu layers in %s", modes[q->options.mode], layers_active(&q->layers),
                 q->layers.n, grt_dtype_name(q->options.weights));
    if (q->options.max_error > 0) /* otherwise samples that only measure would change the file */
        grt_text_add(&text, "; error %.3g on %zu samples, at most %g", q->error.relative,
                     measured_samples(&q->samples), q->options.max_error);
    const char *before = "; float32: ";
    for (size_t i = 0; i < q->layers.n; i++)
        if (q->layers.layers[i].kept) {
            grt_text_add(&text, "%s%s (%s)", before, node_title(q->base.nodes[q->layers.layers[i].node]),
                         q->layers.layers[i].kept);
            before = ", ";
        }
    d->about = grt_arena_strdup(d->arena, grt_text_get(&text));
    grt_text_release(&text);
    return d->about ? GRT_OK : grt_fail_memory(0);
}

static grt_status write_model(quantizing *q, const char *path)
{
    document d = {0};
    const rewriting r = rewriting_of(q);
    grt_status status = rewrite_document(&r, &d);
    if (status == GRT_OK)
        status = describe_result(q, &d);
    if (status == GRT_OK)
        status = samples_report(&q->samples, "write", 0, 1);
    if (status == GRT_OK)
        status = pack_file(&d, path, q->options.external_weights, &q->report.bytes);
    document_release(&d);
    return status;
}

static void tell_layers(const quantizing *q)
{
    for (size_t i = 0; q->options.layer && i < q->layers.n; i++) {
        const quant_layer *layer = &q->layers.layers[i];
        const Onnx__NodeProto *node = q->base.nodes[layer->node];
        const grt_quantize_layer shown = {.struct_size = sizeof shown,
                                          .name = node_title(node),
                                          .op = node->op_type,
                                          .kept = layer->kept,
                                          .weights = grt_tensor_elements(&layer->weight->tensor),
                                          .weight_error = layer->weight_error,
                                          .error = layer->error};
        q->options.layer(q->options.user, &shown);
    }
}

static void fill_report(quantizing *q)
{
    const bool measured = measures(q);
    q->report.quantised = (int64_t)layers_active(&q->layers);
    for (size_t i = 0; i < q->layers.n_values; i++)
        q->report.values += q->layers.values[i].wanted;
    q->report.error = measured ? q->error.relative : -1;
    q->report.largest_error = measured ? q->error.largest : -1;
}

static grt_status quantize_file(quantizing *q, const char *onnx_path, const char *out_path)
{
    GRT_TRY(read_model(q, onnx_path));
    GRT_TRY(quantize_find_layers(q));
    GRT_TRY(grt_runtime_create(&q->samples.runtime));
    GRT_TRY(grt_runtime_set_algo_cache(q->samples.runtime, "off"));
    GRT_TRY(calibrate(q));
    if (measures(q))
        GRT_TRY(measure_all(q));
    GRT_TRY(write_model(q, out_path));
    fill_report(q);
    tell_layers(q);
    return GRT_OK;
}

grt_status grt_quantize(const char *onnx_path, const grt_quantize_options *options, const char *out_path,
                        grt_quantize_report *out_report)
{
    quantizing q = {.report = {.struct_size = sizeof q.report}};
    if (!onnx_path || !out_path)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_quantize: %s is NULL",
                        onnx_path ? "out_path" : "onnx_path");
    if (grt_same_file(onnx_path, out_path))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: the result would take the place of the model",
                        out_path);
    GRT_TRY(quantize_options_take(&q.options, options));
    GRT_TRY(grt_output_check(out_path));
    q.samples =
        (samples){.options = &q.options, .original = &q.base, .cancel = {q.options.cancel, q.options.user}};
    grt_status status = quantize_file(&q, onnx_path, out_path);
    if (status == GRT_OK && out_report)
        status = grt_info_give(out_report, &q.report, sizeof q.report, "grt_quantize_report");
    free(q.scales);
    observed_release(&q.observed);
    grt_runtime_release(q.samples.runtime);
    document_release(&q.base);
    return status == GRT_OK ? status : compile_fail_file(status, onnx_path);
}
