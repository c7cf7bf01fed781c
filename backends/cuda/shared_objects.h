/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that are made once for all who ask for the same key, as long as anybody uses them. Who asks while
 * one is being made waits for it. */
#ifndef GRT_BACKENDS_CUDA_SHARED_OBJECTS_H
#define GRT_BACKENDS_CUDA_SHARED_OBJECTS_H

#include "src/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_shared_objects cuda_shared_objects;
typedef struct cuda_shared_object cuda_shared_object; /* held by all of its users */

/* Where NULL was made, nothing is released. After a failure the next who asks tries again. */
typedef struct cuda_object_kind {
    grt_status (*make)(void *user, void **out_data);
    void (*release)(void *data);
} cuda_object_kind;

grt_status cuda_shared_objects_create(cuda_shared_objects **out_objects);
/* With all objects, held or not; NULL-safe. */
void cuda_shared_objects_release(cuda_shared_objects *objects);
/* All who use a key want the same kind. */
grt_status cuda_shared_object_take(cuda_shared_objects *objects, const char *key,
                                   const cuda_object_kind *kind, void *user, cuda_shared_object **out_object);
void *cuda_shared_object_data(const cuda_shared_object *object);
void cuda_shared_object_give(cuda_shared_objects *objects, cuda_shared_object *object);

#ifdef __cplusplus
}
#endif
#endif
