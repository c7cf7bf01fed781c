/* SPDX-License-Identifier: Apache-2.0 */
/* See executor.h. */
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
    GRT_TRY(grt_device_stream_create(session->device, &executor->stream));
    return grt_device_heap_create(session->device, &executor->pool);
}

void grt_executor_release(grt_executor *executor)
{
    grt_device *device = grt_executor_device(executor);
    grt_in_flight_release(&executor->flight);
    grt_device_local_release(device, executor->local);
    grt_device_heap_release(executor->pool);
    grt_device_stream_release(device, executor->stream);
    grt_device_free(device, executor->arena.data);
    grt_device_free(device, executor->workspace.data);
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

/* No run is in flight. */
static grt_status executor_reserve(grt_executor *executor, size_t bytes, const char *what, grt_region *region)
{
    if (bytes <= region->bytes)
        return GRT_OK;
    void *grown;
    grt_device *device = grt_executor_device(executor);
    grt_status status = grt_device_alloc(device, bytes, &grown);
    if (status != GRT_OK)
        return grt_fail_context(status, "memory for %s", what);
    status = grt_in_flight_drop(&executor->flight, region->data, region->captured);
    if (status != GRT_OK) {
        grt_device_free(device, grown);
        return status;
    }
    *region = (grt_region){.data = grown, .bytes = bytes};
    return GRT_OK;
}

grt_status grt_executor_reserve_arena(grt_executor *executor, size_t bytes)
{
    return executor_reserve(executor, bytes, "activations", &executor->arena);
}

grt_status grt_executor_reserve_workspace(grt_executor *executor, size_t bytes)
{
    return executor_reserve(executor, bytes, "workspaces", &executor->workspace);
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
