/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Concat over concrete sizes: each part is a copy between strided boxes. */
#ifndef GRT_BACKENDS_SHARED_CONCAT_H
#define GRT_BACKENDS_SHARED_CONCAT_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Its attributes: the axis, and how each part's axes are exchanged. */
typedef struct grt_moved_concat {
    int64_t axis;
    const int64_t *perms; /* the op's rule has checked them when a shape is prepared */
} grt_moved_concat;

/* For free(). */
grt_status grt_moved_concat_read(const grt_op_desc *desc, grt_moved_concat **out);

/* Strides in elements, of the axes in the whole's order; offset: in the whole. */
typedef struct grt_moved_part {
    int32_t rank;
    bool stays; /* at these sizes its elements keep their order */
    int64_t offset, dims[GRT_MAX_RANK], to[GRT_MAX_RANK], from[GRT_MAX_RANK];
} grt_moved_part;

/* Part i, which begins at `*at` along the axis; *at becomes where the next one begins. */
void grt_moved_part_of(const grt_moved_concat *c, int32_t i, const grt_tensor *part, const grt_tensor *whole,
                       int64_t *at, grt_moved_part *out);

#ifdef __cplusplus
}
#endif

#endif
