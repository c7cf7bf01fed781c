/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* O_TMPFILE */
#include "src/base/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
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

/* The directory of a path, malloc'ed. */
static char *directory_of(const char *path)
{
    const size_t length = directory_length(path);
    return length ? strndup(path, length) : strdup(".");
}

/* A locked file has a living writer. Without locks other writers are unknown. */
static bool lock(int fd, int how)
{
    int code;
    do
        code = flock(fd, how);
    while (code != 0 && errno == EINTR);
    return code == 0;
}

/* Writers hold it briefly; longer holders (flock(1) around this program) are not waited for.
 */
int grt_output_lock_directory(const char *path)
{
    enum { TRIES = 300, PAUSE_NS = 10000000 };
    char *directory = directory_of(path);
    int fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    free(directory);
    for (int i = 0; fd >= 0 && i < TRIES; i++) {
        if (lock(fd, LOCK_EX | LOCK_NB))
            return fd;
        if (errno != EWOULDBLOCK)
            break;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* A file without a name is gone with its process, however that ends. Not every file system has them, and
 * giving it its name takes /proc. */
static bool open_nameless(grt_output *o)
{
    char *directory = directory_of(o->path);
    if (directory && access("/proc/self/fd", X_OK) == 0)
        o->fd = open(directory, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    free(directory);
    if (o->fd >= 0)
        (void)lock(o->fd, LOCK_EX);
    return o->fd >= 0;
}

#define TEMPORARY ".graphrt.tmp-"
enum { TEMPORARY_ROOM = 64, MOST_NAMES = 1000 };

/* The next name beside the final one; two writers never share a file. */
static void name_temporary(grt_output *o, unsigned n)
{
    snprintf(o->temporary, strlen(o->path) + TEMPORARY_ROOM, "%.*s" TEMPORARY "%ld-%u",
             (int)directory_length(o->path), o->path, (long)getpid(), n);
}

/* Between its making and its lock, a file may be taken for one that was left behind. */
static bool is_removed(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

static void open_named(grt_output *o)
{
    for (unsigned n = 0; o->fd < 0 && n < MOST_NAMES; n++) {
        name_temporary(o, n);
        o->fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (o->fd < 0 && errno != EEXIST)
            return;
        if (o->fd >= 0 && lock(o->fd, LOCK_EX) && is_removed(o->fd)) {
            close(o->fd);
            o->fd = -1;
        }
    }
    o->created = o->fd >= 0;
}

/* A device would be replaced by a file. */
static grt_status output_check_regular(const char *path)
{
    struct stat there;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return grt_fail(GRT_STATUS_IO, "%s: is not a regular file, and cannot be replaced by one", path);
    return GRT_OK;
}

grt_status grt_output_open(grt_output *o, const char *path)
{
    const size_t size = strlen(path) + TEMPORARY_ROOM;
    *o = (grt_output){.path = strdup(path), .temporary = malloc(size), .fd = -1};
    if (!o->path || !o->temporary)
        return grt_fail_memory(size);
    GRT_TRY(output_check_regular(o->path));
    if (!open_nameless(o))
        open_named(o);
    return o->fd >= 0 ? GRT_OK : fail_io(o, "cannot be created");
}

grt_status grt_output_check(const char *path)
{
    grt_output o;
    const grt_status status = grt_output_open(&o, path);
    grt_output_close(&o);
    return status;
}

grt_status grt_output_rename(grt_output *o, const char *name)
{
    const size_t length = directory_length(o->path), size = length + strlen(name) + 1;
    char *path = malloc(size);
    if (!path)
        return grt_fail_memory(size);
    memcpy(path, o->path, length);
    memcpy(path + length, name, size - length);
    free(o->path);
    o->path = path;
    return output_check_regular(path);
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
    const char *p = data;
    for (off_t at = 0; size > 0;) {
        ssize_t n = pwrite(o->fd, p, size, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail_io(o, "cannot be written");
        p += n;
        at += n;
        size -= (size_t)n;
    }
    return GRT_OK;
}

/* The directory's entry must survive a crash too. */
static void sync_directory(const char *path)
{
    char *directory = directory_of(path);
    int fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd); /* some file systems have no fsync of directories: then rename is all there is */
        close(fd);
    }
    free(directory);
}

/* No link takes the place of a file that is there: such a one has a temporary name for a moment. */
static bool output_put_in_place(grt_output *o)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", o->fd);
    if (!o->created && linkat(AT_FDCWD, self, AT_FDCWD, o->path, AT_SYMLINK_FOLLOW) == 0)
        return true;
    for (unsigned n = 0; !o->created && n < MOST_NAMES; n++) {
        name_temporary(o, n);
        o->created = linkat(AT_FDCWD, self, AT_FDCWD, o->temporary, AT_SYMLINK_FOLLOW) == 0;
        if (!o->created && errno != EEXIST)
            return false;
    }
    if (!o->created || rename(o->temporary, o->path) != 0)
        return false;
    o->created = false;
    return true;
}

/* A temporary file without a lock: its writer is gone. */
static void remove_if_left(int directory, const char *name)
{
    int fd = openat(directory, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (lock(fd, LOCK_EX | LOCK_NB))
        unlinkat(directory, name, 0);
    close(fd);
}

static void remove_left(const char *path)
{
    char *name = directory_of(path);
    DIR *directory = name ? opendir(name) : NULL;
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (!strncmp(entry->d_name, TEMPORARY, sizeof TEMPORARY - 1))
            remove_if_left(dirfd(directory), entry->d_name);
    if (directory)
        closedir(directory);
    free(name);
}

grt_status grt_output_commit(grt_output *o)
{
    if (fsync(o->fd) != 0)
        return fail_io(o, "cannot be flushed to disk");
    if (!output_put_in_place(o))
        return fail_io(o, "cannot be put in place");
    close(o->fd); /* all is on disk: it cannot fail in a way that matters */
    o->fd = -1;
    sync_directory(o->path);
    remove_left(o->path);
    return GRT_OK;
}

void grt_output_close(grt_output *o)
{
    if (o->created)
        unlink(o->temporary);
    if (o->fd >= 0)
        close(o->fd);
    free(o->path);
    free(o->temporary);
}
