/* SPDX-License-Identifier: Apache-2.0 */
/* Tiny models whose sizes are extreme: dims of 2^50 in tensors without elements, windows of 2^31, results
 * that no machine holds. Each opens and runs, or is refused, in a child with little time and memory. */
#include "tests/unit/bounded.h"
#include "tests/unit/onnx_model.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An input is a letter of a type and dims, "f 2,0": bound to zeros. A constant has its elements behind the
 * letter of its type: "i=1,2" is a vector, "i#3" a scalar. "-": left out. Attributes:
 * "axis=0;pads=1,1;mode:edge", of one integer, of a list (with a comma at its end if it has one element), of
 * text. */
typedef struct extreme {
    const char *op; /* "TopK/2": of two outputs */
    const char *inputs[6], *attrs;
} extreme;

#define BIG      "1125899906842624" /* 2^50 */
#define HUGE_DIM "4611686014132420609"
#define WIDE     "2147483647"

static const extreme cases[] = {
    /* tensors without elements */
    {"Softmax", {"f " BIG ",0"}, ""},
    {"Softmax", {"f 0," BIG}, "axis=0"},
    {"LogSoftmax", {"f " BIG ",0"}, ""},
    {"Hardmax", {"f " BIG ",0"}, ""},
    {"LayerNormalization", {"f " BIG ",0", "f 0"}, ""},
    {"InstanceNormalization", {"f " BIG ",0,2", "f 0", "f 0"}, ""},
    {"BatchNormalization", {"f " BIG ",0,2", "f 0", "f 0", "f 0", "f 0"}, ""},
    {"MeanVarianceNormalization", {"f " BIG ",0,2,2"}, ""},
    {"LpNormalization", {"f " BIG ",0"}, ""},
    {"LRN", {"f " BIG ",0,1,1"}, "size=3"},
    {"CumSum", {"f " BIG ",0", "i#1"}, ""},
    {"EyeLike", {"f 1048576,0"}, ""},
    {"ReverseSequence", {"f " BIG ",0", "i 0"}, "batch_axis=1;time_axis=0"},
    {"Transpose", {"f " BIG ",0"}, ""},
    {"Trilu", {"f " BIG ",0,4"}, ""},
    {"Add", {"f " BIG ",0", "f 1,1"}, ""},
    {"Where", {"b " BIG ",0", "f 1", "f 1"}, ""},
    {"Concat", {"f " BIG ",0", "f " BIG ",0"}, "axis=0"},
    {"Gather", {"f 4,0", "i " BIG ",0"}, ""},
    {"GatherElements", {"f " BIG ",0", "i " BIG ",0"}, ""},
    {"GatherND", {"f " BIG ",0", "i " BIG ",0,1"}, ""},
    {"ScatterND", {"f 4", "i " BIG ",0,1", "f " BIG ",0"}, ""},
    {"ScatterElements", {"f " BIG ",0", "i " BIG ",0", "f " BIG ",0"}, ""},
    {"ReduceSum", {"f " BIG ",0", "i=0"}, ""},
    {"ReduceSum", {"f " BIG ",0"}, "keepdims=0"},
    {"ReduceMean", {"f 0," BIG, "i=0"}, ""},
    {"ArgMax", {"f 0," BIG}, "axis=1"},
    {"MatMul", {"f " BIG ",0", "f 0,4"}, ""},
    {"MatMul", {"f 2," HUGE_DIM ",0", "f 0,2"}, ""},
    {"MatMul", {"f 0,4611686018427387904", "f 4611686018427387904,2"}, ""},
    {"Gemm", {"f 0," BIG, "f " BIG ",0"}, ""},
    {"Conv", {"f " BIG ",0,4,4", "f 4,0,1,1"}, ""},
    {"MaxPool", {"f " BIG ",0,4,4"}, "kernel_shape=2,2"},
    {"GlobalAveragePool", {"f " BIG ",0,4"}, ""},
    {"Unique", {"f " BIG ",0"}, "axis=1"},
    {"Unique", {"f " BIG ",4,0"}, "axis=1"},
    {"NonZero", {"f " BIG ",0"}, ""},
    {"Compress", {"f " BIG ",0", "b 0"}, "axis=0"},
    {"TopK/2", {"f " BIG ",0", "i=0"}, ""},
    {"NonMaxSuppression", {"f 1,0,4", "f 1," BIG ",0", "i#5"}, ""},
    {"NonMaxSuppression", {"f 1048576,0,4", "f 1048576,1048576,0", "i#5"}, ""},
    {"RoiAlign", {"f 1," BIG ",0,4", "f 0,4", "i 0"}, ""},
    {"GridSample", {"f 1,1,4,4", "f 1," BIG ",0,2"}, ""},
    {"Resize", {"f " BIG ",0,2,2", "-", "-", "i=" BIG ",0,4,4"}, "mode:linear"},
    {"LSTM/3", {"f " BIG ",0,4", "f 1,16,4", "f 1,16,4"}, "hidden_size=4"},
    {"Det", {"f 0," BIG ",0,0"}, ""},
    {"OneHot", {"i " BIG ",0", "i#5", "f 2"}, ""},
    {"Bernoulli", {"f " BIG ",0"}, ""},
    {"DFT", {"f " BIG ",0,1", "i#4", "i#1"}, ""},
    {"StringConcat", {"s " BIG ",0", "s 1,1"}, ""},
    {"RegexFullMatch", {"s " BIG ",0"}, "pattern:a*"},
    {"QuantizeLinear", {"f " BIG ",0", "f"}, ""},
    {"Einsum", {"f " BIG ",0"}, "equation:ij->"},
    {"SplitToSequence", {"f 1099511627776,0"}, "keepdims=0"},
    {"SplitToSequence", {"f 1099511627776,0", "i#3"}, ""},
    {"Split/2", {"f " BIG ",0"}, "num_outputs=2"},
    {"Expand", {"f 1,0", "i=" BIG ",1"}, ""},
    {"Tile", {"f 1,0", "i=" BIG ",4"}, ""},
    {"Pad", {"f 1,0", "i=" BIG ",0,0,0"}, "mode:edge"},
    {"ConstantOfShape", {"i=" BIG ",0"}, ""},
    {"Reshape", {"f " BIG ",0", "i=0," BIG}, "allowzero=1"},
    {"Col2Im", {"f 1,4,0", "i=" BIG ",0", "i=2,2"}, ""},
    /* windows that are larger than what they look at */
    {"MaxPool", {"f 1,1,4"}, "kernel_shape=" WIDE ",;pads=2147483645,2147483645"},
    {"MaxPool", {"f 1,1,4,4"}, "kernel_shape=" WIDE "," WIDE ";auto_pad:SAME_UPPER"},
    {"MaxPool/2", {"f 1,1,4,4"}, "kernel_shape=" WIDE "," WIDE ";auto_pad:SAME_UPPER"},
    {"MaxPool",
     {"f 1,1,4,4"},
     "kernel_shape=2,2;dilations=" WIDE "," WIDE ";pads=" WIDE "," WIDE "," WIDE "," WIDE},
    {"AveragePool",
     {"f 1,1,4,4,4"},
     "kernel_shape=" WIDE "," WIDE "," WIDE ";auto_pad:SAME_UPPER;count_include_pad=1"},
    {"AveragePool", {"d 1,1,4,4"}, "kernel_shape=" WIDE "," WIDE ";auto_pad:SAME_LOWER"},
    {"AveragePool", {"f 1,1,4"}, "kernel_shape=" WIDE ",;strides=" WIDE ",;pads=2147483645,2147483645"},
    {"LpPool", {"f 1,1,4,4,4"}, "kernel_shape=" WIDE "," WIDE "," WIDE ";auto_pad:SAME_UPPER"},
    {"LRN", {"f 1,4,4,4"}, "size=9223372036854775807"},
    {"MaxUnpool", {"f 1,1,1,1", "i 1,1,1,1"}, "kernel_shape=" WIDE "," WIDE ";strides=" WIDE "," WIDE},
    {"ConvTranspose", {"f 1,1,2,2", "f 1,1,1,1"}, "strides=" WIDE "," WIDE},
    {"Conv", {"f 1,1,4,4", "f 1,1,2,2"}, "dilations=" WIDE "," WIDE ";pads=" WIDE "," WIDE "," WIDE "," WIDE},
    {"RoiAlign", {"f 1,1,4,4", "f 1,4", "i 1"}, "sampling_ratio=" WIDE},
    {"Col2Im", {"f 0,1073741824,1", "i=32768,32768", "i=32768,32768"}, ""},
    {"Trilu", {"f 4,4", "i#-9223372036854775808"}, ""},
    {"EyeLike", {"f 4,4"}, "k=9223372036854775807"},
    {"Slice",
     {"f 8", "i=-9223372036854775808", "i=9223372036854775807", "i=0", "i=-9223372036854775808"},
     ""},
    /* results that are too large */
    {"Tile", {"f 4,4", "i=1099511627776,1099511627776"}, ""},
    {"Tile", {"f 1", "i=4611686018427387904"}, ""},
    {"Expand", {"f 1,1", "i=1099511627776,1099511627776"}, ""},
    {"Pad", {"f 4", "i=2305843009213693952,2305843009213693952"}, "mode:wrap"},
    {"Pad", {"f 4", "i=1099511627776,0"}, "mode:reflect"},
    {"Range", {"i#-9223372036854775808", "i#9223372036854775807", "i#1"}, ""},
    {"OneHot", {"i 2", "i#1152921504606846976", "f 2"}, ""},
    {"ConstantOfShape", {"i=1099511627776,1099511627776"}, ""},
    {"RandomNormal", {0}, "shape=1099511627776,1048576"},
    {"Multinomial", {"f 1,4"}, "sample_size=1099511627776"},
    {"HannWindow", {"i#1099511627776"}, ""},
    {"MelWeightMatrix", {"i#1099511627776", "i#8", "i#16000", "f#0", "f#8000"}, ""},
    {"DFT", {"f 1,4,1", "i#1099511627776", "i#1"}, ""},
    {"CenterCropPad", {"f 4,4", "i=1099511627776,1099511627776"}, ""},
    {"Resize", {"f 1,1,4,4", "-", "f=1,1,1000000000,1000000000"}, ""},
    {"ConvTranspose", {"f 1,1,1", "f 1,1,1"}, "output_shape=1099511627776,"},
    {"SpaceToDepth", {"f 1,1,4,4"}, "blocksize=4611686018427387904"},
    {"Einsum", {"f 200", "f 200", "f 200", "f 200", "f 200"}, "equation:a,b,c,d,e->"},
    {"Einsum", {"f 200,200", "f 200,200", "f 200,200", "f 200,200"}, "equation:ab,bc,cd,de->ae"},
    {"Einsum", {"h 300", "h 300", "h 300", "h 300"}, "equation:a,b,c,d->"},
};

