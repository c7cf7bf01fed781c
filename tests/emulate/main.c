/* SPDX-License-Identifier: Apache-2.0 */
/* Do generated CUDA kernels compute what the CPU does? Their sources are translated to C++ for the host,
 * compiled together by the C++ compiler (CXX), and run with threads, barriers, shuffles and asynchronous
 * copies as cuda.h has them. So this is seen without a GPU; what the machine makes of the same source is
 * seen on one (tests/conformance/device.sh). */
#include "backends/backend.h"
#include "backends/cuda/generated_source.h"
#include "backends/cuda/networks_source.h"
#include "backends/cuda/pointwise_source.h"
#include "backends/cuda/rows_source.h"
#include "src/base/float.h"
#include "src/base/pointwise_parts.h"
#include "src/target/target.h"
#include "tests/emulate/nvrtc.h"
#include "tests/emulate/translate.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_CASES = 512, MOST_INPUTS = 12, GUARD = 4096 };

typedef union arguments {
    cuda_pointwise_args pointwise;
    cuda_networks_args networks;
    cuda_rows_args rows;
} arguments;

/* A kernel that is to be run, and what it must give. */
typedef struct kernel {
    char name[96];
    grt_value in[MOST_INPUTS];
    int32_t n_in;
    grt_value expected;
    char *out;
    arguments args;
    unsigned grid[2], block[2];
    size_t shared;
    double tolerance; /* beside the least that the output's type can say */
} kernel;

static kernel kernels[MOST_CASES];
static int n_kernels;
static size_t passed, failed, skipped;
static bool has_nvrtc;
static grt_text program; /* C++ */

static void result(const char *name, const char *why)
{
    passed += why == NULL;
    failed += why != NULL;
    if (why)
        printf("FAIL %s: %s\n", name, why);
}

/* ---- cases ---- */

/* Numbers in [-2, 2) that are the same on every machine. */
static void fill(const grt_tensor *t, uint32_t seed)
{
    for (int64_t i = 0; i < grt_tensor_elements(t); i++) {
        seed = seed * 1664525u + 1013904223u;
        const float x = (float)(seed >> 8) * 0x1p-22f - 2.0f;
        if (t->dtype == GRT_DTYPE_FLOAT)
            ((float *)t->data)[i] = x;
        else if (t->dtype == GRT_DTYPE_BOOL)
            ((uint8_t *)t->data)[i] = x > 0;
        else
            ((uint16_t *)t->data)[i] =
                t->dtype == GRT_DTYPE_FLOAT16 ? grt_float_to_half(x) : grt_float_to_bfloat16(x);
    }
}

static void must(bool good, const char *name)
{
    if (good)
        return;
    printf("FAIL %s: %s\n", name, grt_last_error());
    exit(1);
}

static kernel *begin(const char *name)
{
    must(n_kernels < MOST_CASES, "too many cases");
    kernel *k = &kernels[n_kernels++];
    snprintf(k->name, sizeof k->name, "%s", name);
    return k;
}

static const grt_tensor *add_in(kernel *k, grt_dtype dtype, int32_t rank, const int64_t *dims)
{
    grt_value *value = &k->in[k->n_in++];
    must(grt_value_alloc(value, dtype, rank, dims) == GRT_OK, k->name);
    fill(&value->t, (uint32_t)(k->n_in + 100 * n_kernels));
    return &value->t;
}

/* What the CPU's kernel gives, and room for the same. */
static void expect(kernel *k, const grt_op_desc *desc)
{
    const grt_target target = grt_target_of(&grt_backend_cpu);
    const grt_tensor *in[MOST_INPUTS];
    for (int32_t i = 0; i < k->n_in; i++)
        in[i] = k->in[i].t.dtype ? &k->in[i].t : NULL;
    must(target.evaluate(&target, desc, in, k->n_in, &k->expected, 1, SIZE_MAX) == GRT_OK, k->name);
    const size_t bytes =
        (size_t)grt_tensor_elements(&k->expected.t) * grt_dtype_size(k->expected.t.dtype) + GUARD;
    k->out = aligned_alloc(64, (bytes + 63) / 64 * 64);
    must(k->out != NULL, k->name);
}

