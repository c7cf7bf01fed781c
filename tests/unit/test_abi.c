/* SPDX-License-Identifier: Apache-2.0 */
/* The binary interface, docs/decisions/abi.md: layouts, callers with older and newer headers, zeroed structs.
 */
#include "tests/unit/files.h"
#include "tests/unit/onnx_model.h"

#include <graphrt/processes.h>

#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct layout {
    const char *name, *last;
    size_t offset, size, expected_offset, expected_size;
} layout;

#define LAYOUT(type, member, member_offset, type_size)                                 \
    {                                                                                  \
#type, #member, offsetof(type, member), sizeof(type), member_offset, type_size \
    }

/* The last member of each struct. A line that changes is a new ABI, unless it names a member that was added.
 */
static const layout layouts[] = {
    LAYOUT(grt_string, size, 8, 16),
    LAYOUT(grt_tensor, reserved, 152, 192),
    LAYOUT(grt_device_kind_info, test_only, 17, 24),
    LAYOUT(grt_session_options, compile, 48, 56),
    LAYOUT(grt_load_progress, fraction, 32, 40),
    LAYOUT(grt_sessions_options, compile, 96, 104),
    LAYOUT(grt_run_options, user, 24, 32),
    LAYOUT(grt_log_message, text, 24, 32),
    LAYOUT(grt_profile_event, status, 52, 56),
    LAYOUT(grt_profile_options, steps, 24, 32),
    LAYOUT(grt_span, reserved, 80, 112),
    LAYOUT(grt_memory_info, process_bytes, 88, 96),
    LAYOUT(grt_memory_options, n_shapes, 32, 40),
    LAYOUT(grt_pool_options, device_runs, 40, 48),
    LAYOUT(grt_process_options, multiprocessors, 80, 88),
    LAYOUT(grt_process_info, lost, 24, 32),
    LAYOUT(grt_state_pair, reserved, 32, 64),
    LAYOUT(grt_state_info, bytes, 224, 232),
    LAYOUT(grt_submission, state, 88, 96),
    LAYOUT(grt_request_info, batch_rows, 48, 56),
    LAYOUT(grt_pool_stats, running, 88, 96),
    LAYOUT(grt_histogram, buckets, 72, 1112),
    LAYOUT(grt_io_info, has_default, 288, 296),
    LAYOUT(grt_model_info, verified, 96, 104),
    LAYOUT(grt_metadata_entry, reserved, 16, 32),
    LAYOUT(grt_metadata, entries, 80, 88),
    LAYOUT(grt_step_info, flops, 64, 72),
    LAYOUT(grt_phase, reserved, 24, 64),
    LAYOUT(grt_load_info, code_interpreted, 160, 168),
    LAYOUT(grt_context_stats, device_ms, 48, 56),
    LAYOUT(grt_replay_info, replayed, 44, 48),
    LAYOUT(grt_step_time, reserved, 24, 64),
    LAYOUT(grt_device_description, reserved, 24, 64),
    LAYOUT(grt_input_shape, reserved, 144, 160),
    LAYOUT(grt_external_data, reserved, 24, 64),
    LAYOUT(grt_compile_options, enable_passes, 184, 192),
    LAYOUT(grt_finding, message, 40, 48),
    LAYOUT(grt_cache_row, reserved, 48, 64),
    LAYOUT(grt_cache_lookup, code, 48, 56),
    LAYOUT(grt_tune_result, after_ms, 80, 88),
    LAYOUT(grt_tune_options, user, 40, 48),
    LAYOUT(grt_tune_report, out_of_time, 65, 72),
    LAYOUT(grt_custom_attribute, reserved, 16, 64),
    LAYOUT(grt_custom_type, reserved, 80, 128),
    LAYOUT(grt_custom_node, internal, 40, 48),
    LAYOUT(grt_custom_host, dim_compute, 88, 96),
    LAYOUT(grt_custom_run, stream, 40, 48),
    LAYOUT(grt_custom_op, user, 136, 144),
};
enum { N_LAYOUTS = sizeof layouts / sizeof *layouts };

static grt_runtime *runtime;
static grt_model *model;
static float numbers[2 * 8];
static const grt_tensor input = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {2, 8}, .data = numbers};

/* x [N,8] -> Relu -> Neg -> y */
static void write_model(char path[FILES_NAME])
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "N,8");
    onnx_node(&m, m.graph, "Relu", "x", "h");
    onnx_node(&m, m.graph, "Neg", "h", "y");
    onnx_output(&m, m.graph, "y");
    files_fresh(path);
    onnx_write(&m, path);
    onnx_release(&m);
}

static void setup(void)
{
    char path[FILES_NAME];
    setenv("GRAPHRT_ALGO_CACHE", "off", 1);
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
    write_model(path);
    ck_assert_msg(grt_model_open(runtime, path, &model) == GRT_OK, "%s", grt_last_error());
}

