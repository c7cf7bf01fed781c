/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/registry.h"

#include "backends/module.h"
#include "src/base/structs.h"

#include <pthread.h>
#include <string.h>

#define LIBRARY(name) extern const grt_backend grt_backend_##name;
#define MODULE(name)
#include "backends/backends.def"
#undef LIBRARY
#undef MODULE

static const struct {
    const char *name;
    const grt_backend *backend; /* NULL: in a module */
} listed[] = {
#define LIBRARY(name) {#name, &grt_backend_##name},
#define MODULE(name)  {#name, NULL},
#include "backends/backends.def"
#undef LIBRARY
#undef MODULE
};
enum { N_LISTED = sizeof listed / sizeof *listed, MAX_KNOWN = 32 };

/* Complete ones, as they were asked for. Modules are never closed: their devices and kernels may be in use
 * until the process ends. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const grt_backend *known[MAX_KNOWN];
static size_t n_known;

const char *grt_backend_name(size_t index)
{
    return index < N_LISTED ? listed[index].name : NULL;
}

size_t grt_device_kind_count(void)
{
    return N_LISTED;
}

grt_status grt_device_kind(size_t index, grt_device_kind_info *out_info)
{
    if (index >= N_LISTED)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_device_kind: there are %d kinds, none of number %zu", (int)N_LISTED, index);
    const grt_backend *backend = listed[index].backend;
    const grt_device_kind_info info = {.name = listed[index].name,
                                       .accelerator = !backend || backend->traits.own_memory,
                                       .test_only = backend && backend->traits.simulated};
    return grt_info_give(out_info, &info, sizeof info, "grt_device_kind_info");
}

static const grt_backend *find_known(const char *name)
{
    for (size_t i = 0; i < n_known; i++)
        if (!strcmp(known[i]->name, name))
            return known[i];
    return NULL;
}

static grt_status registry_add(const grt_backend *backend)
{
    GRT_TRY(grt_backend_check(backend));
    if (find_known(backend->name))
        return grt_fail(GRT_STATUS_INTERNAL, "there are two backends '%s'", backend->name);
    if (n_known == MAX_KNOWN)
        return grt_fail(GRT_STATUS_INTERNAL, "backend '%s' is one too many; there may be %d", backend->name,
                        MAX_KNOWN);
    known[n_known++] = backend;
    return GRT_OK;
}

grt_status grt_backend_register(const grt_backend *backend)
{
    pthread_mutex_lock(&lock);
    const grt_status status = registry_add(backend);
    pthread_mutex_unlock(&lock);
    return status;
}

static void fail_unknown(const char *name)
{
    grt_text names = {0};
    for (size_t i = 0; i < N_LISTED; i++)
        grt_text_add(&names, "%s%s", i ? ", " : "", listed[i].name);
    grt_fail(GRT_STATUS_DEVICE, "there is no device kind '%s'; there are: %s", name, grt_text_get(&names));
    grt_text_release(&names);
}

static const grt_backend *find_new(const char *name)
{
    size_t i = 0;
    while (i < N_LISTED && strcmp(listed[i].name, name) != 0)
        i++;
    const grt_backend *found = i < N_LISTED ? listed[i].backend : NULL;
    bool there = true;
    if (!found)
        found = grt_backend_module(name, &there);
    if (!found && !there && i == N_LISTED)
        fail_unknown(name);
    return found && registry_add(found) == GRT_OK ? found : NULL;
}

const grt_backend *grt_backend_find(const char *name)
{
    pthread_mutex_lock(&lock);
    const grt_backend *found = find_known(name);
    if (!found)
        found = find_new(name);
    pthread_mutex_unlock(&lock);
    return found;
}
