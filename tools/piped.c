/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memfd_create */
#include "tools/piped.h"

#include "tools/report.h"
#include "tools/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* What an ONNX file may have, as the wire format allows no more. */
static const uint64_t most_bytes = (uint64_t)1 << 31;
static const char directory[] = "/proc/self/fd/";

/* A path that a caller was given: it lives as long as the process. */
typedef struct given_path {
    struct given_path *next;
    char text[sizeof directory + 16];
} given_path;
static given_path *all_given;

static bool is_pipe(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

/* -1: nothing is to be read. Nobody waits for the other end of a pipe that has none. */
static int open_pipe(const char *path)
{
    const bool is_standard = !strcmp(path, "-");
    int fd = is_standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && !is_standard && !is_pipe(fd)) {
        close(fd);
        fd = -1;
    }
    if (fd >= 0 && !is_standard)
        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

static bool copy_pipe(int from, int to, const char *path)
{
    enum { STEP = 1 << 16 };
    char *buffer = malloc(STEP);
    uint64_t size = 0;
    ssize_t n = buffer ? 1 : -1;
    while (n > 0 && size <= most_bytes) {
        n = read(from, buffer, STEP);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0 && !write_fully(to, buffer, (size_t)n))
            n = -1;
        else if (n > 0)
            size += (uint64_t)n;
    }
    const int error = errno;
    free(buffer);
    if (n < 0)
        tool_error("%s: %s", path, strerror(error));
    else if (size == 0)
        tool_error("%s: nothing comes from there", path);
    else if (size > most_bytes)
        tool_error("%s: more than 2 GiB; a model of that size must be a file", path);
    return n == 0 && size > 0 && size <= most_bytes;
}

bool piped_take(const char **path)
{
    const char *const given = *path;
    if (!strcmp(given, "-") && isatty(STDIN_FILENO)) {
        tool_error("-: standard input is a terminal, and no model");
        return false;
    }
    const int from = open_pipe(given);
    if (from < 0)
        return true;
    const int to = memfd_create("model", MFD_CLOEXEC);
    given_path *name = malloc(sizeof *name);
    const bool ok = to >= 0 && name && copy_pipe(from, to, strcmp(given, "-") ? given : "standard input");
    close(from);
    if (to < 0 || !name)
        tool_error("%s: no memory to read it into", given);
    if (!ok) {
        free(name);
        return false;
    }
    snprintf(name->text, sizeof name->text, "%s%d", directory, to);
    name->next = all_given;
    all_given = name;
    *path = name->text;
    return true;
}

bool piped_is(const char *path)
{
    return !strncmp(path, directory, sizeof directory - 1);
}
