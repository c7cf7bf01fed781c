/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of the requests of a batch become inputs of a run. */
#ifndef GRT_SERVING_TRITON_GATHER_H
#define GRT_SERVING_TRITON_GATHER_H

#include "serving/triton/instance.h"

/* Binds the inputs of n requests, which fit each other, one behind the other, as `rows` rows: those beyond
 * the requests' own are copies of the last. The content of a single request is used in place where that is
 * possible: if it is one piece, aligned, and has all rows. */
TRITONSERVER_Error *gather_inputs(instance *in, request *const *batch, size_t n, int64_t rows);

#endif
