/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of many megabytes. */
#ifndef GRT_SRC_BASE_LARGE_H
#define GRT_SRC_BASE_LARGE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Like aligned_alloc, of any size, for free(). Large blocks begin at a huge page and ask for huge pages: what
 * writes them first would otherwise stop at every small page. What makes no whole huge page stays small, so
 * that no more becomes resident than was asked for. */
void *grt_alloc_large(size_t alignment, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
