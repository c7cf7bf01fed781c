/* SPDX-License-Identifier: Apache-2.0 */
/* graphrun bench --together: several models in one pool, all under load at once. */
#ifndef TOOLS_BENCH_TOGETHER_H
#define TOOLS_BENCH_TOGETHER_H

#include "tools/inputs.h"
#include "tools/load.h"

typedef struct together_options {
    const char *device, *fallback, *trust; /* as loaded_open has them */
    int32_t threads;
    const input_specs *inputs; /* for all models */
    uint64_t seed;
    load_options load;
    bool has_pictures;
    int timeline_contexts;
} together_options;

/* {models, device, threads, load_ms, load, peak_rss_bytes}, with pictures memory and timeline, too; of this
 * process, which does nothing else. NULL after printing an error. */
json_t *together_measure(const char *const *paths, size_t n, const together_options *options);

/* Adds `of_time_slices` to each load with clients: the sum, over the models, of what a model does beside the
 * others over what it does alone with as many clients. reports: of each model alone. */
void together_compare(json_t *together, const json_t *reports);

#endif
