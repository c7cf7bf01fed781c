/* SPDX-License-Identifier: Apache-2.0 */
/* The choices that came with plans, beside the cache's file: they never go into it.
 *
 * A choice serves every device with the same `sm` and the same library version, whatever the name of the GPU
 * and its driver: one that was made for a GPU of this name is preferred. Keys without `sm` want the same
 * name. */
#ifndef GRT_SRC_ALGOS_PLAN_STORE_H
#define GRT_SRC_ALGOS_PLAN_STORE_H

#include "src/algos/store.h"
#include "src/base/text.h"

typedef struct grt_plan_store {
    grt_choice_store base;         /* keep: one that was rejected stays so as long as its data is the same */
    struct grt_plan_group *groups; /* by what is left of the key without gpu and driver */
} grt_plan_store;

void grt_plan_store_init(grt_plan_store *store);

/* For a key that nothing was found for: is there a choice for the same work that was made with another
 * version of the library? Then both versions, as in the keys: "cudnn=91900" and "cudnn=91400". */
bool grt_plan_store_version(const grt_plan_store *store, const char *key, grt_text *there, grt_text *here);

#endif
