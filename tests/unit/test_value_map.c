/* SPDX-License-Identifier: Apache-2.0 */
/* Maps as values: how they are made, kept in .pb files, bound and refused. */
#include "src/base/value_map.h"
#include "tests/unit/onnx_model.h"
#include "tests/unit/runtime.h"

#include <graphrt/graphrt.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static grt_tensor row(grt_dtype dtype, int64_t n, const void *data)
{
    return (grt_tensor){.dtype = dtype, .rank = 1, .dims = {n}, .data = (void *)(uintptr_t)data};
}

static const grt_string words[] = {{"pear", 4}, {"fig", 3}, {"", 0}, {"figs", 4}};
static const float numbers[] = {1, 2, 3, 4};

static grt_value *fruit(void)
{
    const grt_tensor keys = row(GRT_DTYPE_STRING, 4, words), values = row(GRT_DTYPE_FLOAT, 4, numbers);
    grt_value *map;
    ck_assert_int_eq(grt_value_map(&keys, &values, &map), GRT_OK);
    return map;
}

static void expect_fruit(const grt_value *map)
{
    static const int sorted[] = {2, 1, 3, 0};
    grt_tensor keys, values;
    ck_assert_int_eq(grt_value_kind(map), GRT_KIND_MAP);
    ck_assert_uint_eq(grt_value_count(map), 2);
    ck_assert_int_eq(grt_value_tensor(grt_value_item(map, 0), &keys), GRT_OK);
    ck_assert_int_eq(grt_value_tensor(grt_value_item(map, 1), &values), GRT_OK);
    ck_assert_int_eq(keys.dims[0], 4);
    for (int i = 0; i < 4; i++) {
        const grt_string key = ((const grt_string *)keys.data)[i], expected = words[sorted[i]];
        ck_assert(key.size == expected.size && !memcmp(key.data, expected.data, key.size));
        ck_assert_float_eq(((const float *)values.data)[i], numbers[sorted[i]]);
    }
}

START_TEST(pairs_are_in_the_order_of_their_keys)
{
    grt_value *map = fruit();
    expect_fruit(map);
    grt_value_release(map);
}
END_TEST

START_TEST(what_is_no_map_is_refused)
{
    static const int64_t twice[] = {5, -1, 5, 2};
    const grt_tensor values = row(GRT_DTYPE_FLOAT, 4, numbers), fewer = row(GRT_DTYPE_FLOAT, 3, numbers),
                     keys = row(GRT_DTYPE_INT64, 4, twice), real = row(GRT_DTYPE_FLOAT, 4, numbers),
                     few = row(GRT_DTYPE_INT64, 3, twice);
    grt_tensor square = values;
    square.rank = 2;
    square.dims[1] = 1;
    grt_value *map;
    ck_assert_int_eq(grt_value_map(&keys, &values, &map), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "elements 0 and 2 are the same key"));
    ck_assert_int_eq(grt_value_map(&real, &values, &map), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_value_map(&few, &values, &map), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_value_map(&few, &square, &map), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_value_map(NULL, &fewer, &map), GRT_STATUS_INVALID_ARGUMENT);
}
END_TEST

START_TEST(files_keep_maps)
{
    char path[] = "/tmp/graphrt-map-XXXXXX";
    close(mkstemp(path));
    grt_value *map = fruit(), *list, *back;
    ck_assert_int_eq(grt_value_write_pb(map, path), GRT_OK);
    ck_assert_int_eq(grt_value_read_pb(path, GRT_KIND_MAP, GRT_KIND_MAP, &back), GRT_OK);
    expect_fruit(back);
    grt_value_release(back);
    ck_assert_int_eq(grt_value_sequence(GRT_DTYPE_FLOAT, (grt_value *[]){map, map}, 2, &list), GRT_OK);
    ck_assert_int_eq(grt_value_write_pb(list, path), GRT_OK);
    ck_assert_int_eq(grt_value_read_pb(path, GRT_KIND_SEQUENCE, GRT_KIND_MAP, &back), GRT_OK);
    ck_assert_uint_eq(grt_value_count(back), 2);
    expect_fruit(grt_value_item(back, 1));
    grt_value_release(back);
    grt_value_release(list);
    grt_value_release(map);
    unlink(path);
}
END_TEST

