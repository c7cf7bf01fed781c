/* SPDX-License-Identifier: Apache-2.0 */
/* What a sharded job has done, in its output directory: DIR/job.json says what the job is,
 * DIR/shard-I-of-N.jsonl has a line for each input that is done. A job that is started again, with as many
 * processes or others, goes on with the rest.
 *
 * Outputs are written, whole, before the line: a process that is killed between the two does that input
 * again, with the same result. Locks on these files keep a second job out while one is at work. */
#ifndef TOOLS_MANIFEST_H
#define TOOLS_MANIFEST_H

#include "tools/input_lists.h"
#include "tools/shard.h"

typedef struct manifest {
    int job, lines; /* files, locked */
    bool *done;     /* of all inputs of the job */
    size_t n, n_done;
} manifest;

/* False after printing an error: the directory has another job's results, or a process works there. Close in
 * any case. */
bool manifest_open(manifest *m, const char *directory, const char *model, const shard *s,
                   const input_lists *l);
/* Input number `index` of the job is done. False after printing an error. */
bool manifest_add(const manifest *m, size_t index, const char *file, double ms);
void manifest_close(manifest *m);

#endif
