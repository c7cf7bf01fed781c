/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/throughput.h"

#include "tools/loaded.h"
#include "tools/progress.h"
#include "tools/report.h"

#include <stdlib.h>
#include <string.h>

/* A request in flight, with memory of its own for inputs and outputs: users have different data in each. */
typedef struct slot {
    grt_tensor *inputs, *outputs;
    grt_request *request;
} slot;

typedef struct measurement {
    grt_session *session;
    grt_pool *pool;
    size_t n_inputs, n_outputs, n_slots;
    slot *slots;
    bool pinned;
} measurement;

static bool give_memory(const measurement *m, grt_tensor *tensor)
{
    const size_t bytes = grt_tensor_bytes(tensor);
    tensor->memory = m->pinned ? GRT_MEMORY_PINNED : GRT_MEMORY_HOST;
    tensor->device = 0;
    tensor->data = NULL;
    if (m->pinned)
        return grt_session_alloc_host(m->session, bytes, &tensor->data) == GRT_OK;
    tensor->data = malloc(bytes + !bytes);
    return tensor->data != NULL;
}

static void take_memory(const measurement *m, grt_tensor *tensor)
{
    if (m->pinned)
        grt_session_free_host(m->session, tensor->data);
    else
        free(tensor->data);
}

/* Strings stay where they are: they do not go to devices. */
static bool fill_slot(const measurement *m, slot *s, grt_context *context, grt_value *const *values)
{
    s->inputs = calloc(m->n_inputs + 1, sizeof *s->inputs);
    s->outputs = calloc(m->n_outputs + 1, sizeof *s->outputs);
    bool ok = s->inputs && s->outputs;
    for (size_t i = 0; ok && i < m->n_inputs; i++) {
        grt_tensor from;
        if (!values[i])
            continue;
        ok = grt_value_tensor(values[i], &from) == GRT_OK;
        s->inputs[i] = from;
        if (ok && from.dtype != GRT_DTYPE_STRING && (ok = give_memory(m, &s->inputs[i])))
            memcpy(s->inputs[i].data, from.data, grt_tensor_bytes(&from));
    }
    for (size_t i = 0; ok && i < m->n_outputs; i++) {
        grt_tensor out;
        ok = grt_context_get_output(context, i, &out) == GRT_OK;
        if (!ok || out.dtype == GRT_DTYPE_STRING)
            continue;
        s->outputs[i] = out;
        ok = give_memory(m, &s->outputs[i]);
    }
    return ok;
}

static void release_slot(const measurement *m, slot *s)
{
    grt_request_release(s->request);
    for (size_t i = 0; s->inputs && i < m->n_inputs; i++)
        if (s->inputs[i].dtype && s->inputs[i].dtype != GRT_DTYPE_STRING)
            take_memory(m, &s->inputs[i]);
    for (size_t i = 0; s->outputs && i < m->n_outputs; i++)
        if (s->outputs[i].dtype)
            take_memory(m, &s->outputs[i]);
    free(s->inputs);
    free(s->outputs);
}

static bool renew_request(const measurement *m, slot *s, size_t *done)
{
    if (s->request && grt_request_wait(s->request) != GRT_OK)
        return false;
    *done += s->request != NULL;
    grt_request_release(s->request);
    s->request = NULL;
    return grt_pool_submit(m->pool, s->inputs, m->n_inputs, s->outputs, m->n_outputs, &s->request) == GRT_OK;
}

/* Keep all slots in flight; *out_done: requests that ended meanwhile. */
static bool run_for(const measurement *m, double seconds, size_t *out_done)
{
    const double end = now_ms() + seconds * 1e3;
    *out_done = 0;
    while (now_ms() < end)
        for (size_t i = 0; i < m->n_slots; i++)
            if (!renew_request(m, &m->slots[i], out_done))
                return false;
    return true;
}

static bool measure_pool(measurement *m, grt_context *context, grt_value *const *values, double seconds,
                         double *out_per_s)
{
    size_t done;
    for (size_t i = 0; i < m->n_slots; i++)
        if (!fill_slot(m, &m->slots[i], context, values))
            return false;
    if (!run_for(m, seconds / 5, &done)) /* each context plans, and captures its graph */
        return false;
    const double begin = now_ms();
    if (!run_for(m, seconds, &done))
        return false;
    *out_per_s = 1e3 * (double)done / (now_ms() - begin);
    return true;
}

bool throughput_measure(const grt_model *model, grt_session *session, grt_context *context,
                        grt_value *const *values, const throughput_options *options, double *out_per_s)
{
    measurement m = {.session = session,
                     .n_inputs = grt_model_input_count(model),
                     .n_outputs = grt_model_output_count(model),
                     .n_slots = 2 * (size_t)options->contexts,
                     .pinned = options->pinned};
    const grt_pool_options pool = {.struct_size = sizeof pool, .contexts = options->contexts};
    m.slots = calloc(m.n_slots, sizeof *m.slots);
    bool ok = m.slots && grt_pool_create(&session, 1, &pool, &m.pool) == GRT_OK &&
              measure_pool(&m, context, values, options->seconds, out_per_s);
    if (!ok)
        tool_fail();
    for (size_t i = 0; m.slots && i < m.n_slots; i++)
        release_slot(&m, &m.slots[i]);
    grt_pool_release(m.pool);
    free(m.slots);
    return ok;
}
