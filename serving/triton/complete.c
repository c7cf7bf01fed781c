/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/triton/complete.h"

#include "serving/triton/dtypes.h"

#include <stdlib.h>
#include <string.h>

/* Dims of a request, without that of the batch, as the configuration has them. */
static json_t *triton_complete_dims_of(const served_io *io, bool batched)
{
    json_t *dims = json_array();
    for (int32_t d = batched ? 1 : 0; d < io->info.rank; d++)
        json_array_append_new(dims, json_integer(io->info.dims[d]));
    return dims;
}

static const served_io *io_named(const served_io *ios, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (name && !strcmp(ios[i].info.name, name))
            return &ios[i];
    return NULL;
}

static bool lacks_type(const json_t *entry)
{
    const char *type = json_string_value(json_object_get(entry, "data_type"));
    return !type || !strcmp(type, "TYPE_INVALID");
}

static void complete_entry(json_t *entry, const served_io *io, bool batched)
{
    if (lacks_type(entry))
        json_object_set_new(entry, "data_type", json_string(dtype_config_name(io->info.dtype)));
    if (json_array_size(json_object_get(entry, "dims")) || io->info.rank < 0)
        return;
    json_t *dims = triton_complete_dims_of(io, batched);
    if (!json_array_size(dims) && !batched) { /* Triton has no scalars: one element */
        json_array_append_new(dims, json_integer(1));
    } else if (!json_array_size(dims)) { /* a row without dims */
        json_object_set_new(entry, "reshape", json_pack("{s:o}", "shape", dims));
        json_array_append_new(dims = json_array(), json_integer(1));
    }
    json_object_set_new(entry, "dims", dims);
}

/* Inputs that the server itself feeds, as states and controls of sequences, are no inputs of requests. */
static bool fed_by_server(const settings *s, const char *name)
{
    const json_t *sequences = json_object_get(s->config, "sequence_batching");
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(sequences, "state"), i, item)
    {
        const char *input = json_string_value(json_object_get(item, "input_name"));
        if (input && !strcmp(input, name))
            return true;
    }
    json_array_foreach(json_object_get(sequences, "control_input"), i, item)
    {
        const char *input = json_string_value(json_object_get(item, "name"));
        if (input && !strcmp(input, name))
            return true;
    }
    return false;
}

static void complete_list(const served_model *m, const char *key, bool batched)
{
    const bool outputs = !strcmp(key, "output");
    const served_io *ios = outputs ? m->outputs : m->inputs;
    const size_t n = outputs ? m->n_outputs : m->n_inputs;
    json_t *list = json_object_get(m->settings.config, key), *entry;
    size_t i;
    json_array_foreach(list, i, entry)
    {
        const served_io *io = io_named(ios, n, json_string_value(json_object_get(entry, "name")));
        if (io)
            complete_entry(entry, io, batched);
    }
    if (json_array_size(list))
        return;
    list = json_array();
    for (i = 0; i < n; i++) {
        if (outputs ? ios[i].state : fed_by_server(&m->settings, ios[i].info.name))
            continue;
        entry = json_pack("{s:s}", "name", ios[i].info.name);
        complete_entry(entry, &ios[i], batched);
        if (!outputs && ios[i].info.has_default)
            json_object_set_new(entry, "optional", json_true());
        json_array_append_new(list, entry);
    }
    json_object_set_new(m->settings.config, key, list);
}

static bool says_nothing_of_batches(const settings *s)
{
    return !s->max_batch && !json_array_size(json_object_get(s->config, "input")) &&
           !json_array_size(json_object_get(s->config, "output"));
}

static void complete_batching(const served_model *m, int64_t default_batch)
{
    json_t *config = m->settings.config;
    json_object_set_new(config, "max_batch_size", json_integer(default_batch));
    if (default_batch > 1 && !json_object_get(config, "dynamic_batching") &&
        !json_object_get(config, "sequence_batching"))
        json_object_set_new(config, "dynamic_batching", json_object());
}

