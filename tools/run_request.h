/* SPDX-License-Identifier: Apache-2.0 */
/* What `graphrun MODEL` was asked for. */
#ifndef TOOLS_RUN_REQUEST_H
#define TOOLS_RUN_REQUEST_H

#include "tools/devices.h"
#include "tools/inputs.h"

typedef struct run_request {
    const char *model, *fallback, *output_dir, *trust_option;
    char *trust; /* what it means to the library */
    device_list devices;
    input_specs inputs;
    int64_t repeat, threads, seed, contexts;
    bool json, explain;
    const char *timeline; /* file for the picture of the load */
} run_request;

#endif
