/* SPDX-License-Identifier: Apache-2.0 */
/* One request: what it brings, what it wants, and its response. */
#ifndef GRT_SERVING_TRITON_REQUEST_H
#define GRT_SERVING_TRITON_REQUEST_H

#include "serving/triton/served_model.h"

/* An input of a request. Its content may be in several pieces. */
typedef struct request_input {
    TRITONBACKEND_Input *handle; /* NULL: the input is left out and takes its default */
    uint32_t pieces;
    uint64_t bytes;
    grt_tensor tensor; /* data: if there is one piece, else NULL */
} request_input;

typedef struct request {
    TRITONBACKEND_Request *handle;
    TRITONBACKEND_Response *response; /* NULL after it was sent, and if the server could make none */
    request_input *inputs;            /* of the model, in its order */
    bool *wanted;                     /* outputs of the model that the response has */
    int64_t rows;                     /* of the batch; 1 without one */
    bool alone;                       /* memory of a GPU is involved: cannot share a run */
} request;

/* Reads a request into `r`, whose arrays have room for the model's inputs and outputs. An error concerns this
 * request alone. */
TRITONSERVER_Error *request_read(const served_model *m, TRITONBACKEND_Request *handle, request *r);

/* True if the two can be rows of one batch: the same inputs with the same dims but for the first. */
bool request_fits(const served_model *m, const request *a, const request *b);

/* Sends the response, with `error` if that is not NULL, and takes the error. */
void request_respond(request *r, TRITONSERVER_Error *error);

#endif
