/* SPDX-License-Identifier: Apache-2.0 */
/* grt_context_set_watch. */
#include "src/exec/context.h"

#include <graphrt/watch.h>

grt_status grt_context_set_watch(grt_context *context, void (*watch)(void *user, const grt_watched *watched),
                                 void *user)
{
    if (!context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_set_watch: the context is NULL");
    GRT_TRY(grt_executor_hold(&context->executor, "grt_context_set_watch"));
    context->executor.watch = (grt_watch){watch, user};
    grt_executor_let_go(&context->executor);
    return GRT_OK;
}
