/* SPDX-License-Identifier: Apache-2.0 */
/* Files mapped for reading. */
#ifndef GRT_BASE_FILE_MAP_H
#define GRT_BASE_FILE_MAP_H

#include "src/base/status.h"

#include <sys/stat.h>

typedef struct grt_file_map {
    char *data; /* read-only; NULL if the file is empty */
    size_t size;
    struct stat info;
} grt_file_map;

/* Never waits for the other end of a pipe. Errors: IO if it is no regular file, or cannot be opened or
 * mapped; then the map is empty, but `info` is there if the file was opened. */
grt_status grt_file_map_open(const char *path, grt_file_map *out_map);
/* The same of an open file, which stays the caller's; `path` is for messages. */
grt_status grt_file_map_fd(const char *path, int fd, grt_file_map *out_map);
/* Of an empty map, too. */
void grt_file_map_close(grt_file_map *map);
/* True if both are there and one file. */
bool grt_same_file(const char *a, const char *b);

#endif
