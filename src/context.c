/* Contexts: binding inputs and outputs, choosing the profile for their dims, running. */
#include "src/context.h"

#include "src/base/openmp.h"
#include "src/base/structs.h"
#include "src/device_value.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const grt_plan *plan_of(const grt_context *context)
{
    return context->session->model->plan;
}

static const grt_plan_body *main_body(const grt_context *context)
{
    return &plan_of(context)->bodies[0];
}

/* ---- life ---- */

static grt_status alloc_output(const grt_run *run, int32_t i, int32_t rank, const int64_t *dims)
{
    const grt_context *context = run->hooks->executor;
    grt_value *value = (grt_value *)run->out[i];
    return grt_device_value_alloc(run->device, context->pool, value, value->t.dtype, rank, dims);
}

static char *alloc_bytes(const grt_run *run, size_t bytes)
{
    const grt_context *context = run->hooks->executor;
    return grt_arena_alloc(context->strings, bytes);
}

static grt_status init(grt_context *context)
{
    const grt_plan_body *body = main_body(context);
    context->bodies = calloc((size_t)plan_of(context)->n_bodies, sizeof *context->bodies);
    context->inputs = calloc((size_t)body->n_inputs + 1, sizeof *context->inputs);
    context->input_set = calloc((size_t)body->n_inputs + 1, sizeof *context->input_set);
    context->outputs = calloc((size_t)body->n_outputs + 1, sizeof *context->outputs);
    context->output_set = calloc((size_t)body->n_outputs + 1, sizeof *context->output_set);
    context->kept = calloc((size_t)body->n_outputs + 1, sizeof *context->kept);
    context->strings = grt_arena_create();
    if (!context->bodies || !context->inputs || !context->input_set || !context->outputs ||
        !context->output_set || !context->kept || !context->strings)
        return grt_fail_memory(0);
#ifdef GRT_DEBUG
    context->debug = true;
#else
    context->debug = getenv("GRAPHRT_DEBUG") != NULL;
#endif
    atomic_flag_clear(&context->busy);
    context->hooks = (grt_run_hooks){alloc_output, alloc_bytes, context};
    if (context->session->on_device) {
        grt_device *device = context->session->device;
        context->results = calloc((size_t)body->n_outputs + 1, sizeof *context->results);
        if (!context->results)
            return grt_fail_memory(0);
        GRT_TRY(device->vtable->stream_create(device, &context->stream));
        GRT_TRY(grt_device_pool_create(device, &context->pool));
    }
    return grt_shape_scratch_create(&context->scratch);
}

grt_status grt_context_create(grt_session *session, grt_context **out_context)
{
    if (!session || !out_context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_create: %s is NULL",
                        session ? "out_context" : "session");
    grt_context *context = calloc(1, sizeof *context);
    if (!context)
        return grt_fail_memory(sizeof *context);
    context->session = grt_session_retain(session);
    grt_status status = init(context);
    if (status != GRT_OK) {
        grt_context_release(context);
        return status;
    }
    *out_context = context;
    return GRT_OK;
}

static void release_events(grt_context *context)
{
    grt_device *device = context->session->device;
    for (size_t i = 0; context->events && i <= context->n_times; i++)
        if (context->events[i])
            device->vtable->event_release(device, context->events[i]);
    free(context->events);
    for (int i = 0; i < 2; i++)
        if (context->bounds[i])
            device->vtable->event_release(device, context->bounds[i]);
}

