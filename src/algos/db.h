/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the cache of algorithms: SQLite, write-ahead log, opened for each use and closed again, so that
 * nothing of it is held between uses, across fork(), or while a library is asked.
 *
 * Any number of processes and threads may use one file. A file that is foreign, corrupt or cannot be reached
 * is left as it is; the message says what to do. Every row carries a checksum: what a torn write or another
 * program left is skipped. */
#ifndef GRT_SRC_ALGOS_DB_H
#define GRT_SRC_ALGOS_DB_H

#include "src/base/choice.h"
#include "src/base/text.h"

enum { GRT_CACHE_MAX_TOTAL = 256 << 20 }; /* of a file's choices, in memory */

/* Where the cache is: $GRAPHRT_ALGO_CACHE, else $XDG_CACHE_HOME/graphrt/algos.db, else
 * $HOME/.cache/graphrt/algos.db. *out_path is malloc'ed; NULL if it is switched off ("off" or "0") or there
 * is no home directory. */
grt_status grt_algo_db_default_path(char **out_path);

/* All sound rows, in order of key. A file that is not there has none. *out_skipped: rows that were not sound.
 */
grt_status grt_algo_db_read(const char *path, void (*each)(void *user, const grt_choice *row), void *user,
                            size_t *out_skipped);
/* All rows in one transaction; directories and the file are made where they are missing. A row replaces an
 * older one of its key, unless that was tuned and this one was not. */
grt_status grt_algo_db_write(const char *path, const grt_choice *rows, size_t n);
/* Removes rows older than `before` (seconds since 1970; 0: any age) whose keys contain `part` (NULL: all
 * keys). */
grt_status grt_algo_db_prune(const char *path, int64_t before, const char *part, size_t *out_removed);

/* Tells one state of the file from another, without opening it. 0: there is no file. */
uint64_t grt_algo_db_stamp(const char *path);

#endif
