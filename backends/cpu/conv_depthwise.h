/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions with channels last: each channel has one filter of its own, of any window. */
#ifndef GRT_BACKENDS_CPU_CONV_DEPTHWISE_H
#define GRT_BACKENDS_CPU_CONV_DEPTHWISE_H

#include "backends/cpu/conv.h"

/* Of its sizes, only the channels matter. */
bool cpu_depthwise_fits(const cpu_conv *c);
/* True if neighbouring outputs of a line see neighbouring inputs and the processor's loops share what they
 * load: several times fewer loads than multiplications. */
bool cpu_depthwise_is_dense(const cpu_conv *c);
/* Weights in ONNX's order, packed for the kernel. False: the size overflows. */
bool cpu_depthwise_floats(const cpu_conv *c, size_t *out_floats);
void cpu_depthwise_pack(const cpu_conv *c, const float *w, float *packed);

bool cpu_depthwise_bytes(const cpu_conv *c, int threads, size_t *out_bytes);
void cpu_depthwise_run(const cpu_conv *c, const float *x, const float *packed, const float *bias,
                       const float *residual, float *y, void *workspace, int threads);

#endif
