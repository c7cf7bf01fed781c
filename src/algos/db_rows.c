/* SPDX-License-Identifier: Apache-2.0 */
#include "src/algos/db_rows.h"

#include <sqlite3.h>
#include <string.h>
#include <xxhash.h>

enum { SCHEMA = 1 };

static int64_t row_checksum(const grt_db_table *table, const grt_choice *row)
{
    const uint64_t source = table->is_code ? 0 : (uint64_t)row->source;
    XXH64_hash_t h = XXH3_64bits_withSeed(row->key, strlen(row->key), SCHEMA);
    h = XXH3_64bits_withSeed(row->data, row->size, h);
    h = XXH3_64bits_withSeed(&row->cost_ms, sizeof row->cost_ms, h + source);
    return (int64_t)XXH3_64bits_withSeed(&row->made, sizeof row->made, h);
}

static bool has_known_source(const grt_db_table *table, const grt_choice *row)
{
    return table->is_code || row->source == GRT_CHOICE_HEURISTIC || row->source == GRT_CHOICE_TUNED;
}

bool grt_db_table_get(const grt_db_table *table, sqlite3_stmt *s, grt_choice *out_row)
{
    const int key_size = sqlite3_column_bytes(s, 0), size = sqlite3_column_bytes(s, 1);
    if (sqlite3_column_type(s, 0) != SQLITE_TEXT || sqlite3_column_type(s, 1) != SQLITE_BLOB ||
        sqlite3_column_type(s, 2) != SQLITE_INTEGER || key_size > GRT_CHOICE_MAX_KEY ||
        size > GRT_CHOICE_MAX_DATA || (table->is_code && !size))
        return false;
    *out_row = (grt_choice){.key = (const char *)sqlite3_column_text(s, 0),
                            .data = sqlite3_column_blob(s, 1),
                            .size = (size_t)size,
                            .source = table->is_code ? GRT_CHOICE_CODE : sqlite3_column_int(s, 2),
                            .cost_ms = sqlite3_column_double(s, 3),
                            .made = sqlite3_column_int64(s, 4)};
    return out_row->key && strlen(out_row->key) == (size_t)key_size && (out_row->data || !size) &&
           has_known_source(table, out_row) && row_checksum(table, out_row) == sqlite3_column_int64(s, 5);
}

grt_status grt_db_table_open(const grt_db_table *table, const char *path, sqlite3 **out_db)
{
    GRT_TRY(grt_db_open_to_read(path, out_db));
    if (*out_db && !grt_db_has_table(*out_db, table->name)) {
        sqlite3_close(*out_db);
        *out_db = NULL;
    }
    return GRT_OK;
}

grt_status grt_db_table_read(const grt_db_table *table, const char *path, size_t most,
                             void (*each)(void *user, const grt_choice *row), void *user, size_t *out_skipped)
{
    sqlite3 *db;
    sqlite3_stmt *s = NULL;
    size_t total = 0;
    *out_skipped = 0;
    GRT_TRY(grt_db_table_open(table, path, &db));
    if (!db)
        return GRT_OK;
    int code = sqlite3_prepare_v2(db, table->read, -1, &s, NULL);
    while (code == SQLITE_OK && total <= most && (code = sqlite3_step(s)) == SQLITE_ROW) {
        grt_choice row;
        code = SQLITE_OK;
        if (!grt_db_table_get(table, s, &row)) {
            ++*out_skipped;
            continue;
        }
        total += strlen(row.key) + row.size;
        if (total <= most)
            each(user, &row);
    }
    const grt_status status = code == SQLITE_OK || code == SQLITE_DONE ? GRT_OK : grt_db_fail(db, code, path);
    sqlite3_finalize(s);
    sqlite3_close(db);
    if (status == GRT_OK && total > most)
        return grt_fail(GRT_STATUS_IO, "algorithm cache '%s' holds more than %zu MiB: prune it", path,
                        most >> 20);
    return status;
}

int grt_db_table_put(const grt_db_table *table, sqlite3_stmt *put, const grt_choice *row)
{
    sqlite3_bind_text(put, 1, row->key, -1, SQLITE_STATIC);
    sqlite3_bind_blob(put, 2, row->data ? row->data : "", (int)row->size, SQLITE_STATIC);
    sqlite3_bind_int(put, 3, row->source);
    sqlite3_bind_double(put, 4, row->cost_ms);
    sqlite3_bind_int64(put, 5, row->made);
    sqlite3_bind_int64(put, 6, row_checksum(table, row));
    sqlite3_step(put);
    return sqlite3_reset(put);
}

int grt_db_change(sqlite3 *db, const char *sql, int64_t number, const char *text, size_t *out_changed)
{
    sqlite3_stmt *s = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (code == SQLITE_OK) {
        sqlite3_bind_int64(s, 1, number);
        sqlite3_bind_text(s, 2, text, -1, SQLITE_STATIC);
        sqlite3_step(s);
        code = sqlite3_reset(s);
    }
    if (out_changed)
        *out_changed = code == SQLITE_OK ? (size_t)sqlite3_changes(db) : 0;
    sqlite3_finalize(s);
    return code;
}

int grt_db_table_prune(const grt_db_table *table, sqlite3 *db, int64_t before, const char *part,
                       size_t *out_removed)
{
    *out_removed = 0;
    return grt_db_has_table(db, table->name) ? grt_db_change(db, table->prune, before, part, out_removed)
                                             : SQLITE_OK;
}
