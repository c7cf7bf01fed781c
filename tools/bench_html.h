/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of graphrun bench as a page: one file, without scripts, light or dark as the reader's system is. */
#ifndef TOOLS_BENCH_HTML_H
#define TOOLS_BENCH_HTML_H

#include <jansson.h>
#include <stdbool.h>

/* `reports` are those of --json, `together` that of all models at once (NULL: none). False after printing an
 * error. */
bool bench_html(const char *path, const json_t *reports, const json_t *together);

#endif
