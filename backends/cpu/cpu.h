/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU backend's kernels share: typed loops and threads. */
#ifndef GRT_BACKENDS_CPU_H
#define GRT_BACKENDS_CPU_H

#include "backends/backend.h"

/* In backends/cpu/ops/<file>.c, last thing: CPU_KERNELS(file, rows). The list in backends/sources.mk
 * makes it known. */
#define CPU_KERNELS(file, row_array) \
    const grt_kernel_table cpu_kernels_##file = {row_array, sizeof(row_array) / sizeof *(row_array)}

/* Work below this many elements is not worth waking other threads for. */
enum { CPU_GRAIN = 32768 };

/* The types of a kernel that computes in float32 or double: 16-bit floats reach it as float32 (widen.h). */
#define CPU_FLOATS (GRT_BIT(FLOAT) | GRT_BIT(DOUBLE))

#endif
