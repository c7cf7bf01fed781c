/* SPDX-License-Identifier: Apache-2.0 */
#include "src/algos/db.h"

#include "src/algos/code_db.h"

#include <sqlite3.h>
#include <string.h>
#include <xxhash.h>

/* Another layout of rows gets another table beside this one, so that two versions of the library can share a
 * file. */
enum { SCHEMA = 1 };
#define TABLE   "algos_1"
#define COLUMNS "key, data, source, cost_ms, made, checksum"
static const char tables[] =
    "CREATE TABLE IF NOT EXISTS " TABLE "(key TEXT PRIMARY KEY NOT NULL, data BLOB NOT NULL,"
    " source INTEGER NOT NULL, cost_ms REAL NOT NULL, made INTEGER NOT NULL,"
    " checksum INTEGER NOT NULL) WITHOUT ROWID";

static int64_t checksum(const grt_choice *row)
{
    XXH64_hash_t h = XXH3_64bits_withSeed(row->key, strlen(row->key), SCHEMA);
    h = XXH3_64bits_withSeed(row->data, row->size, h);
    h = XXH3_64bits_withSeed(&row->cost_ms, sizeof row->cost_ms, h + (uint64_t)row->source);
    return (int64_t)XXH3_64bits_withSeed(&row->made, sizeof row->made, h);
}

static bool sound(sqlite3_stmt *s, grt_choice *out)
{
    const int key_size = sqlite3_column_bytes(s, 0), size = sqlite3_column_bytes(s, 1);
    if (sqlite3_column_type(s, 0) != SQLITE_TEXT || sqlite3_column_type(s, 1) != SQLITE_BLOB ||
        sqlite3_column_type(s, 2) != SQLITE_INTEGER || key_size > GRT_CHOICE_MAX_KEY ||
        size > GRT_CHOICE_MAX_DATA)
        return false;
    *out = (grt_choice){.key = (const char *)sqlite3_column_text(s, 0),
                        .data = sqlite3_column_blob(s, 1),
                        .size = (size_t)size,
                        .source = sqlite3_column_int(s, 2),
                        .cost_ms = sqlite3_column_double(s, 3),
                        .made = sqlite3_column_int64(s, 4)};
    return out->key && strlen(out->key) == (size_t)key_size && (out->data || !size) &&
           (out->source == GRT_CHOICE_HEURISTIC || out->source == GRT_CHOICE_TUNED) &&
           checksum(out) == sqlite3_column_int64(s, 5);
}

grt_status grt_algo_db_read(const char *path, void (*each)(void *user, const grt_choice *row), void *user,
                            size_t *out_skipped)
{
    sqlite3 *db;
    sqlite3_stmt *s = NULL;
    size_t total = 0;
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
        if (!sound(s, &row)) {
            ++*out_skipped;
            continue;
        }
        total += strlen(row.key) + row.size;
        if (total > GRT_CACHE_MAX_TOTAL)
            break;
        each(user, &row);
    }
    grt_status status = code == SQLITE_OK || code == SQLITE_DONE ? GRT_OK : grt_db_fail(db, code, path);
    sqlite3_finalize(s);
    sqlite3_close(db);
    if (status == GRT_OK && total > GRT_CACHE_MAX_TOTAL)
        return grt_fail(GRT_STATUS_IO, "algorithm cache '%s' holds more than %d MiB: prune it", path,
                        GRT_CACHE_MAX_TOTAL >> 20);
    return status;
}

typedef struct writer {
    sqlite3_stmt *get, *put, *drop;
} writer;

/* A tuned row gives way to a tuned one only; one that is not sound to any. */
static int is_kept(const writer *w, const grt_choice *row, bool *out_kept)
{
    grt_choice there;
    sqlite3_bind_text(w->get, 1, row->key, -1, SQLITE_STATIC);
    *out_kept = sqlite3_step(w->get) == SQLITE_ROW && sound(w->get, &there) && there.source > row->source;
    return sqlite3_reset(w->get);
}

static int write_row(const writer *w, const grt_choice *row)
{
    sqlite3_stmt *s = row->rejected ? w->drop : w->put;
    bool kept = false;
    if (!row->rejected) {
        const int code = is_kept(w, row, &kept);
        if (code != SQLITE_OK || kept)
            return code;
        sqlite3_bind_int(s, 3, row->source);
        sqlite3_bind_double(s, 4, row->cost_ms);
        sqlite3_bind_int64(s, 5, row->made);
        sqlite3_bind_int64(s, 6, checksum(row));
    }
    sqlite3_bind_text(s, 1, row->key, -1, SQLITE_STATIC);
    sqlite3_bind_blob(s, 2, row->data ? row->data : "", (int)row->size, SQLITE_STATIC);
    sqlite3_step(s);
    return sqlite3_reset(s);
}

grt_status grt_algo_db_write(const char *path, const grt_choice *rows, size_t n)
{
    sqlite3 *db;
    writer w = {NULL, NULL, NULL};
    GRT_TRY(grt_db_open_to_write(path, tables, &db));
    int code = sqlite3_prepare_v2(db, "SELECT " COLUMNS " FROM " TABLE " WHERE key=?", -1, &w.get, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO " TABLE "(" COLUMNS ") VALUES(?,?,?,?,?,?)", -1,
                                  &w.put, NULL);
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
    sqlite3_stmt *s = NULL;
    *out_removed = 0;
    if (grt_algo_db_stamp(path) == 0)
        return GRT_OK;
    GRT_TRY(grt_db_open_to_write(path, tables, &db));
    int code = sqlite3_prepare_v2(
        db, "DELETE FROM " TABLE " WHERE (?1=0 OR made<?1) AND (?2 IS NULL OR instr(key,?2)>0)", -1, &s,
        NULL);
    if (code == SQLITE_OK) {
        sqlite3_bind_int64(s, 1, before);
        sqlite3_bind_text(s, 2, part, -1, SQLITE_STATIC);
        sqlite3_step(s);
        code = sqlite3_reset(s);
    }
    const size_t removed = (size_t)sqlite3_changes(db);
    size_t removed_code = 0;
    if (code == SQLITE_OK)
        code = grt_code_db_prune(db, before, part, &removed_code);
    grt_status status = code == SQLITE_OK ? GRT_OK : grt_db_fail(db, code, path);
    sqlite3_finalize(s);
    status = grt_db_commit(db, path, status);
    if (status == GRT_OK)
        *out_removed = removed + removed_code;
    return status;
}
