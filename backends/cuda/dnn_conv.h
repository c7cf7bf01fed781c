/* SPDX-License-Identifier: Apache-2.0 */
/* One convolution as a cuDNN graph: described, planned by heuristics, run. */
#ifndef GRT_BACKENDS_CUDA_DNN_CONV_H
#define GRT_BACKENDS_CUDA_DNN_CONV_H

#include "backends/cuda/dnn_form.h"
#include "backends/cuda/libraries.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_dnn_args {
    const void *x, *w, *bias, *residual; /* NULL where the graph has none */
    void *y, *workspace;
} cuda_dnn_args;

typedef struct cuda_dnn_plan cuda_dnn_plan;

/* *out_plan is NULL, with GRT_OK, if cuDNN has no engine that keeps the precision and fits the workspace.
 * A recorded choice for such a convolution and device (backends/algos.h) is used without a heuristic
 * query. */
grt_status cuda_dnn_plan_create(cuda_device *device, const cuda_dnn_conv *conv, grt_algo_trial *trial,
                                cuda_dnn_plan **out_plan);
void cuda_dnn_plan_release(cuda_dnn_plan *plan); /* NULL-safe */
size_t cuda_dnn_plan_workspace(const cuda_dnn_plan *plan);
/* On the run's stream, with the handle of its context; by one thread at a time. */
grt_status cuda_dnn_plan_run(cuda_dnn_plan *plan, const grt_run *run, const cuda_dnn_args *args);

#ifdef __cplusplus
}
#endif
#endif
