/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* asprintf */
#include "tools/auto_precision.h"

#include "tools/interrupt.h"
#include "tools/progress.h"
#include "tools/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SAMPLES = 16, MOST_GROUPS = 24 };

/* Layers that change precision together, one after the other in the model. */
typedef struct group {
    char *layers; /* names, separated by commas */
    double flops, error;
    int64_t n;
} group;

typedef struct search {
    auto_precision *a;
    const char *model; /* whose candidates are opened */
    grt_runtime *runtime;
    size_t n_samples, n_outputs;
    float **expected; /* [sample][output] */
    int64_t *counts;
    group groups[MOST_GROUPS];
    size_t n_groups;
    double flops;
    int64_t tried;
} search;

/* ---- one candidate on all samples ---- */

typedef struct candidate {
    grt_model *model;
    grt_session *session;
    grt_context *context;
} candidate;

static void candidate_release(candidate *c)
{
    grt_context_release(c->context);
    grt_session_release(c->session);
    grt_model_release(c->model);
}

static bool is_for_cpu(const search *s)
{
    const char *target = s->a->options.target;
    return !target || !strcmp(target, "cpu");
}

static grt_status candidate_open(const search *s, const char *precision, candidate *c)
{
    /* With the roundings of the target's plan: the CPU's own plans round products alone. */
    static const char keeps_narrowing[] = "bfloat16_products";
    grt_compile_options options = s->a->options;
    const char *also = options.disable_passes;
    char *disabled = NULL;
    *c = (candidate){0};
    if (!is_for_cpu(s)) {
        if (asprintf(&disabled, "%s%s%s", keeps_narrowing, also ? "," : "", also ? also : "") < 0)
            return GRT_STATUS_OUT_OF_MEMORY;
        options.disable_passes = disabled;
    }
    options.target = NULL;
    options.devices = NULL;
    options.shapes = NULL;
    options.choices = NULL;
    options.n_devices = options.n_shapes = 0;
    options.progress = NULL;
    options.warning = NULL;
    options.precision = precision;
    grt_status status = grt_model_open_with(s->runtime, s->model, &options, &c->model);
    free(disabled);
    if (status == GRT_OK)
        status = grt_session_create(c->model, "cpu", NULL, &c->session);
    return status == GRT_OK ? grt_context_create(c->session, &c->context) : status;
}

static grt_status run_sample(search *s, candidate *c, size_t sample)
{
    const size_t n = grt_model_input_count(c->model);
    grt_value **values = calloc(n + 1, sizeof *values);
    grt_status status = GRT_STATUS_OUT_OF_MEMORY;
    if (values && calibration_data_sample(&s->a->data, sample * s->a->data.n / s->n_samples, values)) {
        status = GRT_OK;
        for (size_t i = 0; i < n && status == GRT_OK; i++)
            if (values[i])
                status = grt_context_set_input_value(c->context, i, values[i]);
        if (status == GRT_OK)
            status = grt_context_run(c->context);
    }
    for (size_t i = 0; values && i < n; i++)
        grt_value_release(values[i]);
    free(values);
    return status;
}

/* Output i, if it is float32; else its data is NULL. */
static grt_status float_output(const candidate *c, size_t i, grt_tensor *out)
{
    grt_io_info info = {.struct_size = sizeof info};
    *out = (grt_tensor){0};
    const grt_status status = grt_model_output(c->model, i, &info);
    return status == GRT_OK && info.kind == GRT_KIND_TENSOR && info.dtype == GRT_DTYPE_FLOAT
               ? grt_context_get_output(c->context, i, out)
               : status;
}

static int64_t elements(const grt_tensor *t)
{
    int64_t n = 1;
    for (int32_t k = 0; k < t->rank; k++)
        n *= t->dims[k];
    return n;
}

static grt_status keep_outputs(search *s, const candidate *c, size_t sample)
{
    for (size_t i = 0; i < s->n_outputs; i++) {
        grt_tensor t;
        const size_t at = sample * s->n_outputs + i;
        const grt_status status = float_output(c, i, &t);
        if (status != GRT_OK || !t.data)
            return status;
        s->counts[at] = elements(&t);
        s->expected[at] = malloc((size_t)s->counts[at] * sizeof(float) + 1);
        if (!s->expected[at])
            return GRT_STATUS_OUT_OF_MEMORY;
        memcpy(s->expected[at], t.data, (size_t)s->counts[at] * sizeof(float));
    }
    return GRT_OK;
}

