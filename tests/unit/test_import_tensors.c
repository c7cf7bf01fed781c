/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors from messages: every dtype in every form, wrong sizes, sparse ones, external files. */
#include "tests/unit/files.h"
#include "tests/unit/onnx_model.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- one tensor ---- */

/* Pack and unpack a message, so that raw_data is what the wire walk makes of it. */
static grt_status decoded(onnx_model *m, const Onnx__TensorProto *proto, grt_tensor *out)
{
    size_t size = onnx__tensor_proto__get_packed_size(proto);
    uint8_t *bytes = grt_arena_alloc(m->arena, size);
    onnx__tensor_proto__pack(proto, bytes);
    ProtobufCMessage *message;
    grt_status status = grt_pb_unpack(&onnx__tensor_proto__descriptor, bytes, size, m->arena, &message);
    return status == GRT_OK ? grt_pb_tensor((Onnx__TensorProto *)message, m->arena, out) : status;
}

static void assert_refused(onnx_model *m, const Onnx__TensorProto *proto, const char *a, const char *b)
{
    grt_tensor t;
    ck_assert_int_eq(decoded(m, proto, &t), GRT_STATUS_INVALID_MODEL);
    ck_assert_msg(strstr(grt_last_error(), a) && strstr(grt_last_error(), b),
                  "'%s' does not say '%s' and '%s'", grt_last_error(), a, b);
}

START_TEST(raw_data_of_every_dtype)
{
    onnx_model m = onnx_create();
    uint8_t data[64];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = i & 1;
    for (int d = 1; d < GRT_DTYPE_COUNT; d++) {
        if (d == GRT_DTYPE_STRING)
            continue;
        size_t size = (3 * grt_dtype_bits((grt_dtype)d) + 7) / 8;
        grt_tensor t;
        ck_assert_msg(decoded(&m, onnx_raw(&m, "t", (grt_dtype)d, "3", data, size), &t) == GRT_OK, "%s",
                      grt_last_error());
        ck_assert_int_eq(t.dtype, d);
        ck_assert_int_eq(t.dims[0], 3);
        ck_assert_mem_eq(t.data, data, size);
        size_t align = grt_dtype_bits((grt_dtype)d) / 8;
        ck_assert(align < 2 || align > 8 || (uintptr_t)t.data % align == 0);
        char expected[64];
        snprintf(expected, sizeof expected, "raw_data has %zu bytes", size + 1);
        assert_refused(&m, onnx_raw(&m, "t", (grt_dtype)d, "3", data, size + 1), "tensor 't'", expected);
        assert_refused(&m, onnx_raw(&m, "t", (grt_dtype)d, "3", data, size - 1), "tensor 't'", "takes");
    }
    onnx_release(&m);
}
END_TEST