static void teardown(void)
{
    grt_model_release(model);
    grt_runtime_release(runtime);
}

START_TEST(layouts_stay)
{
    const layout *l = &layouts[_i];
    ck_assert_int_eq(sizeof(void *), 8); /* the figures are for 64 bits */
    ck_assert_msg(l->offset == l->expected_offset, "%s.%s is at %zu, was at %zu", l->name, l->last, l->offset,
                  l->expected_offset);
    ck_assert_msg(l->size == l->expected_size, "%s has %zu bytes, had %zu", l->name, l->size,
                  l->expected_size);
}
END_TEST

/* Described by a program whose struct ended with `dims`: what lies behind is not touched. */
START_TEST(older_infos_are_filled_as_far_as_they_go)
{
    grt_io_info io = {.struct_size = offsetof(grt_io_info, symbols), .has_default = true};
    grt_step_info step = {.struct_size = offsetof(grt_step_info, flops), .flops = -7};
    io.symbols[0] = "untouched";
    ck_assert_int_eq(grt_model_input(model, 0, &io), GRT_OK);
    ck_assert_str_eq(io.name, "x");
    ck_assert_int_eq(io.dims[1], 8);
    ck_assert_str_eq(io.symbols[0], "untouched");
    ck_assert(io.has_default);
    ck_assert_int_eq(grt_model_step(model, 0, &step), GRT_OK);
    ck_assert_uint_eq(step.n_inputs, 1);
    ck_assert_double_eq(step.flops, -7);
}
END_TEST

START_TEST(newer_infos_keep_their_unknown_end)
{
    struct {
        grt_io_info known;
        uint64_t unknown;
    } newer = {.known = {.struct_size = sizeof newer}};
    ck_assert_int_eq(grt_model_input(model, 0, &newer.known), GRT_OK);
    ck_assert_str_eq(newer.known.name, "x");
    ck_assert_uint_eq(newer.unknown, 0);
    ck_assert_uint_eq(newer.known.struct_size, sizeof newer);
}
END_TEST

START_TEST(infos_without_a_size_are_refused)
{
    grt_io_info io = {0};
    grt_step_info step = {0};
    grt_device_kind_info kind = {0};
    ck_assert_int_eq(grt_model_input(model, 0, &io), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "sizeof(grt_io_info)"));
    ck_assert_int_eq(grt_model_output(model, 0, NULL), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_model_step(model, 0, &step), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_device_kind(0, &kind), GRT_STATUS_INVALID_ARGUMENT);
}
END_TEST

static const char *options_of(const char *path, const grt_compile_options *options, char out[256])
{
    grt_model *opened = NULL;
    grt_model_info info = {.struct_size = sizeof info};
    ck_assert_msg(grt_model_open_with(runtime, path, options, &opened) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_model_get_info(opened, &info), GRT_OK);
    strncpy(out, info.options, 255);
    out[255] = '\0';
    grt_model_release(opened);
    return out;
}

START_TEST(zeroed_options_are_the_defaults)
{
    char path[FILES_NAME], by_default[256], zeroed[256], named[256];
    grt_compile_options options = {.struct_size = sizeof options};
    write_model(path);
    options_of(path, NULL, by_default);
    ck_assert_str_eq(options_of(path, &options, zeroed), by_default);
    options.optimization = GRT_OPTIMIZATION_FULL;
    ck_assert_str_eq(options_of(path, &options, named), by_default);
    options.optimization = GRT_OPTIMIZATION_NONE;
    ck_assert_str_eq(options_of(path, &options, named), "level 0, target cpu");
    options.optimization = GRT_OPTIMIZATION_BASIC;
    ck_assert_str_eq(options_of(path, &options, named), "level 1, target cpu");
}
END_TEST

START_TEST(levels_that_do_not_exist_are_refused)
{
    static const int wrong[] = {-1, 4};
    char path[FILES_NAME];
    grt_model *opened = NULL;
    write_model(path);
    for (int i = 0; i < 2; i++) {
        const grt_compile_options options = {.struct_size = sizeof options,
                                             .optimization = (grt_optimization)wrong[i]};
        ck_assert_int_eq(grt_model_open_with(runtime, path, &options, &opened), GRT_STATUS_INVALID_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(grt_last_error(), "optimization"));
    }
}
END_TEST

