/* SPDX-License-Identifier: Apache-2.0 */
/* Products by constant weights of 4 and 8 bits on tensor cores:
 *
 *   y[m][n] = act(sum over blocks of scale * sum over k of x * (w - zero), + bias[n] + residual[m][n])
 *
 * Weights are read packed (weight_pack.h) and become numbers of x's type in registers, where they are exact;
 * sums of a block are float32, and so is what scales them. float32 x is split into three bfloat16 of 8 bits
 * each, whose products are exact. Nothing is widened in memory.
 *
 * x may be normalised by its root mean square first, as RMSNormalization does, and a gated product has SiLU
 * of its first half of columns times the second as its result: steps of weight_steps.h where no kernel does
 * them on the way. */
#ifndef GRT_BACKENDS_CUDA_WEIGHT_PRODUCT_H
#define GRT_BACKENDS_CUDA_WEIGHT_PRODUCT_H

#include "backends/cuda/tensor_map.h"
#include "src/base/activation.h"

typedef enum cuda_weight_numbers { CUDA_WEIGHT_4, CUDA_WEIGHT_8, CUDA_WEIGHT_E4M3 } cuda_weight_numbers;

/* One product. Rows of k are counted as packed. */
typedef struct cuda_weight_product {
    const void *x, *w, *scales, *bias, *residual; /* the residual is of x's type */
    const uint8_t *zeros;                         /* NULL: `zero` is of all */
    const float *row_scale;                       /* of x's columns; NULL: none */
    void *y;
    float *partial; /* [splits][m][n], where there are several */
    int m, n, k, block, padded_block, blocks, tiles_n, tiles_k;
    int block_shift; /* of a tile of k, 1 << block_shift steps of 16 rows share a scale: 0, 1 or 2 */
    int block_log;   /* of padded_block, a power of two; else -1 */
    int split_tiles; /* tiles of k that a block of threads adds up */
    int zero;
    bool wide_scales; /* float32; else x's type */
    bool in_pieces;   /* x is read by 16 bytes */
    bool gated;       /* y has half as many columns: SiLU of the first half times the second */
    const void
        *norm; /* of x's type: x is normalised by its root mean square and multiplied by it; NULL: not */
    float epsilon, norm_unit; /* x times norm_unit times the norm's scale is no larger than x */
    int bias_dtype;
    grt_act act;
} cuda_weight_product;

/* How a product is spread over blocks of threads: rows of x and columns of w that each has. The first six are
 * forms of weight_tile.cuh, which takes every product; for few rows, warps divide k, and float32 has half as
 * many rows from 64 on. Those of weight_row.cuh (one row by weights of 4 bits), weight_few.cuh and
 * weight_wide.cuh are faster and want regular scales. */
typedef enum cuda_weight_spread {
    CUDA_WEIGHT_ROWS_8,         /* 16 columns */
    CUDA_WEIGHT_ROWS_8_WIDE,    /* 64 */
    CUDA_WEIGHT_ROWS_16,        /* 64 */
    CUDA_WEIGHT_ROWS_32,        /* 256 */
    CUDA_WEIGHT_ROWS_64,        /* 256 */
    CUDA_WEIGHT_ROWS_128,       /* 128 */
    CUDA_WEIGHT_ROW_16,         /* 16 */
    CUDA_WEIGHT_ROW_32,         /* 32 */
    CUDA_WEIGHT_ROW_32_MANY,    /* 32, by half as many warps */
    CUDA_WEIGHT_FEW_1,          /* 16 */
    CUDA_WEIGHT_FEW_1_DEEP,     /* 16, by twice as many warps */
    CUDA_WEIGHT_FEW_8,          /* 32 */
    CUDA_WEIGHT_FEW_32,         /* 16 */
    CUDA_WEIGHT_WIDE_64,        /* 128 */
    CUDA_WEIGHT_WIDE_128,       /* 128 */
    CUDA_WEIGHT_WIDE_256,       /* 128 */
    CUDA_WEIGHT_WIDE_32_DOUBLE, /* 256 */
    CUDA_WEIGHT_WIDE_64_DOUBLE, /* 256 */
} cuda_weight_spread;

