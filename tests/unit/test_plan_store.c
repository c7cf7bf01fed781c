/* SPDX-License-Identifier: Apache-2.0 */
/* Choices that come with plans: which devices they serve, that they win over the cache's file and stay out of
 * it, and what happens when the library refuses them. */
#include "src/algos/cache.h"
#include "src/algos/db.h"
#include "src/algos/plan_store.h"
#include "tests/unit/files.h"
#include "tests/unit/onnx_model.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the store by itself ---- */

static grt_choice row(const char *key, const char *data, int32_t source)
{
    return (grt_choice){.key = key, .data = data, .size = strlen(data), .source = source};
}

static const char *found(const grt_plan_store *store, const char *key)
{
    const grt_choice *r = store->base.find(&store->base, key);
    return r ? r->data : "none";
}

static void keep_all(grt_plan_store *store, const grt_choice *choices, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ck_assert(store->base.keep(&store->base, &choices[i]));
}

#define KEY(gpu, sm, driver, rest) "op=Conv;gpu=" gpu ";sm=" sm ";driver=" driver ";" rest

START_TEST(which_devices_a_choice_serves)
{
    grt_plan_store o;
    grt_plan_store_init(&o);
    ck_assert_str_eq(found(&o, KEY("H200", "90", "13000", "cudnn=9;n=1;")), "none");
    const grt_choice rows[] = {row(KEY("H100", "90", "0", "cudnn=9;n=1;"), "h100", 1),
                               row(KEY("A100", "80", "0", "cudnn=9;n=1;"), "a100", 1),
                               row("op=Conv;gpu=x;driver=1;cudnn=9;n=1;", "no sm", 1)};
    keep_all(&o, rows, 3);
    ck_assert_str_eq(found(&o, KEY("H100", "90", "0", "cudnn=9;n=1;")), "h100");
    ck_assert_str_eq(found(&o, KEY("H100", "90", "13000", "cudnn=9;n=1;")), "h100"); /* any driver */
    ck_assert_str_eq(found(&o, KEY("H200", "90", "13000", "cudnn=9;n=1;")), "h100"); /* any name */
    ck_assert_str_eq(found(&o, KEY("A30", "80", "13000", "cudnn=9;n=1;")), "a100");
    ck_assert_str_eq(found(&o, KEY("L4", "89", "13000", "cudnn=9;n=1;")), "none"); /* the same sm */
    ck_assert_str_eq(found(&o, KEY("H200", "90", "13000", "cudnn=8;n=1;")), "none");
    ck_assert_str_eq(found(&o, KEY("H200", "90", "13000", "cudnn=9;n=2;")), "none");
    ck_assert_str_eq(found(&o, "op=Conv;gpu=x;driver=2;cudnn=9;n=1;"), "no sm");
    ck_assert_str_eq(found(&o, "op=Conv;gpu=y;driver=1;cudnn=9;n=1;"), "none");
    const grt_choice own = row(KEY("H200", "90", "1", "cudnn=9;n=1;"), "h200", 1);
    ck_assert(o.base.keep(&o.base, &own));
    ck_assert_str_eq(found(&o, KEY("H200", "90", "13000", "cudnn=9;n=1;")), "h200"); /* its own name first */
    ck_assert_str_eq(found(&o, KEY("H100", "90", "13000", "cudnn=9;n=1;")), "h100");
    ck_assert_str_eq(found(&o, KEY("GH200", "90", "13000", "cudnn=9;n=1;")), "h100"); /* else the first */
    const grt_choice tuned = row(KEY("H200", "90", "2", "cudnn=9;n=1;"), "measured", 2);
    ck_assert(o.base.keep(&o.base, &tuned));
    ck_assert_str_eq(found(&o, KEY("H200", "90", "13000", "cudnn=9;n=1;")), "measured");
    ck_assert_str_eq(found(&o, KEY("H100", "90", "13000", "cudnn=9;n=1;")), "h100");
    o.base.release(&o.base);
}
END_TEST

START_TEST(refused_choices_stay_refused)
{
    static const char h200[] = KEY("H200", "90", "5", "cudnn=9;n=1;"),
                      h100[] = KEY("H100", "90", "5", "cudnn=9;n=1;");
    grt_plan_store o;
    grt_plan_store_init(&o);
    const grt_choice rows[] = {row(h200, "a", 1), row(h100, "b", 1)};
    ck_assert(!o.base.reject(&o.base, h200));
    keep_all(&o, rows, 2);
    ck_assert(o.base.reject(&o.base, h200));
    ck_assert_str_eq(found(&o, h200), "b"); /* the next best */
    ck_assert(o.base.reject(&o.base, h200));
    ck_assert_str_eq(found(&o, h200), "none");
    ck_assert(!o.base.reject(&o.base, h200));
    keep_all(&o, rows, 2); /* another session of the plan */
    ck_assert_str_eq(found(&o, h200), "none");
    const grt_choice better = row(h200, "c", 1);
    ck_assert(o.base.keep(&o.base, &better));
    ck_assert_str_eq(found(&o, h200), "c");
    o.base.release(&o.base);
}
END_TEST

