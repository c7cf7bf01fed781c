/* SPDX-License-Identifier: Apache-2.0 */
/* Custom operators from shared objects, which are opened because the caller says so and never closed. */
#include "src/base/status.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct opened {
    struct opened *next;
    void *library;
} opened;

static opened *libraries;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool was_opened(const void *library)
{
    const opened *at = libraries;
    while (at && at->library != library)
        at = at->next;
    return at != NULL;
}

static grt_status register_library(void *library, const char *path)
{
    grt_custom_ops_fn *list = NULL;
    void *symbol = dlsym(library, GRT_CUSTOM_OPS_SYMBOL);
    if (!symbol)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "'%s' has no custom operators: it exports no %s", path,
                        GRT_CUSTOM_OPS_SYMBOL);
    memcpy(&list, &symbol, sizeof list); /* ISO C has no cast from data to functions */
    size_t n = 0;
    const grt_custom_op *ops = list(&n);
    opened *entry = malloc(sizeof *entry);
    if (!entry)
        return grt_fail_memory(sizeof *entry);
    const grt_status status = grt_custom_ops_register(ops, n);
    if (status != GRT_OK) {
        free(entry);
        return grt_fail_context(status, "%s", path);
    }
    *entry = (opened){libraries, library};
    libraries = entry;
    return GRT_OK;
}

/* A name without a directory is a file of the current one: no search path decides what is run. */
static void *custom_open_library(const char *path)
{
    const size_t size = strlen(path) + 3;
    char *here = malloc(size);
    if (!here)
        return NULL;
    memcpy(here, strchr(path, '/') ? "" : "./", strchr(path, '/') ? 1 : 3);
    strcat(here, path);
    void *library = dlopen(here, RTLD_NOW | RTLD_LOCAL);
    free(here);
    return library;
}

grt_status grt_custom_ops_load(const char *path)
{
    if (!path || !*path)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_custom_ops_load: there is no path");
    pthread_mutex_lock(&lock);
    void *library = custom_open_library(path);
    grt_status status = GRT_OK;
    if (!library) {
        const char *why = dlerror();
        status = grt_fail(GRT_STATUS_IO, "'%s' cannot be loaded: %s", path, why ? why : "out of memory");
    } else if (!was_opened(library)) {
        status = register_library(library, path);
        if (status != GRT_OK)
            dlclose(library);
    }
    pthread_mutex_unlock(&lock);
    return status;
}
