/* SPDX-License-Identifier: Apache-2.0 */
/* Text of JSON that comes from a file, before a library is given it to read. */
#ifndef GRT_BACKENDS_CUDA_JSON_H
#define GRT_BACKENDS_CUDA_JSON_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CUDA_JSON_MOST = 64 << 10, CUDA_JSON_DEEPEST = 32 };

/* Is it one object, written as RFC 8259 says, of at most CUDA_JSON_MOST bytes and nested at most
 * CUDA_JSON_DEEPEST deep? What its members mean is the library's to check. */
bool cuda_json_is_object(const char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
