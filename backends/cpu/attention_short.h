/* SPDX-License-Identifier: Apache-2.0 */
/* A head whose query rows look at few keys: scores of a row are in registers from their products to their
 * softmax. Calls of the general product take as long as such a head's arithmetic. Compiled once per
 * instruction set (attention_short.inc); cpu_rows has the loops. */
#ifndef GRT_BACKENDS_CPU_ATTENTION_SHORT_H
#define GRT_BACKENDS_CPU_ATTENTION_SHORT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ATTENTION_SHORT_VECTORS = 4,   /* of scores in a row */
    ATTENTION_SHORT_ROWS = 64,     /* query rows */
    ATTENTION_SHORT_FLOATS = 4096, /* of transposed keys, in whole vectors */
};

typedef struct attention_short {
    const float *q, *k, *v;
    float *y;
    int64_t q_row, k_row, v_row, y_row; /* distance of rows */
    int64_t rows, keys, size, v_size;
    float scale;
    const float *mask; /* added to scores; NULL: none */
    int64_t mask_row;
    const int32_t *from, *to; /* keys that each row may look at; NULL: all */
} attention_short;

#endif
