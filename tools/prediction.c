/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prediction.h"

#include "tools/report.h"

#include <stdlib.h>
#include <string.h>

/* The kind that the plan was compiled for, if this machine has one. */
static bool choose_device(const grt_model *model, char *out, size_t size)
{
    grt_model_info info = {.struct_size = sizeof info};
    int32_t count = 0;
    if (grt_model_get_info(model, &info) != GRT_OK)
        return false;
    snprintf(out, size, "%.*s", (int)strcspn(info.target, ":"), info.target);
    return grt_device_count(out, &count) == GRT_OK && count > 0;
}

void prediction_make(grt_model *model, const input_specs *shapes, prediction *out)
{
    grt_memory_options options = {.struct_size = sizeof options};
    grt_input_shape *given = calloc(shapes->n + 1, sizeof *given);
    *out = (prediction){.memory = {.struct_size = sizeof out->memory}};
    for (size_t i = 0; given && i < shapes->n; i++) {
        const input_spec *s = &shapes->items[i];
        if (!s->has_shape)
            continue;
        grt_input_shape *to = &given[options.n_shapes++];
        *to = (grt_input_shape){.input = s->name, .rank = s->rank};
        memcpy(to->dims, s->dims, sizeof to->dims);
    }
    options.shapes = given;
    if (!given || !choose_device(model, out->device, sizeof out->device) ||
        grt_model_predict_memory(model, out->device, &options, &out->memory) != GRT_OK)
        *out->device = '\0';
    free(given);
}

void prediction_print(const prediction *p)
{
    char all[FIGURE_SIZE], parts[4][FIGURE_SIZE];
    if (!*p->device)
        return;
    tool_print("  session    %s on %s: weights %s, copies for kernels %s, activations %s, workspaces %s\n",
               figure_bytes((double)p->memory.total_bytes, all), p->device,
               figure_bytes((double)p->memory.weights_bytes, parts[0]),
               figure_bytes((double)p->memory.kernels_bytes, parts[1]),
               figure_bytes((double)(p->memory.activations_bytes + p->memory.inputs_bytes), parts[2]),
               figure_bytes((double)p->memory.workspaces_bytes, parts[3]));
}

json_t *prediction_json(const prediction *p)
{
    if (!*p->device)
        return json_null();
    return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I}", "device", p->device, "weights_bytes",
                     (json_int_t)p->memory.weights_bytes, "kernels_bytes",
                     (json_int_t)p->memory.kernels_bytes, "activations_bytes",
                     (json_int_t)p->memory.activations_bytes, "workspaces_bytes",
                     (json_int_t)p->memory.workspaces_bytes, "inputs_bytes",
                     (json_int_t)p->memory.inputs_bytes, "total_bytes", (json_int_t)p->memory.total_bytes);
}