void grt_context_release(grt_context *context)
{
    if (!context)
        return;
    for (int32_t i = 0; i < context->n_profiles; i++)
        grt_frame_release(context->profiles[i]);
    for (int32_t i = 0; context->bodies && i < plan_of(context)->n_bodies; i++)
        grt_frame_release(context->bodies[i]);
    free(context->bodies);
    free(context->inputs);
    free(context->input_set);
    free(context->outputs);
    free(context->output_set);
    free(context->kept);
    free(context->times);
    release_events(context);
    free(context->host_workspace);
    for (int32_t i = 0; context->results && i < main_body(context)->n_outputs; i++)
        grt_value_clear(&context->results[i]);
    free(context->results);
    grt_device_pool_release(context->pool);
    if (context->stream)
        context->session->device->vtable->stream_release(context->session->device, context->stream);
    grt_arena_release(context->strings);
    grt_shape_scratch_release(&context->scratch);
    grt_device_free(context->session->device, context->arena);
    grt_device_free(context->session->device, context->workspace);
    grt_session_release(context->session);
    free(context);
}

/* ---- binding ---- */

static const char *kind_name(grt_kind kind)
{
    return kind == GRT_KIND_TENSOR ? "tensor" : kind == GRT_KIND_SEQUENCE ? "sequence" : "optional";
}

static grt_status check_io(const grt_context *context, size_t index, bool output,
                           const grt_plan_value **out_value)
{
    const char *what = output ? "output" : "input";
    if (!context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "the context is NULL");
    const grt_plan_body *body = main_body(context);
    int32_t n = output ? body->n_outputs : body->n_inputs;
    if (index >= (size_t)n)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s %zu does not exist; the model has %d", what, index,
                        n);
    *out_value = &body->values[(output ? body->outputs : body->inputs)[index]];
    return GRT_OK;
}

/* "float32[2x?x8]", as the model wants it */
static const char *wanted_text(const grt_plan *plan, const grt_plan_value *v, char buffer[GRT_TYPE_TEXT_SIZE])
{
    grt_tensor t = {.dtype = v->dtype, .rank = v->rank};
    for (int32_t i = 0; i < v->rank; i++)
        t.dims[i] = plan->dims[v->dims[i]].op == GRT_DIM_CONST ? plan->dims[v->dims[i]].value : -1;
    return grt_tensor_text(&t, buffer);
}

enum { DEVICE_ALIGNMENT = 16 };

static grt_status check_device_tensor(const grt_context *context, const grt_plan_value *v,
                                      const grt_tensor *tensor)
{
    grt_device *device = context->session->device;
    if (!context->session->on_device || tensor->device != device->index)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "'%s': memory of device %d cannot be bound to a session on %s:%d", v->name,
                        tensor->device, device->backend->name, device->index);
    if ((uintptr_t)tensor->data % DEVICE_ALIGNMENT)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "'%s': device memory must be aligned to %d bytes, found %p", v->name,
                        DEVICE_ALIGNMENT, tensor->data);
    if (context->debug && device->vtable->check_pointer &&
        device->vtable->check_pointer(device, tensor->data) != GRT_OK)
        return grt_fail_context(GRT_STATUS_INVALID_ARGUMENT, "'%s'", v->name);
    return GRT_OK;
}

static grt_status check_tensor(const grt_context *context, const grt_plan_value *v, const grt_tensor *tensor)
{
    const grt_plan *plan = plan_of(context);
    char wanted[GRT_TYPE_TEXT_SIZE], found[GRT_TYPE_TEXT_SIZE];
    bool fits = tensor->rank >= 0 && tensor->rank <= GRT_MAX_RANK && tensor->dtype == v->dtype &&
                (v->rank < 0 || v->rank == tensor->rank);
    for (int32_t i = 0; fits && i < tensor->rank; i++) {
        fits = tensor->dims[i] >= 0;
        if (fits && v->rank >= 0 && plan->dims[v->dims[i]].op == GRT_DIM_CONST)
            fits = plan->dims[v->dims[i]].value == tensor->dims[i];
    }
    if (!fits) {
        if (tensor->rank > GRT_MAX_RANK)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "'%s': rank %d; at most %d are supported", v->name,
                            tensor->rank, GRT_MAX_RANK);
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "'%s' must be %s, found %s", v->name,
                        wanted_text(plan, v, wanted), grt_tensor_text(tensor, found));
    }
    if (tensor->memory < GRT_MEMORY_HOST || tensor->memory > GRT_MEMORY_DEVICE)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "'%s': there is no kind of memory %d", v->name,
                        (int)tensor->memory);
    size_t bytes = grt_tensor_bytes(tensor);
    if (bytes == SIZE_MAX)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "'%s': the size of %s overflows", v->name,
                        grt_tensor_text(tensor, found));
    if (bytes && !tensor->data)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "'%s': %s has no data", v->name,
                        grt_tensor_text(tensor, found));
    return grt_is_device_tensor(tensor) && bytes ? check_device_tensor(context, v, tensor) : GRT_OK;
}

