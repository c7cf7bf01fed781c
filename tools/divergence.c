/* SPDX-License-Identifier: Apache-2.0 */
/* graphrun compare: two models, or one on two devices, tensor by tensor: where they begin to differ, and how
 * the difference grows. The plans run as they are. A tensor's name is that of the model's tensor that it is,
 * also behind fused steps; tensors that are none of the model's are compared if steps alike make them of the
 * same nodes. */
#include "tools/commands.h"
#include "tools/element.h"
#include "tools/inputs.h"
#include "tools/loaded.h"
#include "tools/piped.h"
#include "tools/report.h"
#include "tools/trust.h"

#include <graphrt/watch.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct compare {
    const char *models[2];
    size_t n;
    const char *device, *other_device, *fallback, *trust_option;
    char *trust;
    input_specs inputs;
    int64_t threads, seed;
    double tolerance;
    bool all, json;
} compare;

/* A tensor that the first model made. */
typedef struct made {
    char *name, *op, *nodes, *form;
    bool is_of_file; /* the name is a tensor's of the file, else that of the nodes */
    grt_tensor t;    /* data is a copy */
    bool met;        /* by the second */
} made;

typedef struct difference {
    const made *first;
    char *op; /* of the second */
    grt_dtype dtype;
    double error;   /* root of the sum of squared differences over that of squares */
    double largest; /* of single elements */
    bool is_output, after_half;
} difference;

typedef struct comparison {
    const grt_model *model; /* that runs */
    made *made;
    size_t n_made, most_made;
    difference *differences;
    size_t n, most;
    size_t only_second, reshaped; /* tensors of the second: of no name of the first's; of other dims */
    bool any_half;                /* so far */
    bool failed;                  /* out of memory */
} comparison;

static bool take_compare_input(void *request, const char *value)
{
    return inputs_add_source(&((compare *)request)->inputs, value);
}

static bool take_compare_shape(void *request, const char *value)
{
    return inputs_add_shape(&((compare *)request)->inputs, value);
}

static bool take_compare_model(void *request, const char *value)
{
    compare *c = request;
    if (c->n == 2)
        tool_error("two models are compared: '%s' is a third", value);
    if (c->n == 2)
        return false;
    c->models[c->n] = value;
    return piped_take(&c->models[c->n++]);
}

const tool_option compare_options[] = {
    OPTION_TEXT(compare, device, "--device", "DEVICE",
                "of the first model, KIND or KIND:NUMBER (default: cpu)"),
    OPTION_TEXT(compare, other_device, "--other-device", "DEVICE",
                "of the second (default: that of the first)"),
    OPTION_TEXT(compare, fallback, "--fallback", "cpu",
                "run ops that a device has no kernel for on the CPU; otherwise they are an error"),
    OPTION_INT(compare, threads, 0, 1024, "--threads", "N", "CPU threads of one operator"),
    OPTION_NUMBER(compare, tolerance, 0, "--tolerance", "X",
                  "a tensor diverges if its error, relative to the first's in the root mean square, is\n"
                  "larger (default: 1e-4; 1e-2 where one of the two is in half precision)"),
    OPTION_TAKE(take_compare_input, "--input", "NAME=SOURCE", "as in graphrun MODEL; for both"),
    OPTION_TAKE(take_compare_shape, "--shape", "NAME=2x3x224", "as in graphrun MODEL; for both"),
    OPTION_INT(compare, seed, INT64_MIN, INT64_MAX, "--seed", "N", "of random inputs (default: 0)"),
    OPTION_FLAG(compare, all, "--all",
                "show every tensor that is compared, not only where the error doubles"),
    OPTION_TEXT(compare, trust_option, "--trust", "all|none|KEY", TRUST_HELP),
    OPTION_CUSTOM_OPS,
    OPTION_FLAG(compare, json, "--json", "report as JSON, with every tensor"),
    OPTION_TABLE_END,
};

/* ---- what runs make ---- */

static bool is_numeric(const grt_tensor *t)
{
    return t->dtype != GRT_DTYPE_STRING && t->dtype != GRT_DTYPE_NONE && grt_tensor_bytes(t) != SIZE_MAX;
}

/* What compilers make beside the file's tensors has a control character in its name, and a number. */
static bool is_of_file(const char *name)
{
    return !strchr(name, '\x1f');
}

/* What a step does beside its op: the activation that it has, and which inputs. Fused otherwise, it has
 * others.
 */
static const char *form_of_step(const comparison *c, int32_t step, char *out, size_t size)
{
    grt_step_info info = {.struct_size = sizeof info};
    size_t n = 0;
    if (step >= 0 && grt_model_step(c->model, (size_t)step, &info) == GRT_OK)
        n = (size_t)snprintf(out, size, "%s/", info.detail);
    for (size_t i = 0; i < info.n_inputs && n + 2 < size; i++)
        out[n++] = info.inputs[i] < 0 ? '-' : '+';
    while (n > 0 && out[n - 1] == '-') /* as if it ended before them */
        n--;
    out[n < size ? n : size - 1] = 0;
    return out;
}

