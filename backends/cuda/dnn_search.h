/* SPDX-License-Identifier: Apache-2.0 */
/* Which of cuDNN's engines computes a convolution: recorded choices, and its heuristics. */
#ifndef GRT_BACKENDS_CUDA_DNN_SEARCH_H
#define GRT_BACKENDS_CUDA_DNN_SEARCH_H

#include "backends/cuda/dnn_graph.h"

/* Parameters of a search for an engine. */
typedef struct cuda_dnn_question {
    cuda_device *device;
    const cuda_dnn_conv *conv;
    cudnnHandle_t handle;
    grt_algo_trial *trial;
    const char *key;
    bool over; /* no more candidates are wanted */
} cuda_dnn_question;

/* Adds all that the choice depends on. */
void cuda_dnn_search_key(const cuda_dnn *dnn, const cuda_dnn_conv *c, grt_text *key);
/* Makes the plan of p, but for some devices that are only described. False: there is no engine. */
bool cuda_dnn_search(cuda_dnn_question *q, cuda_dnn_execution *p);

#endif
