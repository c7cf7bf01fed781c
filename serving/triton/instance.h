/* SPDX-License-Identifier: Apache-2.0 */
/* One instance of a model: a context in the session of its device, and memory to put batches together in. */
#ifndef GRT_SERVING_TRITON_INSTANCE_H
#define GRT_SERVING_TRITON_INSTANCE_H

#include "serving/triton/request.h"

/* Memory in which an input of several requests, or of several pieces, is put together. */
typedef struct staging {
    void *data; /* grt_session_alloc_host */
    size_t size;
    grt_string *strings;
    size_t n_strings;
} staging;

/* An output in the response's memory, before the run. */
typedef struct output_target {
    bool made;
    bool bound; /* the run writes there; otherwise it is copied */
    grt_tensor to;
} output_target;

typedef struct instance {
    TRITONBACKEND_ModelInstance *handle;
    served_model *model;
    grt_session *session;
    grt_context *context;
    bool gpu;               /* the device has memory of its own */
    batch_padding padding;  /* of batches: never by device */
    staging *inputs;        /* one for each input of the model */
    output_target *targets; /* one for each output, of the run under way */
    request *requests;      /* of the execution under way, and the lists that they share */
    request_input *request_inputs;
    bool *wanted;
    request **batch;
    size_t capacity; /* of these */
} instance;

TRITONSERVER_Error *instance_create(TRITONBACKEND_ModelInstance *handle, served_model *model, instance **out);
void instance_release(instance *in);

/* Makes room for n requests at a time. */
TRITONSERVER_Error *instance_reserve(instance *in, size_t n);

#endif