static grt_dtype type_of(char letter)
{
    switch (letter) {
    case 'f':
        return GRT_DTYPE_FLOAT;
    case 'h':
        return GRT_DTYPE_FLOAT16;
    case 'd':
        return GRT_DTYPE_DOUBLE;
    case 'i':
        return GRT_DTYPE_INT64;
    case 'b':
        return GRT_DTYPE_BOOL;
    default:
        return GRT_DTYPE_STRING;
    }
}

enum { MOST = 8 };

/* "1,2,": numbers from text; a comma at the end is allowed. */
static size_t numbers(const char *text, int64_t out[MOST])
{
    size_t n = 0;
    for (char *end; *text; text = *end ? end + 1 : end) {
        ck_assert_uint_lt(n, MOST);
        out[n++] = strtoll(text, &end, 10);
        ck_assert(end != text && (!*end || *end == ','));
    }
    return n;
}

static void add_constant(onnx_model *m, const char *name, const char *text)
{
    int64_t values[MOST];
    float floats[MOST];
    const size_t n = numbers(text + 2, values);
    char dims[8] = "";
    if (text[1] == '=')
        snprintf(dims, sizeof dims, "%zu", n);
    for (size_t i = 0; i < n; i++)
        floats[i] = (float)values[i];
    const bool real = text[0] == 'f';
    onnx_initializer(m, m->graph,
                     onnx_raw(m, name, type_of(text[0]), dims, real ? (void *)floats : values,
                              n * (real ? sizeof *floats : sizeof *values)));
}

