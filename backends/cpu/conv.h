/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions on concrete sizes that oneDNN does not serve: general ones over a packed matrix product, and
 * all types in double. backends/cpu/ops/conv.c chooses. */
#ifndef GRT_BACKENDS_CPU_CONV_H
#define GRT_BACKENDS_CPU_CONV_H

#include "backends/cpu/gemm.h"
#include "backends/shared/window.h"
#include "backends/cpu/workspace.h"
#include "backends/kernel.h"

/* The rows of ops/conv.c, for ops that a convolution is a part of. */
extern const grt_kernel_table cpu_kernels_conv;

typedef struct cpu_conv {
    cpu_window w;
    bool last; /* data is batch, spatial..., channels */
    int64_t batch, groups, in_channels, out_channels;
    grt_act act;
} cpu_conv;

/* float32 by unfolding the input into columns; weights in ONNX's order, constant or not. */
bool cpu_conv_unfold_bytes(const cpu_conv *c, int threads, size_t *out_bytes);
void cpu_conv_unfold_run(const cpu_conv *c, const float *x, const float *w, const float *bias,
                         const float *residual, float *y, void *workspace, int threads);

/* Any float type, summed in double; either layout, no epilogue but the bias. */
void cpu_conv_exact(const cpu_conv *c, grt_dtype dtype, const void *x, const void *w, const void *bias,
                    void *y, int threads);
/* The transpose: in_channels are those of its input, w.in its input's sizes. */
void cpu_conv_transpose_exact(const cpu_conv *c, grt_dtype dtype, const void *x, const void *w,
                              const void *bias, void *y, int threads);

#endif
