/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/tables.h"

#define X(file) extern const grt_kernel_table cpu_kernels_##file;
#include "cpu_kernels.inc"
#undef X

static const grt_kernel_table *const all[] = {
#define X(file) &cpu_kernels_##file,
#include "cpu_kernels.inc"
#undef X
};

const struct cpu_tables cpu_tables = {all, sizeof all / sizeof *all};
