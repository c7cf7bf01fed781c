/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's kernels in the order of a mirror's stream. */
#ifndef GRT_TESTS_MIRROR_KERNEL_H
#define GRT_TESTS_MIRROR_KERNEL_H

#include "backends/kernel.h"

/* The row of the CPU's for mirror devices; NULL when out of memory. */
const grt_kernel_row *mirror_kernel(const grt_kernel_row *cpu, grt_text *why);

#endif
