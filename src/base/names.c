/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing, at most half full. */
#include "src/base/names.h"

#include <string.h>
#include <xxhash.h>

static uint64_t hash_of(const names *table, const char *name)
{
    return XXH3_64bits_withSeed(name, strlen(name), table->seed);
}

static names_entry *names_slot_of(const names *table, const char *name, uint64_t hash)
{
    size_t mask = table->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        names_entry *e = &table->slots[i];
        if (!e->name || (e->hash == hash && !strcmp(e->name, name)))
            return e;
    }
}

names_entry *names_find(const names *table, const char *name)
{
    if (!table->n)
        return NULL;
    names_entry *e = names_slot_of(table, name, hash_of(table, name));
    return e->name ? e : NULL;
}

static bool grow(names *table, grt_arena *arena)
{
    names bigger = {
        .capacity = table->capacity ? 2 * table->capacity : 16, .n = table->n, .seed = table->seed};
    bigger.slots = GRT_ARENA_ARRAY(arena, names_entry, bigger.capacity);
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < table->capacity; i++)
        if (table->slots[i].name)
            *names_slot_of(&bigger, table->slots[i].name, table->slots[i].hash) = table->slots[i];
    *table = bigger;
    return true;
}

names_entry *names_add(names *table, grt_arena *arena, const char *name)
{
    if (!table->seed)
        table->seed = (uint64_t)(uintptr_t)arena; /* where the loader and the allocator happened to put it */
    if (2 * (table->n + 1) > table->capacity && !grow(table, arena))
        return NULL;
    uint64_t hash = hash_of(table, name);
    names_entry *e = names_slot_of(table, name, hash);
    if (!e->name) {
        *e = (names_entry){name, hash, NULL};
        table->n++;
    }
    return e;
}
