/* SPDX-License-Identifier: Apache-2.0 */
/* Checks machine code from a file before the driver reads it: the driver takes no size and would read past a
 * truncated file. */
#ifndef GRT_BACKENDS_CUDA_CUBIN_H
#define GRT_BACKENDS_CUDA_CUBIN_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Is it a cubin, an ELF file for CUDA, whose tables and sections all lie in these bytes? What the code does
 * is not looked at. */
bool cuda_cubin_is_whole(const void *code, size_t size);

#ifdef __cplusplus
}
#endif
#endif
