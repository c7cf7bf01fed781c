/* SPDX-License-Identifier: Apache-2.0 */
/* grt_context_trim: what an idle context need not keep. */
#include "src/exec/context.h"

#include <stdlib.h>

static grt_status drop_region(grt_executor *executor, grt_region *region, uint64_t *bytes)
{
    if (!region->captured)
        *bytes += region->bytes;
    return grt_executor_drop_region(executor, region);
}

static void drop_results(grt_context *context)
{
    context->ran = false;
    for (int32_t i = 0; context->results && i < grt_context_body(context)->n_outputs; i++)
        grt_value_clear(&context->results[i]);
}

static grt_status trim(grt_context *context, uint64_t *bytes)
{
    grt_executor *executor = &context->executor;
    GRT_TRY(grt_in_flight_settle(&executor->flight));
    drop_results(context);
    if (executor->main)
        grt_frame_clear(executor->main);
    executor->main = NULL;
    for (int32_t i = 1; i < grt_executor_plan(executor)->n_bodies; i++)
        if (executor->bodies[i])
            grt_frame_clear(executor->bodies[i]);
    GRT_TRY(grt_frame_cache_clear(&context->frames, bytes));
    GRT_TRY(drop_region(executor, &executor->arena, bytes));
    GRT_TRY(drop_region(executor, &executor->workspace, bytes));
    const size_t heap = grt_device_heap_bytes(executor->pool);
    grt_device_heap_trim(executor->pool);
    *bytes += heap - grt_device_heap_bytes(executor->pool);
    free(executor->host_workspace);
    executor->host_workspace = NULL;
    executor->host_workspace_bytes = 0;
    return GRT_OK;
}

grt_status grt_context_trim(grt_context *context, uint64_t *out_bytes)
{
    uint64_t bytes = 0;
    bool switched = false;
    if (!context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_trim: context is NULL");
    GRT_TRY(grt_executor_hold(&context->executor, "grt_context_trim"));
    grt_status status = grt_device_enter(grt_executor_device(&context->executor), &switched);
    if (status == GRT_OK)
        status = trim(context, &bytes);
    grt_device_leave(grt_executor_device(&context->executor), switched);
    grt_executor_let_go(&context->executor);
    if (status == GRT_OK && out_bytes)
        *out_bytes = bytes;
    return status;
}