/* A tensor of no elements may have no data; kernels get a pointer all the same. */
static char nothing[64];

grt_status grt_context_set_input(grt_context *context, size_t index, const grt_tensor *tensor)
{
    const grt_plan_value *v;
    GRT_TRY(check_io(context, index, false, &v));
    if (!tensor) {
        context->input_set[index] = false;
        return GRT_OK;
    }
    if (v->kind != GRT_KIND_TENSOR)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "input '%s' is a %s: use grt_context_set_input_value",
                        v->name, kind_name(v->kind));
    GRT_TRY(check_tensor(context, v, tensor));
    context->inputs[index] = (grt_value){.t = *tensor};
    if (!tensor->data)
        context->inputs[index].t.data = nothing;
    context->input_set[index] = true;
    return GRT_OK;
}

grt_status grt_context_set_input_value(grt_context *context, size_t index, const grt_value *value)
{
    const grt_plan_value *v;
    GRT_TRY(check_io(context, index, false, &v));
    if (!value) {
        context->input_set[index] = false;
        return GRT_OK;
    }
    if (value->kind == GRT_KIND_TENSOR && v->kind == GRT_KIND_TENSOR)
        return grt_context_set_input(context, index, &value->t);
    if (value->kind != v->kind || (v->dtype && value->t.dtype && value->t.dtype != v->dtype))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "input '%s' must be a %s of %s, found a %s of %s",
                        v->name, kind_name(v->kind), grt_dtype_name(v->dtype), kind_name(value->kind),
                        grt_dtype_name(value->t.dtype));
    context->inputs[index] = *value; /* borrowed: the frame never releases it */
    context->input_set[index] = true;
    return GRT_OK;
}

/* What the last run wrote stays to be had when its output is bound elsewhere for the next. */
static void keep_output(grt_context *context, size_t index)
{
    grt_tensor last;
    if (!context->ran ||
        main_body(context)->values[main_body(context)->outputs[index]].kind != GRT_KIND_TENSOR ||
        grt_context_get_output(context, index, &last) != GRT_OK)
        return;
    context->kept[index] = last;
    context->any_kept = true;
}

grt_status grt_context_set_output(grt_context *context, size_t index, const grt_tensor *tensor)
{
    const grt_plan_value *v;
    GRT_TRY(check_io(context, index, true, &v));
    if (!tensor) {
        keep_output(context, index);
        context->output_set[index] = false;
        return GRT_OK;
    }
    if (v->kind != GRT_KIND_TENSOR || v->dtype == GRT_DTYPE_STRING)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "output '%s' cannot be written into memory of the caller's: it is %s", v->name,
                        v->kind == GRT_KIND_TENSOR ? "of strings" : kind_name(v->kind));
    GRT_TRY(check_tensor(context, v, tensor));
    keep_output(context, index);
    context->outputs[index] = *tensor;
    context->output_set[index] = true;
    return GRT_OK;
}

/* ---- profiles ---- */

static grt_status check_inputs(grt_context *context)
{
    const grt_plan_body *body = main_body(context);
    for (int32_t i = 0; i < body->n_inputs; i++) {
        const grt_plan_value *v = &body->values[body->inputs[i]];
        if (context->input_set[i])
            continue;
        if (v->weight < 0)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "input '%s' is not set", v->name);
        context->inputs[i] = (grt_value){.t = plan_of(context)->weights[v->weight]};
    }
    return GRT_OK;
}