/* dtype, entries of int32_data, and the bytes that three elements become. */
START_TEST(int32_data_of_narrow_dtypes)
{
    static const struct {
        grt_dtype dtype;
        int n;
        int32_t entries[3];
        uint8_t bytes[6];
    } cases[] = {
        {GRT_DTYPE_INT8, 3, {-1, 2, -128}, {0xff, 2, 0x80}},
        {GRT_DTYPE_UINT8, 3, {255, 2, 0}, {0xff, 2, 0}},
        {GRT_DTYPE_BOOL, 3, {1, 0, 7}, {1, 0, 1}},
        {GRT_DTYPE_INT16, 3, {-2, 1, 256}, {0xfe, 0xff, 1, 0, 0, 1}},
        {GRT_DTYPE_UINT16, 3, {65535, 1, 2}, {0xff, 0xff, 1, 0, 2, 0}},
        {GRT_DTYPE_FLOAT16, 3, {0x3c00, 0, 0x8000}, {0, 0x3c, 0, 0, 0, 0x80}},
        {GRT_DTYPE_BFLOAT16, 3, {0x3f80, 0, 0x8000}, {0x80, 0x3f, 0, 0, 0, 0x80}},
        {GRT_DTYPE_FLOAT8E4M3FN, 3, {0x38, 0x80, 255}, {0x38, 0x80, 0xff}},
        {GRT_DTYPE_FLOAT8E8M0, 3, {127, 0, 255}, {127, 0, 0xff}},
        {GRT_DTYPE_INT4, 2, {0x21, 0x0f}, {0x21, 0x0f}},
        {GRT_DTYPE_UINT4, 2, {0xff, 0x01}, {0xff, 0x01}},
        {GRT_DTYPE_FLOAT4E2M1, 2, {0x76, 0x01}, {0x76, 0x01}},
        {GRT_DTYPE_INT2, 1, {0x39}, {0x39}},
        {GRT_DTYPE_UINT2, 1, {0x1b}, {0x1b}},
    };
    onnx_model m = onnx_create();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t entries[3];
        memcpy(entries, cases[i].entries, sizeof entries);
        Onnx__TensorProto *p = onnx_tensor(&m, "t", "3");
        p->n_float_data = 0;
        p->data_type = (int32_t)cases[i].dtype;
        p->int32_data = entries;
        p->n_int32_data = (size_t)cases[i].n;
        grt_tensor t;
        ck_assert_msg(decoded(&m, p, &t) == GRT_OK, "%s", grt_last_error());
        ck_assert_mem_eq(t.data, cases[i].bytes, grt_tensor_bytes(&t));
        entries[0] = 70000;
        assert_refused(&m, p, "int32_data[0] is 70000", grt_dtype_name(cases[i].dtype));
        p->n_int32_data++;
        assert_refused(&m, p, "int32_data has", "takes");
    }
    onnx_release(&m);
}
END_TEST

START_TEST(wide_lists)
{
    onnx_model m = onnx_create();
    grt_tensor t;
    Onnx__TensorProto *p = onnx_tensor(&m, "t", "2");
    p->n_float_data = 0;
    uint64_t u[] = {UINT32_MAX, 7};
    p->uint64_data = u;
    p->n_uint64_data = 2;
    p->data_type = GRT_DTYPE_UINT32;
    ck_assert_int_eq(decoded(&m, p, &t), GRT_OK);
    ck_assert_uint_eq(((uint32_t *)t.data)[0], UINT32_MAX);
    p->data_type = GRT_DTYPE_UINT64;
    ck_assert_int_eq(decoded(&m, p, &t), GRT_OK);
    ck_assert_uint_eq(((uint64_t *)t.data)[1], 7);
    u[0]++;
    p->data_type = GRT_DTYPE_UINT32;
    assert_refused(&m, p, "uint64_data[0] is 4294967296", "does not fit uint32");
    p->n_uint64_data = 0;
    float f[] = {1, 2, 3, 4};
    p->float_data = f;
    p->n_float_data = 4;
    p->data_type = GRT_DTYPE_COMPLEX64;
    ck_assert_int_eq(decoded(&m, p, &t), GRT_OK);
    ck_assert_mem_eq(t.data, f, sizeof f);
    p->data_type = GRT_DTYPE_DOUBLE;
    assert_refused(&m, p, "float64 elements belong in double_data", "float_data");
    onnx_release(&m);
}
END_TEST

START_TEST(strings)
{
    onnx_model m = onnx_create();
    Onnx__TensorProto *p = onnx_tensor(&m, "t", "2");
    p->n_float_data = 0;
    p->data_type = GRT_DTYPE_STRING;
    ProtobufCBinaryData list[] = {{3, (uint8_t *)"a\0b"}, {0, NULL}};
    p->string_data = list;
    p->n_string_data = 2;
    grt_tensor t;
    ck_assert_int_eq(decoded(&m, p, &t), GRT_OK);
    const grt_string *s = t.data;
    ck_assert_uint_eq(s[0].size, 3);
    ck_assert_mem_eq(s[0].data, "a\0b", 3);
    ck_assert_uint_eq(s[1].size, 0);
    assert_refused(&m, onnx_raw(&m, "t", GRT_DTYPE_STRING, "1", "0123456789abcdef", 16), "tensor 't'",
                   "string_data");
    onnx_release(&m);
}
END_TEST

