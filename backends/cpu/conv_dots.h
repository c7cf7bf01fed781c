/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions to a few channels, with channels last: what makes a picture or a wave of features. Vectors of
 * results would be nearly empty; here they run along a window's lines, each of which is one row of floats. */
#ifndef GRT_BACKENDS_CPU_CONV_DOTS_H
#define GRT_BACKENDS_CPU_CONV_DOTS_H

#include "backends/cpu/conv.h"

/* Of its sizes, only the channels and the window matter. */
bool cpu_conv_dots_fits(const cpu_conv *c);
/* Weights in ONNX's order, packed for the kernel. False: the size overflows. */
bool cpu_conv_dots_floats(const cpu_conv *c, size_t *out_floats);
void cpu_conv_dots_pack(const cpu_conv *c, const float *w, float *packed);

bool cpu_conv_dots_bytes(const cpu_conv *c, int threads, size_t *out_bytes);
void cpu_conv_dots_run(const cpu_conv *c, const float *x, const float *packed, const float *bias,
                       const float *residual, float *y, void *workspace, int threads);

#endif
