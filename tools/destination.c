/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* AT_EACCESS */
#include "tools/destination.h"

#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_access_allowed(const char *path, int mode)
{
    return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0;
}

/* The directory of the last component; malloc'ed. "a/b/" and "a/b" are in "a". */
static char *destination_parent(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n && path[n - 1] != '/')
        n--;
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n ? strndup(path, n) : strdup(".");
}

/* New names can be made in the directory of the path. */
static bool is_room_beside(const char *option, const char *path)
{
    struct stat st;
    char *directory = destination_parent(path);
    bool ok = false;
    if (!directory)
        tool_error("out of memory");
    else if (stat(directory, &st) != 0)
        tool_error("%s: %s cannot be written: directory %s: %s", option, path, directory, strerror(errno));
    else if (!S_ISDIR(st.st_mode))
        tool_error("%s: %s cannot be written: %s is not a directory", option, path, directory);
    else if (!is_access_allowed(directory, W_OK | X_OK))
        tool_error("%s: %s cannot be written: directory %s: %s", option, path, directory, strerror(errno));
    else
        ok = true;
    free(directory);
    return ok;
}

bool destination_file(const char *option, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode))
        return is_room_beside(option, path);
    const bool ok = !S_ISDIR(st.st_mode) && is_access_allowed(path, W_OK); /* a device or a pipe */
    if (!ok)
        tool_error("%s: %s cannot be written: %s", option, path,
                   S_ISDIR(st.st_mode) ? "it is a directory" : strerror(errno));
    return ok;
}

bool destination_directory(const char *option, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return is_room_beside(option, path);
    const bool ok = S_ISDIR(st.st_mode) && is_access_allowed(path, W_OK | X_OK);
    if (!ok)
        tool_error("%s: files cannot be written into %s: %s", option, path,
                   S_ISDIR(st.st_mode) ? strerror(errno) : "it is not a directory");
    return ok;
}
