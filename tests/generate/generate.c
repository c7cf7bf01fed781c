/* SPDX-License-Identifier: Apache-2.0 */
/* Do every pointwise function, folds of rows, and networks of every activation, become source that NVRTC
 * compiles? For all types and places of inputs; needs no GPU. Whether the kernels compute what they should is
 * seen on the host (tests/emulate) and on a GPU (tests/conformance/device.sh). */
#include "backends/cuda/networks_source.h"
#include "backends/cuda/nvrtc.h"
#include "backends/cuda/pointwise_source.h"
#include "backends/cuda/rows_source.h"
#include "src/base/pointwise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t passed, failed;

static void result(const char *name, const char *why)
{
    if (!why)
        passed++;
    else
        printf("FAIL %s: %s\n", name, why);
    failed += why != NULL;
}

/* Operand k of the function: one of each place. */
static grt_tensor operand(int32_t opcode, int k, grt_dtype dtype)
{
    static const grt_tensor places[] = {{.rank = 2, .dims = {4, 64}}, {.rank = 1, .dims = {64}}, {.rank = 0}};
    grt_tensor t = places[k];
    t.dtype = opcode == PW_Where && k == 0 ? GRT_DTYPE_BOOL : dtype;
    return t;
}

/* A cubin is an ELF file. */
static const char *compile(const char *name, const char *source)
{
    static const char elf[] = {0x7f, 'E', 'L', 'F'};
    void *code;
    size_t size;
    if (cuda_nvrtc_compile(name, source, 90, &code, &size) != GRT_OK)
        return grt_last_error();
    const bool good = size > sizeof elf && !memcmp(code, elf, sizeof elf);
    free(code);
    return good ? NULL : "the code is no cubin";
}

static void try_function(int32_t opcode, grt_dtype dtype)
{
    const pw_info *info = grt_pointwise_info(opcode);
    const float constants[PW_MAX_PARAMS] = {0.5f, 1.25f};
    int64_t program[4] = {opcode, -1, -1, -1};
    pw_part_view in[PW_MAX_OPERANDS] = {0};
    for (int k = 0; k < info->arity; k++)
        in[k].part = operand(opcode, k, dtype);
    for (int k = 0; k < info->arity + info->n_params; k++)
        program[1 + k] = k;
    const grt_tensor out = {.dtype = info->truth ? GRT_DTYPE_BOOL : dtype, .rank = 2, .dims = {4, 64}};
    grt_attr attrs[2] = {
        {.name = "program", .kind = GRT_ATTR_INTS, .ints = {program, 4}},
        {.name = "constants", .kind = GRT_ATTR_FLOATS, .floats = {constants, (size_t)info->n_params}},
    };
    const grt_op_desc desc = {
        .domain = "graphrt", .op = "Pointwise", .name = info->name, .attrs = attrs, .n_attrs = 2};
    cuda_pointwise_form form;
    grt_text source = {0};
    if (!cuda_pointwise_form_of(in, info->arity, &out, &form)) {
        result(info->name, "there is no form for the shapes");
        return;
    }
    cuda_pointwise_source(&desc, &form, &source);
    result(info->name, compile(info->name, grt_text_get(&source)));
    grt_text_release(&source);
}

/* Shapes that have no form, and those that have: beside an input of all elements. */
static void try_forms(void)
{
    enum { NO_FORM = -1 };
    const grt_tensor out = {.dtype = GRT_DTYPE_FLOAT, .rank = 4, .dims = {2, 3, 5, 16}};
    static const struct {
        grt_tensor in;
        int place;
    } cases[] = {
        {{.rank = 4, .dims = {2, 3, 5, 16}}, CUDA_PLACE_OWN},
        {{.rank = 4, .dims = {1, 1, 1, 1}}, CUDA_PLACE_ONE},
        {{.rank = 2, .dims = {1, 16}}, CUDA_PLACE_INNER},
        {{.rank = 3, .dims = {3, 5, 16}}, CUDA_PLACE_INNER}, /* three dims in one */
        {{.rank = 4, .dims = {2, 3, 5, 1}}, CUDA_PLACE_OUTER | CUDA_PLACE_MIDDLE},
        {{.rank = 4, .dims = {2, 1, 1, 16}}, CUDA_PLACE_OUTER | CUDA_PLACE_INNER},
        {{.rank = 4, .dims = {1, 3, 5, 1}}, CUDA_PLACE_MIDDLE},
        {{.rank = 4, .dims = {2, 1, 1, 1}}, CUDA_PLACE_OUTER | CUDA_PLACE_MIDDLE},
        {{.rank = 4, .dims = {1, 3, 1, 16}}, 5}, /* four places; bit k is dim k from the last */
        {{.rank = 4, .dims = {2, 1, 5, 1}}, 10},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pw_part_view in[] = {{.part = out}, {.part = cases[i].in}};
        cuda_pointwise_form form = {0};
        const int found = cuda_pointwise_form_of(in, 2, &out, &form) ? form.place[1] : NO_FORM;
        result("form", found == cases[i].place ? NULL : "another one is wanted");
        result("form",
               form.place[0] == (1 << form.dims) - 1 || found < 0 ? NULL : "the whole input has all dims");
    }
    const grt_tensor long_out = {.dtype = GRT_DTYPE_FLOAT, .rank = 6, .dims = {2, 2, 2, 2, 2, 8}},
                     every_other = {.dtype = GRT_DTYPE_FLOAT, .rank = 6, .dims = {2, 1, 2, 1, 2, 1}};
    const pw_part_view six[] = {{.part = long_out}, {.part = every_other}};
    cuda_pointwise_form none;
    result("form", cuda_pointwise_form_of(six, 2, &long_out, &none) ? "six places are too many" : NULL);
    const grt_tensor odd = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {63}};
    const pw_part_view in = {.part = odd};
    cuda_pointwise_form form;
    result("form",
           cuda_pointwise_form_of(&in, 1, &odd, &form) && form.uneven && form.n == 8 && form.elements == 63
               ? NULL
               : "63 elements are eight vectors, the last one shorter");
}

