/* SPDX-License-Identifier: Apache-2.0 */
/* Bump allocator: a list of blocks, each twice as large as the one before. */
#include "src/base/arena.h"

#include "src/base/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Blocks of MAPPED_BLOCK and more are mapped and ask for huge pages: weights that have to be copied spend
 * most of their time in page faults otherwise. */
enum { FIRST_BLOCK = 16 << 10, LARGEST_BLOCK = 32 << 20, MAPPED_BLOCK = 4 << 20, HUGE_PAGE = 2 << 20 };

typedef struct block {
    struct block *next;
    size_t size, used;
    void *map; /* the whole mapping, or NULL if the block came from calloc */
    size_t map_size;
    _Alignas(16) char data[];
} block;

typedef struct deferred {
    struct deferred *next;
    void (*release)(void *);
    void *object;
} deferred;

struct grt_arena {
    block *blocks; /* newest first */
    deferred *deferred;
    size_t next_size, bytes;
    bool failed;
};

grt_arena *grt_arena_create(void)
{
    grt_arena *arena = calloc(1, sizeof *arena);
    if (arena)
        arena->next_size = FIRST_BLOCK;
    return arena;
}

static void run_deferred(grt_arena *arena)
{
    while (arena->deferred) {
        deferred *d = arena->deferred;
        arena->deferred = d->next;
        d->release(d->object);
    }
}

static void free_blocks(block *b)
{
    while (b) {
        block *next = b->next;
        if (b->map)
            munmap(b->map, b->map_size);
        else
            free(b);
        b = next;
    }
}

void grt_arena_release(grt_arena *arena)
{
    if (!arena)
        return;
    run_deferred(arena);
    free_blocks(arena->blocks);
    free(arena);
}

void grt_arena_reset(grt_arena *arena)
{
    run_deferred(arena);
    if (arena->blocks) {
        free_blocks(arena->blocks->next);
        arena->blocks->next = NULL;
        memset(arena->blocks->data, 0, arena->blocks->used);
        arena->blocks->used = 0;
    }
    arena->bytes = 0;
    arena->failed = false;
}

/* Zeroed memory that starts on a huge page. */
static block *map_block(size_t size)
{
    size_t map_size = grt_align_up(size, HUGE_PAGE) + HUGE_PAGE;
    void *map =
        mmap(NULL, map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    block *b = (block *)grt_align_up((uintptr_t)map, HUGE_PAGE);
    size_t usable = map_size - (size_t)((char *)b - (char *)map);
    madvise(b, usable, MADV_HUGEPAGE); /* a wish */
    b->map = map;
    b->map_size = map_size;
    return b;
}

static block *add_block(grt_arena *arena, size_t bytes)
{
    size_t size = bytes > arena->next_size ? bytes : arena->next_size;
    block *b = size < MAPPED_BLOCK ? calloc(1, sizeof *b + size) : map_block(sizeof *b + size);
    if (!b)
        return NULL;
    b->size = size;
    b->next = arena->blocks;
    arena->blocks = b;
    if (arena->next_size < LARGEST_BLOCK)
        arena->next_size *= 2;
    return b;
}

void *grt_arena_alloc(grt_arena *arena, size_t bytes)
{
    if (arena->failed || bytes > SIZE_MAX / 2) {
        arena->failed = true;
        return NULL;
    }
    bytes = grt_align_up(bytes ? bytes : 1, 16);
    block *b = arena->blocks;
    if (!b || b->size - b->used < bytes)
        b = add_block(arena, bytes);
    if (!b) {
        arena->failed = true;
        return NULL;
    }
    void *p = b->data + b->used;
    b->used += bytes;
    arena->bytes += bytes;
    return p;
}

void *grt_arena_calloc(grt_arena *arena, size_t n, size_t size)
{
    size_t bytes;
    if (!grt_mul_size(n, size, &bytes)) {
        arena->failed = true;
        return NULL;
    }
    return grt_arena_alloc(arena, bytes);
}

void *grt_arena_memdup(grt_arena *arena, const void *data, size_t size)
{
    void *copy = grt_arena_alloc(arena, size);
    if (copy && size)
        memcpy(copy, data, size);
    return copy;
}

char *grt_arena_strndup(grt_arena *arena, const char *text, size_t size)
{
    char *copy = grt_arena_alloc(arena, size + 1);
    if (copy && size)
        memcpy(copy, text, size);
    return copy;
}

char *grt_arena_strdup(grt_arena *arena, const char *text)
{
    return grt_arena_strndup(arena, text, strlen(text));
}

char *grt_arena_printf(grt_arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : grt_arena_alloc(arena, (size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

bool grt_arena_defer(grt_arena *arena, void (*release)(void *object), void *object)
{
    deferred *d = GRT_ARENA_NEW(arena, deferred);
    if (!d) {
        release(object);
        return false;
    }
    *d = (deferred){arena->deferred, release, object};
    arena->deferred = d;
    return true;
}

void grt_arena_fail(grt_arena *arena)
{
    arena->failed = true;
}

bool grt_arena_failed(const grt_arena *arena)
{
    return arena->failed;
}

size_t grt_arena_bytes(const grt_arena *arena)
{
    return arena->bytes;
}
