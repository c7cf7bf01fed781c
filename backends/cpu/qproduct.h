/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of graphrt::QMatMul and graphrt::QConv share: the epilogue that their inputs describe. */
#ifndef GRT_BACKENDS_CPU_QPRODUCT_H
#define GRT_BACKENDS_CPU_QPRODUCT_H

#include "backends/cpu/qgemm.h"
#include "backends/shared/quantised.h"

bool cpu_qproduct_supports(const grt_kernel_node *node, grt_text *why);
/* Columns [from, from + n) of the product: what is per column is moved there. */
void cpu_qproduct_params(const grt_run *run, int64_t from, grt_qgemm_params *out);
/* Limits, activation, zero points; the residual is of the whole result, with rows of ldr elements. */
void cpu_qproduct_finish(const grt_run *run, int64_t ldr, grt_qgemm_finish *out);

/* Bytes of the columns' arrays for n columns; and they in that memory. */
int64_t cpu_qproduct_columns_bytes(int64_t n);
grt_qgemm_columns cpu_qproduct_columns(void *memory, int64_t n);

#endif
