/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of algorithms: stored rows are found again, with many processes and damaged files; an unusable
 * file costs a warning. */
#define _GNU_SOURCE
#include "src/algos/cache.h"
#include "src/algos/db.h"
#include "tests/unit/files.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char directory[FILES_NAME], path[160];

static void setup(void)
{
    files_directory(directory);
    ck_assert_int_eq(chmod(directory, 0777), 0);
    snprintf(path, sizeof path, "%s/deep/er/algos.db", directory);
}

static void teardown(void)
{
    files_remove(directory);
}

static grt_algo_cache *open_cache(grt_device_algos *algos)
{
    grt_algo_cache *cache = NULL;
    ck_assert_int_eq(grt_algo_cache_create(path, &cache), GRT_OK);
    grt_algo_cache_load(cache);
    grt_device_algos_init(algos, cache);
    return cache;
}

static void put(grt_device_algos *algos, const char *key, const char *data, grt_choice_source source)
{
    algos->base.store(&algos->base, key, data, strlen(data), source, 1.5);
}

/* "" where nothing is stored */
static const char *get(grt_device_algos *algos, const char *key)
{
    static _Thread_local char text[256];
    size_t size;
    char *data = algos->base.find(&algos->base, key, &size);
    snprintf(text, sizeof text, "%.*s", (int)size, data ? data : "");
    free(data);
    return text;
}

static const char *warnings(grt_algo_cache *cache)
{
    static _Thread_local char text[5000];
    grt_text t = {0};
    grt_algo_cache_warnings(cache, &t);
    snprintf(text, sizeof text, "%s", grt_text_get(&t));
    grt_text_release(&t);
    return text;
}

START_TEST(stored_is_found_by_the_next_process)
{
    grt_device_algos a;
    grt_algo_cache *cache = open_cache(&a);
    ck_assert_str_eq(get(&a, "op=Conv;x=1;"), "");
    put(&a, "op=Conv;x=1;", "first", GRT_CHOICE_HEURISTIC);
    put(&a, "op=Conv;x=2;", "", GRT_CHOICE_HEURISTIC); /* no bytes are data, too */
    ck_assert_str_eq(get(&a, "op=Conv;x=1;"), "first");
    ck_assert_uint_eq(a.hits, 1);
    ck_assert_uint_eq(a.misses, 1);
    ck_assert_uint_eq(a.heuristics, 2);
    grt_algo_cache_release(cache); /* saves */
    cache = open_cache(&a);
    ck_assert_str_eq(get(&a, "op=Conv;x=1;"), "first");
    size_t size = 9;
    void *data = a.base.find(&a.base, "op=Conv;x=2;", &size);
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq(size, 0);
    free(data);
    ck_assert_str_eq(warnings(cache), "");
    grt_algo_cache_release(cache);
}
END_TEST

START_TEST(tuned_stays)
{
    grt_device_algos a, b;
    grt_algo_cache *one = open_cache(&a), *two = open_cache(&b);
    put(&a, "op=A;", "tuned", GRT_CHOICE_TUNED);
    put(&a, "op=A;", "guess", GRT_CHOICE_HEURISTIC);
    ck_assert_str_eq(get(&a, "op=A;"), "tuned");
    grt_algo_cache_save(one);
    put(&b, "op=A;", "guess", GRT_CHOICE_HEURISTIC); /* does not know of the other */
    grt_algo_cache_release(two);
    grt_algo_cache_release(one);
    one = open_cache(&a);
    ck_assert_str_eq(get(&a, "op=A;"), "tuned");
    put(&a, "op=A;", "better", GRT_CHOICE_TUNED);
    grt_algo_cache_release(one);
    one = open_cache(&a);
    ck_assert_str_eq(get(&a, "op=A;"), "better");
    grt_algo_cache_release(one);
}
END_TEST

