/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/divergence.h"
#include "tools/report.h"

#include <math.h>
#include <string.h>

/* Results of half precision stay so when they are widened. */
static bool diverges(const compare_request *request, const compared_tensor *d)
{
    const double usual =
        d->after_half || comparison_is_half(d->dtype) || comparison_is_half(d->first->t.dtype) ? 1e-2 : 1e-4;
    return d->by.error > (request->tolerance >= 0 ? request->tolerance : usual);
}

const compared_tensor *divergence_first(const compare_request *request, const comparison *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (diverges(request, &c->compared[i]))
            return &c->compared[i];
    return NULL;
}

static json_t *number_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *difference_json(const compare_request *request, const compared_tensor *d)
{
    return json_pack("{s:o,s:o,s:o,s:s,s:s,s:o,s:o,s:o,s:b}", "tensor", json_text(d->first->name), "op",
                     json_text(d->first->op), "other_op", json_text(d->op), "dtype",
                     grt_dtype_name(d->first->t.dtype), "other_dtype", grt_dtype_name(d->dtype), "shape",
                     json_shape(&d->first->t), "error", number_or_null(d->by.error), "largest",
                     number_or_null(d->by.largest), "diverges", (int)diverges(request, d));
}

bool divergence_print_json(const compare_request *request, const comparison *c)
{
    const compared_tensor *first = divergence_first(request, c);
    json_t *tensors = json_array();
    for (size_t i = 0; i < c->n; i++)
        json_array_append_new(tensors, difference_json(request, &c->compared[i]));
    return json_print(json_pack(
        "{s:o,s:o,s:s,s:s,s:I,s:I,s:I,s:I,s:o,s:o}", "model", json_text(request->models[0]), "other_model",
        json_text(request->models[1]), "device", request->device ? request->device : "cpu", "other_device",
        request->other_device ? request->other_device : "cpu", "compared", (json_int_t)c->n, "only_first",
        (json_int_t)comparison_only_first(c), "only_second", (json_int_t)c->only_second, "reshaped",
        (json_int_t)c->reshaped, "first_divergence", first ? difference_json(request, first) : json_null(),
        "tensors", tensors));
}

static void print_difference(const compare_request *request, const compared_tensor *d)
{
    char shape[256];
    tool_print("  %10.3g  %10.3g  %-9s %-9s %s %s (%s%s%s)%s\n", d->by.error, d->by.largest,
               grt_dtype_name(d->first->t.dtype), grt_dtype_name(d->dtype),
               figure_shape(&d->first->t, shape, sizeof shape), d->first->name, d->first->op,
               strcmp(d->op, d->first->op) ? ", " : "", strcmp(d->op, d->first->op) ? d->op : "",
               diverges(request, d) ? " *" : "");
}

/* In the order of the second's steps. */
void divergence_print_text(const compare_request *request, const comparison *c)
{
    const compared_tensor *first = divergence_first(request, c);
    double shown = 0;
    tool_print("  rel. error     largest  first     second    shape, tensor (op); * beyond the tolerance\n");
    for (size_t i = 0; i < c->n; i++) {
        const compared_tensor *d = &c->compared[i];
        if (!request->all && !d->is_output && d != first && !(d->by.error > 2 * shown))
            continue;
        shown = fmax(shown, d->by.error);
        print_difference(request, d);
    }
    tool_print("compared %zu tensors; %zu only in the first, %zu only in the second, %zu of other dims\n",
               c->n, comparison_only_first(c), c->only_second, c->reshaped);
    if (first)
        tool_print("first beyond the tolerance: '%s', made by %s '%s'\n", first->first->name, first->op,
                   first->first->nodes);
    else
        tool_print("all within the tolerance\n");
}