/* Its source in a namespace of its own; what all begin with stands in front of all. */
static void add_source(const kernel *k, const char *function, const grt_text *source)
{
    if (has_nvrtc)
        result(k->name, emulate_nvrtc_refuses(grt_text_get(source)));
    skipped += !has_nvrtc;
    const size_t beginning = strlen(cuda_generated_beginning);
    const int at = (int)(k - kernels);
    must(!strncmp(grt_text_get(source), cuda_generated_beginning, beginning), k->name);
    grt_text_add(&program, "namespace case_%d {\n", at);
    must(emulate_translate(grt_text_get(source) + beginning, &program), k->name);
    grt_text_add(&program,
                 "}\nextern \"C\" const char *run_%d(const void *args, const unsigned *grid, const unsigned "
                 "*block, size_t shared, bool falling)\n{\n    return emulated::launch([](const void *a) { "
                 "case_%d::%s(*(const case_%d::arguments *)a); }, args, grid, block, shared, falling);\n}\n",
                 at, at, function, at);
}

/* ---- pointwise ---- */

/* An element-wise group: a node of n operands, of which the first is so many inputs. */
static void add_group(const grt_op_desc *desc, int joined, kernel *k)
{
    const grt_tensor *in[MOST_INPUTS];
    grt_tensor whole;
    pw_part_view views[MOST_INPUTS];
    cuda_pointwise_form form;
    cuda_pointwise_args *args = &k->args.pointwise;
    grt_text source = {0};
    const int n = k->n_in - joined + 1;
    for (int32_t i = 0; i < k->n_in; i++)
        in[i] = &k->in[i].t;
    must(grt_pointwise_join(desc, in, joined, &whole) == GRT_OK, desc->name);
    for (int i = 0; i < n; i++)
        must(grt_pointwise_view_part(desc, i, i ? in[joined + i - 1] : &whole, &views[i]) == GRT_OK,
             desc->name);
    if (joined > 1) {
        views[0].axis = whole.rank - 1;
        views[0].pitch = whole.dims[whole.rank - 1];
    }
    expect(k, desc);
    *args = (cuda_pointwise_args){.out = k->out, .joined = (uint32_t)joined};
    if (!cuda_pointwise_form_of(views, n, &k->expected.t, &form) ||
        !cuda_pointwise_join(in, joined, &form, args->ends)) {
        result(desc->name, "there is no form for the shapes");
        n_kernels--;
        return;
    }
    cuda_pointwise_source(desc, &form, &source);
    add_source(k, CUDA_POINTWISE_KERNEL, &source);
    grt_text_release(&source);
    cuda_pointwise_sizes(&form, args);
    for (int i = 0; i < n; i++) {
        const grt_tensor *t = in[i ? joined + i - 1 : 0];
        args->in[i] =
            i || joined == 1 ? (char *)t->data + (size_t)views[i].offset * grt_dtype_size(t->dtype) : NULL;
    }
    for (int i = 0; joined > 1 && i < joined; i++)
        args->part[i] = in[i]->data;
    k->grid[0] = (form.n + CUDA_POINTWISE_BLOCK - 1) / CUDA_POINTWISE_BLOCK;
    k->grid[1] = k->block[1] = 1;
    k->block[0] = CUDA_POINTWISE_BLOCK;
    k->tolerance = 4e-6;
}

static void add_parts(const char *name, const int64_t *code, size_t n, const int64_t *parts, kernel *k)
{
    const grt_attr attrs[] = {
        {.name = "program", .kind = GRT_ATTR_INTS, .ints = {code, n}},
        {.name = "parts", .kind = GRT_ATTR_INTS, .ints = {parts, 3 * (size_t)k->n_in}},
    };
    const grt_op_desc desc = {"graphrt", "PointwiseParts", name, attrs, 2};
    add_group(&desc, 1, k);
}

static void add_joined(const char *name, const int64_t *code, size_t n, int joined, kernel *k)
{
    const grt_attr attrs[] = {
        {.name = "program", .kind = GRT_ATTR_INTS, .ints = {code, n}},
        {.name = "joined", .kind = GRT_ATTR_INT, .i = joined},
    };
    const grt_op_desc desc = {"graphrt", "PointwiseConcat", name, attrs, 2};
    add_group(&desc, joined, k);
}

static void add_pointwise(const char *name, const int64_t *code, size_t n, const float *constants,
                          size_t n_constants, kernel *k)
{
    const grt_attr attrs[] = {
        {.name = "program", .kind = GRT_ATTR_INTS, .ints = {code, n}},
        {.name = "constants", .kind = GRT_ATTR_FLOATS, .floats = {constants, n_constants}},
    };
    const grt_op_desc desc = {"graphrt", "Pointwise", name, attrs, 2};
    add_group(&desc, 1, k);
}