START_TEST(other_versions_are_told)
{
    grt_plan_store o;
    grt_plan_store_init(&o);
    grt_text there = {0}, here = {0};
    const grt_choice rows[] = {row(KEY("H100", "90", "0", "cudnn=91900;n=1;m=2;"), "x", 1)};
    ck_assert(!grt_plan_store_version(&o, rows[0].key, &there, &here));
    keep_all(&o, rows, 1);
    static const char *const same[] = {KEY("H200", "90", "1", "cudnn=91900;n=1;m=2;"),
                                       KEY("H200", "90", "1", "cudnn=91400;n=2;m=2;"),
                                       KEY("H200", "90", "1", "cudnn=91400;n=1;"),
                                       KEY("H200", "90", "1", "cudnn=91400;n=1;m=2;k=1;"),
                                       KEY("H200", "80", "1", "cudnn=91400;n=1;m=2;"),
                                       KEY("H200", "90", "1", "n=1;m=2;"),
                                       KEY("H200", "90", "1", "cublas=91400;n=1;m=2;"),
                                       "op=Conv;",
                                       ""};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        ck_assert_msg(!grt_plan_store_version(&o, same[i], &there, &here), "%s", same[i]);
    ck_assert(grt_plan_store_version(&o, KEY("H200", "90", "1", "cudnn=91400;n=1;m=2;"), &there, &here));
    ck_assert_str_eq(grt_text_get(&there), "cudnn=91900");
    ck_assert_str_eq(grt_text_get(&here), "cudnn=91400");
    grt_text_release(&there);
    grt_text_release(&here);
    o.base.release(&o.base);
}
END_TEST

/* ---- sessions: the null device chooses, and refuses what it would not have chosen ---- */

static char directory[FILES_NAME], cache[96], plan[96];

static char source[96];

static void setup(void)
{
    files_directory(directory);
    snprintf(cache, sizeof cache, "%s/algos.db", directory);
    snprintf(plan, sizeof plan, "%s/model.grt", directory);
    setenv("GRAPHRT_ALGO_CACHE", cache, 1);
    snprintf(source, sizeof source, "%s/model.onnx", directory);
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "n,8");
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "a", "8,4"));
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "b", "4,3"));
    onnx_node(&m, m.graph, "MatMul", "x,a", "h");
    onnx_node(&m, m.graph, "MatMul", "h,b", "y");
    onnx_output(&m, m.graph, "y");
    onnx_write(&m, source);
    onnx_release(&m);
    ck_assert_msg(grt_compile(source, NULL, plan) == GRT_OK, "%s", grt_last_error());
}

static void teardown(void)
{
    files_remove(directory);
}

/* What a session of the plan and its first run found. */
static grt_load_info load(char note[256])
{
    grt_runtime *runtime;
    grt_model *model;
    grt_session *session;
    grt_context *context;
    static const float x[16];
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {2, 8}, .data = (void *)x};
    grt_load_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
    ck_assert_msg(grt_model_open(runtime, plan, &model) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_session_create(model, "null", NULL, &session), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
    ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_session_get_load(session, &info), GRT_OK);
    snprintf(note, 256, "%s", info.plan_note);
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    grt_runtime_release(runtime);
    return info;
}

/* The cache's rows go into the plan, as a device `gpu` with another driver would have made them. */
typedef struct mover {
    const char *gpu, *version; /* version NULL: the same */
    bool spoil;
    size_t n;
} mover;

static void move_row(void *user, const grt_cache_row *r)
{
    mover *m = user;
    char key[1024];
    const char *rest = strstr(r->key, "nulls=1;");
    const size_t op = strcspn(r->key, ";");
    ck_assert_ptr_nonnull(rest);
    snprintf(key, sizeof key, "%.*s;gpu=%s;sm=10;driver=99;nulls=%s;%s", (int)op, r->key, m->gpu,
             m->version ? m->version : "1", rest + strlen("nulls=1;"));
    grt_cache_row moved = *r;
    moved.key = key;
    moved.data = m->spoil ? "spoiled" : r->data;
    moved.size = m->spoil ? 7 : r->size;
    ck_assert_msg(grt_plan_add_tuning(plan, plan, &moved, 1) == GRT_OK, "%s", grt_last_error());
    m->n++;
}

static size_t move_rows(mover m)
{
    size_t damaged;
    ck_assert_int_eq(grt_cache_each(cache, move_row, &m, &damaged), GRT_OK);
    return m.n;
}

static void count_row(void *user, const grt_cache_row *r)
{
    (void)r;
    ++*(size_t *)user;
}

