/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/frame_cache.h"

#include "src/base/exit_guard.h"
#include "src/base/log.h"
#include "src/base/span.h"
#include "src/exec/prepare.h"

#include <inttypes.h>
#include <stdlib.h>

static int32_t rank_of(const grt_value *in)
{
    return in->kind == GRT_KIND_TENSOR ? in->t.rank : 0;
}

static bool key_fits(const grt_binding *bound, const grt_cached_frame *cached)
{
    size_t at = 0;
    for (int32_t i = 0; i < grt_binding_body(bound)->n_inputs; i++) {
        const grt_value *in = &bound->inputs[i];
        const int32_t rank = rank_of(in);
        if (at >= cached->key_size || cached->key[at++] != rank)
            return false;
        for (int32_t k = 0; k < rank; k++)
            if (cached->key[at++] != in->t.dims[k])
                return false;
    }
    return at == cached->key_size;
}

static bool key_has(const grt_cached_frame *cached, const grt_input_dims *inputs, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const grt_input_dims *in = &inputs[i];
        if (at >= cached->key_size)
            return false;
        const int64_t rank = cached->key[at++];
        if (in->rank >= 0 && in->rank != rank)
            return false;
        for (int64_t k = 0; k < rank; k++, at++)
            if (in->rank >= 0 && cached->key[at] != (k || in->rows < 0 ? in->dims[k] : in->rows))
                return false;
    }
    return at == cached->key_size;
}

bool grt_frame_cache_has(const grt_frame_cache *cache, const grt_input_dims *inputs, size_t n)
{
    if (cache->last < cache->n && key_has(&cache->frames[cache->last], inputs, n))
        return grt_frame_is_settled(cache->frames[cache->last].frame);
    for (int32_t i = 0; i < cache->n; i++)
        if (key_has(&cache->frames[i], inputs, n))
            return grt_frame_is_settled(cache->frames[i].frame);
    return false;
}

static grt_status frame_cache_make_key(const grt_binding *bound, grt_cached_frame *cached)
{
    const int32_t n_inputs = grt_binding_body(bound)->n_inputs;
    cached->key_size = 0;
    for (int32_t i = 0; i < n_inputs; i++)
        cached->key_size += 1 + (size_t)rank_of(&bound->inputs[i]);
    cached->key = malloc((cached->key_size + 1) * sizeof *cached->key);
    if (!cached->key)
        return grt_fail_memory(cached->key_size * sizeof *cached->key);
    size_t at = 0;
    for (int32_t i = 0; i < n_inputs; i++) {
        const grt_value *in = &bound->inputs[i];
        cached->key[at++] = rank_of(in);
        for (int32_t k = 0; k < rank_of(in); k++)
            cached->key[at++] = in->t.dims[k];
    }
    return GRT_OK;
}

