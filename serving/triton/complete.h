/* SPDX-License-Identifier: Apache-2.0 */
/* Model configurations: what they leave out is filled in from the model, what they say is compared with it.
 */
#ifndef GRT_SERVING_TRITON_COMPLETE_H
#define GRT_SERVING_TRITON_COMPLETE_H

#include "serving/triton/served_model.h"

/* Sets the inputs, the outputs and their types and dims that the configuration lacks. If it lists neither
 * inputs nor outputs and has no max_batch_size, a model that takes any batch gets max_batch_size
 * `default_batch` and, if that is above 1, dynamic batching. */
TRITONSERVER_Error *complete_config(TRITONBACKEND_Model *handle, const served_model *m,
                                    int64_t default_batch);

/* An error names the first input or output that the model does not have, or has with another type or other
 * dims. */
TRITONSERVER_Error *check_config(const served_model *m);

#endif
