/* SPDX-License-Identifier: Apache-2.0 */
/* Between float32 and 8-bit numbers with one scale: the loops of QuantizeLinear and its relatives. */
#ifndef GRT_BACKENDS_CPU_QLINEAR_H
#define GRT_BACKENDS_CPU_QLINEAR_H

#include <stdbool.h>
#include <stdint.h>

/* y = saturate(round(x / scale) + zero), ties to even, NaN to the least. y: int8 (is_signed) or uint8. */
void cpu_quantise_bytes(const float *x, int64_t n, float scale, int32_t zero, bool is_signed, uint8_t *y);
/* y = (x - zero) * scale */
void cpu_dequantise_bytes(const uint8_t *x, int64_t n, float scale, int32_t zero, bool is_signed, float *y);
/* Widens [*low, *high] to the least and largest of x; NaN does not count. */
void cpu_widen_range(const float *x, int64_t n, float *low, float *high);

#endif
