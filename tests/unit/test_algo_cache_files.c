/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the cache of algorithms that are damaged, foreign, of another version, read-only or on a full
 * disk: an unusable file costs a warning. A new one is its user's. */
#define _GNU_SOURCE
#include "src/algos/db.h"
#include "tests/unit/algo_cache.h"
#include "tests/unit/suite.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *bytes, size_t size)
{
    snprintf(algo_path, sizeof algo_path, "%s/algos.db", algo_directory);
    files_write(algo_path, bytes, size);
}

/* The cache works in memory and says what is wrong with the file. */
static void expect_warning(const char *expected)
{
    grt_device_algos a;
    ck_assert_int_eq(grt_fail(GRT_STATUS_IO, "mine"), GRT_STATUS_IO);
    grt_algo_cache *cache = algo_open(&a);
    ck_assert_str_eq(algo_get(&a, "op=A;"), "");
    algo_put(&a, "op=A;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_save(cache);
    ck_assert_str_eq(algo_get(&a, "op=A;"), "x");
    ck_assert_msg(strstr(algo_warnings(cache), expected) != NULL, "expected '%s' in '%s'", expected,
                  algo_warnings(cache));
    grt_algo_cache_release(cache);
    ck_assert_str_eq(grt_last_error(), "mine"); /* the thread's own error stays */
}

START_TEST(garbage)
{
    char bytes[8192];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 37 + 11);
    write_file(bytes, sizeof bytes);
    expect_warning("remove the file");
    file now = files_read(algo_path);
    ck_assert_uint_eq(now.size, sizeof bytes);
    ck_assert_mem_eq(now.data, bytes, sizeof bytes); /* not ours to change */
    free(now.data);
}
END_TEST

