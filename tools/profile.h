/* SPDX-License-Identifier: Apache-2.0 */
/* The time of each step of a model. */
#ifndef TOOLS_PROFILE_H
#define TOOLS_PROFILE_H

#include <graphrt/graphrt.h>

#include <jansson.h>

/* Medians over some runs: of each kind of op, and of the `most` steps that take longest. NULL on failure. */
json_t *profile_measure(grt_context *context, const grt_model *model, int64_t most);

#endif
