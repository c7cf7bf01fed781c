/* Planning memory without a session: kernels' in-place flags come from the backend's rows. */
#include "src/plan_measure.h"

#include "src/memory_plan.h"

#include <stdlib.h>

typedef struct measure {
    const grt_plan *plan;
    const grt_backend *backend;
    int64_t *dims;
    bool *known;
    size_t *bytes;
    bool *planned, *step_planned;
} measure;

static void eval_dims(measure *m)
{
    for (int32_t i = 0; i < m->plan->n_dims; i++) {
        const grt_dim_expr *e = &m->plan->dims[i];
        m->known[i] = true;
        if (e->op == GRT_DIM_CONST || e->op == GRT_DIM_SYMBOL)
            m->dims[i] = e->op == GRT_DIM_CONST ? e->value : 1;
        else
            m->known[i] = m->known[e->a] && m->known[e->b] &&
                          grt_dim_apply(e->op, m->dims[e->a], m->dims[e->b], &m->dims[i]);
    }
}

static grt_tensor describe(const measure *m, int32_t value)
{
    grt_tensor t = {.rank = -1};
    if (value < 0)
        return t;
    const grt_plan_value *v = &m->plan->bodies[0].values[value];
    if (v->role == GRT_VALUE_CONST)
        return m->plan->weights[v->weight];
    t.dtype = v->dtype;
    t.rank = v->kind == GRT_KIND_TENSOR ? v->rank : -1;
    for (int32_t i = 0; i < t.rank; i++)
        t.dims[i] = m->known[v->dims[i]] ? m->dims[v->dims[i]] : -1;
    return t;
}

static bool measure_values(measure *m)
{
    const grt_plan_body *body = &m->plan->bodies[0];
    for (int32_t v = 0; v < body->n_values; v++) {
        m->planned[v] = body->values[v].is_static && body->values[v].role == GRT_VALUE_STEP;
        if (!m->planned[v])
            continue;
        grt_tensor t = describe(m, v);
        m->bytes[v] = grt_tensor_bytes(&t);
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
        in[i] = describe(m, step->in[i]);
    for (int32_t i = 0; i < step->n_out; i++)
        out[i] = describe(m, step->out[i]);
    grt_kernel_node node = {
        .desc = &step->desc, .n_in = step->n_in, .n_out = step->n_out, .in = in, .out = out, .threads = 1};
    const grt_kernel_row *row = m->backend->find_kernel(&node, NULL);
    return row ? row->flags & 0xffu : 0;
}

grt_status grt_plan_measure(grt_plan *plan, const grt_backend *backend)
{
    measure m = {.plan = plan, .backend = backend};
    const grt_plan_body *body = &plan->bodies[0];
    m.dims = calloc((size_t)plan->n_dims + 1, sizeof *m.dims);
    m.known = calloc((size_t)plan->n_dims + 1, sizeof *m.known);
    m.bytes = calloc((size_t)body->n_values + 1, sizeof *m.bytes);
    m.planned = calloc((size_t)body->n_values + 1, sizeof *m.planned);
    m.step_planned = calloc((size_t)body->n_steps + 1, sizeof *m.step_planned);
    grt_status status =
        m.dims && m.known && m.bytes && m.planned && m.step_planned ? GRT_OK : grt_fail_memory(0);
    if (status == GRT_OK) {
        grt_memory_plan memory;
        eval_dims(&m);
        if (measure_values(&m)) {
            status = grt_memory_plan_make(
                &(grt_memory_request){body, m.bytes, m.planned, m.step_planned, in_place, &m}, &memory);
            if (status == GRT_OK) {
                plan->arena_bytes = memory.arena_bytes;
                grt_memory_plan_release(&memory);
            }
        }
    }
    free(m.dims);
    free(m.known);
    free(m.bytes);
    free(m.planned);
    free(m.step_planned);
    return status;
}
