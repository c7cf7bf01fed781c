/* SPDX-License-Identifier: Apache-2.0 */
/* Generated kernels of a device (backends/code.h), with the mirror's compiler: made in the background while
 * runs interpret, kept in the cache's file, found there by the next start. */
#include "src/algos/code_db.h"
#include "src/session/session.h"
#include "tests/mirror/code.h"
#include "tests/unit/algo_cache.h"
#include "tests/unit/onnx_model.h"
#include "tests/unit/runtime.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A runtime of the file, a session with groups that a kernel each is generated for, and a context. */
typedef struct started {
    grt_runtime *runtime;
    grt_model *model;
    grt_session *session;
    grt_context *context;
} started;

/* y = a chain of groups that no pass joins, as a product is between them; one kernel for each. */
static grt_model *open_groups(grt_runtime *r, int n)
{
    onnx_model m = onnx_create();
    char from[16] = "x", a[16], b[16], c[16], d[16], in[40];
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "4,4");
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "w", "4,4"));
    for (int i = 0; i < n; i++) {
        snprintf(a, sizeof a, "a%d", i);
        snprintf(b, sizeof b, "b%d", i);
        snprintf(c, sizeof c, "c%d", i);
        snprintf(d, sizeof d, "d%d", i);
        onnx_node(&m, m.graph, "Exp", from, a);
        snprintf(in, sizeof in, "%s,%s", a, from);
        onnx_node(&m, m.graph, "Add", in, b);
        onnx_node(&m, m.graph, "Sin", b, c)->name = grt_arena_strdup(m.arena, c);
        snprintf(in, sizeof in, "%s,w", c);
        onnx_node(&m, m.graph, "MatMul", in, d);
        snprintf(from, sizeof from, "%s", d);
    }
    onnx_output(&m, m.graph, from);
    const grt_string bytes = onnx_bytes(&m);
    const grt_compile_options options = {.struct_size = sizeof options, .target = "mirror"};
    grt_model *model;
    OK(grt_model_open_memory_with(r, bytes.data, bytes.size, &options, &model));
    onnx_release(&m);
    return model;
}

static started start(int groups, const char *compile)
{
    started s = {0};
    OK(grt_runtime_create(&s.runtime));
    s.model = open_groups(s.runtime, groups);
    const grt_session_options options = {.struct_size = sizeof options, .threads = 1, .compile = compile};
    OK(grt_session_create(s.model, "mirror", &options, &s.session));
    OK(grt_context_create(s.session, &s.context));
    return s;
}

static void stop(started *s)
{
    grt_context_release(s->context);
    grt_session_release(s->session);
    grt_model_release(s->model);
    grt_runtime_release(s->runtime);
}

static void settle(const started *s)
{
    grt_background_settle(s->runtime->background);
}

static grt_load_info load_of(const started *s)
{
    grt_load_info info = {.struct_size = sizeof info};
    OK(grt_session_get_load(s->session, &info));
    return info;
}

/* How many of the groups were generated and interpreted kernels in one run. */
static void run_groups(const started *s, int generated, int interpreted)
{
    float data[16], y[16];
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {4, 4}, .data = data};
    const grt_tensor out = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {4, 4}, .data = y};
    for (int i = 0; i < 16; i++)
        data[i] = 0.01f * (float)(i - 8);
    OK(grt_context_set_input(s->context, 0, &in));
    OK(grt_context_set_output(s->context, 0, &out));
    atomic_store(&mirror_code.generated, 0);
    atomic_store(&mirror_code.interpreted, 0);
    OK(grt_context_run(s->context));
    ck_assert_msg(mirror_code.generated == generated && mirror_code.interpreted == interpreted,
                  "%d generated, %d interpreted; expected %d, %d", mirror_code.generated,
                  mirror_code.interpreted, generated, interpreted);
}

static void setup(void)
{
    algo_setup();
    setenv("GRAPHRT_ALGO_CACHE", algo_path, 1);
    setenv("GRAPHRT_MIRROR_CODE", "0", 1);
    unsetenv("GRAPHRT_COMPILE");
}

static void teardown(void)
{
    algo_teardown();
}

/* ---- one start ---- */