START_TEST(empty_and_scalar)
{
    onnx_model m = onnx_create();
    grt_tensor t;
    ck_assert_int_eq(decoded(&m, onnx_tensor(&m, "t", "0,5"), &t), GRT_OK);
    ck_assert_int_eq(grt_tensor_elements(&t), 0);
    ck_assert_int_eq(decoded(&m, onnx_raw(&m, "t", GRT_DTYPE_FLOAT, "3,0", "", 0), &t), GRT_OK);
    ck_assert_int_eq(decoded(&m, onnx_tensor(&m, "t", ""), &t), GRT_OK);
    ck_assert_int_eq(t.rank, 0);
    ck_assert_int_eq(grt_tensor_elements(&t), 1);
    onnx_release(&m);
}
END_TEST

START_TEST(impossible_tensors)
{
    onnx_model m = onnx_create();
    uint8_t data[8] = {0};
    assert_refused(&m, onnx_raw(&m, "huge", GRT_DTYPE_FLOAT, "1099511627776", data, 8), "tensor 'huge'",
                   "takes 4398046511104");
    assert_refused(&m, onnx_raw(&m, "over", GRT_DTYPE_FLOAT, "4294967296,4294967296,4", data, 8),
                   "tensor 'over'", "overflow");
    assert_refused(&m, onnx_raw(&m, "less", GRT_DTYPE_FLOAT, "-1", data, 8), "dim 0 is -1", "negative");
    assert_refused(&m, onnx_raw(&m, "deep", GRT_DTYPE_INT8, "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", data, 1),
                   "rank 17", "16");
    assert_refused(&m, onnx_raw(&m, "what", (grt_dtype)99, "1", data, 1), "data_type 99",
                   "not one that is known");
    Onnx__TensorProto *both = onnx_tensor(&m, "both", "2");
    both->has_raw_data = 1;
    both->raw_data = (ProtobufCBinaryData){8, data};
    assert_refused(&m, both, "both raw_data and float_data", "only one");
    onnx_release(&m);
}
END_TEST

START_TEST(raw_bools_are_normal)
{
    onnx_model m = onnx_create();
    grt_tensor t;
    ck_assert_int_eq(decoded(&m, onnx_raw(&m, "t", GRT_DTYPE_BOOL, "3", "\2\0\1", 3), &t), GRT_OK);
    ck_assert_mem_eq(t.data, "\1\0\1", 3);
    onnx_release(&m);
}
END_TEST

/* ---- sparse ---- */

static Onnx__SparseTensorProto *sparse(onnx_model *m, Onnx__TensorProto *indices, int64_t *dims,
                                       size_t n_dims)
{
    Onnx__SparseTensorProto *s = GRT_ARENA_NEW(m->arena, Onnx__SparseTensorProto);
    onnx__sparse_tensor_proto__init(s);
    s->values = onnx_tensor(m, "w", "2"); /* 0, 1 */
    s->values->float_data[0] = 9;
    s->indices = indices;
    s->dims = dims;
    s->n_dims = n_dims;
    m->graph->sparse_initializer = GRT_ARENA_ARRAY(m->arena, Onnx__SparseTensorProto *, 1);
    m->graph->sparse_initializer[0] = s;
    m->graph->n_sparse_initializer = 1;
    onnx_output(m, m->graph, "w");
    return s;
}

