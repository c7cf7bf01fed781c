/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/auto_precision.h"

#include "tools/precision_search.h"
#include "tools/report.h"

#include <stdlib.h>
#include <string.h>

static int by_loss(const void *a, const void *b)
{
    const layer_group *x = a, *y = b;
    const double of_x = x->error * x->error / (x->flops + 1), of_y = y->error * y->error / (y->flops + 1);
    return of_x > of_y ? -1 : of_x < of_y ? 1 : strcmp(x->layers, y->layers);
}

static bool measure_groups(precision_search *s, const char *narrow)
{
    for (size_t i = 0; i < s->n_groups; i++) {
        char *text = precision_layers_mix("fp32", &s->groups[i], 1, narrow);
        const bool ok = text && precision_candidate_measure(s, text, &s->groups[i].error);
        free(text);
        if (!ok)
            return false;
    }
    qsort(s->groups, s->n_groups, sizeof *s->groups, by_loss);
    return true;
}

/* The candidate with the first n groups in float32; NULL if it failed or has too large an error. */
static char *try_count(precision_search *s, const char *narrow, size_t n, double *out_error, bool *out_failed)
{
    char *text = n >= s->n_groups ? strdup("fp32") : precision_layers_mix(narrow, s->groups, n, "fp32");
    *out_failed = !text || !precision_candidate_measure(s, text, out_error);
    if (*out_failed || !(*out_error <= s->a->max_error)) {
        free(text);
        return NULL;
    }
    return text;
}

/* Doubling, then bisection: the fewest groups in float32. */
static char *auto_precision_put_back(precision_search *s, const char *narrow, size_t *out_n,
                                     double *out_error)
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

static char *search_mix(precision_search *s, const char *narrow)
{
    size_t n = 0;
    double error = 0, wide = 0;
    if (!measure_groups(s, narrow))
        return NULL;
    for (size_t i = 0; i < s->n_groups; i++)
        precision_search_say(s, "  %-40.40s alone in 16 bits: error %.3g\n", s->groups[i].layers,
                             s->groups[i].error);
    char *best = auto_precision_put_back(s, narrow, &n, &error);
    for (size_t i = 0; i < n && i < s->n_groups; i++)
        wide += s->groups[i].flops;
    if (best && n >= s->n_groups)
        precision_search_say(s, "chosen: %s; nothing narrower has an error within %g\n", "float32",
                             s->a->max_error);
    else if (best && !s->a->quiet)
        tool_print("chosen: %s for %.0f %% of the products' work; float32 for %zu of %zu groups of layers, "
                   "which have the "
                   "most error for their work; error %.3g\n",
                   narrow, s->flops > 0 ? 100 * (1 - wide / s->flops) : 0, n, s->n_groups, error);
    return best;
}

static char *search_all(precision_search *s)
{
    static const char *const narrow[] = {"fp16", "bf16"};
    double errors[2];
    bool failed;
    char *found = precision_eight_bits_search(s, &failed);
    if (found || failed)
        return found;
    for (size_t i = 0; i < 2; i++) {
        if (!precision_candidate_measure(s, narrow[i], &errors[i]))
            return NULL;
        precision_search_say(s, "  %s for all layers: error %.3g\n", narrow[i], errors[i]);
        if (errors[i] <= s->a->max_error) {
            precision_search_say(s, "chosen: %s for all layers, the fastest here; error %.3g\n", narrow[i],
                                 errors[i]);
            return strdup(narrow[i]);
        }
    }
    return search_mix(s, narrow[errors[1] < errors[0]]);
}

/* Products in bfloat16 are faster where the processor has AMX alone, and plans go to other processors. */
static void say_reason(const precision_search *s, const char *why)
{
    if (!s->a->quiet)
        tool_print("chosen: float32, as 16-bit floats save time only on CPUs with AMX (--precision bf16), "
                   "and 8 bits "
                   "are not possible: %s\n",
                   why);
}

/* What grt_quantize measured is measured again, with the plan's own options. */
static char *search_bytes(precision_search *s)
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
    if (!precision_candidate_measure(s, "fp32", &error))
        return NULL;
    if (!(error <= s->a->max_error)) {
        quantised_model_release(q);
        precision_search_say(s, "  %s for the layers that allow it: error %.3g\n", "int8", error);
        say_reason(s, "8 bits have a larger error with the plan's options");
    } else if (!s->a->quiet) {
        tool_print("chosen: int8 for %lld of %lld layers; error %.3g\n", (long long)q->quantised,
                   (long long)q->layers, error);
    }
    return strdup("fp32");
}

char *auto_precision_find(auto_precision *a)
{
    precision_search s = {.a = a, .model = a->model};
    char *found = NULL;
    if (precision_search_begin(&s))
        found = precision_search_is_for_cpu(&s) ? search_bytes(&s) : search_all(&s);
    precision_search_end(&s);
    return found;
}