static void pointwise_function(int32_t opcode, grt_dtype dtype)
{
    static const struct {
        int32_t rank;
        int64_t dims[2];
    } places[] = {{2, {4, 64}}, {1, {64}}, {0, {0}}};
    const float constants[PW_MAX_PARAMS] = {0.5f, 1.25f};
    const pw_info *info = grt_pointwise_info(opcode);
    int64_t code[4] = {opcode, -1, -1, -1};
    kernel *k = begin(info->name);
    for (int32_t i = 0; i < info->arity; i++)
        (void)add_in(k, opcode == PW_Where && i == 0 ? GRT_DTYPE_BOOL : dtype, places[i].rank,
                     places[i].dims);
    for (int32_t i = 0; i < info->arity + info->n_params; i++)
        code[1 + i] = i;
    add_pointwise(info->name, code, 4, constants, (size_t)info->n_params, k);
}

/* One of each place beside an input of all elements, of each type in turn. */
static void pointwise_places(void)
{
    static const struct {
        int32_t rank;
        int64_t dims[4];
    } others[] = {{4, {2, 3, 5, 16}}, {4, {1, 1, 1, 1}}, {2, {1, 16}},      {4, {2, 3, 5, 1}},
                  {4, {2, 1, 1, 16}}, {4, {1, 3, 5, 1}}, {4, {2, 1, 1, 1}}, {3, {3, 5, 16}}};
    static const grt_dtype dtypes[] = {GRT_DTYPE_FLOAT, GRT_DTYPE_FLOAT16, GRT_DTYPE_BFLOAT16};
    const int64_t code[] = {PW_Sub, 0, 1, -1, PW_Mul, 3, 0, -1, PW_Max, 4, 2, -1};
    const float constants[] = {-0.75f};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        kernel *k = begin("places");
        (void)add_in(k, dtypes[i % 3], 4, others[0].dims);
        (void)add_in(k, dtypes[i % 3], others[i].rank, others[i].dims);
        add_pointwise("places", code, 12, constants, 1, k);
    }
}

/* Inputs that have other dims each, so that there are more than three places. */
static void pointwise_further(void)
{
    static const struct {
        int32_t rank;
        int64_t dims[3][5]; /* of the inputs */
    } cases[] = {
        {4, {{2, 3, 5, 16}, {1, 3, 1, 16}, {2, 1, 5, 1}}},
        {4, {{1, 3, 1, 16}, {2, 3, 5, 1}, {1, 1, 5, 16}}},
        {4, {{2, 3, 1, 16}, {2, 1, 5, 16}, {1, 1, 1, 1}}},
        {5, {{2, 1, 2, 1, 24}, {1, 3, 1, 7, 1}, {2, 3, 2, 7, 24}}},
    };
    static const grt_dtype dtypes[] = {GRT_DTYPE_FLOAT, GRT_DTYPE_FLOAT16, GRT_DTYPE_BFLOAT16};
    const int64_t code[] = {PW_Sub, 0, 1, -1, PW_Mul, 3, 2, -1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kernel *k = begin("further places");
        for (int j = 0; j < 3; j++)
            (void)add_in(k, dtypes[i % 3], cases[i].rank, cases[i].dims[j]);
        add_pointwise("further places", code, 8, NULL, 0, k);
    }
}

/* Inner dims that are no whole vectors: an input of each place, more than three dims, a last vector that is
 * cut. */
static void pointwise_uneven(void)
{
    static const struct {
        int32_t rank;
        int64_t dims[3][5];
    } cases[] = {
        {4, {{2, 3, 5, 7}, {1, 1, 1, 7}, {2, 1, 1, 1}}},
        {4, {{2, 3, 5, 7}, {1, 3, 1, 1}, {2, 3, 5, 1}}},
        {4, {{2, 3, 5, 7}, {2, 1, 1, 7}, {1, 3, 5, 7}}},
        {4, {{2, 3, 5, 7}, {1, 3, 1, 7}, {1, 1, 1, 1}}},
        {4, {{2, 3, 5, 3}, {2, 1, 5, 1}, {1, 3, 1, 3}}},
        {1, {{13}, {1}, {13}}},
        {5, {{2, 1, 2, 1, 9}, {1, 3, 1, 7, 1}, {2, 3, 2, 7, 9}}},
        {2, {{40, 25}, {40, 1}, {40, 1}}},
    };
    static const grt_dtype dtypes[] = {GRT_DTYPE_FLOAT, GRT_DTYPE_FLOAT16, GRT_DTYPE_BFLOAT16};
    const int64_t code[] = {PW_Sub, 0, 1, -1, PW_Mul, 3, 2, -1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kernel *k = begin("uneven");
        for (int j = 0; j < 3; j++)
            (void)add_in(k, dtypes[i % 3], cases[i].rank, cases[i].dims[j]);
        add_pointwise("uneven", code, 8, NULL, 0, k);
    }
}

