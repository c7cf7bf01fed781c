/* SPDX-License-Identifier: Apache-2.0 */
#include "src/algos/db.h"

#include "src/algos/code_db.h"
#include "src/algos/db_rows.h"

#include <sqlite3.h>

#define TABLE   "algos_1"
#define COLUMNS "key, data, source, cost_ms, made, checksum"
static const grt_db_table choices = {
    .name = TABLE,
    .create = "CREATE TABLE IF NOT EXISTS " TABLE "(key TEXT PRIMARY KEY NOT NULL, data BLOB NOT NULL,"
              " source INTEGER NOT NULL, cost_ms REAL NOT NULL, made INTEGER NOT NULL,"
              " checksum INTEGER NOT NULL) WITHOUT ROWID",
    .read = "SELECT " COLUMNS " FROM " TABLE " ORDER BY key",
    .put = "INSERT OR REPLACE INTO " TABLE "(" COLUMNS ") VALUES(?,?,?,?,?,?)",
    .prune = GRT_DB_PRUNE(TABLE, "made"),
};

grt_status grt_algo_db_read(const char *path, void (*each)(void *user, const grt_choice *row), void *user,
                            size_t *out_skipped)
{
    return grt_db_table_read(&choices, path, GRT_CACHE_MAX_TOTAL, each, user, out_skipped);
}

typedef struct writer {
    sqlite3_stmt *get, *put, *drop;
} writer;

/* A tuned row gives way to a tuned one only; one that is not sound to any. */
static int is_kept(const writer *w, const grt_choice *row, bool *out_kept)
{
    grt_choice there;
    sqlite3_bind_text(w->get, 1, row->key, -1, SQLITE_STATIC);
    *out_kept = sqlite3_step(w->get) == SQLITE_ROW && grt_db_table_get(&choices, w->get, &there) &&
                there.source > row->source;
    return sqlite3_reset(w->get);
}

static int drop_row(sqlite3_stmt *drop, const grt_choice *row)
{
    sqlite3_bind_text(drop, 1, row->key, -1, SQLITE_STATIC);
    sqlite3_bind_blob(drop, 2, row->data ? row->data : "", (int)row->size, SQLITE_STATIC);
    sqlite3_step(drop);
    return sqlite3_reset(drop);
}

static int write_row(const writer *w, const grt_choice *row)
{
    bool kept;
    if (row->rejected)
        return drop_row(w->drop, row);
    const int code = is_kept(w, row, &kept);
    return code != SQLITE_OK || kept ? code : grt_db_table_put(&choices, w->put, row);
}

grt_status grt_algo_db_write(const char *path, const grt_choice *rows, size_t n)
{
    sqlite3 *db;
    writer w = {NULL, NULL, NULL};
    GRT_TRY(grt_db_open_to_write(path, choices.create, &db));
    int code = sqlite3_prepare_v2(db, "SELECT " COLUMNS " FROM " TABLE " WHERE key=?", -1, &w.get, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_prepare_v2(db, choices.put, -1, &w.put, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_prepare_v2(db, "DELETE FROM " TABLE " WHERE key=? AND data=?", -1, &w.drop, NULL);
    for (size_t i = 0; code == SQLITE_OK && i < n; i++)
        code = write_row(&w, &rows[i]);
    grt_status status = code == SQLITE_OK ? GRT_OK : grt_db_fail(db, code, path);
    sqlite3_finalize(w.get);
    sqlite3_finalize(w.put);
    sqlite3_finalize(w.drop);
    return grt_db_commit(db, path, status);
}

grt_status grt_algo_db_prune(const char *path, int64_t before, const char *part, size_t *out_removed)
{
    sqlite3 *db;
    size_t removed = 0, removed_code = 0;
    *out_removed = 0;
    if (grt_algo_db_stamp(path) == 0)
        return GRT_OK;
    GRT_TRY(grt_db_open_to_write(path, choices.create, &db));
    int code = grt_db_table_prune(&choices, db, before, part, &removed);
    if (code == SQLITE_OK)
        code = grt_code_db_prune(db, before, part, &removed_code);
    const grt_status status =
        grt_db_commit(db, path, code == SQLITE_OK ? GRT_OK : grt_db_fail(db, code, path));
    if (status == GRT_OK)
        *out_removed = removed + removed_code;
    return status;
}
