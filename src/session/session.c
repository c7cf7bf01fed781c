/* SPDX-License-Identifier: Apache-2.0 */
/* Creating sessions: find a kernel for every step, pack weights, all steps in parallel. */
#include "src/session/session.h"

#include "src/base/checked.h"
#include "src/base/failures.h"
#include "src/base/oversubscription.h"
#include "src/base/openmp.h"
#include "src/base/structs.h"
#include "src/plan/dims.h"

#include <stdio.h>
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
    if (!row)
        status = grt_fail_op(&step->desc, GRT_STATUS_UNSUPPORTED, "device %s has no kernel for it: %s",
                             session->device->backend->name, grt_text_get(&why));
    else if ((status = check_kinds(row, body, step)) == GRT_OK)
        status = check_packing(row, &node);
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

/* Threads cost up to milliseconds to start, and most kernels are made in no time: only what takes long is
 * done in parallel. */
grt_status grt_session_create_kernels(grt_session *session, int32_t threads)
{
    static const double patience_ms = 0.5;
    const grt_plan *plan = session->model->plan;
    const double begin = grt_now_ms();
    grt_failures all = {.lists = GRT_STATUS_UNSUPPORTED};
    GRT_TRY(alloc_tables(session));
    const grt_team before = grt_team_enter(session->threads, false);
    for (int32_t b = 0; b < plan->n_bodies; b++) {
        const int32_t n = plan->bodies[b].n_steps;
        int32_t first = 0;
        while (first < n && (threads == 1 || grt_now_ms() - begin < patience_ms))
            create_and_record(session, b, first++, &all);
        const int32_t team = threads < (n - first + 3) / 4 ? threads : (n - first + 3) / 4;
#pragma omp parallel for schedule(dynamic, 4) num_threads(team) if (team > 1)
        for (int32_t s = first; s < n; s++)
            create_and_record(session, b, s, &all);
    }
    grt_team_leave(before);
    grt_oversubscription_look(session->threads);
    return grt_failures_end(&all);
}

grt_resident_key grt_session_key(const grt_model *model, const grt_host_weights *weights, int32_t index)
{
    const grt_plan *plan = model->plan;
    grt_resident_key key = {.backend = weights->backend,
                            .index = index,
                            .plan = plan->content ? NULL : plan,
                            .content = plan->content,
                            .verified = plan->verified};
    for (int32_t i = 0; i < plan->n_weights; i++)
        if (plan->weights[i].dtype != GRT_DTYPE_STRING)
            key.bytes += grt_align_up(grt_host_weights_bytes(model, weights, i), GRT_WEIGHT_ALIGNMENT);
    return key;
}

/* All weights in one block of device memory, which the first session to want it fills. */
static grt_status take_resident(grt_session *session, void **out_block)
{
    const grt_plan *plan = session->model->plan;
    const grt_resident_key key = grt_session_key(session->model, session->shared, session->device->index);
    bool fill = false;
    char *at = (char *)GRT_WEIGHT_ALIGNMENT; /* of a rehearsal */
    grt_status taken = grt_account_take(session->account, GRT_ACCOUNT_WEIGHTS, key.bytes);
    if (taken == GRT_OK && !session->rehearsal)
        taken = grt_resident_take(session->model->runtime->residents, &key, session->device,
                                  &session->resident, &fill);
    if (taken != GRT_OK)
        return grt_fail_context(taken, "the model's weights");
    if (!session->rehearsal)
        at = grt_resident_data(session->resident);
    *out_block = fill ? at : NULL;
    for (int32_t i = 0; i < plan->n_weights; i++) {
        if (plan->weights[i].dtype == GRT_DTYPE_STRING)
            continue;
        session->weights[i].data = at;
        session->weights[i].memory = GRT_MEMORY_DEVICE;
        session->weights[i].device = session->device->index;
        at += grt_align_up(grt_host_weights_bytes(session->model, session->shared, i), GRT_WEIGHT_ALIGNMENT);
    }
    return GRT_OK;
}

grt_status grt_session_place_weights(grt_session *session, void **out_block)
{
    const size_t n = (size_t)session->model->plan->n_weights;
    *out_block = NULL;
    GRT_TRY(grt_host_weights_take(session->model, session->device->backend, &session->shared));
    session->packed = session->shared->packed;
    session->host_weights = session->shared->tensors; /* host devices read them there */
    session->weights = malloc((n + 1) * sizeof *session->weights);
    if (!session->weights)
        return grt_fail_memory(n * sizeof *session->weights);
    memcpy(session->weights, session->host_weights, n * sizeof *session->weights);
    if (session->on_device)
        return take_resident(session, out_block);
    const grt_status counted =
        grt_account_take(session->account, GRT_ACCOUNT_WEIGHTS, session->model->plan->weights_bytes);
    return counted == GRT_OK ? GRT_OK : grt_fail_context(counted, "the model's weights");
}

