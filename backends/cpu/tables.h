/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of all files of backends/cpu/ops/. */
#ifndef GRT_BACKENDS_CPU_TABLES_H
#define GRT_BACKENDS_CPU_TABLES_H

#include "backends/kernel.h"

extern const struct cpu_tables {
    const grt_kernel_table *const *list;
    size_t n;
} cpu_tables;

#endif
