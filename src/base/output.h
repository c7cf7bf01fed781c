/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are there whole or not at all: written without a name where the file system can, else under a
 * temporary one beside the final one, flushed to disk, then put in place. A temporary name that a killed
 * process left behind is removed by the next one that writes into the directory. */
#ifndef GRT_BASE_OUTPUT_H
#define GRT_BASE_OUTPUT_H

#include "src/base/status.h"

typedef struct grt_output {
    char *path, *temporary;
    int fd;
    bool created;  /* the temporary file exists */
    uint64_t size; /* written so far */
} grt_output;

/* A file can be made at the path now: asked before the work whose result it is to have. */
grt_status grt_output_check(const char *path);
/* grt_output_close in any case. */
grt_status grt_output_open(grt_output *o, const char *path);
grt_status grt_output_write(grt_output *o, const void *data, size_t size);
grt_status grt_output_zeros(grt_output *o, size_t n);
/* Again at the beginning; the size stays what it is. */
grt_status grt_output_overwrite(grt_output *o, const void *data, size_t size);
/* Another name in the same directory, for what is named by its content. */
grt_status grt_output_rename(grt_output *o, const char *name);
grt_status grt_output_commit(grt_output *o);
/* Nothing stays behind of a file that was not committed. */
void grt_output_close(grt_output *o);

/* Among writers of several files that belong together, one at a time in the directory of `path`: a descriptor
 * to close() at the end. Waits for the others, three seconds at most. -1: then, and where there are no such
 * locks. */
int grt_output_lock_directory(const char *path);

#endif
