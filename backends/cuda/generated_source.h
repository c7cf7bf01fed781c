/* SPDX-License-Identifier: Apache-2.0 */
/* What the sources of generated kernels have in common. Text alone: it needs no CUDA. */
#ifndef GRT_BACKENDS_CUDA_GENERATED_SOURCE_H
#define GRT_BACKENDS_CUDA_GENERATED_SOURCE_H

#include "src/base/text.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The vocabulary of pointwise.def for T, which is float; element types and of_TYPE, to_TYPE between them and
 * T. */
extern const char cuda_generated_beginning[];
/* Constants are written as their bits. */
uint32_t cuda_bits_of(float x);
/* As in overlap.cuh. */
void cuda_generated_let_next_begin(grt_text *s);
void cuda_generated_wait(grt_text *s);

#ifdef __cplusplus
}
#endif
#endif
