/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/regex_parser.h"

void cpu_regex_fail(regex_parser *p, grt_status status, const char *what)
{
    if (p->status == GRT_OK)
        p->status = grt_fail(status, "the pattern has %s", what);
}

regex_tree *cpu_regex_tree(regex_parser *p, regex_tree_kind kind)
{
    regex_tree *t = GRT_ARENA_NEW(p->arena, regex_tree);
    if (!t && p->status == GRT_OK)
        p->status = grt_fail_memory(sizeof *t);
    if (t)
        t->kind = kind;
    return t;
}
