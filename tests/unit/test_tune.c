/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning on a device whose library has seven algorithms for a product, with a clock of its own: the fastest
 * valid one wins, time limits and cancellation work, and results are saved. */
#include "tests/unit/files.h"
#include "tests/unit/onnx_model.h"
#include "tests/unit/tables.h"

#include "src/algos/cache.h"
#include "src/algos/db.h"
#include "src/exec/context.h"
#include "tests/mirror/mirror.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- a device with a library: the mirror's, but for products ---- */

enum { HEURISTIC, SLOWER, WRONG, GOOD, REFUSED, FAILING, SLOW_TO_LOAD, SILENT, WAYS };

static double way_ms[WAYS];  /* of one run */
static double now;           /* of the device's clock */
static size_t listed, asked; /* questions to the library: for all answers, for the first */
static int last_way;         /* that ran */

static void usual_times(void)
{
    const double ms[WAYS] = {[HEURISTIC] = 0.4, [SLOWER] = 0.9,   [WRONG] = 0.1,         [GOOD] = 0.15,
                             [REFUSED] = 0.01,  [FAILING] = 0.01, [SLOW_TO_LOAD] = 0.01, [SILENT] = 0.02};
    memcpy(way_ms, ms, sizeof ms);
}

static const grt_kernel_row *product; /* the CPU's */

typedef struct lab_shape {
    void *inner;
    int way;
} lab_shape;

static int read_way(const char *data, size_t size)
{
    int way;
    return data && size == 3 && sscanf(data, "1 %d", &way) == 1 && way >= 0 && way < WAYS ? way : -1;
}

static int choose(grt_reshape *r, const char *key)
{
    size_t size;
    char data[8], *known = grt_device_algo_find(r->device, r->trial, key, &size);
    int way = read_way(known, size);
    if (known && (way < 0 || way == REFUSED)) {
        grt_device_algo_reject(r->device, r->trial, key);
        way = -1;
    }
    free(known);
    if (way >= 0) {
        if (way == SLOW_TO_LOAD)
            nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
        return way;
    }
    *(grt_algo_trial_lists(r->trial) ? &listed : &asked) += 1;
    bool more = grt_algo_trial_lists(r->trial);
    for (int i = 0; more && i < WAYS; i++) {
        snprintf(data, sizeof data, "1 %d", i);
        more = grt_algo_trial_offer(r->trial, key, data, 3);
    }
    grt_device_algo_store(r->device, r->trial, key, "1 0", 3);
    return HEURISTIC;
}

static grt_status lab_reshape(grt_reshape *r)
{
    grt_text key = {0};
    char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
    lab_shape *s = calloc(1, sizeof *s);
    ck_assert_ptr_nonnull(s);
    if (product->reshape)
        ck_assert_int_eq(product->reshape(r), GRT_OK);
    s->inner = r->shape;
    grt_device_algo_key(r->device, "MatMul", &key);
    grt_text_add(&key, "a=%s;b=%s;", grt_tensor_text(r->in[0], a), grt_tensor_text(r->in[1], b));
    s->way = choose(r, grt_text_get(&key));
    grt_text_release(&key);
    r->shape = s;
    return GRT_OK;
}

static void lab_release_shape(void *shape)
{
    lab_shape *s = shape;
    if (product->release_shape)
        product->release_shape(s->inner);
    free(s);
}

static grt_status lab_run(const grt_run *run)
{
    const lab_shape *s = run->shape;
    grt_run inner = *run;
    inner.shape = s->inner;
    last_way = s->way;
    now += way_ms[s->way];
    if (s->way == FAILING)
        return grt_fail_op(run->desc, GRT_STATUS_DEVICE, "the library lost heart");
    if (s->way == SILENT)
        return GRT_OK;
    GRT_TRY(product->run(&inner));
    if (s->way == WRONG)
        ((float *)run->out[0]->data)[0] += 1.0f;
    return GRT_OK;
}

static void identify(grt_device *device, grt_text *key)
{
    (void)device;
    grt_text_add(key, "gpu=lab;sm=0;driver=1;");
}