static size_t key_size(const grt_context *context)
{
    size_t n = 0;
    for (int32_t i = 0; i < main_body(context)->n_inputs; i++)
        n += 1 + (size_t)(context->inputs[i].kind == GRT_KIND_TENSOR ? context->inputs[i].t.rank : 0);
    return n;
}

static bool key_fits(const grt_context *context, const grt_frame *frame)
{
    size_t at = 0;
    for (int32_t i = 0; i < main_body(context)->n_inputs; i++) {
        const grt_value *in = &context->inputs[i];
        int32_t rank = in->kind == GRT_KIND_TENSOR ? in->t.rank : 0;
        if (at >= frame->key_size || frame->key[at++] != rank)
            return false;
        for (int32_t k = 0; k < rank; k++)
            if (frame->key[at++] != in->t.dims[k])
                return false;
    }
    return at == frame->key_size;
}

static grt_status make_key(const grt_context *context, grt_frame *frame)
{
    frame->key_size = key_size(context);
    frame->key = malloc((frame->key_size + 1) * sizeof *frame->key);
    if (!frame->key)
        return grt_fail_memory(frame->key_size * sizeof *frame->key);
    size_t at = 0;
    for (int32_t i = 0; i < main_body(context)->n_inputs; i++) {
        const grt_value *in = &context->inputs[i];
        int32_t rank = in->kind == GRT_KIND_TENSOR ? in->t.rank : 0;
        frame->key[at++] = rank;
        for (int32_t k = 0; k < rank; k++)
            frame->key[at++] = in->t.dims[k];
    }
    return GRT_OK;
}

/* What the bound inputs say of the symbols; -1 where nothing. */
static grt_status bind_symbols(const grt_context *context, int64_t *symbols, const char **by)
{
    const grt_plan *plan = plan_of(context);
    const grt_plan_body *body = main_body(context);
    for (int32_t i = 0; i < plan->n_symbols; i++)
        symbols[i] = -1;
    for (int32_t i = 0; i < body->n_inputs; i++) {
        const grt_plan_value *v = &body->values[body->inputs[i]];
        for (int32_t k = 0; v->kind == GRT_KIND_TENSOR && k < v->rank; k++) {
            const grt_dim_expr *e = &plan->dims[v->dims[k]];
            int64_t dim = context->inputs[i].t.dims[k];
            if (e->op != GRT_DIM_SYMBOL)
                continue;
            if (symbols[e->value] >= 0 && symbols[e->value] != dim)
                return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                                "dim %d of input '%s' is %" PRId64 ", but '%s' is %" PRId64 " by input '%s'",
                                k, v->name, dim, plan->symbols[e->value], symbols[e->value], by[e->value]);
            symbols[e->value] = dim;
            by[e->value] = v->name;
        }
    }
    return GRT_OK;
}

static grt_status new_profile(grt_context *context, grt_frame **out_frame)
{
    size_t n = (size_t)plan_of(context)->n_symbols + 1;
    int64_t *symbols = malloc(n * sizeof *symbols);
    const char **by = malloc(n * sizeof *by);
    grt_status status =
        symbols && by ? bind_symbols(context, symbols, by) : grt_fail_memory(n * sizeof *symbols);
    if (status == GRT_OK)
        status = grt_frame_create(context, 0, symbols, out_frame);
    free(symbols);
    free(by);
    if (status != GRT_OK)
        return status;
    status = make_key(context, *out_frame);
    if (status != GRT_OK)
        grt_frame_release(*out_frame);
    return status;
}

static void evict_oldest(grt_context *context)
{
    int32_t oldest = 0;
    for (int32_t i = 1; i < context->n_profiles; i++)
        if (context->profiles[i]->last_used < context->profiles[oldest]->last_used)
            oldest = i;
    if (context->current == context->profiles[oldest])
        context->current = NULL;
    grt_frame_release(context->profiles[oldest]);
    context->profiles[oldest] = context->profiles[--context->n_profiles];
}

