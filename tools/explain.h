/* SPDX-License-Identifier: Apache-2.0 */
/* Report of loading: begin and end of the phases of model and sessions, bytes read and copied, queries; and
 * whether runs are replayed as graphs. */
#ifndef TOOLS_EXPLAIN_H
#define TOOLS_EXPLAIN_H

#include <graphrt/graphrt.h>
#include <jansson.h>

typedef struct load_report {
    const char *title; /* of the picture */
    const grt_model *model;
    grt_runtime *runtime; /* of its sessions */
    grt_session *const *sessions;
    size_t n;
    grt_pool *pool;        /* over the sessions, for what its runs tell; NULL before there is one */
    double origin_ms;      /* the beginning of all, on the clock */
    double sessions_at_ms; /* when making the sessions began, after the model's opening began */
    double total_ms;
} load_report;

void explain_text(const load_report *report);
/* {"model": [phases], "devices": [{device, phases, figures...}], "total_ms"} */
json_t *explain_json(const load_report *report);
/* A self-contained page. False after printing an error. */
bool explain_html(const load_report *report, const char *path);

#endif
