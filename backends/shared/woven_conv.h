/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::WovenConv by way of a backend's own kernel for graphrt::Conv, whose result is moved to its places.
 */
#ifndef GRT_BACKENDS_SHARED_WOVEN_CONV_H
#define GRT_BACKENDS_SHARED_WOVEN_CONV_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GRT_WOVEN_PARTS = 3 /* inputs of the convolution; then further parts */, GRT_WOVEN_AXES = 6 };

typedef struct grt_woven_conv {
    int64_t block[2], place;   /* the op's rule has checked them when a shape is prepared */
    const grt_kernel_row *row; /* of the convolution */
    void *state;
} grt_woven_conv;

/* `find` is the backend's look-up. */
typedef const grt_kernel_row *(*grt_woven_find)(const grt_kernel_node *conv, grt_text *why);

/* True if the backend has a kernel for the convolution. */
bool grt_woven_conv_supports(const grt_kernel_node *node, grt_woven_find find, grt_text *why);
grt_status grt_woven_conv_create(const grt_kernel_node *node, grt_woven_find find, grt_woven_conv **out);
void grt_woven_conv_destroy(grt_woven_conv *w);

/* A copy between strided boxes; strides and offsets in elements. */
typedef struct grt_woven_move {
    int32_t rank;
    int64_t to_offset, dims[GRT_WOVEN_AXES], to[GRT_WOVEN_AXES], from[GRT_WOVEN_AXES];
} grt_woven_move;

typedef struct grt_woven_shape {
    const grt_woven_conv *conv;
    grt_tensor result;                /* of the convolution */
    void *inner;                      /* its shape */
    size_t result_bytes, inner_bytes; /* of the result, rounded up, and of the convolution's workspace */
} grt_woven_shape;

/* Prepares the convolution. r->shape and r->workspace_bytes are left to the caller. */
grt_status grt_woven_conv_prepare(const grt_reshape *r, grt_woven_shape *out);
void grt_woven_conv_release(grt_woven_shape *s);
/* Where the result goes. */
void grt_woven_conv_own(const grt_woven_shape *s, const grt_reshape *r, grt_woven_move *out);
/* Where input i goes, from GRT_WOVEN_PARTS on. */
void grt_woven_conv_part(const grt_woven_shape *s, const grt_reshape *r, int32_t i, grt_woven_move *out);
/* The convolution, into `result`. */
grt_status grt_woven_conv_run(const grt_woven_shape *s, const grt_run *r, void *result, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
