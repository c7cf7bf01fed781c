/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: the library's own allocations fail, from the STARVE_AT-th on. Those of other libraries do not:
 * tests/starve/ fails those, one at a time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *code_begin, *code_end; /* of the library */
static atomic_long count;
static long first = -1;
static _Thread_local bool looking; /* reading the map allocates too */
static bool looked; /* before main: the library is there from the start, or the program is another one */

static void look(void)
{
    looking = looked = true;
    char line[512];
    FILE *map = fopen("/proc/self/maps", "r");
    while (map && !code_begin && fgets(line, sizeof line, map)) {
        unsigned long begin, end;
        if (strstr(line, "libgraphrt.so") && strstr(line, " r-xp ") &&
            sscanf(line, "%lx-%lx", &begin, &end) == 2) {
            code_end = (const char *)end;
            code_begin = (const char *)begin;
        }
    }
    if (map)
        fclose(map);
    const char *at = getenv("STARVE_AT");
    first = at ? atol(at) : 0;
    looking = false;
}

static bool fails(const void *caller)
{
    if (looking)
        return false;
    if (!looked)
        look();
    const char *from = caller;
    return code_begin && from >= code_begin && from < code_end && first > 0 &&
           atomic_fetch_add(&count, 1) + 1 >= first;
}

/* dlsym allocates with calloc: that one has another name in the C library. */
extern void *__libc_calloc(size_t n, size_t size);

void *calloc(size_t n, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

void *malloc(size_t size)
{
    static void *(*real)(size_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "malloc");
    return fails(__builtin_return_address(0)) ? NULL : real(size);
}

void *realloc(void *old, size_t size)
{
    static void *(*real)(void *, size_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "realloc");
    return fails(__builtin_return_address(0)) ? NULL : real(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    static void *(*real)(size_t, size_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "aligned_alloc");
    return fails(__builtin_return_address(0)) ? NULL : real(alignment, size);
}
