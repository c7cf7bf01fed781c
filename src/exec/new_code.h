/* SPDX-License-Identifier: Apache-2.0 */
/* Generated kernels that come while a context is in use. Its frames' shapes have them at once, as they ask
 * for their kernel each time that they enqueue it. Graphs have what was enqueued when they were captured: a
 * frame that waits for kernels looks, at the beginning of a run, whether the background has come to the end
 * of its jobs since it looked last, which is one atomic read; if it has, and brought some of the frame's,
 * the graphs go, and that run captures them again. So a context changes once for all that were asked for
 * together, and between two of its runs. A graph of the caller's stays what it is. */
#ifndef GRT_SRC_EXEC_NEW_CODE_H
#define GRT_SRC_EXEC_NEW_CODE_H

#include "src/exec/frame.h"

/* Before the frame's kernels are prepared ... */
void grt_new_code_begin(grt_frame *frame);
/* ... and behind that. */
void grt_new_code_expect(grt_frame *frame);

grt_status grt_new_code_look(grt_frame *frame);
/* At the beginning of a run that the caller does not capture. */
static inline grt_status grt_new_code_take(grt_frame *frame)
{
    return frame->awaited ? grt_new_code_look(frame) : GRT_OK;
}

#endif
