/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of operators that programs bring. */
#ifndef GRT_BACKENDS_CUSTOM_H
#define GRT_BACKENDS_CUSTOM_H

#include "backends/kernel.h"

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */

/* False if the node's operator is none of these. Otherwise *out_row is its kernel, for the host or for CUDA
 * devices, or NULL with the reason in `why` (may be NULL). */
bool grt_custom_kernel(const grt_kernel_node *node, bool cuda, grt_text *why, const grt_kernel_row **out_row);

#pragma GCC visibility pop

#endif
