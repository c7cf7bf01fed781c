/* SPDX-License-Identifier: Apache-2.0 */
/* Looking bytes up in a table of 256. */
#ifndef GRT_BACKENDS_CPU_BYTE_TABLE_H
#define GRT_BACKENDS_CPU_BYTE_TABLE_H

#include <stdint.h>

/* y[i] = table[x[i]]; y may be x. */
void cpu_byte_table(const uint8_t *table, const uint8_t *x, int64_t n, uint8_t *y);

#endif
