/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of pointwise ops: their programs are decoded, computed, and refused if wrong. */
#include "src/base/float.h"
#include "src/base/pointwise.h"
#include "src/base/pointwise_parts.h"
#include "tests/unit/evaluate.h"
#include "tests/unit/suite.h"

#include <stdlib.h>
#include <string.h>

START_TEST(groups_compute_their_program)
{
    /* LeakyRelu((x + b) * 2) where mask, else 0.5; b per column, mask per row */
    enum { ROWS = 53, COLUMNS = 91 };
    static float x[ROWS * COLUMNS], b[COLUMNS];
    static uint16_t xh[ROWS * COLUMNS], bh[COLUMNS];
    uint8_t mask[ROWS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        xh[i] = grt_float_to_half(x[i] = (float)(i * 31 % 257 - 128) / 16);
    for (int i = 0; i < COLUMNS; i++)
        bh[i] = grt_float_to_half(b[i] = (float)(i % 9 - 4));
    for (int i = 0; i < ROWS; i++)
        mask[i] = i % 3 != 0;
    const int64_t program[] = {
        PW_Add,       0, 1, -1, PW_Mul,   6, 3, -1, /* inputs 0..2, constants 3..5, results from 6 on */
        PW_LeakyRelu, 7, 4, -1, PW_Where, 2, 8, 5};
    const float constants[] = {2.0f, 0.25f, 0.5f};
    const grt_attr attrs[] = {{.name = "program", .kind = GRT_ATTR_INTS, .ints = {program, 16}},
                              {.name = "constants", .kind = GRT_ATTR_FLOATS, .floats = {constants, 3}}};
    for (int half = 0; half < 2; half++) {
        grt_dtype dtype = half ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_FLOAT;
        grt_tensor in[3] = {
            {.dtype = dtype, .rank = 2, .dims = {ROWS, COLUMNS}, .data = half ? (void *)xh : (void *)x},
            {.dtype = dtype, .rank = 1, .dims = {COLUMNS}, .data = half ? (void *)bh : (void *)b},
            {.dtype = GRT_DTYPE_BOOL, .rank = 2, .dims = {ROWS, 1}, .data = mask}};
        grt_value out;
        grt_status status = evaluate("graphrt", "Pointwise", attrs, 2, in, 3, &out);
        ck_assert_msg(status == GRT_OK, "%s", grt_last_error());
        ck_assert_int_eq(out.t.dtype, dtype);
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            float v = (x[i] + b[i % COLUMNS]) * 2;
            float expected = !mask[i / COLUMNS] ? 0.5f : v < 0 ? 0.25f * v : v;
            float found = half ? grt_half_to_float(((uint16_t *)out.t.data)[i]) : ((float *)out.t.data)[i];
            ck_assert_msg(found == expected, "element %d is %g, expected %g", i, (double)found,
                          (double)expected);
        }
        grt_value_clear(&out);
    }
}
END_TEST

/* x * x, minus 2, plus the square, times the sum: the difference is read by the next instruction only. */
START_TEST(programs_are_decoded)
{
    static const int64_t code[] = {PW_Mul, 0, 0, -1, PW_Sub, 2, 1, -1, PW_Add, 3, 2, -1, PW_Mul, 4, 4, -1};
    static const float two = 2;
    const grt_attr attrs[] = {{.name = "program", .kind = GRT_ATTR_INTS, .ints = {code, 16}},
                              {.name = "constants", .kind = GRT_ATTR_FLOATS, .floats = {&two, 1}}};
    const grt_op_desc desc = {
        .domain = "graphrt", .op = "Pointwise", .name = "n", .attrs = attrs, .n_attrs = 2};
    pw_program *p;
    ck_assert_int_eq(grt_pointwise_decode(&desc, 1, false, &p), GRT_OK);
    ck_assert(p->n == 4 && p->n_constants == 1 && p->constants[0] == 2 && p->n_registers == 1);
    ck_assert(p->code[0].kind[0] == PW_SOURCE_INPUT && p->code[0].target == 0);
    ck_assert(p->code[1].kind[0] == PW_SOURCE_PREVIOUS && p->code[1].kind[1] == PW_SOURCE_CONSTANT);
    ck_assert(p->code[1].target == -1);
    ck_assert(p->code[2].kind[0] == PW_SOURCE_PREVIOUS && p->code[2].kind[1] == PW_SOURCE_REGISTER);
    ck_assert(p->code[2].index[1] == 0 && p->code[3].kind[1] == PW_SOURCE_PREVIOUS);
    free(p);
    ck_assert_int_eq(grt_pointwise_decode(&desc, 1, true, &p), GRT_OK);
    ck_assert_int_eq(p->n_registers, 2);
    ck_assert(p->code[2].kind[0] == PW_SOURCE_REGISTER && p->code[2].index[0] == p->code[1].target);
    ck_assert_int_ne(p->code[2].index[0], p->code[2].index[1]);
    free(p);
}
END_TEST

