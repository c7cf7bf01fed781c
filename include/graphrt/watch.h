/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of a run make, one by one: for debugging. Included by itself; the rules of <graphrt/graphrt.h>
 * hold. */
#ifndef GRAPHRT_WATCH_H
#define GRAPHRT_WATCH_H

#include <graphrt/graphrt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A result of a step. */
typedef struct grt_watched {
    size_t struct_size;      /* set by the library */
    int32_t step;            /* its number, as in grt_model_step */
    const char *op;          /* "Conv" */
    const char *nodes;       /* names of the source nodes, joined by '+' */
    const char *tensor;      /* name of the result, as the ONNX file has it where it is that tensor, perhaps with its
                                channels last */
    const grt_tensor *value; /* in host memory, until the function returns; not to be changed */
} grt_watched;

/* Call `watch` in the following runs by grt_context_run and grt_context_run_with, after each step of the main graph for
 * each tensor that it made. Steps whose results follow from dims or constants alone are not in runs, and views have the
 * elements of what they are views of: both are not told. The plan runs as it is, but step by step, on devices with a
 * copy to the host after each. NULL: no more. The function must not use the context.
 * Threads: one a context. Errors: INVALID_ARGUMENT, also while another thread runs the context. */
GRT_API GRT_MUST_USE grt_status grt_context_set_watch(grt_context *context,
                                                      void (*watch)(void *user, const grt_watched *watched),
                                                      void *user);

#ifdef __cplusplus
}
#endif
#endif