START_TEST(rejected_is_replaced)
{
    grt_device_algos a;
    grt_algo_cache *cache = open_cache(&a);
    put(&a, "op=A;", "old", GRT_CHOICE_TUNED);
    put(&a, "op=B;", "old", GRT_CHOICE_TUNED);
    grt_algo_cache_release(cache);
    cache = open_cache(&a);
    a.base.reject(&a.base, "op=A;");
    a.base.reject(&a.base, "op=B;");
    ck_assert_str_eq(get(&a, "op=A;"), "");
    put(&a, "op=A;", "new", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_save(cache);
    grt_algo_cache_load(cache); /* what was refused does not come back */
    ck_assert_str_eq(get(&a, "op=B;"), "");
    grt_algo_cache_release(cache);
    cache = open_cache(&a);
    ck_assert_str_eq(get(&a, "op=A;"), "new");
    ck_assert_str_eq(get(&a, "op=B;"), "");
    grt_algo_cache_release(cache);
}
END_TEST

START_TEST(another_process_is_noticed)
{
    grt_device_algos a, b;
    grt_algo_cache *one = open_cache(&a), *two = open_cache(&b);
    put(&a, "op=A;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_save(one);
    grt_algo_cache_load(two);
    ck_assert_str_eq(get(&b, "op=A;"), "x");
    put(&b, "op=A2;", "y", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_save(two);
    grt_algo_cache_load(one);
    ck_assert_str_eq(get(&a, "op=A2;"), "y");
    grt_algo_cache_release(one);
    grt_algo_cache_release(two);
}
END_TEST

START_TEST(switched_off)
{
    grt_algo_cache *cache;
    grt_device_algos a;
    ck_assert_int_eq(grt_algo_cache_create("off", &cache), GRT_OK);
    ck_assert_ptr_null(grt_algo_cache_path(cache));
    grt_device_algos_init(&a, cache);
    grt_algo_cache_load(cache);
    put(&a, "op=A;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_save(cache);
    ck_assert_str_eq(get(&a, "op=A;"), "x"); /* in memory it works */
    grt_algo_cache_release(cache);
    setenv("GRAPHRT_ALGO_CACHE", "off", 1);
    ck_assert_int_eq(grt_algo_cache_create(NULL, &cache), GRT_OK);
    ck_assert_ptr_null(grt_algo_cache_path(cache));
    grt_algo_cache_release(cache);
    setenv("GRAPHRT_ALGO_CACHE", "/else/where", 1);
    ck_assert_int_eq(grt_algo_cache_create(NULL, &cache), GRT_OK);
    ck_assert_str_eq(grt_algo_cache_path(cache), "/else/where");
    grt_algo_cache_release(cache);
    unsetenv("GRAPHRT_ALGO_CACHE");
    setenv("XDG_CACHE_HOME", "not/absolute", 1); /* to be ignored, says the standard */
    setenv("HOME", "/home/me", 1);
    ck_assert_int_eq(grt_algo_cache_create(NULL, &cache), GRT_OK);
    ck_assert_str_eq(grt_algo_cache_path(cache), "/home/me/.cache/graphrt/algos.db");
    grt_algo_cache_release(cache);
    setenv("XDG_CACHE_HOME", "/var/x", 1);
    ck_assert_int_eq(grt_algo_cache_create(NULL, &cache), GRT_OK);
    ck_assert_str_eq(grt_algo_cache_path(cache), "/var/x/graphrt/algos.db");
    grt_algo_cache_release(cache);
}
END_TEST

static void remember(void *user, const grt_algo_lookup *lookup)
{
    if (!lookup->hit && lookup->nearest)
        snprintf(user, 64, "%s", lookup->nearest);
}

START_TEST(a_miss_knows_its_nearest)
{
    grt_device_algos a;
    char nearest[64] = "";
    grt_algo_cache *cache = open_cache(&a);
    put(&a, "op=Conv;gpu=H100;cudnn=9;x=8;", "x", GRT_CHOICE_HEURISTIC);
    put(&a, "op=Conv;gpu=H200;cudnn=8;x=16;", "x", GRT_CHOICE_HEURISTIC);
    put(&a, "op=MatMul;gpu=H100;cudnn=9;x=16;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_release(cache);
    cache = open_cache(&a);
    ck_assert_str_eq(get(&a, "op=Conv;gpu=H100;cudnn=9;x=16;"), "");
    grt_algo_cache_lookups(cache, remember, nearest);
    ck_assert_str_eq(nearest, "op=Conv;gpu=H100;cudnn=9;x=8;");
    grt_algo_cache_release(cache);
}
END_TEST

/* ---- many writers ---- */

enum { PROCESSES = 3, THREADS = 2, ROWS = 10 }; /* each row waits for the disk, and for the other writers */

static void *write_rows(void *arg)
{
    const int who = *(int *)arg;
    grt_device_algos a;
    grt_algo_cache *cache = open_cache(&a);
    for (int i = 0; i < ROWS; i++) {
        char key[64], data[64];
        snprintf(key, sizeof key, "op=A;who=%d;row=%d;", who, i);
        snprintf(data, sizeof data, "%d-%d", who, i);
        put(&a, key, data, GRT_CHOICE_HEURISTIC);
        put(&a, "op=A;everybody;", data, GRT_CHOICE_HEURISTIC);
        grt_algo_cache_save(cache);
    }
    const bool good = !*warnings(cache);
    if (!good)
        fprintf(stderr, "%s\n", warnings(cache));
    grt_algo_cache_release(cache);
    return good ? NULL : arg;
}

static int write_from_threads(int process)
{
    pthread_t threads[THREADS];
    int who[THREADS], bad = 0;
    for (int t = 0; t < THREADS; t++) {
        who[t] = process * THREADS + t;
        pthread_create(&threads[t], NULL, write_rows, &who[t]);
    }
    for (int t = 0; t < THREADS; t++) {
        void *result;
        pthread_join(threads[t], &result);
        bad += result != NULL;
    }
    return bad;
}

START_TEST(many_writers_at_once)
{
    pid_t pids[PROCESSES];
    for (int p = 0; p < PROCESSES; p++)
        if ((pids[p] = fork()) == 0)
            _exit(write_from_threads(p));
    for (int p = 0; p < PROCESSES; p++) {
        int status;
        ck_assert_int_eq(waitpid(pids[p], &status, 0), pids[p]);
        ck_assert_int_eq(status, 0);
    }
    grt_device_algos a;
    grt_algo_cache *cache = open_cache(&a);
    for (int who = 0; who < PROCESSES * THREADS; who++)
        for (int i = 0; i < ROWS; i++) {
            char key[64], data[64];
            snprintf(key, sizeof key, "op=A;who=%d;row=%d;", who, i);
            snprintf(data, sizeof data, "%d-%d", who, i);
            ck_assert_str_eq(get(&a, key), data);
        }
    ck_assert_str_ne(get(&a, "op=A;everybody;"), "");
    ck_assert_str_eq(warnings(cache), "");
    grt_algo_cache_release(cache);
}
END_TEST

/* ---- killed in the middle ---- */

enum { GROUP = 5 };

/* Rows are written in groups, each in one transaction; all rows of a group hold the same number. A byte goes
 * to `done` for each group. */
static void write_forever(unsigned seed, int done)
{
    for (unsigned round = 0;; round++) {
        grt_choice rows[GROUP];
        char keys[GROUP][32], data[512];
        memset(data, 'x', sizeof data);
        snprintf(data, sizeof data, "%u", seed * 100000 + round);
        for (int i = 0; i < GROUP; i++) {
            snprintf(keys[i], sizeof keys[i], "op=K;group=%u;row=%d;", round % 40, i);
            rows[i] = (grt_choice){
                .key = keys[i], .data = data, .size = sizeof data, .source = GRT_CHOICE_HEURISTIC};
        }
        if (grt_algo_db_write(path, rows, GROUP) != GRT_OK) {
            fprintf(stderr, "%s\n", grt_last_error());
            _exit(1);
        }
        if (write(done, "", 1) != 1)
            _exit(1);
    }
}

typedef struct groups {
    int n;
    char number[32], group[32];
    bool torn;
} groups;

static void check_group(void *user, const grt_choice *row)
{
    groups *g = user;
    char group[32];
    ck_assert_int_eq(sscanf(row->key, "op=K;group=%31[0-9];", group), 1);
    if (g->n % GROUP) /* rows come in order of key */
        g->torn = g->torn || strcmp(g->number, row->data) || strcmp(g->group, group);
    snprintf(g->number, sizeof g->number, "%s", (const char *)row->data);
    strcpy(g->group, group);
    g->n++;
}

/* Each round ends when some groups more have been written: at any moment of the writing of the next ones. */
START_TEST(killed_in_the_middle)
{
    const char *wanted = getenv("GRT_TEST_KILLS");
    const int kills = wanted ? atoi(wanted) : 40;
    int total = 0;
    for (int k = 0; k < kills; k++) {
        pid_t pids[2];
        int done[2];
        char byte;
        ck_assert_int_eq(pipe(done), 0);
        for (int p = 0; p < 2; p++)
            if ((pids[p] = fork()) == 0)
                write_forever((unsigned)(k * 2 + p), done[1]);
        close(done[1]);
        for (int written = 0; written <= k % 3; written++)
            ck_assert_int_eq(read(done[0], &byte, 1), 1);
        for (int p = 0; p < 2; p++) {
            int status;
            kill(pids[p], SIGKILL);
            ck_assert_int_eq(waitpid(pids[p], &status, 0), pids[p]);
            ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        }
        close(done[0]);
        groups g = {0};
        size_t damaged = 0;
        ck_assert_msg(grt_algo_db_read(path, check_group, &g, &damaged) == GRT_OK, "kill %d: %s", k,
                      grt_last_error());
        ck_assert_uint_eq(damaged, 0);
        ck_assert_int_eq(g.n % GROUP, 0);
        ck_assert(!g.torn);
        total += g.n;
    }
    ck_assert_int_gt(total, 0);
}
END_TEST

/* ---- files that cannot be used ---- */

static void write_file(const char *bytes, size_t size)
{
    snprintf(path, sizeof path, "%s/algos.db", directory);
    files_write(path, bytes, size);
}

/* The cache works in memory and says what is wrong with the file. */
static void expect_warning(const char *expected)
{
    grt_device_algos a;
    ck_assert_int_eq(grt_fail(GRT_STATUS_IO, "mine"), GRT_STATUS_IO);
    grt_algo_cache *cache = open_cache(&a);
    ck_assert_str_eq(get(&a, "op=A;"), "");
    put(&a, "op=A;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_save(cache);
    ck_assert_str_eq(get(&a, "op=A;"), "x");
    ck_assert_msg(strstr(warnings(cache), expected) != NULL, "expected '%s' in '%s'", expected,
                  warnings(cache));
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
    file now = files_read(path);
    ck_assert_uint_eq(now.size, sizeof bytes);
    ck_assert_mem_eq(now.data, bytes, sizeof bytes); /* not ours to change */
    free(now.data);
}
END_TEST

START_TEST(empty_file)
{
    write_file("", 0);
    grt_device_algos a;
    grt_algo_cache *cache = open_cache(&a);
    put(&a, "op=A;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_save(cache);
    ck_assert_str_eq(warnings(cache), "");
    grt_algo_cache_release(cache);
}
END_TEST

static void execute(const char *sql)
{
    sqlite3 *db;
    char *message = NULL;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s", message);
    sqlite3_close(db);
}

START_TEST(foreign_database)
{
    snprintf(path, sizeof path, "%s/algos.db", directory);
    execute("CREATE TABLE mine(a); INSERT INTO mine VALUES(1)");
    expect_warning("another program");
}
END_TEST

START_TEST(not_a_file)
{
    snprintf(path, sizeof path, "%s", directory);
    expect_warning("not a regular file");
    snprintf(path, sizeof path, "%s/pipe", directory);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expect_warning("not a regular file");
    write_file("x", 1);
    strcat(path, "/below/algos.db");
    expect_warning("cannot be made");
}
END_TEST

START_TEST(damaged_rows_are_skipped_and_replaced)
{
    grt_device_algos a;
    grt_algo_cache *cache = open_cache(&a);
    put(&a, "op=A;", "good", GRT_CHOICE_TUNED);
    put(&a, "op=B;", "good", GRT_CHOICE_TUNED);
    put(&a, "op=C;", "good", GRT_CHOICE_TUNED);
    grt_algo_cache_release(cache);
    execute(
        "UPDATE algos_1 SET data=x'00' WHERE key='op=A;'; UPDATE algos_1 SET source='many' WHERE key='op=B;';"
        "INSERT INTO algos_1 SELECT 'op=D;', data, source, cost_ms, made, checksum FROM algos_1 WHERE "
        "key='op=C;'");
    cache = open_cache(&a);
    ck_assert_str_eq(get(&a, "op=A;"), "");
    ck_assert_str_eq(get(&a, "op=B;"), "");
    ck_assert_str_eq(get(&a, "op=C;"), "good");
    ck_assert_str_eq(get(&a, "op=D;"), "");
    ck_assert_ptr_nonnull(strstr(warnings(cache), "3 damaged rows"));
    put(&a, "op=A;", "new", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_release(cache);
    cache = open_cache(&a);
    ck_assert_str_eq(get(&a, "op=A;"), "new");
    grt_algo_cache_release(cache);
}
END_TEST

START_TEST(a_newer_version_beside)
{
    grt_device_algos a;
    grt_algo_cache *cache = open_cache(&a);
    put(&a, "op=A;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_release(cache);
    execute("CREATE TABLE algos_2(key, more); INSERT INTO algos_2 VALUES('op=A;', 1)");
    cache = open_cache(&a);
    ck_assert_str_eq(get(&a, "op=A;"), "x");
    put(&a, "op=B;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_save(cache);
    ck_assert_str_eq(warnings(cache), "");
    grt_algo_cache_release(cache);
    size_t removed;
    ck_assert_int_eq(grt_algo_db_prune(path, 0, "op=A", &removed), GRT_OK);
    ck_assert_uint_eq(removed, 1);
}
END_TEST

/* Every page of the file damaged in turn: warnings at most, and never a row that was not stored. */
START_TEST(damaged_pages)
{
    grt_device_algos a;
    grt_algo_cache *cache = open_cache(&a);
    for (int i = 0; i < 200; i++) {
        char key[64], data[128];
        snprintf(key, sizeof key, "op=A;i=%d;", i);
        memset(data, 'a' + i % 26, sizeof data);
        data[sizeof data - 1] = '\0';
        put(&a, key, data, GRT_CHOICE_HEURISTIC);
    }
    grt_algo_cache_release(cache);
    FILE *f = fopen(path, "r+b");
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
        cache = open_cache(&a);
        for (int i = 0; i < 200; i++) {
            char key[64], data[128];
            snprintf(key, sizeof key, "op=A;i=%d;", i);
            memset(data, 'a' + i % 26, sizeof data);
            data[sizeof data - 1] = '\0';
            const char *found = get(&a, key);
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
    grt_algo_cache *cache = open_cache(&a);
    put(&a, "op=A2;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_release(cache);
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    for (off_t size = st.st_size - 1; size > 0; size /= 3) {
        ck_assert_int_eq(truncate(path, size), 0);
        cache = open_cache(&a); /* a byte that nobody needed may go unnoticed */
        const char *found = get(&a, "op=A2;");
        ck_assert(!*found || !strcmp(found, "x"));
        put(&a, "op=A3;", "y", GRT_CHOICE_HEURISTIC);
        ck_assert_str_eq(get(&a, "op=A3;"), "y");
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
    snprintf(path, sizeof path, "%s/home/graphrt/algos.db", directory);
    grt_device_algos a;
    grt_algo_cache *cache = open_cache(&a);
    put(&a, "op=Known;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_release(cache);
    char command[400];
    snprintf(command, sizeof command, "chmod -R a=rX '%s/home'", directory);
    ck_assert_int_eq(system(command), 0);
    const uid_t me = geteuid();
    become_nobody();
    cache = open_cache(&a);
    ck_assert_msg(!strcmp(get(&a, "op=Known;"), "x"), "what is there can be read: %s", warnings(cache));
    grt_algo_cache_release(cache);
    expect_warning("readonly");
    snprintf(path, sizeof path, "%s/home/other/algos.db", directory);
    expect_warning("cannot be made");
    ck_assert_int_eq(seteuid(me), 0);
    snprintf(command, sizeof command, "chmod -R u+w '%s/home'", directory);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

static void fill_up(void)
{
    grt_device_algos a;
    grt_algo_cache *cache = open_cache(&a);
    put(&a, "op=Known;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_save(cache);
    ck_assert_str_eq(warnings(cache), "");
    static char large[200 << 10];
    for (int i = 0; i < 3; i++) {
        char key[32];
        snprintf(key, sizeof key, "op=Large;i=%d;", i);
        a.base.store(&a.base, key, large, sizeof large, GRT_CHOICE_HEURISTIC, 0);
        grt_algo_cache_save(cache);
    }
    ck_assert_str_ne(warnings(cache), "");
    ck_assert_str_eq(get(&a, "op=Known;"), "x");
    grt_algo_cache_release(cache);
    cache = open_cache(&a);
    ck_assert_str_eq(get(&a, "op=Known;"), "x");
    grt_algo_cache_release(cache);
}

START_TEST(full_disk)
{
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){100 << 10, RLIM_INFINITY}), 0);
    fill_up();
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}), 0);
    if (mount("tmpfs", directory, "tmpfs", 0, "size=160k") ==
        0) { /* a really full one, where we may make it */
        fill_up();
        ck_assert_int_eq(umount2(directory, MNT_DETACH), 0);
    }
}
END_TEST

/* What its rows choose is run: nobody else may write it, whatever the mask is. */
START_TEST(the_file_is_its_users)
{
    static const char *const below[] = {"deep", "deep/er"};
    grt_device_algos algos;
    umask(0);
    grt_algo_cache *cache = open_cache(&algos);
    put(&algos, "op=A;n=1;", "one", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_release(cache);
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    for (int i = 0; i < 2; i++) {
        char made[160];
        snprintf(made, sizeof made, "%s/%s", directory, below[i]);
        ck_assert_int_eq(stat(made, &st), 0);
        ck_assert_int_eq(st.st_mode & 0777, 0700);
    }
}
END_TEST

Suite *suite_test_algo_cache(void)
{
    Suite *suite = suite_create("algo cache");
    TCase *tests = tcase_create("algo cache");
    tcase_add_checked_fixture(tests, setup, teardown);
    if (getenv("GRT_TEST_KILLS"))
        tcase_set_timeout(tests, 900);
    tcase_add_test(tests, the_file_is_its_users);
    tcase_add_test(tests, stored_is_found_by_the_next_process);
    tcase_add_test(tests, tuned_stays);
    tcase_add_test(tests, rejected_is_replaced);
    tcase_add_test(tests, another_process_is_noticed);
    tcase_add_test(tests, switched_off);
    tcase_add_test(tests, a_miss_knows_its_nearest);
    tcase_add_test(tests, many_writers_at_once);
    tcase_add_test(tests, killed_in_the_middle);
    tcase_add_test(tests, garbage);
    tcase_add_test(tests, empty_file);
    tcase_add_test(tests, foreign_database);
    tcase_add_test(tests, not_a_file);
    tcase_add_test(tests, damaged_rows_are_skipped_and_replaced);
    tcase_add_test(tests, a_newer_version_beside);
    tcase_add_test(tests, damaged_pages);
    tcase_add_test(tests, truncated);
    tcase_add_test(tests, read_only_home);
    tcase_add_test(tests, full_disk);
    suite_add_tcase(suite, tests);
    return suite;
}
