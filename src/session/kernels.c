/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a session: one is found for every step, and created. */
#include "src/session/session.h"

#include "src/base/failures.h"
#include "src/base/openmp.h"
#include "src/base/oversubscription.h"
#include "src/plan/dims.h"

#include <stdlib.h>
#include <string.h>

/* A tensor as a kernel sees it before the run: dims -1 where they are not constant. */
static grt_tensor session_describe(const grt_session *session, const grt_plan_body *body, int32_t value,
                                   grt_packing *packing)
{
    const grt_plan *plan = session->model->plan;
    const grt_plan_value *v = value < 0 ? NULL : &body->values[value];
    memset(packing, 0, sizeof *packing);
    if (v && v->role == GRT_VALUE_CONST) {
        if (session->packed)
            *packing = grt_plan_packing(plan, v->weight);
        return session->host_weights[v->weight]; /* kernels are created from host memory */
    }
    return grt_plan_describe(plan, body, value, NULL);
}

/* The row for a node: the device's, else the CPU's where that is allowed. Bodies of control flow run on the
 * CPU. */
static const grt_kernel_row *choose_row(const grt_session *session, bool main, grt_kernel_node *node,
                                        bool *out_host, grt_text *why)
{
    *out_host = session->on_device && !main;
    const grt_kernel_row *row = *out_host ? NULL : session->device->backend->find_kernel(node, why);
    if (row || !session->on_device || (main && !session->fallback))
        return row;
    *out_host = true;
    node->device = NULL;
    return grt_backend_cpu.find_kernel(node, why);
}

/* Bytes of a constant that a kernel with state has a copy of, laid out for it; 0: it is small, or read as it
 * is. */
static size_t copied_bytes(const grt_tensor *t, bool packed)
{
    enum { WORTH_IT = 64 << 10 };
    const size_t bytes = t->data && !packed ? grt_tensor_bytes(t) : 0;
    return bytes >= WORTH_IT && bytes != SIZE_MAX ? bytes : 0;
}

/* Without this, they would be in memory twice. */
static void forget_copied(const grt_session *session, const grt_plan_body *body, const grt_plan_step *step)
{
    for (int32_t i = 0; i < step->n_in; i++) {
        grt_packing packing;
        const grt_tensor t = session_describe(session, body, step->in[i], &packing);
        const size_t bytes = copied_bytes(&t, grt_is_packed(&packing));
        if (bytes)
            grt_model_forget(session->model, t.data, bytes);
    }
}

/* A session that found the weights on the device has read none of them. */
void grt_session_forget_copied(const grt_session *session)
{
    const grt_plan *plan = session->model->plan;
    if (!session->uploaded.host_bytes && !session->uploaded.peer_bytes)
        return;
    for (int32_t b = 0; b < plan->n_bodies; b++)
        for (int32_t s = 0; s < plan->bodies[b].n_steps; s++)
            if (session->kernels[b][s].state)
                forget_copied(session, &plan->bodies[b], &plan->bodies[b].steps[s]);
}

/* Packed constants are for kernels that packed them; a plan that says otherwise was not made by us. */
static grt_status check_packing(const grt_kernel_row *row, const grt_kernel_node *node)
{
    for (int32_t i = 0; i < node->n_in && !row->pack; i++)
        if (grt_node_packing(node, i))
            return grt_fail_op(
                node->desc, GRT_STATUS_INVALID_PLAN,
                "input %d is packed as '%s', but the kernel takes plain tensors; make the plan again "
                "with graphc optimize",
                (int)i, node->packing[i].format);
    return GRT_OK;
}

/* Only kernels that say so take or make anything but tensors, and they are made for the dtypes of their
 * outputs; a plan that says otherwise was not made by us. */
