/* SPDX-License-Identifier: Apache-2.0 */
/* The machine: all states that the text so far allows, at once. */
#include "backends/cpu/regex.h"
#include "backends/cpu/regex_program.h"

#include <string.h>

enum { END_OF_TEXT = -1 };

int32_t cpu_regex_decode(const char **at, const char *end)
{
    const unsigned char *p = (const unsigned char *)*at;
    int n = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 : *p >> 3 == 30 ? 4 : 0;
    int32_t code = n == 1 ? *p : *p & (0x7f >> n);
    if (!n || end - *at < n)
        goto invalid;
    for (int i = 1; i < n; i++) {
        if (p[i] >> 6 != 2)
            goto invalid;
        code = code << 6 | (p[i] & 0x3f);
    }
    *at += n;
    return code;
invalid:
    *at += 1;
    return 0xfffd;
}

static bool in_ranges(const char_class *chars, int32_t c)
{
    for (int32_t i = 0; i < chars->n; i++)
        if (c >= chars->ranges[i].lo && c <= chars->ranges[i].hi)
            return true;
    return false;
}

static bool matches(const char_class *chars, int32_t c)
{
    bool found = in_ranges(chars, c) || (chars->fold && cpu_regex_is_letter(c) && in_ranges(chars, c ^ 0x20));
    return found != chars->negated;
}

/* States of the machine between two characters. */
typedef struct states {
    int32_t *list, n;        /* waiting for a character, or matched */
    int32_t *seeds, n_seeds; /* where the character before led to */
    uint32_t *marks;         /* equal to `now`: state was reached here already */
    uint32_t now;
} states;

size_t cpu_regex_scratch_bytes(const cpu_regex *regex)
{
    return (size_t)regex->n * (4 * sizeof(int32_t) + 2 * sizeof(size_t));
}

static bool holds(assertion what, int32_t before, int32_t after)
{
    switch (what) {
    case A_BEGIN:
        return before == END_OF_TEXT;
    case A_END:
        return after == END_OF_TEXT;
    case A_LINE_BEGIN:
        return before == END_OF_TEXT || before == '\n';
    case A_LINE_END:
        return after == END_OF_TEXT || after == '\n';
    default:
        return (cpu_regex_is_word(before) != cpu_regex_is_word(after)) == (what == A_WORD);
    }
}

static void regex_match_push(states *s, int32_t *stack, int32_t *top, int32_t state)
{
    if (s->marks[state] == s->now)
        return;
    s->marks[state] = s->now;
    stack[(*top)++] = state;
}

/* From the seeds along everything that needs no character. */
static void close_over(const cpu_regex *regex, states *s, int32_t *stack, int32_t before, int32_t after)
{
    int32_t top = 0;
    s->now++;
    s->n = 0;
    for (int32_t i = 0; i < s->n_seeds; i++)
        regex_match_push(s, stack, &top, s->seeds[i]);
    while (top) {
        int32_t at = stack[--top];
        const instruction *in = &regex->program[at];
        if (in->op == OP_SPLIT)
            regex_match_push(s, stack, &top, in->y);
        if (in->op == OP_SPLIT || in->op == OP_JUMP)
            regex_match_push(s, stack, &top, in->x);
        else if (in->op == OP_ASSERT && holds(in->assertion, before, after))
            regex_match_push(s, stack, &top, at + 1);
        else if (in->op != OP_ASSERT)
            s->list[s->n++] = at;
    }
}

bool cpu_regex_full_match(const cpu_regex *regex, const char *text, size_t size, void *scratch)
{
    int32_t *room = scratch, n = regex->n, before = END_OF_TEXT;
    states s = {.list = room, .seeds = room + n, .marks = (uint32_t *)(room + 2 * n)};
    int32_t *stack = room + 3 * n;
    const char *at = text, *end = text + size;
    memset(s.marks, 0, (size_t)n * sizeof *s.marks);
    s.seeds[s.n_seeds++] = 0;
    for (;;) {
        const char *next = at;
        int32_t c = at < end ? cpu_regex_decode(&next, end) : END_OF_TEXT;
        close_over(regex, &s, stack, before, c);
        s.n_seeds = 0;
        for (int32_t i = 0; i < s.n; i++) {
            const instruction *in = &regex->program[s.list[i]];
            if (c == END_OF_TEXT && in->op == OP_MATCH)
                return true;
            if (c != END_OF_TEXT && in->op == OP_CLASS && matches(in->chars, c))
                s.seeds[s.n_seeds++] = s.list[i] + 1;
        }
        if (c == END_OF_TEXT || !s.n_seeds)
            return false;
        before = c;
        at = next;
    }
}