/* The type of an input becomes a map, or a sequence of maps, to what it was. */
static void wrap(onnx_model *m, Onnx__ValueInfoProto *info, grt_dtype keys, bool sequence)
{
    Onnx__TypeProto *type = GRT_ARENA_NEW(m->arena, Onnx__TypeProto);
    Onnx__TypeProto__Map *map = GRT_ARENA_NEW(m->arena, Onnx__TypeProto__Map);
    onnx__type_proto__init(type);
    onnx__type_proto__map__init(map);
    map->has_key_type = 1;
    map->key_type = (int32_t)keys;
    map->value_type = info->type;
    type->value_case = ONNX__TYPE_PROTO__VALUE_MAP_TYPE;
    type->map_type = map;
    info->type = type;
    if (!sequence)
        return;
    Onnx__TypeProto *outer = GRT_ARENA_NEW(m->arena, Onnx__TypeProto);
    Onnx__TypeProto__Sequence *list = GRT_ARENA_NEW(m->arena, Onnx__TypeProto__Sequence);
    onnx__type_proto__init(outer);
    onnx__type_proto__sequence__init(list);
    list->elem_type = type;
    outer->value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
    outer->sequence_type = list;
    info->type = outer;
}

static onnx_model vectorizer(grt_dtype keys, bool sequence)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, NULL);
    wrap(&m, m.graph->input[0], keys, sequence);
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "DictVectorizer", "x", "y");
    node->domain = "ai.onnx.ml";
    Onnx__AttributeProto *a =
        onnx_attr(&m, node, "string_vocabulary", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    a->n_strings = 2;
    a->strings = GRT_ARENA_ARRAY(m.arena, ProtobufCBinaryData, 2);
    a->strings[0] = (ProtobufCBinaryData){3, (uint8_t *)"fig"};
    a->strings[1] = (ProtobufCBinaryData){4, (uint8_t *)"plum"};
    onnx_output(&m, m.graph, "y");
    onnx_opset(&m, "ai.onnx.ml", 3);
    return m;
}

START_TEST(inputs_are_bound_that_fit)
{
    static const int64_t whole[] = {1, 2, 3, 4};
    const grt_tensor ints = row(GRT_DTYPE_INT64, 4, whole), values = row(GRT_DTYPE_FLOAT, 4, numbers);
    onnx_model m = vectorizer(GRT_DTYPE_STRING, false);
    grt_model *model = onnx_open_plan(&m, runtime, NULL);
    grt_session *session;
    grt_context *context;
    grt_io_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(grt_model_input(model, 0, &info), GRT_OK);
    ck_assert_int_eq(info.kind, GRT_KIND_MAP);
    ck_assert_int_eq(info.dtype, GRT_DTYPE_FLOAT);
    ck_assert_int_eq(grt_model_input_keys(model, 0), GRT_DTYPE_STRING);
    ck_assert_int_eq(grt_model_input_keys(model, 1), GRT_DTYPE_NONE);
    ck_assert_int_eq(grt_model_output_keys(model, 0), GRT_DTYPE_NONE);
    ck_assert_int_eq(grt_session_create(model, "cpu", NULL, &session), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    grt_value *map = fruit(), *other, *list;
    ck_assert_int_eq(grt_value_map(&ints, &values, &other), GRT_OK);
    ck_assert_int_eq(grt_value_sequence(GRT_DTYPE_FLOAT, &map, 1, &list), GRT_OK);
    ck_assert_int_eq(grt_context_set_input_value(context, 0, other), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_context_set_input_value(context, 0, list), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_context_set_input_value(context, 0, map), GRT_OK);
    ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
    grt_tensor y;
    ck_assert_int_eq(grt_context_get_output(context, 0, &y), GRT_OK);
    ck_assert_int_eq(y.rank, 2);
    ck_assert_int_eq(y.dims[1], 2);
    ck_assert_float_eq(((const float *)y.data)[0], 2);
    ck_assert_float_eq(((const float *)y.data)[1], 0);
    grt_value_release(list);
    grt_value_release(other);
    grt_value_release(map);
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    onnx_release(&m);
}
END_TEST

static void expect_refused(onnx_model m, const char *message)
{
    grt_model *model = NULL;
    const grt_string bytes = onnx_bytes(&m);
    ck_assert_int_ne(grt_model_open_memory(runtime, bytes.data, bytes.size, &model), GRT_OK);
    ck_assert_msg(strstr(grt_last_error(), message), "%s", grt_last_error());
    onnx_release(&m);
}

/* Values of a type that cast_to cannot name, which a row of their own cannot be made of: found by fuzzing. */
START_TEST(maps_are_cast_from_what_cast_to_can_name)
{
    static const grt_dtype others[] = {GRT_DTYPE_FLOAT16, GRT_DTYPE_DOUBLE, GRT_DTYPE_BOOL};
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", others[_i], NULL);
    wrap(&m, m.graph->input[0], GRT_DTYPE_INT64, false);
    onnx_node(&m, m.graph, "CastMap", "x", "y")->domain = "ai.onnx.ml";
    onnx_output(&m, m.graph, "y");
    onnx_opset(&m, "ai.onnx.ml", 3);
    expect_refused(m, "they must be float32, int64 or string");
}
END_TEST

START_TEST(operators_refuse_other_kinds)
{
    expect_refused(vectorizer(GRT_DTYPE_INT64, false), "the keys of the map are int64; they must be string");
    expect_refused(vectorizer(GRT_DTYPE_STRING, true), "input 0 is a sequence; it must be a map");
    expect_refused(vectorizer(GRT_DTYPE_DOUBLE, false), "keys of maps are int64 or string");
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, NULL);
    wrap(&m, m.graph->input[0], GRT_DTYPE_INT64, true);
    onnx_input(&m, m.graph, "i", GRT_DTYPE_INT64, "");
    onnx_node(&m, m.graph, "SequenceAt", "x,i", "y");
    onnx_output(&m, m.graph, "y");
    expect_refused(m, "input 0 must be a sequence of tensors");
    m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, NULL);
    wrap(&m, m.graph->input[0], GRT_DTYPE_INT64, false);
    onnx_node(&m, m.graph, "Relu", "x", "y");
    onnx_output(&m, m.graph, "y");
    expect_refused(m, "input 0 is a map; it must be a tensor");
}
END_TEST

