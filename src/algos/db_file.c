/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* secure_getenv */
#include "src/algos/db_file.h"

#include "src/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

enum { APPLICATION = 0x47525443 /* "GRTC": marks the file as ours */, WAIT_MS = 10000 };

/* ---- where ---- */

static char *db_join(const char *a, const char *b)
{
    const size_t n = strlen(a) + strlen(b) + 1;
    char *path = malloc(n);
    if (path)
        snprintf(path, n, "%s%s", a, b);
    return path;
}

grt_status grt_algo_db_default_path(char **out_path, bool *out_named)
{
    const char *set = secure_getenv("GRAPHRT_ALGO_CACHE"), *cache = secure_getenv("XDG_CACHE_HOME"),
               *home = secure_getenv("HOME");
    *out_path = NULL;
    if (out_named)
        *out_named = set && *set;
    if (set && (!strcmp(set, "off") || !strcmp(set, "0")))
        return GRT_OK;
    if (set && *set)
        *out_path = strdup(set);
    else if (cache && *cache == '/')
        *out_path = db_join(cache, "/graphrt/algos.db");
    else if (home && *home == '/')
        *out_path = db_join(home, "/.cache/graphrt/algos.db");
    else
        return GRT_OK;
    return *out_path ? GRT_OK : grt_fail_memory(0);
}

/* The user's own, as the XDG rules have it: what is chosen by the file's rows is run. */
static grt_status make_directories(const char *path)
{
    char *copy = strdup(path);
    if (!copy)
        return grt_fail_memory(strlen(path));
    grt_status status = GRT_OK;
    for (char *slash = strchr(copy + 1, '/'); status == GRT_OK && slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0700) != 0 && errno != EEXIST && access(copy, X_OK) != 0)
            status = grt_fail(GRT_STATUS_IO, "directory '%s' cannot be made: %s", copy, strerror(errno));
        *slash = '/';
    }
    free(copy);
    return status;
}

/* ---- opening ---- */

grt_status grt_db_fail(sqlite3 *db, int code, const char *path)
{
    const char *advice = "";
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        advice = ": remove the file, or name another one in GRAPHRT_ALGO_CACHE";
    return grt_fail(GRT_STATUS_IO, "algorithm cache '%s': %s (%s)%s", path, sqlite3_errmsg(db),
                    sqlite3_errstr(sqlite3_extended_errcode(db)), advice);
}

/* SQLite's code. */
static int grt_db_execute(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* A number that a statement without parameters returns. */
static int grt_db_query(sqlite3 *db, const char *sql, int64_t *out)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(statement);
        if (code == SQLITE_ROW)
            *out = sqlite3_column_int64(statement, 0);
    }
    const int end = sqlite3_finalize(statement);
    return end != SQLITE_OK ? end : code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

static grt_status check_ours(sqlite3 *db, const char *path, bool *out_empty)
{
    int64_t application = 0, tables = 0;
    int code = grt_db_execute(db, "BEGIN"); /* both of the same moment */
    if (code == SQLITE_OK)
        code = grt_db_query(db, "PRAGMA application_id", &application);
    if (code == SQLITE_OK)
        code = grt_db_query(db, "SELECT count(*) FROM sqlite_master", &tables);
    if (code == SQLITE_OK)
        code = grt_db_execute(db, "COMMIT");
    if (code != SQLITE_OK)
        return grt_db_fail(db, code, path);
    *out_empty = application == 0 && tables == 0;
    if (!*out_empty && application != APPLICATION)
        return grt_fail(GRT_STATUS_IO,
                        "'%s' is a database of another program, not an algorithm cache: name another file in "
                        "GRAPHRT_ALGO_CACHE",
                        path);
    return GRT_OK;
}

/* Not a device, a pipe, a directory: opening some of them would wait forever. */
static grt_status db_check_regular(const char *path, bool *out_exists)
{
    struct stat st;
    *out_exists = stat(path, &st) == 0;
    if (*out_exists && !S_ISREG(st.st_mode))
        return grt_fail(GRT_STATUS_IO, "algorithm cache '%s' is not a regular file", path);
    if (!*out_exists && errno != ENOENT && errno != ENOTDIR)
        return grt_fail(GRT_STATUS_IO, "algorithm cache '%s': %s", path, strerror(errno));
    return GRT_OK;
}

static grt_status connect_to(const char *name, const char *path, int flags, sqlite3 **out_db)
{
    sqlite3 *db = NULL;
    const int code = sqlite3_open_v2(name, &db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK) {
        grt_status status = db ? grt_db_fail(db, code, path) : grt_fail_memory(0);
        sqlite3_close(db);
        return status;
    }
    sqlite3_busy_timeout(db, WAIT_MS);
    *out_db = db;
    return GRT_OK;
}

/* A file in a directory that cannot be written to has no place for the log's index: it is read as it stands.
 * What is torn by somebody who can write to it is noticed by the rows' checksums. */
static grt_status connect_immutable(const char *path, sqlite3 **out_db)
{
    grt_text uri = {0};
    grt_text_add(&uri, "file:");
    for (const char *c = path; *c; c++)
        grt_text_add(&uri, strchr("?#%", *c) ? "%%%02X" : "%c", (unsigned char)*c);
    grt_text_add(&uri, "?immutable=1");
    grt_status status =
        uri.failed ? grt_fail_memory(uri.size)
                   : connect_to(grt_text_get(&uri), path, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, out_db);
    grt_text_release(&uri);
    return status;
}