/* Every state knows where its match began. States that came first are explored first, so each is reached from
 * the earliest beginning, and `list` is in ascending order of beginnings. */
typedef struct search {
    states s;
    size_t *list_begin, *seed_begin;
    int32_t *stack;
    bool found;
    size_t begin, end; /* of the best match so far */
} search;

static void search_close(const cpu_regex *regex, search *f, int32_t before, int32_t after)
{
    states *s = &f->s;
    s->now++;
    s->n = 0;
    for (int32_t i = 0; i < s->n_seeds; i++) {
        int32_t top = 0;
        regex_match_push(s, f->stack, &top, s->seeds[i]);
        while (top) {
            const int32_t at = f->stack[--top];
            const instruction *in = &regex->program[at];
            if (in->op == OP_SPLIT)
                regex_match_push(s, f->stack, &top, in->y);
            if (in->op == OP_SPLIT || in->op == OP_JUMP) {
                regex_match_push(s, f->stack, &top, in->x);
            } else if (in->op == OP_ASSERT && holds(in->assertion, before, after)) {
                regex_match_push(s, f->stack, &top, at + 1);
            } else if (in->op != OP_ASSERT) {
                f->list_begin[s->n] = f->seed_begin[i];
                s->list[s->n++] = at;
            }
        }
    }
}

/* Notes matches that end at byte `at`, and leaves the seeds that character c leads to. */
static void search_step(const cpu_regex *regex, search *f, size_t at, int32_t c)
{
    states *s = &f->s;
    s->n_seeds = 0;
    for (int32_t i = 0; i < s->n; i++) {
        const instruction *in = &regex->program[s->list[i]];
        const size_t begin = f->list_begin[i];
        if (f->found && begin > f->begin)
            return;
        if (in->op == OP_MATCH) {
            f->found = true;
            f->begin = begin;
            f->end = at;
        } else if (c != END_OF_TEXT && in->op == OP_CLASS && matches(in->chars, c)) {
            f->seed_begin[s->n_seeds] = begin;
            s->seeds[s->n_seeds++] = s->list[i] + 1;
        }
    }
}

/* The character that ends before byte `at`. */
static int32_t character_before(const char *text, size_t at)
{
    const char *p = text + at;
    if (!at)
        return END_OF_TEXT;
    do
        p--;
    while (p > text && text + at - p < 4 && ((unsigned char)*p >> 6) == 2);
    return cpu_regex_decode(&p, text + at);
}

bool cpu_regex_find(const cpu_regex *regex, const char *text, size_t size, size_t from, void *scratch,
                    size_t *out_begin, size_t *out_end)
{
    const int32_t n = regex->n;
    size_t *begins = scratch;
    int32_t *room = (int32_t *)(begins + 2 * n);
    search f = {.list_begin = begins,
                .seed_begin = begins + n,
                .s = {.list = room, .seeds = room + n, .marks = (uint32_t *)(room + 2 * n)},
                .stack = room + 3 * n};
    memset(f.s.marks, 0, (size_t)n * sizeof *f.s.marks);
    int32_t before = character_before(text, from);
    for (size_t at = from;;) {
        const char *next = text + at;
        const int32_t c = at < size ? cpu_regex_decode(&next, text + size) : END_OF_TEXT;
        if (!f.found) {
            f.seed_begin[f.s.n_seeds] = at;
            f.s.seeds[f.s.n_seeds++] = 0;
        }
        search_close(regex, &f, before, c);
        search_step(regex, &f, at, c);
        if (c == END_OF_TEXT || (f.found && !f.s.n_seeds))
            break;
        before = c;
        at = (size_t)(next - text);
    }
    *out_begin = f.begin;
    *out_end = f.end;
    return f.found;
}
