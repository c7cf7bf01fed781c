/* SPDX-License-Identifier: Apache-2.0 */
/* Device sessions: values between the host and the device. */
#ifndef GRT_SRC_EXEC_TRANSFER_H
#define GRT_SRC_EXEC_TRANSFER_H

#include "src/exec/frame.h"

/* host[v] holds the content of v, downloaded if it must be; waits for the stream then. */
grt_status grt_frame_fetch(grt_frame *frame, int32_t value);
/* The device gets what a step on the CPU made. */
grt_status grt_frame_store(grt_frame *frame, int32_t value);

enum { GRT_UPLOAD_PAGEABLE = 1 << GRT_MEMORY_HOST, GRT_UPLOAD_PINNED = 1 << GRT_MEMORY_PINNED };
/* Inputs that lie in one of these kinds of memory. */
grt_status grt_frame_upload_inputs(grt_frame *frame, uint32_t kinds, void *stream);
/* Results that could not be written where the caller wants them on the device. */
grt_status grt_frame_copy_on_device(grt_frame *frame, void *stream);
/* Results for page-locked memory of the caller's, once the stream gets there. */
grt_status grt_frame_copy_to_pinned(grt_frame *frame, void *stream);
/* Results on the host: where the caller wants them, else in memory of `results`; there once the stream
 * has got so far. */
grt_status grt_frame_enqueue_downloads(grt_frame *frame, grt_value *results);

#endif
