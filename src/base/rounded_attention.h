/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QRoundedAttention: positions of its inputs, for its rule, passes and kernels. */
#ifndef GRT_BASE_ROUNDED_ATTENTION_H
#define GRT_BASE_ROUNDED_ATTENTION_H

enum {
    QR_Q,
    QR_Q_SCALE,
    QR_Q_ZERO,
    QR_K,
    QR_K_SCALE,
    QR_K_ZERO,
    QR_SCORE_SCALE,
    QR_SCORE_ZERO,
    QR_MASK, /* with the four behind it, or none of them */
    QR_MASK_SCALE,
    QR_MASK_ZERO,
    QR_SUM_SCALE, /* of masked scores */
    QR_SUM_ZERO,
    QR_SHARE_SCALE, /* as the softmax is rounded */
    QR_SHARE_ZERO,
    QR_TABLE,      /* of shares; omitted: they are read as they are rounded */
    QR_READ_SCALE, /* as the product with V reads shares */
    QR_READ_ZERO,
    QR_V,
    QR_V_SCALE,
    QR_V_ZERO,
    QR_Y_SCALE,
    QR_Y_ZERO,
    QR_Q_TABLE, /* of levels in front of the first product; omitted: levels are read as they are */
    QR_K_TABLE,
    QR_INPUTS
};

#endif
