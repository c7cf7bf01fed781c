/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/differential/buffer.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD = 256, PATTERN = 0x5a };

void *guarded(size_t bytes)
{
    unsigned char *all = malloc(bytes + 2 * GUARD);
    if (!all)
        exit(2);
    memset(all, PATTERN, bytes + 2 * GUARD);
    return all + GUARD;
}

bool guards_hold(const void *data, size_t bytes)
{
    const unsigned char *all = (const unsigned char *)data - GUARD;
    for (size_t i = 0; i < GUARD; i++)
        if (all[i] != PATTERN || all[GUARD + bytes + i] != PATTERN)
            return false;
    return true;
}

void release(void *data)
{
    if (data)
        free((unsigned char *)data - GUARD);
}
