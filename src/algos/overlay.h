/* SPDX-License-Identifier: Apache-2.0 */
/* The choices that came with plans, beside the map of the cache's file: they are asked first, and never go
 * into the file.
 *
 * A choice serves every device with the same `sm` and the same library version, whatever the name of the GPU
 * and its driver: one that was made for a GPU of this name is preferred. Keys without `sm` want the same
 * name. Not thread-safe: the cache's lock protects it. */
#ifndef GRT_SRC_ALGOS_OVERLAY_H
#define GRT_SRC_ALGOS_OVERLAY_H

#include "src/algos/db.h"

typedef struct grt_algo_overlay {
    struct grt_algo_group *groups; /* by what is left of the key without gpu and driver */
} grt_algo_overlay;

/* Rows replace what was there for their keys; one that was rejected stays so as long as its data is the same.
 * What does not fit into memory is left out. */
void grt_algo_overlay_add(grt_algo_overlay *overlay, const grt_choice *rows, size_t n);
void grt_algo_overlay_release(grt_algo_overlay *overlay);

/* The row for a kernel's key; NULL if there is none that was not rejected. Valid until the next call of add
 * or reject. */
const grt_choice *grt_algo_overlay_find(const grt_algo_overlay *overlay, const char *key);
/* What find returns for this key is of no use: false if it returns nothing. */
bool grt_algo_overlay_reject(grt_algo_overlay *overlay, const char *key);
/* For a key that nothing was found for: is there a choice for the same work that was made with another
 * version of the library? Then both versions, as in the keys: "cudnn=91900" and "cudnn=91400". */
bool grt_algo_overlay_version(const grt_algo_overlay *overlay, const char *key, grt_text *there,
                              grt_text *here);

#endif
