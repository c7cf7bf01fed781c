/* See output.h. */
#include "src/base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ZEROS = 4096 };

static grt_status fail_io(const grt_output *o, const char *what)
{
    int error = errno;
    return grt_fail(GRT_STATUS_IO, "%s: %s: %s", o->path, what, strerror(error));
}

grt_status grt_output_open(grt_output *o, const char *path, const char *suffix)
{
    size_t size = strlen(path) + strlen(suffix) + 64;
    *o = (grt_output){.path = malloc(size), .temporary = malloc(size), .fd = -1};
    if (!o->path || !o->temporary)
        return grt_fail_memory(size);
    snprintf(o->path, size, "%s%s", path, suffix);
    for (unsigned n = 0; o->fd < 0 && n < 1000; n++) { /* O_EXCL: two writers never share a file */
        snprintf(o->temporary, size, "%s%s.tmp-%ld-%u", path, suffix, (long)getpid(), n);
        o->fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (o->fd < 0 && errno != EEXIST)
            break;
    }
    if (o->fd < 0)
        return fail_io(o, "cannot be created");
    o->created = true;
    return GRT_OK;
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

grt_status grt_output_commit(grt_output *o)
{
    if (fsync(o->fd) != 0)
        return fail_io(o, "cannot be flushed to disk");
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
