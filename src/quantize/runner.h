/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of documents on the CPU with the caller's samples. */
#ifndef GRT_SRC_QUANTIZE_RUNNER_H
#define GRT_SRC_QUANTIZE_RUNNER_H

#include <graphrt/quantize.h>

#include "src/base/cancel.h"
#include "src/quantize/pack.h"

typedef struct samples {
    const grt_quantize_options *options;
    const document *original; /* whose inputs the caller knows */
    grt_runtime *runtime;
    grt_cancel cancel;
} samples;

/* A document, ready to run. */
typedef struct runner {
    const samples *samples;
    packed_model packed;
    grt_model *model;
    grt_session *session;
    grt_context *context;
    grt_value **values; /* of the current sample */
} runner;

/* Release in any case, before the document. */
grt_status runner_open(runner *r, const samples *s, document *d);
void runner_release(runner *r);
/* Bind the inputs of a sample; runner_run runs with them. */
grt_status runner_bind(runner *r, size_t sample);
grt_status runner_run(runner *r, size_t sample);
/* Show progress and ask for a reason to stop. */
grt_status samples_report(const samples *s, const char *phase, size_t done, size_t all);

#endif
