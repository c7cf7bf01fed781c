/* SPDX-License-Identifier: Apache-2.0 */
#include "src/algos/code_db.h"

#include "src/algos/db_rows.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DAY = 86400 };
#define TABLE   "code_1"
#define COLUMNS "key, data, 0, cost_ms, made, checksum"
static const grt_db_table codes = {
    .name = TABLE,
    .create = "CREATE TABLE IF NOT EXISTS " TABLE
              "(key TEXT PRIMARY KEY NOT NULL, data BLOB NOT NULL, cost_ms REAL NOT NULL,"
              " made INTEGER NOT NULL, checksum INTEGER NOT NULL, used INTEGER NOT NULL)"
              " WITHOUT ROWID",
    .read = "SELECT " COLUMNS " FROM " TABLE " ORDER BY key",
    .put = "INSERT OR REPLACE INTO " TABLE "(key, data, cost_ms, made, checksum, used)"
           " VALUES(?1,?2,?4,?5,?6,?7)",
    .prune = GRT_DB_PRUNE(TABLE, "used"),
    .is_code = true,
};

/* Of the file itself: whoever may replace it in its directory owns what takes its place. */
static grt_status check_private(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return GRT_OK; /* opening it says why */
    if ((st.st_uid != geteuid() && st.st_uid != 0) || st.st_mode & (S_IWGRP | S_IWOTH))
        return grt_fail(GRT_STATUS_IO,
                        "algorithm cache '%s': generated kernels are not read from it, as %s; make it yours "
                        "(chown) and nobody else's to write (chmod go-w)",
                        path,
                        st.st_mode & (S_IWGRP | S_IWOTH) ? "other users may write it"
                                                         : "it belongs to another user");
    return GRT_OK;
}

static bool code_db_copy(const grt_choice *row, grt_choice *out)
{
    *out = *row;
    char *key = strdup(row->key), *data = malloc(row->size);
    if (data)
        memcpy(data, row->data, row->size);
    out->key = key;
    out->data = data;
    if (key && data)
        return true;
    free(key);
    free(data);
    *out = (grt_choice){0};
    return false;
}

/* Keys that begin with ?1: no text has a larger character behind it. */
static int prepare_find(sqlite3 *db, const char *key, sqlite3_stmt **out_s)
{
    const int code =
        sqlite3_prepare_v2(db,
                           "SELECT " COLUMNS ", used FROM " TABLE " WHERE key>=?1 AND key<?1||char(1114111)"
                           " ORDER BY made DESC, key DESC LIMIT 1",
                           -1, out_s, NULL);
    return code == SQLITE_OK ? sqlite3_bind_text(*out_s, 1, key, -1, SQLITE_STATIC) : code;
}

/* Once a day: most starts only read. A file that cannot be written is none the worse. */
static void code_db_note_use(const char *path, const char *key)
{
    sqlite3 *db;
    if (grt_db_open_to_write(path, codes.create, &db) != GRT_OK)
        return;
    (void)grt_db_change(db, "UPDATE " TABLE " SET used=?1 WHERE key=?2", (int64_t)time(NULL), key, NULL);
    (void)grt_db_commit(db, path, GRT_OK);
}

grt_status grt_code_db_find(const char *path, const char *key, grt_choice *out_row, bool *out_damaged)
{
    sqlite3 *db;
    sqlite3_stmt *s = NULL;
    grt_choice row;
    bool is_due = false;
    *out_row = (grt_choice){0};
    *out_damaged = false;
    GRT_TRY(check_private(path));
    GRT_TRY(grt_db_table_open(&codes, path, &db));
    if (!db)
        return GRT_OK;
    int code = prepare_find(db, key, &s);
    if (code == SQLITE_OK)
        code = sqlite3_step(s);
    grt_status status = code == SQLITE_ROW || code == SQLITE_DONE ? GRT_OK : grt_db_fail(db, code, path);
    if (code == SQLITE_ROW && !grt_db_table_get(&codes, s, &row))
        *out_damaged = true;
    else if (code == SQLITE_ROW && !code_db_copy(&row, out_row))
        status = grt_fail_memory(row.size);
    if (code == SQLITE_ROW)
        is_due = sqlite3_column_int64(s, 6) < (int64_t)time(NULL) - DAY;
    sqlite3_finalize(s);
    sqlite3_close(db);
    if (out_row->data && is_due)
        code_db_note_use(path, out_row->key);
    return status;
}

static int write_code(sqlite3_stmt *put, const grt_choice *row)
{
    if (strlen(row->key) > GRT_CHOICE_MAX_KEY || row->size > GRT_CHOICE_MAX_DATA)
        return SQLITE_OK;
    sqlite3_bind_int64(put, 7, (int64_t)time(NULL));
    return grt_db_table_put(&codes, put, row);
}

/* What was used longest ago leaves. */
static int keep_below(sqlite3 *db, int64_t most)
{
    return grt_db_change(
        db,
        "DELETE FROM " TABLE " WHERE key IN (SELECT key FROM (SELECT key, sum(length(key)+length(data))"
        " OVER (ORDER BY used DESC, made DESC, key) AS total FROM " TABLE ") WHERE total>?1)",
        most, NULL, NULL);
}

grt_status grt_code_db_write(const char *path, const grt_choice *rows, size_t n, int64_t most)
{
    sqlite3 *db;
    sqlite3_stmt *put = NULL;
    GRT_TRY(grt_db_open_to_write(path, codes.create, &db));
    int code = sqlite3_prepare_v2(db, codes.put, -1, &put, NULL);
    for (size_t i = 0; code == SQLITE_OK && i < n; i++)
        code = write_code(put, &rows[i]);
    if (code == SQLITE_OK)
        code = keep_below(db, most);
    const grt_status status = code == SQLITE_OK ? GRT_OK : grt_db_fail(db, code, path);
    sqlite3_finalize(put);
    return grt_db_commit(db, path, status);
}

grt_status grt_code_db_drop(const char *path, const char *key)
{
    sqlite3 *db;
    if (grt_algo_db_stamp(path) == 0)
        return GRT_OK;
    GRT_TRY(grt_db_open_to_write(path, codes.create, &db));
    const int code = grt_db_change(db, "DELETE FROM " TABLE " WHERE key=?2", 0, key, NULL);
    return grt_db_commit(db, path, code == SQLITE_OK ? GRT_OK : grt_db_fail(db, code, path));
}

grt_status grt_code_db_read(const char *path, void (*each)(void *user, const grt_choice *row), void *user,
                            size_t *out_skipped)
{
    return grt_db_table_read(&codes, path, SIZE_MAX, each, user, out_skipped);
}

int grt_code_db_prune(sqlite3 *db, int64_t before, const char *part, size_t *out_removed)
{
    return grt_db_table_prune(&codes, db, before, part, out_removed);
}
