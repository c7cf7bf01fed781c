/* Matrix products with few rows, on tensor cores: where the library's tiles would not fill the GPU, blocks
 * that share a tile's sum do (a cluster of them, joined through their shared memories), and where one row is
 * multiplied, the matrix streams at the memory's speed. Bias, residual and activation are applied on the way
 * out. For float16 and bfloat16, on GPUs with clusters (compute capability 9.0). */
#ifndef GRT_BACKENDS_CUDA_FEW_ROWS_H
#define GRT_BACKENDS_CUDA_FEW_ROWS_H

#include "backends/cuda/epilogue.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = act(alpha * a b + bias + residual): a [m, k], b [k, n], bias [n], all row-major and dense. */
typedef struct cuda_few_rows {
    grt_dtype dtype;
    int32_t m, n, k;
    float alpha;
    cuda_act act;
    int32_t tile, splits; /* which tile (few_rows.cu), and how many blocks share it; 0: not to be used */
} cuda_few_rows;

typedef struct cuda_few_rows_args {
    const void *a, *b, *bias, *residual; /* the last two may be NULL */
    void *y;
} cuda_few_rows_args;

/* Choose tile and splits: what was measured for this product, else by rule; splits is 0 where the library
 * should do it. dtype, m, n and k are set, and within the limits of 32 bits. Fails on CUDA's errors only. */
grt_status cuda_few_rows_choose(cuda_device *device, struct grt_algo_trial *trial, cuda_few_rows *product);
/* Pointers as the loads want them? */
bool cuda_few_rows_aligned(const cuda_few_rows_args *args);
grt_status cuda_few_rows_run(const cuda_few_rows *product, const cuda_few_rows_args *args,
                             cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