static void add_attrs(onnx_model *m, Onnx__NodeProto *node, const char *attrs)
{
    char copy[256], *save = NULL;
    snprintf(copy, sizeof copy, "%s", attrs);
    for (char *part = strtok_r(copy, ";", &save); part; part = strtok_r(NULL, ";", &save)) {
        char *value = part + strcspn(part, "=:");
        const char kind = *value;
        *value++ = '\0';
        if (kind == ':') {
            Onnx__AttributeProto *a = onnx_attr(m, node, part, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
            a->has_s = 1;
            a->s = (ProtobufCBinaryData){strlen(value), grt_arena_memdup(m->arena, value, strlen(value))};
        } else if (strchr(value, ',')) {
            int64_t list[MOST];
            Onnx__AttributeProto *a = onnx_attr(m, node, part, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
            a->n_ints = numbers(value, list);
            a->ints = grt_arena_memdup(m->arena, list, a->n_ints * sizeof *list);
        } else {
            onnx_attr_int(m, node, part, strtoll(value, NULL, 10));
        }
    }
}

static onnx_model make(const extreme *e)
{
    onnx_model m = onnx_create();
    char inputs[64] = "";
    for (int i = 0; i < 6 && e->inputs[i]; i++) {
        char name[4] = "";
        const char *text = e->inputs[i];
        if (text[0] != '-')
            snprintf(name, sizeof name, "x%d", i);
        if (text[0] != '-' && (text[1] == '=' || text[1] == '#'))
            add_constant(&m, name, text);
        else if (text[0] != '-')
            onnx_input(&m, m.graph, name, type_of(text[0]), text[1] ? text + 2 : "");
        snprintf(inputs + strlen(inputs), sizeof inputs - strlen(inputs), "%s%s", i ? "," : "", name);
    }
    const size_t length = strcspn(e->op, "/");
    const char more = e->op[length] ? e->op[length + 1] : '1';
    char op[32];
    snprintf(op, sizeof op, "%.*s", (int)length, e->op);
    add_attrs(&m,
              onnx_node(&m, m.graph, op, inputs,
                        more == '3'   ? "y,y1,y2"
                        : more == '2' ? "y,y1"
                                      : "y"),
              e->attrs);
    onnx_output(&m, m.graph, "y");
    return m;
}

static grt_status bind_zeros(grt_context *context, const grt_model *model)
{
    static char zeros[1 << 20];
    static const grt_string words[64];
    for (size_t i = 0; i < grt_model_input_count(model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        grt_status status = grt_model_input(model, i, &info);
        grt_tensor t = {.dtype = info.dtype,
                        .rank = info.rank,
                        .data = info.dtype == GRT_DTYPE_STRING ? (void *)(uintptr_t)words : zeros};
        memcpy(t.dims, info.dims, sizeof t.dims);
        if (status == GRT_OK)
            status = grt_context_set_input(context, i, &t);
        if (status != GRT_OK)
            return status;
    }
    return GRT_OK;
}

/* 0: it ran; 1: it was refused with a message; 2: with none, or as a fault of the library's. */
static int run(void *user)
{
    onnx_model m = make(user);
    const grt_string bytes = onnx_bytes(&m);
    grt_runtime *runtime = NULL;
    grt_model *model = NULL;
    grt_session *session = NULL;
    grt_context *context = NULL;
    grt_status status = grt_runtime_create(&runtime);
    if (status == GRT_OK)
        status = grt_model_open_memory(runtime, bytes.data, bytes.size, &model);
    if (status == GRT_OK)
        status = grt_session_create(
            model, "cpu", &(grt_session_options){.struct_size = sizeof(grt_session_options), .threads = 1},
            &session);
    if (status == GRT_OK)
        status = grt_context_create(session, &context);
    if (status == GRT_OK)
        status = bind_zeros(context, model);
    if (status == GRT_OK)
        status = grt_context_run(context);
    if (status != GRT_OK && getenv("SHOW_REFUSALS"))
        printf("%s %s\n", ((const extreme *)user)->op, grt_last_error());
    fflush(stdout);
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    grt_runtime_release(runtime);
    onnx_release(&m);
    return status == GRT_OK ? 0 : status != GRT_STATUS_INTERNAL && *grt_last_error() ? 1 : 2;
}

START_TEST(a_result_or_a_message_in_no_time)
{
    extreme e = cases[_i];
    const bounded_use use = bounded_run(run, &e, 10, (size_t)4 << 30);
    if (!bounded_measures() && (use.signal == SIGKILL || use.signal == SIGXCPU))
        return; /* what is refused for its memory elsewhere is computed, in a sanitizer's time */
    ck_assert_msg(use.signal == 0, "%s(%s, ...) %s: signal %d after %.1f s", e.op, e.inputs[0], e.attrs,
                  use.signal, use.cpu_seconds);
    ck_assert_msg(use.status == 0 || use.status == 1, "%s(%s, ...) %s: status %d", e.op, e.inputs[0], e.attrs,
                  use.status);
}
END_TEST

/* Nothing is refused for having no elements. */
START_TEST(tensors_without_elements_are_results)
{
    static const extreme fine[] = {
        {"Softmax", {"f " BIG ",0"}, ""},
        {"CumSum", {"f " BIG ",0", "i#1"}, ""},
        {"MatMul", {"f " BIG ",0", "f 0,0"}, ""},
        {"NonMaxSuppression", {"f 1,0,4", "f 1," BIG ",0", "i#5"}, ""},
        {"Unique", {"f " BIG ",0"}, "axis=1"},
        {"SplitToSequence", {"f 8,0"}, ""},
    };
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        extreme e = fine[i];
        const bounded_use use = bounded_run(run, &e, 10, (size_t)4 << 30);
        ck_assert_msg(use.status == 0, "%s: status %d, signal %d", e.op, use.status, use.signal);
    }
}
END_TEST

START_TEST(products_of_other_dims_are_bounded)
{
    grt_tensor t = {.dtype = GRT_DTYPE_FLOAT, .rank = 3, .dims = {(int64_t)1 << 50, 0, 1 << 8}};
    ck_assert_int_eq(grt_tensor_elements(&t), 0);
    ck_assert_uint_eq(grt_tensor_bytes(&t), 0);
    t.dims[2] = 1 << 9;
    ck_assert_int_eq(grt_tensor_elements(&t), -1);
    ck_assert_uint_eq(grt_tensor_bytes(&t), SIZE_MAX);
}
END_TEST

Suite *suite_test_extremes(void);
Suite *suite_test_extremes(void)
{
    Suite *suite = suite_create("extremes");
    TCase *tests = tcase_create("extremes");
    tcase_add_loop_test(tests, a_result_or_a_message_in_no_time, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tests, tensors_without_elements_are_results);
    tcase_add_test(tests, products_of_other_dims_are_bounded);
    suite_add_tcase(suite, tests);
    return suite;
}
