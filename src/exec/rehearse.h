/* SPDX-License-Identifier: Apache-2.0 */
/* A device's libraries unpack a kernel's code when it is enqueued for the first time, which takes
 * milliseconds for each: the steps of a frame are enqueued once, many at a time, into graphs that nobody
 * keeps. Nothing runs. */
#ifndef GRT_SRC_EXEC_REHEARSE_H
#define GRT_SRC_EXEC_REHEARSE_H

#include "src/exec/frame.h"

/* The frame is bound. Failures are met again, and reported, where the steps are enqueued to run. */
void grt_rehearse(const grt_frame *frame);

#endif
