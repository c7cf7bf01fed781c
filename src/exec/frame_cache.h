/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of the main body by the dims of the inputs that they were prepared for: the last GRT_MAX_FRAMES
 * combinations of a context. */
#ifndef GRT_SRC_EXEC_FRAME_CACHE_H
#define GRT_SRC_EXEC_FRAME_CACHE_H

#include "src/exec/frame.h"

enum { GRT_MAX_FRAMES = 16 };

typedef struct grt_cached_frame {
    grt_frame *frame;
    int64_t *key;
    size_t key_size;
    uint64_t last_used;
} grt_cached_frame;

typedef struct grt_frame_cache {
    grt_cached_frame frames[GRT_MAX_FRAMES];
    int32_t n, last;
    uint64_t uses, prepared;
    struct grt_kept_frame *kept; /* evicted, but graphs of the caller's point into them */
} grt_frame_cache;

/* Dims of an input that is not bound yet. rank -1: any. rows: in place of the first dim, if not negative. */
typedef struct grt_input_dims {
    const int64_t *dims;
    int64_t rows;
    int32_t rank;
} grt_input_dims;

/* True if a frame is there for such inputs, which are all of the body's, and has its graphs. */
bool grt_frame_cache_has(const grt_frame_cache *cache, const grt_input_dims *inputs, size_t n);
/* The frame for the dims of what is bound, prepared now if they are new. */
grt_status grt_frame_cache_get(grt_frame_cache *cache, grt_executor *executor, grt_frame **out_frame);
/* Only what graphs of the caller's point into stays. Nothing is in flight. *bytes grows by what the device
 * has back. */
grt_status grt_frame_cache_clear(grt_frame_cache *cache, uint64_t *bytes);
void grt_frame_cache_release(grt_frame_cache *cache);

#endif
