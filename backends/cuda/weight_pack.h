/* SPDX-License-Identifier: Apache-2.0 */
/* How CUDA's products lay out constant weights of 4 and 8 bits (weight_product.h).
 *
 * A tile is 16 columns by 64 rows of k, in the order in which the lanes of a warp hold the left operand of
 * mma.m16n8k16: every lane finds what it needs for 4 steps of 16 rows in 16 bytes (4 bits) or twice 16 bytes
 * (8 bits). Tiles of the same columns follow each other. Each block of k begins at a multiple of 16 rows. */
#ifndef GRT_BACKENDS_CUDA_WEIGHT_PACK_H
#define GRT_BACKENDS_CUDA_WEIGHT_PACK_H

#include "backends/shared/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CUDA_WEIGHT_COLUMNS = 16, CUDA_WEIGHT_ROWS = 64, CUDA_WEIGHT_STEP = 16 };

typedef struct cuda_weight_form {
    int64_t padded_block; /* rows from one block to the next */
    int64_t tiles_n, tiles_k;
    size_t tile_bytes;
} cuda_weight_form;

/* False: too large. */
bool cuda_weight_form_of(const grt_weights *w, cuda_weight_form *out);
/* w as it is stored, packed. */
grt_status cuda_weight_pack(const grt_weights *w, const void *data, grt_packing *out_packing,
                            void **out_data);
bool cuda_weight_is_packed(const grt_weights *w, const grt_packing *packing);
/* For grt_backend.unpack: *out_known is false if the format is none of these. */
grt_status cuda_weight_unpack(const grt_tensor *packed, const grt_packing *packing, void *out_data,
                              bool *out_known);
/* Scales, or zero points, in the order [tile][block][lane pair]: those of columns i and i + 8 side by side.
 * `size`: bytes of one. Not by row of k. What belongs to no column is 0. */
void cuda_weight_pack_scales(const grt_weights *w, const void *scales, size_t size, void *out);
void cuda_weight_pack_zeros(const grt_weights *w, const void *zeros, uint8_t *out);

#ifdef __cplusplus
}
#endif
#endif