static void assert_dense(onnx_model *m)
{
    static const float expected[] = {0, 0, 9, 0, 0, 1};
    ir_module *module = NULL;
    ck_assert_msg(onnx_import(m, &module) == GRT_OK, "%s", grt_last_error());
    const grt_tensor *t = module->main->outputs[0].value->type.data;
    ck_assert_int_eq(t->dims[0], 2);
    ck_assert_mem_eq(t->data, expected, sizeof expected);
    ir_module_release(module);
    onnx_release(m);
}

START_TEST(sparse_linear_and_coordinates)
{
    int64_t dims[] = {2, 3}, linear[] = {2, 5}, pairs[] = {0, 2, 1, 2};
    onnx_model m = onnx_create();
    sparse(&m, onnx_raw(&m, "", GRT_DTYPE_INT64, "2", linear, sizeof linear), dims, 2);
    assert_dense(&m);
    m = onnx_create();
    sparse(&m, onnx_raw(&m, "", GRT_DTYPE_INT64, "2,2", pairs, sizeof pairs), dims, 2);
    assert_dense(&m);
}
END_TEST

static void assert_sparse_refused(onnx_model *m, const char *a)
{
    ir_module *module = NULL;
    ck_assert_int_ne(onnx_import(m, &module), GRT_OK);
    ck_assert_msg(strstr(grt_last_error(), a) && strstr(grt_last_error(), "'w'"), "%s", grt_last_error());
    onnx_release(m);
}

START_TEST(sparse_out_of_range)
{
    int64_t dims[] = {2, 3}, linear[] = {2, 6}, pairs[] = {0, 3, 1, 2}, negative[] = {-1, 2};
    onnx_model m = onnx_create();
    sparse(&m, onnx_raw(&m, "", GRT_DTYPE_INT64, "2", linear, sizeof linear), dims, 2);
    assert_sparse_refused(&m, "linear index 6");
    m = onnx_create();
    sparse(&m, onnx_raw(&m, "", GRT_DTYPE_INT64, "2", negative, sizeof negative), dims, 2);
    assert_sparse_refused(&m, "linear index -1");
    m = onnx_create();
    sparse(&m, onnx_raw(&m, "", GRT_DTYPE_INT64, "2,2", pairs, sizeof pairs), dims, 2);
    assert_sparse_refused(&m, "index 3");
}
END_TEST

START_TEST(sparse_bomb)
{
    int64_t dims[] = {1 << 20, 1 << 19}, linear[] = {2, 6};
    onnx_model m = onnx_create();
    sparse(&m, onnx_raw(&m, "", GRT_DTYPE_INT64, "2", linear, sizeof linear), dims, 2);
    assert_sparse_refused(&m, "when made dense");
}
END_TEST

/* ---- external data ---- */

static char directory[FILES_NAME];

static void in_directory(char *out, const char *name)
{
    snprintf(out, 256, "%s/%s", directory, name);
}

static void write_file(const char *name, const void *data, size_t size)
{
    char path[256];
    in_directory(path, name);
    files_write(path, data, size);
}

static void make_directory(void)
{
    static const float weights[] = {-1, 0, 1, 2, 3};
    files_directory(directory);
    write_file("w.bin", weights, sizeof weights);
    write_file("odd.bin", "\0\0\0\0\x80\x3f\0\0\0\x40", 10);
}

static void remove_directory(void)
{
    files_remove(directory);
}

static void external_entry(onnx_model *m, Onnx__TensorProto *t, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *e = GRT_ARENA_NEW(m->arena, Onnx__StringStringEntryProto);
    Onnx__StringStringEntryProto **list =
        GRT_ARENA_ARRAY(m->arena, Onnx__StringStringEntryProto *, t->n_external_data + 1);
    onnx__string_string_entry_proto__init(e);
    e->key = (char *)(uintptr_t)key;
    e->value = (char *)(uintptr_t)value;
    for (size_t i = 0; i < t->n_external_data; i++)
        list[i] = t->external_data[i];
    list[t->n_external_data++] = e;
    t->external_data = list;
}

/* A model whose float32[2] initializer w, its only output, lies in `location`; offset and length may be NULL.
 */
