/* SPDX-License-Identifier: Apache-2.0 */
/* How a model became ready: phases of the model and of every device's session, when each began and ended,
 * what was read, copied, asked for; and whether its runs are replayed as graphs. */
#ifndef TOOLS_EXPLAIN_H
#define TOOLS_EXPLAIN_H

#include <graphrt/graphrt.h>
#include <jansson.h>

typedef struct load_report {
    const char *title; /* of the picture */
    const grt_model *model;
    grt_session *const *sessions;
    size_t n;
    grt_pool *pool;        /* over the sessions, for what its runs tell; NULL before there is one */
    double sessions_at_ms; /* when making the sessions began, after the model's opening began */
    double total_ms;
} load_report;

void explain_text(const load_report *report);
/* {"model": [phases], "devices": [{device, phases, figures...}], "total_ms"} */
json_t *explain_json(const load_report *report);
/* A page that needs nothing else. False after printing what is wrong. */
bool explain_html(const load_report *report, const char *path);

#endif
