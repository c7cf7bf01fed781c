/* SPDX-License-Identifier: Apache-2.0 */
/* What graphrt::QConv and graphrt::QMatMul share on CUDA devices: the epilogue that their inputs describe, as
 * it lies in device memory.
 *
 * Weights are int8 here: of uint8 ones 128 is taken, and of their zero points. Sums are of x as it is, so
 * that with zero points
 *
 *   sum((x - x_zero) * (w - w_zero[j])) = sum(x * w) - offset[j] - zero[j] * sum(x)
 *
 * The epilogue is the CPU's sequence of float32 operations, none contracted: both give the same bits. */
#ifndef GRT_BACKENDS_CUDA_QPRODUCT_H
#define GRT_BACKENDS_CUDA_QPRODUCT_H

#include "backends/cuda/cuda.h"
#include "backends/shared/quantised.h"

enum { CUDA_QCHUNK = 16 }; /* bytes that are read at once: rows are multiples */

/* What is equal for all columns. */
struct cuda_qhead {
    float low, high; /* limits of a quantised result less its zero point */
    float r_scale;   /* of the residual, in units of y's, or of the sum's */
    int32_t y_zero, r_zero, x_zero;
    /* Of the sum of a result that is rounded and the residual: y's scale in units of the sum's, limits. */
    float y_scale, sum_low, sum_high;
    int32_t sum_zero;
    float y_unit; /* y's scale, if an activation is in front of the rounding; else 1 */
    float bound;  /* no sum that is scaled, with its bias, is larger; INFINITY: not known */
    alignas(CUDA_QCHUNK) uint8_t outside[CUDA_QCHUNK]; /* what windows see outside of the image */
};

/* Head and columns, one block of device memory. */
struct cuda_qfinish {
    const cuda_qhead *head;
    const int32_t *offset, *zero;
    const float *scale, *bias;
    const float *row; /* what is added behind the rounding, in units of the sum's scale */
};

/* The inputs that an epilogue is made from: all in host memory, or all in device memory. */
struct cuda_qsource {
    const float *x_scale, *w_scale, *y_scale, *r_scale,
        *sum_scale;                                           /* y, r NULL: 1; sum NULL: there is none */
    const void *x_zero, *w_zero, *y_zero, *r_zero, *sum_zero; /* NULL: 0 */
    const float *bias;
    const int32_t *int_bias; /* in units of the sums */
    const void *row;         /* levels of a residual that all rows have; NULL: there is none */
    bool x_signed, w_signed, y_signed, r_signed, sum_signed, w_scale_each, w_zero_each;
    bool in_units; /* results are in units of y's scale before they are rounded */
    grt_act act, sum_act;
    int64_t columns; /* of all matrices of weights */
    int64_t levels;  /* after so many, scales and biases begin anew */
    int64_t depth;   /* terms of a sum */
    int64_t filled;  /* terms behind them, where x is its zero point and w is 0 */
};

bool cuda_qproduct_supports(const grt_kernel_node *node, grt_text *why);
/* True if all inputs but x and the residual are constant. */
bool cuda_qproduct_is_constant(const grt_kernel_node *node);
/* True of a sum whose residual is a constant row. n: columns of the only matrix of weights. */
bool cuda_qproduct_has_row(const grt_kernel_node *node, int64_t n);
/* in: NULL where omitted. The counts and the row are the caller's to fill. */
cuda_qsource cuda_qproduct_source(const grt_op_desc *desc, const grt_tensor *const *in, int32_t n_in);
/* The activation that is left where limits of a quantised result do not stand for it. */
grt_act cuda_qproduct_activation(const grt_op_desc *desc, grt_dtype y);
/* True if constant weights have zero points that matter: the sums of x are needed. */
bool cuda_qproduct_has_zeros(const cuda_qsource *source);

size_t cuda_qfinish_bytes(int64_t columns);
cuda_qfinish cuda_qfinish_at(const void *memory, int64_t columns);
/* From host memory to host memory. sums: of each column of w as int8, or NULL: zeros. */
void cuda_qfinish_fill(const cuda_qsource *source, const int32_t *sums, void *memory);
/* The same on the device. */
grt_status cuda_qfinish_enqueue(const cuda_qsource *source, const int32_t *sums, void *memory,
                                cudaStream_t stream);

#endif
