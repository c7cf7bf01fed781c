/* SPDX-License-Identifier: Apache-2.0 */
/* Executing what the server hands an instance at a time. */
#ifndef GRT_SERVING_TRITON_EXECUTE_H
#define GRT_SERVING_TRITON_EXECUTE_H

#include "serving/triton/instance.h"

/* Answers and releases n requests. Those that fit each other share a run; if that fails, each has a run of
 * its own, so that only the one at fault gets the error. An error of this function means that it has answered
 * and released none. */
TRITONSERVER_Error *execute_requests(instance *in, TRITONBACKEND_Request **handles, size_t n);

#endif
