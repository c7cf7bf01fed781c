/* SPDX-License-Identifier: Apache-2.0 */
/* Planning memory without a session: kernels' in-place flags come from the backend's rows. */
#include "src/target/measure.h"

#include "src/plan/memory_plan.h"
#include "src/plan/dims.h"

#include <stdlib.h>

typedef struct measure {
    const grt_plan *plan;
    const grt_backend *backend;
    grt_plan_dims dims; /* every symbol 1 */
    size_t *bytes;
    int64_t *elements;
    bool *planned, *step_planned;
} measure;

static grt_tensor measure_describe(const measure *m, int32_t value)
{
    return grt_plan_describe(m->plan, &m->plan->bodies[0], value, &m->dims);
}

static bool measure_values(measure *m)
{
    const grt_plan_body *body = &m->plan->bodies[0];
    for (int32_t v = 0; v < body->n_values; v++) {
        m->planned[v] = body->values[v].is_static && body->values[v].role == GRT_VALUE_STEP;
        if (!m->planned[v])
            continue;
        grt_tensor t = measure_describe(m, v);
        m->bytes[v] = grt_tensor_bytes(&t);
        m->elements[v] = grt_tensor_elements(&t);
        if (m->bytes[v] == SIZE_MAX)
            return false;
    }
    for (int32_t s = 0; s < body->n_steps; s++)
        m->step_planned[s] = body->steps[s].is_static;
    return true;
}

static uint32_t in_place(void *user, int32_t s)
{
    const measure *m = user;
    const grt_plan_step *step = &m->plan->bodies[0].steps[s];
    enum { MOST = 32 };
    if (step->n_in > MOST || step->n_out > MOST)
        return 0;
    grt_tensor in[MOST], out[MOST];
    for (int32_t i = 0; i < step->n_in; i++)
        in[i] = measure_describe(m, step->in[i]);
    for (int32_t i = 0; i < step->n_out; i++)
        out[i] = measure_describe(m, step->out[i]);
    grt_kernel_node node = {
        .desc = &step->desc, .n_in = step->n_in, .n_out = step->n_out, .in = in, .out = out, .threads = 1};
    const grt_kernel_row *row = m->backend->find_kernel(&node, NULL);
    return row ? row->flags & 0xffu : 0;
}

grt_status grt_plan_measure(grt_plan *plan, const grt_backend *backend)
{
    measure m = {.plan = plan, .backend = backend};
    const grt_plan_body *body = &plan->bodies[0];
    GRT_TRY(grt_plan_dims_make(plan, NULL, &m.dims));
    m.bytes = calloc((size_t)body->n_values + 1, sizeof *m.bytes);
    m.elements = calloc((size_t)body->n_values + 1, sizeof *m.elements);
    m.planned = calloc((size_t)body->n_values + 1, sizeof *m.planned);
    m.step_planned = calloc((size_t)body->n_steps + 1, sizeof *m.step_planned);
    grt_status status = m.bytes && m.elements && m.planned && m.step_planned ? GRT_OK : grt_fail_memory(0);
    if (status == GRT_OK) {
        grt_memory_plan memory;
        if (measure_values(&m)) {
            const grt_memory_request request = {.plan = plan,
                                                .body = body,
                                                .bytes = m.bytes,
                                                .elements = m.elements,
                                                .planned = m.planned,
                                                .step_planned = m.step_planned,
                                                .in_place = in_place,
                                                .user = &m};
            status = grt_memory_plan_make(&request, &memory);
            if (status == GRT_OK) {
                plan->arena_bytes = memory.arena_bytes;
                grt_memory_plan_release(&memory);
            }
        }
    }
    grt_plan_dims_release(&m.dims);
    free(m.bytes);
    free(m.elements);
    free(m.planned);
    free(m.step_planned);
    return status;
}
