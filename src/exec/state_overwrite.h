/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a run may write an output of the model over the memory of an input. */
#ifndef GRT_SRC_EXEC_STATE_OVERWRITE_H
#define GRT_SRC_EXEC_STATE_OVERWRITE_H

#include "src/exec/frame.h"

/* Of the main body: positions of the input and the output in the model. */
bool grt_frame_may_overwrite(const grt_frame *frame, int32_t input, int32_t output);

#endif
