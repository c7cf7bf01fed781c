/* SPDX-License-Identifier: Apache-2.0 */
/* What `graphrun MODEL` was asked for; on one device and on many. */
#ifndef TOOLS_RUN_H
#define TOOLS_RUN_H

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

/* Is any input's source a directory? Then every file in it is an input of its own. */
bool run_has_lists(const run_request *request);
/* tools/run_many.c: inputs, or repetitions, split over the devices. Returns the exit status. */
int run_many(const run_request *request);

#endif
