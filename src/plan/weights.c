/* SPDX-License-Identifier: Apache-2.0 */
/* Weights in a file of their own, beside the plan. The file is named by its content, so that plans of the
 * same name never share one unless it is the same: a plan that is replaced, or about to be, stays whole. */
#define _GNU_SOURCE /* memmem */
#include "src/plan/format.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".weights"
enum { DIGITS = 16, TAIL = 1 + DIGITS + sizeof SUFFIX - 1 }; /* ".0123456789abcdef.weights" */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool plan_weights_name(const char *path, uint64_t checksum, char out_name[PLAN_MAX_NAME])
{
    const char *base = base_of(path);
    return *base &&
           snprintf(out_name, PLAN_MAX_NAME, "%s.%016" PRIx64 SUFFIX, base, checksum) < PLAN_MAX_NAME;
}

/* True if plan_weights_name makes such a name for a plan called `base`. */
static bool weights_is_ours(const char *name, const char *base)
{
    const size_t n = strlen(base);
    if (strlen(name) != n + TAIL || strncmp(name, base, n) != 0 || name[n] != '.')
        return false;
    for (const char *c = name + n + 1; c < name + n + 1 + DIGITS; c++)
        if (!isdigit((unsigned char)*c) && (*c < 'a' || *c > 'f'))
            return false;
    return !strcmp(name + n + 1 + DIGITS, SUFFIX);
}

/* True if META mentions the name, or cannot be read. */
static bool mentions(int fd, const plan_section *meta, uint64_t file_size, const char *name)
{
    if (meta->offset > file_size || meta->length > file_size - meta->offset)
        return true;
    const size_t size = (size_t)meta->length;
    char *bytes = malloc(size + 1);
    const bool found = !bytes || pread(fd, bytes, size, (off_t)meta->offset) != (ssize_t)size ||
                       memmem(bytes, size, name, strlen(name));
    free(bytes);
    return found;
}

static bool plan_may_need(int fd, uint64_t file_size, const char *name)
{
    plan_header h;
    if (pread(fd, &h, sizeof h, 0) != (ssize_t)sizeof h)
        return true;
    if (!grt_plan_recognize(&h, sizeof h))
        return false;
    for (uint32_t i = 0; i < h.n_sections && i < PLAN_MAX_SECTIONS; i++)
        if (h.sections[i].kind == PLAN_META && mentions(fd, &h.sections[i], file_size, name))
            return true;
    return false;
}

/* True if the weights called `name` may be those of this file. */
static bool file_may_need(int directory, const char *file, const char *name)
{
    struct stat st;
    int fd = openat(directory, file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno != ENOENT && errno != ENXIO && errno != ELOOP;
    const bool needed = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= PLAN_PAGE &&
                        plan_may_need(fd, (uint64_t)st.st_size, name);
    close(fd);
    return needed;
}

static bool any_may_need(DIR *directory, const char *name)
{
    bool needed = false;
    rewinddir(directory);
    for (struct dirent *entry; !needed && (entry = readdir(directory));)
        needed = strcmp(entry->d_name, name) != 0 && file_may_need(dirfd(directory), entry->d_name, name);
    return needed;
}

enum { MOST_LEFT = 64 }; /* at a time: more are for the next plan */

static size_t list_ours(DIR *directory, const char *base, const char *keep, char *out_names[MOST_LEFT])
{
    size_t n = 0;
    rewinddir(directory);
    for (struct dirent *entry; n < MOST_LEFT && (entry = readdir(directory));)
        if (weights_is_ours(entry->d_name, base) && strcmp(entry->d_name, keep) != 0 &&
            (out_names[n] = strdup(entry->d_name)))
            n++;
    return n;
}

void plan_weights_tidy(const char *path, const char *keep)
{
    char *names[MOST_LEFT];
    const char *base = base_of(path);
    char *name = base > path ? strndup(path, (size_t)(base - path)) : strdup(".");
    DIR *directory = name ? opendir(name) : NULL;
    const size_t n = directory ? list_ours(directory, base, keep, names) : 0;
    for (size_t i = 0; i < n; i++) {
        if (!any_may_need(directory, names[i]))
            unlinkat(dirfd(directory), names[i], 0);
        free(names[i]);
    }
    if (directory)
        closedir(directory);
    free(name);
}