static void note_made(comparison *c, const char *name, const char *op, const char *nodes, int32_t step,
                      const grt_tensor *t)
{
    char form[512];
    if (c->n_made == c->most_made) {
        const size_t most = 2 * c->most_made + 64;
        made *grown = realloc(c->made, most * sizeof *grown);
        c->failed = c->failed || !grown;
        if (!grown)
            return;
        c->made = grown;
        c->most_made = most;
    }
    made m = {.name = strdup(is_of_file(name) ? name : nodes),
              .op = strdup(op),
              .nodes = strdup(nodes),
              .form = strdup(form_of_step(c, step, form, sizeof form)),
              .is_of_file = is_of_file(name),
              .t = *t};
    m.t.data = malloc(grt_tensor_bytes(t) + 1);
    c->failed = c->failed || !m.name || !m.op || !m.nodes || !m.form || !m.t.data;
    if (m.t.data && grt_tensor_bytes(t))
        memcpy(m.t.data, t->data, grt_tensor_bytes(t));
    c->made[c->n_made++] = m;
}

static void watch_first(void *user, const grt_watched *w)
{
    comparison *c = user;
    if (is_numeric(w->value) && !c->failed)
        note_made(c, w->tensor, w->op, w->nodes, w->step, w->value);
}

/* ---- differences ---- */

static bool divergence_is_half(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT16 || dtype == GRT_DTYPE_BFLOAT16;
}

static made *divergence_find_made(comparison *c, const char *name)
{
    for (size_t i = 0; i < c->n_made; i++) /* a few thousand, and the runs took longer */
        if (c->made[i].is_of_file && !strcmp(c->made[i].name, name))
            return &c->made[i];
    return NULL;
}

/* A model's tensor and another one of its tensors are not the same, whatever made them. */
static made *find_same_nodes(comparison *c, const grt_watched *w)
{
    char form[512];
    form_of_step(c, w->step, form, sizeof form);
    for (size_t i = 0; i < c->n_made; i++) {
        made *m = &c->made[i];
        if (!m->met && !(m->is_of_file && is_of_file(w->tensor)) && !strcmp(m->nodes, w->nodes) &&
            !strcmp(m->op, w->op) && !strcmp(m->form, form))
            return m;
    }
    return NULL;
}

static bool same_dims(const grt_tensor *a, const grt_tensor *b)
{
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

/* One of both has its channels last: element i of `a` is at this place of `b`. -1 for all: they are not so.
 */
static int64_t place_in_other_layout(const grt_tensor *a, const grt_tensor *b, int64_t i)
{
    int64_t spatial = 1, channels;
    if (a->rank != b->rank || a->rank < 3 || a->dims[0] != b->dims[0])
        return -1;
    const bool a_first = a->dims[1] == b->dims[b->rank - 1] &&
                         !memcmp(a->dims + 2, b->dims + 1, (size_t)(a->rank - 2) * sizeof *a->dims);
    const bool b_first = b->dims[1] == a->dims[a->rank - 1] &&
                         !memcmp(b->dims + 2, a->dims + 1, (size_t)(a->rank - 2) * sizeof *a->dims);
    if (!a_first && !b_first)
        return -1;
    const grt_tensor *first = a_first ? a : b;
    channels = first->dims[1];
    for (int32_t k = 2; k < first->rank; k++)
        spatial *= first->dims[k];
    const int64_t image = spatial * channels, n = i / image, within = i % image;
    return a_first ? n * image + within % spatial * channels + within / spatial
                   : n * image + within % channels * spatial + within / channels;
}

static bool measure_difference(const grt_tensor *a, const grt_tensor *b, difference *d)
{
    const int64_t n = grt_tensor_elements(a);
    const bool same = same_dims(a, b);
    double squares = 0, errors = 0;
    if (!same && (n != grt_tensor_elements(b) || n == 0 || place_in_other_layout(a, b, 0) < 0))
        return false;
    for (int64_t i = 0; i < n; i++) {
        const double x = element_get(a, i), y = element_get(b, same ? i : place_in_other_layout(a, b, i));
        double off = x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y);
        if (isnan(off))
            off = INFINITY;
        d->largest = fmax(d->largest, off);
        errors += off * off;
        squares += isfinite(x) ? x * x : 0;
    }
    d->error = errors == 0 ? 0 : squares > 0 ? sqrt(errors / squares) : INFINITY;
    return true;
}