static size_t workspace_of(const grt_frame *frame)
{
    size_t bytes = 0;
    for (int32_t s = 0; s < frame->body->n_steps; s++)
        if (frame->steps[s].call.workspace_bytes > bytes)
            bytes = frame->steps[s].call.workspace_bytes;
    return bytes;
}

static grt_status reserve(grt_device *device, size_t bytes, const char *what, char **memory, size_t *size)
{
    if (bytes <= *size)
        return GRT_OK;
    void *grown;
    grt_status status = grt_device_alloc(device, bytes, &grown);
    if (status != GRT_OK)
        return grt_fail_context(status, "memory for %s", what);
    grt_device_free(device, *memory);
    *memory = grown;
    *size = bytes;
    return GRT_OK;
}

static grt_status choose_profile(grt_context *context, grt_frame **out_frame)
{
    if (context->current && key_fits(context, context->current)) {
        *out_frame = context->current;
        return GRT_OK;
    }
    for (int32_t i = 0; i < context->n_profiles; i++)
        if (key_fits(context, context->profiles[i])) {
            *out_frame = context->profiles[i];
            return GRT_OK;
        }
    grt_frame *frame;
    grt_device *device = context->session->device;
    GRT_TRY(new_profile(context, &frame));
    grt_status status =
        reserve(device, frame->memory.arena_bytes, "activations", &context->arena, &context->arena_bytes);
    if (status == GRT_OK)
        status = reserve(device, workspace_of(frame), "workspaces", &context->workspace,
                         &context->workspace_bytes);
    if (status != GRT_OK) {
        grt_frame_release(frame);
        return status;
    }
    if (context->n_profiles == GRT_MAX_PROFILES)
        evict_oldest(context);
    context->profiles[context->n_profiles++] = frame;
    context->reshapes++;
    *out_frame = frame;
    grt_algo_cache *algos = context->session->model->runtime->algos;
    if (grt_algo_cache_is_dirty(algos)) /* what was chosen now shall outlive the process, however that ends */
        grt_algo_cache_save(algos);
    return GRT_OK;
}

/* ---- running ---- */

/* Outputs that could not be written in place: inputs or constants handed through, dynamic shapes, one value
 * twice. */
static grt_status copy_outputs(grt_context *context, grt_frame *frame)
{
    for (int32_t i = 0; i < frame->body->n_outputs; i++) {
        if (!context->output_set[i] || grt_is_device_tensor(&context->outputs[i]))
            continue;
        const grt_tensor *to = &context->outputs[i];
        const grt_tensor *from =
            context->results ? &context->results[i].t : &frame->values[frame->body->outputs[i]].t;
        char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
        if (!grt_tensor_same_type(from, to))
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "output '%s' is %s, the memory bound to it is for %s",
                            frame->body->values[frame->body->outputs[i]].name, grt_tensor_text(from, a),
                            grt_tensor_text(to, b));
        if (from->data != to->data)
            memmove(to->data, from->data, grt_tensor_bytes(from));
    }
    return GRT_OK;
}

static grt_status check_bound_outputs(grt_context *context, const grt_frame *frame)
{
    for (int32_t i = 0; i < frame->body->n_outputs; i++) {
        int32_t v = frame->body->outputs[i];
        if (!context->output_set[i] || !frame->known[v] || frame->dynamic[v])
            continue;
        char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
        if (!grt_tensor_same_type(&frame->values[v].t, &context->outputs[i]))
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "output '%s' will be %s, the memory bound to it is for %s",
                            frame->body->values[v].name, grt_tensor_text(&frame->values[v].t, a),
                            grt_tensor_text(&context->outputs[i], b));
    }
    return GRT_OK;
}

