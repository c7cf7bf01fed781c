/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are there whole or not at all: under a name of their own beside the final one until they are
 * complete. Devices and pipes are written as they are. */
#ifndef TOOLS_WHOLE_FILE_H
#define TOOLS_WHOLE_FILE_H

#include <stdbool.h>
#include <stdio.h>

typedef struct whole_file {
    FILE *f; /* write to it */
    const char *path;
    char *temporary; /* NULL: `path` is no regular file */
} whole_file;

/* False after printing what is wrong; then whole_file_end is not to be called. */
bool whole_file_begin(whole_file *file, const char *path);
/* Put it in place if `ok`, or forget it. False after printing what is wrong, or if it was not ok. */
bool whole_file_end(whole_file *file, bool ok);

/* All of the bytes, however many calls of write that takes. False with errno set. */
bool write_fully(int fd, const void *data, size_t size);

#endif