START_TEST(wrong_programs_are_refused)
{
    const float x[] = {1, 2};
    const int64_t programs[][4] = {{PW_COUNT, 0, 0, -1}, {PW_Add, 0, 1, -1}, {PW_Add, 0, -1, -1},
                                   {PW_Elu, 0, 0, -1},   {-1, 0, 0, 0},      {PW_BitwiseAnd, 0, 0, -1}};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        grt_attr attr = {.name = "program", .kind = GRT_ATTR_INTS, .ints = {programs[i], 4}};
        grt_tensor in = vector_of(GRT_DTYPE_FLOAT, 2, x);
        grt_value out;
        ck_assert_int_ne(evaluate("graphrt", "Pointwise", &attr, 1, &in, 1, &out), GRT_OK);
        grt_value_clear(&out);
    }
}
END_TEST

START_TEST(ops_know_their_functions)
{
    grt_attr tanh_attr = {.name = "approximate", .kind = GRT_ATTR_STRING, .s = {"tanh", 4}};
    grt_attr alpha = {.name = "alpha", .kind = GRT_ATTR_FLOAT, .f = 0.3f};
    float p[PW_MAX_PARAMS];
    ck_assert_int_eq(grt_pointwise_opcode_of(&(grt_op_desc){"", "Gelu", "", &tanh_attr, 1}, 1), PW_GeluTanh);
    ck_assert_int_eq(grt_pointwise_opcode_of(&(grt_op_desc){"", "Sum", "", NULL, 0}, 2), PW_Add);
    ck_assert_int_eq(grt_pointwise_opcode_of(&(grt_op_desc){"", "Sum", "", NULL, 0}, 3), -1);
    ck_assert_int_eq(grt_pointwise_opcode_of(&(grt_op_desc){"", "BitwiseAnd", "", NULL, 0}, 2), -1);
    ck_assert_int_eq(grt_pointwise_opcode_of(&(grt_op_desc){"other", "Add", "", NULL, 0}, 2), -1);
    ck_assert_int_eq(grt_pointwise_opcode_of(&(grt_op_desc){"", "Conv", "", NULL, 0}, 2), -1);
    ck_assert_int_eq(grt_pointwise_params(&(grt_op_desc){"", "LeakyRelu", "", &alpha, 1}, PW_LeakyRelu, p),
                     1);
    ck_assert(p[0] == 0.3f);
    ck_assert_int_eq(grt_pointwise_params(&(grt_op_desc){"", "HardSigmoid", "", NULL, 0}, PW_HardSigmoid, p),
                     2);
    ck_assert(p[0] == 0.2f && p[1] == 0.5f);
}
END_TEST

