/* SPDX-License-Identifier: Apache-2.0 */
/* The syntax of patterns: alternatives, groups, repetitions, and what stands for a character. */
#include "backends/cpu/regex_parser.h"

#include <string.h>

enum {
    MAX_DEPTH = 500,   /* of nested groups */
    MAX_REPEAT = 1000, /* as RE2 */
};

static regex_tree *regex_join(regex_parser *p, regex_tree_kind kind, regex_tree *a, regex_tree *b)
{
    if (!a || !b)
        return a ? a : b;
    regex_tree *t = cpu_regex_tree(p, kind);
    if (t) {
        t->a = a;
        t->b = b;
    }
    return t;
}

static regex_tree *literal(regex_parser *p, int32_t c)
{
    regex_tree *t = cpu_regex_class(p);
    if (t)
        cpu_regex_add_range(p, t->chars, c, c);
    return t;
}

static regex_tree *assert_tree(regex_parser *p, assertion what)
{
    regex_tree *t = cpu_regex_tree(p, T_ASSERT);
    if (t)
        t->assertion = what;
    return t;
}

static regex_tree *parse_alternatives(regex_parser *p);

/* (?flags) and (?flags:...; `at` is behind "(?". Returns true if a group follows. */
static bool parse_flags(regex_parser *p)
{
    bool on = true;
    for (; p->at < p->end; p->at++) {
        switch (*p->at) {
        case 'i':
            p->fold = on;
            break;
        case 's':
            p->dot_all = on;
            break;
        case 'm':
            p->multi_line = on;
            break;
        case 'U': /* greediness does not change what matches as a whole */
            break;
        case '-':
            on = false;
            break;
        case ':':
        case ')':
            return *p->at++ == ':';
        default:
            cpu_regex_fail(p, GRT_STATUS_INVALID_MODEL, "a group (?...) that RE2 does not have");
            return false;
        }
    }
    cpu_regex_fail(p, GRT_STATUS_INVALID_MODEL, "a ( without its )");
    return false;
}

/* (...); `at` is behind the bracket. */
static regex_tree *parse_group(regex_parser *p)
{
    regex_parser outer = *p;
    if (p->end - p->at > 1 && *p->at == '?') {
        p->at++;
        bool named = (p->end - p->at > 1 && *p->at == 'P' && p->at[1] == '<') || *p->at == '<';
        if (named) {
            while (p->at < p->end && *p->at != '>')
                p->at++;
            p->at += p->at < p->end;
        } else if (!parse_flags(p)) {
            return cpu_regex_tree(p, T_EMPTY); /* the flags hold until the end of the group around */
        }
    }
    if (++p->depth > MAX_DEPTH) {
        cpu_regex_fail(p, GRT_STATUS_UNSUPPORTED, "groups nested more than 500 deep");
        return NULL;
    }
    regex_tree *inside = parse_alternatives(p);
    p->depth--;
    if (p->at < p->end && *p->at == ')')
        p->at++;
    else
        cpu_regex_fail(p, GRT_STATUS_INVALID_MODEL, "a ( without its )");
    p->fold = outer.fold;
    p->dot_all = outer.dot_all;
    p->multi_line = outer.multi_line;
    return inside;
}

static regex_tree *parse_backslash(regex_parser *p)
{
    char c = p->at < p->end ? *p->at : '\0';
    const char *found = c ? strchr("AzbB", c) : NULL;
    static const assertion assertions[] = {A_BEGIN, A_END, A_WORD, A_NOT_WORD};
    if (found) {
        p->at++;
        return assert_tree(p, assertions[found - strchr("AzbB", 'A')]);
    }
    if (c == 'Q') {
        p->at++;
        p->quoted = true;
        return cpu_regex_tree(p, T_EMPTY);
    }
    regex_tree *t = cpu_regex_class(p);
    if (t && cpu_regex_add_perl_class(p, t->chars, c)) {
        p->at++;
        t->chars->fold = false;
        return t;
    }
    return literal(p, cpu_regex_parse_escape(p));
}

static regex_tree *parse_dot(regex_parser *p)
{
    regex_tree *t = cpu_regex_class(p);
    if (!t)
        return NULL;
    t->chars->fold = false;
    t->chars->negated = true;
    if (!p->dot_all)
        cpu_regex_add_range(p, t->chars, '\n', '\n');
    return t;
}

