/* SPDX-License-Identifier: Apache-2.0 */
/* Any number of trials, in children that try one after the other within a time and an amount of memory. A
 * child that dies, hangs or leaks is a failure, and another one goes on behind it. */
#ifndef GRT_TESTS_MUTATE_BATCH_H
#define GRT_TESTS_MUTATE_BATCH_H

#include "src/base/arena.h"
#include "tests/mutate/trial.h"

/* What is tried: a model or a plan. */
typedef struct batch_case {
    const char *name; /* of what it was made from */
    const void *bytes;
    size_t size;
    const char *what; /* was changed; "" if nothing was */
} batch_case;

typedef struct batch {
    const char *program;
    uint64_t seed, count; /* of the first case; of cases */
    unsigned limit;       /* seconds for one */
    const char *save;     /* file to which each is written before it is tried, or NULL */
    const char *target;   /* kind of device that models are compiled for; NULL: the CPU */
    bool verbose;
    trial_inputs inputs;
    /* The next case, drawn from tests/differential/draw.h, in the arena. False ends the program. */
    bool (*make)(void *user, grt_arena *arena, batch_case *out);
    void *user;
} batch;

/* --seed, --count, --limit, --target, --save, --verbose; other arguments, at least one, are moved to the
 * front of argv. Their number, or -1 for bad use. */
int batch_options(batch *b, int argc, char **argv);
#define BATCH_USAGE                                                                              \
    "  --seed N         of the first one (1); what fails is repeated by --seed THAT --count 1\n" \
    "  --count N        of them (%llu)\n"                                                        \
    "  --limit SECONDS  for one of them (%u)\n"                                                  \
    "  --target KIND    of device that models are compiled for; they run on the CPU (cpu)\n"     \
    "  --save FILE      write each there before it is tried\n"                                   \
    "  --verbose        a line for each\n"

/* Prints failures and, at the end, totals; the exit status. */
int batch_run(const batch *b);

#endif
