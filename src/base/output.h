/* Files that are there whole or not at all: written without a name where the file system can, else under a
 * temporary one beside the final one, flushed to disk, then renamed. */
#ifndef GRT_BASE_OUTPUT_H
#define GRT_BASE_OUTPUT_H

#include "src/base/status.h"

typedef struct grt_output {
    char *path, *temporary;
    size_t room; /* of each of the two */
    int fd;
    bool created;  /* the temporary file exists */
    uint64_t size; /* written so far */
} grt_output;

/* path with suffix behind it. grt_output_close in any case. */
grt_status grt_output_open(grt_output *o, const char *path, const char *suffix);
grt_status grt_output_write(grt_output *o, const void *data, size_t size);
grt_status grt_output_zeros(grt_output *o, size_t n);
/* Again at the beginning; the size stays what it is. */
grt_status grt_output_overwrite(grt_output *o, const void *data, size_t size);
grt_status grt_output_commit(grt_output *o);
/* Nothing stays behind of a file that was not committed. */
void grt_output_close(grt_output *o);

#endif
