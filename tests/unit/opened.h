/* SPDX-License-Identifier: Apache-2.0 */
/* A model's session with one context, for tests of the public functions on the host and on the mirror device.
 */
#ifndef GRT_TESTS_UNIT_OPENED_H
#define GRT_TESTS_UNIT_OPENED_H

#include "tests/unit/onnx_model.h"
#include "tests/unit/runtime.h"

extern grt_session *session;
extern grt_context *context;

/* Opens `m` in the runtime of the fixture, and releases it. compile: NULL, or how a plan is made. fallback:
 * NULL or "cpu". */
void open_on(onnx_model *m, const grt_compile_options *compile, const char *device, const char *fallback);
void close_all(void);

#endif
