/* SPDX-License-Identifier: Apache-2.0 */
/* What a session will have of memory: a rehearsal of its creation and of the first run's preparations, in
 * which weights are numbers, and memory of activations is taken but not written. */
#include "src/base/openmp.h"
#include "src/base/structs.h"
#include "src/exec/context.h"
#include "src/exec/frame_memory.h"
#include "src/exec/run.h"
#include "src/session/devices.h"

#include <inttypes.h>
#ifdef __GLIBC__
#include <dlfcn.h>
#include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const grt_input_shape *find_shape(const grt_memory_options *options, const char *input)
{
    for (size_t i = 0; i < options->n_shapes; i++)
        if (options->shapes[i].input && !strcmp(options->shapes[i].input, input))
            return &options->shapes[i];
    return NULL;
}

/* The size that the shapes give a symbol; 1 if they say nothing of it. */
static int64_t predict_size_of_symbol(const grt_plan *plan, const grt_memory_options *options, int64_t symbol)
{
    const grt_plan_body *body = &plan->bodies[0];
    for (int32_t i = 0; i < body->n_inputs; i++) {
        const grt_plan_value *v = &body->values[body->inputs[i]];
        const grt_input_shape *shape = find_shape(options, v->name);
        for (int32_t k = 0; shape && k < v->rank && k < shape->rank; k++)
            if (plan->dims[v->dims[k]].op == GRT_DIM_SYMBOL && plan->dims[v->dims[k]].value == symbol)
                return shape->dims[k];
    }
    return 1;
}

static int64_t size_of_dim(const grt_plan *plan, const grt_memory_options *options, int32_t dim)
{
    const grt_dim_expr *e = &plan->dims[dim];
    return e->op == GRT_DIM_CONST    ? e->value
           : e->op == GRT_DIM_SYMBOL ? predict_size_of_symbol(plan, options, e->value)
                                     : 1;
}

static grt_status bind_shape(grt_context *context, const grt_memory_options *options, int32_t i)
{
    const grt_plan *plan = context->executor.bound.plan;
    const grt_plan_value *v = &plan->bodies[0].values[plan->bodies[0].inputs[i]];
    const grt_input_shape *shape = find_shape(options, v->name);
    grt_tensor t = {.dtype = v->dtype, .rank = v->rank, .data = grt_nothing};
    if (v->kind != GRT_KIND_TENSOR)
        return grt_fail(GRT_STATUS_UNSUPPORTED,
                        "grt_model_predict_memory: input '%s' is no tensor: its size is known to runs only",
                        v->name);
    if (shape || t.rank < 0)
        t.rank = shape ? shape->rank : 0;
    for (int32_t k = 0; k < t.rank && k < GRT_MAX_RANK; k++)
        t.dims[k] = shape ? shape->dims[k] : size_of_dim(plan, options, v->dims[k]);
    return grt_context_set_input(context, (size_t)i, &t);
}

static grt_status bind_shapes(grt_context *context, const grt_memory_options *options)
{
    const grt_plan_body *body = grt_context_body(context);
    for (size_t s = 0; s < options->n_shapes; s++) {
        bool found = false;
        for (int32_t i = 0; i < body->n_inputs; i++)
            found = found || (options->shapes[s].input &&
                              !strcmp(options->shapes[s].input, body->values[body->inputs[i]].name));
        if (!found)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_model_predict_memory: there is no input '%s'",
                            options->shapes[s].input ? options->shapes[s].input : "NULL");
    }
    for (int32_t i = 0; i < body->n_inputs; i++)
        GRT_TRY(bind_shape(context, options, i));
    return GRT_OK;
}