static grt_status import_external_model(const char *location, const char *offset, const char *length,
                                        bool links, ir_module **out_module)
{
    onnx_model m = onnx_create();
    Onnx__TensorProto *t = onnx_tensor(&m, "w", "2");
    t->n_float_data = 0;
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    external_entry(&m, t, "location", location);
    if (offset)
        external_entry(&m, t, "offset", offset);
    if (length)
        external_entry(&m, t, "length", length);
    onnx_initializer(&m, m.graph, t);
    onnx_output(&m, m.graph, "w");
    char path[256];
    in_directory(path, "m.onnx");
    onnx_write(&m, path);
    compile_source source = {.path = path, .allow_symlinks = links};
    grt_status status = ir_import(&source, out_module);
    onnx_release(&m);
    return status;
}

static void assert_external(const char *location, const char *offset, const char *length, bool links, float a,
                            float b)
{
    ir_module *module = NULL;
    ck_assert_msg(import_external_model(location, offset, length, links, &module) == GRT_OK, "%s",
                  grt_last_error());
    const float *data = module->main->outputs[0].value->type.data->data;
    ck_assert_uint_eq((uintptr_t)data % sizeof *data, 0);
    ck_assert(data[0] == a && data[1] == b);
    ir_module_release(module);
}

static void assert_external_refused(const char *location, const char *offset, const char *length,
                                    const char *a)
{
    ir_module *module = NULL;
    ck_assert_int_ne(import_external_model(location, offset, length, false, &module), GRT_OK);
    ck_assert_ptr_null(module);
    ck_assert_msg(strstr(grt_last_error(), a) && strstr(grt_last_error(), "tensor 'w'"),
                  "'%s' does not say '%s'", grt_last_error(), a);
}

START_TEST(external_data)
{
    assert_external("w.bin", NULL, NULL, false, -1, 0);
    assert_external("w.bin", "8", NULL, false, 1, 2);
    assert_external("./w.bin", "12", "8", false, 2, 3);
    assert_external("odd.bin", "2", "8", false, 1, 2);
}
END_TEST

START_TEST(external_data_out_of_bounds)
{
    assert_external_refused("w.bin", "16", NULL, "reach past the end of 'w.bin', which has 20 bytes");
    assert_external_refused("w.bin", "9223372036854775807", NULL, "reach past the end");
    assert_external_refused("w.bin", "0", "4", "length is 4 bytes, but float32[2] takes 8");
    assert_external_refused("w.bin", "-8", NULL, "offset '-8' is not a number");
    assert_external_refused("w.bin", "99999999999999999999", NULL, "is not a number");
    assert_external_refused("", NULL, NULL, "no location");
    assert_external_refused("none.bin", NULL, NULL, "cannot be opened");
}
END_TEST

START_TEST(external_data_must_not_escape)
{
    char link[256], sub[256];
    assert_external_refused("/etc/passwd", NULL, NULL, "not a relative path");
    assert_external_refused("../w.bin", NULL, NULL, "not a relative path");
    assert_external_refused("a/../../w.bin", NULL, NULL, "not a relative path");
    assert_external_refused(".", NULL, NULL, "not a regular file");
    in_directory(link, "link.bin");
    ck_assert_int_eq(symlink("/etc/passwd", link), 0);
    assert_external_refused("link.bin", NULL, NULL, "symbolic link");
    in_directory(sub, "sub");
    ck_assert_int_eq(symlink(directory, sub), 0);
    assert_external_refused("sub/w.bin", NULL, NULL, "symbolic link");
    in_directory(link, "fifo");
    char command[300];
    snprintf(command, sizeof command, "mkfifo %s", link);
    ck_assert_int_eq(system(command), 0);
    assert_external_refused("fifo", NULL, NULL, "not a regular file");
}
END_TEST

