/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of one tap with channels last as products of rows, a row being a pixel's channels, for weights
 * that a cache has no room for. They are read where oneDNN's kernel would read them: its layout of blocks of
 * 16 by 16 channels is that of a packed matrix (gemm.h). */
#ifndef GRT_BACKENDS_CPU_CONV_PIXELS_H
#define GRT_BACKENDS_CPU_CONV_PIXELS_H

#include "backends/cpu/conv.h"

/* impl: the name of oneDNN's kernel for the convolution. */
bool cpu_conv_pixels_fits(const cpu_conv *c, const char *impl);
/* format: oneDNN's name of the weights' layout, or NULL. */
bool cpu_conv_pixels_reads(const cpu_conv *c, const char *format);
/* False: overflow. */
bool cpu_conv_pixels_bytes(const cpu_conv *c, size_t *out_bytes);
void cpu_conv_pixels_run(const cpu_conv *c, const float *x, const float *packed, const float *bias,
                         const float *residual, float *y, void *workspace, int threads);

#endif