static grt_status check_kinds(const grt_kernel_row *row, const grt_plan_body *body, const grt_plan_step *step)
{
    for (int32_t i = 0; i < step->n_in + step->n_out && !(row->flags & GRT_KERNEL_VALUES); i++) {
        const int32_t v = i < step->n_in ? step->in[i] : step->out[i - step->n_in];
        if (v >= 0 && i >= step->n_in && !body->values[v].dtype)
            return grt_fail_op(&step->desc, GRT_STATUS_INVALID_PLAN, "output '%s' has no dtype in the plan",
                               body->values[v].name);
        if (v >= 0 && body->values[v].kind != GRT_KIND_TENSOR)
            return grt_fail_op(&step->desc, GRT_STATUS_INVALID_PLAN,
                               "value '%s' is no tensor in the plan, but the kernel takes and makes tensors",
                               body->values[v].name);
    }
    return GRT_OK;
}

/* A plan for another kind of device may have steps that this one lacks, where one of its own would not. */
static void kernels_add_remedy(const grt_session *session, grt_text *why)
{
    const char *here = session->device->backend->name, *target = session->model->plan->target;
    if (target && *target && strcmp(target, here) != 0)
        grt_text_add(why, "; the plan is made for %s: one for %s may run (graphc optimize --target %s)",
                     target, here, here);
}

static grt_status create_kernel(grt_session *session, const grt_plan_body *body, const grt_plan_step *step,
                                grt_session_kernel *kernel)
{
    bool main = body == session->model->plan->bodies;
    kernel->op = op_find(step->desc.domain, step->desc.op);
    if (step->kind >= GRT_STEP_IF && session->on_device) {
        kernel->host = true;
        return !main || session->fallback
                   ? GRT_OK
                   : grt_fail_op(&step->desc, GRT_STATUS_UNSUPPORTED, "control flow runs on the CPU only");
    }
    if (step->kind != GRT_STEP_KERNEL)
        return GRT_OK;
    size_t n = (size_t)(step->n_in + step->n_out);
    grt_tensor *tensors = malloc((n + 1) * sizeof *tensors);
    grt_packing *packings = malloc((n + 1) * sizeof *packings);
    if (!tensors || !packings) {
        free(tensors);
        free(packings);
        return grt_fail_memory(n * (sizeof *tensors + sizeof *packings));
    }
    for (size_t i = 0; i < n; i++) {
        const size_t k = i - (size_t)step->n_in;
        tensors[i] = session_describe(session, body, i < (size_t)step->n_in ? step->in[i] : step->out[k],
                                      &packings[i]);
    }
    grt_kernel_node node = {.desc = &step->desc,
                            .n_in = step->n_in,
                            .n_out = step->n_out,
                            .in = tensors,
                            .out = tensors + step->n_in,
                            .packing = session->packed ? packings : NULL,
                            .threads = session->threads,
                            .device = session->device};
    grt_text why = {0};
    const grt_kernel_row *row = choose_row(session, main, &node, &kernel->host, &why);
    grt_status status = GRT_OK;
    if (!row) {
        kernels_add_remedy(session, &why);
        status = grt_fail_op(&step->desc, GRT_STATUS_UNSUPPORTED, "device %s has no kernel for it: %s",
                             session->device->backend->name, grt_text_get(&why));
    } else if ((status = check_kinds(row, body, step)) == GRT_OK) {
        status = check_packing(row, &node);
    }
    node.account = session->on_device && kernel->host ? NULL : session->account;
    if (status == GRT_OK && row->create)
        status = row->create(&node, &kernel->state);
    if (status == GRT_OK)
        kernel->row = row;
    if (kernel->state && !session->on_device && !session->rehearsal)
        forget_copied(session, body, step);
    grt_text_release(&why);
    free(tensors);
    free(packings);
    return status;
}

static void create_and_record(grt_session *session, int32_t b, int32_t s, grt_failures *all)
{
    const grt_plan_body *body = &session->model->plan->bodies[b];
    bool switched = false;
    grt_status status = grt_device_enter(session->device, &switched);
    if (status == GRT_OK)
        status = create_kernel(session, body, &body->steps[s], &session->kernels[b][s]);
    grt_device_leave(session->device, switched);
    grt_failures_add(all, status);
}

