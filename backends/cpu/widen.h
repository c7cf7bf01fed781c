/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that take float32 serve 16-bit floats too: their inputs are widened, their outputs narrowed. */
#ifndef GRT_BACKENDS_CPU_WIDEN_H
#define GRT_BACKENDS_CPU_WIDEN_H

#include "backends/kernel.h"

/* A row for a node that no row of cpu_tables takes as it is, if one takes it with float32 in the place of its
 * 16-bit floats; else NULL. */
const grt_kernel_row *cpu_widen_find(const grt_kernel_node *node);

#endif
