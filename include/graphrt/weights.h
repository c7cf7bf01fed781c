/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that change while a session is in use: adapters, thresholds, tables. Part of <graphrt/graphrt.h>, whose rules
 * hold. */
#ifndef GRAPHRT_WEIGHTS_H
#define GRAPHRT_WEIGHTS_H

#include <graphrt/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Replace n weights of a session, all or none. A weight is named as in the ONNX file and is an input with a default:
 * one that the model lists among its inputs, or one that was compiled with grt_compile_options.keep_weights (`graphc
 * optimize --keep-weights`). The other weights are folded, fused and packed for the kernels: they are refused, with
 * that reason. tensors[i] has the weight's dtype and dims, not of STRING, and lies in host memory or in memory of the
 * session's device; it is copied, to the device. All contexts of the session, those of pools too, use the new weights
 * from the next run on that begins after this call; runs in progress end with the old ones. An input that a context has
 * bound keeps that. Graphs that the caller captured keep the old weights alive only until the next run of their
 * context: capture again.
 * Threads: any. Errors: INVALID_ARGUMENT (a name, a type), DEVICE. */
GRT_API GRT_MUST_USE grt_status grt_session_set_weights(grt_session *session, const char *const *names,
                                                        const grt_tensor *tensors, size_t n);

#ifdef __cplusplus
}
#endif
#endif