static grt_status alloc_tables(grt_session *session)
{
    const grt_plan *plan = session->model->plan;
    session->kernels = calloc((size_t)plan->n_bodies, sizeof *session->kernels);
    if (!session->kernels)
        return grt_fail_memory(0);
    for (int32_t b = 0; b < plan->n_bodies; b++) {
        session->kernels[b] = calloc((size_t)plan->bodies[b].n_steps + 1, sizeof **session->kernels);
        if (!session->kernels[b])
            return grt_fail_memory(0);
    }
    return GRT_OK;
}

typedef struct creation {
    grt_session *session;
    int32_t threads, done; /* done: kernels, of all bodies */
    double begin_ms;
    grt_failures failures;
} creation;

/* Threads cost up to milliseconds to start, and those of a new team on a device some more, as they all wait
 * for the driver at first. Most kernels are made in no time: only what takes long is done in parallel. */
static bool wants_team(const creation *c, int32_t left)
{
    static const double patience_ms = 0.5, team_ms = 8;
    const double spent_ms = grt_now_ms() - c->begin_ms;
    return c->threads > 1 && spent_ms >= patience_ms &&
           (!c->session->on_device || spent_ms * left >= team_ms * c->done);
}

static void create_in_team(creation *c, int32_t b, int32_t first)
{
    enum { SHARE = 4, MOST_ON_DEVICE = 16 };
    const int32_t n = c->session->model->plan->bodies[b].n_steps, shares = (n - first + SHARE - 1) / SHARE,
                  most = c->session->on_device && c->threads > MOST_ON_DEVICE ? MOST_ON_DEVICE : c->threads,
                  wanted = most < shares ? most : shares;
    const grt_team before = grt_team_enter(wanted, false);
    const int32_t team = grt_team_possible(wanted);
#pragma omp parallel for schedule(dynamic, SHARE) num_threads(team) if (team > 1)
    for (int32_t s = first; s < n; s++)
        create_and_record(c->session, b, s, &c->failures);
    grt_team_leave(before);
    c->done += n - first;
}

static void create_body(creation *c, int32_t b)
{
    const int32_t n = c->session->model->plan->bodies[b].n_steps;
    int32_t s = 0;
    const grt_team before = grt_team_enter(c->session->threads, c->session->on_device);
    for (; s < n && !wants_team(c, n - s); s++, c->done++)
        create_and_record(c->session, b, s, &c->failures);
    grt_team_leave(before);
    if (s < n)
        create_in_team(c, b, s);
}

static bool has_kernel_on_host(const grt_session *session)
{
    const grt_plan *plan = session->model->plan;
    for (int32_t b = 0; b < plan->n_bodies; b++)
        for (int32_t s = 0; s < plan->bodies[b].n_steps; s++)
            if (session->kernels[b][s].host)
                return true;
    return false;
}

grt_status grt_session_create_kernels(grt_session *session, int32_t threads)
{
    creation c = {.session = session,
                  .threads = threads,
                  .begin_ms = grt_now_ms(),
                  .failures = {.lists = GRT_STATUS_UNSUPPORTED}};
    GRT_TRY(alloc_tables(session));
    for (int32_t b = 0; b < session->model->plan->n_bodies; b++)
        create_body(&c, b);
    session->team =
        session->on_device && !has_kernel_on_host(session) && session->threads > GRT_MOST_PREPARING
            ? GRT_MOST_PREPARING
            : session->threads;
    grt_oversubscription_look(session->threads);
    return grt_failures_end(&c.failures);
}

void grt_session_release_kernels(grt_session *session)
{
    const grt_plan *plan = session->model->plan;
    for (int32_t b = 0; session->kernels && b < plan->n_bodies; b++) {
        for (int32_t s = 0; session->kernels[b] && s < plan->bodies[b].n_steps; s++) {
            grt_session_kernel *kernel = &session->kernels[b][s];
            if (kernel->row && kernel->row->destroy && kernel->state)
                kernel->row->destroy(kernel->state);
        }
        free(session->kernels[b]);
    }
    free(session->kernels);
}
