/* SPDX-License-Identifier: Apache-2.0 */
/* graphc check --quantised: what of a quantised model is computed on integers, and what is not. */
#include "tools/quantised_check.h"

#include "tools/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void show_float(void *user, const grt_finding *f)
{
    json_t *array = user;
    if (!strncmp(f->message, "stays in float32", strlen("stays in float32")))
        json_array_append_new(array, report_finding_json("float32", f));
}

/* Steps on integers, and all that a kernel computes. */
static bool count_integer_steps(const grt_model *model, int64_t *out_integer, int64_t *out_all)
{
    static const char *const ops[] = {"QConv",    "QMatMul", "QAdd",   "QMul", "QTable", "QGlobalAveragePool",
                                      "QSoftmax", "WMatMul", "WGather"};
    grt_model_info info = {.struct_size = sizeof info};
    if (grt_model_get_info(model, &info) != GRT_OK)
        return false;
    *out_integer = 0;
    *out_all = info.steps;
    for (int64_t i = 0; i < info.steps; i++) {
        grt_step_info step = {.struct_size = sizeof step};
        if (grt_model_step(model, (size_t)i, &step) != GRT_OK)
            return false;
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
            *out_integer += !strcmp(step.op, ops[k]);
    }
    return true;
}

static bool print_quantised(const char *path, bool json, json_t *kept, int64_t integer, int64_t all)
{
    size_t i;
    const json_t *f;
    if (json) {
        json_t *object = json_object();
        json_object_set_new(object, "model", json_text(path));
        json_object_set_new(object, "integer_steps", json_integer(integer));
        json_object_set_new(object, "steps", json_integer(all));
        json_object_set(object, "float32", kept);
        return json_print(object);
    }
    json_array_foreach(kept, i, f) tool_print("%s '%s': %s\n", json_string_value(json_object_get(f, "op")),
                                              json_string_value(json_object_get(f, "node")),
                                              json_string_value(json_object_get(f, "message")));
    tool_print("%s: %" PRId64 " of %" PRId64
               " steps on integers or weights of few bits, %zu kept in float32 between\n",
               path, integer, all, json_array_size(kept));
    return true;
}

int quantised_check(const char *path, const grt_compile_options *given, bool json)
{
    json_t *kept = json_array();
    grt_compile_options options = *given;
    options.near_miss = show_float;
    options.user = kept;
    grt_runtime *runtime = NULL;
    grt_model *model = NULL;
    int64_t integer, all;
    int code = EXIT_BAD;
    if (grt_runtime_create(&runtime) != GRT_OK ||
        grt_model_open_with(runtime, path, &options, &model) != GRT_OK ||
        !count_integer_steps(model, &integer, &all))
        tool_fail();
    else if (print_quantised(path, json, kept, integer, all))
        code = EXIT_GOOD;
    grt_model_release(model);
    grt_runtime_release(runtime);
    json_decref(kept);
    return code;
}
