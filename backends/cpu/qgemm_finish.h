/* SPDX-License-Identifier: Apache-2.0 */
/* From int32 sums to results: what follows a product of 8-bit numbers before it is stored. All values are in
 * units of y's scale where y is quantised. */
#ifndef GRT_BACKENDS_CPU_QGEMM_FINISH_H
#define GRT_BACKENDS_CPU_QGEMM_FINISH_H

#include "src/base/activation.h"

#include <graphrt/graphrt.h>
#include <stdbool.h>
#include <stdint.h>

enum { GRT_QGEMM_WIDTH = 32 }; /* columns of a block of sums */

typedef struct grt_qgemm_finish {
    const int32_t *offset; /* per column, subtracted from sums */
    const int32_t *zero;   /* per column, times the sum of A's row, or NULL: zeros */
    const float *scale, *bias;
    float low, high; /* limits of the value */
    int32_t y_zero;
    grt_dtype y_dtype; /* UINT8, INT8 or FLOAT */
    grt_act act;       /* of float results */
    bool bounded;      /* all values fit int32 */
    /* residual, of y's shape, or NULL; r_scale is in units of y's scale */
    const void *residual;
    int64_t ldr;
    grt_dtype r_dtype; /* UINT8 or INT8 */
    int32_t r_zero;
    float r_scale;
} grt_qgemm_finish;

/* True if results are bytes of bounded sums alone. Limits may be applied to bytes then, as rounding keeps the
 * order. */
static inline bool grt_qgemm_is_plain(const grt_qgemm_finish *f)
{
    return f->bounded && !f->zero && !f->residual && f->y_dtype != GRT_DTYPE_FLOAT;
}

/* rows x cols (at most GRT_QGEMM_WIDTH) of sums, GRT_QGEMM_WIDTH apart. `col`: the first one's, for what is
 * per column. row_sums: of A's rows, read where finish->zero is set. residual: NULL or of the block. */
typedef void grt_qgemm_finish_rows(const grt_qgemm_finish *finish, int64_t col, int rows, int64_t cols,
                                   const int32_t *sums, const int32_t *row_sums, const void *residual,
                                   void *y, int64_t ldy);

#endif