START_TEST(interpreted_until_it_is_compiled)
{
    setenv("GRAPHRT_MIRROR_CODE", "200", 1);
    started s = start(2, NULL);
    ck_assert_uint_eq(load_of(&s).code_waiting, 2);
    run_groups(&s, 0, 2); /* step by step, or a graph of the warm-up's */
    run_groups(&s, 0, 2);
    run_groups(&s, 0, 2); /* by a graph in any case */
    settle(&s);
    ck_assert_uint_eq(load_of(&s).code_compiled, 2);
    ck_assert_uint_eq(load_of(&s).code_waiting, 0);
    run_groups(&s, 2, 0); /* captured again */
    run_groups(&s, 2, 0);
    stop(&s);
    ck_assert_int_eq(mirror_code.compiled, 2);
    ck_assert_int_eq(mirror_code.unloaded, mirror_code.loaded);
}
END_TEST

/* Between the runs of a context that others share the kernels with. */
START_TEST(each_context_changes_by_itself)
{
    grt_context *first;
    setenv("GRAPHRT_MIRROR_CODE", "100", 1);
    started s = start(1, "background");
    run_groups(&s, 0, 1);
    first = s.context;
    OK(grt_context_create(s.session, &s.context));
    run_groups(&s, 0, 1);
    settle(&s);
    run_groups(&s, 1, 0);
    grt_context_release(s.context);
    s.context = first;
    run_groups(&s, 1, 0);
    ck_assert_int_eq(mirror_code.compiled, 1);
    stop(&s);
}
END_TEST

START_TEST(compiled_first)
{
    started s = start(2, "first");
    ck_assert_uint_eq(load_of(&s).code_compiled, 2);
    run_groups(&s, 2, 0);
    stop(&s);
}
END_TEST

/* While it waits in the background for another session: the one that wants it first makes it. */
START_TEST(first_does_not_wait_for_the_background)
{
    setenv("GRAPHRT_MIRROR_CODE", "50", 1);
    started s = start(3, NULL);
    const grt_session_options options = {.struct_size = sizeof options, .threads = 1, .compile = "first"};
    grt_session *second;
    OK(grt_session_create(s.model, "mirror", &options, &second));
    ck_assert_uint_eq(load_of(&s).code_waiting, 0);
    ck_assert_uint_eq(load_of(&s).code_compiled, 3);
    ck_assert_int_eq(mirror_code.compiled, 3); /* none of them twice */
    grt_session_release(second);
    stop(&s);
}
END_TEST

START_TEST(never_compiled)
{
    started s = start(2, "never");
    settle(&s);
    ck_assert_uint_eq(load_of(&s).code_interpreted, 2);
    run_groups(&s, 0, 2);
    const grt_session_options options = {.struct_size = sizeof options, .threads = 1, .compile = "first"};
    grt_session *second;
    OK(grt_session_create(s.model, "mirror", &options, &second)); /* which another session may want */
    ck_assert_uint_eq(load_of(&s).code_compiled, 2);
    ck_assert_uint_eq(load_of(&s).code_interpreted, 0);
    grt_session_release(second);
    stop(&s);
}
END_TEST

START_TEST(option_and_environment)
{
    grt_session *none;
    started s = start(1, "never");
    const grt_session_options options = {.struct_size = sizeof options, .compile = "later"};
    REFUSED(grt_session_create(s.model, "mirror", &options, &none), "compile is 'later'");
    stop(&s);
    setenv("GRAPHRT_COMPILE", "first", 1);
    s = start(1, NULL);
    ck_assert_uint_eq(load_of(&s).code_compiled, 1);
    stop(&s);
    setenv("GRAPHRT_COMPILE", "sometime", 1);
    grt_runtime *r;
    REFUSED(grt_runtime_create(&r), "GRAPHRT_COMPILE is 'sometime'");
}
END_TEST

START_TEST(no_compiler)
{
    setenv("GRAPHRT_MIRROR_CODE", "none", 1);
    started s = start(2, NULL);
    settle(&s);
    ck_assert_uint_eq(load_of(&s).code_interpreted, 2);
    run_groups(&s, 0, 2);
    stop(&s);
    s = start(1, "first");
    run_groups(&s, 0, 1);
    stop(&s);
}
END_TEST