/* Inputs that are parts: of rows, of channels in front, of several axes, one that is repeated along others,
 * one range alone; whole vectors and not. The first two are parts of one tensor. */
static void pointwise_parts(void)
{
    static const struct {
        int64_t x[4], y[4], parts[9];
    } cases[] = {
        {{2, 3, 5, 32}, {1, 1, 1, 16}, {1, 0, 16, 1, 16, 16, 0, 0, 0}},
        {{2, 3, 5, 40}, {2, 3, 5, 24}, {1, 8, 16, 1, 24, 16, 1, 8, 16}},
        {{2, 6, 5, 16}, {2, 3, 1, 1}, {3, 0, 3, 3, 3, 3, 0, 0, 0}},
        {{2, 6, 5, 16}, {2, 3, 10, 16}, {3, 1, 3, 3, 2, 3, 2, 5, 5}},
        {{2, 1, 1, 32}, {2, 3, 5, 16}, {1, 0, 16, 1, 16, 16, 0, 0, 0}},
        {{1, 1, 4, 16}, {1, 1, 2, 16}, {2, 0, 2, 2, 2, 2, 0, 0, 0}},
        {{2, 3, 5, 14}, {2, 1, 1, 7}, {1, 0, 7, 1, 7, 7, 0, 0, 0}},
        {{2, 3, 5, 20}, {2, 3, 5, 8}, {1, 3, 8, 1, 11, 8, 0, 0, 0}},
        {{2, 6, 5, 3}, {1, 3, 1, 1}, {3, 0, 3, 3, 3, 3, 0, 0, 0}},
        {{2, 5, 7, 2}, {2, 5, 3, 6}, {2, 0, 3, 2, 4, 3, 1, 1, 2}},
        {{2, 32, 1, 1}, {2, 16, 5, 16}, {3, 0, 16, 3, 16, 16, 0, 0, 0}},
        {{3, 2, 16, 1}, {3, 2, 8, 16}, {2, 0, 8, 2, 8, 8, 0, 0, 0}},
    };
    static const grt_dtype dtypes[] = {GRT_DTYPE_FLOAT, GRT_DTYPE_FLOAT16, GRT_DTYPE_BFLOAT16};
    const int64_t code[] = {PW_Sub, 0, 1, -1, PW_Mul, 3, 2, -1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kernel *k = begin("parts");
        (void)add_in(k, dtypes[i % 3], 4, cases[i].x);
        (void)add_in(k, dtypes[i % 3], 4, cases[i].x);
        (void)add_in(k, dtypes[i % 3], 4, cases[i].y);
        add_parts("parts", code, 8, cases[i].parts, k);
    }
}

/* A Cast alone, each way between 32 bits and 16: of rows that begin anywhere, and of whole vectors. */
static void casts_of_parts(void)
{
    static const int64_t dims[] = {3, 5, 600},
                         parts[][3] = {{1, 3, 257}, {1, 0, 599}, {1, 8, 512}, {2, 1, 3}};
    static const grt_dtype types[][2] = {{GRT_DTYPE_FLOAT16, GRT_DTYPE_FLOAT},
                                         {GRT_DTYPE_FLOAT, GRT_DTYPE_FLOAT16},
                                         {GRT_DTYPE_BFLOAT16, GRT_DTYPE_FLOAT},
                                         {GRT_DTYPE_FLOAT, GRT_DTYPE_BFLOAT16}};
    static const int64_t code[] = {PW_Copy, 0, -1, -1};
    for (size_t i = 0; i < 4; i++)
        for (size_t t = 0; t < 4; t++) {
            const grt_attr attrs[] = {{.name = "program", .kind = GRT_ATTR_INTS, .ints = {code, 4}},
                                      {.name = "parts", .kind = GRT_ATTR_INTS, .ints = {parts[i], 3}},
                                      {.name = "to", .kind = GRT_ATTR_INT, .i = types[t][1]}};
            const grt_op_desc desc = {"graphrt", "PointwiseParts", "cast of a part", attrs, 3};
            kernel *k = begin(desc.name);
            (void)add_in(k, types[t][0], 3, dims);
            add_group(&desc, 1, k);
            k->tolerance = 0;
        }
}

