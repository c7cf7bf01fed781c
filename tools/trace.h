/* SPDX-License-Identifier: Apache-2.0 */
/* What loading and a run did and when, in the trace format of Chrome and Perfetto. */
#ifndef TOOLS_TRACE_H
#define TOOLS_TRACE_H

#include "tools/explain.h"

/* Writes the phases of loading and the spans that were recorded (spans.h), of which there will be no more. On
 * devices with a clock it runs the model once more, step by step, with `values` as inputs (NULL elements: the
 * default). False after printing an error. */
bool trace_write(const char *path, const load_report *load, grt_value *const *values);

#endif
