/* SPDX-License-Identifier: Apache-2.0 */
/* Products of one column, or of one row by a matrix that lies the other way: inner products of rows that are
 * read where they are. Panels for the general kernels would take longer to pack than to use once. */
#ifndef GRT_BACKENDS_CPU_GEMM_DOTS_H
#define GRT_BACKENDS_CPU_GEMM_DOTS_H

#include "backends/cpu/gemm.h"

/* Is it such a product? Then grt_gemm_dots_run does what grt_gemm_run does, without scratch. */
bool grt_gemm_is_dots(const grt_gemm *g);
/* As grt_gemm_run. */
void grt_gemm_dots_run(const grt_gemm *g, const float *a, const float *b, float *c, int threads);

#endif
