/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution as a graph of cuDNN's. Internal to the files dnn_*. */
#ifndef GRT_BACKENDS_CUDA_DNN_GRAPH_H
#define GRT_BACKENDS_CUDA_DNN_GRAPH_H

#include "backends/cuda/dnn_form.h"
#include "backends/cuda/libraries.h"

#include <pthread.h>

enum { CUDA_DNN_DESCRIPTORS = 32, CUDA_DNN_OPERATIONS = 4 };

/* Names of tensors. */
enum { CUDA_DNN_X = 1, CUDA_DNN_W, CUDA_DNN_Y, CUDA_DNN_BIAS, CUDA_DNN_RESIDUAL, CUDA_DNN_VIRTUAL };

/* The library's plan, which equal convolutions of a device share. */
typedef struct cuda_dnn_execution {
    const cuda_dnn *dnn;
    cuda_libraries *libraries;
    cudnnBackendDescriptor_t plan;
    cudnnBackendDescriptor_t description; /* of a device that is not here; NULL: the handle's */
    size_t workspace;
    int64_t engine;
    bool unsure; /* the library failed for a reason other than the convolution */
    pthread_mutex_t
        lock; /* the library does not promise that all engines can be run by two threads at once */
    int n_descriptors;
    cudnnBackendDescriptor_t descriptors[CUDA_DNN_DESCRIPTORS]; /* what the plan was made from, in order */
} cuda_dnn_execution;

/* A step of building: the first failure makes the rest do nothing. */
typedef struct cuda_dnn_builder {
    const cuda_dnn *dnn;
    cuda_dnn_execution *plan;
    cudnnStatus_t status;
    int n_operations, n_virtual;
    cudnnBackendDescriptor_t operations[CUDA_DNN_OPERATIONS];
} cuda_dnn_builder;

/* Sets unsure for a missing part of the library or lack of memory, not for an unsupported convolution. */
void cuda_dnn_note(cuda_dnn_execution *p, cudnnStatus_t status);
void cuda_dnn_check(cuda_dnn_builder *b, cudnnStatus_t status);
cudnnBackendDescriptor_t cuda_dnn_make(cuda_dnn_builder *b, cudnnBackendDescriptorType_t type);
void cuda_dnn_set(cuda_dnn_builder *b, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, int64_t n, const void *values);
void cuda_dnn_set_descriptor(cuda_dnn_builder *b, cudnnBackendDescriptor_t d,
                             cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value);
void cuda_dnn_finish(cuda_dnn_builder *b, cudnnBackendDescriptor_t d);
/* Which device an object is for. */
cudnnStatus_t cuda_dnn_set_device(const cuda_dnn_execution *p, cudnnBackendDescriptor_t d,
                                  cudnnBackendAttributeName_t by_handle,
                                  cudnnBackendAttributeName_t by_description, cudnnHandle_t handle);

cudnnBackendDescriptor_t cuda_dnn_graph_build(cuda_dnn_builder *b, const cuda_dnn_conv *c,
                                              cudnnHandle_t handle);

#endif
