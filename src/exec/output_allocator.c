/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/output_allocator.h"

#include "src/exec/bound_tensor.h"

static grt_status output_allocator_ask(grt_executor *executor, int32_t index, const grt_tensor *type)
{
    grt_binding *bound = &executor->bound;
    const grt_asked_output *asked = &bound->asked[index];
    const grt_plan_body *body = grt_binding_body(&executor->bound);
    grt_tensor t = *type;
    t.memory = asked->memory;
    t.device = asked->memory == GRT_MEMORY_DEVICE ? grt_executor_device(executor)->index : 0;
    const size_t bytes = grt_tensor_bytes(&t);
    t.data = bytes ? NULL : grt_nothing;
    if (bytes)
        t.data = asked->allocate(asked->user, (size_t)index, &t, bytes);
    if (!t.data)
        return grt_fail(GRT_STATUS_OUT_OF_MEMORY,
                        "output '%s': the caller's allocator gave no memory for %zu bytes",
                        body->output_names[index], bytes);
    GRT_TRY(grt_executor_check_tensor(executor, &body->values[body->outputs[index]], &t));
    bound->outputs[index] = t;
    bound->output_set[index] = bound->rebound = true;
    return GRT_OK;
}

grt_status grt_outputs_ask_before(grt_executor *executor, const grt_frame *frame)
{
    grt_binding *bound = &executor->bound;
    const grt_plan_body *body = grt_binding_body(&executor->bound);
    for (int32_t i = 0; i < body->n_outputs; i++) {
        if (!bound->asked[i].allocate)
            continue;
        bound->output_set[i] = false;
        if (frame->program->places[body->outputs[i]].has_dims)
            GRT_TRY(output_allocator_ask(executor, i, &frame->values[body->outputs[i]].t));
    }
    return GRT_OK;
}

grt_status grt_outputs_ask_after(grt_executor *executor, const grt_frame *frame)
{
    const grt_plan_body *body = grt_binding_body(&executor->bound);
    for (int32_t i = 0; i < body->n_outputs; i++) {
        const int32_t v = body->outputs[i];
        const grt_place *place = &frame->program->places[v];
        if (executor->bound.asked[i].allocate && !place->has_dims)
            GRT_TRY(output_allocator_ask(executor, i,
                                         place->made_on_host ? &frame->host[v].t : &frame->values[v].t));
    }
    return GRT_OK;
}

grt_status grt_outputs_check_async(const grt_executor *executor)
{
    const grt_plan_body *body = grt_binding_body(&executor->bound);
    for (int32_t i = 0; executor->bound.any_asked && i < body->n_outputs; i++)
        if (executor->bound.asked[i].allocate &&
            (executor->bound.asked[i].memory == GRT_MEMORY_HOST || !body->values[body->outputs[i]].is_static))
            return grt_fail(GRT_STATUS_UNSUPPORTED,
                            "grt_context_run_async: output '%s' asks for %s; bind it, or use grt_context_run",
                            body->output_names[i],
                            body->values[body->outputs[i]].is_static ? "pageable host memory"
                                                                     : "memory when its size is known");
    return GRT_OK;
}
