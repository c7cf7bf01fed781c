/* SPDX-License-Identifier: Apache-2.0 */
/* Latencies of a model under load: so many clients that ask again once they are answered, or requests at a
 * rate that does not wait for answers. */
#ifndef TOOLS_LOAD_H
#define TOOLS_LOAD_H

#include "tools/latencies.h"

#include <graphrt/graphrt.h>

typedef struct load_options {
    const char *concurrency; /* "1,2,4": numbers of clients, one after the other; NULL: none */
    double rate;             /* requests a second; 0: none */
    int32_t contexts;        /* of the pool; 0: as many as clients, for a rate 1 */
    double seconds;          /* for each */
    double deadline_ms;      /* that latencies are held against; 0: none */
    const char
        *device;     /* the session is in a process of its own, on this device; NULL: it is the one given */
    int32_t threads; /* of that session */
    const char *fallback;
} load_options;

/* False after printing what is wrong with the list. */
bool load_options_check(const load_options *options);
/* An array of {clients or rate, contexts, latency_ms, throughput_per_s, deadline: {ms, met, missed_by_ms}}:
 * `values` are the inputs (NULL elements: the default). NULL after printing an error. */
json_t *load_measure(const grt_model *model, grt_session *session, grt_value *const *values,
                     const load_options *options);

#endif