/* A device session with host inputs and outputs: copies around the steps, all in the order of one stream. */
static grt_status run_on_device(grt_context *context, grt_frame *frame)
{
    GRT_TRY(grt_device_make_current(context->session->device));
    GRT_TRY(grt_frame_upload_inputs(frame));
    GRT_TRY(grt_frame_run(frame));
    GRT_TRY(grt_frame_copy_on_device(frame));
    return grt_frame_download_outputs(frame);
}

/* Everything up to the point where steps are run or enqueued. */
static grt_status prepare(grt_context *context, grt_frame **out_frame)
{
    grt_frame *frame;
    context->ran = false;
    if (context->any_kept)
        memset(context->kept, 0, (size_t)main_body(context)->n_outputs * sizeof *context->kept);
    context->any_kept = false;
    GRT_TRY(check_inputs(context));
    GRT_TRY(choose_profile(context, &frame));
    if (context->current && context->current != frame)
        grt_frame_clear(context->current);
    context->current = frame;
    frame->last_used = ++context->runs;
    grt_frame_clear(frame);
    grt_arena_reset(context->strings);
    GRT_TRY(check_bound_outputs(context, frame));
    GRT_TRY(grt_frame_bind(frame));
    *out_frame = frame;
    return GRT_OK;
}

static grt_status run_and_wait(grt_context *context)
{
    grt_frame *frame;
    GRT_TRY(prepare(context, &frame));
    if (context->session->on_device)
        GRT_TRY(run_on_device(context, frame));
    else
        GRT_TRY(grt_frame_run(frame));
    GRT_TRY(copy_outputs(context, frame));
    context->ran = true;
    return GRT_OK;
}

/* Two threads in one context would write over each other's activations. */
static grt_status enter(grt_context *context, const char *function)
{
    if (!context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: the context is NULL", function);
    if (atomic_flag_test_and_set_explicit(&context->busy, memory_order_acquire))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "%s: another thread runs this context; give each thread a context of its own",
                        function);
    return GRT_OK;
}

static void leave(grt_context *context)
{
    atomic_flag_clear_explicit(&context->busy, memory_order_release);
}

grt_status grt_context_run(grt_context *context)
{
    GRT_TRY(enter(context, "grt_context_run"));
    const int32_t team = grt_team_resize(context->session->threads);
    grt_status status = run_and_wait(context);
    grt_team_resize(team);
    leave(context);
    return status;
}

/* Inputs and outputs of an enqueued run stay on the device: nothing could wait for their copies. */
static grt_status check_async(const grt_context *context)
{
    const grt_plan_body *body = main_body(context);
    if (!context->session->on_device)
        return grt_fail(GRT_STATUS_UNSUPPORTED,
                        "grt_context_run_async: a session on %s has no streams; use grt_context_run",
                        context->session->device->backend->name);
    for (int32_t i = 0; i < body->n_inputs; i++)
        if (context->input_set[i] && !grt_is_device_tensor(&context->inputs[i].t))
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "grt_context_run_async: input '%s' is in host memory; bind device memory",
                            body->values[body->inputs[i]].name);
    for (int32_t i = 0; i < body->n_outputs; i++)
        if (context->output_set[i] && !grt_is_device_tensor(&context->outputs[i]))
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "grt_context_run_async: output '%s' is bound to host memory; bind device memory",
                            body->output_names[i]);
    return GRT_OK;
}

static grt_status run_async(grt_context *context, void *stream)
{
    grt_frame *frame;
    GRT_TRY(check_async(context));
    GRT_TRY(grt_device_make_current(context->session->device));
    GRT_TRY(prepare(context, &frame));
    bool defaults = false;
    for (int32_t i = 0; i < frame->body->n_inputs; i++)
        defaults = defaults || !context->input_set[i];
    if (defaults) { /* these are in host memory */
        GRT_TRY(grt_frame_upload_inputs(frame));
        GRT_TRY(grt_device_wait(context->session->device, context->stream));
    }
    void *used = stream ? stream : context->stream;
    GRT_TRY(grt_frame_run_async(frame, used));
    GRT_TRY(grt_frame_copy_on_device(frame));
    for (int32_t i = 0; i < frame->body->n_outputs; i++) { /* views */
        grt_value_clear(&context->results[i]);
        context->results[i].t = frame->values[frame->body->outputs[i]].t;
        context->results[i].t.memory = GRT_MEMORY_DEVICE;
        context->results[i].t.device = context->session->device->index;
    }
    context->ran = true;
    return GRT_OK;
}