static grt_status event_create(grt_device *device, void **out_event)
{
    (void)device;
    *out_event = calloc(1, sizeof(double));
    return *out_event ? GRT_OK : grt_fail_memory(sizeof(double));
}

static void event_release(grt_device *device, void *event)
{
    (void)device;
    free(event);
}

static grt_status event_record(grt_device *device, void *event, void *stream)
{
    (void)device;
    (void)stream;
    *(double *)event = now;
    return GRT_OK;
}

static grt_status event_elapsed(grt_device *device, void *begin, void *end, double *out_ms)
{
    (void)device;
    *out_ms = *(double *)end - *(double *)begin;
    return GRT_OK;
}

static grt_status lab_open(int32_t index, grt_device **out_device);

static const grt_kernel_row *lab_find(const grt_kernel_node *node, grt_text *why)
{
    static grt_kernel_row row;
    const grt_kernel_row *found = grt_backend_mirror.find_kernel(node, why);
    if (!found || strcmp(node->desc->op, "MatMul") != 0)
        return found;
    product = found;
    row = *found;
    row.flags |= GRT_KERNEL_TUNES;
    row.reshape = lab_reshape;
    row.release_shape = lab_release_shape;
    row.run = lab_run;
    return &row;
}

static grt_backend lab;
static device_tables lab_tables;

static grt_status lab_open(int32_t index, grt_device **out_device)
{
    GRT_TRY(grt_backend_mirror.device_open(index, out_device));
    device_tables_take(&lab_tables, *out_device);
    lab_tables.api.identify = identify;
    lab_tables.timer = (grt_timer_api){event_create, event_release, event_record, event_elapsed};
    lab_tables.api.timer = &lab_tables.timer;
    (*out_device)->backend = &lab;
    (*out_device)->cache_bytes = 1 << 16;
    return GRT_OK;
}

/* ---- a model on it ---- */

static char directory[FILES_NAME], path[128];
static grt_runtime *runtime;
static grt_model *model;
static grt_session *session;
static grt_context *context;
static float a[4 * 8], b[8 * 8], c[8 * 16];

/* y = a b b c: three products, two of them of one kind */
static void open_model(void)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "a", GRT_DTYPE_FLOAT, "4,8");
    onnx_input(&m, m.graph, "b", GRT_DTYPE_FLOAT, "8,8");
    onnx_input(&m, m.graph, "c", GRT_DTYPE_FLOAT, "8,16");
    onnx_node(&m, m.graph, "MatMul", "a,b", "ab");
    onnx_node(&m, m.graph, "MatMul", "ab,b", "abb");
    onnx_node(&m, m.graph, "MatMul", "abb,c", "y");
    onnx_output(&m, m.graph, "y");
    model = onnx_open(&m, runtime);
    onnx_release(&m);
}

static void open_context(void)
{
    const grt_tensor in[] = {{.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {4, 8}, .data = a},
                             {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {8, 8}, .data = b},
                             {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {8, 16}, .data = c}};
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(grt_context_set_input(context, i, &in[i]), GRT_OK);
}

static void open_all(void)
{
    void *block;
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
    ck_assert_int_eq(grt_runtime_set_algo_cache(runtime, path), GRT_OK);
    open_model();
    ck_assert_int_eq(grt_session_start(model, &(grt_sessions_options){.threads = 1}, 0, &session), GRT_OK);
    ck_assert_msg(grt_session_open_device(session, &lab, 0) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_session_place_weights(session, &block), GRT_OK);
    if (block) /* there are no weights to fill it with */
        grt_resident_settle(session->resident, GRT_OK);
    ck_assert_msg(grt_session_create_kernels(session, 1) == GRT_OK, "%s", grt_last_error());
    open_context();
}

static void close_all(void)
{
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    grt_runtime_release(runtime);
}