/* The first operand is several inputs, one behind the other: of two, and of more; images and rows; beside
 * what other inputs have. */
static void pointwise_joined(void)
{
    static const struct {
        int n;
        int64_t sizes[6], dims[3], w[4], z[4];
    } cases[] = {
        {2, {8, 24}, {2, 3, 5}, {1, 1, 1, 32}, {1, 1, 1, 32}},
        {5, {16, 8, 8, 40, 8}, {2, 3, 5}, {2, 1, 1, 80}, {2, 3, 5, 80}},
        {3, {8, 8, 16}, {1, 1, 1}, {1, 1, 1, 32}, {1, 1, 1, 1}},
        {6, {64, 32, 32, 32, 8, 8}, {3, 2, 7}, {3, 2, 7, 1}, {1, 1, 1, 176}},
    };
    static const grt_dtype dtypes[] = {GRT_DTYPE_FLOAT, GRT_DTYPE_FLOAT16, GRT_DTYPE_BFLOAT16};
    const int64_t code[] = {PW_Mul, 0, 1, -1, PW_Sub, 3, 2, -1};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (size_t d = 0; d < 3; d++) {
            kernel *k = begin("joined");
            for (int i = 0; i < cases[c].n; i++) {
                int64_t dims[4] = {0, 0, 0, cases[c].sizes[i]};
                memcpy(dims, cases[c].dims, sizeof cases[c].dims);
                (void)add_in(k, dtypes[d], 4, dims);
            }
            (void)add_in(k, dtypes[d], 4, cases[c].w);
            (void)add_in(k, dtypes[d], 4, cases[c].z);
            add_joined("joined", code, 8, cases[c].n, k);
        }
}

/* ---- rows ---- */

typedef struct rows_case {
    const char *name;
    int64_t code[16 * 4];
    int n;
    float constants[4];
    size_t n_constants;
    int n_in;     /* x, then a weight for each place in the row, a number for each row, one for all rows of
                   * an outer index, a row for each middle index */
    grt_dtype to; /* NONE: as the inputs */
    double tolerance;
} rows_case;

#define SUM     (-1 - ROWS_SUM)
#define MAX     (-1 - ROWS_MAX)
#define MIN     (-1 - ROWS_MIN)
#define PRODUCT (-1 - ROWS_PRODUCT)
static const rows_case rows_cases[] = {
    {"softmax",
     {MAX, 0, -1, -1, PW_Sub, 0, 1, -1, PW_Exp, 2, -1, -1, SUM, 3, -1, -1, PW_Div, 3, 4, -1},
     5,
     {0},
     0,
     1,
     GRT_DTYPE_NONE,
     1e-5},
    {"a sum", {PW_Abs, 0, -1, -1, SUM, 1, -1, -1}, 2, {0}, 0, 1, GRT_DTYPE_NONE, 1e-5},
    {"a logarithm of a sum",
     {MAX, 0, -1, -1, PW_Sub, 0, 1,  -1, PW_Exp, 2, -1, -1,
      SUM, 3, -1, -1, PW_Log, 4, -1, -1, PW_Add, 5, 1,  -1},
     6,
     {0},
     0,
     1,
     GRT_DTYPE_NONE,
     1e-5},
    /* w and u: x * w + u, less its mean, over its root of squares */
    {"a norm",
     {PW_Mul, 0, 1, -1, PW_Add, 4, 2,  -1, SUM,    5,  -1, -1, PW_Mul,  6,  3,  -1, PW_Sub, 5, 7,  -1,
      PW_Mul, 8, 8, -1, SUM,    9, -1, -1, PW_Add, 10, 3,  -1, PW_Sqrt, 11, -1, -1, PW_Div, 8, 12, -1},
     10,
     {0.125f},
     1,
     3,
     GRT_DTYPE_NONE,
     2e-5},
    {"least and most",
     {MIN, 0, -1, -1, MAX, 0, -1, -1, PW_Sub, 2, 1, -1, PW_Sub, 0, 1, -1, PW_Div, 4, 3, -1},
     5,
     {0},
     0,
     1,
     GRT_DTYPE_NONE,
     4e-6},
    {"a product",
     {PW_Exp, 0, -1, -1, PW_Sqrt, 3, -1, -1, PRODUCT, 4, -1, -1,
      PW_Log, 5, -1, -1, PW_Mul,  6, 1,  -1, PW_Add,  7, 2,  -1},
     6,
     {0.5f, 2},
     2,
     1,
     GRT_DTYPE_NONE,
     1e-5},
    {"truth", {SUM, 0, -1, -1, PW_Greater, 0, 1, -1}, 2, {0}, 0, 1, GRT_DTYPE_BOOL, 0},
    {"all places",
     {PW_Mul, 0, 1, -1, PW_Add, 5, 2,  -1, PW_Sub, 6, 3, -1,
      PW_Add, 7, 4, -1, MAX,    8, -1, -1, PW_Sub, 8, 9, -1},
     6,
     {0},
     0,
     5,
     GRT_DTYPE_NONE,
     4e-6},
};