static grt_status add_errors(const search *s, const candidate *c, size_t sample, double *lost, double *signal)
{
    for (size_t i = 0; i < s->n_outputs; i++) {
        grt_tensor t;
        const size_t at = sample * s->n_outputs + i;
        const grt_status status = float_output(c, i, &t);
        if (status != GRT_OK)
            return status;
        if (!s->expected[at])
            continue;
        if (elements(&t) != s->counts[at])
            lost[i] = INFINITY; /* of another shape: rounding changed what the model decides */
        for (int64_t k = 0; k < s->counts[at] && elements(&t) == s->counts[at]; k++) {
            const double x = (double)s->expected[at][k], y = (double)((const float *)t.data)[k];
            if (x == y || (isnan(x) && isnan(y)))
                continue;
            lost[i] += isfinite(y) ? (x - y) * (x - y) : INFINITY;
        }
        for (int64_t k = 0; k < s->counts[at]; k++)
            if (isfinite(s->expected[at][k]))
                signal[i] += (double)s->expected[at][k] * (double)s->expected[at][k];
    }
    return GRT_OK;
}

/* lost NULL: float32, whose outputs are kept. */
static grt_status run_candidate(search *s, candidate *c, double *lost, double *signal)
{
    for (size_t i = 0; i < s->n_samples; i++) {
        grt_status status = run_sample(s, c, i);
        if (status == GRT_OK)
            status = lost ? add_errors(s, c, i, lost, signal) : keep_outputs(s, c, i);
        if (status != GRT_OK)
            return status;
        if (interrupt_asked(NULL))
            return GRT_STATUS_CANCELLED;
    }
    return GRT_OK;
}

static bool auto_precision_measure_candidate(search *s, const char *precision, double *out_error)
{
    candidate c;
    double *lost = calloc(2 * s->n_outputs + 1, sizeof *lost), *signal = lost ? lost + s->n_outputs : NULL;
    grt_status status = lost ? candidate_open(s, precision, &c) : GRT_STATUS_OUT_OF_MEMORY;
    progress_show((double)s->tried / (double)(s->tried + 8), "measure precisions");
    s->tried++;
    if (status == GRT_OK)
        status = run_candidate(s, &c, lost, signal);
    *out_error = 0;
    for (size_t i = 0; status == GRT_OK && i < s->n_outputs; i++) {
        const double error = lost[i] == 0 ? 0 : signal[i] > 0 ? sqrt(lost[i] / signal[i]) : INFINITY;
        *out_error = fmax(*out_error, error);
    }
    if (lost)
        candidate_release(&c);
    free(lost);
    progress_clear();
    return status == GRT_OK || (tool_fail(), false);
}

/* ---- layers ---- */

static bool auto_precision_is_layer(const char *op)
{
    static const char *const ops[] = {"Conv",
                                      "ConvTranspose",
                                      "MatMul",
                                      "Gemm",
                                      "Attention",
                                      "WMatMul",
                                      "graphrt::Conv",
                                      "graphrt::MatMul",
                                      "graphrt::WMatMul",
                                      "graphrt::Attention",
                                      "graphrt::ConvTranspose"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(op, ops[i]))
            return true;
    return false;
}

/* The first of the nodes of a step, as a pattern that fits it alone: signs that patterns or lists have a use
 * for fit any character. */
static bool auto_precision_add_layer(group *g, const grt_step_info *step)
{
    const size_t size = strcspn(step->name, "+"), before = g->layers ? strlen(g->layers) : 0;
    if (!size)
        return true;
    char *longer = realloc(g->layers, before + size + 3);
    if (!longer)
        return false;
    g->layers = longer;
    snprintf(longer + before, size + 3, "%s%.*s", before ? "," : "", (int)size, step->name);
    for (char *p = longer + before + (before != 0); *p; p++)
        if (strchr("*[]\\,=", *p))
            *p = '?';
    g->flops += step->flops;
    g->n++;
    return true;
}

static bool find_groups(search *s, const grt_model *model)
{
    grt_model_info info = {.struct_size = sizeof info};
    int64_t layers = 0, seen = 0;
    if (grt_model_get_info(model, &info) != GRT_OK)
        return false;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < info.steps; i++) {
            grt_step_info step = {.struct_size = sizeof step};
            if (grt_model_step(model, (size_t)i, &step) != GRT_OK)
                return false;
            if (!auto_precision_is_layer(step.op) || !*step.name)
                continue;
            if (!pass) {
                layers++;
                continue;
            }
            const int64_t groups = layers < MOST_GROUPS ? layers : MOST_GROUPS, at = seen++ * groups / layers;
            s->n_groups = (size_t)at + 1;
            s->flops += step.flops;
            if (!auto_precision_add_layer(&s->groups[at], &step))
                return false;
        }
    return true;
}

