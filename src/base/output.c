/* See output.h. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "src/base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ZEROS = 4096 };

static grt_status fail_io(const grt_output *o, const char *what)
{
    int error = errno;
    return grt_fail(GRT_STATUS_IO, "%s: %s: %s", o->path, what, strerror(error));
}

/* Length of the directory's part of a path, with its slash; 0: there is none. */
static size_t directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* A file without a name is gone with its process, however that ends. Not every file system has them, and
 * giving it its name takes /proc. */
static bool open_nameless(grt_output *o)
{
    const size_t length = directory_length(o->path);
    char *directory = length ? strndup(o->path, length) : strdup(".");
    if (directory && access("/proc/self/fd", X_OK) == 0)
        o->fd = open(directory, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    free(directory);
    return o->fd >= 0;
}

/* The next name beside the final one; two writers never share a file. */
static void name_temporary(grt_output *o, unsigned n)
{
    snprintf(o->temporary, o->room, "%.*s.graphrt.tmp-%ld-%u", (int)directory_length(o->path), o->path,
             (long)getpid(), n);
}

enum { MOST_NAMES = 1000 };

static void open_named(grt_output *o)
{
    for (unsigned n = 0; o->fd < 0 && n < MOST_NAMES; n++) {
        name_temporary(o, n);
        o->fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (o->fd < 0 && errno != EEXIST)
            return;
    }
    o->created = o->fd >= 0;
}

grt_status grt_output_open(grt_output *o, const char *path, const char *suffix)
{
    size_t size = strlen(path) + strlen(suffix) + 64;
    struct stat there;
    *o = (grt_output){.path = malloc(size), .temporary = malloc(size), .room = size, .fd = -1};
    if (!o->path || !o->temporary)
        return grt_fail_memory(size);
    snprintf(o->path, size, "%s%s", path, suffix);
    if (stat(o->path, &there) == 0 && !S_ISREG(there.st_mode)) /* a device would be replaced by a file */
        return grt_fail(GRT_STATUS_IO, "%s: is not a regular file, and cannot be replaced by one", o->path);
    if (!open_nameless(o))
        open_named(o);
    return o->fd >= 0 ? GRT_OK : fail_io(o, "cannot be created");
}

grt_status grt_output_write(grt_output *o, const void *data, size_t size)
{
    const char *p = data;
    while (size > 0) {
        ssize_t n = write(o->fd, p, size < (1u << 30) ? size : 1u << 30);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail_io(o, "cannot be written");
        p += n;
        size -= (size_t)n;
        o->size += (uint64_t)n;
    }
    return GRT_OK;
}

grt_status grt_output_zeros(grt_output *o, size_t n)
{
    static const char zeros[ZEROS];
    while (n > 0) {
        size_t chunk = n < sizeof zeros ? n : sizeof zeros;
        GRT_TRY(grt_output_write(o, zeros, chunk));
        n -= chunk;
    }
    return GRT_OK;
}

grt_status grt_output_overwrite(grt_output *o, const void *data, size_t size)
{
    return pwrite(o->fd, data, size, 0) == (ssize_t)size ? GRT_OK : fail_io(o, "cannot be written");
}

/* The directory's entry must survive a crash too. */
static void sync_directory(const char *path)
{
    char *directory = strdup(path), *slash = directory ? strrchr(directory, '/') : NULL;
    if (slash)
        slash[slash == directory] = 0;
    int fd = open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd); /* some file systems have no fsync of directories: then rename is all there is */
        close(fd);
    }
    free(directory);
}

/* It has its temporary name for a moment only: no link takes the place of a file that is there. */
static bool give_name(grt_output *o)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", o->fd);
    for (unsigned n = 0; !o->created && n < MOST_NAMES; n++) {
        name_temporary(o, n);
        o->created = linkat(AT_FDCWD, self, AT_FDCWD, o->temporary, AT_SYMLINK_FOLLOW) == 0;
        if (!o->created && errno != EEXIST)
            return false;
    }
    return o->created;
}

grt_status grt_output_commit(grt_output *o)
{
    if (fsync(o->fd) != 0)
        return fail_io(o, "cannot be flushed to disk");
    if (!give_name(o))
        return fail_io(o, "cannot be put in place");
    int closed = close(o->fd);
    o->fd = -1;
    if (closed != 0 || rename(o->temporary, o->path) != 0)
        return fail_io(o, "cannot be put in place");
    o->created = false;
    sync_directory(o->path);
    return GRT_OK;
}

void grt_output_close(grt_output *o)
{
    if (o->fd >= 0)
        close(o->fd);
    if (o->created)
        unlink(o->temporary);
    free(o->path);
    free(o->temporary);
}