static void add_rows(const rows_case *c, int64_t length, grt_dtype dtype)
{
    char name[96];
    const int64_t outer = 2, middle = length > 2000 ? 1 : 3, inner = length > 2000 ? 1 : 2;
    const int64_t shapes[5][4] = {{outer, middle, inner, length},
                                  {1, 1, 1, length},
                                  {outer, middle, inner, 1},
                                  {outer, 1, 1, 1},
                                  {1, middle, 1, length}};
    const int64_t short_product = length > 64 ? 64 : length;
    grt_attr attrs[] = {
        {.name = "program", .kind = GRT_ATTR_INTS, .ints = {c->code, 4 * (size_t)c->n}},
        {.name = "constants", .kind = GRT_ATTR_FLOATS, .floats = {c->constants, c->n_constants}},
        {.name = "row_dims", .kind = GRT_ATTR_INT, .i = 1},
        {.name = "to", .kind = GRT_ATTR_INT, .i = c->to ? c->to : dtype},
    };
    snprintf(name, sizeof name, "%s of %lld %s", c->name, (long long)length, grt_dtype_name(dtype));
    const grt_op_desc desc = {"graphrt", "Rows", name, attrs, 4};
    kernel *k = begin(name);
    const grt_tensor *in[ROWS_MAX_INPUTS];
    for (int i = 0; i < c->n_in; i++) {
        int64_t dims[4];
        memcpy(dims, shapes[i], sizeof dims);
        if (strstr(c->name, "product"))
            dims[3] = short_product;
        in[i] = add_in(k, dtype, 4, dims);
    }
    expect(k, &desc);
    rows_program *p;
    cuda_rows_form form;
    grt_text source = {0};
    must(grt_rows_decode(&desc, k->n_in, &p) == GRT_OK, name);
    if (!cuda_rows_form_of(p, 1, in, &k->expected.t, &form)) {
        result(name, "there is no form for the shapes");
        n_kernels--;
        free(p);
        return;
    }
    cuda_rows_source(p, &form, &source);
    add_source(k, CUDA_ROWS_KERNEL, &source);
    grt_text_release(&source);
    free(p);
    k->args.rows = (cuda_rows_args){.out = k->out, .rows = form.rows};
    memcpy(k->args.rows.sizes, form.sizes, sizeof form.sizes);
    for (int i = 0; i < c->n_in; i++)
        k->args.rows.in[i] = in[i]->data;
    k->grid[0] = cuda_rows_grid(&form);
    k->block[0] = cuda_rows_block(&form);
    k->grid[1] = k->block[1] = 1;
    k->tolerance = c->tolerance;
}

/* ---- networks ---- */