static void setup(void)
{
    files_directory(directory);
    snprintf(path, sizeof path, "%s/algos.db", directory);
    for (size_t i = 0; i < sizeof a / sizeof *a; i++)
        a[i] = (float)(i % 7) - 3;
    for (size_t i = 0; i < sizeof b / sizeof *b; i++)
        b[i] = (float)(i % 5) - 2;
    for (size_t i = 0; i < sizeof c / sizeof *c; i++)
        c[i] = (float)(i % 3) - 1;
    lab = grt_backend_mirror;
    lab.name = "lab";
    lab.device_open = lab_open;
    lab.find_kernel = lab_find;
    usual_times();
    now = 0;
    listed = asked = 0;
    open_all();
}

static void teardown(void)
{
    close_all();
    files_remove(directory);
}

static grt_tune_report tune(const grt_tune_options *options)
{
    grt_tune_report report = {.struct_size = sizeof report};
    ck_assert_msg(grt_context_tune(context, options, &report) == GRT_OK, "%s", grt_last_error());
    return report;
}

static grt_load_info load_info(void)
{
    grt_load_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(grt_session_get_load(session, &info), GRT_OK);
    return info;
}

/* ---- tests ---- */

typedef struct seen {
    size_t n, steps;
    grt_tune_result last;
} seen;

static void see(void *user, const grt_tune_result *result)
{
    seen *s = user;
    s->n++;
    s->steps += result->steps;
    s->last = *result;
    ck_assert_ptr_nonnull(strstr(result->key, "op=MatMul;gpu=lab;"));
    ck_assert_str_eq(result->op, "MatMul");
}

START_TEST(the_fastest_sound_one_wins)
{
    seen s = {0};
    const grt_tune_options options = {.struct_size = sizeof options, .result = see, .user = &s};
    const grt_tune_report r = tune(&options);
    ck_assert_uint_eq(r.steps, 3);
    ck_assert_uint_eq(r.choices, 2);
    ck_assert_uint_eq(r.tuned, 2);
    ck_assert_uint_eq(r.known, 0);
    ck_assert_uint_eq(r.improved, 2);
    ck_assert(r.before_ms > 1.19 && r.before_ms < 1.21);
    ck_assert(r.after_ms > 0.44 && r.after_ms < 0.46);
    ck_assert(!r.stopped && !r.out_of_time);
    ck_assert_uint_eq(s.n, 2);
    ck_assert_uint_eq(s.steps, 3);
    ck_assert_uint_eq(s.last.winner, GOOD);
    ck_assert_uint_eq(s.last.candidates, WAYS);
    ck_assert_uint_eq(s.last.refused, 5); /* all that is faster */
    ck_assert_uint_eq(listed, 2);
    ck_assert_uint_eq(load_info().searches, 2);
    /* The context goes on as it was, a new one has the winners, and both compute the same. */
    float before[4 * 16];
    grt_tensor y;
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    ck_assert_int_eq(last_way, HEURISTIC);
    ck_assert_int_eq(grt_context_get_output(context, 0, &y), GRT_OK);
    memcpy(before, y.data, sizeof before);
    grt_context_release(context);
    open_context();
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    ck_assert_int_eq(last_way, GOOD);
    ck_assert_int_eq(grt_context_get_output(context, 0, &y), GRT_OK);
    ck_assert_mem_eq(before, y.data, sizeof before);
}
END_TEST

START_TEST(the_next_process_has_it)
{
    tune(NULL);
    close_all();
    asked = listed = 0;
    open_all();
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    ck_assert_int_eq(last_way, GOOD);
    ck_assert_uint_eq(asked + listed, 0);
    ck_assert_uint_eq(load_info().heuristics, 0);
    ck_assert_uint_eq(load_info().searches, 0);
    /* What is known is left alone, unless asked for. */
    grt_tune_report r = tune(NULL);
    ck_assert_uint_eq(r.known, 2);
    ck_assert_uint_eq(r.tuned, 0);
    ck_assert_uint_eq(listed, 0);
    way_ms[GOOD] = 0.6;
    r = tune(&(grt_tune_options){.struct_size = sizeof(grt_tune_options), .again = true});
    ck_assert_uint_eq(r.tuned, 2);
    ck_assert_uint_eq(r.improved, 0);
    grt_context_release(context);
    open_context();
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    ck_assert_int_eq(last_way, HEURISTIC);
}
END_TEST

