/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of the mirror backend: queues that a thread of their own works off, so that whoever forgets to wait
 * is found out. */
#ifndef GRT_TESTS_MIRROR_STREAM_H
#define GRT_TESTS_MIRROR_STREAM_H

#include "tests/mirror/graph.h"

typedef struct mirror_stream mirror_stream;
typedef struct mirror_fence mirror_fence;

grt_status mirror_stream_create(mirror_stream **out_stream);
void mirror_stream_release(mirror_stream *stream); /* after what is enqueued */
/* At once, until the stream meets its first fence. */
grt_status mirror_stream_copy(mirror_stream *stream, void *dst, const void *src, size_t bytes);
void mirror_stream_wait(mirror_stream *stream);
uint64_t mirror_stream_id(const mirror_stream *stream);

/* From begin to end what the stream is given is kept, not done. A launch is done when it returns, as kernels
 * are. */
grt_status mirror_stream_begin(mirror_stream *stream);
grt_status mirror_stream_end(mirror_stream *stream, mirror_graph **out_graph);
mirror_graph *mirror_stream_captured(const mirror_stream *stream); /* NULL: nothing is captured */
grt_status mirror_stream_launch(mirror_stream *stream, const mirror_graph *graph);

grt_status mirror_fence_create(mirror_fence **out_fence);
void mirror_fence_release(mirror_fence *fence);
grt_status mirror_fence_record(mirror_fence *fence, mirror_stream *stream);
void mirror_fence_wait(mirror_fence *fence);
double mirror_fence_ms(mirror_fence *fence); /* when it was reached; waits for that */
grt_status mirror_stream_wait_fence(mirror_stream *stream, mirror_fence *fence);

#endif
