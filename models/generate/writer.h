/* SPDX-License-Identifier: Apache-2.0 */
// Streams a built model to disk.
#ifndef GRT_MODELS_WRITER_H
#define GRT_MODELS_WRITER_H

#include <stdbool.h>
#include "builder.h"

struct gen_written {
    uint64_t bytes; // both files
    bool external;  // weights are in PATH.data
    double seconds;
};

// Writes g to path, and its weights to path.data where external is set or the file would get near protobuf's
// 2 GB limit. Files appear under their names only when complete. On failure says why on stderr, removes what
// it began, and returns false. Progress goes to stderr when that is a terminal.
bool gen_write(struct gen *g, const char *path, bool external, struct gen_written *out_written);

#endif
