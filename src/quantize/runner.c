/* SPDX-License-Identifier: Apache-2.0 */
#include "src/quantize/runner.h"

#include <stdlib.h>
#include <string.h>

static size_t count_inputs(const samples *s)
{
    return s->original->source->graph->n_input;
}

grt_status runner_open(runner *r, const samples *s, document *d)
{
    *r = (runner){.samples = s, .values = calloc(count_inputs(s) + 1, sizeof *r->values)};
    if (!r->values)
        return grt_fail_memory(0);
    GRT_TRY(pack_memory(d, &r->packed));
    const grt_compile_options options = {.struct_size = sizeof options,
                                         .cancel = s->options->cancel,
                                         .user = s->options->user,
                                         .external_data = r->packed.external,
                                         .n_external_data = r->packed.n_external};
    GRT_TRY(grt_model_open_memory_with(s->runtime, r->packed.bytes, r->packed.size, &options, &r->model));
    const grt_session_options threads = {.struct_size = sizeof threads, .threads = s->options->threads};
    GRT_TRY(grt_session_create(r->model, "cpu", &threads, &r->session));
    return grt_context_create(r->session, &r->context);
}

static void runner_release_values(runner *r)
{
    for (size_t i = 0; r->values && i < count_inputs(r->samples); i++) {
        grt_value_release(r->values[i]);
        r->values[i] = NULL;
    }
}

void runner_release(runner *r)
{
    grt_context_release(r->context);
    grt_session_release(r->session);
    grt_model_release(r->model);
    if (r->values)
        runner_release_values(r);
    free(r->values);
    pack_release(&r->packed);
    *r = (runner){0};
}

static grt_value *value_of(const runner *r, const char *name)
{
    const Onnx__GraphProto *graph = r->samples->original->source->graph;
    for (size_t i = 0; i < graph->n_input; i++)
        if (!strcmp(graph->input[i]->name, name))
            return r->values[i];
    return NULL;
}

static grt_status runner_bind_inputs(runner *r)
{
    for (size_t i = 0; i < grt_model_input_count(r->model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        GRT_TRY(grt_model_input(r->model, i, &info));
        const grt_value *value = value_of(r, info.name);
        if (!value)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "input '%s' has no value", info.name);
        GRT_TRY(grt_context_set_input_value(r->context, i, value));
    }
    return GRT_OK;
}

grt_status runner_bind(runner *r, size_t sample)
{
    const grt_quantize_options *o = r->samples->options;
    runner_release_values(r);
    if (!o->sample(o->user, sample, r->values))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "sample %zu could not be made by the caller", sample);
    const grt_status status = runner_bind_inputs(r);
    return status == GRT_OK ? status : grt_fail_context(status, "sample %zu", sample);
}

grt_status runner_run(runner *r, size_t sample)
{
    const grt_quantize_options *o = r->samples->options;
    const grt_run_options options = {.struct_size = sizeof options, .cancel = o->cancel, .user = o->user};
    const grt_status status = grt_context_run_with(r->context, &options);
    return status == GRT_OK || status == GRT_STATUS_CANCELLED
               ? status
               : grt_fail_context(status, "sample %zu", sample);
}

grt_status samples_report(const samples *s, const char *phase, size_t done, size_t all)
{
    if (s->options->progress)
        s->options->progress(s->options->user, phase, all ? (double)done / (double)all : 1);
    return grt_cancel_check(&s->cancel);
}
