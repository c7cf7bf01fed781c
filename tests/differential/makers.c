/* SPDX-License-Identifier: Apache-2.0 */
/* See makers.h. The table is makers.def. */
#include "tests/differential/makers.h"

#include <string.h>

enum { MAX_OPS = 12 };

typedef struct maker {
    void (*make)(node *);
    const char *ops[MAX_OPS]; /* up to the first NULL */
} maker;

static const maker makers[] = {
#define MAKER(name, ...) {make_##name, {__VA_ARGS__}},
#include "tests/differential/makers.def"
#undef MAKER
};
enum { N_MAKERS = sizeof makers / sizeof *makers };

/* The wanted ops of the maker at work. */
static const char *choice[MAX_OPS];
static int n_choice;

static bool is_wanted(const char *ops, const char *op)
{
    const size_t n = strlen(op);
    for (const char *at = ops; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && !strncmp(at, op, n))
            return true;
    return !ops;
}

static void choose(const maker *m, const char *ops)
{
    n_choice = 0;
    for (int i = 0; i < MAX_OPS && m->ops[i]; i++)
        if (is_wanted(ops, m->ops[i]))
            choice[n_choice++] = m->ops[i];
}

const char *draw_op(void)
{
    return choice[draw(0, n_choice - 1)];
}

bool make_node(node *n, const char *ops)
{
    const maker *able[N_MAKERS];
    int n_able = 0;
    for (int i = 0; i < N_MAKERS; i++) {
        choose(&makers[i], ops);
        if (n_choice)
            able[n_able++] = &makers[i];
    }
    if (!n_able)
        return false;
    const maker *m = able[draw(0, n_able - 1)];
    choose(m, ops);
    n->op = choice[0];
    m->make(n);
    return true;
}
