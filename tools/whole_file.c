/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/whole_file.h"

#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail_whole_file(const char *path)
{
    tool_error("%s: %s", path, errno ? strerror(errno) : "cannot be written");
    return false;
}

/* A name that nobody can have taken before; with the mode that a new file gets. */
static int create_temporary(char *name, size_t size, const char *path)
{
    const char *slash = strrchr(path, '/');
    int fd = -1;
    for (int tries = 0; fd < 0 && tries < 100; tries++) {
        uint64_t random;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            return -1;
        snprintf(name, size, "%.*s.graphrt.tmp-%016" PRIx64, slash ? (int)(slash - path) + 1 : 0, path,
                 random);
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            return -1;
    }
    return fd;
}

bool whole_file_begin(whole_file *file, const char *path)
{
    struct stat st;
    *file = (whole_file){.path = path};
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        file->f = fopen(path, "wb");
        return file->f || fail_whole_file(path);
    }
    const size_t size = strlen(path) + 64;
    file->temporary = malloc(size);
    int fd = file->temporary ? create_temporary(file->temporary, size, path) : -1;
    file->f = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (file->f)
        return true;
    fail_whole_file(path);
    if (fd >= 0) {
        close(fd);
        unlink(file->temporary);
    }
    free(file->temporary);
    return false;
}

bool whole_file_end(whole_file *file, bool ok)
{
    ok = ok && fflush(file->f) == 0 && !ferror(file->f);
    int error = errno; /* of what failed first */
    if (fclose(file->f) != 0 && ok) {
        ok = false;
        error = errno;
    }
    if (ok && file->temporary && rename(file->temporary, file->path) != 0) {
        ok = false;
        error = errno;
    }
    if (!ok && file->temporary)
        unlink(file->temporary);
    free(file->temporary);
    errno = error;
    return ok || fail_whole_file(file->path);
}

bool write_fully(int fd, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = write(fd, (const char *)data + done, size - done);
        if (n <= 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}
