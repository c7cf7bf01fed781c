/* SPDX-License-Identifier: Apache-2.0 */
/* What generated kernels have in common: how their source begins, and how their code is kept. */
#ifndef GRT_BACKENDS_CUDA_GENERATED_H
#define GRT_BACKENDS_CUDA_GENERATED_H

#include "backends/cuda/cuda.h"

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
/* Compiles the source of the kernel of node `name` and keeps it under `key`, unless that is done already. */
grt_status cuda_generate(cuda_device *device, const char *name, const char *key, const grt_text *source);

#ifdef __cplusplus
}
#endif
#endif
