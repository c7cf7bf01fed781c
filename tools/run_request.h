/* SPDX-License-Identifier: Apache-2.0 */
/* What `graphrun MODEL` was asked for. */
#ifndef TOOLS_RUN_REQUEST_H
#define TOOLS_RUN_REQUEST_H

#include "tools/devices.h"
#include "tools/inputs.h"
#include "tools/shard.h"

typedef struct run_request {
    const char *model, *fallback, *compile, *output_dir, *trust_option;
    char *trust; /* what it means to the library */
    device_list devices;
    bool all_devices; /* of the kind: KIND:all */
    shard shard;
    input_specs inputs;
    int64_t repeat, threads, seed, contexts, memory_limit, multiprocessors;
    bool json, explain;
    const char *timeline; /* file for the picture of the load */
    const char *trace;    /* file for what loading and runs did */
} run_request;

#endif