static size_t rows_in_cache(void)
{
    size_t n = 0;
    ck_assert_int_eq(grt_cache_each(cache, count_row, &n, NULL), GRT_OK);
    return n;
}

#define EXPECT_LOAD(info, from_plan, from_cache, asked, refused)                                         \
    ck_assert_msg(info.plan_hits == from_plan && info.cache_hits == from_cache &&                        \
                      info.heuristics == asked && info.rejected == refused,                              \
                  "plan %d, cache %d, asked %d, rejected %d", (int)info.plan_hits, (int)info.cache_hits, \
                  (int)info.heuristics, (int)info.rejected)

START_TEST(a_plan_brings_its_choices)
{
    char note[256];
    grt_load_info info = load(note);
    EXPECT_LOAD(info, 0, 0, 2, 0);
    ck_assert_uint_eq(info.plan_rows, 0);
    ck_assert_uint_eq(move_rows((mover){"another", NULL, false, 0}), 2);
    info = load(note);
    EXPECT_LOAD(info, 2, 0, 0, 0); /* wins over the cache's equal ones */
    ck_assert_uint_eq(info.plan_rows, 2);
    ck_assert_str_eq(note, "");
    ck_assert_int_eq(unlink(cache), 0);
    info = load(note);
    EXPECT_LOAD(info, 2, 0, 0, 0);
    ck_assert_uint_eq(rows_in_cache(), 0); /* and nothing of it goes there */
    size_t n = 0;
    grt_runtime *runtime;
    grt_model *model;
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
    ck_assert_int_eq(grt_model_open(runtime, plan, &model), GRT_OK);
    ck_assert_int_eq(grt_model_choices(model, count_row, &n), GRT_OK);
    ck_assert_uint_eq(n, 2);
    grt_model_release(model);
    grt_runtime_release(runtime);
}
END_TEST

START_TEST(the_cache_takes_over_where_the_library_refuses)
{
    char note[256];
    grt_load_info info = load(note);
    EXPECT_LOAD(info, 0, 0, 2, 0);
    move_rows((mover){"another", NULL, true, 0});
    info = load(note);
    EXPECT_LOAD(info, 0, 2, 0, 2); /* found, refused, and the cache's were good */
    ck_assert_uint_eq(rows_in_cache(), 2);
    ck_assert_int_eq(unlink(cache), 0);
    info = load(note);
    EXPECT_LOAD(info, 0, 0, 2, 2); /* no cache: the library is asked, and the file gets the answers */
    ck_assert_uint_eq(rows_in_cache(), 2);
    info = load(note);
    EXPECT_LOAD(info, 0, 2, 0, 2);
}
END_TEST

START_TEST(choices_of_another_version_are_passed_over)
{
    char note[256];
    (void)load(note);
    move_rows((mover){"null", "2", false, 0});
    ck_assert_int_eq(unlink(cache), 0);
    const grt_load_info info = load(note);
    EXPECT_LOAD(info, 0, 0, 2, 0);
    ck_assert_uint_eq(info.plan_rows, 2);
    ck_assert_msg(strstr(note, "nulls=2, here is nulls=1") != NULL, "%s", note);
}
END_TEST

/* ---- choosing at compile time, for devices that are only described ---- */

static grt_status compile(const grt_compile_options *options)
{
    return grt_compile(source, options, plan);
}

static void collect_name(void *user, const grt_cache_row *r)
{
    grt_text *text = user;
    const char *gpu = strstr(r->key, "gpu=");
    grt_text_add(text, "%.*s ", (int)strcspn(gpu, ";"), gpu);
}

static const char *gpus_of_plan(void)
{
    static char text[256];
    grt_runtime *runtime;
    grt_model *model;
    grt_text names = {0};
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
    ck_assert_int_eq(grt_model_open(runtime, plan, &model), GRT_OK);
    ck_assert_int_eq(grt_model_choices(model, collect_name, &names), GRT_OK);
    snprintf(text, sizeof text, "%s", grt_text_get(&names));
    grt_text_release(&names);
    grt_model_release(model);
    grt_runtime_release(runtime);
    return text;
}

START_TEST(choices_are_made_without_the_device)
{
    char note[256];
    const grt_device_description devices[] = {{.name = "first", .sm = 10, .properties = "{}"},
                                              {.name = "second", .sm = 11, .properties = "{}"}};
    const grt_input_shape shape = {.input = "x", .rank = 2, .dims = {2, 8}};
    const grt_compile_options options = {.struct_size = sizeof options,
                                         .target = "null",
                                         .devices = devices,
                                         .n_devices = 2,
                                         .shapes = &shape,
                                         .n_shapes = 1};
    ck_assert_msg(compile(&options) == GRT_OK, "%s", grt_last_error());
    const grt_load_info info = load(note);
    EXPECT_LOAD(info, 2, 0, 0, 0); /* by the first: the null device has its sm */
    ck_assert_uint_eq(info.plan_rows, 4);
    ck_assert_uint_eq(rows_in_cache(), 0);
    ck_assert_str_eq(gpus_of_plan(), "gpu=first gpu=first gpu=second gpu=second ");
}
END_TEST

