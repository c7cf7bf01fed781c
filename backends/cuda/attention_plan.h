/* SPDX-License-Identifier: Apache-2.0 */
/* How attention of float32 as TF32 is divided on Hopper (attention_warpgroup_tf32.cu). */
#ifndef GRT_BACKENDS_CUDA_ATTENTION_PLAN_H
#define GRT_BACKENDS_CUDA_ATTENTION_PLAN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of a warpgroup, and the most warpgroups with rows in a block. */
enum { CUDA_ATTENTION_ROWS = 64, CUDA_ATTENTION_GROUPS = 2 };

/* Columns of the tiles for heads of these sizes, of queries and of values; 0: there are none. */
int cuda_attention_columns(int64_t size, int64_t v_size);

/* Warpgroups with rows in a block, for as many heads, each with `rows` queries, in all batches; 0: the kernel
 * would leave half of its warpgroups without rows, and blocks of other kernels are better. */
int cuda_attention_groups(int64_t heads, int64_t rows, int multiprocessors);

#ifdef __cplusplus
}
#endif
#endif
