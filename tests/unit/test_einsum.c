/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum of many operands, which is computed by pairs, against its definition. */
#include "tests/unit/onnx_model.h"
#include "tests/unit/op_runner.h"

#include "src/base/float.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 5, LETTERS = 26, ROOM = 4096 };

/* Each letter has a size of its own: a 2, b 3, ... */
static int64_t size_of(char letter)
{
    return 2 + (letter - 'a') % 4;
}

typedef struct formula {
    char terms[MOST][16], out[16];
    int n;
} formula;

static formula parse(const char *equation)
{
    formula f = {.n = 1};
    size_t at = 0;
    for (; *equation != '-'; equation++)
        if (*equation == ',') {
            f.n++;
            at = 0;
        } else {
            f.terms[f.n - 1][at++] = *equation;
        }
    strcpy(f.out, equation + 2);
    return f;
}

static int64_t place(const char *term, const int64_t *index)
{
    int64_t at = 0;
    for (; *term; term++)
        at = at * size_of(*term) + index[*term - 'a'];
    return at;
}

static int64_t elements(const char *term)
{
    int64_t n = 1;
    for (; *term; term++)
        n *= size_of(*term);
    return n;
}

static void by_definition(const formula *f, float x[MOST][ROOM], double *y)
{
    int64_t index[LETTERS] = {0};
    bool used[LETTERS] = {false};
    for (int i = 0; i < f->n; i++)
        for (const char *c = f->terms[i]; *c; c++)
            used[*c - 'a'] = true;
    memset(y, 0, ROOM * sizeof *y);
    for (int at = 0; at < LETTERS;) {
        double product = 1;
        for (int i = 0; i < f->n; i++)
            product *= (double)x[i][place(f->terms[i], index)];
        y[place(f->out, index)] += product;
        for (at = 0; at < LETTERS && (!used[at] || ++index[at] == size_of((char)('a' + at))); at++)
            index[at] = 0;
    }
}

static const char *const equations[] = {
    "a,b,c->",         /* each is summed by itself */
    "ab,bc,cd,de->ae", /* a chain of products */
    "ab,cd,bd->ac",    /* the first two would be a table of four letters */
    "abc,b,c->a",       "ab,ab,ab->b",           "aab,bc,cd->d", /* a diagonal */
    "ab,b->",                                                    /* two operands, a letter of one alone */
    "a,b,c,d,e->edcba", "abc,def,gha,idg->bceh",
};

/* Rows, columns, batch and sums of no, one or two letters, in any order; weights of Fourier operators;
 * attention written out. */
static const char *const products[] = {
    "ab,bc->ac",    "ab,cb->ca",       "abc,abd->acd", "abc,bdc->adc",    "abc,abd->cd",
    "ab,b->a",      "a,ab->b",         "abc,acb->a",   "abcd,cdef->abef", "abcd,aecd->abe",
    "abc,dac->bad", "abce,adce->cadb", "ab,acb->ca",   "abcd,ebcd->eabc",
};

static void dims_text(const char *term, char *out)
{
    *out = '\0';
    for (; *term; term++)
        sprintf(out + strlen(out), "%s%d", *out ? "," : "", (int)size_of(*term));
}

