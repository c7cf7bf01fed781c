/* SPDX-License-Identifier: Apache-2.0 */
/* What loading and a run did and when, in the trace format of Chrome and Perfetto. */
#ifndef TOOLS_TRACE_H
#define TOOLS_TRACE_H

#include "tools/explain.h"

/* Runs the model on each session, first as it is and then step by step, with `values` as inputs (NULL
 * elements: the default), and writes the phases of loading and these runs to the file. False after printing
 * an error. */
bool trace_write(const char *path, const load_report *load, grt_value *const *values);

#endif
