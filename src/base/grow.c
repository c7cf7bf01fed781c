/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/grow.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 16 };

size_t grt_grow(grt_arena *arena, void *list, size_t capacity, size_t element_size)
{
    const size_t wanted = capacity ? 2 * capacity : FIRST;
    void *old, *grown = NULL;
    memcpy(&old, list, sizeof old);
    if (wanted <= INT32_MAX && arena)
        grown = grt_arena_calloc(arena, wanted, element_size);
    else if (wanted <= INT32_MAX && wanted <= SIZE_MAX / element_size)
        grown = realloc(old, wanted * element_size);
    if (!grown)
        return capacity;
    if (arena && capacity)
        memcpy(grown, old, capacity * element_size);
    memcpy(list, &grown, sizeof grown);
    return wanted;
}
