/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: its attributes, how the dims of its inputs go together, and which keys a query may look at. All
 * backends compute from these. (ONNX, operator Attention; graphrt::Attention has queries, keys and values
 * side by side in one tensor; graphrt::QAttention quantises its result.) */
#ifndef GRT_BACKENDS_SHARED_ATTENTION_H
#define GRT_BACKENDS_SHARED_ATTENTION_H

#include "backends/kernel.h"
#include "src/base/float.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Inputs and outputs by number. */
enum {
    ATTENTION_Q,
    ATTENTION_K,
    ATTENTION_V,
    ATTENTION_MASK,
    ATTENTION_PAST_KEY,
    ATTENTION_PAST_VALUE,
    ATTENTION_NONPAD,
    ATTENTION_Y_SCALE, /* of graphrt::QAttention */
    ATTENTION_Y_ZERO,
};
enum { ATTENTION_Y, ATTENTION_PRESENT_KEY, ATTENTION_PRESENT_VALUE, ATTENTION_QK };

typedef struct grt_attention {
    bool joined; /* queries, keys and values are one tensor */
    bool causal;
    int64_t left, right;       /* window sizes, -1: unbounded */
    int64_t q_heads, kv_heads; /* of packed inputs */
    double scale;              /* 0: 1 / sqrt(head size) */
    double softcap;            /* 0: none */
    int mode;                  /* what output QK holds: qk_matmul_output_mode */
} grt_attention;

typedef struct grt_attention_dims {
    int64_t batch, q_heads, kv_heads, q_len, kv_len, past, total, size, v_size;
    int64_t mask_len, mask_strides[4]; /* strides: batch, head, row, key */
    int64_t left, right;               /* of the attributes, what a run wants */
    double scale, softcap;             /* scale: never 0 */
    int mode;
    bool joined, causal;
} grt_attention_dims;

void grt_attention_read(const grt_op_desc *desc, grt_attention *attention);
/* INVALID_ARGUMENT names the input that does not fit the others. */
grt_status grt_attention_fit(const grt_attention *attention, const grt_reshape *reshape,
                             grt_attention_dims *dims);

/* Keys that query row i of a batch element may look at, by causality, window and padding: [*lo, *hi). nonpad:
 * that input's data, or NULL. */
GRT_INLINE void grt_attention_range(const grt_attention_dims *dims, const int64_t *nonpad, int64_t batch,
                                    int64_t i, int64_t *lo, int64_t *hi)
{
    int64_t offset = dims->past, end = dims->total, start = 0;
    if (nonpad) {
        int64_t valid = nonpad[batch];
        valid = valid < 0 ? 0 : valid > dims->total ? dims->total : valid;
        offset = valid - dims->q_len;
        end = valid;
    }
    const int64_t position = offset + i;
    if (dims->causal && position + 1 < end)
        end = position + 1;
    if (dims->right >= 0 && position + dims->right + 1 < end)
        end = position + dims->right + 1;
    if (dims->left >= 0 && position - dims->left > start)
        start = position - dims->left;
    end = end < dims->mask_len ? end : dims->mask_len;
    *hi = end < 0 ? 0 : end;
    *lo = start > *hi ? *hi : start;
}

#ifdef __cplusplus
}
#endif
#endif
