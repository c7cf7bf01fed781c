/* SPDX-License-Identifier: Apache-2.0 */
/* Where two models begin to differ: what graphrun compare was asked for, and the report of it. */
#ifndef TOOLS_DIVERGENCE_H
#define TOOLS_DIVERGENCE_H

#include "tools/comparison.h"

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

/* The first tensor beyond the tolerance; NULL if all are within. */
const compared_tensor *divergence_first(const compare_request *request, const comparison *c);
void divergence_print_text(const compare_request *request, const comparison *c);
bool divergence_print_json(const compare_request *request, const comparison *c);

#endif
