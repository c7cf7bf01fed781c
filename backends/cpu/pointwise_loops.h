/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over one block of elements, one per pointwise function and element type. */
#ifndef GRT_BACKENDS_CPU_POINTWISE_LOOPS_H
#define GRT_BACKENDS_CPU_POINTWISE_LOOPS_H

#include "src/base/pointwise.h"
#include "src/base/rows.h"
#include "src/base/tensor.h"

/* out[i] = f(in[0][i], ...) for i < n. Where scalar[k] is set, operand k is one element. out may be one of
 * the operands that are not scalar, and otherwise overlaps none. p: the function's parameters. */
typedef void (*pw_loop)(int64_t n, void *out, const void *const *in, const uint8_t *scalar, const float *p);

/* Loops of one element type by opcode; NULL where the function is not made for it. */
typedef const pw_loop *pw_table;

/* Element types float32, float64, integers, bool. NULL for others (16-bit floats are computed in float32). */
pw_table cpu_pw_table(grt_dtype dtype);

/* The loop of Pow with cheap forms for constant exponents. */
void cpu_pw_power_f32(int64_t n, void *out, const void *const *in, const uint8_t *scalar, const float *p);

/* Folds each of `rows` rows of n elements into its so_far, which begins with what changes nothing: 0, an
 * infinity, 1. */
typedef void (*rows_fold_loop)(int64_t rows, int64_t n, const float *x, double *so_far);

/* What each copy of pointwise_f32.inc offers: the same loops, compiled for an instruction set. */
typedef struct pw_f32_tables {
    pw_loop typed[PW_COUNT], group[PW_COUNT];
    /* 16-bit floats to float32 and back. */
    void (*from_half)(int64_t n, const uint16_t *in, float *out);
    void (*to_half)(int64_t n, const float *in, uint16_t *out);
    void (*from_bfloat16)(int64_t n, const uint16_t *in, float *out);
    void (*to_bfloat16)(int64_t n, const float *in, uint16_t *out);
    void (*from_bool)(int64_t n, const uint8_t *in, float *out);
    void (*to_bool)(int64_t n, const float *in, uint8_t *out);
    /* rows_folds.inc */
    rows_fold_loop fold[ROWS_FOLDS], fold_squares; /* fold_squares: the sum of x * x */
    void (*spread)(int64_t rows, int64_t n, const float *numbers, float *out);
} pw_f32_tables;
extern const pw_f32_tables cpu_pw_f32_base, cpu_pw_f32_avx2, cpu_pw_f32_avx512;
/* The one for this machine. */
const pw_f32_tables *cpu_pw_f32(void);

#endif
