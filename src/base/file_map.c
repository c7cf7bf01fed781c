/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

grt_status grt_file_map_fd(const char *path, int fd, grt_file_map *out_map)
{
    *out_map = (grt_file_map){0};
    if (fstat(fd, &out_map->info))
        return grt_fail(GRT_STATUS_IO, "'%s' cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(out_map->info.st_mode))
        return grt_fail(GRT_STATUS_IO, "'%s' is not a regular file", path);
    const size_t size = (size_t)out_map->info.st_size;
    void *data = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (data == MAP_FAILED)
        return grt_fail(GRT_STATUS_IO, "'%s' cannot be mapped: %s", path, strerror(errno));
    out_map->data = data;
    out_map->size = size;
    return GRT_OK;
}

grt_status grt_file_map_open(const char *path, grt_file_map *out_map)
{
    *out_map = (grt_file_map){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return grt_fail(GRT_STATUS_IO, "'%s' cannot be opened: %s", path, strerror(errno));
    grt_status status = grt_file_map_fd(path, fd, out_map);
    close(fd);
    return status;
}

void grt_file_map_close(grt_file_map *map)
{
    if (map->data)
        munmap(map->data, map->size);
    *map = (grt_file_map){0};
}

bool grt_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}