/* A sequence says what its items are, and what is bound has to be that throughout. */
START_TEST(sequences_of_sequences_are_not_bound)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "i", GRT_DTYPE_INT64, "");
    Onnx__TypeProto *outer = GRT_ARENA_NEW(m.arena, Onnx__TypeProto);
    Onnx__TypeProto__Sequence *list = GRT_ARENA_NEW(m.arena, Onnx__TypeProto__Sequence);
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, NULL);
    onnx__type_proto__init(outer);
    onnx__type_proto__sequence__init(list);
    list->elem_type = m.graph->input[1]->type;
    outer->value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
    outer->sequence_type = list;
    m.graph->input[1]->type = outer;
    onnx_node(&m, m.graph, "SequenceAt", "x,i", "y");
    onnx_output(&m, m.graph, "y");
    grt_model *model = onnx_open(&m, runtime);
    grt_session *session;
    grt_context *context;
    grt_value *flat, *nested;
    ck_assert_int_eq(grt_session_create(model, "cpu", NULL, &session), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    ck_assert_int_eq(grt_value_sequence(GRT_DTYPE_FLOAT, NULL, 0, &flat), GRT_OK);
    ck_assert_int_eq(grt_value_sequence(GRT_DTYPE_FLOAT, &flat, 1, &nested), GRT_OK);
    ck_assert_int_eq(grt_context_set_input_value(context, 1, flat), GRT_OK);
    ck_assert_int_eq(grt_context_set_input_value(context, 1, nested), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "whose items are others"));
    grt_value_release(nested);
    grt_value_release(flat);
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    onnx_release(&m);
}
END_TEST

Suite *suite_test_value_map(void)
{
    Suite *suite = suite_create("value_map");
    TCase *tests = tcase_create("value_map");
    tcase_add_checked_fixture(tests, runtime_open, runtime_close);
    tcase_add_test(tests, pairs_are_in_the_order_of_their_keys);
    tcase_add_test(tests, what_is_no_map_is_refused);
    tcase_add_test(tests, files_keep_maps);
    tcase_add_test(tests, inputs_are_bound_that_fit);
    tcase_add_test(tests, operators_refuse_other_kinds);
    tcase_add_loop_test(tests, maps_are_cast_from_what_cast_to_can_name, 0, 3);
    tcase_add_test(tests, sequences_of_sequences_are_not_bound);
    suite_add_tcase(suite, tests);
    return suite;
}
