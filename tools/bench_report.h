/* SPDX-License-Identifier: Apache-2.0 */
/* A report of graphrun bench as text. */
#ifndef TOOLS_BENCH_REPORT_H
#define TOOLS_BENCH_REPORT_H

#include <jansson.h>

/* An object as graphrun bench --json has it. */
void bench_report_print(const json_t *report);
/* `together` of --together. */
void bench_report_print_together(const json_t *together);

#endif
