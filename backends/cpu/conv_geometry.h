/* SPDX-License-Identifier: Apache-2.0 */
/* The geometry of Conv and ConvTranspose nodes: of tensors with known dims, and the one that is likely while
 * dims are not known. */
#ifndef GRT_BACKENDS_CPU_CONV_GEOMETRY_H
#define GRT_BACKENDS_CPU_CONV_GEOMETRY_H

#include "backends/cpu/conv.h"
#include "backends/kernel.h"

typedef struct cpu_conv_attrs {
    bool last, transposed;
    int64_t groups;
    grt_act act;
} cpu_conv_attrs;

/* x, y and w with known dims. */
void cpu_conv_describe(const grt_op_desc *desc, const cpu_conv_attrs *a, const grt_tensor *x,
                       const grt_tensor *w, const grt_tensor *y, cpu_conv *c);
/* Volumes with channels last: along a first dim that the window does not look along are more images, and a
 * window along the first dim only is one along a line, whose taps are as far apart as the other dims are
 * large. */
void cpu_conv_drop_dims(cpu_conv *c);
/* Images of one line, channels last, as lines: the dim that is 1 drops out, whichever it is, and the weights
 * keep their order. Anything else, and windows of one tap, as they are. */
cpu_conv cpu_conv_line(const cpu_conv *c);
/* True if sizes and padding are such as oneDNN takes. */
bool cpu_conv_fits_dnnl(const cpu_conv *c);

/* True if likely sizes can be assumed. Attributes and sizes that would overflow are refused once the input's
 * sizes are known. */
bool cpu_conv_can_guess(const grt_kernel_node *node, const cpu_conv_attrs *a);
/* Weights are packed before all sizes are known: assume likely sizes. A shape that needs another layout packs
 * its own copy. False: oneDNN would not take them. */
bool cpu_conv_guess(const grt_kernel_node *node, const cpu_conv_attrs *a, cpu_conv *c);

#endif
