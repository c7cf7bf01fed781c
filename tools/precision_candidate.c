/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates of --precision auto: the model with a precision, run on all samples beside float32. */
#define _GNU_SOURCE /* asprintf */
#include "tools/interrupt.h"
#include "tools/precision_search.h"
#include "tools/progress.h"
#include "tools/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

bool precision_search_is_for_cpu(const precision_search *s)
{
    const char *target = s->a->options.target;
    return !target || !strcmp(target, "cpu");
}

static grt_status candidate_open(const precision_search *s, const char *precision, candidate *c)
{
    /* With the roundings of the target's plan: the CPU's own plans round products alone. */
    static const char keeps_narrowing[] = "bfloat16_products";
    grt_compile_options options = s->a->options;
    const char *also = options.disable_passes;
    char *disabled = NULL;
    *c = (candidate){0};
    if (!precision_search_is_for_cpu(s)) {
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

static grt_status run_sample(precision_search *s, candidate *c, size_t sample)
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

static grt_status keep_outputs(precision_search *s, const candidate *c, size_t sample)
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

static grt_status add_errors(const precision_search *s, const candidate *c, size_t sample, double *lost,
                             double *signal)
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
static grt_status run_candidate(precision_search *s, candidate *c, double *lost, double *signal)
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

bool precision_candidate_measure(precision_search *s, const char *precision, double *out_error)
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

bool precision_search_begin(precision_search *s)
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
    const bool ok = status == GRT_OK && precision_layers_find(s, c.model);
    candidate_release(&c);
    return ok || (tool_fail(), false);
}

void precision_search_end(precision_search *s)
{
    for (size_t i = 0; s->expected && i < s->n_samples * s->n_outputs; i++)
        free(s->expected[i]);
    for (size_t i = 0; i < s->n_groups; i++)
        free(s->groups[i].layers);
    free(s->expected);
    free(s->counts);
    grt_runtime_release(s->runtime);
}

void precision_search_say(const precision_search *s, const char *format, const char *name, double error)
{
    if (!s->a->quiet)
        tool_print(format, name, error);
}
