/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOLS_QUANTISED_CHECK_H
#define TOOLS_QUANTISED_CHECK_H

#include <graphrt/graphrt.h>

#include <stdbool.h>

/* Compiles the model and reports what stays in float32 between quantised tensors, with reasons, and the
 * number of integer steps. Returns the exit status. */
int quantised_check(const char *path, const grt_compile_options *given, bool json);

#endif
