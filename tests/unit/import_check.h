/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that import succeeds, or refuses. */
#ifndef GRT_TESTS_IMPORT_CHECK_H
#define GRT_TESTS_IMPORT_CHECK_H

#include "tests/unit/onnx_model.h"

#include <check.h>

ir_module *import_ok(onnx_model *m);
/* Import fails, says `a` and `b`, and leaves nothing behind. Releases the model. */
void import_refused(onnx_model *m, const char *a, const char *b); /* as invalid */
void import_refused_as(onnx_model *m, grt_status status, const char *a, const char *b);

/* A case of a suite, of tests up to NULL. */
void import_add(Suite *suite, const char *name, const TTest *const *tests);

#endif
