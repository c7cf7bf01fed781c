/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/comparison.h"
#include "tools/report.h"

#include <graphrt/watch.h>

#include <stdlib.h>
#include <string.h>

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
        made_tensor *grown = realloc(c->made, most * sizeof *grown);
        c->failed = c->failed || !grown;
        if (!grown)
            return;
        c->made = grown;
        c->most_made = most;
    }
    made_tensor m = {.name = strdup(is_of_file(name) ? name : nodes),
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

bool comparison_is_half(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT16 || dtype == GRT_DTYPE_BFLOAT16;
}

static made_tensor *comparison_find_made(comparison *c, const char *name)
{
    for (size_t i = 0; i < c->n_made; i++) /* a few thousand, and the runs took longer */
        if (c->made[i].is_of_file && !strcmp(c->made[i].name, name))
            return &c->made[i];
    return NULL;
}

/* A model's tensor and another one of its tensors are not the same, whatever made them. */
static made_tensor *find_same_nodes(comparison *c, const grt_watched *w)
{
    char form[512];
    form_of_step(c, w->step, form, sizeof form);
    for (size_t i = 0; i < c->n_made; i++) {
        made_tensor *m = &c->made[i];
        if (!m->met && !(m->is_of_file && is_of_file(w->tensor)) && !strcmp(m->nodes, w->nodes) &&
            !strcmp(m->op, w->op) && !strcmp(m->form, form))
            return m;
    }
    return NULL;
}

static void note_difference(comparison *c, made_tensor *first, const char *op, const grt_tensor *t,
                            bool is_output)
{
    compared_tensor d = {.first = first, .dtype = t->dtype, .is_output = is_output};
    first->met = true;
    if (!difference_measure(&first->t, t, &d.by)) {
        c->reshaped++;
        return;
    }
    if (c->n == c->most) {
        const size_t most = 2 * c->most + 64;
        compared_tensor *grown = realloc(c->compared, most * sizeof *grown);
        c->failed = c->failed || !grown;
        if (!grown)
            return;
        c->compared = grown;
        c->most = most;
    }
    d.op = strdup(op);
    d.after_half = c->any_half;
    c->any_half = c->any_half || comparison_is_half(t->dtype) || comparison_is_half(first->t.dtype);
    c->failed = c->failed || !d.op;
    c->compared[c->n++] = d;
}

static void watch_second(void *user, const grt_watched *w)
{
    comparison *c = user;
    made_tensor *first = is_numeric(w->value) ? comparison_find_made(c, w->tensor) : NULL;
    if (!first && is_numeric(w->value))
        first = find_same_nodes(c, w);
    c->only_second += first == NULL;
    if (first && !c->failed)
        note_difference(c, first, w->op, w->value, false);
}

/* `made` may not move while differences point there: all of the first's, outputs included, come before. */
static bool comparison_take_outputs(comparison *c, const loaded *l, bool is_first)
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
            made_tensor *first = is_first ? NULL : comparison_find_made(c, name);
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
                    grt_context_run(l->context) == GRT_OK && comparison_take_outputs(c, l, is_first);
    if (!ok)
        tool_fail();
    else if (c->failed)
        tool_error("there is no memory for the tensors of both models");
    return ok && !c->failed;
}

bool comparison_run(comparison *c, const loaded l[2], const input_specs *inputs, uint64_t seed)
{
    const size_t n = l[0].model ? grt_model_input_count(l[0].model) : 0;
    grt_value **values = calloc(n + 1, sizeof *values);
    const char **sources = calloc(n + 1, sizeof *sources);
    const bool ok =
        values && sources && inputs_bind(l[0].model, l[0].context, inputs, seed, values, sources) &&
        bind_same(&l[1], &l[0], values) && run_watched(&l[0], c, true) && run_watched(&l[1], c, false);
    free(sources);
    inputs_release_values(values, n);
    return ok;
}

size_t comparison_only_first(const comparison *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_made; i++)
        n += !c->made[i].met;
    return n;
}

void comparison_release(comparison *c)
{
    for (size_t i = 0; i < c->n_made; i++) {
        free(c->made[i].name);
        free(c->made[i].op);
        free(c->made[i].nodes);
        free(c->made[i].form);
        free(c->made[i].t.data);
    }
    for (size_t i = 0; i < c->n; i++)
        free(c->compared[i].op);
    free(c->made);
    free(c->compared);
}