grt_status grt_context_run_async(grt_context *context, void *stream)
{
    GRT_TRY(enter(context, "grt_context_run_async"));
    grt_status status = run_async(context, stream);
    leave(context);
    return status;
}

static grt_status output_value(const grt_context *context, size_t index, const grt_value **out_value)
{
    const grt_plan_value *v;
    GRT_TRY(check_io(context, index, true, &v));
    if (!context->ran)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "output '%s' has no value: there was no successful run",
                        v->name);
    *out_value = context->results ? &context->results[index]
                                  : &context->current->values[main_body(context)->outputs[index]];
    return GRT_OK;
}

grt_status grt_context_get_output(grt_context *context, size_t index, grt_tensor *out_tensor)
{
    const grt_value *value;
    if (!out_tensor)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_get_output: out_tensor is NULL");
    GRT_TRY(output_value(context, index, &value));
    if (value->kind != GRT_KIND_TENSOR)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "output %zu is a %s: use grt_context_get_output_value",
                        index, kind_name(value->kind));
    if (context->kept[index].dtype != GRT_DTYPE_NONE)
        *out_tensor = context->kept[index];
    else
        *out_tensor = context->output_set[index] ? context->outputs[index] : value->t;
    return GRT_OK;
}

grt_status grt_context_get_output_value(grt_context *context, size_t index, grt_value **out_value)
{
    const grt_value *value;
    if (!out_value)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_get_output_value: out_value is NULL");
    GRT_TRY(output_value(context, index, &value));
    grt_value *copy = calloc(1, sizeof *copy);
    if (!copy)
        return grt_fail_memory(sizeof *copy);
    grt_status status = grt_value_copy(copy, value);
    if (status != GRT_OK) {
        free(copy);
        return status;
    }
    *out_value = copy;
    return GRT_OK;
}

/* ---- reports ---- */

grt_status grt_context_get_stats(const grt_context *context, grt_context_stats *out_stats)
{
    if (!context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_get_stats: context is NULL");
    grt_context_stats stats = {.runs = context->runs,
                               .reshapes = context->reshapes,
                               .dynamic_bytes = grt_device_pool_bytes(context->pool),
                               .host_us = context->host_us,
                               .device_ms = context->measures ? context->device_ms : 0};
    if (context->current)
        stats.arena_bytes = context->current->memory.arena_bytes + context->workspace_bytes;
    return grt_info_give(out_stats, &stats, sizeof stats, "grt_context_stats");
}

grt_status grt_context_get_replay(const grt_context *context, grt_replay_info *out_info)
{
    if (!context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_get_replay: context is NULL");
    if (!context->current)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_get_replay: there was no run");
    grt_replay_info info = {0};
    grt_frame_get_replay(context->current, &info);
    return grt_info_give(out_info, &info, sizeof info, "grt_replay_info");
}

void grt_context_set_timing(grt_context *context, bool on)
{
    if (!context)
        return;
    if (on && !context->times) {
        context->n_times = (size_t)main_body(context)->n_steps;
        context->times = calloc(context->n_times + 1, sizeof *context->times);
    }
    context->timing = on && context->times;
}

bool grt_context_time_device(grt_context *context, bool on)
{
    if (!context)
        return false;
    context->measures = on && context->session->on_device && context->session->device->vtable->event_create;
    return context->measures;
}

size_t grt_context_step_times(const grt_context *context, const grt_step_time **out_times)
{
    if (out_times)
        *out_times = context ? context->times : NULL;
    return context && context->timing ? context->n_times : 0;
}