/* base, then the layers of some groups as `other`. */
static char *mix(const char *base, const group *groups, size_t n, const char *other)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return NULL;
    fputs(base, file);
    for (size_t i = 0; i < n; i++)
        for (const char *p = groups[i].layers; p && *p; p += strcspn(p, ","), p += *p == ',')
            fprintf(file, ",%.*s=%s", (int)strcspn(p, ","), p, other);
    return fclose(file) == 0 ? text : (free(text), NULL);
}

/* ---- the search ---- */

static int by_loss(const void *a, const void *b)
{
    const group *x = a, *y = b;
    const double of_x = x->error * x->error / (x->flops + 1), of_y = y->error * y->error / (y->flops + 1);
    return of_x > of_y ? -1 : of_x < of_y ? 1 : strcmp(x->layers, y->layers);
}

static bool measure_groups(search *s, const char *narrow)
{
    for (size_t i = 0; i < s->n_groups; i++) {
        char *text = mix("fp32", &s->groups[i], 1, narrow);
        const bool ok = text && auto_precision_measure_candidate(s, text, &s->groups[i].error);
        free(text);
        if (!ok)
            return false;
    }
    qsort(s->groups, s->n_groups, sizeof *s->groups, by_loss);
    return true;
}

/* The candidate with the first n groups in float32; NULL if it failed or has too large an error. */
static char *try_count(search *s, const char *narrow, size_t n, double *out_error, bool *out_failed)
{
    char *text = n >= s->n_groups ? strdup("fp32") : mix(narrow, s->groups, n, "fp32");
    *out_failed = !text || !auto_precision_measure_candidate(s, text, out_error);
    if (*out_failed || !(*out_error <= s->a->max_error)) {
        free(text);
        return NULL;
    }
    return text;
}

/* Doubling, then bisection: the fewest groups in float32. */
static char *auto_precision_put_back(search *s, const char *narrow, size_t *out_n, double *out_error)
{
    size_t low = 0, high = 1;
    char *best = NULL;
    bool failed = false;
    double error;
    while (!failed && !(best = try_count(s, narrow, high, &error, &failed)) && high < s->n_groups) {
        low = high;
        high = high * 2 < s->n_groups ? high * 2 : s->n_groups;
    }
    *out_error = error;
    while (!failed && best && high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        char *text = try_count(s, narrow, middle, &error, &failed);
        if (text) {
            free(best);
            best = text;
            high = middle;
            *out_error = error;
        } else {
            low = middle;
        }
    }
    *out_n = high;
    if (failed) {
        free(best);
        best = NULL;
    }
    return best;
}

static void say(const search *s, const char *format, const char *name, double error)
{
    if (!s->a->quiet)
        tool_print(format, name, error);
}

static char *search_mix(search *s, const char *narrow)
{
    size_t n = 0;
    double error = 0, wide = 0;
    if (!measure_groups(s, narrow))
        return NULL;
    for (size_t i = 0; i < s->n_groups; i++)
        say(s, "  %-40.40s alone in 16 bits: error %.3g\n", s->groups[i].layers, s->groups[i].error);
    char *best = auto_precision_put_back(s, narrow, &n, &error);
    for (size_t i = 0; i < n && i < s->n_groups; i++)
        wide += s->groups[i].flops;
    if (best && n >= s->n_groups)
        say(s, "chosen: %s; nothing narrower has an error within %g\n", "float32", s->a->max_error);
    else if (best && !s->a->quiet)
        tool_print("chosen: %s for %.0f %% of the products' work; float32 for %zu of %zu groups of layers, "
                   "which have the "
                   "most error for their work; error %.3g\n",
                   narrow, s->flops > 0 ? 100 * (1 - wide / s->flops) : 0, n, s->n_groups, error);
    return best;
}

static bool has_float8(const grt_compile_options *options)
{
    enum { FIRST_SM = 89 };
    for (size_t i = 0; i < options->n_devices; i++)
        if (options->devices[i].sm < FIRST_SM)
            return false;
    return options->n_devices > 0;
}

/* Products of float8 take two thirds to four fifths of float16's time (docs/measurements/cuda.md), so that
 * any that is allowed is worth it. NULL: none is, or, with *out_failed, something went wrong. */
