/* SPDX-License-Identifier: Apache-2.0 */
/* What models say of themselves: kept by import and in plans, text of any kind. */
#include "tests/unit/onnx_model.h"
#include "tests/unit/runtime.h"

#include <graphrt/graphrt.h>

#include <check.h>
#include <string.h>

static const char note[] = "line 1\n\tline 2 \x1b[31m";

static onnx_model described(void)
{
    onnx_model m = onnx_relu();
    m.proto->producer_name = "maker";
    m.proto->producer_version = "1.2";
    m.proto->domain = "org.example";
    m.proto->has_model_version = 1;
    m.proto->model_version = -7;
    m.proto->doc_string = (char *)note;
    m.graph->doc_string = "what the graph does";
    m.proto->n_metadata_props = 2;
    m.proto->metadata_props = GRT_ARENA_ARRAY(m.arena, Onnx__StringStringEntryProto *, 2);
    for (size_t i = 0; i < 2; i++) {
        Onnx__StringStringEntryProto *entry = GRT_ARENA_NEW(m.arena, Onnx__StringStringEntryProto);
        onnx__string_string_entry_proto__init(entry);
        entry->key = i ? "empty" : "names";
        entry->value = i ? NULL : "{0: 'cat',\n 1: 'dog'}";
        m.proto->metadata_props[i] = entry;
    }
    return m;
}

static void expect_described(const grt_model *model)
{
    grt_metadata about = {.struct_size = sizeof about};
    ck_assert_int_eq(grt_model_metadata(model, &about), GRT_OK);
    ck_assert_str_eq(about.producer_name, "maker");
    ck_assert_str_eq(about.producer_version, "1.2");
    ck_assert_str_eq(about.domain, "org.example");
    ck_assert_str_eq(about.description, note);
    ck_assert_str_eq(about.graph_name, "g");
    ck_assert_str_eq(about.graph_description, "what the graph does");
    ck_assert_int_eq(about.model_version, -7);
    ck_assert_int_eq(about.ir_version, 10);
    ck_assert_uint_eq(about.n_entries, 2);
    ck_assert_str_eq(about.entries[0].key, "names");
    ck_assert_str_eq(about.entries[0].value, "{0: 'cat',\n 1: 'dog'}");
    ck_assert_str_eq(about.entries[1].value, "");
}

START_TEST(models_and_plans_keep_metadata)
{
    onnx_model m = described();
    grt_model *model = onnx_open(&m, runtime), *plan = onnx_open_plan(&m, runtime, NULL);
    expect_described(model);
    expect_described(plan);
    grt_model_release(plan);
    grt_model_release(model);
    onnx_release(&m);
}
END_TEST

START_TEST(nothing_said_is_empty_text)
{
    onnx_model m = onnx_relu();
    grt_model *model = onnx_open_plan(&m, runtime, NULL);
    grt_metadata about = {.struct_size = sizeof about};
    ck_assert_int_eq(grt_model_metadata(model, &about), GRT_OK);
    ck_assert_str_eq(about.domain, "");
    ck_assert_str_eq(about.description, "");
    ck_assert_uint_eq(about.n_entries, 0);
    ck_assert_int_eq(grt_model_metadata(NULL, &about), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_model_metadata(model, NULL), GRT_STATUS_INVALID_ARGUMENT);
    about.struct_size = 0;
    ck_assert_int_eq(grt_model_metadata(model, &about), GRT_STATUS_INVALID_ARGUMENT);
    grt_model_release(model);
    onnx_release(&m);
}
END_TEST

/* CatBoost's version is a report of several lines, which is none for a line. */
START_TEST(versions_of_many_lines)
{
    onnx_model m = described();
    m.proto->producer_version = (char *)note;
    m.proto->domain = (char *)note;
    grt_model *model = onnx_open_plan(&m, runtime, NULL);
    grt_metadata about = {.struct_size = sizeof about};
    grt_model_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(grt_model_metadata(model, &about), GRT_OK);
    ck_assert_str_eq(about.producer_version, note);
    ck_assert_str_eq(about.domain, note);
    ck_assert_int_eq(grt_model_get_info(model, &info), GRT_OK);
    ck_assert_str_eq(info.producer, "maker");
    grt_model_release(model);
    onnx_release(&m);
}
END_TEST

/* Names still have to be printable. */
START_TEST(only_descriptions_are_free_text)
{
    onnx_model m = described();
    m.graph->name = "a\nb";
    grt_model *model;
    const grt_string bytes = onnx_bytes(&m);
    ck_assert_int_eq(grt_model_open_memory(runtime, bytes.data, bytes.size, &model),
                     GRT_STATUS_INVALID_MODEL);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "GraphProto.name"));
    onnx_release(&m);
}
END_TEST

Suite *suite_test_metadata(void)
{
    Suite *suite = suite_create("metadata");
    TCase *tests = tcase_create("metadata");
    tcase_add_checked_fixture(tests, runtime_open, runtime_close);
    tcase_add_test(tests, models_and_plans_keep_metadata);
    tcase_add_test(tests, nothing_said_is_empty_text);
    tcase_add_test(tests, versions_of_many_lines);
    tcase_add_test(tests, only_descriptions_are_free_text);
    suite_add_tcase(suite, tests);
    return suite;
}
