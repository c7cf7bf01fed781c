/* SPDX-License-Identifier: Apache-2.0 */
/* Import: an ONNX model becomes a module of the IR. */
#ifndef GRT_GRAPH_IMPORT_IMPORT_H
#define GRT_GRAPH_IMPORT_IMPORT_H

#include "graph/ir/ir.h"

typedef struct compile_source {
    const char *path;  /* of the model file; NULL if from memory (then external data must be in memory too) */
    const void *bytes; /* NULL: read from path */
    size_t size;
    bool allow_symlinks;
    bool strict; /* what import would warn of is an error */
    /* Called for each broken rule that import accepts; may be NULL. */
    void (*warn)(void *user, const grt_finding *finding);
    void *warn_user;
    const grt_external_data *external; /* files of external data that are in memory */
    size_t n_external;
    const char *keep_weights; /* comma-separated initializers that become inputs with defaults; NULL: none */
    const char *free_dims;    /* comma-separated dim names whose uses need not agree; "*": all; NULL: none */
} compile_source;

/* Name the model's file before the current message, unless that does so. */
grt_status compile_fail_file(grt_status status, const char *path);

/* Parse, validate, upgrade to the newest opset, inline functions. Weights stay mapped from
 * their files as long as the module lives. */
grt_status ir_import(const compile_source *source, ir_module **out_module);
/* The same, but calls `each` for every problem instead of stopping at the first. *out_module may still be
 * NULL. */
grt_status ir_import_check(const compile_source *source, void (*each)(void *user, const grt_finding *finding),
                           void *user, ir_module **out_module);

#endif
