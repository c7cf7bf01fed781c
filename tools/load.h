/* SPDX-License-Identifier: Apache-2.0 */
/* Latencies of a model, or of several in one pool, under load: so many clients that ask again once they are
 * answered, or requests at a rate that does not wait for answers. */
#ifndef TOOLS_LOAD_H
#define TOOLS_LOAD_H

#include "tools/latencies.h"

#include <graphrt/graphrt.h>

typedef struct load_model {
    const char *name;
    const grt_model *model;
    grt_session *session;
    grt_value *const *values; /* the inputs; NULL elements: the default */
} load_model;

typedef struct load_options {
    const char *concurrency; /* "1,2,4": numbers of clients of each model, one after the other; NULL: none */
    double rate;             /* requests a second, of each model; 0: none */
    int32_t contexts;        /* of each model; 0: as many as clients, for a rate 1 */
    double seconds;          /* for each */
    double deadline_ms;      /* that latencies are held against; 0: none */
    const char
        *device;     /* the session is in a process of its own, on this device; NULL: it is the one given */
    int32_t threads; /* of that session */
    const char *fallback;
} load_options;

/* False after printing what is wrong with the list. */
bool load_options_check(const load_options *options);
/* An array of {clients or rate, contexts, latency_ms, throughput_per_s, deadline: {ms, met, missed_by_ms}};
 * with a rate also `unanswered`: requests that were due and that took longer than twice the time, or were
 * never sent. Of several models these are of all requests, and `models` has an array of {model, latency_ms,
 * throughput_per_s, deadline}. NULL after printing an error. */
json_t *load_measure(const load_model *models, size_t n, const load_options *options);

#endif
