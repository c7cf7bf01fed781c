/* SPDX-License-Identifier: Apache-2.0 */
/* Checks JSON text from a file before a library parses it. */
#ifndef GRT_BACKENDS_CUDA_JSON_H
#define GRT_BACKENDS_CUDA_JSON_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CUDA_JSON_MOST = 64 << 10, CUDA_JSON_DEEPEST = 32 };

/* True if it is one object (RFC 8259) of at most CUDA_JSON_MOST bytes and at most CUDA_JSON_DEEPEST deep. The
 * library checks its members. */
bool cuda_json_is_object(const char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
