/* SPDX-License-Identifier: Apache-2.0 */
/* Import of bytes that are not a model, of damaged models and of models with many problems. */
#include "tests/unit/import_check.h"

#include <string.h>

typedef struct found {
    int n;
    char text[4096];
} found;

static void collect(void *user, const grt_finding *finding)
{
    found *f = user;
    f->n++;
    strncat(f->text, finding->op, sizeof f->text - strlen(f->text) - 1);
    strncat(f->text, ": ", sizeof f->text - strlen(f->text) - 1);
    strncat(f->text, finding->message, sizeof f->text - strlen(f->text) - 1);
    strncat(f->text, "\n", sizeof f->text - strlen(f->text) - 1);
}

START_TEST(check_lists_everything)
{
    onnx_model m = onnx_relu();
    onnx_node(&m, m.graph, "Add", "y,nowhere", "z");
    onnx_node(&m, m.graph, "Concat", "z,z", "u");
    onnx_attr_int(&m, onnx_node(&m, m.graph, "Abs", "u", "y"), "what", 1);
    onnx_node(&m, m.graph, "Celsius", "x", "w")->domain = (char *)"graphrt";
    onnx_node(&m, m.graph, "Frobnicate", "x", "v");
    onnx_output(&m, m.graph, "nothing");
    grt_string bytes = onnx_bytes(&m);
    compile_source source = {.bytes = bytes.data, .size = bytes.size};
    ir_module *module = NULL;
    found f = {0};
    ck_assert_int_eq(ir_import_check(&source, collect, &f, &module), GRT_OK);
    ck_assert_ptr_null(module);
    ck_assert_msg(f.n == 7, "%d: %s", f.n, f.text);
    ck_assert_ptr_nonnull(strstr(f.text, "Add: input 'nowhere' is not defined"));
    ck_assert_ptr_nonnull(strstr(f.text, "Concat: attribute 'axis' (int) is required"));
    ck_assert_ptr_nonnull(strstr(f.text, "graphrt::Celsius: domain 'graphrt'"));
    ck_assert_ptr_nonnull(strstr(f.text, "Abs: 'y' is defined twice"));
    ck_assert_ptr_nonnull(strstr(f.text, "graph output 'nothing'"));
    ck_assert_ptr_nonnull(strstr(f.text, "Frobnicate: this op is not known"));
    onnx_release(&m);
}
END_TEST

/* However a file is cut, import ends with a message. */
START_TEST(truncated_anywhere)
{
    onnx_model m = onnx_functions();
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "w", "2,3"));
    grt_string bytes = onnx_bytes(&m);
    for (size_t n = 1; n < bytes.size; n++) {
        compile_source source = {.bytes = bytes.data, .size = n};
        ir_module *module = NULL;
        grt_status status = ir_import(&source, &module);
        ck_assert_msg(status == GRT_OK || *grt_last_error(), "at %zu", n);
        if (status == GRT_OK)
            ir_module_release(module);
    }
    onnx_release(&m);
}
END_TEST

START_TEST(every_bit_flipped)
{
    onnx_model m = onnx_functions();
    grt_string bytes = onnx_bytes(&m);
    char *copy = grt_arena_memdup(m.arena, bytes.data, bytes.size);
    for (size_t i = 0; i < 8 * bytes.size; i++) {
        copy[i / 8] = (char)(copy[i / 8] ^ 1 << i % 8);
        compile_source source = {.bytes = copy, .size = bytes.size};
        ir_module *module = NULL;
        if (ir_import(&source, &module) == GRT_OK)
            ck_assert_msg(ir_verify(module) == GRT_OK, "bit %zu: %s", i, grt_last_error());
        ir_module_release(module);
        copy[i / 8] = (char)(copy[i / 8] ^ 1 << i % 8);
    }
    onnx_release(&m);
}
END_TEST

START_TEST(not_a_model)
{
    static const char *const files[] = {
        "", "\n", "PK\3\4", "hello, world", "\x0a", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        compile_source source = {.bytes = files[i], .size = strlen(files[i])};
        ir_module *module = NULL;
        ck_assert_int_eq(ir_import(&source, &module), GRT_STATUS_INVALID_MODEL);
        ck_assert_msg(strstr(grt_last_error(), "ONNX"), "%s", grt_last_error());
    }
    compile_source nothing = {0};
    ir_module *module = NULL;
    ck_assert_int_eq(ir_import(&nothing, &module), GRT_STATUS_INVALID_ARGUMENT);
}
END_TEST

/* Kinds of files that stand in the place of models are told by their names. */
START_TEST(another_kind_of_file)
{
    static const struct {
        const char *begin, *word;
    } files[] = {
        {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git lfs pull"},
        {"PK\3\4............", "ZIP"},
        {"\x80\2}q............", "pickle"},
        {"\x89HDF\r\n\x1a\n........", "HDF5"},
        {"GGUF\3...........", "GGUF"},
        {"\1\1\1\1\1\1\1\1{\"a\":1}...", "safetensors"},
        {"\x18..\1ORTM........", ".ort"},
        {"\x1c..\1TFL3........", "TensorFlow Lite"},
        {"\x1f\x8b\b.............", "gzip"},
        {"\n <!DOCTYPE html>", "HTML"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        compile_source source = {.bytes = files[i].begin, .size = strlen(files[i].begin)};
        ir_module *module = NULL;
        ck_assert_int_eq(ir_import(&source, &module), GRT_STATUS_INVALID_MODEL);
        ck_assert_msg(strstr(grt_last_error(), files[i].word), "%s: %s", files[i].word, grt_last_error());
    }
}
END_TEST

START_TEST(field_given_twice)
{
    onnx_model m = onnx_relu();
    grt_string bytes = onnx_bytes(&m);
    char *twice = grt_arena_alloc(m.arena, 2 * bytes.size);
    memcpy(twice, bytes.data, bytes.size);
    memcpy(twice + bytes.size, bytes.data, bytes.size);
    compile_source source = {.bytes = twice, .size = 2 * bytes.size};
    ir_module *module = NULL;
    ck_assert_int_eq(ir_import(&source, &module), GRT_STATUS_INVALID_MODEL);
    ck_assert_msg(strstr(grt_last_error(), "is given twice"), "%s", grt_last_error());
    onnx_release(&m);
}
END_TEST

/* Two bytes make an empty node of over a hundred: memory has to stay in proportion. */
START_TEST(empty_messages_are_bounded)
{
    size_t n = 4 << 20, head = 6;
    onnx_model m = onnx_create();
    uint8_t *bytes = grt_arena_alloc(m.arena, head + n);
    memcpy(bytes, "\x3a\x80\x80\x80\x02", 5); /* graph, 4 MiB */
    for (size_t i = 0; i < n; i += 2)
        bytes[5 + i] = 0x0a; /* node, 0 bytes */
    compile_source source = {.bytes = bytes, .size = 5 + n};
    ir_module *module = NULL;
    ck_assert_int_eq(ir_import(&source, &module), GRT_STATUS_INVALID_MODEL);
    ck_assert_msg(strstr(grt_last_error(), "out of proportion"), "%s", grt_last_error());
    onnx_release(&m);
}
END_TEST

Suite *suite_test_import_bytes(void);
Suite *suite_test_import_bytes(void)
{
    Suite *suite = suite_create("import_bytes");
    const TTest *const bytes[] = {
        check_lists_everything, truncated_anywhere, every_bit_flipped,          not_a_model,
        another_kind_of_file,   field_given_twice,  empty_messages_are_bounded, NULL};
    import_add(suite, "bytes", bytes);
    return suite;
}
