/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/visible.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char variable[] = "CUDA_VISIBLE_DEVICES";
enum { MOST = 1024 };

/* The largest number of "0,2-5", -1 if it is no such list. */
static long last_of(const char *numbers)
{
    long last = -1;
    while (*numbers >= '0' && *numbers <= '9') {
        char *end;
        const long number = strtol(numbers, &end, 10);
        last = number > last ? number : last;
        if (!*end)
            return last < MOST ? last : -1;
        if (*end != ',' && *end != '-')
            return -1;
        numbers = end + 1;
    }
    return -1;
}

/* The first n elements of a list with commas, which may have fewer. */
static void keep_elements(const char *list, long n)
{
    const char *end = list;
    for (; *end && (*end != ',' || --n > 0); end++)
        ;
    char *kept = strndup(list, (size_t)(end - list));
    if (kept)
        setenv(variable, kept, 1);
    free(kept);
}

void visible_limit(const char *device)
{
    static const char kind[] = "cuda";
    if (!device || strncmp(device, kind, sizeof kind - 1) != 0)
        return;
    const char *rest = device + sizeof kind - 1, *seen = getenv(variable);
    const long last = !*rest ? 0 : *rest == ':' ? last_of(rest + 1) : -1;
    char list[MOST * 5] = "0";
    if (last < 0)
        return;
    size_t at = 1;
    for (long i = 1; i <= last; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, ",%ld", i);
    keep_elements(seen ? seen : list, last + 1);
}
