/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the cache's file: a table of choices (db.h) and one of machine code (code_db.h). They differ in
 * their columns; what makes a row sound, and how rows are read, put and pruned, is the same. */
#ifndef GRT_SRC_ALGOS_DB_ROWS_H
#define GRT_SRC_ALGOS_DB_ROWS_H

#include "src/algos/db_file.h"
#include "src/base/choice.h"

#include <stddef.h>

typedef struct sqlite3_stmt sqlite3_stmt;

/* A row is read as the columns key, data, source, cost_ms, made, checksum, and put as the parameters ?1 to ?6
 * in this order. Another layout of rows gets another table beside the old one, so that two versions of the
 * library can share a file. */
typedef struct grt_db_table {
    const char *name;
    const char *create; /* makes it where it is missing */
    const char *read;   /* all rows, in order of key */
    const char *put;
    const char *prune; /* GRT_DB_PRUNE */
    bool is_code;      /* the source of all rows is GRT_CHOICE_CODE, not a column, and none is empty */
} grt_db_table;

/* Removes rows of table `name` older than ?1 by their column `age` (0: any age) whose keys contain ?2 (NULL:
 * all). */
#define GRT_DB_PRUNE(name, age) \
    "DELETE FROM " name " WHERE (?1=0 OR " age "<?1) AND (?2 IS NULL OR instr(key,?2)>0)"

/* *out_db NULL: there is no file, or the table is not in it. */
grt_status grt_db_table_open(const grt_db_table *table, const char *path, sqlite3 **out_db);
/* The row that a statement stands at; false: it is not sound. Valid until the statement's next step. */
bool grt_db_table_get(const grt_db_table *table, sqlite3_stmt *s, grt_choice *out_row);
/* Calls `each` for all sound rows. Fails if their keys and data have more than `most` bytes. A file that is
 * not there has none. *out_skipped: rows that were not sound. */
grt_status grt_db_table_read(const grt_db_table *table, const char *path, size_t most,
                             void (*each)(void *user, const grt_choice *row), void *user,
                             size_t *out_skipped);

/* ---- within a transaction; they return SQLite's code ---- */

/* `put` is the table's; its parameters after the sixth are bound by the caller. */
int grt_db_table_put(const grt_db_table *table, sqlite3_stmt *put, const grt_choice *row);
int grt_db_table_prune(const grt_db_table *table, sqlite3 *db, int64_t before, const char *part,
                       size_t *out_removed);
/* One statement with at most the parameters ?1, a number, and ?2, a text. out_changed may be NULL. */
int grt_db_change(sqlite3 *db, const char *sql, int64_t number, const char *text, size_t *out_changed);

#endif
