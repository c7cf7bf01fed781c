/* SPDX-License-Identifier: Apache-2.0 */
/* What tools print: errors, figures with units, JSON. */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include <graphrt/graphrt.h>

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>

/* Exit codes, documented in the man pages. */
enum { EXIT_GOOD = 0, EXIT_CHECK = 1, EXIT_BAD = 2 };

/* "graphc" or "graphrun": each tool's main file defines it. */
extern const char *const tool_name;

/* All text goes out by these: what is not printable in it is a model's, a file's or the user's, and is shown
 * as grt_printable says. Line ends are the format's, which has them at its beginning and its end only. Very
 * long lines are cut. */
void tool_print(const char *format, ...) __attribute__((format(__printf__, 1, 2)));
/* "graphrun: message" on stderr. */
void tool_error(const char *format, ...) __attribute__((format(__printf__, 1, 2)));
/* The library's last message, which is printable and may have several lines, and EXIT_BAD to return. */
int tool_fail(void);

double now_ms(void); /* monotonic */

/* "12.3 MiB" into a buffer of the caller's; returns it. */
enum { FIGURE_SIZE = 32 };
const char *figure_bytes(double bytes, char out[FIGURE_SIZE]);
/* "4.1 G" */
const char *figure_count(double count, char out[FIGURE_SIZE]);

/* "2x3x4", "scalar"; unknown dims as '?'. */
const char *figure_shape(const grt_tensor *tensor, char *out, size_t size);
/* "float32[batch x 3]", "sequence of int64[?]" of a model's input or output. */
const char *figure_io(const grt_io_info *info, char *out, size_t size);

/* "Conv (opset 13) node 'c': ", what a finding is about, into a buffer of the caller's; returns it. */
const char *report_place(const grt_finding *finding, char *out, size_t size);
/* {status: kind, node, op, opset, message} */
json_t *report_finding_json(const char *kind, const grt_finding *finding);

/* A string of JSON; bytes outside ASCII become '?' in text that is not UTF-8. */
json_t *json_text(const char *text);
json_t *json_shape(const grt_tensor *tensor);
/* {name, kind, dtype, shape: [2, "batch", null...], has_default} */
json_t *json_io(const grt_io_info *info);
/* Adds phases and their total to a new object: {"map": 0.1, ..., "total": 3.2}. Repeated names are added up.
 */
json_t *json_phases(const grt_model *model, const grt_session *session, double total_ms);
/* Print to stdout with a newline, and let go of it. False if memory ran out or stdout is gone. */
bool json_print(json_t *object);

#pragma GCC poison printf puts vprintf

#endif
