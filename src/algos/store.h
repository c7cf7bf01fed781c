/* SPDX-License-Identifier: Apache-2.0 */
/* A place where choices are kept. There are two: the cache's file (file_store.h), and what came with plans
 * (plan_store.h). Stores are not thread-safe: the cache's lock protects them. */
#ifndef GRT_SRC_ALGOS_STORE_H
#define GRT_SRC_ALGOS_STORE_H

#include "src/base/choice.h"

typedef struct grt_choice_store {
    /* The choice for a kernel's key; NULL: none that was not rejected. Its data has a 0 byte behind it. Valid
     * until the store changes. */
    const grt_choice *(*find)(const struct grt_choice_store *store, const char *key);
    /* Keep a copy, in the place of what there is for its key. False: out of memory; then nothing changes. */
    bool (*keep)(struct grt_choice_store *store, const grt_choice *choice);
    /* What find returns for this key is of no use, and stays so when it is kept again. False: find returns
     * nothing. */
    bool (*reject)(struct grt_choice_store *store, const char *key);
    void (*release)(struct grt_choice_store *store); /* what it holds */
} grt_choice_store;

#endif
