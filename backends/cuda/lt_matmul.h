/* SPDX-License-Identifier: Apache-2.0 */
/* One matrix product on cuBLASLt: described, an algorithm chosen or remembered, run. */
#ifndef GRT_BACKENDS_CUDA_LT_MATMUL_H
#define GRT_BACKENDS_CUDA_LT_MATMUL_H

#include "backends/cuda/libraries.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cuda_lt_act { CUDA_LT_NO_ACT, CUDA_LT_RELU, CUDA_LT_GELU } cuda_lt_act;

/* y = act(alpha * a b + bias + beta * c), row-major and dense; c is laid out as y. transposed inputs lie [k,
 * m] or [n, k]. batch products at once, whose a and b are stride_a and stride_b elements apart (0: the same
 * for all); results follow each other. */
typedef struct cuda_lt_matmul {
    grt_dtype
        dtype; /* FLOAT, FLOAT16, BFLOAT16 or DOUBLE, of everything; 16-bit types are summed in float32 */
    grt_dtype of_a, of_b; /* FLOAT8E4M3FN or FLOAT8E5M2, with b transposed; NONE: dtype */
    bool b_scale_each;    /* with float8: the scale of b is one for each column, that of a one for each row */
    bool tf32;            /* float32 may be multiplied as TF32 */
    bool trans_a, trans_b;
    int64_t m, n, k, batch, stride_a, stride_b;
    bool bias;           /* one for each column; not with DOUBLE */
    int64_t stride_bias; /* elements to the bias of the batch's next product; 0: one bias for all */
    cuda_lt_act act;
    bool adds_c;       /* beta is not 0 */
    int64_t alignment; /* of all pointers, a power of two up to 16: what algorithms may rely on */
    size_t workspace_cap;
} cuda_lt_matmul;

typedef struct cuda_lt_args {
    double alpha, beta;
    const void *a, *b, *c, *bias;   /* NULL where there is none */
    void *y, *workspace;            /* workspace: aligned to CUDA_LT_WORKSPACE_ALIGNMENT */
    const float *a_scale, *b_scale; /* of float8, in device memory */
} cuda_lt_args;

enum { CUDA_LT_WORKSPACE_ALIGNMENT = 256 };

typedef struct cuda_lt_plan cuda_lt_plan;

/* *out_plan is NULL, with GRT_OK, if cuBLASLt has no algorithm for it. A recorded choice for such a
 * product and device (backends/algos.h) is used without a heuristic query. `desc` is for messages. */
grt_status cuda_lt_plan_create(cuda_device *device, const grt_op_desc *desc, const cuda_lt_matmul *matmul,
                               grt_algo_trial *trial, cuda_lt_plan **out_plan);
/* Asks for an algorithm, so that the library is ready to be asked; nothing is kept. */
void cuda_lt_ask(cuda_device *device, const cuda_lt_matmul *matmul);
void cuda_lt_plan_release(cuda_lt_plan *plan); /* NULL-safe */
size_t cuda_lt_plan_workspace(const cuda_lt_plan *plan);
/* By one thread at a time. */
grt_status cuda_lt_plan_run(cuda_lt_plan *plan, const grt_op_desc *desc, const cuda_lt_args *args,
                            cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