enum { CUDA_WEIGHT_IRREGULAR = -1 };

/* Bytes of shared memory that the forms for few rows take at most: of one row, others, and of 32. */
enum {
    CUDA_WEIGHT_ROW_BYTES = 96 << 10,
    CUDA_WEIGHT_FEW_1_BYTES = 96 << 10,
    CUDA_WEIGHT_FEW_BYTES = 160 << 10,
    CUDA_WEIGHT_FEW_32_BYTES = 176 << 10
};

/* What is known of a product before it runs. */
typedef struct cuda_weight_task {
    int64_t m, tiles_n, tiles_k;
    cuda_weight_numbers numbers;
    bool wide; /* x is float32 */
    bool gated;
    int blocks;    /* scales of a column in 128 rows of k: 1, 2, 4 or 8; 0: one for the column; or
                    * IRREGULAR */
    bool overlaps; /* kernels may begin before the one in front of them ends (Hopper and newer) */
    cuda_tensor_map_encoder encode; /* NULL: a device without wgmma */
    int processors;
    size_t shared; /* bytes of shared memory that a block may have */
} cuda_weight_task;

typedef struct cuda_weight_choice {
    cuda_weight_spread spread;
    int splits, split_tiles; /* of k, over blocks of threads whose sums a second kernel adds, or, of the
                              * spreads WIDE, a cluster's blocks */
    size_t workspace_bytes;
    int blocks; /* as the task's */
    bool overlaps;
    cuda_tensor_map_encoder encode;
} cuda_weight_choice;

#ifdef __cplusplus
extern "C" {
#endif

cuda_weight_choice cuda_weight_choose(const cuda_weight_task *task);
static inline bool cuda_weight_has_norm(const cuda_weight_choice *choice)
{
    return choice->spread >= CUDA_WEIGHT_ROW_16 && choice->spread <= CUDA_WEIGHT_ROW_32_MANY;
}
static inline bool cuda_weight_has_gate(const cuda_weight_choice *choice)
{
    return cuda_weight_has_norm(choice) || choice->spread >= CUDA_WEIGHT_WIDE_64;
}
/* One that every product of the task can use, wherever its x begins, and that needs no workspace. */
cuda_weight_choice cuda_weight_choose_any(const cuda_weight_task *task);
/* By x's type. p NULL: prepares the kernel that the choice wants. */
grt_status cuda_weight_use_half(const cuda_weight_product *p, cuda_weight_numbers numbers,
                                const cuda_weight_choice *choice, cudaStream_t stream);
grt_status cuda_weight_use_bfloat(const cuda_weight_product *p, cuda_weight_numbers numbers,
                                  const cuda_weight_choice *choice, cudaStream_t stream);
grt_status cuda_weight_use_float(const cuda_weight_product *p, cuda_weight_numbers numbers,
                                 const cuda_weight_choice *choice, cudaStream_t stream);
/* For the spreads ROW, FEW and WIDE. Those of WIDE have gates, those of ROW norms as well. */
grt_status cuda_weight_row_half(const cuda_weight_product *p, cuda_weight_numbers numbers,
                                const cuda_weight_choice *choice, cudaStream_t stream);
grt_status cuda_weight_row_bfloat(const cuda_weight_product *p, cuda_weight_numbers numbers,
                                  const cuda_weight_choice *choice, cudaStream_t stream);
grt_status cuda_weight_few_half(const cuda_weight_product *p, cuda_weight_numbers numbers,
                                const cuda_weight_choice *choice, cudaStream_t stream);
grt_status cuda_weight_few_bfloat(const cuda_weight_product *p, cuda_weight_numbers numbers,
                                  const cuda_weight_choice *choice, cudaStream_t stream);
grt_status cuda_weight_wide_half(const cuda_weight_product *p, cuda_weight_numbers numbers,
                                 const cuda_weight_choice *choice, cudaStream_t stream);
grt_status cuda_weight_wide_bfloat(const cuda_weight_product *p, cuda_weight_numbers numbers,
                                   const cuda_weight_choice *choice, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
