/* SPDX-License-Identifier: Apache-2.0 */
/* Opening modules. */
#define _GNU_SOURCE /* dladdr */
#include "backends/module.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What is looked for, where that was, and what came in the way. */
typedef struct trace {
    const char *symbol;
    grt_text places;
    bool there, memory; /* some place had the file; memory ran out */
} trace;

static const char here; /* an address in this library */

/* Modules use what only the library of their release has: src/graphrt.map. */
static void add_loader_error(grt_text *places, const char *path)
{
    const char *said = dlerror();
    const char *other = said ? strstr(said, "GRAPHRT_PRIVATE_") : NULL;
    if (!other) {
        grt_text_add(places, "\n  %s", said ? said : path);
        return;
    }
    other += sizeof "GRAPHRT_PRIVATE_" - 1;
    grt_text_add(places,
                 "\n  %s: it is of another release than this library, which is %s: install both of one "
                 "release (it wants %.*s)",
                 path, grt_version(), (int)strspn(other, "0123456789_"), other);
}

/* The loader names a failure, but not its cause. A module and its libraries take less than this. */
static bool module_has_room(void)
{
    const size_t bytes = (size_t)64 << 20;
    void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return room != MAP_FAILED && munmap(room, bytes) == 0;
}

static const void *open_file(const char *path, trace *t)
{
    if (access(path, F_OK) != 0) {
        grt_text_add(&t->places, "\n  %s: %s", path, strerror(errno));
        return NULL;
    }
    t->there = true;
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) {
        t->memory |= !module_has_room();
        add_loader_error(&t->places, path);
        return NULL;
    }
    const void *found = dlsym(module, t->symbol);
    const char *(*version)(void) = (const char *(*)(void))dlsym(module, "grt_version");
    const char *problem = NULL;
    if (!found)
        problem = "it does not hold what its name says";
    else if (version && version() != grt_version()) /* the same text, not an equal one */
        problem = "it is linked to another copy of libgraphrt than this program; statically linked programs "
                  "cannot open modules";
    if (!problem)
        return found;
    grt_text_add(&t->places, "\n  %s: %s", path, problem);
    dlclose(module);
    return NULL;
}

static const void *open_in(const char *directory, size_t length, const char *name, trace *t)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%.*s/libgraphrt-%s.so", (int)length, directory, name);
    return n > 0 && (size_t)n < sizeof path ? open_file(path, t) : NULL;
}

/* In a build tree libtool keeps the library in BUILD/.libs, and make puts modules into BUILD. */
static const void *open_in_build(const char *directory, size_t length, const char *name, trace *t)
{
    static const char libs[] = "/.libs";
    const size_t tail = sizeof libs - 1;
    if (length <= tail || memcmp(directory + length - tail, libs, tail) != 0)
        return NULL;
    const void *found = open_in(directory, length - tail, name, t);
    if (!found && !t->there)
        grt_text_add(&t->places,
                     " (make -C %.*s libgraphrt-%s.so makes it, if configure found what it needs)",
                     (int)(length - tail), directory, name);
    return found;
}

static const void *search(const char *name, trace *t)
{
    const void *found = NULL;
    const char *path = secure_getenv("GRAPHRT_BACKEND_PATH");
    while (path && *path && !found) {
        size_t length = strcspn(path, ":");
        found = open_in(path, length, name, t);
        path += length + (path[length] == ':');
    }
    /* An installation that was moved, or lies beside another one, has its own modules. */
    char own[4096] = "";
    Dl_info self;
    const char *slash = dladdr(&here, &self) && self.dli_fname ? strrchr(self.dli_fname, '/') : NULL;
    if (slash && slash - self.dli_fname < (ptrdiff_t)(sizeof own - sizeof "/graphrt")) {
        int length = (int)(slash - self.dli_fname);
        snprintf(own, sizeof own, "%.*s/graphrt", length, self.dli_fname);
        if (!found)
            found = open_in(own, strlen(own), name, t);
        if (!found)
            found = open_in(own, (size_t)length, name, t);
        if (!found)
            found = open_in_build(own, (size_t)length, name, t);
    }
    if (!found && strcmp(own, GRT_MODULE_DIR) != 0)
        found = open_in(GRT_MODULE_DIR, strlen(GRT_MODULE_DIR), name, t);
    return found;
}

/* It becomes a part of a file's name and of a symbol's. */
static bool module_is_plain(const char *name)
{
    size_t n = 0;
    while (isalnum((unsigned char)name[n]) || name[n] == '_')
        n++;
    return n > 0 && n <= 32 && !name[n];
}

grt_status grt_module_find(const char *name, const char *symbol, bool *out_there, const void **out)
{
    trace t = {.symbol = symbol};
    grt_status status = GRT_OK;
    *out = module_is_plain(name) ? search(name, &t) : NULL;
    if (!*out && t.memory)
        status = grt_fail_lines(GRT_STATUS_OUT_OF_MEMORY, grt_text_get(&t.places),
                                "out of memory while the module '%s' was opened:", name);
    else if (!*out)
        status = grt_fail_lines(
            GRT_STATUS_DEVICE, grt_text_get(&t.places),
            "the module '%s' cannot be opened; GRAPHRT_BACKEND_PATH may name its directory; tried:", name);
    if (out_there)
        *out_there = t.there;
    grt_text_release(&t.places);
    return status;
}

const grt_backend *grt_backend_module(const char *name, bool *out_there)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "grt_backend_%s", name);
    const void *found;
    return grt_module_find(name, symbol, out_there, &found) == GRT_OK ? found : NULL;
}