START_TEST(pairs_are_the_definition)
{
    static float x[MOST][ROOM];
    static uint16_t half[MOST][ROOM];
    static double y[ROOM];
    const int n_equations = (int)(sizeof equations / sizeof *equations), number = _i / 2;
    const char *equation = number < n_equations ? equations[number] : products[number - n_equations];
    const bool narrow = _i % 2;
    const formula f = parse(equation);
    onnx_model m = onnx_create();
    char inputs[32] = "", dims[64];
    for (int i = 0; i < f.n; i++) {
        const char name[] = {(char)('p' + i), '\0'};
        fill_floats(x[i], elements(f.terms[i]), (uint32_t)i + 1);
        for (int64_t k = 0; k < elements(f.terms[i]); k++) {
            half[i][k] = grt_float_to_half(x[i][k]);
            x[i][k] = narrow ? grt_half_to_float(half[i][k]) : x[i][k];
        }
        dims_text(f.terms[i], dims);
        onnx_input(&m, m.graph, name, narrow ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_FLOAT, dims);
        sprintf(inputs + strlen(inputs), "%s%s", i ? "," : "", name);
    }
    Onnx__AttributeProto *a = onnx_attr(&m, onnx_node(&m, m.graph, "Einsum", inputs, "y"), "equation",
                                        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    a->has_s = 1;
    a->s = (ProtobufCBinaryData){strlen(equation), grt_arena_memdup(m.arena, equation, strlen(equation))};
    onnx_output(&m, m.graph, "y");
    by_definition(&f, x, y);

    grt_runtime *runtime;
    grt_session *session;
    grt_context *context;
    grt_tensor out;
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
    grt_model *model = onnx_open(&m, runtime);
    ck_assert_msg(grt_session_create(model, "cpu", NULL, &session) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    for (int i = 0; i < f.n; i++) {
        grt_tensor t = {.dtype = narrow ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_FLOAT,
                        .rank = (int32_t)strlen(f.terms[i]),
                        .data = narrow ? (void *)half[i] : x[i]};
        for (int32_t k = 0; k < t.rank; k++)
            t.dims[k] = size_of(f.terms[i][k]);
        ck_assert_msg(grt_context_set_input(context, (size_t)i, &t) == GRT_OK, "%s", grt_last_error());
    }
    ck_assert_msg(grt_context_run(context) == GRT_OK, "%s: %s", equation, grt_last_error());
    ck_assert_int_eq(grt_context_get_output(context, 0, &out), GRT_OK);
    ck_assert_int_eq(grt_tensor_elements(&out), elements(f.out));
    ck_assert_int_eq(out.dtype, narrow ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_FLOAT);
    for (int64_t k = 0; k < elements(f.out); k++) {
        const double found = narrow ? (double)grt_half_to_float(((uint16_t *)out.data)[k])
                                    : (double)((const float *)out.data)[k];
        /* float16 is rounded once, at the end; float32 once a pair */
        const double allowed = narrow ? 1e-3 * fabs(y[k]) + 1e-4 : 1e-5;
        ck_assert_msg(fabs(found - y[k]) <= allowed, "%s: element %lld is %g, expected %g", equation,
                      (long long)k, found, y[k]);
    }
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    grt_runtime_release(runtime);
    onnx_release(&m);
}
END_TEST

/* An ellipsis stands for letters as others do: a sum and, as its last pair sums over nothing, a Mul. */
START_TEST(an_ellipsis_is_split_too)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "p", GRT_DTYPE_FLOAT, "a,b,c");
    Onnx__AttributeProto *a = onnx_attr(&m, onnx_node(&m, m.graph, "Einsum", "p,p,p", "y"), "equation",
                                        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    static char text[] = "...k,...k,...m->...m";
    a->has_s = 1;
    a->s = (ProtobufCBinaryData){sizeof text - 1, (uint8_t *)text};
    onnx_output(&m, m.graph, "y");
    grt_runtime *runtime;
    grt_step_info step = {.struct_size = sizeof step};
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
    grt_model *model = onnx_open(&m, runtime);
    size_t einsums = 0, muls = 0;
    for (size_t i = 0; grt_model_step(model, i, &step) == GRT_OK; i++) {
        einsums += !strcmp(step.op, "Einsum") || strstr(step.op, "MatMul");
        muls += !strcmp(step.op, "Mul");
    }
    ck_assert_uint_eq(einsums, 1);
    ck_assert_uint_eq(muls, 1);
    grt_model_release(model);
    grt_runtime_release(runtime);
    onnx_release(&m);
}
END_TEST

Suite *suite_test_einsum(void);
Suite *suite_test_einsum(void)
{
    Suite *suite = suite_create("einsum");
    TCase *tests = tcase_create("einsum");
    tcase_add_loop_test(tests, pairs_are_the_definition, 0,
                        2 * (int)(sizeof equations / sizeof *equations + sizeof products / sizeof *products));
    tcase_add_test(tests, an_ellipsis_is_split_too);
    suite_add_tcase(suite, tests);
    return suite;
}
