/* SPDX-License-Identifier: Apache-2.0 */
/* Attention that keeps every rounding of its types, for rows of a head, and the shapes that it shares with
 * the kernel in blocked float32 (ops/attention.c), which calls it for the other types. */
#ifndef GRT_BACKENDS_CPU_ATTENTION_EXACT_H
#define GRT_BACKENDS_CPU_ATTENTION_EXACT_H

#include "backends/shared/attention.h"
#include "backends/cpu/cpu.h"

typedef struct attention_state {
    grt_attention of;
    bool fast;         /* all float32 */
    grt_dtype softmax; /* NONE: the inputs' */
} attention_state;

/* Elements of [batch, heads, rows, size] with rows dense and the rest strided. */
typedef struct attention_view {
    const void *data;
    int64_t batch, head, row;
} attention_view;

typedef struct attention_shape {
    grt_attention_dims dims;
    int64_t block;                   /* query rows worked on together */
    size_t key_bytes, value_bytes;   /* of joined past and present in the workspace */
    size_t thread_bytes, gemm_bytes; /* scratch per thread, and the part of it for matrix products */
    size_t packed_keys,
        packed_values; /* floats of a head's that blocks of rows share; 0: each packs its own */
} attention_shape;

/* Keys that a query row may look at: grt_attention_range with the run's inputs. */
static inline void attention_range(const grt_run *run, int64_t batch, int64_t i, int64_t *lo, int64_t *hi)
{
    const attention_shape *shape = run->shape;
    const grt_tensor *nonpad = ATTENTION_NONPAD < run->n_in ? run->in[ATTENTION_NONPAD] : NULL;
    grt_attention_range(&shape->dims, nonpad ? (const int64_t *)nonpad->data : NULL, batch, i, lo, hi);
}
/* Some query rows of a head, at most shape->block, all types. K and V as staged; scratch has thread_bytes. */
void attention_exact_rows(const grt_run *run, const attention_view *q, const attention_view *k,
                          const attention_view *v, const attention_view *y, int64_t batch, int64_t head,
                          int64_t row, int64_t rows, double *scratch);
size_t attention_exact_bytes(const attention_shape *shape);

#endif
