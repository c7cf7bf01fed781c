/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolutions along one dim with channels last, as matrix products by phases: results that are a
 * stride apart see the same taps, so that inputs times a tap's matrix are added to the results of all phases
 * that have such a tap. */
#ifndef GRT_BACKENDS_CPU_CONV_PHASES_H
#define GRT_BACKENDS_CPU_CONV_PHASES_H

#include "backends/cpu/conv.h"

/* One dim, one group, no dilation, a stride that the kernel covers, and channels enough for products. */
bool cpu_conv_phases_fits(const cpu_conv *c);
/* Weights in ONNX's order, packed for the products. False: the size overflows. */
bool cpu_conv_phases_floats(const cpu_conv *c, size_t *out_floats);
void cpu_conv_phases_pack(const cpu_conv *c, const float *w, float *packed);

bool cpu_conv_phases_bytes(const cpu_conv *c, int threads, size_t *out_bytes);
void cpu_conv_phases_run(const cpu_conv *c, const float *x, const float *packed, const float *bias,
                         const float *residual, float *y, void *workspace, int threads);

#endif