static void note_difference(comparison *c, made *first, const char *op, const grt_tensor *t, bool is_output)
{
    difference d = {.first = first, .dtype = t->dtype, .is_output = is_output};
    first->met = true;
    if (!measure_difference(&first->t, t, &d)) {
        c->reshaped++;
        return;
    }
    if (c->n == c->most) {
        const size_t most = 2 * c->most + 64;
        difference *grown = realloc(c->differences, most * sizeof *grown);
        c->failed = c->failed || !grown;
        if (!grown)
            return;
        c->differences = grown;
        c->most = most;
    }
    d.op = strdup(op);
    d.after_half = c->any_half;
    c->any_half = c->any_half || divergence_is_half(t->dtype) || divergence_is_half(first->t.dtype);
    c->failed = c->failed || !d.op;
    c->differences[c->n++] = d;
}

static void watch_second(void *user, const grt_watched *w)
{
    comparison *c = user;
    made *first = is_numeric(w->value) ? divergence_find_made(c, w->tensor) : NULL;
    if (!first && is_numeric(w->value))
        first = find_same_nodes(c, w);
    c->only_second += first == NULL;
    if (first && !c->failed)
        note_difference(c, first, w->op, w->value, false);
}

/* `made` may not move while differences point there: all of the first's, outputs included, come before. */
static bool divergence_take_outputs(comparison *c, const loaded *l, bool is_first)
{
    for (size_t i = 0; i < grt_model_output_count(l->model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        grt_value *value = NULL;
        grt_tensor t;
        char name[512];
        if (grt_model_output(l->model, i, &info) != GRT_OK ||
            grt_context_get_output_value(l->context, i, &value) != GRT_OK)
            return false;
        snprintf(name, sizeof name, "output %s", info.name);
        if (grt_value_kind(value) == GRT_KIND_TENSOR && grt_value_tensor(value, &t) == GRT_OK &&
            is_numeric(&t)) {
            made *first = is_first ? NULL : divergence_find_made(c, name);
            if (is_first)
                note_made(c, name, "output", name, -1, &t);
            else if (first)
                note_difference(c, first, "output", &t, true);
        }
        grt_value_release(value);
    }
    return true;
}

/* ---- runs ---- */

static int32_t input_by_name(const grt_model *model, const char *name)
{
    for (size_t i = 0; i < grt_model_input_count(model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        if (grt_model_input(model, i, &info) == GRT_OK && !strcmp(info.name, name))
            return (int32_t)i;
    }
    return -1;
}

/* The second gets what the first got, by name. */
static bool bind_same(const loaded *to, const loaded *from, grt_value *const *values)
{
    for (size_t i = 0; i < grt_model_input_count(from->model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        if (grt_model_input(from->model, i, &info) != GRT_OK)
            return tool_fail() == EXIT_GOOD;
        const int32_t there = input_by_name(to->model, info.name);
        if (there < 0) {
            tool_error("the second model has no input '%s'", info.name);
            return false;
        }
        if (values[i] && grt_context_set_input_value(to->context, (size_t)there, values[i]) != GRT_OK)
            return tool_fail() == EXIT_GOOD;
    }
    return true;
}

static bool run_watched(const loaded *l, comparison *c, bool is_first)
{
    c->model = l->model;
    const bool ok = grt_context_set_watch(l->context, is_first ? watch_first : watch_second, c) == GRT_OK &&
                    grt_context_run(l->context) == GRT_OK && divergence_take_outputs(c, l, is_first);
    if (!ok)
        tool_fail();
    else if (c->failed)
        tool_error("there is no memory for the tensors of both models");
    return ok && !c->failed;
}

/* ---- reports ---- */

/* Results of half precision stay so when they are widened. */
static bool diverges(const compare *request, const difference *d)
{
    const double usual =
        d->after_half || divergence_is_half(d->dtype) || divergence_is_half(d->first->t.dtype) ? 1e-2 : 1e-4;
    return d->error > (request->tolerance >= 0 ? request->tolerance : usual);
}

static const difference *first_divergence(const compare *request, const comparison *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (diverges(request, &c->differences[i]))
            return &c->differences[i];
    return NULL;
}

static size_t count_only_first(const comparison *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_made; i++)
        n += !c->made[i].met;
    return n;
}

static json_t *number_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *difference_json(const compare *request, const difference *d)
{
    return json_pack("{s:o,s:o,s:o,s:s,s:s,s:o,s:o,s:o,s:b}", "tensor", json_text(d->first->name), "op",
                     json_text(d->first->op), "other_op", json_text(d->op), "dtype",
                     grt_dtype_name(d->first->t.dtype), "other_dtype", grt_dtype_name(d->dtype), "shape",
                     json_shape(&d->first->t), "error", number_or_null(d->error), "largest",
                     number_or_null(d->largest), "diverges", (int)diverges(request, d));
}

static bool divergence_print_json(const compare *request, const comparison *c)
{
    const difference *first = first_divergence(request, c);
    json_t *tensors = json_array();
    for (size_t i = 0; i < c->n; i++)
        json_array_append_new(tensors, difference_json(request, &c->differences[i]));
    return json_print(json_pack(
        "{s:o,s:o,s:s,s:s,s:I,s:I,s:I,s:I,s:o,s:o}", "model", json_text(request->models[0]), "other_model",
        json_text(request->models[1]), "device", request->device ? request->device : "cpu", "other_device",
        request->other_device ? request->other_device : "cpu", "compared", (json_int_t)c->n, "only_first",
        (json_int_t)count_only_first(c), "only_second", (json_int_t)c->only_second, "reshaped",
        (json_int_t)c->reshaped, "first_divergence", first ? difference_json(request, first) : json_null(),
        "tensors", tensors));
}

static void print_difference(const compare *request, const difference *d)
{
    char shape[256];
    tool_print("  %10.3g  %10.3g  %-9s %-9s %s %s (%s%s%s)%s\n", d->error, d->largest,
               grt_dtype_name(d->first->t.dtype), grt_dtype_name(d->dtype),
               figure_shape(&d->first->t, shape, sizeof shape), d->first->name, d->first->op,
               strcmp(d->op, d->first->op) ? ", " : "", strcmp(d->op, d->first->op) ? d->op : "",
               diverges(request, d) ? " *" : "");
}

/* In the order of the second's steps. */
static void divergence_print_text(const compare *request, const comparison *c)
{
    const difference *first = first_divergence(request, c);
    double shown = 0;
    tool_print("  rel. error     largest  first     second    shape, tensor (op); * beyond the tolerance\n");
    for (size_t i = 0; i < c->n; i++) {
        const difference *d = &c->differences[i];
        if (!request->all && !d->is_output && d != first && !(d->error > 2 * shown))
            continue;
        shown = fmax(shown, d->error);
        print_difference(request, d);
    }
    tool_print("compared %zu tensors; %zu only in the first, %zu only in the second, %zu of other dims\n",
               c->n, count_only_first(c), c->only_second, c->reshaped);
    if (first)
        tool_print("first beyond the tolerance: '%s', made by %s '%s'\n", first->first->name, first->op,
                   first->first->nodes);
    else
        tool_print("all within the tolerance\n");
}

static void release_comparison(comparison *c)
{
    for (size_t i = 0; i < c->n_made; i++) {
        free(c->made[i].name);
        free(c->made[i].op);
        free(c->made[i].nodes);
        free(c->made[i].form);
        free(c->made[i].t.data);
    }
    for (size_t i = 0; i < c->n; i++)
        free(c->differences[i].op);
    free(c->made);
    free(c->differences);
}

/* ---- the command ---- */

static bool divergence_run_both(const compare *request, loaded l[2], comparison *c)
{
    const size_t n = l[0].model ? grt_model_input_count(l[0].model) : 0;
    grt_value **values = calloc(n + 1, sizeof *values);
    const char **sources = calloc(n + 1, sizeof *sources);
    const bool ok =
        values && sources &&
        inputs_bind(l[0].model, l[0].context, &request->inputs, (uint64_t)request->seed, values, sources) &&
        bind_same(&l[1], &l[0], values) && run_watched(&l[0], c, true) && run_watched(&l[1], c, false);
    free(sources);
    inputs_release_values(values, n);
    return ok;
}

static int compare_models(compare *request)
{
    loaded l[2] = {{0}, {0}};
    comparison c = {0};
    int code = EXIT_BAD;
    bool ok = true;
    if (request->n == 1)
        request->models[1] = request->models[0];
    if (!request->other_device)
        request->other_device = request->device;
    for (int i = 0; i < 2 && ok; i++) {
        const char *device = i ? request->other_device : request->device;
        ok = loaded_open(&l[i], request->models[i], device, request->fallback, (int32_t)request->threads,
                         request->trust) == GRT_OK;
        if (!ok)
            tool_fail();
    }
    if (ok && divergence_run_both(request, l, &c)) {
        if (request->json)
            ok = divergence_print_json(request, &c);
        else
            divergence_print_text(request, &c);
        code = !ok ? EXIT_BAD : first_divergence(request, &c) ? EXIT_CHECK : EXIT_GOOD;
    }
    release_comparison(&c);
    loaded_release(&l[0]);
    loaded_release(&l[1]);
    return code;
}

int compare_command(const tool_command *command, int argc, char **argv)
{
    compare request = {.tolerance = -1};
    int code = EXIT_BAD;
    if (options_parse(command, argc, argv, &request, take_compare_model, &code) &&
        option_given(command, request.models[0]) && trust_read(request.trust_option, &request.trust))
        code = compare_models(&request);
    inputs_release(&request.inputs);
    free(request.trust);
    return code;
}
