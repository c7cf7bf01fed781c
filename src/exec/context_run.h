/* SPDX-License-Identifier: Apache-2.0 */
/* A context's run, from the caller's arguments to results: what runs that are waited for and enqueued ones
 * share.
 */
#ifndef GRT_SRC_EXEC_CONTEXT_RUN_H
#define GRT_SRC_EXEC_CONTEXT_RUN_H

#include "src/exec/context.h"

/* The calling thread has the context, its device is current, and the run can be stopped. `function` is named
 * in errors. After GRT_OK grt_context_leave undoes it. */
grt_status grt_context_enter(grt_context *context, const char *function, const grt_run_options *options,
                             bool *out_switched);
void grt_context_leave(grt_context *context, bool switched);
/* Everything up to the point where steps are run or enqueued. */
grt_status grt_context_prepare(grt_context *context, bool captured, grt_frame **out_frame);

#endif
