/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays: room for one more element. */
#ifndef GRT_BASE_GROW_H
#define GRT_BASE_GROW_H

#include "src/base/arena.h"

/* True if list[n] is there, after growing if n == capacity. `list` and `capacity`, of any type of integer,
 * are lvalues. False: out of memory; both are as before. New elements of GRT_GROW are not initialised; those
 * of GRT_ARENA_GROW are zero, and the old list stays in the arena. */
#define GRT_GROW(list, n, capacity) GRT_ARENA_GROW(NULL, list, n, capacity)
#define GRT_ARENA_GROW(arena, list, n, capacity)                       \
    ((n) < (capacity) || ((capacity) = (__typeof__(capacity))grt_grow( \
                              (arena), (void *)&(list), (size_t)(capacity), sizeof *(list))) > (n))

/* The new capacity; the old one if memory is short. *list is the array; arena NULL: of malloc. */
size_t grt_grow(grt_arena *arena, void *list, size_t capacity, size_t element_size);

#endif
