/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions with windows of 3 x 3, stride 1 and channels last, by Winograd's F(2 x 2, 3 x 3): four outputs
 * take 16 multiplications a channel where the definition takes 36. Its transforms only add, subtract and
 * halve, so that results are as near to the definition as those of a direct sum; larger tiles would not be.
 * Non-finite inputs reach the outputs whose windows hold them, as in a direct sum, but an infinity may
 * arrive as NaN. */
#ifndef GRT_BACKENDS_CPU_CONV_WINOGRAD_H
#define GRT_BACKENDS_CPU_CONV_WINOGRAD_H

#include "backends/cpu/conv.h"

/* Is it a convolution of that kind, and large enough to gain? Without its sizes, usual ones are assumed. */
bool cpu_winograd_fits(const cpu_conv *c);

/* Weights in ONNX's order, transformed: 16 matrices, in_channels x out_channels, packed for products. False:
 * the size overflows. */
bool cpu_winograd_floats(const cpu_conv *c, size_t *out_floats);
void cpu_winograd_pack(const cpu_conv *c, const float *w, float *packed);

bool cpu_winograd_bytes(const cpu_conv *c, int threads, size_t *out_bytes);
void cpu_winograd_run(const cpu_conv *c, const float *x, const float *packed, const float *bias,
                      const float *residual, float *y, void *workspace, int threads);

#endif