/* What nobody waits for any more is not made, and the end waits for one compilation at most. */
START_TEST(released_while_compiling)
{
    setenv("GRAPHRT_MIRROR_CODE", "60", 1);
    started s = start(12, NULL);
    run_groups(&s, 0, 12);
    stop(&s);
    ck_assert_int_le(mirror_code.compiled, 2);
    ck_assert_int_eq(mirror_code.unloaded, mirror_code.loaded);
}
END_TEST

/* For programs that end without a release. */
START_TEST(stopped)
{
    setenv("GRAPHRT_MIRROR_CODE", "40", 1);
    started s = start(6, NULL);
    grt_runtime_stop_compiling(s.runtime);
    const int compiled = mirror_code.compiled;
    ck_assert_int_le(compiled, 2);
    run_groups(&s, compiled, 6 - compiled);
    grt_context_release(s.context);
    OK(grt_context_create(s.session, &s.context));
    run_groups(&s, compiled, 6 - compiled);
    grt_runtime_stop_compiling(s.runtime);
    stop(&s);
    grt_runtime_stop_compiling(NULL);
    ck_assert_int_eq(mirror_code.compiled, compiled);
}
END_TEST

/* A context that comes later wants what the one before it has left. */
START_TEST(wanted_again)
{
    setenv("GRAPHRT_MIRROR_CODE", "30", 1);
    started s = start(4, NULL);
    run_groups(&s, 0, 4);
    grt_context_release(s.context);
    OK(grt_context_create(s.session, &s.context));
    run_groups(&s, mirror_code.compiled, 4 - mirror_code.compiled);
    settle(&s);
    run_groups(&s, 4, 0);
    stop(&s);
}
END_TEST

/* ---- the next start ---- */

START_TEST(the_next_start_finds_it)
{
    started s = start(2, NULL);
    settle(&s);
    stop(&s);
    s = start(2, NULL);
    ck_assert_uint_eq(load_of(&s).code_store, 2);
    ck_assert_uint_eq(load_of(&s).code_compiled, 0);
    ck_assert_str_eq(load_of(&s).warnings, "");
    run_groups(&s, 2, 0);
    stop(&s);
    ck_assert_int_eq(mirror_code.compiled, 2);
    setenv("GRAPHRT_MIRROR_CODE", "none", 1); /* nor is a compiler needed */
    s = start(2, "first");
    run_groups(&s, 2, 0);
    stop(&s);
    s = start(2, "never"); /* which is about compiling */
    run_groups(&s, 2, 0);
    stop(&s);
}
END_TEST

