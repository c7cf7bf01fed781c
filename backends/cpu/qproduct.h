/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of graphrt::QMatMul and graphrt::QConv share: their inputs, and the epilogue that these
 * describe. */
#ifndef GRT_BACKENDS_CPU_QPRODUCT_H
#define GRT_BACKENDS_CPU_QPRODUCT_H

#include "backends/cpu/qgemm.h"
#include "backends/kernel.h"

enum {
    QP_X,
    QP_X_SCALE,
    QP_X_ZERO,
    QP_W,
    QP_W_SCALE,
    QP_W_ZERO,
    QP_Y_SCALE,
    QP_Y_ZERO,
    QP_BIAS,
    QP_RESIDUAL,
    QP_R_SCALE,
    QP_R_ZERO,
    QP_INPUTS
};

/* True if the dtypes fit. */
bool cpu_qproduct_supports(const grt_kernel_node *node, grt_text *why);
/* Fails unless what is per column has one element or n. */
grt_status cpu_qproduct_check(const grt_reshape *r, int64_t n);

static inline const grt_tensor *cpu_qproduct_input(const grt_run *run, int32_t i)
{
    return i < run->n_in ? run->in[i] : NULL;
}

/* Columns [from, from + n) of the product: what is per column is moved there. */
void cpu_qproduct_params(const grt_run *run, int64_t from, grt_qgemm_params *out);
/* Limits, activation, zero points; the residual is of the whole result, with rows of ldr elements. */
void cpu_qproduct_finish(const grt_run *run, int64_t ldr, grt_qgemm_finish *out);

/* Bytes of the columns' arrays for n columns; and they in that memory. */
int64_t cpu_qproduct_columns_bytes(int64_t n);
grt_qgemm_columns cpu_qproduct_columns(void *memory, int64_t n);

#endif