/* What the bound inputs say of the symbols; -1 where nothing. */
static grt_status bind_symbols(const grt_binding *bound, int64_t *symbols, const char **by)
{
    const grt_plan *plan = bound->plan;
    const grt_plan_body *body = grt_binding_body(bound);
    for (int32_t i = 0; i < plan->n_symbols; i++)
        symbols[i] = -1;
    for (int32_t i = 0; i < body->n_inputs; i++) {
        const grt_plan_value *v = &body->values[body->inputs[i]];
        for (int32_t k = 0; v->kind == GRT_KIND_TENSOR && k < v->rank; k++) {
            const grt_dim_expr *e = &plan->dims[v->dims[k]];
            int64_t dim = bound->inputs[i].t.dims[k];
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

static grt_status prepare_frame(grt_executor *executor, grt_frame **out_frame)
{
    const size_t n = (size_t)grt_executor_plan(executor)->n_symbols + 1;
    int64_t *symbols = malloc(n * sizeof *symbols);
    const char **by = malloc(n * sizeof *by);
    grt_status status =
        symbols && by ? bind_symbols(&executor->bound, symbols, by) : grt_fail_memory(n * sizeof *symbols);
    if (status == GRT_OK)
        status = grt_prepare(executor, symbols, out_frame);
    grt_exit_guard_register(); /* kernels may have loaded libraries */
    free(symbols);
    free(by);
    return status;
}

static void release_cached(grt_cached_frame *cached)
{
    grt_frame_release(cached->frame);
    free(cached->key);
    *cached = (grt_cached_frame){0};
}

/* The step at whose results the arena is as long as it gets; -1: none. */
static int32_t arena_end(const grt_frame *frame)
{
    const grt_program *program = frame->program;
    int32_t step = -1;
    size_t end = 0;
    for (int32_t v = 0; v < program->body->n_values; v++) {
        const grt_place *place = &program->places[v];
        const size_t bytes = place->home == GRT_HOME_ARENA ? grt_tensor_bytes(&frame->values[v].t) : 0;
        if (!bytes || place->offset == SIZE_MAX || place->offset + bytes <= end)
            continue;
        end = place->offset + bytes;
        step = place->maker;
    }
    return step;
}

static int32_t largest_workspace(const grt_frame *frame)
{
    int32_t step = -1;
    for (int32_t s = 0; s < frame->program->body->n_steps; s++)
        if (frame->calls[s].workspace_bytes &&
            (step < 0 || frame->calls[s].workspace_bytes > frame->calls[step].workspace_bytes))
            step = s;
    return step;
}

/* The node that a smaller model would begin with. */
static grt_status name_node(grt_status status, const char *what, const grt_frame *frame, int32_t step)
{
    if (status == GRT_OK || step < 0)
        return status;
    const grt_op_desc *desc = &frame->program->body->steps[step].desc;
    return grt_fail_context(status, "memory for %s, most of it wanted at %s node '%s'", what, desc->op,
                            desc->name);
}

static grt_status reserve_memory(grt_executor *executor, const grt_frame *frame)
{
    grt_status status = grt_executor_reserve_arena(executor, frame->program->arena_bytes);
    if (status != GRT_OK)
        return name_node(status, "activations", frame, arena_end(frame));
    status = grt_executor_reserve_workspace(executor, frame->program->workspace_bytes);
    return name_node(status, "workspaces", frame, largest_workspace(frame));
}

static bool has_room(const grt_executor *executor, const grt_frame *frame)
{
    return executor->arena.bytes >= frame->program->arena_bytes &&
           executor->workspace.bytes >= frame->program->workspace_bytes;
}

static grt_status make_cached(grt_executor *executor, grt_cached_frame *out_cached)
{
    grt_cached_frame made = {0};
    grt_status status = frame_cache_make_key(&executor->bound, &made);
    if (status == GRT_OK)
        status = prepare_frame(executor, &made.frame);
    if (status == GRT_OK)
        status = reserve_memory(executor, made.frame);
    if (status == GRT_OK)
        *out_cached = made;
    else
        release_cached(&made);
    return status;
}

struct grt_kept_frame {
    struct grt_kept_frame *next;
    grt_frame *frame;
};

/* What a graph of the caller's points into stays until the context's release. */
static grt_status evict(grt_frame_cache *cache, grt_cached_frame *cached)
{
    if (cached->frame->captured) {
        struct grt_kept_frame *kept = malloc(sizeof *kept);
        if (!kept)
            return grt_fail_memory(sizeof *kept);
        *kept = (struct grt_kept_frame){cache->kept, cached->frame};
        cache->kept = kept;
        cached->frame = NULL;
    }
    release_cached(cached);
    return GRT_OK;
}

static grt_status frame_cache_make_room(grt_frame_cache *cache, grt_executor *executor, int32_t *out_index)
{
    int32_t oldest = 0;
    *out_index = cache->n;
    if (cache->n < GRT_MAX_FRAMES)
        return GRT_OK;
    for (int32_t i = 1; i < cache->n; i++)
        if (cache->frames[i].last_used < cache->frames[oldest].last_used)
            oldest = i;
    grt_frame *gone = cache->frames[oldest].frame;
    GRT_TRY(evict(cache, &cache->frames[oldest]));
    if (executor->main == gone)
        executor->main = NULL;
    cache->frames[oldest] = cache->frames[--cache->n];
    cache->frames[cache->n] = (grt_cached_frame){0};
    *out_index = cache->n;
    return GRT_OK;
}

static grt_status prepare_cached(grt_frame_cache *cache, grt_executor *executor,
                                 grt_cached_frame **out_cached)
{
    grt_cached_frame made;
    int32_t index;
    GRT_TRY(
        grt_in_flight_settle(&executor->flight)); /* memory that moves now, or a frame that goes, is in use */
    GRT_TRY(make_cached(executor, &made));
    grt_status status = frame_cache_make_room(cache, executor, &index);
    if (status != GRT_OK) {
        release_cached(&made);
        return status;
    }
    cache->frames[index] = made;
    cache->n++;
    cache->prepared++;
    GRT_LOG(DEBUG, "run",
            "%s: prepared combination %llu of dims: %d instructions, %zu bytes of arena, %zu of workspace",
            executor->session->name, (unsigned long long)cache->prepared,
            (int)made.frame->program->n_instructions, made.frame->program->arena_bytes,
            made.frame->program->workspace_bytes);
    *out_cached = &cache->frames[index];
    grt_algo_cache *algos = executor->session->model->runtime->algos;
    if (grt_algo_cache_is_dirty(algos)) /* what was chosen now shall outlive the process, however that ends */
        grt_algo_cache_save(algos);
    return GRT_OK;
}

static grt_status add_frame(grt_frame_cache *cache, grt_executor *executor, grt_cached_frame **out_cached)
{
    GRT_SPAN_ENTER(span, .kind = GRT_SPAN_PREPARE, .device = executor->session->name);
    const grt_status status = prepare_cached(cache, executor, out_cached);
    GRT_SPAN_LEAVE(span);
    return status;
}

static grt_cached_frame *find_frame(grt_frame_cache *cache, const grt_executor *executor)
{
    if (cache->last < cache->n && key_fits(&executor->bound, &cache->frames[cache->last]))
        return &cache->frames[cache->last];
    for (int32_t i = 0; i < cache->n; i++)
        if (key_fits(&executor->bound, &cache->frames[i]))
            return &cache->frames[i];
    return NULL;
}

grt_status grt_frame_cache_get(grt_frame_cache *cache, grt_executor *executor, grt_frame **out_frame)
{
    grt_cached_frame *found = find_frame(cache, executor);
    if (!found)
        GRT_TRY(add_frame(cache, executor, &found));
    if (!has_room(executor, found->frame)) /* larger dims were refused meanwhile */
        GRT_TRY(reserve_memory(executor, found->frame));
    cache->last = (int32_t)(found - cache->frames);
    found->last_used = ++cache->uses;
    *out_frame = found->frame;
    return GRT_OK;
}

grt_status grt_frame_cache_clear(grt_frame_cache *cache, uint64_t *bytes)
{
    while (cache->n) {
        const grt_frame *last = cache->frames[cache->n - 1].frame;
        const uint64_t freed = last->input_block && !last->captured ? last->program->input_bytes : 0;
        GRT_TRY(evict(cache, &cache->frames[cache->n - 1]));
        cache->n--;
        *bytes += freed;
    }
    cache->last = 0;
    return GRT_OK;
}

void grt_frame_cache_release(grt_frame_cache *cache)
{
    for (int32_t i = 0; i < cache->n; i++)
        release_cached(&cache->frames[i]);
    for (struct grt_kept_frame *k = cache->kept, *next; k; k = next) {
        next = k->next;
        grt_frame_release(k->frame);
        free(k);
    }
}