static void execute(const char *sql)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(algo_path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void start_after(const char *sql, const char *warning)
{
    started s = start(2, "first");
    stop(&s);
    execute(sql);
    s = start(2, NULL);
    ck_assert_uint_eq(load_of(&s).code_waiting + load_of(&s).code_compiled, 2);
    settle(&s);
    ck_assert_msg(*warning ? strstr(load_of(&s).warnings, warning) != NULL : !*load_of(&s).warnings, "'%s'",
                  load_of(&s).warnings);
    ck_assert_uint_eq(load_of(&s).code_compiled, 2);
    run_groups(&s, 2, 0);
    stop(&s);
    s = start(2, NULL); /* it is whole again */
    ck_assert_uint_eq(load_of(&s).code_store, 2);
    stop(&s);
}

START_TEST(damaged_rows)
{
    start_after("UPDATE code_1 SET data=x'0011'", "a damaged row of a generated kernel was ignored");
}
END_TEST

START_TEST(rows_of_other_types)
{
    start_after("UPDATE code_1 SET data='text', made='never'", "a damaged row of a generated kernel");
}
END_TEST

/* It is sound, but the device does not take it: made anew, and replaced. */
START_TEST(refused_by_the_device)
{
    started s = start(1, "first");
    stop(&s);
    grt_choice row = {0};
    bool damaged;
    OK(grt_code_db_find(algo_path, "code=", &row, &damaged));
    const grt_choice other = {.key = row.key, .data = "junk", .size = 4, .cost_ms = 1, .made = row.made};
    OK(grt_code_db_write(algo_path, &other, 1, GRT_CODE_MAX_TOTAL));
    free((void *)row.key);
    free((void *)row.data);
    s = start(1, "first");
    ck_assert_uint_eq(load_of(&s).code_compiled, 1);
    run_groups(&s, 1, 0);
    stop(&s);
    s = start(1, "never");
    ck_assert_uint_eq(load_of(&s).code_store, 1);
    stop(&s);
}
END_TEST

START_TEST(no_database)
{
    started s = start(1, "first");
    stop(&s);
    FILE *f = fopen(algo_path, "w");
    fputs("this is no database, however long it may be, and it stays what it is", f);
    fclose(f);
    s = start(1, "first");
    ck_assert_ptr_nonnull(strstr(load_of(&s).warnings, "algorithm cache"));
    run_groups(&s, 1, 0);
    stop(&s);
}
END_TEST

/* What other users may write is not run. */
START_TEST(file_of_others)
{
    started s = start(1, "first");
    stop(&s);
    ck_assert_int_eq(chmod(algo_path, 0666), 0);
    s = start(1, "first");
    ck_assert_uint_eq(load_of(&s).code_compiled, 1);
    ck_assert_msg(strstr(load_of(&s).warnings, "other users may write it"), "%s", load_of(&s).warnings);
    run_groups(&s, 1, 0);
    stop(&s);
    ck_assert_int_eq(chmod(algo_path, 0600), 0);
    s = start(1, "never");
    ck_assert_uint_eq(load_of(&s).code_store, 1);
    stop(&s);
}
END_TEST

START_TEST(no_place_for_a_file)
{
    setenv("GRAPHRT_ALGO_CACHE", "/proc/none/algos.db", 1);
    started s = start(1, NULL);
    settle(&s);
    run_groups(&s, 1, 0);
    ck_assert_ptr_nonnull(strstr(load_of(&s).warnings, "/proc/none"));
    stop(&s);
    setenv("GRAPHRT_ALGO_CACHE", "off", 1);
    s = start(1, NULL);
    settle(&s);
    run_groups(&s, 1, 0);
    ck_assert_str_eq(load_of(&s).warnings, "");
    stop(&s);
}
END_TEST

/* A directory that can only be read: the rows are found, new ones are not kept. */
START_TEST(read_only_directory)
{
    started s = start(1, "first");
    stop(&s);
    char directory[200], above[200];
    snprintf(directory, sizeof directory, "%.*s", (int)(strrchr(algo_path, '/') - algo_path), algo_path);
    snprintf(above, sizeof above, "%.*s", (int)(strrchr(directory, '/') - directory), directory);
    ck_assert_int_eq(chmod(above, 0755), 0); /* for root, who is somebody else below */
    const pid_t child = fork();
    if (!child) {
        if (chmod(algo_path, 0444) || chmod(directory, 0555) || (!geteuid() && seteuid(65534)))
            _exit(2);
        setenv("GRAPHRT_COMPILE", "first", 1);
        s = start(2, NULL);
        const grt_load_info info = load_of(&s);
        _exit(info.code_store == 1 && info.code_compiled == 1 && strstr(info.warnings, "algos.db") ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ck_assert_int_eq(chmod(directory, 0755), 0);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(two_processes_at_once)
{
    enum { PROCESSES = 2, TIMES = 8 };
    pid_t children[PROCESSES];
    for (int p = 0; p < PROCESSES; p++)
        if (!(children[p] = fork())) {
            for (int i = 0; i < TIMES; i++) {
                started s = start(1 + (i + p) % 4, i % 2 ? NULL : "first");
                if (*load_of(&s).warnings)
                    _exit(1);
                stop(&s);
            }
            _exit(0);
        }
    for (int p = 0; p < PROCESSES; p++) {
        int status = -1;
        waitpid(children[p], &status, 0);
        ck_assert_int_eq(status, 0);
    }
    started s = start(4, "never");
    ck_assert_uint_eq(load_of(&s).code_store, 4);
    stop(&s);
}
END_TEST

/* ---- the file ---- */

static void count_row(void *user, const grt_cache_row *row)
{
    int *n = user;
    ck_assert_int_eq(strncmp(row->key, "code=group;sm=0;options=none;source=", 36), 0);
    ck_assert_ptr_nonnull(strstr(row->key, ";mirror=1;"));
    ck_assert_int_eq(strncmp(row->data, "mirror code: ", 13), 0);
    ++*n;
}

static int count_rows(const char *path)
{
    int n = 0;
    size_t damaged;
    OK(grt_cache_each(path, count_row, &n, &damaged));
    ck_assert_uint_eq(damaged, 0);
    return n;
}

START_TEST(listed_copied_and_pruned)
{
    char other[200];
    size_t n;
    snprintf(other, sizeof other, "%s.other", algo_path);
    started s = start(3, "first");
    stop(&s);
    ck_assert_int_eq(count_rows(algo_path), 3);
    OK(grt_cache_copy(algo_path, other, &n));
    ck_assert_uint_eq(n, 3);
    ck_assert_int_eq(count_rows(other), 3);
    OK(grt_cache_prune(algo_path, 0, "no such part", &n));
    ck_assert_uint_eq(n, 0);
    OK(grt_cache_prune(algo_path, 1, NULL, &n)); /* all were used today */
    ck_assert_uint_eq(n, 0);
    OK(grt_cache_prune(algo_path, 0, "code=", &n));
    ck_assert_uint_eq(n, 3);
    ck_assert_int_eq(count_rows(algo_path), 0);
    setenv("GRAPHRT_ALGO_CACHE", other, 1);
    s = start(3, "never");
    ck_assert_uint_eq(load_of(&s).code_store, 3);
    stop(&s);
}
END_TEST

static void put(const char *key, size_t size, int64_t made, int64_t most)
{
    char *data = calloc(size, 1);
    const grt_choice row = {.key = key, .data = data, .size = size, .made = made};
    OK(grt_code_db_write(algo_path, &row, 1, most));
    free(data);
}

static bool is_there(const char *key)
{
    grt_choice row;
    bool damaged;
    OK(grt_code_db_find(algo_path, key, &row, &damaged));
    free((void *)row.key);
    free((void *)row.data);
    return row.data != NULL;
}

START_TEST(stays_below_its_size)
{
    put("code=a;", 1000, 1, 2500);
    put("code=b;", 1000, 2, 2500);
    ck_assert(is_there("code=a;"));
    execute("UPDATE code_1 SET used=1 WHERE key='code=b;'");
    put("code=c;", 1000, 3, 2500);
    ck_assert(is_there("code=a;") && is_there("code=c;"));
    ck_assert(!is_there("code=b;")); /* used longest ago */
    execute("UPDATE code_1 SET used=1");
    ck_assert(is_there("code=a;")); /* which is a use */
    put("code=d;", 1000, 4, 2500);
    ck_assert(is_there("code=a;") && !is_there("code=c;"));
}
END_TEST

START_TEST(what_was_made_last_counts)
{
    grt_choice row;
    bool damaged;
    put("code=a;nvrtc=9.0;", 10, 5, 1 << 20);
    put("code=a;nvrtc=13.0;", 20, 6, 1 << 20);
    put("code=ab;nvrtc=14.0;", 30, 7, 1 << 20);
    OK(grt_code_db_find(algo_path, "code=a;", &row, &damaged));
    ck_assert_str_eq(row.key, "code=a;nvrtc=13.0;");
    ck_assert_uint_eq(row.size, 20);
    free((void *)row.key);
    free((void *)row.data);
    OK(grt_code_db_drop(algo_path, "code=a;nvrtc=13.0;"));
    ck_assert(is_there("code=a;"));
}
END_TEST

static void count_codes(void *user, const grt_cache_lookup *lookup)
{
    if (lookup->code && !strcmp(lookup->code, "store") && lookup->hit)
        ++*(int *)user;
}

START_TEST(looked_up)
{
    int n = 0;
    started s = start(2, "first");
    stop(&s);
    s = start(2, NULL);
    OK(grt_cache_lookups(s.runtime, count_codes, &n));
    ck_assert_int_eq(n, 2);
    stop(&s);
}
END_TEST

UNIT_SUITE(test_code, setup, teardown, interpreted_until_it_is_compiled, each_context_changes_by_itself,
           compiled_first, first_does_not_wait_for_the_background, never_compiled, option_and_environment,
           no_compiler, released_while_compiling, stopped, wanted_again, the_next_start_finds_it,
           damaged_rows, rows_of_other_types, refused_by_the_device, no_database, file_of_others,
           no_place_for_a_file, read_only_directory, two_processes_at_once, listed_copied_and_pruned,
           stays_below_its_size, what_was_made_last_counts, looked_up)
