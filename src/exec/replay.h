/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of a program's segments: a set of them for each combination of pointers that is bound.
 *
 * A graph holds addresses, so whoever binds other memory needs other graphs. The sets of the last
 * GRT_MAX_GRAPH_SETS combinations are kept; a caller who cycles through so many replays them all. The least
 * recently used one makes room. */
#ifndef GRT_SRC_EXEC_REPLAY_H
#define GRT_SRC_EXEC_REPLAY_H

#include "backends/backend.h"
#include "src/base/arena.h"

enum {
    GRT_MAX_GRAPH_SETS = 32,
    GRT_MAX_CAPTURES = 4, /* of one segment that fail in a row: it goes step by step from then on */
};

typedef struct grt_graph_set {
    void **pointers;
    void **graphs; /* per segment; NULL before it is captured */
    uint64_t hash, last_used;
    bool ran; /* once, step by step */
} grt_graph_set;

typedef struct grt_replay {
    grt_graph_set *sets; /* NULL: the device has no graphs */
    int32_t n_sets, n_pointers, n_segments;
    void **pointers; /* what is bound now */
    uint64_t runs;
    int32_t *failures;   /* of captures, per segment */
    char *not_captured;  /* why the last capture failed; NULL: it did not */
    int32_t failed_step; /* where; -1: at its end */
} grt_replay;

grt_status grt_replay_create(grt_arena *arena, int32_t n_pointers, int32_t n_segments,
                             grt_replay *out_replay);
void grt_replay_release(grt_replay *replay, grt_device *device);

/* The set for the pointers that are bound now; a new one takes the place of the least recently used. */
grt_graph_set *grt_replay_find(grt_replay *replay, grt_device *device);
/* Memory that is not bound has moved: the graphs go. */
void grt_replay_clear(grt_replay *replay, grt_device *device);
int32_t grt_replay_count(const grt_replay *replay); /* sets that have graphs */

/* A capture may fail for a reason that passes, such as memory that a library wanted meanwhile: the next runs
 * try again, a few times. The reason is grt_last_error(). */
void grt_replay_note_failure(grt_replay *replay, int32_t segment, int32_t step);
void grt_replay_forget_failures(grt_replay *replay, int32_t segment);

#endif
