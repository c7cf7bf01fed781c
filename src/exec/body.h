/* SPDX-License-Identifier: Apache-2.0 */
/* A body of control flow while its node runs: the frame that prepare has made, with its inputs set and its
 * steps run anew for each iteration. */
#ifndef GRT_SRC_EXEC_BODY_H
#define GRT_SRC_EXEC_BODY_H

#include "src/exec/frame.h"

/* The frame of a body, with what it captures from the frame around. */
grt_frame *grt_body_enter(grt_frame *outer, int32_t index);
/* Input i shares the value. INVALID_ARGUMENT if it is not what the body's steps were prepared for. */
grt_status grt_body_set_input(grt_frame *frame, int32_t i, const grt_value *value);
/* The same; the value is empty then. */
grt_status grt_body_give_input(grt_frame *frame, int32_t i, grt_value *value);
grt_status grt_body_set_int(grt_frame *frame, int32_t i, int64_t value);
grt_status grt_body_set_bool(grt_frame *frame, int32_t i, bool value);
grt_status grt_body_run(grt_frame *frame);
grt_value *grt_body_output(grt_frame *frame, int32_t i);
/* The output for the next iteration. A list is moved: to share it is to count each of its items. */
grt_status grt_body_take_output(grt_frame *frame, int32_t output, grt_value *out);

#endif