START_TEST(external_links_when_allowed)
{
    char link[256];
    in_directory(link, "link.bin");
    ck_assert_int_eq(symlink("w.bin", link), 0);
    assert_external("link.bin", "8", NULL, true, 1, 2);
}
END_TEST

static const float in_memory[] = {0, 1, 2, 3, 4};

/* A model from memory whose weight "w" is two floats at `offset` of the location, given as a buffer. */
static grt_status open_with_buffer(const char *location, const char *offset, const char *given,
                                   grt_runtime *runtime, grt_model **out_model)
{
    const grt_external_data data[] = {{.location = "other.bin", .data = ""},
                                      {.location = given, .data = in_memory, .size = sizeof in_memory}};
    const grt_compile_options options = {
        .struct_size = sizeof options, .external_data = data, .n_external_data = 2};
    onnx_model m = onnx_create();
    Onnx__TensorProto *t = onnx_tensor(&m, "w", "2");
    t->n_float_data = 0;
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    external_entry(&m, t, "location", location);
    external_entry(&m, t, "offset", offset);
    onnx_initializer(&m, m.graph, t);
    onnx_node(&m, m.graph, "Identity", "w", "y");
    onnx_output(&m, m.graph, "y");
    const grt_string bytes = onnx_bytes(&m);
    const grt_status status =
        grt_model_open_memory_with(runtime, bytes.data, bytes.size, &options, out_model);
    onnx_release(&m);
    return status;
}

