/* SPDX-License-Identifier: Apache-2.0 */
/* A model's weights in host memory, as one kind of device wants them: packed as they lie in the plan where
 * that was made for this kind, unpacked otherwise. Shared by all sessions on such devices. */
#ifndef GRT_SRC_SESSION_HOST_WEIGHTS_H
#define GRT_SRC_SESSION_HOST_WEIGHTS_H

#include "src/session/model.h"

typedef struct grt_host_weights {
    struct grt_host_weights *next; /* of the model's; under its lock, as refs */
    const grt_backend *backend;
    int32_t refs;
    bool packed;         /* packed as the plan's packings say */
    grt_tensor *tensors; /* per weight of the plan */
    void *unpacked;
} grt_host_weights;

grt_status grt_host_weights_take(grt_model *model, const grt_backend *backend,
                                 const grt_host_weights **out_weights);
void grt_host_weights_give(grt_model *model, const grt_host_weights *weights); /* NULL-safe */

/* Bytes of weight i in that form. */
size_t grt_host_weights_bytes(const grt_model *model, const grt_host_weights *weights, int32_t i);

#endif
