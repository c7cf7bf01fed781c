/* SPDX-License-Identifier: Apache-2.0 */
/* What `graphrun compare` was asked for. */
#ifndef TOOLS_COMPARE_REQUEST_H
#define TOOLS_COMPARE_REQUEST_H

#include "tools/inputs.h"

typedef struct compare_request {
    const char *models[2];
    size_t n;
    const char *device, *other_device, *fallback, *trust_option;
    char *trust;
    input_specs inputs;
    int64_t threads, seed;
    double tolerance;
    bool all, json;
} compare_request;

#endif
