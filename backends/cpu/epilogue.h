/* SPDX-License-Identifier: Apache-2.0 */
/* Bias, residual and activation in one pass over dst, for fused steps whose main kernel cannot apply them, or
 * only slowly. */
#ifndef GRT_BACKENDS_CPU_EPILOGUE_H
#define GRT_BACKENDS_CPU_EPILOGUE_H

#include <stdint.h>

#include "backends/cpu/act.h"

typedef struct grt_epilogue {
    int64_t rows, cols;    /* dst is rows x cols floats, dense */
    const float *bias;     /* cols values added to every row, or NULL */
    const float *bias_row; /* one value per row, repeating after bias_rows rows, or NULL */
    int64_t bias_rows;     /* at least 1 when bias_row is given */
    const float *residual; /* as dst, or NULL */
    grt_act act;           /* last */
} grt_epilogue;

/* On up to `threads` OpenMP threads. */
void grt_epilogue_run(const grt_epilogue *e, float *dst, int threads);

#endif
