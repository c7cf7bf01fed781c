/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QConv and QMatMul: positions of their inputs, for passes and kernels. */
#ifndef GRT_BASE_QPRODUCT_H
#define GRT_BASE_QPRODUCT_H

enum {
    QP_X,
    QP_X_SCALE,
    QP_X_ZERO,
    QP_W,
    QP_W_SCALE,
    QP_W_ZERO,
    QP_Y_SCALE,
    QP_Y_ZERO,
    QP_BIAS,
    QP_RESIDUAL,
    QP_R_SCALE,
    QP_R_ZERO,
    QP_SUM_SCALE, /* of the sum of a rounded result and the residual */
    QP_SUM_ZERO,
    QP_TABLE, /* of a rounded result's levels */
    QP_INPUTS
};

#endif
