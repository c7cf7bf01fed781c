/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/executor.h"

#include <stdlib.h>

static grt_status executor_alloc_output(const grt_run *run, int32_t i, int32_t rank, const int64_t *dims)
{
    const grt_executor *executor = run->hooks->executor;
    grt_value *value = (grt_value *)run->out[i];
    return grt_device_value_alloc(run->device, executor->pool, value, value->t.dtype, rank, dims);
}

static char *executor_alloc_bytes(const grt_run *run, size_t bytes)
{
    const grt_executor *executor = run->hooks->executor;
    return grt_arena_alloc(executor->strings, bytes);
}

grt_status grt_executor_hold(grt_executor *executor, const char *function)
{
    if (!atomic_flag_test_and_set_explicit(&executor->busy, memory_order_acquire))
        return GRT_OK;
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                    "%s: another thread runs this context; give each thread a context of its own", function);
}

void grt_executor_let_go(grt_executor *executor)
{
    atomic_flag_clear_explicit(&executor->busy, memory_order_release);
}

bool grt_executor_debugs(void)
{
#ifdef GRT_DEBUG
    return true;
#else
    return getenv("GRAPHRT_DEBUG") != NULL;
#endif
}

grt_status grt_executor_create(grt_session *session, grt_executor *executor)
{
    atomic_flag_clear(&executor->busy);
    executor->session = grt_session_retain(session);
    executor->flight.device = session->device;
    executor->arena.kind = GRT_ACCOUNT_ACTIVATIONS;
    executor->workspace.kind = GRT_ACCOUNT_WORKSPACES;
    executor->debug = grt_executor_debugs();
    executor->hooks = (grt_run_hooks){.alloc_output = executor_alloc_output,
                                      .alloc_bytes = executor_alloc_bytes,
                                      .executor = executor,
                                      .local = &executor->local};
    const size_t n_bodies = (size_t)grt_executor_plan(executor)->n_bodies;
    executor->bodies = calloc(n_bodies, sizeof *executor->bodies);
    executor->strings = grt_arena_create();
    if (!executor->bodies || !executor->strings)
        return grt_fail_memory(n_bodies * sizeof *executor->bodies);
    GRT_TRY(grt_binding_create(grt_executor_plan(executor), &executor->bound));
    GRT_TRY(grt_shape_scratch_create(&executor->scratch));
    if (!session->on_device)
        return GRT_OK;
    GRT_TRY(grt_device_stream_create(session->device, session->priority, &executor->stream));
    return grt_device_heap_create(session->device, session->account, &executor->pool);
}

static void release_region(grt_executor *executor, grt_region *region)
{
    grt_executor_free(executor, region->kind, region->bytes, region->data);
    grt_account_give(executor->session->account, region->kind, region->kept_bytes);
}

void grt_executor_release(grt_executor *executor)
{
    grt_device *device = grt_executor_device(executor);
    grt_in_flight_release(&executor->flight);
    grt_device_local_release(device, executor->local);
    grt_device_heap_release(executor->pool);
    grt_device_stream_release(device, executor->stream);
    release_region(executor, &executor->arena);
    release_region(executor, &executor->workspace);
    free(executor->host_workspace);
    grt_arena_release(executor->strings);
    grt_shape_scratch_release(&executor->scratch);
    grt_binding_release(&executor->bound);
    grt_weights_version_give(executor->weights);
    free(executor->bodies);
}

/* A run in flight reads the old ones. */
static grt_status change_weights(grt_executor *executor)
{
    GRT_TRY(grt_in_flight_settle(&executor->flight));
    grt_weights_version *old = executor->weights;
    executor->weights = grt_kept_weights_take(&executor->session->kept, &executor->weights_number);
    executor->bound.kept = executor->weights ? executor->weights->values : NULL;
    grt_weights_version_give(old);
    return GRT_OK;
}

grt_status grt_executor_take_weights(grt_executor *executor)
{
    return atomic_load_explicit(&executor->session->kept.number, memory_order_acquire) ==
                   executor->weights_number
               ? GRT_OK
               : change_weights(executor);
}

grt_status grt_executor_alloc(grt_executor *executor, grt_account_kind kind, size_t bytes, void **out_data)
{
    grt_account *account = executor->session->account;
    GRT_TRY(grt_account_take(account, kind, bytes));
    const grt_status status = grt_device_alloc(grt_executor_device(executor), bytes, out_data);
    if (status != GRT_OK)
        grt_account_give(account, kind, bytes);
    return status;
}

void grt_executor_free(grt_executor *executor, grt_account_kind kind, size_t bytes, void *data)
{
    if (data)
        grt_account_give(executor->session->account, kind, bytes);
    grt_device_free(grt_executor_device(executor), data);
}

grt_status grt_executor_drop_region(grt_executor *executor, grt_region *region)
{
    size_t kept = region->kept_bytes;
    GRT_TRY(grt_in_flight_drop(&executor->flight, region->data, region->captured));
    if (region->captured)
        kept += region->bytes;
    else
        grt_account_give(executor->session->account, region->kind, region->bytes);
    *region = (grt_region){.kind = region->kind, .kept_bytes = kept};
    return GRT_OK;
}

/* No run is in flight. Where there is no room for both, the old one goes first; frames that it was enough for
 * ask for theirs again. */
static grt_status executor_reserve(grt_executor *executor, size_t bytes, grt_region *region)
{
    if (bytes <= region->bytes)
        return GRT_OK;
    void *grown;
    const grt_account_kind kind = region->kind;
    grt_status got = grt_executor_alloc(executor, kind, bytes, &grown);
    if (got == GRT_STATUS_OUT_OF_MEMORY && region->data && !region->captured) {
        GRT_TRY(grt_executor_drop_region(executor, region));
        got = grt_executor_alloc(executor, kind, bytes, &grown);
    }
    if (got != GRT_OK)
        return got;
    const grt_status status = grt_executor_drop_region(executor, region);
    if (status != GRT_OK) {
        grt_executor_free(executor, kind, bytes, grown);
        return status;
    }
    region->data = grown;
    region->bytes = bytes;
    return GRT_OK;
}

grt_status grt_executor_reserve_arena(grt_executor *executor, size_t bytes)
{
    return executor_reserve(executor, bytes, &executor->arena);
}

grt_status grt_executor_reserve_workspace(grt_executor *executor, size_t bytes)
{
    return executor_reserve(executor, bytes, &executor->workspace);
}

grt_status grt_executor_reserve_host_workspace(grt_executor *executor, size_t bytes)
{
    if (bytes <= executor->host_workspace_bytes)
        return GRT_OK;
    free(executor->host_workspace);
    executor->host_workspace_bytes = 0;
    executor->host_workspace = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    if (!executor->host_workspace)
        return grt_fail_memory(bytes);
    executor->host_workspace_bytes = bytes;
    return GRT_OK;
}

void grt_executor_note_capture(grt_executor *executor)
{
    executor->arena.captured = executor->workspace.captured = true;
}

grt_status grt_executor_check_local(grt_executor *executor)
{
    return grt_device_local_check(grt_executor_device(executor), executor->local);
}