/* (the second part of x) - (the first) * w * z: of rows, long and short, and of channels in front. */
START_TEST(parts_are_read_where_they_lie)
{
    static const struct {
        int64_t x[3], w[3], z[3], size, axis;
    } cases[] = {{{5, 7, 100}, {1, 1, 50}, {5, 7, 1}, 50, 2},
                 {{5, 7, 6}, {1, 1, 3}, {5, 1, 1}, 3, 2},
                 {{4, 10, 33}, {1, 5, 1}, {4, 5, 33}, 5, 1},
                 {{1, 6, 9}, {1, 3, 9}, {1, 1, 9}, 3, 1},
                 {{2, 6, 1}, {2, 3, 40}, {2, 3, 40}, 3, 1}};
    static float x[4000], w[400], z[4000];
    for (int i = 0; i < 4000; i++) {
        x[i] = (float)(i * 37 % 101 - 50);
        z[i] = (float)(i * 7 % 5 - 2);
        w[i % 400] = (float)(i % 400 % 9 - 4);
    }
    const int64_t program[] = {PW_Mul, 0, 2, -1, PW_Mul, 4, 3, -1, PW_Sub, 1, 5, -1};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const int64_t axis = 3 - cases[c].axis, size = cases[c].size,
                      parts[] = {axis, 0, size, axis, size, size, 0, 0, 0, 0, 0, 0};
        const grt_attr attrs[] = {{.name = "program", .kind = GRT_ATTR_INTS, .ints = {program, 12}},
                                  {.name = "parts", .kind = GRT_ATTR_INTS, .ints = {parts, 12}}};
        grt_tensor in[4] = {{.dtype = GRT_DTYPE_FLOAT, .rank = 3, .data = x}};
        memcpy(in[0].dims, cases[c].x, sizeof cases[c].x);
        in[1] = in[2] = in[3] = in[0];
        memcpy(in[2].dims, cases[c].w, sizeof cases[c].w);
        memcpy(in[3].dims, cases[c].z, sizeof cases[c].z);
        in[2].data = w;
        in[3].data = z;
        grt_value out;
        ck_assert_msg(evaluate("graphrt", "PointwiseParts", attrs, 2, in, 4, &out) == GRT_OK, "%s",
                      grt_last_error());
        for (int64_t i = 0, n = grt_tensor_elements(&out.t); i < n; i++) {
            const int64_t at[3] = {i / out.t.dims[2] / out.t.dims[1], i / out.t.dims[2] % out.t.dims[1],
                                   i % out.t.dims[2]};
            int64_t place[4] = {0};
            for (int k = 0; k < 4; k++)
                for (int d = 0; d < 3; d++)
                    place[k] = place[k] * in[k].dims[d] + (in[k].dims[d] == 1 ? 0 : at[d]) +
                               (k == 1 && d == cases[c].axis ? size : 0);
            const float expected = x[place[1]] - x[place[0]] * w[place[2]] * z[place[3]];
            ck_assert_msg(((float *)out.t.data)[i] == expected, "case %zu: element %lld is %g, expected %g",
                          c, (long long)i, (double)((float *)out.t.data)[i], (double)expected);
        }
        grt_value_clear(&out);
    }
}
END_TEST

/* x * w - z, x of three inputs with 3, 1 and 40 columns, one of which is there twice. */
START_TEST(inputs_are_joined)
{
    enum { ROWS = 7, COLUMNS = 47 };
    static float a[ROWS * 3], b[ROWS * 1], c[ROWS * 40], w[COLUMNS], z[ROWS];
    for (int i = 0; i < ROWS * 40; i++)
        c[i] = (float)(i * 37 % 101 - 50);
    for (int i = 0; i < ROWS * 3; i++)
        a[i] = (float)(i * 11 % 23 - 8);
    for (int i = 0; i < ROWS; i++) {
        b[i] = (float)(100 + i);
        z[i] = (float)(i % 3 - 1);
    }
    for (int i = 0; i < COLUMNS; i++)
        w[i] = (float)(i % 5 - 2);
    const int64_t program[] = {PW_Mul, 0, 1, -1, PW_Sub, 3, 2, -1};
    const grt_attr attrs[] = {{.name = "program", .kind = GRT_ATTR_INTS, .ints = {program, 8}},
                              {.name = "joined", .kind = GRT_ATTR_INT, .i = 4}};
    const grt_tensor in[] = {{.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {ROWS, 3}, .data = a},
                             {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {ROWS, 1}, .data = b},
                             {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {ROWS, 40}, .data = c},
                             {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {ROWS, 3}, .data = a},
                             {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {COLUMNS}, .data = w},
                             {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {ROWS, 1}, .data = z}};
    grt_value out;
    ck_assert_msg(evaluate("graphrt", "PointwiseConcat", attrs, 2, in, 6, &out) == GRT_OK, "%s",
                  grt_last_error());
    ck_assert(out.t.rank == 2 && out.t.dims[0] == ROWS && out.t.dims[1] == COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const int row = i / COLUMNS, at = i % COLUMNS;
        const float x = at < 3    ? a[row * 3 + at]
                        : at < 4  ? b[row]
                        : at < 44 ? c[row * 40 + at - 4]
                                  : a[row * 3 + at - 44];
        ck_assert_msg(((float *)out.t.data)[i] == x * w[at] - z[row], "element %d", i);
    }
    grt_value_clear(&out);
}
END_TEST