static bool is_writable(const char *path)
{
    char *directory = strdup(path);
    char *slash = directory ? strrchr(directory, '/') : NULL;
    if (slash)
        *slash = '\0';
    const bool ok = faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 && faccessat(AT_FDCWD,
                                                                                  !slash       ? "."
                                                                                  : *directory ? directory
                                                                                               : "/",
                                                                                  W_OK, AT_EACCESS) == 0;
    free(directory);
    return ok;
}

/* *out_db NULL: there is no file, or nothing in it. */
grt_status grt_db_open_to_read(const char *path, sqlite3 **out_db)
{
    bool exists, empty;
    sqlite3 *db = NULL;
    *out_db = NULL;
    GRT_TRY(db_check_regular(path, &exists));
    if (!exists)
        return GRT_OK;
    GRT_TRY(connect_to(path, path, SQLITE_OPEN_READWRITE, &db)); /* falls back to reading by itself */
    grt_status status = check_ours(db, path, &empty);
    const int code = sqlite3_errcode(db);
    if (status != GRT_OK && (code == SQLITE_READONLY || code == SQLITE_CANTOPEN) && !is_writable(path)) {
        sqlite3_close(db);
        db = NULL;
        GRT_TRY(connect_immutable(path, &db));
        status = check_ours(db, path, &empty);
    }
    if (status != GRT_OK || empty) {
        sqlite3_close(db);
        return status;
    }
    *out_db = db;
    return GRT_OK;
}

/* Changing to the write-ahead log wants the file for itself and does not wait for it: try for a while. It is
 * a property of the file, so that whoever succeeds does it for all. */
static int use_log(sqlite3 *db)
{
    int code = SQLITE_BUSY;
    for (int i = 0; i < 200 && (code == SQLITE_BUSY || code == SQLITE_LOCKED); i++) {
        code = grt_db_execute(db, "PRAGMA journal_mode=WAL");
        if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return code == SQLITE_BUSY || code == SQLITE_LOCKED ? SQLITE_OK : code;
}

/* SQLite gives its other files the mode of this one. It gets its name when it is closed: POSIX locks are the
 * process's, and closing a descriptor of the file would end those of a thread that writes to it already.
 * Where that fails (a file system without links), SQLite makes the file, or says why it cannot. */
static void make_private(const char *path)
{
    char *unnamed = db_join(path, ".XXXXXX");
    const int fd = unnamed ? mkostemp(unnamed, O_CLOEXEC) : -1; /* of mode 0600 */
    if (fd >= 0) {
        close(fd);
        (void)!link(unnamed, path); /* never over another's */
        unlink(unnamed);
    }
    free(unnamed);
}

grt_status grt_db_open_to_write(const char *path, const char *tables, sqlite3 **out_db)
{
    bool exists, empty;
    sqlite3 *db = NULL;
    GRT_TRY(db_check_regular(path, &exists));
    if (!exists) {
        GRT_TRY(make_directories(path));
        make_private(path);
    }
    GRT_TRY(connect_to(path, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db));
    grt_status status = check_ours(db, path, &empty);
    int code = SQLITE_OK;
    if (status == GRT_OK && empty)
        code = use_log(db);
    if (status == GRT_OK && code == SQLITE_OK)
        code = grt_db_execute(db, "PRAGMA synchronous=NORMAL; BEGIN IMMEDIATE");
    if (status == GRT_OK && code == SQLITE_OK)
        code = grt_db_execute(db, "PRAGMA application_id=1196577859; PRAGMA user_version=1");
    if (status == GRT_OK && code == SQLITE_OK)
        code = grt_db_execute(db, tables);
    _Static_assert(APPLICATION == 1196577859, "as in the statement");
    if (status == GRT_OK && code != SQLITE_OK)
        status = grt_db_fail(db, code, path);
    if (status != GRT_OK) {
        sqlite3_close(db); /* rolls back */
        return status;
    }
    *out_db = db;
    return GRT_OK;
}

grt_status grt_db_commit(sqlite3 *db, const char *path, grt_status status)
{
    if (status == GRT_OK && grt_db_execute(db, "COMMIT") != SQLITE_OK)
        status = grt_db_fail(db, sqlite3_errcode(db), path);
    sqlite3_close(db);
    return status;
}

bool grt_db_has_table(sqlite3 *db, const char *name)
{
    int64_t n = 0;
    grt_text sql = {0};
    grt_text_add(&sql, "SELECT count(*) FROM sqlite_master WHERE type='table' AND name='%s'", name);
    const bool found = !sql.failed && grt_db_query(db, grt_text_get(&sql), &n) == SQLITE_OK && n == 1;
    grt_text_release(&sql);
    return found;
}

uint64_t grt_algo_db_stamp(const char *path)
{
    struct stat st[2] = {0};
    char *log = db_join(path, "-wal");
    if (stat(path, &st[0]) != 0) {
        free(log);
        return 0;
    }
    if (log && stat(log, &st[1]) != 0)
        memset(&st[1], 0, sizeof st[1]);
    free(log);
    int64_t parts[8] = {(int64_t)st[0].st_ino,         (int64_t)st[0].st_size,
                        (int64_t)st[0].st_mtim.tv_sec, (int64_t)st[0].st_mtim.tv_nsec,
                        (int64_t)st[1].st_ino,         (int64_t)st[1].st_size,
                        (int64_t)st[1].st_mtim.tv_sec, (int64_t)st[1].st_mtim.tv_nsec};
    return XXH3_64bits(parts, sizeof parts) | 1;
}