static uint64_t private_bytes(void)
{
    char line[256];
    uint64_t kib = 0;
    FILE *f = fopen("/proc/self/smaps_rollup", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Anonymous: %" SCNu64 " kB", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib << 10;
}

/* Blocks of the heap that are in use; 0 where the system does not tell. By name, as a library that refers to
 * mallinfo2 itself does not load with an older glibc than 2.33. */
static uint64_t heap_bytes(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 (*find)(void) = NULL;
    *(void **)&find = dlsym(RTLD_DEFAULT, "mallinfo2");
    if (!find)
        return 0;
    const struct mallinfo2 info = find();
    return (uint64_t)info.uordblks + info.hblkhd;
#else
    return 0;
#endif
}

/* With the kernels and tables of the rehearsal, whose activations nobody has written yet. tables_bytes: of
 * one context. */
static uint64_t host_process_bytes(const grt_memory_info *info, const grt_memory_info *rehearsed,
                                   uint64_t tables_bytes, uint64_t contexts)
{
    const uint64_t now = private_bytes();
    return now ? now + info->total_bytes - info->weights_bytes - rehearsed->kernels_bytes +
                     tables_bytes * (contexts - 1)
               : 0;
}

/* What a block takes of the device, which gives large ones in whole units of its own: a block is taken and
 * given back. One that takes more than twice its size has opened a unit for small ones, which others share.
 */
static uint64_t predicted_block_bytes(grt_device *device, uint64_t bytes)
{
    size_t before = 0, after = 0;
    void *block = NULL;
    if (!bytes || grt_device_in_use(device, &before) != GRT_OK ||
        grt_device_alloc(device, bytes, &block) != GRT_OK)
        return bytes; /* there is no room to try */
    const grt_status status = grt_device_in_use(device, &after);
    grt_device_free(device, block);
    const uint64_t taken = after - before;
    return status == GRT_OK && after > before && taken > bytes && taken <= 2 * bytes ? taken : bytes;
}

/* Each context more has a block of each kind. */
static uint64_t further_contexts_bytes(grt_device *device, const grt_memory_info *one, uint64_t n)
{
    return n ? n * (predicted_block_bytes(device, one->activations_bytes) +
                    predicted_block_bytes(device, one->workspaces_bytes) +
                    predicted_block_bytes(device, one->inputs_bytes))
             : 0;
}

static grt_status device_process_bytes(const grt_session *session, const grt_memory_info *info,
                                       const grt_memory_info *rehearsed, uint64_t contexts,
                                       uint64_t *out_bytes)
{
    grt_device *device = session->device;
    const grt_resident_key key = grt_session_key(session->model, session->shared, session->device->index);
    const bool there = grt_resident_is_there(session->model->runtime->residents, &key);
    size_t now;
    GRT_TRY(grt_device_in_use(device, &now));
    *out_bytes = now + info->kernels_bytes - rehearsed->kernels_bytes +
                 further_contexts_bytes(device, rehearsed, contexts - 1) +
                 (there ? 0 : predicted_block_bytes(device, info->weights_bytes));
    return GRT_OK;
}

static void add_up(grt_memory_info *info)
{
    info->total_bytes = info->weights_bytes + info->kernels_bytes + info->activations_bytes +
                        info->workspaces_bytes + info->inputs_bytes + info->values_bytes + info->state_bytes;
}

static grt_memory_info memory_of(const grt_session *session)
{
    const grt_account *a = session->account;
    grt_memory_info info = {.weights_bytes = grt_account_get(a, GRT_ACCOUNT_WEIGHTS),
                            .kernels_bytes = grt_account_get(a, GRT_ACCOUNT_KERNELS),
                            .activations_bytes = grt_account_get(a, GRT_ACCOUNT_ACTIVATIONS),
                            .workspaces_bytes = grt_account_get(a, GRT_ACCOUNT_WORKSPACES),
                            .inputs_bytes = grt_account_get(a, GRT_ACCOUNT_INPUTS),
                            .values_bytes = grt_account_get(a, GRT_ACCOUNT_VALUES),
                            .state_bytes = grt_account_get(a, GRT_ACCOUNT_STATE),
                            .peak_bytes = grt_account_peak(a),
                            .limit_bytes = grt_account_limit(a)};
    add_up(&info);
    return info;
}

static grt_status prepare_rehearsed(grt_context *context)
{
    grt_executor *executor = &context->executor;
    grt_frame *frame;
    GRT_TRY(grt_binding_check_inputs(&executor->bound));
    GRT_TRY(grt_frame_cache_get(&context->frames, executor, &frame));
    executor->main = frame;
    if (!executor->session->on_device)
        return GRT_OK;
    GRT_TRY(grt_frame_bind(frame));
    (void)grt_run_capture(
        frame); /* which brings the kernels' code to the device; if not, the first run does */
    return GRT_OK;
}

static grt_status rehearse_run(grt_session *session, const grt_memory_options *options,
                               grt_memory_info *out_info)
{
    grt_context *context;
    bool switched = false;
    const grt_memory_info none = memory_of(session);
    const uint64_t heap = heap_bytes();
    GRT_TRY(grt_context_create(session, &context));
    grt_status status = bind_shapes(context, options);
    if (status == GRT_OK)
        status = grt_device_enter(session->device, &switched);
    if (status == GRT_OK) {
        const grt_team team = grt_team_enter(grt_session_team(session), false);
        status = prepare_rehearsed(context);
        grt_team_leave(team);
        grt_device_leave(session->device, switched);
    }
    const grt_memory_info one = memory_of(session);
    const uint64_t grown = heap_bytes() - heap, counted = one.total_bytes - none.total_bytes;
    const uint64_t n = options->contexts > 1 ? (uint64_t)options->contexts : 1;
    grt_memory_info all = one;
    all.kernels_bytes += (one.kernels_bytes - none.kernels_bytes) * (n - 1); /* what shapes keep */
    all.activations_bytes *= n;
    all.workspaces_bytes *= n;
    all.inputs_bytes *= n;
    add_up(&all);
    if (status == GRT_OK && session->on_device)
        status = device_process_bytes(session, &all, &one, n, &all.process_bytes);
    else if (status == GRT_OK)
        all.process_bytes = host_process_bytes(&all, &one, grown > counted ? grown - counted : 0, n);
    all.peak_bytes = all.total_bytes;
    grt_context_release(context);
    *out_info = all;
    return status;
}

static grt_status rehearse(grt_session *session, const char *device, const grt_memory_options *options,
                           grt_memory_info *out_info)
{
    const grt_backend *backend;
    int32_t index;
    void *block;
    session->rehearsal = true;
    GRT_TRY(grt_device_parse(device, &backend, &index));
    GRT_TRY(grt_session_open_device(session, backend, index));
    GRT_TRY(grt_session_place_weights(session, &block));
    GRT_TRY(grt_session_create_kernels(session, session->threads));
    return rehearse_run(session, options, out_info);
}

/* The rehearsal's packed weights were large blocks. When the first of them is freed, glibc gets later ones
 * out of its heap, with holes between them; holes that the rehearsal has written to would be the process's
 * memory for good, beside what the session has. */
static void give_heap_back(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

grt_status grt_model_predict_memory(grt_model *model, const char *device, const grt_memory_options *options,
                                    grt_memory_info *out_info)
{
    grt_memory_options used = {0};
    grt_session *session;
    grt_memory_info info;
    if (!model || !out_info)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_model_predict_memory: %s is NULL",
                        model ? "out_info" : "model");
    GRT_TRY(grt_options_take(&used, sizeof used, options, "grt_memory_options"));
    if (used.threads < 0 || used.threads > GRT_MOST_THREADS || used.contexts < 0 ||
        (used.n_shapes && !used.shapes))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_model_predict_memory: threads or contexts is out of range, or shapes is NULL");
    grt_team_used();
    const grt_sessions_options made = {
        .threads = grt_team_possible(used.threads ? used.threads : grt_team_default()),
        .fallback = used.fallback,
        .compile = "first"}; /* code is memory, too */
    GRT_TRY(grt_session_start(model, &made, 0, &session));
    const grt_status status = rehearse(session, device, &used, &info);
    grt_session_release(session);
    give_heap_back();
    return status == GRT_OK ? grt_info_give(out_info, &info, sizeof info, "grt_memory_info") : status;
}

grt_status grt_session_get_memory(const grt_session *session, grt_memory_info *out_info)
{
    if (!session)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_session_get_memory: session is NULL");
    const grt_memory_info info = memory_of(session);
    return grt_info_give(out_info, &info, sizeof info, "grt_memory_info");
}
