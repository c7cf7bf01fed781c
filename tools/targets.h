/* SPDX-License-Identifier: Apache-2.0 */
/* Targets of a plan: a kind of device, and described GPUs of it (descriptions.h). */
#ifndef TOOLS_TARGETS_H
#define TOOLS_TARGETS_H

#include "tools/descriptions.h"

typedef struct targets {
    descriptions all;
    const char *kind; /* NULL: not said */
    grt_device_description *devices;
    size_t n;
} targets;

/* One more: "cuda", or a GPU, "h200" or "sm_90". False after printing an error with it; `option` is
 * named there. */
bool targets_add(targets *t, const char *option, const char *text);
/* The options point into t. */
void targets_set(const targets *t, grt_compile_options *options);
void targets_release(targets *t);

#endif