/* Two layers; of few rows and of many, with weights that are staged, that lanes keep, and neither. */
static void add_networks(grt_act_kind kind, grt_dtype dtype, int32_t width, int32_t hidden, int64_t rows,
                         int64_t count)
{
    const cuda_networks_limits limits = {232448, 233472, 132};
    const int64_t lane = (count + 31) / 32 * 32;
    const int32_t function = grt_act_function(kind);
    const char *activation = function < 0 ? "" : grt_act_name_of(function);
    const grt_string names[] = {{activation, strlen(activation)}, {"", 0}};
    const float alphas[] = {0.5f, 0}, betas[] = {1.25f, 0};
    const grt_attr attrs[] = {
        {.name = "activations", .kind = GRT_ATTR_STRINGS, .strings = {names, 2}},
        {.name = "alphas", .kind = GRT_ATTR_FLOATS, .floats = {alphas, 2}},
        {.name = "betas", .kind = GRT_ATTR_FLOATS, .floats = {betas, 2}},
    };
    const grt_networks networks = {.n_layers = 2,
                                   .most = 32,
                                   .width = {width, hidden, 3},
                                   .bias = {true, false},
                                   .act = {{kind, 0.5f, 1.25f}, {GRT_ACT_NONE, 0, 0}}};
    cuda_networks_form form;
    cuda_networks_grid grid;
    cuda_networks_form_of(&networks, dtype, rows, count, &limits, &form);
    cuda_networks_grid_of(&form, rows, &limits, &grid);
    char name[96];
    snprintf(name, sizeof name, "%lld networks %d-%d-3 of %lld rows, %s %s%s%s", (long long)count, width,
             hidden, (long long)rows, activation, grt_dtype_name(dtype), form.staged ? ", staged" : "",
             form.kept ? ", kept" : "");
    const grt_op_desc desc = {"graphrt", "Networks", name, attrs, 3};
    kernel *k = begin(name);
    (void)add_in(k, dtype, 3, (const int64_t[]){rows, count, width});
    (void)add_in(k, dtype, 3, (const int64_t[]){width, hidden, lane});
    (void)add_in(k, dtype, 2, (const int64_t[]){hidden, lane});
    (void)add_in(k, dtype, 3, (const int64_t[]){hidden, 3, lane});
    expect(k, &desc);
    grt_text source = {0};
    cuda_networks_source(&form, &source);
    add_source(k, CUDA_NETWORKS_KERNEL, &source);
    grt_text_release(&source);
    k->args.networks = (cuda_networks_args){.x = k->in[0].t.data,
                                            .weights = {k->in[1].t.data, k->in[3].t.data},
                                            .bias = {k->in[2].t.data},
                                            .y = k->out,
                                            .count = (uint32_t)count,
                                            .rows = (uint32_t)rows,
                                            .lane = (uint32_t)lane};
    k->grid[0] = (unsigned)((count + grid.networks - 1) / grid.networks);
    k->grid[1] = (unsigned)((rows + grid.rows - 1) / grid.rows);
    k->block[0] = CUDA_NETWORKS_LANES;
    k->block[1] = (unsigned)grid.warps;
    k->shared = grid.shared;
    k->tolerance = 2e-5;
}

