/* SPDX-License-Identifier: Apache-2.0 */
/* A model, ready to run: what run, bench and check all begin with. */
#ifndef TOOLS_LOADED_H
#define TOOLS_LOADED_H

#include <graphrt/graphrt.h>

typedef struct loaded {
    grt_runtime *runtime;
    grt_model *model;
    grt_session *session;
    grt_context *context;
    double sessions_at_ms; /* when making the session began */
    double total_ms;       /* from nothing to a context */
    grt_status status;     /* of all that */
} loaded;

/* An ONNX model is compiled for the device. device NULL: "cpu"; fallback NULL or "cpu"; threads 0: the
 * library's choice; trust as in grt_compile_options. Kernels are generated first, unless GRAPHRT_COMPILE says
 * otherwise: what is measured or compared must not change. On failure grt_last_error() says why; release in
 * any case. */
grt_status loaded_open(loaded *l, const char *path, const char *device, const char *fallback, int32_t threads,
                       const char *trust);
/* The same beside another one, in its runtime: of models that share devices. */
grt_status loaded_open_beside(loaded *l, const loaded *first, const char *path, const char *device,
                              const char *fallback, int32_t threads, const char *trust);
/* As above, but only the model. */
grt_status loaded_model(grt_runtime *runtime, const char *path, const char *device, const char *trust,
                        grt_model **out_model);
void loaded_release(loaded *l);

#endif
