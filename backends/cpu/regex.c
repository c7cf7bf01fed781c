/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a pattern, out of its tree. */
#include "backends/cpu/regex.h"

#include "backends/cpu/regex_tree.h"
#include "src/base/grow.h"

#include <stdlib.h>

enum {
    MAX_PATTERN = 20000,   /* bytes: bounds the depth of the tree, hence of recursions over it */
    MAX_PROGRAM = 1 << 15, /* instructions, after repetitions are written out */
};

static int32_t regex_emit(cpu_regex *regex, instruction i)
{
    if (regex->n >= MAX_PROGRAM || !GRT_GROW(regex->program, regex->n, regex->capacity))
        return -1;
    regex->program[regex->n] = i;
    return regex->n++;
}

/* False: the program got too long. */
static bool emit_tree(cpu_regex *regex, const regex_tree *t);

static bool emit_alternate(cpu_regex *regex, const regex_tree *t)
{
    int32_t split = regex_emit(regex, (instruction){.op = OP_SPLIT});
    if (split < 0 || !emit_tree(regex, t->a))
        return false;
    int32_t jump = regex_emit(regex, (instruction){.op = OP_JUMP});
    if (jump < 0)
        return false;
    regex->program[split].x = split + 1;
    regex->program[split].y = regex->n;
    if (!emit_tree(regex, t->b))
        return false;
    regex->program[jump].x = regex->n;
    return true;
}

static bool emit_repeat(cpu_regex *regex, const regex_tree *t)
{
    for (int32_t i = 0, n = -1; i < t->min && n != regex->n; i++) { /* what is empty once is empty always */
        n = regex->n;
        if (!emit_tree(regex, t->a))
            return false;
    }
    if (t->max < 0) {
        int32_t split = regex_emit(regex, (instruction){.op = OP_SPLIT});
        if (split < 0 || !emit_tree(regex, t->a) ||
            regex_emit(regex, (instruction){.op = OP_JUMP, .x = split}) < 0)
            return false;
        regex->program[split].x = split + 1;
        regex->program[split].y = regex->n;
        return true;
    }
    for (int32_t i = t->min; i < t->max;
         i++) { /* each further one is optional, its absence leads to the next */
        int32_t split = regex_emit(regex, (instruction){.op = OP_SPLIT});
        if (split < 0 || !emit_tree(regex, t->a))
            return false;
        regex->program[split].x = split + 1;
        regex->program[split].y = regex->n;
    }
    return true;
}

static bool emit_tree(cpu_regex *regex, const regex_tree *t)
{
    switch (t->kind) {
    case T_EMPTY:
        return true;
    case T_CLASS:
        return regex_emit(regex, (instruction){.op = OP_CLASS, .chars = t->chars}) >= 0;
    case T_ASSERT:
        return regex_emit(regex, (instruction){.op = OP_ASSERT, .assertion = t->assertion}) >= 0;
    case T_CONCAT:
        return emit_tree(regex, t->a) && emit_tree(regex, t->b);
    case T_ALTERNATE:
        return emit_alternate(regex, t);
    case T_REPEAT:
        return emit_repeat(regex, t);
    }
    return false;
}

grt_status cpu_regex_compile(const char *pattern, size_t size, cpu_regex **out_regex)
{
    if (size > MAX_PATTERN)
        return grt_fail(GRT_STATUS_UNSUPPORTED, "the pattern has %zu bytes; at most %d are supported", size,
                        MAX_PATTERN);
    cpu_regex *regex = calloc(1, sizeof *regex);
    grt_arena *arena = regex ? grt_arena_create() : NULL;
    if (!arena) {
        free(regex);
        return grt_fail_memory(sizeof *regex);
    }
    regex->arena = arena;
    const regex_tree *t;
    grt_status status = cpu_regex_parse(arena, pattern, size, &t);
    if (status == GRT_OK && (!emit_tree(regex, t) || regex_emit(regex, (instruction){.op = OP_MATCH}) < 0))
        status = grt_fail(GRT_STATUS_UNSUPPORTED, "the pattern has repetitions that make it too large");
    if (status != GRT_OK) {
        cpu_regex_release(regex);
        return status;
    }
    *out_regex = regex;
    return GRT_OK;
}

void cpu_regex_release(cpu_regex *regex)
{
    if (!regex)
        return;
    grt_arena_release(regex->arena);
    free(regex->program);
    free(regex);
}
