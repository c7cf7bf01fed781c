/* SPDX-License-Identifier: Apache-2.0 */
/* The library's own kernels of convolutions with constant float32 weights, and the rules that choose them in
 * place of oneDNN's. */
#ifndef GRT_BACKENDS_CPU_CONV_KERNELS_H
#define GRT_BACKENDS_CPU_CONV_KERNELS_H

#include "backends/cpu/conv_geometry.h"

/* One kernel, which packs the weights once for all shapes. */
typedef struct cpu_conv_kernel {
    bool (*floats)(const cpu_conv *c, size_t *out_floats); /* of packed weights; false: overflow */
    void (*pack)(const cpu_conv *c, const float *w, float *packed);
    bool (*bytes)(const cpu_conv *c, int threads, size_t *out_bytes); /* of workspace; false: overflow */
    void (*run)(const cpu_conv *c, const float *x, const float *packed, const float *bias,
                const float *residual, float *y, void *workspace, int threads);
} cpu_conv_kernel;

/* What a kernel is chosen for and runs: images that are lines as lines, where that suits kernels. */
cpu_conv cpu_conv_kernel_geometry(const cpu_conv *c);
/* The kernel that is faster than oneDNN's whatever that has; NULL: none. */
const cpu_conv_kernel *cpu_conv_kernel_faster(const grt_kernel_node *node, const cpu_conv_attrs *a);
/* The kernel for what oneDNN unfolds, or has plain loops for; NULL: none. impl: oneDNN's for likely sizes. */
const cpu_conv_kernel *cpu_conv_kernel_fallback(const grt_kernel_node *node, const cpu_conv_attrs *a,
                                                const char *impl);

#endif