TRITONSERVER_Error *complete_config(TRITONBACKEND_Model *handle, const served_model *m, int64_t default_batch)
{
    const bool batched =
        m->settings.max_batch > 0 ||
        (default_batch > 0 && says_nothing_of_batches(&m->settings) && served_model_is_batchable(m));
    if (batched && !m->settings.max_batch)
        complete_batching(m, default_batch);
    complete_list(m, "input", batched);
    complete_list(m, "output", batched);
    char *text = json_dumps(m->settings.config, JSON_COMPACT);
    if (!text)
        return error_no_memory();
    TRITONSERVER_Message *message;
    TRITONSERVER_Error *error = TRITONSERVER_MessageNewFromSerializedJson(&message, text, strlen(text));
    if (!error) {
        error = TRITONBACKEND_ModelSetConfig(handle, 1, message);
        log_error(TRITONSERVER_MessageDelete(message));
    }
    free(text);
    return error;
}

/* Dims as text, "[-1, 3]"; the caller frees it. */
static char *text_of_dims(const json_t *dims)
{
    return json_dumps(dims, JSON_COMPACT);
}

static bool dims_agree(const json_t *said, const served_io *io, bool batched)
{
    if (io->info.rank < 0)
        return true;
    const size_t first = batched ? 1 : 0, n = json_array_size(said);
    if (io->info.rank == 0)
        return n == 1 && json_integer_value(json_array_get(said, 0)) == 1;
    if (n + first != (size_t)io->info.rank)
        return false;
    for (size_t d = 0; d < n; d++) {
        const int64_t want = json_integer_value(json_array_get(said, d)), have = io->info.dims[d + first];
        if (want >= 0 && have >= 0 && want != have)
            return false;
    }
    return true;
}

static TRITONSERVER_Error *triton_complete_check_entry(const served_model *m, const char *key,
                                                       const json_t *entry)
{
    const bool output = !strcmp(key, "output"), batched = m->settings.max_batch > 0;
    const char *name = json_string_value(json_object_get(entry, "name"));
    const char *type = json_string_value(json_object_get(entry, "data_type"));
    const served_io *io =
        io_named(output ? m->outputs : m->inputs, output ? m->n_outputs : m->n_inputs, name);
    if (!io)
        return error_new(TRITONSERVER_ERROR_INVALID_ARG, "model '%s' has no %s '%s'", m->name, key,
                         name ? name : "");
    if (type && strcmp(type, dtype_config_name(io->info.dtype)) != 0)
        return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                         "model '%s': %s '%s' is %s in the configuration and %s in the model", m->name, key,
                         name, type, dtype_config_name(io->info.dtype));
    const json_t *reshape = json_object_get(entry, "reshape");
    const json_t *dims = reshape ? json_object_get(reshape, "shape") : json_object_get(entry, "dims");
    if (dims_agree(dims, io, batched))
        return NULL;
    json_t *model_dims = triton_complete_dims_of(io, batched);
    char *said = text_of_dims(dims), *has = text_of_dims(model_dims);
    TRITONSERVER_Error *error =
        error_new(TRITONSERVER_ERROR_INVALID_ARG,
                  "model '%s': %s '%s' has dims %s in the configuration and %s in the model%s", m->name, key,
                  name, said ? said : "?", has ? has : "?", batched ? ", without the batch" : "");
    free(said);
    free(has);
    json_decref(model_dims);
    return error;
}

/* With max_batch_size, the first dim of every tensor is the batch's. */
static TRITONSERVER_Error *check_batch(const served_model *m)
{
    for (size_t i = 0; m->settings.max_batch > 0 && i < m->n_inputs + m->n_outputs; i++) {
        const grt_io_info *info = i < m->n_inputs ? &m->inputs[i].info : &m->outputs[i - m->n_inputs].info;
        if (info->rank == 0 || (info->rank > 0 && info->dims[0] >= 0))
            return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                             "model '%s': max_batch_size is %lld, but '%s' has no first dim of any size; set "
                             "it to 0, or export the "
                             "model with a dynamic batch",
                             m->name, (long long)m->settings.max_batch, info->name);
    }
    return NULL;
}

TRITONSERVER_Error *check_config(const served_model *m)
{
    static const char *const keys[] = {"input", "output"};
    TRITON_TRY(check_batch(m));
    for (size_t k = 0; k < 2; k++) {
        size_t i;
        json_t *entry;
        json_array_foreach(json_object_get(m->settings.config, keys[k]), i, entry)
            TRITON_TRY(triton_complete_check_entry(m, keys[k], entry));
    }
    return NULL;
}
