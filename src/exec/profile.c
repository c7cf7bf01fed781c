/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: a frame of the main body for each combination of input dims, the last few of which are kept. */
#include "src/exec/in_flight.h"

#include <inttypes.h>
#include <stdlib.h>

static size_t key_size(const grt_context *context)
{
    size_t n = 0;
    for (int32_t i = 0; i < grt_context_body(context)->n_inputs; i++)
        n += 1 + (size_t)(context->inputs[i].kind == GRT_KIND_TENSOR ? context->inputs[i].t.rank : 0);
    return n;
}

static bool key_fits(const grt_context *context, const grt_frame *frame)
{
    size_t at = 0;
    for (int32_t i = 0; i < grt_context_body(context)->n_inputs; i++) {
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
    for (int32_t i = 0; i < grt_context_body(context)->n_inputs; i++) {
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
    const grt_plan *plan = grt_context_plan(context);
    const grt_plan_body *body = grt_context_body(context);
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
                                "dim %d of input '%s' is %" PRId64 ", but '%s' is %" PRId64
                                " by input '%s'; if the model means two sizes by one name, compile it with "
                                "that name among the free dims",
                                k, v->name, dim, plan->symbols[e->value], symbols[e->value], by[e->value]);
            symbols[e->value] = dim;
            by[e->value] = v->name;
        }
    }
    return GRT_OK;
}

static grt_status new_profile(grt_context *context, grt_frame **out_frame)
{
    size_t n = (size_t)grt_context_plan(context)->n_symbols + 1;
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
    grt_context_drop_frame(context, context->profiles[oldest]);
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

/* No run is in flight. */
static grt_status reserve(grt_context *context, size_t bytes, const char *what, char **memory, size_t *size,
                          bool *captured)
{
    if (bytes <= *size)
        return GRT_OK;
    void *grown;
    grt_device *device = context->session->device;
    grt_status status = grt_device_alloc(device, bytes, &grown);
    if (status != GRT_OK)
        return grt_fail_context(status, "memory for %s", what);
    status = grt_context_drop_memory(context, *memory, *captured);
    if (status != GRT_OK) {
        grt_device_free(device, grown);
        return status;
    }
    *memory = grown;
    *size = bytes;
    *captured = false;
    return GRT_OK;
}

grt_status grt_context_reserve_arena(grt_context *context, size_t bytes)
{
    return reserve(context, bytes, "activations", &context->arena, &context->arena_bytes,
                   &context->arena_captured);
}

grt_status grt_context_reserve_workspace(grt_context *context, size_t bytes)
{
    return reserve(context, bytes, "workspaces", &context->workspace, &context->workspace_bytes,
                   &context->workspace_captured);
}

grt_status grt_context_choose_profile(grt_context *context, grt_frame **out_frame)
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
    GRT_TRY(grt_context_settle(context)); /* memory that moves now, or a frame that goes, may be in use */
    GRT_TRY(new_profile(context, &frame));
    grt_status status = grt_context_reserve_arena(context, frame->memory.arena_bytes);
    if (status == GRT_OK)
        status = grt_context_reserve_workspace(context, workspace_of(frame));
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