/* What only a newer header knows is refused where it is set, in options and in elements of arrays. */
START_TEST(newer_elements_are_refused)
{
    grt_session *session = NULL;
    grt_context *context = NULL;
    grt_value *value = NULL;
    grt_tensor newer = input;
    newer.reserved[4] = 1;
    ck_assert_int_eq(grt_session_create(model, "cpu", NULL, &session), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    ck_assert_int_eq(grt_context_set_input(context, 0, &newer), GRT_STATUS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "grt_tensor.reserved"));
    ck_assert_int_eq(grt_context_set_output(context, 0, &newer), GRT_STATUS_UNSUPPORTED);
    ck_assert_int_eq(grt_value_from_tensor(&newer, &value), GRT_STATUS_UNSUPPORTED);
    ck_assert_int_eq(grt_context_set_input(context, 0, &input), GRT_OK);
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    memset(&newer, 0xff, sizeof newer);
    ck_assert_int_eq(grt_context_get_output(context, 0, &newer), GRT_OK);
    for (size_t i = 0; i < sizeof newer.reserved / sizeof *newer.reserved; i++)
        ck_assert_uint_eq(newer.reserved[i], 0);
    grt_context_release(context);
    grt_session_release(session);
}
END_TEST

START_TEST(newer_elements_of_options_are_refused)
{
    const grt_input_shape shape = {.input = "x", .rank = 2, .dims = {2, 8}, .reserved = {0, 1}};
    const grt_device_description device = {.name = "d", .sm = 10, .properties = "{}", .reserved = {1}};
    const grt_cache_row row = {.key = "op=Relu;", .data = "", .reserved = {1}};
    char path[FILES_NAME], plan[FILES_NAME];
    grt_compile_options options = {.struct_size = sizeof options, .shapes = &shape, .n_shapes = 1};
    write_model(path);
    files_fresh(plan);
    ck_assert_int_eq(grt_compile(path, &options, plan), GRT_STATUS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "grt_input_shape.reserved"));
    options = (grt_compile_options){
        .struct_size = sizeof options, .target = "null", .devices = &device, .n_devices = 1};
    ck_assert_int_eq(grt_compile(path, &options, plan), GRT_STATUS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "grt_device_description.reserved"));
    const grt_external_data data = {.location = "f", .reserved = {1}};
    options =
        (grt_compile_options){.struct_size = sizeof options, .external_data = &data, .n_external_data = 1};
    ck_assert_int_eq(grt_compile(path, &options, plan), GRT_STATUS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "grt_external_data.reserved"));
    ck_assert_int_eq(grt_plan_add_tuning(plan, plan, &row, 1), GRT_STATUS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "grt_cache_row.reserved"));
}
END_TEST

static void note_size(void *user, const grt_finding *finding)
{
    *(size_t *)user = finding->struct_size;
}

START_TEST(callbacks_are_told_the_size)
{
    char path[FILES_NAME];
    size_t size = 0, n = 0;
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "N,8");
    onnx_node(&m, m.graph, "NoSuchOp", "x", "y");
    onnx_output(&m, m.graph, "y");
    files_fresh(path);
    onnx_write(&m, path);
    onnx_release(&m);
    ck_assert_int_eq(grt_check_model(path, NULL, note_size, &size, &n), GRT_OK);
    ck_assert_uint_eq(n, 1);
    ck_assert_uint_eq(size, sizeof(grt_finding));
}
END_TEST

/* Kinds are listed without their drivers, and each name is one that the other functions know. */
START_TEST(kinds_of_devices)
{
    grt_device_kind_info kind = {.struct_size = sizeof kind};
    bool cpu = false;
    for (size_t i = 0; i < grt_device_kind_count(); i++) {
        int32_t n = -1;
        ck_assert_int_eq(grt_device_kind(i, &kind), GRT_OK);
        cpu = cpu || !strcmp(kind.name, "cpu");
        if (!kind.accelerator)
            ck_assert_msg(grt_device_count(kind.name, &n) == GRT_OK && n > 0, "%s", kind.name);
    }
    ck_assert(cpu);
    ck_assert_int_eq(grt_device_kind(grt_device_kind_count(), &kind), GRT_STATUS_INVALID_ARGUMENT);
}
END_TEST

Suite *suite_test_abi(void);
Suite *suite_test_abi(void)
{
    Suite *suite = suite_create("test_abi");
    TCase *tc = tcase_create("abi");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, layouts_stay, 0, N_LAYOUTS);
    tcase_add_test(tc, older_infos_are_filled_as_far_as_they_go);
    tcase_add_test(tc, newer_infos_keep_their_unknown_end);
    tcase_add_test(tc, infos_without_a_size_are_refused);
    tcase_add_test(tc, zeroed_options_are_the_defaults);
    tcase_add_test(tc, levels_that_do_not_exist_are_refused);
    tcase_add_test(tc, newer_elements_are_refused);
    tcase_add_test(tc, newer_elements_of_options_are_refused);
    tcase_add_test(tc, callbacks_are_told_the_size);
    tcase_add_test(tc, kinds_of_devices);
    suite_add_tcase(suite, tc);
    return suite;
}
