/* SPDX-License-Identifier: Apache-2.0 */
#include "src/algos/code_db.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

enum { SCHEMA = 1, DAY = 86400 };
#define TABLE   "code_1"
#define COLUMNS "key, data, cost_ms, made, checksum"
static const char tables[] = "CREATE TABLE IF NOT EXISTS " TABLE
                             "(key TEXT PRIMARY KEY NOT NULL, data BLOB NOT NULL, cost_ms REAL NOT NULL,"
                             " made INTEGER NOT NULL, checksum INTEGER NOT NULL, used INTEGER NOT NULL)"
                             " WITHOUT ROWID";

static int64_t code_checksum(const grt_choice *row)
{
    XXH64_hash_t h = XXH3_64bits_withSeed(row->key, strlen(row->key), SCHEMA);
    h = XXH3_64bits_withSeed(row->data, row->size, h);
    h = XXH3_64bits_withSeed(&row->cost_ms, sizeof row->cost_ms, h);
    return (int64_t)XXH3_64bits_withSeed(&row->made, sizeof row->made, h);
}

/* Columns of COLUMNS. */
static bool code_is_sound(sqlite3_stmt *s, grt_choice *out)
{
    const int key_size = sqlite3_column_bytes(s, 0), size = sqlite3_column_bytes(s, 1);
    if (sqlite3_column_type(s, 0) != SQLITE_TEXT || sqlite3_column_type(s, 1) != SQLITE_BLOB ||
        key_size > GRT_CHOICE_MAX_KEY || size > GRT_CHOICE_MAX_DATA || !size)
        return false;
    *out = (grt_choice){.key = (const char *)sqlite3_column_text(s, 0),
                        .data = sqlite3_column_blob(s, 1),
                        .size = (size_t)size,
                        .source = GRT_CHOICE_CODE,
                        .cost_ms = sqlite3_column_double(s, 2),
                        .made = sqlite3_column_int64(s, 3)};
    return out->key && strlen(out->key) == (size_t)key_size && out->data &&
           code_checksum(out) == sqlite3_column_int64(s, 4);
}

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
    sqlite3_stmt *s = NULL;
    if (grt_db_open_to_write(path, tables, &db) != GRT_OK)
        return;
    if (sqlite3_prepare_v2(db, "UPDATE " TABLE " SET used=?1 WHERE key=?2", -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(s, 1, (int64_t)time(NULL));
        sqlite3_bind_text(s, 2, key, -1, SQLITE_STATIC);
        sqlite3_step(s);
    }
    sqlite3_finalize(s);
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
    GRT_TRY(grt_db_open_to_read(path, &db));
    if (!db || !grt_db_has_table(db, TABLE)) {
        sqlite3_close(db);
        return GRT_OK;
    }
    int code = prepare_find(db, key, &s);
    if (code == SQLITE_OK)
        code = sqlite3_step(s);
    grt_status status = code == SQLITE_ROW || code == SQLITE_DONE ? GRT_OK : grt_db_fail(db, code, path);
    if (code == SQLITE_ROW && !code_is_sound(s, &row))
        *out_damaged = true;
    else if (code == SQLITE_ROW && !code_db_copy(&row, out_row))
        status = grt_fail_memory(row.size);
    if (code == SQLITE_ROW)
        is_due = sqlite3_column_int64(s, 5) < (int64_t)time(NULL) - DAY;
    sqlite3_finalize(s);
    sqlite3_close(db);
    if (out_row->data && is_due)
        code_db_note_use(path, out_row->key);
    return status;
}

static int write_code(sqlite3_stmt *put, const grt_choice *row)
{
    sqlite3_bind_text(put, 1, row->key, -1, SQLITE_STATIC);
    sqlite3_bind_blob(put, 2, row->data ? row->data : "", (int)row->size, SQLITE_STATIC);
    sqlite3_bind_double(put, 3, row->cost_ms);
    sqlite3_bind_int64(put, 4, row->made);
    sqlite3_bind_int64(put, 5, code_checksum(row));
    sqlite3_bind_int64(put, 6, (int64_t)time(NULL));
    sqlite3_step(put);
    return sqlite3_reset(put);
}

