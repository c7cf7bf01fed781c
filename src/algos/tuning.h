/* SPDX-License-Identifier: Apache-2.0 */
/* The TUNING section of a plan file: choices of algorithms that come with the plan, in the terms of the cache
 * (db.h). `made` and `rejected` are not kept: the same choices give the same bytes, whenever they were
 * made. */
#ifndef GRT_SRC_ALGOS_TUNING_H
#define GRT_SRC_ALGOS_TUNING_H

#include "src/algos/db.h"

/* A plan like the one at plan_path with these rows too: a row replaces that of an equal key, the others stay,
 * all are sorted by key. A row with `rejected` set removes that of its key. All else is the same byte for
 * byte. out_path may be plan_path; the file there is whole at any time, and who has mapped it keeps what it
 * had. A plan with weights in a file of their own has to stay in its directory.
 * Errors: IO, INVALID_PLAN, INVALID_ARGUMENT for rows that no plan can hold. */
grt_status grt_plan_tuning_write(const char *plan_path, const char *out_path, const grt_algo_row *rows,
                                 size_t n);

/* The same merge in memory: *out_rows is malloc'ed and points to what the rows point to. */
grt_status grt_plan_tuning_merge(const grt_algo_row *old, size_t n_old, const grt_algo_row *rows, size_t n,
                                 grt_algo_row **out_rows, size_t *out_n);

#endif
