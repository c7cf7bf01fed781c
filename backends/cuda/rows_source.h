/* SPDX-License-Identifier: Apache-2.0 */
/* Generated kernels for groups that compute rows (graphrt::Rows): which shapes they are for, their keys,
 * their source. Needs no GPU.
 *
 * A row is a warp's, that of a part of a warp if it is short, or a block's if it is long. A thread has
 * CUDA_ROWS_VECTOR neighbouring elements of the row, if rows are whole vectors, and those again threads x
 * vector further on; what waits for later phases (src/base/rows.h) stays in its registers, inputs are read
 * again. The order of a sum: a thread's elements as they come, in float32; lanes in pairs, the farthest
 * first; warps one by one. The row's length and how inputs are read are code; the number of rows and the
 * sizes of the dims in front of them are arguments. */
#ifndef GRT_BACKENDS_CUDA_ROWS_SOURCE_H
#define GRT_BACKENDS_CUDA_ROWS_SOURCE_H

#include "backends/kernel.h"
#include "src/base/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_ROWS_KERNEL "rows" /* the name of the function */
enum { CUDA_ROWS_VECTOR = 4, CUDA_ROWS_BLOCK = 128 /* threads, unless one row has more */ };

/* Rows are counted along groups of dims, the innermost first: the dims in front of the row, joined where
 * every input either has or repeats all of them. What an input has, a bit for the row and one for each group;
 * it is repeated along the others. */
enum { CUDA_ROWS_GROUPS = ROWS_MAX_GROUPS, CUDA_ROWS_HAS_ROW = 1 };
static inline int32_t cuda_rows_has_group(int32_t group)
{
    return 2 << group;
}

typedef struct cuda_rows_form {
    int32_t n_in;
    grt_dtype in_dtype[ROWS_MAX_INPUTS], out_dtype;
    uint8_t place[ROWS_MAX_INPUTS];
    int32_t length, vector, threads; /* threads of a row */
    uint32_t rows;
    uint32_t sizes[CUDA_ROWS_GROUPS - 1]; /* of the groups but the outermost */
} cuda_rows_form;

/* What a kernel is called with: blocks of cuda_rows_block threads, cuda_rows_grid of them. */
typedef struct cuda_rows_args {
    const void *in[ROWS_MAX_INPUTS];
    void *out;
    uint32_t rows, sizes[CUDA_ROWS_GROUPS - 1];
} cuda_rows_args;

/* False: no kernel is generated for such a program and shapes. `out` has the node's dims; row_dims as the
 * attribute. */
bool cuda_rows_form_of(const rows_program *program, int32_t row_dims, const grt_tensor *const *in,
                       const grt_tensor *out, cuda_rows_form *form);
uint32_t cuda_rows_block(const cuda_rows_form *form);
uint32_t cuda_rows_grid(const cuda_rows_form *form);
/* The parts of a key that tell the kernel from others; behind grt_device_algo_key. */
void cuda_rows_key(const grt_op_desc *desc, const cuda_rows_form *form, grt_text *key);
/* CUDA C++ without headers. */
void cuda_rows_source(const rows_program *program, const cuda_rows_form *form, grt_text *source);

#ifdef __cplusplus
}
#endif
#endif
