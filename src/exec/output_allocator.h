/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs whose memory the caller gives when their size is known. */
#ifndef GRT_SRC_EXEC_OUTPUT_ALLOCATOR_H
#define GRT_SRC_EXEC_OUTPUT_ALLOCATOR_H

#include "src/exec/frame.h"

/* Before a run: outputs whose dims follow from the inputs' are bound to what the caller gives, the others to
 * nothing. */
grt_status grt_outputs_ask_before(grt_executor *executor, const grt_frame *frame);
/* After the steps, before results are copied: those others. */
grt_status grt_outputs_ask_after(grt_executor *executor, const grt_frame *frame);
/* A run that is enqueued can do without the host. */
grt_status grt_outputs_check_async(const grt_executor *executor);

#endif