typedef struct rows {
    size_t n, tuned;
    double cost;
} rows;

static void count_row(void *user, const grt_cache_row *row)
{
    rows *r = user;
    r->n++;
    r->tuned += row->tuned;
    r->cost += row->cost_ms;
}

static void count_lookup(void *user, const grt_cache_lookup *lookup)
{
    ck_assert_ptr_nonnull(lookup->row);
    ck_assert_str_eq(lookup->row->key, lookup->key);
    ck_assert_uint_eq(lookup->row->size, 3);
    count_row(user, lookup->row);
}

START_TEST(rows_say_what_was_measured)
{
    rows r = {0};
    tune(NULL);
    ck_assert_int_eq(grt_cache_each(path, count_row, &r, NULL), GRT_OK);
    ck_assert_uint_eq(r.n, 2);
    ck_assert_uint_eq(r.tuned, 2);
    ck_assert(r.cost > 0.29 && r.cost < 0.31);
}
END_TEST

START_TEST(noise_changes_nothing)
{
    way_ms[GOOD] = 0.396; /* 1 % */
    const grt_tune_report r = tune(NULL);
    ck_assert_uint_eq(r.tuned, 2);
    ck_assert_uint_eq(r.improved, 0);
    ck_assert(r.after_ms == r.before_ms);
    grt_context_release(context);
    open_context();
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    ck_assert_int_eq(last_way, HEURISTIC);
}
END_TEST

static grt_choice row_of(const char *key, const char *data, grt_choice_source source)
{
    return (grt_choice){.key = key, .data = data, .size = strlen(data), .source = (int32_t)source};
}

static const char *kept_key;

static void keep_key(void *user, const grt_tune_result *result)
{
    (void)user;
    free((char *)kept_key);
    kept_key = strdup(result->key);
}

static int way_of_a_new_context(void)
{
    grt_context_release(context);
    open_context();
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    return last_way;
}

