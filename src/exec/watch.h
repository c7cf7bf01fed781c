/* SPDX-License-Identifier: Apache-2.0 */
/* Telling what steps have made; see graphrt/watch.h. */
#ifndef GRT_SRC_EXEC_WATCH_H
#define GRT_SRC_EXEC_WATCH_H

#include "src/exec/frame.h"

/* The main body's instruction has run. */
grt_status grt_watch_tell(grt_frame *frame, const grt_instruction *instruction);

#endif
