/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a backend is complete: see registry.h. */
#include "backends/registry.h"

#include <string.h>

enum { MAX_FUNCTIONS = 5 };

typedef void (*function)(void);

typedef struct table {
    const char *noun;
    size_t at; /* in grt_device_api */
    size_t n;
    const char *functions[MAX_FUNCTIONS]; /* in the order of their table */
} table;

#define TABLE(noun, type, ...)                                                  \
    {                                                                           \
#noun, offsetof(grt_device_api, noun), sizeof(type) / sizeof(function), \
        {                                                                       \
            __VA_ARGS__                                                         \
        }                                                                       \
    }

static const table tables[] = {
    TABLE(memory, grt_memory_api, "alloc", "free", "check", "in_use"),
    TABLE(copies, grt_copy_api, "upload", "download", "copy"),
    TABLE(streams, grt_stream_api, "create", "release", "wait", "id", "is_captured"),
    TABLE(current, grt_current_api, "enter", "leave"),
    TABLE(fences, grt_fence_api, "create", "release", "record", "wait", "stream_wait"),
    TABLE(graphs, grt_graph_api, "begin", "end", "launch", "release"),
    TABLE(peers, grt_peer_api, "can", "enable", "copy"),
    TABLE(pinned, grt_pinned_api, "alloc", "free", "pin", "unpin"),
    TABLE(timer, grt_timer_api, "create", "release", "record", "elapsed"),
    TABLE(locals, grt_local_api, "check", "release"),
    TABLE(parts, grt_part_api, "take", "give", "close"),
};
enum { N_TABLES = sizeof tables / sizeof *tables };

static const void *complete_table_of(const grt_device_api *api, const table *t)
{
    const void *found;
    memcpy(&found, (const char *)api + t->at, sizeof found);
    return found;
}

static grt_status check_table(const grt_backend *backend, const grt_device_api *api, const table *t)
{
    const char *found = complete_table_of(api, t);
    for (size_t i = 0; found && i < t->n; i++) {
        function f;
        memcpy(&f, found + i * sizeof f, sizeof f);
        if (!f)
            return grt_fail(GRT_STATUS_INTERNAL,
                            "backend '%s' has a table of %s without '%s'; a table is complete or absent",
                            backend->name, t->noun, t->functions[i]);
    }
    return GRT_OK;
}

static grt_status complete_wants(const grt_backend *backend, const char *noun, bool has, const char *other,
                                 bool given)
{
    return !has || given ? GRT_OK
                         : grt_fail(GRT_STATUS_INTERNAL, "backend '%s' has %s, which want %s", backend->name,
                                    noun, other);
}

static grt_status check_devices(const grt_backend *backend, const grt_device_api *api)
{
    if (!api || !api->close)
        return grt_fail(GRT_STATUS_INTERNAL, "backend '%s' has devices without 'close'", backend->name);
    for (size_t i = 0; i < N_TABLES; i++)
        GRT_TRY(check_table(backend, api, &tables[i]));
    GRT_TRY(complete_wants(backend, "copies", api->copies, "streams", api->streams));
    GRT_TRY(complete_wants(backend, "streams", api->streams, "copies", api->copies));
    GRT_TRY(complete_wants(backend, "fences", api->fences, "streams", api->streams));
    GRT_TRY(complete_wants(backend, "graphs", api->graphs, "streams", api->streams));
    GRT_TRY(complete_wants(backend, "peers", api->peers, "fences", api->fences));
    return complete_wants(backend, "times", api->timer, "streams", api->streams);
}

grt_status grt_backend_check(const grt_backend *backend)
{
    if (!backend->name || !*backend->name)
        return grt_fail(GRT_STATUS_INTERNAL, "a backend has no name");
    if (!backend->device_count || !backend->device_open || !backend->find_kernel)
        return grt_fail(GRT_STATUS_INTERNAL, "backend '%s' lacks device_count, device_open or find_kernel",
                        backend->name);
    GRT_TRY(check_devices(backend, backend->api));
    if (!backend->api->memory)
        return grt_fail(GRT_STATUS_INTERNAL, "backend '%s' has devices without memory", backend->name);
    GRT_TRY(complete_wants(backend, "traits of its own memory", backend->traits.own_memory, "copies",
                           backend->api->copies));
    const int described =
        !!backend->describe + !!backend->open_description + (backend->description_api != NULL);
    if (described % 3 != 0)
        return grt_fail(
            GRT_STATUS_INTERNAL,
            "backend '%s' has some of describe, open_description and description_api; it needs all or none",
            backend->name);
    return described ? check_devices(backend, backend->description_api) : GRT_OK;
}