static char *search_float8(search *s, bool *out_failed)
{
    const double share = 0.9; /* of the error; the rest is for what is rounded to float16 */
    quantised_model *q = &s->a->quantised;
    double error;
    *out_failed = !quantised_model_make(q, s->a->model, &s->a->options, &s->a->data, GRT_DTYPE_FLOAT8E4M3FN,
                                        share * s->a->max_error);
    if (*out_failed || !q->path) {
        if (!*out_failed && !s->a->quiet)
            tool_print("  float8 for no layer: %s\n", grt_last_error());
        return NULL;
    }
    s->model = q->path;
    *out_failed = !auto_precision_measure_candidate(s, "fp16", &error);
    if (!*out_failed && error <= s->a->max_error) {
        if (!s->a->quiet)
            tool_print(
                "chosen: float8 for %lld of %lld layers, float16 for the rest, the fastest here; error "
                "%.3g\n",
                (long long)q->quantised, (long long)q->layers, error);
        return strdup("fp16");
    }
    if (!*out_failed)
        say(s, "  %s for the layers that allow it, the rest float16: error %.3g\n", "float8", error);
    quantised_model_release(q);
    s->model = s->a->model;
    return NULL;
}

static char *search_all(search *s)
{
    static const char *const narrow[] = {"fp16", "bf16"};
    double errors[2];
    bool failed = false;
    char *found = has_float8(&s->a->options) ? search_float8(s, &failed) : NULL;
    if (found || failed)
        return found;
    for (size_t i = 0; i < 2; i++) {
        if (!auto_precision_measure_candidate(s, narrow[i], &errors[i]))
            return NULL;
        say(s, "  %s for all layers: error %.3g\n", narrow[i], errors[i]);
        if (errors[i] <= s->a->max_error) {
            say(s, "chosen: %s for all layers, the fastest here; error %.3g\n", narrow[i], errors[i]);
            return strdup(narrow[i]);
        }
    }
    return search_mix(s, narrow[errors[1] < errors[0]]);
}

static bool begin_search(search *s)
{
    candidate c;
    s->n_samples = s->a->data.n < MOST_SAMPLES ? s->a->data.n : MOST_SAMPLES;
    grt_status status = grt_runtime_create(&s->runtime);
    if (status == GRT_OK)
        status = candidate_open(s, "fp32", &c);
    else
        c = (candidate){0};
    if (status == GRT_OK) {
        s->n_outputs = grt_model_output_count(c.model);
        s->expected = calloc(s->n_outputs * s->n_samples + 1, sizeof *s->expected);
        s->counts = calloc(s->n_outputs * s->n_samples + 1, sizeof *s->counts);
        status = s->expected && s->counts ? run_candidate(s, &c, NULL, NULL) : GRT_STATUS_OUT_OF_MEMORY;
    }
    const bool ok = status == GRT_OK && find_groups(s, c.model);
    candidate_release(&c);
    return ok || (tool_fail(), false);
}

/* Products in bfloat16 are faster where the processor has AMX alone, and plans go to other processors. */
static void say_reason(const search *s, const char *why)
{
    if (!s->a->quiet)
        tool_print("chosen: float32, as 16-bit floats save time only on CPUs with AMX (--precision bf16), "
                   "and 8 bits "
                   "are not possible: %s\n",
                   why);
}

/* What grt_quantize measured is measured again, with the plan's own options. */
static char *search_bytes(search *s)
{
    quantised_model *q = &s->a->quantised;
    double error;
    if (!quantised_model_make(q, s->a->model, &s->a->options, &s->a->data, GRT_DTYPE_UINT8, s->a->max_error))
        return NULL;
    if (!q->path) {
        say_reason(s, grt_last_error());
        return strdup("fp32");
    }
    s->model = q->path;
    if (!auto_precision_measure_candidate(s, "fp32", &error))
        return NULL;
    if (!(error <= s->a->max_error)) {
        quantised_model_release(q);
        say(s, "  %s for the layers that allow it: error %.3g\n", "int8", error);
        say_reason(s, "8 bits have a larger error with the plan's options");
    } else if (!s->a->quiet) {
        tool_print("chosen: int8 for %lld of %lld layers; error %.3g\n", (long long)q->quantised,
                   (long long)q->layers, error);
    }
    return strdup("fp32");
}

char *auto_precision_find(auto_precision *a)
{
    search s = {.a = a, .model = a->model};
    char *found = NULL;
    if (begin_search(&s))
        found = is_for_cpu(&s) ? search_bytes(&s) : search_all(&s);
    for (size_t i = 0; s.expected && i < s.n_samples * s.n_outputs; i++)
        free(s.expected[i]);
    for (size_t i = 0; i < s.n_groups; i++)
        free(s.groups[i].layers);
    free(s.expected);
    free(s.counts);
    grt_runtime_release(s.runtime);
    return found;
}