START_TEST(measured_before_said)
{
    tune(&(grt_tune_options){.struct_size = sizeof(grt_tune_options),
                             .result = keep_key}); /* the last step's */
    close_all();
    open_all();
    /* What a plan has from a heuristic does not hide what was measured; what it has from measuring does. */
    grt_choice row = row_of(kept_key, "1 1", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_add_plan(runtime->algos, &row, 1);
    ck_assert_int_eq(way_of_a_new_context(), GOOD);
    row = row_of(kept_key, "1 1", GRT_CHOICE_TUNED);
    grt_algo_cache_add_plan(runtime->algos, &row, 1);
    ck_assert_int_eq(way_of_a_new_context(), SLOWER);
    /* Until it is measured again. */
    tune(&(grt_tune_options){.struct_size = sizeof(grt_tune_options), .again = true});
    ck_assert_int_eq(way_of_a_new_context(), GOOD);
    free((char *)kept_key);
}
END_TEST

START_TEST(lookups_have_the_rows)
{
    rows r = {0};
    tune(NULL);
    ck_assert_int_eq(grt_cache_lookups(runtime, count_lookup, &r), GRT_OK);
    ck_assert_uint_eq(r.n, 2);
    ck_assert_uint_eq(r.tuned, 2);
}
END_TEST

static bool stop_after(void *user, const char *what, double fraction)
{
    int *left = user;
    ck_assert_ptr_nonnull(what);
    ck_assert(fraction >= 0 && fraction <= 1);
    return --*left > 0;
}

START_TEST(stopping_keeps_what_was_found)
{
    for (int calls = 1; calls < 40; calls++) {
        int left = calls;
        const grt_tune_options options = {
            .struct_size = sizeof options, .progress = stop_after, .user = &left};
        grt_tune_report r = {.struct_size = sizeof r};
        rows found = {0};
        unlink(path);
        close_all();
        open_all();
        ck_assert_msg(grt_context_tune(context, &options, &r) == GRT_OK, "%s", grt_last_error());
        ck_assert(r.stopped == (left <= 0));
        grt_algo_cache_save(runtime->algos);
        ck_assert_int_eq(grt_cache_each(path, count_row, &found, NULL), GRT_OK);
        ck_assert_uint_eq(found.tuned, r.tuned);
        ck_assert_uint_le(r.tuned, 2);
        if (!r.stopped) {
            ck_assert_uint_eq(r.tuned, 2);
            ck_assert_int_gt(calls, 5);
            return;
        }
        /* Begin again where it ended. */
        const grt_tune_report rest = tune(NULL);
        ck_assert_uint_eq(rest.known + rest.tuned, 2);
        ck_assert_uint_eq(rest.known, r.tuned);
    }
    ck_abort_msg("it never ends");
}
END_TEST

START_TEST(time_is_limited)
{
    const grt_tune_report r =
        tune(&(grt_tune_options){.struct_size = sizeof(grt_tune_options), .seconds = 1e-9});
    ck_assert(r.out_of_time);
    ck_assert_uint_eq(r.tuned, 0);
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
}
END_TEST

START_TEST(dearest_first)
{
    seen s = {0};
    const grt_tune_options options = {.struct_size = sizeof options, .result = see, .user = &s};
    tune(&options);
    ck_assert_uint_eq(s.last.steps, 1); /* the one with two steps came first */
}
END_TEST

START_TEST(nothing_to_tune)
{
    grt_session *cpu;
    grt_context *on_cpu;
    const grt_tensor in[] = {{.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {4, 8}, .data = a},
                             {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {8, 8}, .data = b},
                             {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {8, 16}, .data = c}};
    grt_tune_report r = {.struct_size = sizeof r};
    static const char *const kinds[] = {"cpu", "mirror:0", "null:0"};
    for (size_t d = 0; d < 3; d++) {
        ck_assert_int_eq(grt_session_create(model, kinds[d], NULL, &cpu), GRT_OK);
        ck_assert_int_eq(grt_context_create(cpu, &on_cpu), GRT_OK);
        ck_assert_int_eq(grt_context_tune(on_cpu, NULL, &r), GRT_STATUS_INVALID_ARGUMENT); /* no inputs */
        for (size_t i = 0; i < 3; i++)
            ck_assert_int_eq(grt_context_set_input(on_cpu, i, &in[i]), GRT_OK);
        ck_assert_int_eq(grt_context_tune(on_cpu, NULL, &r), GRT_OK);
        ck_assert_uint_eq(r.steps, d == 2 ? 3 : 0);
        ck_assert_uint_eq(r.tuned, d == 2 ? 2 : 0);
        grt_context_release(on_cpu);
        grt_session_release(cpu);
    }
    ck_assert_int_eq(grt_context_tune(NULL, NULL, &r), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_context_tune(context, NULL, NULL), GRT_STATUS_INVALID_ARGUMENT);
    const grt_tune_options wrong = {.struct_size = sizeof wrong, .seconds = -1};
    ck_assert_int_eq(grt_context_tune(context, &wrong, &r), GRT_STATUS_INVALID_ARGUMENT);
    r.struct_size = 1;
    ck_assert_int_eq(grt_context_tune(context, NULL, &r), GRT_STATUS_INVALID_ARGUMENT);
}
END_TEST

Suite *suite_test_tune(void)
{
    Suite *suite = suite_create("tune");
    TCase *tests = tcase_create("tune");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, the_fastest_sound_one_wins);
    tcase_add_test(tests, the_next_process_has_it);
    tcase_add_test(tests, rows_say_what_was_measured);
    tcase_add_test(tests, noise_changes_nothing);
    tcase_add_test(tests, measured_before_said);
    tcase_add_test(tests, lookups_have_the_rows);
    tcase_add_test(tests, stopping_keeps_what_was_found);
    tcase_add_test(tests, time_is_limited);
    tcase_add_test(tests, dearest_first);
    tcase_add_test(tests, nothing_to_tune);
    suite_add_tcase(suite, tests);
    return suite;
}
