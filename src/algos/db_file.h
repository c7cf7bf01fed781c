/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the cache of algorithms: SQLite, write-ahead log, opened for each use and closed again, so that
 * nothing of it is held between uses, across fork(), or while a library is asked.
 *
 * Any number of processes and threads may use one file. A file that is foreign, corrupt or cannot be reached
 * is left as it is; the message says what to do. */
#ifndef GRT_SRC_ALGOS_DB_FILE_H
#define GRT_SRC_ALGOS_DB_FILE_H

#include "src/base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sqlite3 sqlite3;

/* Where the cache is: $GRAPHRT_ALGO_CACHE, else $XDG_CACHE_HOME/graphrt/algos.db, else
 * $HOME/.cache/graphrt/algos.db. *out_path is malloc'ed; NULL if it is switched off ("off" or "0") or there
 * is no home directory. *out_named (may be NULL): the first of these says it. */
grt_status grt_algo_db_default_path(char **out_path, bool *out_named);

/* Tells one state of the file from another, without opening it. 0: there is no file. */
uint64_t grt_algo_db_stamp(const char *path);

/* ---- for the files of rows ---- */

/* *out_db NULL: there is no file, or nothing in it. */
grt_status grt_db_open_to_read(const char *path, sqlite3 **out_db);
/* In a transaction, which is to be committed. `tables`: statements that make those that are missing. */
grt_status grt_db_open_to_write(const char *path, const char *tables, sqlite3 **out_db);
/* Closes it, too; what `status` says does not happen, unless it is OK. */
grt_status grt_db_commit(sqlite3 *db, const char *path, grt_status status);
grt_status grt_db_fail(sqlite3 *db, int code, const char *path);
bool grt_db_has_table(sqlite3 *db, const char *name);

#endif
