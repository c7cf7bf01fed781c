/* SPDX-License-Identifier: Apache-2.0 */
#include "src/quantize/measure.h"

#include <math.h>
#include <stdlib.h>

/* lost / signal as a root; infinite where there is loss and no signal. */
static double relative_error(double lost, double signal)
{
    return lost == 0 ? 0 : signal > 0 ? sqrt(lost / signal) : INFINITY;
}

size_t measured_samples(const samples *s)
{
    const int64_t most = s->options->measured;
    return most < 0 ? 0 : (size_t)most < s->options->n_samples ? (size_t)most : s->options->n_samples;
}

/* The i-th of those that are measured, which are spread over all. */
static size_t nth_measured(const samples *s, size_t i)
{
    return i * s->options->n_samples / measured_samples(s);
}

static grt_status measure_add_sums(const runner *r, double *sums, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        grt_tensor t;
        GRT_TRY(grt_context_get_output(r->context, i, &t));
        sums[i] += (double)*(const float *)t.data;
    }
    return GRT_OK;
}

static grt_status run_beside(const samples *s, document *d, double *sums)
{
    runner r = {.samples = s};
    const size_t n = measured_samples(s);
    grt_status status = runner_open(&r, s, d);
    for (size_t i = 0; status == GRT_OK && i < n; i++) {
        status = samples_report(s, "measure layers", i, n);
        if (status == GRT_OK)
            status = runner_bind(&r, nth_measured(s, i));
        if (status == GRT_OK)
            status = runner_run(&r, nth_measured(s, i));
        if (status == GRT_OK)
            status = measure_add_sums(&r, sums, d->n_outputs);
    }
    runner_release(&r);
    return status;
}

grt_status measure_layers(const rewriting *r, const samples *s)
{
    document d = {0};
    quant_layers *l = r->layers;
    double *sums = calloc(2 * l->n + 1, sizeof *sums);
    grt_status status = sums ? rewrite_beside(r, &d) : grt_fail_memory(0);
    if (status == GRT_OK)
        status = run_beside(s, &d, sums);
    const double *next = sums;
    for (size_t i = 0; status == GRT_OK && i < l->n; i++)
        if (!l->layers[i].kept) {
            l->layers[i].error = relative_error(next[0], next[1]);
            next += 2;
        }
    document_release(&d);
    free(sums);
    return status;
}

/* Of one output: what was lost and what there was, as sums of squares. */
typedef struct output_error {
    double lost, signal, largest;
} output_error;

static void compare_floats(const float *a, const float *b, int64_t n, output_error *e)
{
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(a[i]) && (a[i] == b[i] || (isnan(a[i]) && isnan(b[i]))))
            continue;
        const double lost = (double)a[i] - (double)b[i];
        e->lost += lost * lost;
        e->signal += (double)a[i] * (double)a[i];
        e->largest = fmax(e->largest, fabs(lost));
    }
}

static grt_status compare_outputs(const runner *a, const runner *b, output_error *errors)
{
    for (size_t i = 0; i < grt_model_output_count(a->model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        grt_tensor of_a, of_b;
        GRT_TRY(grt_model_output(a->model, i, &info));
        if (info.kind != GRT_KIND_TENSOR || info.dtype != GRT_DTYPE_FLOAT)
            continue;
        GRT_TRY(grt_context_get_output(a->context, i, &of_a));
        GRT_TRY(grt_context_get_output(b->context, i, &of_b));
        const int64_t n = grt_tensor_elements(&of_a);
        if (n != grt_tensor_elements(&of_b))
            return grt_fail(GRT_STATUS_UNSUPPORTED,
                            "output '%s' has another shape where layers are quantised: errors of this model "
                            "cannot be measured",
                            info.name);
        compare_floats(of_a.data, of_b.data, n, &errors[i]);
    }
    return GRT_OK;
}

static grt_status run_both(runner *a, runner *b, size_t sample, output_error *errors)
{
    GRT_TRY(runner_bind(a, sample));
    GRT_TRY(runner_run(a, sample));
    GRT_TRY(runner_bind(b, sample));
    GRT_TRY(runner_run(b, sample));
    return compare_outputs(a, b, errors);
}

/* A NaN is the largest error of all. */
static model_error sum_up(const output_error *errors, size_t n)
{
    model_error e = {0};
    for (size_t i = 0; i < n; i++) {
        const double relative = relative_error(errors[i].lost, errors[i].signal);
        e.relative = isnan(relative) ? INFINITY : fmax(e.relative, relative);
        e.largest = fmax(e.largest, errors[i].largest);
    }
    return e;
}

grt_status measure_model(document *original, document *quantised, const samples *s, model_error *out)
{
    runner a = {.samples = s}, b = {.samples = s};
    const size_t n = measured_samples(s);
    output_error *errors = calloc(original->n_outputs + 1, sizeof *errors);
    grt_status status = errors ? runner_open(&a, s, original) : grt_fail_memory(0);
    if (status == GRT_OK)
        status = runner_open(&b, s, quantised);
    for (size_t i = 0; status == GRT_OK && i < n; i++) {
        status = samples_report(s, "measure the model", i, n);
        if (status == GRT_OK)
            status = run_both(&a, &b, nth_measured(s, i), errors);
    }
    if (status == GRT_OK)
        *out = sum_up(errors, original->n_outputs);
    free(errors);
    runner_release(&b);
    runner_release(&a);
    return status;
}
