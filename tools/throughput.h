/* SPDX-License-Identifier: Apache-2.0 */
/* How many runs a second a pool does of one model, copies from and to the host included. */
#ifndef TOOLS_THROUGHPUT_H
#define TOOLS_THROUGHPUT_H

#include <graphrt/graphrt.h>

typedef struct throughput_options {
    int32_t contexts; /* at work at a time */
    bool pinned;      /* inputs and outputs lie in page-locked memory */
    double seconds;
} throughput_options;

/* Requests with `values` as inputs (NULL: the default) on a session of `model`. `context`, of that session,
 * has run with them: its outputs' dims are those of all requests. False after printing an error. */
bool throughput_measure(const grt_model *model, grt_session *session, grt_context *context,
                        grt_value *const *values, const throughput_options *options, double *out_per_s);

#endif
