/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions along one dim in groups of many channels, with channels last, as a matrix product for each
 * group: with the group's channels of a line side by side, the window of an output is one row, which overlaps
 * the next one's. */
#ifndef GRT_BACKENDS_CPU_CONV_LINES_H
#define GRT_BACKENDS_CPU_CONV_LINES_H

#include "backends/cpu/conv.h"

/* One dim, not dilated, several taps, groups, and channels enough for products in each. */
bool cpu_conv_lines_fits(const cpu_conv *c);
/* Weights in ONNX's order, packed for the products. False: the size overflows. */
bool cpu_conv_lines_floats(const cpu_conv *c, size_t *out_floats);
void cpu_conv_lines_pack(const cpu_conv *c, const float *w, float *packed);

bool cpu_conv_lines_bytes(const cpu_conv *c, int threads, size_t *out_bytes);
void cpu_conv_lines_run(const cpu_conv *c, const float *x, const float *packed, const float *bias,
                        const float *residual, float *y, void *workspace, int threads);

#endif
