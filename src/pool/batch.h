/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: rows of several requests as one run. A row is what one index of the first dim has of every input,
 * and of every output. */
#ifndef GRT_SRC_POOL_BATCH_H
#define GRT_SRC_POOL_BATCH_H

#include "src/exec/context.h"
#include "src/pool/request.h"

/* How a lane makes batches. */
typedef struct grt_batching {
    const grt_plan *plan;
    bool *has_rows;    /* per input; the others have defaults */
    int64_t most_rows; /* 0: it makes none */
    grt_padding padding;
} grt_batching;

/* most_rows 0 or 1: none. INVALID_ARGUMENT if the model's dims do not allow it: the input or output is named.
 */
grt_status grt_batching_create(const grt_plan *plan, int64_t most_rows, grt_padding padding,
                               grt_batching *out_batching);
void grt_batching_release(grt_batching *batching);

/* Rows of a request that can be part of a batch; 0: it cannot, and runs by itself. */
int64_t grt_batching_rows(const grt_batching *batching, const grt_request *request);
/* Two that can: in one batch? */
bool grt_batching_fits(const grt_batching *batching, const grt_request *a, const grt_request *b);
/* Rows of the batch with padding. */
int64_t grt_batching_padded(const grt_batching *batching, int64_t rows);

/* What a worker makes its batches in. */
typedef struct grt_batch {
    grt_session *session;
    struct grt_batch_memory *inputs; /* per input */
    struct grt_batch_memory *small;  /* per output */
    grt_value *outputs;              /* of the last batches, see batch.c */
    grt_tensor *found;               /* outputs of the run */
    size_t turn;
} grt_batch;

grt_status grt_batch_create(grt_session *session, grt_batch *out_batch);
void grt_batch_release(grt_batch *batch);

/* Bind the context to the rows of n requests, `rows` of them, and their padding: requests' inputs are not
 * read any more afterwards. */
grt_status grt_batch_bind(grt_batch *batch, const grt_batching *batching, grt_context *context,
                          grt_request *const *requests, size_t n, int64_t rows);
/* After the run: what it made is looked up, and given to one request after another. */
grt_status grt_batch_find_results(grt_batch *batch, grt_context *context, int64_t padded);
grt_status grt_batch_give_results(const grt_batch *batch, grt_request *request, int64_t first_row);

#endif
