/* SPDX-License-Identifier: Apache-2.0 */
/* Names to things, in an arena: the symbol tables of import. Nothing is ever removed. */
#ifndef GRT_SRC_BASE_NAMES_H
#define GRT_SRC_BASE_NAMES_H

#include "src/base/arena.h"

typedef struct names_entry {
    const char *name; /* NULL: free slot */
    uint64_t hash;
    void *thing;
} names_entry;

/* Zero-initialised is empty. */
typedef struct names {
    names_entry *slots;
    size_t n, capacity; /* capacity: a power of two, or 0 */
    uint64_t seed;      /* differs from run to run, so that no file can be made of names that collide */
} names;

/* The entry of `name`, or NULL. */
names_entry *names_find(const names *table, const char *name);
/* The entry of `name`, made with thing == NULL if there was none. The name must outlive the table. The
 * pointer is valid until the next names_add. NULL: out of memory. */
names_entry *names_add(names *table, grt_arena *arena, const char *name);

#endif
