/* SPDX-License-Identifier: Apache-2.0 */
/* What names mean: single assignment in a scope, inner scopes first, names unique in the module. */
#include "graph/import/importer.h"

#include <inttypes.h>

/* Things in a scope's table that are not values. */
static char pending, omitted;
#define PENDING ((void *)&pending)
#define OMITTED ((void *)&omitted)

/* Things in the table of used names: taken, or kept for the main graph, whose names reach the caller. */
static char taken, reserved;
#define TAKEN    ((void *)&taken)
#define RESERVED ((void *)&reserved)

static bool is_value(const void *thing)
{
    return thing && thing != PENDING && thing != OMITTED;
}

const char *scope_unique(importer *imp, const scope *s, const char *name)
{
    const char *base = grt_arena_printf(imp->arena, "%s%s", s->call ? s->call->prefix : "", name);
    for (const char *unique = base; unique;
         unique = grt_arena_printf(imp->arena, "%s:%" PRId64, base, ++imp->module->next_id)) {
        names_entry *e = names_add(&imp->used, imp->scratch, unique);
        if (!e)
            return NULL;
        if (!e->thing || (e->thing == RESERVED && !s->outer && !s->call)) {
            e->thing = TAKEN;
            return unique;
        }
    }
    return NULL;
}

grt_status scope_announce(importer *imp, scope *s, const char *name)
{
    names_entry *e = names_add(&s->table, imp->scratch, name);
    if (!e)
        return grt_fail_memory(0);
    if (!e->thing)
        e->thing = PENDING;
    if (s->outer || s->call)
        return GRT_OK;
    names_entry *used = names_add(&imp->used, imp->scratch, name);
    if (!used)
        return grt_fail_memory(0);
    if (!used->thing)
        used->thing = RESERVED;
    return GRT_OK;
}

grt_status scope_omit(importer *imp, scope *s, const char *name)
{
    names_entry *e = names_add(&s->table, imp->scratch, name);
    if (!e)
        return grt_fail_memory(0);
    e->thing = OMITTED;
    return GRT_OK;
}

/* The inner name shadows the outer one. */
static grt_status warn_of_shadow(importer *imp, const scope *s, const culprit *who, const char *name)
{
    for (const scope *o = s->outer; o; o = o->outer) {
        const names_entry *e = names_find(&o->table, name);
        if (e && is_value(e->thing))
            return warning(
                imp, who,
                "'%s' is the name of a value in a graph around '%s', too; in '%s' it means the inner "
                "one",
                name, s->graph->name, s->graph->name);
    }
    return GRT_OK;
}

grt_status scope_define(importer *imp, scope *s, const culprit *who, const char *name, ir_value *value)
{
    GRT_TRY(warn_of_shadow(imp, s, who, name));
    names_entry *e = names_add(&s->table, imp->scratch, name);
    if (!e || !value)
        return grt_fail_memory(0);
    if (e->thing && e->thing != PENDING)
        return problem(imp, who, "'%s' is defined twice: every name must be assigned once", name);
    e->thing = value;
    return GRT_OK;
}

grt_status scope_redefine(importer *imp, scope *s, const char *name, ir_value *value)
{
    names_entry *e = names_add(&s->table, imp->scratch, name);
    if (!e)
        return grt_fail_memory(0);
    e->thing = value;
    return GRT_OK;
}

ir_value *scope_own(const scope *s, const char *name)
{
    const names_entry *e = names_find(&s->table, name);
    return e && is_value(e->thing) ? e->thing : NULL;
}

grt_status scope_resolve(importer *imp, scope *s, const culprit *who, const char *what, const char *name,
                         ir_value **out_value)
{
    *out_value = NULL;
    if (!*name)
        return GRT_OK;
    for (const scope *o = s; o; o = o->outer) {
        const names_entry *e = names_find(&o->table, name);
        if (!e)
            continue;
        if (is_value(e->thing))
            *out_value = e->thing;
        else if (e->thing == PENDING) /* sorting would have put the maker first */
            return problem(imp, who, "%s '%s' is made by a node that needs this one: a cycle", what, name);
        return GRT_OK;
    }
    return problem(imp, who, "%s '%s' is not defined: no graph input, initializer or node makes it", what,
                   name);
}
