/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that compute nothing: outputs are zeros, and what a kernel may rely on is checked in its stead. */
#ifndef GRT_BACKENDS_NULL_KERNEL_H
#define GRT_BACKENDS_NULL_KERNEL_H

#include "backends/kernel.h"

const grt_kernel_row *null_find_kernel(const grt_kernel_node *node, grt_text *why);

#endif
