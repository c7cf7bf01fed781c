/* SPDX-License-Identifier: Apache-2.0 */
/* A document as bytes: for the library's own compiler, and as files for everybody's. */
#ifndef GRT_SRC_QUANTIZE_PACK_H
#define GRT_SRC_QUANTIZE_PACK_H

#include "src/quantize/document.h"

/* A model in memory whose weights stay where they are. */
typedef struct packed_model {
    void *bytes;
    size_t size;
    grt_external_data *external; /* in the document's arena */
    size_t n_external;
} packed_model;

/* Weights that nothing uses are left out. pack_release in any case. */
grt_status pack_memory(document *d, packed_model *out);
void pack_release(packed_model *p);

/* Write `path`, and "PATH.data" with the weights where one message cannot hold them or `external` asks for
 * it. *out_bytes: of both. */
grt_status pack_file(document *d, const char *path, bool external, uint64_t *out_bytes);

#endif
