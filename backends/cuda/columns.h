/* SPDX-License-Identifier: Apache-2.0 */
/* Folds of [outer, rows, columns] over its rows, columns being neighbours in memory: pools over whole images
 * and reductions with channels last. */
#ifndef GRT_BACKENDS_CUDA_COLUMNS_H
#define GRT_BACKENDS_CUDA_COLUMNS_H

#include "backends/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cuda_columns_fold {
    CUDA_COLUMNS_SUM, /* divided by `divisor`, as those of the next two */
    CUDA_COLUMNS_ABSOLUTE,
    CUDA_COLUMNS_SQUARE,
    CUDA_COLUMNS_MAX, /* NaN wins, here and in the next */
    CUDA_COLUMNS_MIN,
    CUDA_COLUMNS_POWER /* the `power`-th root of the sum of |x| to it */
} cuda_columns_fold;

typedef struct cuda_columns {
    cuda_columns_fold fold;
    float divisor, power;
    bool root; /* the square root of a sum is wanted */
    bool wide; /* results are float32, whatever is folded */
    int64_t outer, rows, columns;
    /* Set by cuda_columns_plan. */
    int64_t shares; /* of the rows, a block each; more than 1: folded by a second kernel */
    int32_t width;  /* 16-byte vectors of a row that a block has */
} cuda_columns;

/* False if the sizes or the type are not for this kernel, which moves 16 bytes of columns at a time: FLOAT,
 * FLOAT16, BFLOAT16. */
bool cuda_columns_plan(cuda_columns *c, grt_dtype dtype, int multiprocessors);
size_t cuda_columns_workspace(const cuda_columns *c);
/* False, and nothing is enqueued, if x or y is not aligned to 16 bytes. */
bool cuda_columns_run(const cuda_columns *c, grt_dtype dtype, const void *x, void *y, void *workspace,
                      cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
