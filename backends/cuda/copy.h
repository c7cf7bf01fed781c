/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between strided boxes of device memory: the engine behind Transpose, Concat, Split, Slice, Expand,
 * Tile, Pad. */
#ifndef GRT_BACKENDS_CUDA_COPY_H
#define GRT_BACKENDS_CUDA_COPY_H

#include "backends/cuda/walk.h"

/* One copy, prepared for a shape. Fill with cuda_copy_begin, cuda_copy_axis for each axis from the outermost
 * inwards (in the order of the destination), then cuda_copy_end; offsets may be set before the end. */
struct cuda_copy {
    cuda_move walk,
        grouped; /* grouped: over `vector` elements each; or, where few axes are woven, the columns */
    int64_t to_offset, from_offset; /* in elements */
    int32_t size, vector;
    int32_t tile_axis; /* the axis along which the source is contiguous, if tiles pay; else -1 */
    int32_t planes; /* so many planes of the source become neighbours, as when an image's channels come last;
                     or, apart, neighbours become planes of the destination; 0: neither */
    bool apart;
    int64_t plane; /* elements from plane to plane */
    bool shifted;  /* long rows that begin anywhere become neighbours: whole vectors are written */
};

void cuda_copy_begin(cuda_copy *copy, grt_dtype dtype);
void cuda_copy_axis(cuda_copy *copy, int64_t dim, int64_t to, int64_t from);
void cuda_copy_end(cuda_copy *copy);
/* Enqueue. Source and destination do not overlap. */
grt_status cuda_copy_run(const cuda_copy *copy, void *dst, const void *src, cudaStream_t stream);
/* For kernel rows whose shape is a cuda_copy from input 0 to output 0. */
static inline grt_status cuda_copy_only(const grt_run *r)
{
    return cuda_copy_run((const cuda_copy *)r->shape, r->out[0]->data, r->in[0]->data, cuda_stream(r));
}

/* n elements of `size` bytes, all equal to the element: *host, or *device where that is not NULL. */
grt_status cuda_fill(void *dst, size_t size, int64_t n, const void *host, const void *device,
                     cudaStream_t stream);

#endif
