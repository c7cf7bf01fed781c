/* SPDX-License-Identifier: Apache-2.0 */
/* Bump allocation: many small objects that live and die together. Zeroed, 16-byte aligned, never freed one by
 * one. */
#ifndef GRT_BASE_ARENA_H
#define GRT_BASE_ARENA_H

#include "src/base/status.h"

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_arena grt_arena;

grt_arena *grt_arena_create(void); /* NULL when out of memory */
void grt_arena_release(grt_arena *arena);
/* Forget everything but keep the first block for reuse. */
void grt_arena_reset(grt_arena *arena);

/* NULL when out of memory, and from then on until a reset: a builder may check once at its end, and what was
 * made last was made if all before it were. */
void *grt_arena_alloc(grt_arena *arena, size_t bytes);
void *grt_arena_calloc(grt_arena *arena, size_t n, size_t size); /* overflow-checked */
char *grt_arena_strdup(grt_arena *arena, const char *text);
char *grt_arena_strndup(grt_arena *arena, const char *text, size_t size);
char *grt_arena_printf(grt_arena *arena, const char *format, ...) GRT_PRINTF(2, 3);
void *grt_arena_memdup(grt_arena *arena, const void *data, size_t size);
/* Call `release(object)` when the arena is released or reset. False when out of memory (release was then
 * called). */
bool grt_arena_defer(grt_arena *arena, void (*release)(void *object), void *object);
bool grt_arena_failed(const grt_arena *arena);
/* Something that belongs to what is built in the arena could not be made elsewhere: as if the arena had
 * failed. */
void grt_arena_fail(grt_arena *arena);
size_t grt_arena_bytes(const grt_arena *arena);

#define GRT_ARENA_NEW(arena, type)      ((type *)grt_arena_alloc((arena), sizeof(type)))
#define GRT_ARENA_ARRAY(arena, type, n) ((type *)grt_arena_calloc((arena), (size_t)(n), sizeof(type)))

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
