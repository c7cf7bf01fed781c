/* SPDX-License-Identifier: Apache-2.0 */
/* Families of branches: what the values that a node joins have in common, followed back level by level.
 *
 * N values that are used alike are a group: N results of nodes of one form, ranges of one value, constants,
 * or one value N times. The groups that the inputs of a join come from, and all groups that hang together
 * with them, are a family. */
#ifndef GRT_GRAPH_PASSES_BRANCH_FAMILY_H
#define GRT_GRAPH_PASSES_BRANCH_FAMILY_H

#include "graph/passes/value_form.h"

typedef struct group {
    form_kind kind; /* OPAQUE: all members are one value */
    ir_value **members;
    int32_t *in; /* NODE: the inputs' groups, -1 where omitted; PART: that of what is cut */
    int32_t n, n_in;
    int32_t uses; /* of each member, in the family */
    int32_t join; /* the first one that ends here, or -1 */
    int32_t family;
    int64_t order;    /* of what makes the first member, -1: nothing */
    ir_value *value;  /* for the pass: the batch */
    ir_value **apart; /* for the pass: members that others read too, by themselves */
} group;

/* Inputs from .. from + n of a Concat are the members of a group; or all that Sum, a chain of Add and the
 * like take together. */
typedef struct join {
    ir_node *node;      /* of a chain the last */
    const char *reduce; /* what does the same along the batch; NULL: Concat */
    ir_value *start;    /* what a chain begins with, if that is no member */
    int32_t from, n;    /* n 0: they are no group */
    int32_t group;
    int32_t next;   /* of the same group, or -1 */
    int32_t family; /* another join of the same family, or itself */
    ir_value *made; /* for the pass */
} join;

typedef struct families {
    grt_arena *scratch;
    forms forms;
    group *groups;
    join *joins;
    int32_t n_groups, n_joins;
    group **sorted; /* those of a family together, each behind what it is made from */
} families;

/* All that the graph has. Nodes get their order as mark. Nothing is there if memory is out, which the arena
 * knows. */
void families_find(families *f, ir_graph *graph, grt_arena *scratch);
/* The family that begins at sorted[from]; returns where the next one does. */
int32_t families_end(const families *f, int32_t from);
/* Does somebody outside the family read member i? */
static inline bool group_is_read_apart(const group *g, int32_t i)
{
    return g->members[i]->n_uses > g->uses;
}
/* Made by nodes that a batch takes the place of? */
static inline bool group_is_computed(const group *g)
{
    return g->kind == FORM_NODE || g->kind == FORM_PART;
}

#endif
