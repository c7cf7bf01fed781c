/* SPDX-License-Identifier: Apache-2.0 */
/* What a report of a benchmark draws beside its figures. */
#ifndef TOOLS_BENCH_SAMPLES_H
#define TOOLS_BENCH_SAMPLES_H

#include "tools/load.h"

/* [{up_to_ms, runs}]: of n sorted samples, columns of equal width up to the 95th percentile, and one for the
 * rest. */
json_t *samples_distribution(const double *sorted_ms, size_t n);

/* The memory of this process from now on: a thread looks at it. */
bool samples_watch_memory(void);
/* [{ms, rss_bytes}], from the first look on; the thread ends. Empty if there was none. */
json_t *samples_take_memory(void);

/* [{thread, kind, name, begin_ms, end_ms}]: what the threads of a pool with so many contexts for each of n
 * models do for a few requests that are submitted at once. Of several models, copies have the model's name.
 * NULL after an error (grt_last_error). */
json_t *samples_timeline(const load_model *models, size_t n, int contexts);

#endif
