/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs of a run become outputs of the responses, and states of sequences. */
#ifndef GRT_SERVING_TRITON_SCATTER_H
#define GRT_SERVING_TRITON_SCATTER_H

#include "serving/triton/instance.h"

/* Before a run of one request: lets it write into the response itself, where its dims are known by the
 * inputs'. With r NULL, for more than one request: into memory of the context. */
TRITONSERVER_Error *scatter_bind(instance *in, request *r);

/* After the run: what was not written yet, from row `first` of `rows`. */
TRITONSERVER_Error *scatter_outputs(instance *in, request *r, int64_t first, int64_t rows);

#endif
