/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that copy large inputs for GPUs together with the thread that asks: one alone moves a tenth of what
 * the memory of a server can. */
#ifndef GRT_SERVING_TRITON_COPIERS_H
#define GRT_SERVING_TRITON_COPIERS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct copiers copiers;

/* With `n` threads, which may be 0; fewer where the system has no more. NULL without memory. */
copiers *copiers_create(size_t n);
size_t copiers_threads(const copiers *all);
/* Nothing may be copied any more. Takes NULL. */
void copiers_release(copiers *all);

/* Returns when all is copied. Any number of threads may ask. */
void copiers_copy(copiers *all, char *to, const char *from, size_t size);

#endif