/* Two layers; of few rows and of many, with weights that are staged, that lanes keep, and neither. */
static void try_networks(grt_act_kind kind, grt_dtype dtype, int32_t width, int32_t hidden, int64_t rows,
                         int64_t count)
{
    const cuda_networks_limits limits = {232448, 233472, 132};
    const grt_networks networks = {.n_layers = 2,
                                   .most = 32,
                                   .width = {width, hidden, 3},
                                   .bias = {true, false},
                                   .act = {{kind, 0.5f, 1.25f}, {GRT_ACT_NONE, 0, 0}}};
    cuda_networks_form form;
    grt_text source = {0};
    cuda_networks_form_of(&networks, dtype, rows, count, &limits, &form);
    cuda_networks_source(&form, &source);
    result("networks", compile("networks", grt_text_get(&source)));
    grt_text_release(&source);
}

/* A softmax, and a product: each fold, elements that wait, rows of a warp and of a block. */
static void try_rows(int64_t length, grt_dtype dtype)
{
    const int64_t code[] = {-1 - ROWS_MAX,     0, -1, -1, PW_Sub, 0, 1, -1, PW_Exp,        2, -1, -1,
                            -1 - ROWS_SUM,     3, -1, -1, PW_Div, 3, 4, -1, -1 - ROWS_MIN, 5, -1, -1,
                            -1 - ROWS_PRODUCT, 5, -1, -1, PW_Mul, 6, 7, -1, PW_Sub,        5, 8,  -1};
    const grt_attr attrs[] = {
        {.name = "program", .kind = GRT_ATTR_INTS, .ints = {code, sizeof code / sizeof *code}},
        {.name = "row_dims", .kind = GRT_ATTR_INT, .i = 1},
    };
    const grt_op_desc desc = {
        .domain = "graphrt", .op = "Rows", .name = "rows", .attrs = attrs, .n_attrs = 2};
    const grt_tensor x = {.dtype = dtype, .rank = 2, .dims = {6, length}}, *in = &x;
    rows_program *program = NULL;
    cuda_rows_form form;
    grt_text source = {0};
    if (grt_rows_decode(&desc, 1, &program) != GRT_OK || !cuda_rows_form_of(program, 1, &in, &x, &form)) {
        result("rows", "there is no form for the program");
    } else {
        cuda_rows_source(program, &form, &source);
        result("rows", compile("rows", grt_text_get(&source)));
    }
    grt_text_release(&source);
    free(program);
}

static void try_all_networks(void)
{
    static const grt_act_kind kinds[] = {GRT_ACT_NONE,
#define X(kind, name, function) GRT_ACT_##kind,
                                         GRT_ACTIVATIONS(X)
#undef X
    };
    static const grt_dtype dtypes[] = {GRT_DTYPE_FLOAT, GRT_DTYPE_FLOAT16, GRT_DTYPE_BFLOAT16};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int32_t hidden = 8; hidden <= 32; hidden *= 4)
            try_networks(kinds[i], dtypes[i % 3], i % 2 ? 7 : 20, hidden, i % 4 < 2 ? 1 : 256,
                         i % 5 ? 1000 : 33);
}

int main(void)
{
    static const grt_dtype dtypes[] = {GRT_DTYPE_FLOAT, GRT_DTYPE_FLOAT16, GRT_DTYPE_BFLOAT16};
    try_forms();
    if (compile("nothing", "") && strstr(grt_last_error(), "was not found")) {
        printf("skipped: %s\n%zu passed, %zu failed, 1 skipped\n", grt_last_error(), passed, failed);
        return failed ? 1 : 0;
    }
    /* Each function with one type, in turn: they differ in loads and stores only. */
    for (int32_t opcode = 0; opcode < PW_COUNT; opcode++)
        if (grt_pointwise_info(opcode)->fusible)
            try_function(opcode, dtypes[opcode % 3]);
    for (size_t i = 0; i < 3; i++)
        try_function(PW_Add, dtypes[i]);
    try_function(PW_Where, GRT_DTYPE_FLOAT16);
    for (size_t i = 0; i < 3; i++) {
        try_rows(50, dtypes[i]);
        try_rows(768, dtypes[i]);
        try_rows(5001, dtypes[i]);
    }
    try_all_networks();
    printf("%zu passed, %zu failed, 0 skipped\n", passed, failed);
    return failed ? 1 : 0;
}
