/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that callers replace in a session: versions of the defaults of its model's inputs. A version does
 * not change; a run takes the newest and holds it until a later run takes another. */
#ifndef GRT_SRC_SESSION_KEPT_WEIGHTS_H
#define GRT_SRC_SESSION_KEPT_WEIGHTS_H

#include "src/base/value.h"

#include <pthread.h>

typedef struct grt_weights_version {
    atomic_int refs;
    int32_t n;
    grt_value *values; /* per input of the model; dtype NONE: its default in the plan */
} grt_weights_version;

typedef struct grt_kept_weights {
    pthread_mutex_t lock; /* of `newest` */
    grt_weights_version *newest;
    atomic_uint number; /* of versions so far: runs look at this alone */
} grt_kept_weights;

void grt_kept_weights_init(grt_kept_weights *kept);
void grt_kept_weights_clear(grt_kept_weights *kept);
/* A reference to the newest version, NULL if there is none; *out_number says which. */
grt_weights_version *grt_kept_weights_take(grt_kept_weights *kept, unsigned *out_number);
void grt_weights_version_give(grt_weights_version *version); /* NULL-safe */

#endif