START_TEST(wrong_joins_are_refused)
{
    static const float x[24];
    static const int64_t program[] = {PW_Neg, 0, -1, -1};
    const grt_tensor in[] = {{.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {4, 6}, .data = (void *)x},
                             {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {3, 6}, .data = (void *)x},
                             {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {6}, .data = (void *)x},
                             {.dtype = GRT_DTYPE_FLOAT16, .rank = 2, .dims = {4, 6}, .data = (void *)x}};
    static const struct {
        int64_t joined;
        int second;
    } cases[] = {{0, 0}, {1, 0}, {3, 0}, {65, 0}, {-1, 0}, {2, 1}, {2, 2}, {2, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const grt_attr attrs[] = {{.name = "program", .kind = GRT_ATTR_INTS, .ints = {program, 4}},
                                  {.name = "joined", .kind = GRT_ATTR_INT, .i = cases[i].joined}};
        const grt_tensor both[] = {in[0], in[cases[i].second]};
        grt_value out;
        ck_assert_int_ne(evaluate("graphrt", "PointwiseConcat", attrs, 2, both, 2, &out), GRT_OK);
        grt_value_clear(&out);
    }
}
END_TEST

START_TEST(wrong_parts_are_refused)
{
    static const float x[24];
    static const int64_t program[] = {PW_Neg, 0, -1, -1};
    static const int64_t parts[][4] = {{1, 0, 2, 0},  {0, 1, 2, 0}, {1, 0, 1, 0},         {1, -1, 2, 0},
                                       {4, 0, 2, 0},  {1, 5, 2, 0}, {1, INT64_MAX, 2, 0}, {-1, 0, 2, 0},
                                       {17, 0, 2, 0}, {2, 0, 5, 0}};
    grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {4, 6}, .data = (void *)x};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const grt_attr attrs[] = {
            {.name = "program", .kind = GRT_ATTR_INTS, .ints = {program, 4}},
            {.name = "parts", .kind = GRT_ATTR_INTS, .ints = {parts[i], i ? 3 : 4}},
        };
        grt_value out;
        ck_assert_int_ne(evaluate("graphrt", "PointwiseParts", attrs, 2, &in, 1, &out), GRT_OK);
        grt_value_clear(&out);
    }
}
END_TEST

/* No rule has seen the attributes of a plan. */
START_TEST(forged_operands_are_refused)
{
    static const int64_t part[] = {-1, 0, 2};
    const grt_attr attrs[] = {{.name = "parts", .kind = GRT_ATTR_INTS, .ints = {part, 3}},
                              {.name = "joined", .kind = GRT_ATTR_INT, .i = PW_MOST_JOINED}};
    grt_op_desc desc = {.domain = "graphrt", .op = "Pointwise", .name = "n", .attrs = attrs, .n_attrs = 2};
    ck_assert_int_eq(grt_pointwise_check_operands(&desc, 1), GRT_OK);
    ck_assert_int_eq(grt_pointwise_joined(&desc), 1);
    ck_assert_int_eq(grt_pointwise_part(&desc, 0).axis, 0);
    desc.op = "PointwiseParts";
    ck_assert_int_ne(grt_pointwise_check_operands(&desc, 1), GRT_OK);
    ck_assert_int_eq(grt_pointwise_joined(&desc), 1);
    desc.op = "PointwiseConcat";
    ck_assert_int_ne(grt_pointwise_check_operands(&desc, PW_MOST_JOINED - 1), GRT_OK);
    ck_assert_int_eq(grt_pointwise_check_operands(&desc, PW_MOST_JOINED), GRT_OK);
    ck_assert_int_eq(grt_pointwise_part(&desc, 0).axis, 0);
}
END_TEST

UNIT_SUITE(test_pointwise_group, NULL, NULL, groups_compute_their_program, programs_are_decoded,
           wrong_programs_are_refused, ops_know_their_functions, parts_are_read_where_they_lie,
           wrong_parts_are_refused, inputs_are_joined, wrong_joins_are_refused, forged_operands_are_refused)