static void add_all(void)
{
    static const grt_dtype dtypes[] = {GRT_DTYPE_FLOAT, GRT_DTYPE_FLOAT16, GRT_DTYPE_BFLOAT16};
    static const int64_t lengths[] = {1, 5, 24, 40, 49, 250, 257, 1000, 1028, 4100, 16384};
    static const grt_act_kind kinds[] = {GRT_ACT_NONE,
#define X(kind, name, function) GRT_ACT_##kind,
                                         GRT_ACTIVATIONS(X)
#undef X
    };
    for (int32_t opcode = 0; opcode < PW_COUNT; opcode++)
        if (grt_pointwise_info(opcode)->fusible)
            pointwise_function(opcode, dtypes[opcode % 3]);
    pointwise_places();
    pointwise_further();
    pointwise_uneven();
    pointwise_parts();
    casts_of_parts();
    pointwise_joined();
    int turn = 0;
    for (size_t c = 0; c < sizeof rows_cases / sizeof *rows_cases; c++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
            add_rows(&rows_cases[c], lengths[l], dtypes[turn++ % 3]);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        add_networks(kinds[i], dtypes[i % 3], i % 2 ? 7 : 20, i % 2 ? 8 : 32, i % 4 < 2 ? 2 : 70,
                     i % 5 ? 48 : 33);
    add_networks(GRT_ACT_RELU, GRT_DTYPE_FLOAT, 8, 4, 40, 64);
    add_networks(GRT_ACT_TANH, GRT_DTYPE_FLOAT, 20, 30, 40, 50);
}

/* ---- running ---- */

static float half_to_float(uint16_t x)
{
    return grt_half_to_float(x);
}
static uint16_t float_to_half(float x)
{
    return grt_float_to_half(x);
}
static uint16_t float_to_bfloat16(float x)
{
    return grt_float_to_bfloat16(x);
}

static double element(grt_dtype dtype, const void *data, int64_t i)
{
    return dtype == GRT_DTYPE_FLOAT     ? (double)((const float *)data)[i]
           : dtype == GRT_DTYPE_BOOL    ? (double)((const uint8_t *)data)[i]
           : dtype == GRT_DTYPE_FLOAT16 ? (double)grt_half_to_float(((const uint16_t *)data)[i])
                                        : (double)grt_bfloat16_to_float(((const uint16_t *)data)[i]);
}

/* NULL if they agree. The message is this function's. */
static const char *compare(const kernel *k)
{
    static char why[160];
    const grt_tensor *want = &k->expected.t;
    const double step = want->dtype == GRT_DTYPE_FLOAT16    ? 0x1p-10
                        : want->dtype == GRT_DTYPE_BFLOAT16 ? 0x1p-7
                                                            : 0;
    const int64_t n = grt_tensor_elements(want);
    for (int64_t i = 0; i < n; i++) {
        const double e = element(want->dtype, want->data, i), g = element(want->dtype, k->out, i);
        const double allowed = (k->tolerance + step) * fabs(e) + k->tolerance * 0.5;
        if (isnan(e) ? isnan(g) : e == g || fabs(e - g) <= allowed)
            continue;
        snprintf(why, sizeof why, "element %lld of %lld is %.9g; the CPU gives %.9g", (long long)i,
                 (long long)n, g, e);
        return why;
    }
    const unsigned char *guard = (unsigned char *)k->out + (size_t)n * grt_dtype_size(want->dtype);
    for (int i = 0; i < GUARD; i++)
        if (guard[i] != 0xee)
            return "it wrote behind its result";
    return NULL;
}

static const char *run(void *opened, const kernel *k, bool falling)
{
    const char *(*launch)(const void *, const unsigned *, const unsigned *, size_t, bool);
    char symbol[32];
    snprintf(symbol, sizeof symbol, "run_%d", (int)(k - kernels));
    *(void **)&launch = dlsym(opened, symbol);
    if (!launch)
        return "it was not compiled";
    const size_t bytes = (size_t)grt_tensor_elements(&k->expected.t) * grt_dtype_size(k->expected.t.dtype);
    memset(k->out, 0xee, bytes + GUARD);
    const char *why = launch(&k->args, k->grid, k->block, k->shared, falling);
    return why ? why : compare(k);
}

/* The folder must be the caller's to write to. NULL if it cannot be done. */
static void *compile(const char *folder)
{
    const char *compiler = getenv("CXX"), *source = getenv("srcdir");
    char path[512], library[512], command[2048];
    snprintf(path, sizeof path, "%s/kernels.cc", folder);
    snprintf(library, sizeof library, "%s/kernels.so", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        return NULL;
    const bool written = fwrite(program.data, 1, program.size, file) == program.size;
    if (fclose(file) || !written)
        return NULL;
    snprintf(command, sizeof command, "%s -std=c++17 -O0 -w -shared -fPIC -I'%s' -o '%s' '%s'",
             compiler && *compiler ? compiler : "c++", source && *source ? source : ".", library, path);
    return system(command) == 0 ? dlopen(library, RTLD_NOW) : NULL; /* the compiler has said why */
}

static void run_all(void *opened)
{
    void (*use)(float (*)(uint16_t), uint16_t (*)(float), uint16_t (*)(float));
    *(void **)&use = dlsym(opened, "emulated_use");
    use(half_to_float, float_to_half, float_to_bfloat16);
    for (int i = 0; i < n_kernels; i++)
        for (int falling = 0; falling < 2; falling++)
            result(kernels[i].name, run(opened, &kernels[i], falling));
}

int main(void)
{
    char folder[] = "/tmp/graphrt-emulate-XXXXXX", command[128];
    grt_text_add(&program, "#include \"tests/emulate/cuda.h\"\n");
    must(emulate_translate(cuda_generated_beginning, &program), "the beginning");
    has_nvrtc = emulate_nvrtc_open();
    if (!has_nvrtc)
        printf("skipped: whether NVRTC takes the kernels, as it is not on this machine\n");
    add_all();
    if (program.failed || !mkdtemp(folder)) {
        printf("FAIL: no memory or no folder\n");
        return 1;
    }
    void *opened = compile(folder);
    if (opened)
        run_all(opened);
    else
        result("the kernels", "they were not compiled (set CXX to a C++ compiler, srcdir to the sources)");
    snprintf(command, sizeof command, "rm -rf '%s'", getenv("GRAPHRT_KEEP") ? "" : folder);
    if (system(command))
        printf("%s was not removed\n", folder);
    for (int i = 0; i < n_kernels; i++) {
        for (int32_t k = 0; k < kernels[i].n_in; k++)
            grt_value_clear(&kernels[i].in[k]);
        grt_value_clear(&kernels[i].expected);
        free(kernels[i].out);
    }
    grt_text_release(&program);
    printf("%zu passed, %zu failed, %zu skipped\n", passed, failed, skipped);
    return failed ? 1 : 0;
}
