/* SPDX-License-Identifier: Apache-2.0 */
/* Values with rows, for pass `row_places`: which are moves of which, in what order their bases are read, and
 * what is to be read instead. */
#ifndef GRT_GRAPH_PASSES_ROW_PLACE_H
#define GRT_GRAPH_PASSES_ROW_PLACE_H

#include "graph/passes/row_mover.h"

enum { ROW_ORDER_NONE = ROWS_UNKNOWN, ROW_ORDER_MANY = -2 };

typedef enum place_kind {
    PLACE_INPUT, /* what others make, for the region to read */
    PLACE_MOVED, /* by a view or a move of rows */
    PLACE_MADE,  /* row by row */
} place_kind;

/* A value with rows; value->mark - 1 is its number. */
typedef struct row_place {
    ir_value *value;
    place_kind kind;
    int64_t base;      /* the number of its base; its own if it is one */
    int32_t order;     /* in which it has the base's rows */
    bool moves;        /* MOVED: not a view */
    int64_t read_copy; /* one more than the number of the copy that the last reader of the value gets */
    ir_value *read;    /* that, under the value's dims */
    /* Of bases. */
    int64_t parent;           /* union-find; a root stands for a region */
    int64_t first_copy, last; /* of its copies, one more than the number; 0: none */
    int32_t readers;
    int32_t wanted;       /* the order that others than row-wise nodes want, also behind some of these */
    int64_t wanted_bytes; /* of a row, that are moved if it does not have it */
    /* Of roots: bytes of a row that are moved. */
    int64_t before, after;
    bool failed;
} row_place;

/* A base with its rows in some order. The first one is what its node makes. */
typedef struct row_copy {
    int64_t base, next;
    int32_t order;
    ir_node *before; /* its first reader */
    ir_value *value; /* NULL: not made yet */
} row_copy;

/* An input that is to be a copy, under the dims that it has. */
typedef struct row_reading {
    ir_node *node;
    int32_t input;
    int64_t copy;
    ir_value *value;
} row_reading;

typedef struct row_places {
    pass_context *context;
    grt_arena *arena;
    row_tables tables;
    row_mover mover;
    row_place *places;
    row_copy *copies;
    row_reading *readings;
    int64_t n, capacity, n_copies, copies_capacity, n_readings, readings_capacity;
} row_places;

/* The number of the root of a base's region. */
int64_t row_place_root(row_places *p, int64_t base);
/* The root itself. */
row_place *row_place_region(row_places *p, int64_t base);
/* NULL: the value has none. */
row_place *row_place_of(const row_places *p, const ir_value *value);
/* The place that a node of the region makes; NULL: it is none. */
row_place *row_place_made_by(const row_places *p, const ir_node *node);
/* True if the node reads dims only: the order of rows does not matter. */
bool row_place_unread(const ir_node *node);
/* Makes the places of the graph's values. False: out of memory. */
bool row_places_find(row_places *p, ir_graph *graph);

/* The number of a base's copy with that order; -1: there is none. */
int64_t row_copy_find(const row_places *p, const row_place *base, int32_t order);
/* One more copy of the base, which `before` reads first. -1: out of memory. */
int64_t row_copy_add(row_places *p, int64_t base, int32_t order, ir_node *before, ir_value *value);

#endif