/* Behind \E, what follows is no longer quoted. */
static bool end_quote(regex_parser *p)
{
    if (p->end - p->at < 2 || p->at[0] != '\\' || p->at[1] != 'E')
        return false;
    p->at += 2;
    p->quoted = false;
    return true;
}

static regex_tree *parse_atom(regex_parser *p)
{
    if (p->quoted) {
        if (end_quote(p))
            return cpu_regex_tree(p, T_EMPTY);
        regex_tree *t = literal(p, cpu_regex_decode(&p->at, p->end));
        end_quote(p); /* a repetition that follows is the last character's */
        return t;
    }
    switch (*p->at) {
    case '(':
        p->at++;
        return parse_group(p);
    case '[':
        p->at++;
        return cpu_regex_parse_class(p);
    case '\\':
        p->at++;
        return parse_backslash(p);
    case '.':
        p->at++;
        return parse_dot(p);
    case '^':
        p->at++;
        return assert_tree(p, p->multi_line ? A_LINE_BEGIN : A_BEGIN);
    case '$':
        p->at++;
        return assert_tree(p, p->multi_line ? A_LINE_END : A_END);
    case '*':
    case '+':
    case '?':
        cpu_regex_fail(p, GRT_STATUS_INVALID_MODEL, "a repetition of nothing");
        return NULL;
    default:
        return literal(p, cpu_regex_decode(&p->at, p->end));
    }
}

/* {n}, {n,}, {n,m}; anything else that starts with a brace is text. */
static bool parse_bounds(regex_parser *p, int32_t *min, int32_t *max)
{
    const char *at = p->at + 1;
    int32_t bounds[2] = {-1, -1};
    int which = 0;
    for (; at < p->end && *at != '}'; at++) {
        if (*at == ',' && which == 0 && bounds[0] >= 0) {
            which = 1;
        } else if (*at >= '0' && *at <= '9') {
            int32_t value = (bounds[which] < 0 ? 0 : bounds[which]) * 10 + (*at - '0');
            bounds[which] = value > MAX_REPEAT ? MAX_REPEAT + 1 : value;
        } else {
            return false;
        }
    }
    if (at >= p->end || bounds[0] < 0)
        return false;
    p->at = at + 1;
    *min = bounds[0];
    *max = which ? bounds[1] : bounds[0];
    if (*min > MAX_REPEAT || *max > MAX_REPEAT || (*max >= 0 && *max < *min))
        cpu_regex_fail(p, GRT_STATUS_INVALID_MODEL, "repetition counts above 1000, or not in order");
    return true;
}

static regex_tree *parse_repeated(regex_parser *p)
{
    regex_tree *t = parse_atom(p);
    while (p->status == GRT_OK && !p->quoted && p->at < p->end) {
        int32_t min = *p->at == '+', max = *p->at == '?' ? 1 : -1;
        if (*p->at == '*' || *p->at == '+' || *p->at == '?')
            p->at++;
        else if (*p->at != '{' || !parse_bounds(p, &min, &max))
            break;
        if (p->at < p->end && *p->at == '?') /* lazy: the same texts match */
            p->at++;
        regex_tree *repeat = cpu_regex_tree(p, T_REPEAT);
        if (!repeat)
            return NULL;
        repeat->a = t;
        repeat->min = min;
        repeat->max = max;
        t = repeat;
    }
    return t;
}

static regex_tree *parse_alternatives(regex_parser *p)
{
    regex_tree *all = NULL, *one = cpu_regex_tree(p, T_EMPTY);
    while (p->status == GRT_OK && p->at < p->end && (p->quoted || *p->at != ')')) {
        if (!p->quoted && *p->at == '|') {
            p->at++;
            all = regex_join(p, T_ALTERNATE, all, one);
            one = cpu_regex_tree(p, T_EMPTY);
        } else {
            one = regex_join(p, T_CONCAT, one, parse_repeated(p));
        }
    }
    return regex_join(p, T_ALTERNATE, all, one);
}

grt_status cpu_regex_parse(grt_arena *arena, const char *pattern, size_t size, const regex_tree **out_tree)
{
    regex_parser p = {.arena = arena, .at = pattern, .end = pattern + size};
    const regex_tree *t = parse_alternatives(&p);
    if (p.status == GRT_OK && p.at < p.end)
        cpu_regex_fail(&p, GRT_STATUS_INVALID_MODEL, "a ) without its (");
    if (p.status == GRT_OK && (!t || grt_arena_failed(arena)))
        p.status = grt_fail_memory(0);
    if (p.status == GRT_OK)
        *out_tree = t;
    return p.status;
}
