/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/devices.h"

#include "tools/report.h"

#include <graphrt/graphrt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024 };

static bool add_device(device_list *list, const char *kind, int kind_size, long number)
{
    char name[128];
    if (number < 0)
        snprintf(name, sizeof name, "%.*s", kind_size, kind);
    else
        snprintf(name, sizeof name, "%.*s:%ld", kind_size, kind, number);
    for (size_t i = 0; i < list->n; i++)
        if (!strcmp(list->names[i], name)) {
            tool_error("--device: %s is named twice", name);
            return false;
        }
    char **grown = list->n < MOST ? realloc(list->names, (list->n + 1) * sizeof *grown) : NULL;
    if (grown)
        list->names = grown;
    char *copy = grown ? strdup(name) : NULL;
    if (!copy) {
        tool_error("--device: more than %d devices, or out of memory", MOST);
        return false;
    }
    list->names[list->n++] = copy;
    return true;
}

/* Devices of a kind; then grt_last_error() says why there are none. */
static int32_t count_devices(const char *kind, int kind_size)
{
    char name[64];
    int32_t n = 0;
    snprintf(name, sizeof name, "%.*s", kind_size, kind);
    return grt_device_count(name, &n) == GRT_OK && n > 0 ? n : 0;
}

static bool add_all(device_list *list, const char *kind, int kind_size)
{
    const int32_t n = count_devices(kind, kind_size);
    for (int32_t i = 0; i < n; i++)
        if (!add_device(list, kind, kind_size, i))
            return false;
    if (n == 0)
        tool_error("--device: %s has no devices here: %s", kind, grt_last_error());
    return n > 0;
}

static bool refuse_device(const char *text)
{
    tool_error("--device: '%s' is not KIND, KIND:NUMBER, KIND:all, or KIND: with numbers and ranges, as in "
               "%s:0,2 or null:0-7",
               text, devices_accelerator());
    return false;
}

/* "0,2-5" */
static bool add_numbers(device_list *list, const char *text, const char *kind, int kind_size,
                        const char *numbers)
{
    for (const char *at = numbers;; at++) {
        char *end;
        if (*at < '0' || *at > '9')
            return refuse_device(text);
        long first = strtol(at, &end, 10), last = first;
        if (*end == '-') {
            at = end + 1;
            if (*at < '0' || *at > '9')
                return refuse_device(text);
            last = strtol(at, &end, 10);
        }
        if (last < first || last - first >= MOST)
            return refuse_device(text);
        for (long i = first; i <= last; i++)
            if (!add_device(list, kind, kind_size, i))
                return false;
        if (!*end)
            return true;
        if (*end != ',')
            return refuse_device(text);
        at = end;
    }
}

bool devices_parse(const char *text, device_list *out)
{
    const char *kind = text ? text : "cpu", *colon = strchr(kind, ':');
    *out = (device_list){0};
    bool ok;
    if (!colon)
        ok = add_device(out, kind, (int)strlen(kind), -1);
    else if (!strcmp(colon + 1, "all"))
        ok = add_all(out, kind, (int)(colon - kind));
    else
        ok = add_numbers(out, kind, kind, (int)(colon - kind), colon + 1);
    if (!ok)
        devices_release(out);
    return ok;
}

bool devices_kind(const char *text, char out[DEVICE_KIND_SIZE])
{
    const char *kind = text ? text : "cpu", *colon = strchr(kind, ':');
    const int size = (int)strcspn(kind, ":");
    device_list named = {0};
    const bool ok = !colon || !strcmp(colon + 1, "all") || add_numbers(&named, kind, kind, size, colon + 1);
    devices_release(&named);
    snprintf(out, DEVICE_KIND_SIZE, "%.*s", size, kind);
    return ok;
}

bool devices_has(const char *text)
{
    const char *kind = text ? text : "cpu", *colon = strchr(kind, ':');
    const int32_t n = count_devices(kind, (int)strcspn(kind, ":"));
    char *end = NULL;
    const long number = colon ? strtol(colon + 1, &end, 10) : 0;
    return number >= 0 && number < n && !(colon && (end == colon + 1 || *end));
}

const char *devices_accelerator(void)
{
    for (size_t i = 0; i < grt_device_kind_count(); i++) {
        grt_device_kind_info kind = {.struct_size = sizeof kind};
        if (grt_device_kind(i, &kind) == GRT_OK && kind.accelerator && !kind.test_only)
            return kind.name;
    }
    return "cpu";
}

void devices_release(device_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->names[i]);
    free(list->names);
    *list = (device_list){0};
}
