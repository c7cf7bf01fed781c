/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* dladdr */
#include "backends/cuda/wheels.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

static const char here; /* an address in this module */

/* Length of the path of the directory above the module's own; 0 if there is none. */
static size_t length_of_parent(const char *path)
{
    size_t n = strlen(path);
    for (int level = 0; level < 2; level++)
        while (n > 0 && path[--n] != '/')
            ;
    return n;
}

/* A directory's name may have what glob() would take for a pattern. */
static size_t escape(const char *from, size_t n, char *to, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < n && at + 3 < size; i++) {
        if (strchr("*?[\\", from[i]))
            to[at++] = '\\';
        to[at++] = from[i];
    }
    to[at] = '\0';
    return at;
}

void *cuda_wheels_open(const char *name)
{
    Dl_info self;
    char pattern[PATH_SIZE];
    glob_t found = {0};
    void *opened = NULL;
    if (!dladdr(&here, &self) || !self.dli_fname)
        return NULL;
    const size_t parent = length_of_parent(self.dli_fname);
    if (parent == 0 || 2 * parent + sizeof "/nvidia//lib/" + 1 + strlen(name) > sizeof pattern)
        return NULL;
    const size_t at = escape(self.dli_fname, parent, pattern, sizeof pattern);
    snprintf(pattern + at, sizeof pattern - at, "/nvidia/*/lib/%s", name);
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; !opened && i < found.gl_pathc; i++)
            opened = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
    return opened;
}
