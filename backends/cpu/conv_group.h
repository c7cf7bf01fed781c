/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of many small groups with channels last: one direct kernel for any window. oneDNN serves those
 * of eight channels and up. */
#ifndef GRT_BACKENDS_CPU_CONV_GROUP_H
#define GRT_BACKENDS_CPU_CONV_GROUP_H

#include "backends/cpu/conv.h"

enum { CPU_GROUP_LANES = 8 };

/* Has the convolution such groups? Of its sizes, only the channels and the number of taps matter. */
bool cpu_conv_group_fits(const cpu_conv *c);
/* Weights in ONNX's order, packed for the kernel. False: the size overflows. */
bool cpu_conv_group_floats(const cpu_conv *c, size_t *out_floats);
void cpu_conv_group_pack(const cpu_conv *c, const float *w, float *packed);

bool cpu_conv_group_bytes(const cpu_conv *c, int threads, size_t *out_bytes);
void cpu_conv_group_run(const cpu_conv *c, const float *x, const float *packed, const float *bias,
                        const float *residual, float *y, void *workspace, int threads);

#endif
