/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/replay.h"

#include "src/base/log.h"

#include <stdlib.h>
#include <string.h>

grt_status grt_replay_create(grt_arena *arena, int32_t n_pointers, int32_t n_segments, grt_replay *out_replay)
{
    grt_replay r = {.n_pointers = n_pointers, .n_segments = n_segments};
    r.sets = GRT_ARENA_ARRAY(arena, grt_graph_set, GRT_MAX_GRAPH_SETS);
    r.pointers = GRT_ARENA_ARRAY(arena, void *, n_pointers + 1);
    r.failures = GRT_ARENA_ARRAY(arena, int32_t, n_segments + 1);
    for (int32_t i = 0; r.sets && i < GRT_MAX_GRAPH_SETS; i++) {
        r.sets[i].pointers = GRT_ARENA_ARRAY(arena, void *, n_pointers + 1);
        r.sets[i].graphs = GRT_ARENA_ARRAY(arena, void *, n_segments + 1);
    }
    if (grt_arena_failed(arena))
        return grt_fail_memory(0);
    *out_replay = r;
    return GRT_OK;
}

static void release_graphs(const grt_replay *replay, grt_graph_set *set, grt_device *device)
{
    for (int32_t k = 0; k < replay->n_segments; k++) {
        grt_device_graph_release(device, set->graphs[k]);
        set->graphs[k] = NULL;
    }
}

void grt_replay_clear(grt_replay *replay, grt_device *device)
{
    for (int32_t i = 0; i < replay->n_sets; i++)
        release_graphs(replay, &replay->sets[i], device);
}

void grt_replay_release(grt_replay *replay, grt_device *device)
{
    grt_replay_clear(replay, device);
    free(replay->not_captured);
    replay->not_captured = NULL;
}

static uint64_t hash_pointers(const grt_replay *replay)
{
    uint64_t hash = 0;
    for (int32_t i = 0; i < replay->n_pointers; i++) {
        hash = (hash ^ (uint64_t)(uintptr_t)replay->pointers[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

static grt_graph_set *least_recently_used(grt_replay *replay)
{
    grt_graph_set *oldest = &replay->sets[0];
    if (replay->n_sets < GRT_MAX_GRAPH_SETS)
        return &replay->sets[replay->n_sets++];
    for (int32_t i = 1; i < replay->n_sets; i++)
        if (replay->sets[i].last_used < oldest->last_used)
            oldest = &replay->sets[i];
    return oldest;
}

grt_graph_set *grt_replay_find(grt_replay *replay, grt_device *device)
{
    const size_t bytes = (size_t)replay->n_pointers * sizeof *replay->pointers;
    const uint64_t hash = hash_pointers(replay), now = ++replay->runs;
    for (int32_t i = 0; i < replay->n_sets; i++) {
        grt_graph_set *set = &replay->sets[i];
        if (set->hash == hash && !memcmp(set->pointers, replay->pointers, bytes)) {
            set->last_used = now;
            return set;
        }
    }
    grt_graph_set *set = least_recently_used(replay);
    release_graphs(replay, set, device);
    memcpy(set->pointers, replay->pointers, bytes);
    set->hash = hash;
    set->last_used = now;
    set->ran = false;
    return set;
}

int32_t grt_replay_count(const grt_replay *replay)
{
    int32_t n = 0;
    for (int32_t i = 0; i < replay->n_sets; i++) {
        bool any = false;
        for (int32_t k = 0; k < replay->n_segments; k++)
            any = any || replay->sets[i].graphs[k];
        n += any;
    }
    return n;
}

void grt_replay_note_failure(grt_replay *replay, int32_t segment, int32_t step)
{
    free(replay->not_captured);
    replay->not_captured = strdup(grt_last_error());
    replay->failed_step = step;
    GRT_LOG(WARNING, "run", "segment %d is not replayed as a graph: %s", (int)segment, grt_last_error());
    replay->failures[segment]++;
}

void grt_replay_forget_failures(grt_replay *replay, int32_t segment)
{
    if (!replay->failures[segment])
        return;
    free(replay->not_captured);
    replay->not_captured = NULL;
    replay->failures[segment] = 0;
}