START_TEST(empty_file)
{
    write_file("", 0);
    grt_device_algos a;
    grt_algo_cache *cache = algo_open(&a);
    algo_put(&a, "op=A;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_save(cache);
    ck_assert_str_eq(algo_warnings(cache), "");
    grt_algo_cache_release(cache);
}
END_TEST

static void execute(const char *sql)
{
    sqlite3 *db;
    char *message = NULL;
    ck_assert_int_eq(sqlite3_open(algo_path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s", message);
    sqlite3_close(db);
}

START_TEST(foreign_database)
{
    snprintf(algo_path, sizeof algo_path, "%s/algos.db", algo_directory);
    execute("CREATE TABLE mine(a); INSERT INTO mine VALUES(1)");
    expect_warning("another program");
}
END_TEST

START_TEST(not_a_file)
{
    snprintf(algo_path, sizeof algo_path, "%s", algo_directory);
    expect_warning("not a regular file");
    snprintf(algo_path, sizeof algo_path, "%s/pipe", algo_directory);
    ck_assert_int_eq(mkfifo(algo_path, 0600), 0);
    expect_warning("not a regular file");
    write_file("x", 1);
    strcat(algo_path, "/below/algos.db");
    expect_warning("cannot be made");
}
END_TEST

START_TEST(damaged_rows_are_skipped_and_replaced)
{
    grt_device_algos a;
    grt_algo_cache *cache = algo_open(&a);
    algo_put(&a, "op=A;", "good", GRT_CHOICE_TUNED);
    algo_put(&a, "op=B;", "good", GRT_CHOICE_TUNED);
    algo_put(&a, "op=C;", "good", GRT_CHOICE_TUNED);
    grt_algo_cache_release(cache);
    execute(
        "UPDATE algos_1 SET data=x'00' WHERE key='op=A;'; UPDATE algos_1 SET source='many' WHERE key='op=B;';"
        "INSERT INTO algos_1 SELECT 'op=D;', data, source, cost_ms, made, checksum FROM algos_1 WHERE "
        "key='op=C;'");
    cache = algo_open(&a);
    ck_assert_str_eq(algo_get(&a, "op=A;"), "");
    ck_assert_str_eq(algo_get(&a, "op=B;"), "");
    ck_assert_str_eq(algo_get(&a, "op=C;"), "good");
    ck_assert_str_eq(algo_get(&a, "op=D;"), "");
    ck_assert_ptr_nonnull(strstr(algo_warnings(cache), "3 damaged rows"));
    algo_put(&a, "op=A;", "new", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_release(cache);
    cache = algo_open(&a);
    ck_assert_str_eq(algo_get(&a, "op=A;"), "new");
    grt_algo_cache_release(cache);
}
END_TEST

START_TEST(a_newer_version_beside)
{
    grt_device_algos a;
    grt_algo_cache *cache = algo_open(&a);
    algo_put(&a, "op=A;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_release(cache);
    execute("CREATE TABLE algos_2(key, more); INSERT INTO algos_2 VALUES('op=A;', 1)");
    cache = algo_open(&a);
    ck_assert_str_eq(algo_get(&a, "op=A;"), "x");
    algo_put(&a, "op=B;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_save(cache);
    ck_assert_str_eq(algo_warnings(cache), "");
    grt_algo_cache_release(cache);
    size_t removed;
    ck_assert_int_eq(grt_algo_db_prune(algo_path, 0, "op=A", &removed), GRT_OK);
    ck_assert_uint_eq(removed, 1);
}
END_TEST

/* Every page of the file damaged in turn: algo_warnings at most, and never a row that was not stored. */
START_TEST(damaged_pages)
{
    grt_device_algos a;
    grt_algo_cache *cache = algo_open(&a);
    for (int i = 0; i < 200; i++) {
        char key[64], data[128];
        snprintf(key, sizeof key, "op=A;i=%d;", i);
        memset(data, 'a' + i % 26, sizeof data);
        data[sizeof data - 1] = '\0';
        algo_put(&a, key, data, GRT_CHOICE_HEURISTIC);
    }
    grt_algo_cache_release(cache);
    FILE *f = fopen(algo_path, "r+b");
    ck_assert_ptr_nonnull(f);
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    for (long at = 0; at < size; at += 1024) {
        char old[64], noise[64];
        memset(noise, (int)(at / 1024 * 7 + 1), sizeof noise);
        fseek(f, at, SEEK_SET);
        ck_assert_uint_eq(fread(old, 1, sizeof old, f), sizeof old);
        fseek(f, at, SEEK_SET);
        fwrite(noise, 1, sizeof noise, f);
        fflush(f);
        cache = algo_open(&a);
        for (int i = 0; i < 200; i++) {
            char key[64], data[128];
            snprintf(key, sizeof key, "op=A;i=%d;", i);
            memset(data, 'a' + i % 26, sizeof data);
            data[sizeof data - 1] = '\0';
            const char *found = algo_get(&a, key);
            ck_assert(!*found || !strcmp(found, data));
        }
        grt_algo_cache_release(cache);
        fseek(f, at, SEEK_SET);
        fwrite(old, 1, sizeof old, f);
        fflush(f);
    }
    fclose(f);
}
END_TEST

START_TEST(truncated)
{
    grt_device_algos a;
    grt_algo_cache *cache = algo_open(&a);
    algo_put(&a, "op=A2;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_release(cache);
    struct stat st;
    ck_assert_int_eq(stat(algo_path, &st), 0);
    for (off_t size = st.st_size - 1; size > 0; size /= 3) {
        ck_assert_int_eq(truncate(algo_path, size), 0);
        cache = algo_open(&a); /* a byte that nobody needed may go unnoticed */
        const char *found = algo_get(&a, "op=A2;");
        ck_assert(!*found || !strcmp(found, "x"));
        algo_put(&a, "op=A3;", "y", GRT_CHOICE_HEURISTIC);
        ck_assert_str_eq(algo_get(&a, "op=A3;"), "y");
        grt_algo_cache_release(cache);
    }
}
END_TEST

/* Root may write anywhere: become somebody else. */
static void become_nobody(void)
{
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(65534), 0);
}

START_TEST(read_only_home)
{
    snprintf(algo_path, sizeof algo_path, "%s/home/graphrt/algos.db", algo_directory);
    grt_device_algos a;
    grt_algo_cache *cache = algo_open(&a);
    algo_put(&a, "op=Known;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_release(cache);
    char command[400];
    snprintf(command, sizeof command, "chmod -R a=rX '%s/home'", algo_directory);
    ck_assert_int_eq(system(command), 0);
    const uid_t me = geteuid();
    become_nobody();
    cache = algo_open(&a);
    ck_assert_msg(!strcmp(algo_get(&a, "op=Known;"), "x"), "what is there can be read: %s",
                  algo_warnings(cache));
    grt_algo_cache_release(cache);
    expect_warning("readonly");
    snprintf(algo_path, sizeof algo_path, "%s/home/other/algos.db", algo_directory);
    expect_warning("cannot be made");
    ck_assert_int_eq(seteuid(me), 0);
    snprintf(command, sizeof command, "chmod -R u+w '%s/home'", algo_directory);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

static void fill_up(void)
{
    grt_device_algos a;
    grt_algo_cache *cache = algo_open(&a);
    algo_put(&a, "op=Known;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_save(cache);
    ck_assert_str_eq(algo_warnings(cache), "");
    static char large[200 << 10];
    for (int i = 0; i < 3; i++) {
        char key[32];
        snprintf(key, sizeof key, "op=Large;i=%d;", i);
        a.base.store(&a.base, key, large, sizeof large, GRT_CHOICE_HEURISTIC, 0);
        grt_algo_cache_save(cache);
    }
    ck_assert_str_ne(algo_warnings(cache), "");
    ck_assert_str_eq(algo_get(&a, "op=Known;"), "x");
    grt_algo_cache_release(cache);
    cache = algo_open(&a);
    ck_assert_str_eq(algo_get(&a, "op=Known;"), "x");
    grt_algo_cache_release(cache);
}

START_TEST(full_disk)
{
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){100 << 10, RLIM_INFINITY}), 0);
    fill_up();
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}), 0);
    if (mount("tmpfs", algo_directory, "tmpfs", 0, "size=160k") ==
        0) { /* a really full one, where we may make it */
        fill_up();
        ck_assert_int_eq(umount2(algo_directory, MNT_DETACH), 0);
    }
}
END_TEST

/* What its rows choose is run: nobody else may write it, whatever the mask is. */
START_TEST(the_file_is_its_users)
{
    static const char *const below[] = {"deep", "deep/er"};
    grt_device_algos algos;
    umask(0);
    grt_algo_cache *cache = algo_open(&algos);
    algo_put(&algos, "op=A;n=1;", "one", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_release(cache);
    struct stat st;
    ck_assert_int_eq(stat(algo_path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    for (int i = 0; i < 2; i++) {
        char made[160];
        snprintf(made, sizeof made, "%s/%s", algo_directory, below[i]);
        ck_assert_int_eq(stat(made, &st), 0);
        ck_assert_int_eq(st.st_mode & 0777, 0700);
    }
}
END_TEST

UNIT_SUITE(test_algo_cache_files, algo_setup, algo_teardown, garbage, empty_file, foreign_database,
           not_a_file, damaged_rows_are_skipped_and_replaced, a_newer_version_beside, damaged_pages,
           truncated, read_only_home, full_disk, the_file_is_its_users)