/* What was used longest ago leaves. */
static int keep_below(sqlite3 *db, int64_t most)
{
    sqlite3_stmt *s = NULL;
    int code = sqlite3_prepare_v2(
        db,
        "DELETE FROM " TABLE " WHERE key IN (SELECT key FROM (SELECT key, sum(length(key)+length(data))"
        " OVER (ORDER BY used DESC, made DESC, key) AS total FROM " TABLE ") WHERE total>?1)",
        -1, &s, NULL);
    if (code == SQLITE_OK) {
        sqlite3_bind_int64(s, 1, most);
        sqlite3_step(s);
        code = sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return code;
}

grt_status grt_code_db_write(const char *path, const grt_choice *rows, size_t n, int64_t most)
{
    sqlite3 *db;
    sqlite3_stmt *put = NULL;
    GRT_TRY(grt_db_open_to_write(path, tables, &db));
    int code = sqlite3_prepare_v2(
        db, "INSERT OR REPLACE INTO " TABLE "(" COLUMNS ", used) VALUES(?,?,?,?,?,?)", -1, &put, NULL);
    for (size_t i = 0; code == SQLITE_OK && i < n; i++)
        if (strlen(rows[i].key) <= GRT_CHOICE_MAX_KEY && rows[i].size <= GRT_CHOICE_MAX_DATA)
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
    sqlite3_stmt *s = NULL;
    if (grt_algo_db_stamp(path) == 0)
        return GRT_OK;
    GRT_TRY(grt_db_open_to_write(path, tables, &db));
    int code = sqlite3_prepare_v2(db, "DELETE FROM " TABLE " WHERE key=?", -1, &s, NULL);
    if (code == SQLITE_OK) {
        sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
        sqlite3_step(s);
        code = sqlite3_reset(s);
    }
    const grt_status status = code == SQLITE_OK ? GRT_OK : grt_db_fail(db, code, path);
    sqlite3_finalize(s);
    return grt_db_commit(db, path, status);
}

grt_status grt_code_db_read(const char *path, void (*each)(void *user, const grt_choice *row), void *user,
                            size_t *out_skipped)
{
    sqlite3 *db;
    sqlite3_stmt *s = NULL;
    *out_skipped = 0;
    GRT_TRY(grt_db_open_to_read(path, &db));
    if (!db || !grt_db_has_table(db, TABLE)) {
        sqlite3_close(db);
        return GRT_OK;
    }
    int code = sqlite3_prepare_v2(db, "SELECT " COLUMNS " FROM " TABLE " ORDER BY key", -1, &s, NULL);
    while (code == SQLITE_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        grt_choice row;
        code = SQLITE_OK;
        if (code_is_sound(s, &row))
            each(user, &row);
        else
            ++*out_skipped;
    }
    const grt_status status = code == SQLITE_OK || code == SQLITE_DONE ? GRT_OK : grt_db_fail(db, code, path);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return status;
}

int grt_code_db_prune(sqlite3 *db, int64_t before, const char *part, size_t *out_removed)
{
    sqlite3_stmt *s = NULL;
    *out_removed = 0;
    if (!grt_db_has_table(db, TABLE))
        return SQLITE_OK;
    int code = sqlite3_prepare_v2(
        db, "DELETE FROM " TABLE " WHERE (?1=0 OR used<?1) AND (?2 IS NULL OR instr(key,?2)>0)", -1, &s,
        NULL);
    if (code == SQLITE_OK) {
        sqlite3_bind_int64(s, 1, before);
        sqlite3_bind_text(s, 2, part, -1, SQLITE_STATIC);
        sqlite3_step(s);
        code = sqlite3_reset(s);
    }
    if (code == SQLITE_OK)
        *out_removed = (size_t)sqlite3_changes(db);
    sqlite3_finalize(s);
    return code;
}