static size_t session_count_steps(const grt_plan *plan, size_t *out_values)
{
    size_t n = 0;
    *out_values = 0;
    for (int32_t b = 0; b < plan->n_bodies; b++)
        for (int32_t s = 0; s < plan->bodies[b].n_steps; s++, n++)
            *out_values += (size_t)(plan->bodies[b].steps[s].n_in + plan->bodies[b].steps[s].n_out);
    return n;
}

/* Lets the backend begin, while its device is opened, with what these nodes will need. */
static grt_status session_announce(const grt_session *session, const grt_backend *backend)
{
    const grt_plan *plan = session->model->plan;
    size_t n_values, n = 0;
    if (!backend->expect)
        return GRT_OK;
    const size_t steps = session_count_steps(plan, &n_values);
    grt_kernel_node *nodes = malloc((steps + 1) * sizeof *nodes);
    grt_tensor *tensors = malloc((n_values + 1) * sizeof *tensors), *t = tensors;
    for (int32_t b = 0; nodes && tensors && b < plan->n_bodies; b++)
        for (int32_t s = 0; s < plan->bodies[b].n_steps; s++) {
            const grt_plan_step *step = &plan->bodies[b].steps[s];
            nodes[n++] = (grt_kernel_node){.desc = &step->desc,
                                           .n_in = step->n_in,
                                           .n_out = step->n_out,
                                           .in = t,
                                           .out = t + step->n_in};
            for (int32_t i = 0; i < step->n_in + step->n_out; i++)
                *t++ = grt_plan_describe(plan, &plan->bodies[b],
                                         i < step->n_in ? step->in[i] : step->out[i - step->n_in], NULL);
        }
    const bool made = nodes && tensors;
    if (made)
        backend->expect(nodes, n);
    free(tensors);
    free(nodes);
    return made ? GRT_OK : grt_fail_memory(n_values * sizeof *tensors);
}

static grt_status session_take_part(grt_session *session)
{
    grt_device *part;
    const grt_status status = grt_devices_take_part(session->model->runtime->devices, session->device,
                                                    session->multiprocessors, &part);
    if (status != GRT_OK)
        return grt_fail_context(status, "%lld multiprocessors of %s", (long long)session->multiprocessors,
                                session->name);
    session->device = part;
    session->has_part = true;
    return GRT_OK;
}

/* The device is the runtime's; what is known of its kernels' choices is read before they are created. */
grt_status grt_session_open_device(grt_session *session, const grt_backend *backend, int32_t index)
{
    grt_runtime *runtime = session->model->runtime;
    snprintf(session->name, sizeof session->name, "%s:%d", backend->name, index);
    GRT_TRY(session_announce(session, backend));
    GRT_TRY(grt_devices_open(runtime->devices, backend, index, runtime->algos, runtime->background,
                             &session->device));
    if (session->multiprocessors)
        GRT_TRY(session_take_part(session));
    session->on_device = !grt_device_is_host(session->device);
    if (session->device->algos) {
        const grt_plan *plan = session->model->plan;
        grt_algo_cache_load(runtime->algos);
        grt_algo_cache_add_plan(runtime->algos, plan->choices, plan->n_choices);
    }
    return GRT_OK;
}

void grt_session_save_choices(grt_session *session)
{
    if (session->device->algos)
        grt_algo_cache_save(session->model->runtime->algos);
}

grt_status grt_session_start(grt_model *model, const grt_sessions_options *options, double start_ms,
                             grt_session **out_session)
{
    grt_session *session = calloc(1, sizeof *session);
    grt_account *account = session ? grt_account_create(options->memory_limit) : NULL;
    if (!account) {
        free(session);
        return grt_fail_memory(sizeof *session);
    }
    session->account = account;
    grt_phases_start(&session->phases);
    session->phases.start_ms = start_ms;
    atomic_init(&session->refs, 1);
    session->model = grt_model_retain(model);
    session->fallback = options->fallback != NULL;
    session->threads = options->threads;
    session->priority = options->priority;
    session->code_when = model->runtime->code_when; /* the option was checked before */
    (void)grt_code_when_parse(options->compile, session->code_when, "compile", &session->code_when);
    session->multiprocessors = options->multiprocessors;
    grt_kept_weights_init(&session->kept);
    *out_session = session;
    return GRT_OK;
}

grt_session *grt_session_retain(grt_session *session)
{
    atomic_fetch_add_explicit(&session->refs, 1, memory_order_relaxed);
    return session;
}

static void release_kernels(grt_session *session)
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

