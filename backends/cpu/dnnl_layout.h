/* SPDX-License-Identifier: Apache-2.0 */
/* Where each element of a tensor lies, in the blocked layouts of oneDNN and in those that have strides alone.
 */
#ifndef GRT_BACKENDS_CPU_DNNL_LAYOUT_H
#define GRT_BACKENDS_CPU_DNNL_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DNNL_LAYOUT_DIMS = 6, DNNL_LAYOUT_BLOCKS = 12 };

/* A dim is cut by its blocks, the last of `block` being the innermost of all; what is left of its index goes
 * in steps of `stride`. In floats. */
typedef struct dnnl_layout {
    int rank, blocks;
    int64_t dims[DNNL_LAYOUT_DIMS], stride[DNNL_LAYOUT_DIMS];
    int64_t block[DNNL_LAYOUT_BLOCKS];
    int block_dim[DNNL_LAYOUT_BLOCKS];
    size_t floats; /* all of it, with what pads the blocks */
} dnnl_layout;

/* All elements from one layout to another of the same dims; padding becomes 0. False: out of memory. */
bool dnnl_layout_copy(const dnnl_layout *from_layout, const float *from, const dnnl_layout *to_layout,
                      float *to);

#endif
