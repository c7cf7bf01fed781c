/* SPDX-License-Identifier: Apache-2.0 */
/* A choice: the algorithm that was chosen for an operation of given sizes on a given device. */
#ifndef GRT_SRC_BASE_CHOICE_H
#define GRT_SRC_BASE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GRT_CHOICE_MAX_KEY = 64 << 10,
    GRT_CHOICE_MAX_DATA = 1 << 20,
};

typedef enum grt_choice_source {
    GRT_CHOICE_HEURISTIC = 1, /* the library said so */
    GRT_CHOICE_TUNED = 2,     /* candidates were measured */
    GRT_CHOICE_CODE = 3,      /* no choice: machine code that was made here; cost_ms is what making it took */
} grt_choice_source;

typedef struct grt_choice {
    const char *key; /* see backends/algos.h */
    const void *data;
    size_t size;
    int32_t source; /* grt_choice_source */
    double cost_ms;
    int64_t made;  /* seconds since 1970 */
    bool rejected; /* to write: remove the choice if it still has this data */
} grt_choice;

#endif
