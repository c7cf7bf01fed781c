/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/targets.h"

#include "tools/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool set_kind(targets *t, const char *option, const char *kind)
{
    const bool ok = !t->kind || !strcmp(t->kind, kind);
    if (!ok)
        tool_error("%s: a plan is for one kind of devices: %s or %s", option, t->kind, kind);
    t->kind = kind;
    return ok;
}

static bool no_target(const targets *t, const char *option, const char *text)
{
    char names[1024] = "none are installed";
    size_t at = 0;
    for (size_t i = 0; i < t->all.n && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s (sm_%d)", i ? ", " : "",
                               t->all.items[i].id, (int)t->all.items[i].sm);
    tool_error("%s: '%s' is neither a kind of devices (graphc devices) nor a GPU that is described here: %s",
               option, text, names);
    return false;
}

/* Of a module that is not listed, as devices of any name are found. */
static bool is_modules_kind(const char *text)
{
    int32_t n;
    return grt_device_count(text, &n) == GRT_OK;
}

bool targets_add(targets *t, const char *option, const char *text)
{
    for (size_t i = 0; i < grt_device_kind_count(); i++) {
        grt_device_kind_info kind = {.struct_size = sizeof kind};
        if (grt_device_kind(i, &kind) == GRT_OK && !strcmp(kind.name, text))
            return set_kind(t, option, kind.name);
    }
    if (!t->all.n && !descriptions_load(&t->all))
        return false;
    const description *d = descriptions_find(&t->all, text);
    if (!d)
        return is_modules_kind(text) ? set_kind(t, option, text) : no_target(t, option, text);
    grt_device_description *grown = realloc(t->devices, (t->n + 1) * sizeof *grown);
    if (!grown) {
        tool_error("out of memory");
        return false;
    }
    t->devices = grown;
    t->devices[t->n++] = (grt_device_description){.name = d->name, .sm = d->sm, .properties = d->properties};
    return set_kind(t, option, d->kind);
}

void targets_set(const targets *t, grt_compile_options *options)
{
    options->target = t->kind;
    options->devices = t->devices;
    options->n_devices = t->n;
}

void targets_release(targets *t)
{
    descriptions_release(&t->all);
    free(t->devices);
}