START_TEST(external_data_in_buffers)
{
    grt_runtime *runtime;
    grt_model *model;
    grt_session *session;
    grt_context *context;
    grt_tensor y;
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
    ck_assert_msg(open_with_buffer("/any name", "8", "/any name", runtime, &model) == GRT_OK, "%s",
                  grt_last_error());
    ck_assert_int_eq(grt_session_create(model, "cpu", NULL, &session), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    ck_assert_int_eq(grt_context_get_output(context, 0, &y), GRT_OK);
    ck_assert_float_eq(((const float *)y.data)[0], 2);
    ck_assert_float_eq(((const float *)y.data)[1], 3);
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    static const struct {
        const char *location, *offset, *given, *message;
    } wrong[] = {
        {"w.bin", "16", "w.bin", "reach past the end of 'w.bin', which has 20 bytes"},
        {"w.bin", "9223372036854775807", "w.bin", "reach past the end"},
        {"other.bin", "0", "w.bin", "reach past the end of 'other.bin', which has 0 bytes"},
        {"w.bin", "0", "W.bin", "no directory to look for 'w.bin' in; give that as external_data"},
        {"w.bin", "0", NULL, "no directory"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_int_eq(
            open_with_buffer(wrong[i].location, wrong[i].offset, wrong[i].given, runtime, &model),
            GRT_STATUS_INVALID_MODEL);
        ck_assert_msg(strstr(grt_last_error(), wrong[i].message), "%s", grt_last_error());
    }
    grt_runtime_release(runtime);
}
END_TEST
START_TEST(external_data_from_memory)
{
    onnx_model m = onnx_create();
    Onnx__TensorProto *t = onnx_tensor(&m, "w", "2");
    t->n_float_data = 0;
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    external_entry(&m, t, "location", "w.bin");
    onnx_initializer(&m, m.graph, t);
    onnx_output(&m, m.graph, "w");
    assert_sparse_refused(&m, "read from memory");
}
END_TEST

/* ---- values in files ---- */

static void assert_round_trip(const grt_value *value, grt_kind kind)
{
    char path[256];
    grt_value *back = NULL;
    in_directory(path, "value.pb");
    ck_assert_msg(grt_value_write_pb(value, path) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(grt_value_read_pb(path, kind, kind, &back) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(back->kind, kind);
    ck_assert_uint_eq(back->n, value->n);
    ck_assert_int_eq(back->t.dtype, value->t.dtype);
    const grt_tensor *a = value->n ? &value->items[0].t : &value->t,
                     *b = back->n ? &back->items[0].t : &back->t;
    if (a->data) {
        ck_assert(grt_tensor_same_type(a, b));
        ck_assert_mem_eq(a->data, b->data, grt_tensor_bytes(a));
    }
    grt_value_clear(back);
    free(back);
}

START_TEST(values_in_files)
{
    double data[] = {1.5, -2};
    grt_tensor t = {.dtype = GRT_DTYPE_DOUBLE, .rank = 2, .dims = {1, 2}, .data = data};
    grt_value tensor = {0}, list = {.kind = GRT_KIND_SEQUENCE}, maybe = {.kind = GRT_KIND_OPTIONAL}, *item;
    ck_assert_int_eq(grt_value_copy_tensor(&tensor, &t), GRT_OK);
    ck_assert_int_eq(grt_value_insert(&list, 0, &item), GRT_OK);
    ck_assert_int_eq(grt_value_copy_tensor(item, &t), GRT_OK);
    ck_assert_int_eq(grt_value_insert(&maybe, 0, &item), GRT_OK);
    ck_assert_int_eq(grt_value_copy_tensor(item, &t), GRT_OK);
    list.t.dtype = maybe.t.dtype = GRT_DTYPE_DOUBLE;
    assert_round_trip(&tensor, GRT_KIND_TENSOR);
    assert_round_trip(&list, GRT_KIND_SEQUENCE);
    assert_round_trip(&maybe, GRT_KIND_OPTIONAL);
    grt_value_clear(&maybe);
    maybe.kind = GRT_KIND_OPTIONAL;
    assert_round_trip(&maybe, GRT_KIND_OPTIONAL);
    grt_value_clear(&tensor);
    grt_value_clear(&list);
}
END_TEST

START_TEST(bad_value_files)
{
    char path[256];
    grt_value *value = NULL;
    in_directory(path, "value.pb");
    ck_assert_int_eq(grt_value_read_pb(path, GRT_KIND_TENSOR, GRT_KIND_TENSOR, &value), GRT_STATUS_IO);
    write_file("value.pb", "\x08\x02\x10\x01", 4); /* float32[2] without data */
    ck_assert_int_eq(grt_value_read_pb(path, GRT_KIND_TENSOR, GRT_KIND_TENSOR, &value),
                     GRT_STATUS_INVALID_MODEL);
    ck_assert_msg(strstr(grt_last_error(), "value.pb"), "%s", grt_last_error());
    ck_assert_ptr_null(value);
}
END_TEST

Suite *suite_test_import_tensors(void);
Suite *suite_test_import_tensors(void)
{
    Suite *suite = suite_create("import_tensors");
    TCase *messages = tcase_create("messages"), *files = tcase_create("files");
    tcase_add_test(messages, raw_data_of_every_dtype);
    tcase_add_test(messages, int32_data_of_narrow_dtypes);
    tcase_add_test(messages, wide_lists);
    tcase_add_test(messages, strings);
    tcase_add_test(messages, empty_and_scalar);
    tcase_add_test(messages, impossible_tensors);
    tcase_add_test(messages, raw_bools_are_normal);
    tcase_add_test(messages, sparse_linear_and_coordinates);
    tcase_add_test(messages, sparse_out_of_range);
    tcase_add_test(messages, sparse_bomb);
    tcase_add_test(messages, external_data_from_memory);
    tcase_add_test(messages, external_data_in_buffers);
    suite_add_tcase(suite, messages);
    tcase_add_checked_fixture(files, make_directory, remove_directory);
    tcase_add_test(files, external_data);
    tcase_add_test(files, external_data_out_of_bounds);
    tcase_add_test(files, external_data_must_not_escape);
    tcase_add_test(files, external_links_when_allowed);
    tcase_add_test(files, values_in_files);
    tcase_add_test(files, bad_value_files);
    suite_add_tcase(suite, files);
    return suite;
}
