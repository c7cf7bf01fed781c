/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/triton/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

TRITONSERVER_Error *settings_parse(TRITONSERVER_Message *message, json_t **out_json)
{
    const char *text;
    size_t size;
    TRITONSERVER_Error *error = TRITONSERVER_MessageSerializeToJson(message, &text, &size);
    if (!error) {
        json_error_t where;
        *out_json = json_loadb(text, size, 0, &where);
        if (!*out_json)
            error =
                error_new(TRITONSERVER_ERROR_INTERNAL, "the server's JSON cannot be read: %s", where.text);
    }
    return error;
}

static const char *filled(const char *text)
{
    return text && *text ? text : NULL;
}

/* A parameter of this name, as text; NULL if there is none. */
static const char *parameter(const settings *s, const char *name)
{
    const json_t *parameters = json_object_get(s->config, "parameters");
    return filled(json_string_value(json_object_get(json_object_get(parameters, name), "string_value")));
}

/* Parameters may be there for others; but a name that is misspelled must not be a setting that silently does
 * nothing. */
static void warn_of_parameters(const settings *s)
{
    static const char *const known[] = {"threads", "fallback",   "precision", "trust",
                                        "device",  "custom_ops", "padding"};
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(s->config, "parameters"), name, value)
    {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && strcmp(name, known[i]) != 0)
            i++;
        if (i == sizeof known / sizeof *known)
            log_line(TRITONSERVER_LOG_WARN,
                     "parameter '%s' is not used: there are threads, fallback, precision, trust, device, "
                     "custom_ops and padding",
                     name);
    }
}

static TRITONSERVER_Error *read_threads(settings *s)
{
    const char *text = parameter(s, "threads");
    if (!text)
        return NULL;
    char *end;
    errno = 0;
    const long threads = strtol(text, &end, 10);
    if (errno || *end || threads < 1 || threads > 1024)
        return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                         "parameter 'threads': '%s' is no number from 1 to 1024", text);
    s->threads = (int32_t)threads;
    return NULL;
}

static TRITONSERVER_Error *read_padding(settings *s)
{
    static const char *const names[] = {
        [PADDING_NONE] = "none", [PADDING_POWER_OF_TWO] = "power_of_two", [PADDING_FULL] = "full"};
    const char *text = parameter(s, "padding");
    if (!text)
        return NULL;
    for (size_t i = PADDING_NONE; i < sizeof names / sizeof *names; i++)
        if (!strcmp(text, names[i])) {
            s->padding = (batch_padding)i;
            return NULL;
        }
    return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                     "parameter 'padding': '%s' is none of: none, power_of_two, full", text);
}

/* On unless the configuration says that it is not. */
static bool reads_pinned_memory(const settings *s)
{
    const json_t *optimization = json_object_get(s->config, "optimization");
    const json_t *pinned = json_object_get(optimization, "input_pinned_memory");
    return !pinned || json_is_true(json_object_get(pinned, "enable"));
}

TRITONSERVER_Error *settings_read(TRITONBACKEND_Model *model, settings *out)
{
    *out = (settings){0};
    TRITONSERVER_Message *message;
    TRITON_TRY(TRITONBACKEND_ModelConfig(model, 1, &message));
    TRITONSERVER_Error *error = settings_parse(message, &out->config);
    log_error(TRITONSERVER_MessageDelete(message));
    TRITON_TRY(error);
    out->file = filled(json_string_value(json_object_get(out->config, "default_model_filename")));
    out->max_batch = json_integer_value(json_object_get(out->config, "max_batch_size"));
    out->pins_inputs = reads_pinned_memory(out);
    out->fallback = parameter(out, "fallback");
    out->precision = parameter(out, "precision");
    out->trust = parameter(out, "trust");
    out->device = parameter(out, "device");
    out->custom_ops = parameter(out, "custom_ops");
    warn_of_parameters(out);
    TRITON_TRY(read_padding(out));
    return read_threads(out);
}

void settings_release(settings *s)
{
    json_decref(s->config);
    *s = (settings){0};
}

int64_t settings_cpu_instances(const settings *s)
{
    int64_t n = 0;
    size_t i;
    json_t *group;
    json_array_foreach(json_object_get(s->config, "instance_group"), i, group)
    {
        const char *kind = json_string_value(json_object_get(group, "kind"));
        if (kind && strcmp(kind, "KIND_GPU") != 0)
            n += json_integer_value(json_object_get(group, "count"));
    }
    return n > 0 ? n : 1;
}

bool settings_is_state(const settings *s, const char *name)
{
    const json_t *states = json_object_get(json_object_get(s->config, "sequence_batching"), "state");
    size_t i;
    json_t *state;
    json_array_foreach(states, i, state)
    {
        const char *output = json_string_value(json_object_get(state, "output_name"));
        if (output && !strcmp(output, name))
            return true;
    }
    return false;
}
