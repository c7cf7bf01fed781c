/* SPDX-License-Identifier: Apache-2.0 */
/* A product for gemm.h: what it is, and how it is spread over the device. */
#ifndef GRT_BACKENDS_CUDA_GEMM_PLAN_H
#define GRT_BACKENDS_CUDA_GEMM_PLAN_H

#include "backends/cuda/gemm_weave.h"
#include "src/base/activation.h"
#include "src/base/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = act(x w + bias + residual): x is [rows, channels], and y [rows, columns]; or the rows are windows of
 * images with channels last. */
typedef struct cuda_gemm {
    grt_dtype dtype; /* FLOAT16, BFLOAT16, or FLOAT to be multiplied as TF32; sums are float32 */
    bool strict;     /* FLOAT that is not rounded to TF32: as three products of it */
    bool across;     /* w is [channels, columns]; else [columns, kernel[0], kernel[1], channels], as always of
                        FLOAT */
    bool is_windows; /* rows are images x out[0] x out[1] */
    int64_t rows, channels, columns;
    int32_t images, in[2], out[2], kernel[2], stride[2], dilation[2], begin[2]; /* of windows */
    bool has_residual;
    grt_act act;
    int32_t multiprocessors;
    bool is_constant;                   /* w is not made by the kernel in front of this one */
    void *encode_tiled, *encode_im2col; /* the driver's functions; set by cuda_gemm_bind */
    int32_t form, splits;               /* set by cuda_gemm_plan, as what follows */
    double time;                        /* predicted, in microseconds */
    bool is_long;                       /* too long to begin before the kernel in front of it ends */
    cuda_gemm_weave weave;              /* set by cuda_gemm_set_weave */
} cuda_gemm;

typedef struct cuda_gemm_args {
    const void *x, *w, *bias, *residual; /* bias and residual may be NULL */
    void *y;
} cuda_gemm_args;

/* Chooses form and splits; false if it is no such product, or none that the engine's boxes fit. Needs no
 * device. */
bool cuda_gemm_plan(cuda_gemm *p);
/* Of a product that is planned: results are woven, from y on, which begins at number `offset` of a tensor.
 * False, with nothing changed, if its kernel cannot store them so. */
bool cuda_gemm_set_weave(cuda_gemm *p, const cuda_gemm_weave *weave, int64_t offset);
/* Of a planned product: true if its tiles fill the multiprocessors better than the large ones of libraries by
 * a twentieth. */
bool cuda_gemm_fills_better(const cuda_gemm *p);
/* True if stages and tiles are filled by four fifths: few channels in or out leave them empty. */
bool cuda_gemm_is_whole(const cuda_gemm *p);
/* Of a planned product: true if it is one of windows so short that cuDNN's kernels, which want many pixels,
 * take longer even where few channels leave ours half empty. */
bool cuda_gemm_is_better_kept(const cuda_gemm *p);
/* Of a planned product: true if it is a large one of windows with an end that cuDNN has, too, whose kernels
 * take 0.64 to 0.98 of the time. */
bool cuda_gemm_is_better_left(const cuda_gemm *p);

#ifdef __cplusplus
}
#endif
#endif
