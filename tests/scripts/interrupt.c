/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: the process is killed at the KILL_AT-th change of a directory (a link, a rename, a removal);
 * with SHORT set, writes are interrupted by signals or take a part of what they are given. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>

#define REAL(name)                 \
    static __typeof__(name) *real; \
    if (!real)                     \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

int rename(const char *from, const char *to);
int linkat(int from_directory, const char *from, int to_directory, const char *to, int flags);
int unlinkat(int directory, const char *name, int flags);
ssize_t write(int fd, const void *data, size_t size);
ssize_t pwrite(int fd, const void *data, size_t size, off_t at);
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at);

static void count(void)
{
    static int n;
    const char *at = getenv("KILL_AT");
    if (at && ++n == atoi(at))
        raise(SIGKILL);
}

int rename(const char *from, const char *to)
{
    REAL(rename);
    count();
    return real(from, to);
}

int linkat(int from_directory, const char *from, int to_directory, const char *to, int flags)
{
    REAL(linkat);
    count();
    return real(from_directory, from, to_directory, to, flags);
}

int unlinkat(int directory, const char *name, int flags)
{
    REAL(unlinkat);
    count();
    return real(directory, name, flags);
}

/* How much of `size` to take; 0: none, a signal came first. */
static size_t some(size_t size)
{
    static unsigned state = 12345;
    if (!getenv("SHORT"))
        return size;
    state = state * 1664525u + 1013904223u;
    if ((state >> 24) % 3 == 0) {
        errno = EINTR;
        return 0;
    }
    const size_t most = 1 + (state >> 8) % 5000;
    return size < most ? size : most;
}

ssize_t write(int fd, const void *data, size_t size)
{
    REAL(write);
    const size_t n = fd > 2 && size ? some(size) : size;
    return n || !size ? real(fd, data, n) : -1;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    REAL(pwrite);
    const size_t n = some(size);
    return n ? real(fd, data, n, at) : -1;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t at)
{
    return pwrite(fd, data, size, at);
}
