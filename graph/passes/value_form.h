/* SPDX-License-Identifier: Apache-2.0 */
/* Forms: which values of a graph are computed alike. A form is a hash of how a value comes about; it is equal
 * for values that nodes of the same ops, attributes and types compute from values of equal forms, in the end
 * from ranges of one value, from constants of one type, or from the same value. */
#ifndef GRT_GRAPH_PASSES_VALUE_FORM_H
#define GRT_GRAPH_PASSES_VALUE_FORM_H

#include "graph/ir/ir.h"

enum { FORM_LEAST = 4 }; /* values of one form that are worth a look */

typedef enum form_kind {
    FORM_OPAQUE, /* told from others by identity only */
    FORM_CONSTANT,
    FORM_NODE,  /* of a node that a batch can compute (batch.h) */
    FORM_RANGE, /* one of many ranges of one value */
    FORM_PART,  /* one of a few ranges of a value, which is a FORM_NODE or FORM_PART */
} form_kind;

typedef struct form {
    form_kind kind;
    int32_t group; /* for the pass: -1 at first */
    uint64_t hash;
    ir_value *whole; /* RANGE, PART: elements from `start` on along `axis` of it */
    int32_t axis;
    int64_t start, width; /* width 0: one element, without that dim */
    ir_value *now;        /* for the pass: what has taken the value's place, or NULL */
} form;

/* The forms of all values that nodes of a graph have to do with; value->mark is the place in the table. */
typedef struct forms {
    form *table;
    int32_t n;
} forms;

/* Room is taken from the arena. False if out of memory. */
bool forms_study(forms *f, ir_graph *graph, grt_arena *scratch);
/* Of a value that a node of the graph reads or makes. */
static inline form *form_of(const forms *f, const ir_value *value)
{
    return &f->table[value->mark];
}

#endif
