/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/case_run.h"

#include "tools/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static bool is_model_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static const char *data_path(const test_case *c, int set, const char *what, size_t i, char *out, size_t size)
{
    snprintf(out, size, "%s/test_data_set_%d/%s_%zu.pb", c->directory, set, what, i);
    return out;
}

/* Data files go to inputs in order. Old models list initialisers as inputs too: if there are no files for
 * these, files go to the inputs without a default. */
static bool only_required(const test_case *c, int set, const grt_model *model)
{
    size_t required = 0, n = grt_model_input_count(model), files = 0;
    char path[4096];
    for (size_t i = 0; i < n; i++) {
        grt_io_info info = {.struct_size = sizeof info};
        if (grt_model_input(model, i, &info) == GRT_OK && !info.has_default)
            required++;
        if (is_model_file(data_path(c, set, "input", i, path, sizeof path)))
            files = i + 1;
    }
    return files <= required;
}

static bool say_why(char *why, size_t size, const char *what, const char *name)
{
    snprintf(why, size, "%s '%s': %s", what, name, grt_last_error());
    return false;
}

/* An omitted optional input has no file: its value stays unset, or empty if its type is optional. */
static bool case_run_bind_input(loaded *l, size_t index, const grt_io_info *info, const char *path,
                                grt_value **value, char *why, size_t size)
{
    grt_status status;
    if (is_model_file(path))
        status = grt_value_read_pb(path, info->kind, info->element_kind, value);
    else if (info->kind == GRT_KIND_OPTIONAL)
        status = grt_value_optional(info->dtype, NULL, value);
    else
        return grt_context_set_input(l->context, index, NULL) == GRT_OK ||
               say_why(why, size, "input", info->name);
    if (status == GRT_OK)
        status = grt_context_set_input_value(l->context, index, *value);
    return status == GRT_OK || say_why(why, size, "input", info->name);
}

static bool bind_set(loaded *l, const test_case *c, int set, grt_value **values, char *why, size_t size)
{
    bool required_only = only_required(c, set, l->model);
    size_t file = 0;
    char path[4096];
    for (size_t i = 0; i < grt_model_input_count(l->model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        if (grt_model_input(l->model, i, &info) != GRT_OK)
            return say_why(why, size, "model", c->model);
        if (required_only && info.has_default)
            continue;
        if (!case_run_bind_input(l, i, &info, data_path(c, set, "input", file++, path, sizeof path),
                                 &values[i], why, size))
            return false;
    }
    return true;
}

static bool compare_output(loaded *l, size_t index, const char *path, tolerance tol, char *why, size_t size)
{
    grt_io_info info = {.struct_size = sizeof info};
    grt_value *found = NULL, *expected = NULL;
    char inner[1024];
    if (grt_model_output(l->model, index, &info) != GRT_OK)
        return say_why(why, size, "output", path);
    grt_status status = is_model_file(path) || info.kind != GRT_KIND_OPTIONAL
                            ? grt_value_read_pb(path, info.kind, info.element_kind, &expected)
                            : grt_value_optional(info.dtype, NULL, &expected);
    if (status == GRT_OK)
        status = grt_context_get_output_value(l->context, index, &found);
    bool ok = false;
    if (status != GRT_OK)
        say_why(why, size, "output", info.name);
    else if (!(ok = compare_values(found, expected, tol, inner, sizeof inner)))
        snprintf(why, size, "output '%s': %s", info.name, inner);
    grt_value_release(found);
    grt_value_release(expected);
    return ok;
}

static bool run_and_compare(loaded *l, const test_case *c, int set, char *why, size_t size)
{
    if (grt_context_run(l->context) != GRT_OK)
        return say_why(why, size, "run of", c->name);
    if (c->reference)
        return compare_output(l, 0, c->reference, c->tolerance, why, size);
    for (size_t i = 0; i < grt_model_output_count(l->model); i++) {
        char path[4096];
        if (!compare_output(l, i, data_path(c, set, "output", i, path, sizeof path), c->tolerance, why, size))
            return false;
    }
    return true;
}

/* The made-up input of light models. */
static bool bind_light(loaded *l, grt_value **values, char *why, size_t size)
{
    for (size_t i = 0; i < grt_model_input_count(l->model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        if (grt_model_input(l->model, i, &info) != GRT_OK || info.has_default)
            continue;
        if (!inputs_make(&info, grt_model_input_keys(l->model, i), NULL, FILL_RAMP, 0, &values[i]) ||
            grt_context_set_input_value(l->context, i, values[i]) != GRT_OK)
            return say_why(why, size, "input", info.name);
    }
    return true;
}

static bool run_set(loaded *l, const test_case *c, int set, char *why, size_t size)
{
    size_t n = grt_model_input_count(l->model);
    grt_value **values = calloc(n + 1, sizeof *values);
    if (!values) {
        snprintf(why, size, "out of memory");
        return false;
    }
    bool ok = (c->reference ? bind_light(l, values, why, size) : bind_set(l, c, set, values, why, size)) &&
              run_and_compare(l, c, set, why, size);
    inputs_release_values(values, n);
    return ok;
}

bool case_run(loaded *l, const test_case *c, char *why, size_t size)
{
    if (c->reference)
        return run_set(l, c, 0, why, size);
    int set = 0;
    for (;; set++) {
        char path[4096], inner[2048];
        struct stat st;
        snprintf(path, sizeof path, "%s/test_data_set_%d", c->directory, set);
        if (stat(path, &st) != 0)
            break;
        if (!run_set(l, c, set, inner, sizeof inner)) {
            snprintf(why, size, "test_data_set_%d: %s", set, inner);
            return false;
        }
    }
    if (set == 0)
        snprintf(why, size, "%s has no test_data_set_0", c->directory);
    return set > 0;
}
