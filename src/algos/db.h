/* SPDX-License-Identifier: Apache-2.0 */
/* The choices in the cache's file. Every row carries a checksum: what a torn write or another program left is
 * skipped. */
#ifndef GRT_SRC_ALGOS_DB_H
#define GRT_SRC_ALGOS_DB_H

#include "src/algos/db_file.h"
#include "src/base/choice.h"
#include "src/base/text.h"

enum { GRT_CACHE_MAX_TOTAL = 256 << 20 }; /* of a file's choices, in memory */

/* All sound rows, in order of key. A file that is not there has none. *out_skipped: rows that were not sound.
 */
grt_status grt_algo_db_read(const char *path, void (*each)(void *user, const grt_choice *row), void *user,
                            size_t *out_skipped);
/* All rows in one transaction; directories and the file are made where they are missing. A row replaces an
 * older one of its key, unless that was tuned and this one was not. */
grt_status grt_algo_db_write(const char *path, const grt_choice *rows, size_t n);
/* Removes rows older than `before` (seconds since 1970; 0: any age) whose keys contain `part` (NULL: all
 * keys), those of code (code_db.h) as well: these are as old as their last use. */
grt_status grt_algo_db_prune(const char *path, int64_t before, const char *part, size_t *out_removed);

#endif
