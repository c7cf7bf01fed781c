/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions along one dim with channels last, as a matrix product for each tap: what neighbouring outputs
 * read for one tap are rows a fixed distance apart, so that nothing is unfolded. */
#ifndef GRT_BACKENDS_CPU_CONV_TAPS_H
#define GRT_BACKENDS_CPU_CONV_TAPS_H

#include "backends/cpu/conv.h"

/* One dim, and channels enough for products in each group. */
bool cpu_conv_taps_fits(const cpu_conv *c);
/* Weights in ONNX's order, packed for the products. False: the size overflows. */
bool cpu_conv_taps_floats(const cpu_conv *c, size_t *out_floats);
void cpu_conv_taps_pack(const cpu_conv *c, const float *w, float *packed);

bool cpu_conv_taps_bytes(const cpu_conv *c, int threads, size_t *out_bytes);
void cpu_conv_taps_run(const cpu_conv *c, const float *x, const float *packed, const float *bias,
                       const float *residual, float *y, void *workspace, int threads);

#endif
