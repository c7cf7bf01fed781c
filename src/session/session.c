/* SPDX-License-Identifier: Apache-2.0 */
#include "src/session/session.h"

#include "src/base/checked.h"
#include "src/base/structs.h"
#include "src/plan/dims.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    grt_session_release_kernels(session);
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