START_TEST(unknown_dims_are_taken_as_one)
{
    char note[256];
    const grt_device_description device = {.name = "first", .sm = 10, .properties = "{}"};
    const grt_compile_options options = {
        .struct_size = sizeof options, .target = "null", .devices = &device, .n_devices = 1};
    ck_assert_msg(compile(&options) == GRT_OK, "%s", grt_last_error());
    const grt_load_info info = load(note); /* which has 2 rows */
    EXPECT_LOAD(info, 0, 0, 2, 0);
    ck_assert_uint_eq(info.plan_rows, 2);
    ck_assert_str_eq(note, ""); /* other dims are no other version */
}
END_TEST

START_TEST(choices_from_another_machine)
{
    char key[512] = "", exported[128];
    const grt_device_description device = {.name = "first", .sm = 10, .properties = "{}"};
    const grt_input_shape shape = {.input = "x", .rank = 2, .dims = {2, 8}};
    grt_compile_options options = {.struct_size = sizeof options,
                                   .target = "null",
                                   .devices = &device,
                                   .n_devices = 1,
                                   .shapes = &shape,
                                   .n_shapes = 1,
                                   .choices = exported};
    snprintf(exported, sizeof exported, "%s/exported.db", directory);
    ck_assert_int_eq(compile(&options), GRT_STATUS_IO); /* there is no such file */
    char note[256];
    (void)load(note); /* at x[1,8]: the cache has what the null device chooses */
    options.choices = cache;
    options.n_shapes = 1;
    ck_assert_msg(compile(&options) == GRT_OK, "%s", grt_last_error());
    ck_assert_str_eq(gpus_of_plan(), "gpu=null gpu=null "); /* not those that are chosen here */
    snprintf(key, sizeof key,
             "op=MatMul;gpu=there;sm=10;driver=7;nulls=1;in0=float32[2x8];in1=float32[8x4];");
    const grt_choice row = {
        .key = key, .data = "of no use", .size = 9, .source = GRT_CHOICE_TUNED, .cost_ms = 1};
    ck_assert_int_eq(grt_algo_db_write(exported, &row, 1), GRT_OK);
    options.choices = exported;
    ck_assert_msg(compile(&options) == GRT_OK, "%s", grt_last_error());
    ck_assert_str_eq(gpus_of_plan(), "gpu=first gpu=first "); /* what the kernel refuses stays out */
}
END_TEST

START_TEST(choices_that_cannot_be_made)
{
    const grt_device_description device = {.name = "first", .sm = 10, .properties = "{}"},
                                 nameless = {.sm = 10, .properties = "{}"};
    const grt_input_shape shapes[] = {
        {.input = "y", .rank = 1, .dims = {1}},
        {.input = "x", .rank = 3, .dims = {1, 2, 8}},
        {.input = "x", .rank = 2, .dims = {1, 9}},
        {.input = "x", .rank = 2, .dims = {-1, 8}},
    };
    grt_compile_options options = {
        .struct_size = sizeof options, .target = "cpu", .devices = &device, .n_devices = 1};
    ck_assert_int_eq(compile(&options), GRT_STATUS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "kind 'cpu'"));
    options.target = "null";
    options.n_shapes = 1;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        options.shapes = &shapes[i];
        ck_assert_int_eq(compile(&options), GRT_STATUS_INVALID_ARGUMENT);
    }
    options.n_shapes = 0;
    options.devices = &nameless;
    ck_assert_int_eq(compile(&options), GRT_STATUS_INVALID_ARGUMENT);
}
END_TEST

Suite *suite_test_plan_store(void)
{
    Suite *suite = suite_create("plan_store");
    TCase *alone = tcase_create("store"), *tc = tcase_create("sessions");
    tcase_add_test(alone, which_devices_a_choice_serves);
    tcase_add_test(alone, refused_choices_stay_refused);
    tcase_add_test(alone, other_versions_are_told);
    suite_add_tcase(suite, alone);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_plan_brings_its_choices);
    tcase_add_test(tc, the_cache_takes_over_where_the_library_refuses);
    tcase_add_test(tc, choices_of_another_version_are_passed_over);
    tcase_add_test(tc, choices_are_made_without_the_device);
    tcase_add_test(tc, unknown_dims_are_taken_as_one);
    tcase_add_test(tc, choices_from_another_machine);
    tcase_add_test(tc, choices_that_cannot_be_made);
    suite_add_tcase(suite, tc);
    return suite;
}