void *grt_session_take_spare(grt_session *session)
{
    return atomic_exchange(&session->spare, NULL);
}

void grt_session_release(grt_session *session)
{
    if (!session || atomic_fetch_sub_explicit(&session->refs, 1, memory_order_acq_rel) != 1)
        return;
    void *spare = grt_session_take_spare(session);
    if (spare) { /* which holds no reference itself, and releases one */
        grt_session_retain(session);
        session->release_spare(spare);
        return;
    }
    bool switched = false;
    if (session->device)
        (void)grt_device_enter(session->device, &switched);
    release_kernels(session);
    if (session->device)
        grt_device_leave(session->device, switched);
    grt_kept_weights_clear(&session->kept);
    free(session->weights);
    for (grt_session_text *t = session->warnings, *older; t; t = older) {
        older = t->older;
        free(t->text);
        free(t);
    }
    grt_resident_give(session->resident);
    if (session->has_part)
        grt_devices_give_part(session->model->runtime->devices, session->device);
    grt_host_weights_give(session->model, session->shared);
    grt_algo_cache_save(session->model->runtime->algos); /* what first runs chose */
    grt_model_release(session->model);
    grt_account_release(session->account);
    free(session->lost);
    free(session);
}

int32_t grt_session_threads(const grt_session *session)
{
    return session ? session->threads : 0;
}

grt_status grt_session_alloc_host(grt_session *session, size_t size, void **out_data)
{
    if (!session || !out_data || size > SIZE_MAX / 2)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_session_alloc_host: session or out_data is NULL, or %zu bytes are too many",
                        size);
    return grt_device_alloc_pinned(session->device, grt_align_up(size ? size : 1, GRT_WEIGHT_ALIGNMENT),
                                   out_data);
}

void grt_session_free_host(grt_session *session, void *data)
{
    if (session)
        grt_device_free_pinned(session->device, data);
}

size_t grt_session_phases(const grt_session *session, const grt_phase **out_phases)
{
    if (out_phases)
        *out_phases = session ? session->phases.list : NULL;
    return session ? session->phases.n : 0;
}

/* The cache's warnings so far: a file that cannot be written is found out at the end of the first run. */
static const char *warnings_of(grt_session *session)
{
    grt_text text = {0};
    grt_algo_cache_warnings(session->model->runtime->algos, &text);
    grt_session_text *last = atomic_load(&session->warnings);
    grt_session_text *made =
        text.size && (!last || strcmp(last->text, text.data) != 0) ? malloc(sizeof *made) : NULL;
    if (!made) {
        grt_text_release(&text);
        return last ? last->text : "";
    }
    *made = (grt_session_text){.older = last, .text = text.data};
    while (!atomic_compare_exchange_weak(&session->warnings, &made->older, made)) {
    }
    return made->text;
}

grt_status grt_session_get_load(const grt_session *session, grt_load_info *out_info)
{
    if (!session)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_session_get_load: session is NULL");
    grt_load_info info = {.device = session->name,
                          .passes = session->model->passes,
                          .host_bytes = session->uploaded.host_bytes,
                          .peer_bytes = session->uploaded.peer_bytes,
                          .read_bytes = session->uploaded.read_bytes,
                          .pinned_bytes = session->uploaded.pinned_bytes,
                          .warnings = "",
                          .plan_rows = session->model->plan->n_choices,
                          .plan_note = ""};
    const grt_device_algos *algos = (const grt_device_algos *)session->device->algos;
    if (algos) {
        info.warnings =
            warnings_of((grt_session *)session); /* only the record of reported warnings changes */
        info.cache_hits = atomic_load(&algos->hits);
        info.plan_hits = atomic_load(&algos->plan_hits);
        info.rejected = atomic_load(&algos->rejected);
        if (session->model->plan->left_out)
            info.plan_note = "its choices and code are left out, as the plan is not trusted (trust is none)";
        else if (session->model->plan->n_choices)
            info.plan_note = grt_algo_cache_plan_note(session->model->runtime->algos);
        info.cache_misses = atomic_load(&algos->misses);
        info.heuristics = atomic_load(&algos->heuristics);
        info.searches = atomic_load(&algos->searches);
        info.code_plan = atomic_load(&algos->codes[GRT_CODE_PLAN]);
        info.code_store = atomic_load(&algos->codes[GRT_CODE_STORE]);
        info.code_compiled = atomic_load(&algos->codes[GRT_CODE_COMPILED]);
        info.code_waiting = atomic_load(&algos->codes[GRT_CODE_WAITING]);
        info.code_interpreted = atomic_load(&algos->codes[GRT_CODE_INTERPRETED]);
    }
    return grt_info_give(out_info, &info, sizeof info, "grt_load_info");
}
