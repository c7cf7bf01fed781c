/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/precision_search.h"
#include "tools/report.h"

#include <string.h>

/* 8 bits for a GPU's products, in the order in which they are tried. */
typedef struct eight_bits {
    const char *name;
    grt_dtype activations;
    int32_t first_sm; /* that it was measured to be faster than float16 on */
    double least;     /* of the layers: with fewer in 8 bits, what lies between costs what they save */
    bool (*pays)(const precision_search *s);
} eight_bits;

/* Large convolutions take 0.79 of float16's time in int8 (ResNet-50, 32 images), small ones, and those of few
 * channels, up to 1.7 times as long; matrix products as long (docs/measurements/cuda.md). */
static bool has_large_convolutions(const precision_search *s)
{
    const double large = 2e9; /* operations of one */
    return s->convolution_flops > 0.5 * s->flops && s->convolution_flops > large * (double)s->n_convolutions;
}

/* Products of float8 take two thirds to four fifths of float16's time, so that any is worth it. */
static bool always_pays(const precision_search *s)
{
    return s->n_groups > 0;
}

static const eight_bits forms[] = {
    {"int8", GRT_DTYPE_INT8, 90, 0.75, has_large_convolutions},
    {"float8", GRT_DTYPE_FLOAT8E4M3FN, 89, 0, always_pays},
};

static bool may_gain(const precision_search *s, const eight_bits *form)
{
    const grt_compile_options *options = &s->a->options;
    for (size_t i = 0; i < options->n_devices; i++)
        if (options->devices[i].sm < form->first_sm)
            return false;
    return options->n_devices > 0 && form->pays(s);
}

/* NULL: the form is possible for too few layers, or, with *out_failed, something went wrong. */
static char *search_form(precision_search *s, const eight_bits *form, bool *out_failed)
{
    const double share = 0.9; /* of the error; the rest is for what is rounded to float16 */
    quantised_model *q = &s->a->quantised;
    double error;
    *out_failed = !quantised_model_make(q, s->a->model, &s->a->options, &s->a->data, form->activations,
                                        share * s->a->max_error);
    if (*out_failed || !q->path) {
        if (!*out_failed && !s->a->quiet)
            tool_print("  %s for no layer: %s\n", form->name, grt_last_error());
        quantised_model_release(q);
        return NULL;
    }
    if ((double)q->quantised < form->least * (double)q->layers) {
        if (!s->a->quiet)
            tool_print("  %s for %lld of %lld layers: too few to gain by it\n", form->name,
                       (long long)q->quantised, (long long)q->layers);
        quantised_model_release(q);
        return NULL;
    }
    s->model = q->path;
    *out_failed = !precision_candidate_measure(s, "fp16", &error);
    if (!*out_failed && error <= s->a->max_error) {
        if (!s->a->quiet)
            tool_print("chosen: %s for %lld of %lld layers, float16 for the rest, the fastest here; error "
                       "%.3g\n",
                       form->name, (long long)q->quantised, (long long)q->layers, error);
        return strdup("fp16");
    }
    if (!*out_failed)
        precision_search_say(s, "  %s for the layers that allow it, the rest float16: error %.3g\n",
                             form->name, error);
    quantised_model_release(q);
    s->model = s->a->model;
    return NULL;
}

char *precision_eight_bits_search(precision_search *s, bool *out_failed)
{
    char *found = NULL;
    *out_failed = false;
    for (size_t i = 0; i < sizeof forms / sizeof *forms && !found && !*out_failed; i++)
        if (may_gain(s, &forms[i]))
            found = search_form(s, &forms[i], out_failed);
    return found;
}
