/* SPDX-License-Identifier: Apache-2.0 */
/* What is multiplied by products of bytes on tensor cores (qgemm.h). */
#ifndef GRT_BACKENDS_CUDA_QGEMM_SIZES_H
#define GRT_BACKENDS_CUDA_QGEMM_SIZES_H

#include "backends/cuda/qproduct.h"
#include "backends/cuda/tensor_map.h"

struct cuda_qgemm {
    bool x_signed, sums_rows; /* sums_rows: weights have zero points */
    bool sum;                 /* with the residual, of the result that is rounded before */
    bool row;                 /* the sum's residual is a number of each filter, in the epilogue */
    grt_dtype y, residual;    /* residual NONE: there is none; y as it is rounded, in front of a table */
    const uint8_t *table;     /* of levels of y; NULL: there is none */
    uint8_t table_flip;       /* what makes a level its place in the table */
    int32_t y_size;           /* of an element of y */
    grt_act act;              /* what limits do not do: of float results, or in front of rounding */
    int32_t images, in[2], out[2], kernel[2], stride[2], dilation[2], begin[2];
    int32_t n;                           /* filters of an item */
    int32_t chunks;                      /* of CUDA_QCHUNK bytes that a tap of a filter has */
    int64_t x_pixel, x_image;            /* bytes from one to the next */
    int64_t y_image, y_pixel, y_channel; /* elements */
    /* Items, each a product: groups of a convolution, or matrices of a batch, which broadcast. */
    int64_t items;
    int32_t lead;
    int64_t dims[GRT_MAX_RANK], x_strides[GRT_MAX_RANK], w_strides[GRT_MAX_RANK];
    int64_t x_item, y_item; /* x: bytes for a step of x_strides */
    int multiprocessors;
    bool has_warpgroups;  /* compute capability 9.0: wgmma */
    bool overlaps;        /* the kernel may begin before the one in front of it ends */
    bool is_constant;     /* weights and epilogue are not made by a kernel in front of the product */
    bool outside_is_zero; /* what windows see outside of the image */
    cuda_tensor_map_encoder encode_tiled; /* NULL: the driver has none */
    cuda_image_map_encoder encode_im2col;
};

/* True if rows of y and of the residual are made of aligned eights. */
bool cuda_qgemm_in_eights(const cuda_qgemm *g, const void *residual, const void *y);

#endif
