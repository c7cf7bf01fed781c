/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code in the cache's file: a table of its own, whose rows are read one by one as they are asked for,
 * and which stays below a size: what was used longest ago leaves first.
 *
 * What is read is run. So a file that other users may write is not read: it must be the user's own or root's.
 * Every row carries a checksum. */
#ifndef GRT_SRC_ALGOS_CODE_DB_H
#define GRT_SRC_ALGOS_CODE_DB_H

#include "src/algos/db_file.h"
#include "src/base/choice.h"

#include <stddef.h>

enum { GRT_CODE_MAX_TOTAL = 64 << 20 }; /* bytes of all rows of a file */

/* Of the rows whose keys begin with `key` the one that was made last: key and data are malloc'ed; data NULL:
 * there is none, or it is damaged. */
grt_status grt_code_db_find(const char *path, const char *key, grt_choice *out_row, bool *out_damaged);
/* In one transaction; older rows leave until all have at most `most` bytes. */
grt_status grt_code_db_write(const char *path, const grt_choice *rows, size_t n, int64_t most);
grt_status grt_code_db_drop(const char *path, const char *key);
/* All sound rows, in order of key. */
grt_status grt_code_db_read(const char *path, void (*each)(void *user, const grt_choice *row), void *user,
                            size_t *out_skipped);

/* As grt_algo_db_prune says; within its transaction. Returns SQLite's code. */
int grt_code_db_prune(sqlite3 *db, int64_t before, const char *part, size_t *out_removed);

#endif
