/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences and optionals. */
#include "tests/unit/op_runner.h"

#include <check.h>
#include <string.h>

static void add_position(op_runner *r, const int64_t *position)
{
    op_add(r, GRT_DTYPE_INT64, 0, NULL, position);
}

/* [0, 1, ..., n - 1] as scalars. */
static void make_sequence(grt_value *out, int64_t n)
{
    *out = (grt_value){.kind = GRT_KIND_SEQUENCE, .t.dtype = GRT_DTYPE_INT64};
    for (int64_t i = 0; i < n; i++) {
        grt_value *item;
        ck_assert_int_eq(grt_value_insert(out, out->n, &item), GRT_OK);
        ck_assert_int_eq(grt_value_alloc(item, GRT_DTYPE_INT64, 0, NULL), GRT_OK);
        *(int64_t *)item->t.data = i;
    }
}

static int64_t item_of(const grt_value *sequence, size_t i)
{
    ck_assert_uint_lt(i, sequence->n);
    return *(const int64_t *)sequence->items[i].t.data;
}

START_TEST(test_insert_and_erase)
{
    static const struct {
        int64_t position;
        bool given;
        size_t lands; /* SIZE_MAX: refused */
    } cases[] = {{0, true, 0},  {3, true, 3},        {-1, true, 2},       {-3, true, 0},
                 {0, false, 3}, {4, true, SIZE_MAX}, {-4, true, SIZE_MAX}};
    grt_value sequence;
    int64_t ten = 10;
    make_sequence(&sequence, 3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        op_runner r;
        op_begin(&r, "", "SequenceInsert");
        op_add_value(&r, &sequence);
        op_add(&r, GRT_DTYPE_INT64, 0, NULL, &ten);
        if (cases[i].given)
            add_position(&r, &cases[i].position);
        grt_status status = op_run(&r, 1);
        ck_assert_int_eq(status == GRT_OK, cases[i].lands != SIZE_MAX);
        if (status == GRT_OK) {
            ck_assert_uint_eq(r.out[0].n, 4);
            ck_assert_int_eq(item_of(&r.out[0], cases[i].lands), 10);
        }
        op_end(&r);
    }
    for (int64_t position = -4; position <= 3; position++) {
        op_runner r;
        op_begin(&r, "", "SequenceErase");
        op_add_value(&r, &sequence);
        add_position(&r, &position);
        bool ok = op_run(&r, 1) == GRT_OK;
        ck_assert_int_eq(ok, position >= -3 && position < 3);
        if (ok) {
            ck_assert_uint_eq(r.out[0].n, 2);
            ck_assert_int_eq(item_of(&r.out[0], 0), (position + 3) % 3 == 0 ? 1 : 0);
        }
        op_end(&r);
    }
    grt_value_clear(&sequence);
}
END_TEST

START_TEST(test_at_and_length)
{
    grt_value sequence;
    int64_t last = -1;
    op_runner r;
    make_sequence(&sequence, 3);
    op_begin(&r, "", "SequenceAt");
    op_add_value(&r, &sequence);
    add_position(&r, &last);
    op_run_ok(&r, 1);
    ck_assert_int_eq(*(int64_t *)r.out[0].t.data, 2);
    op_end(&r);
    op_begin(&r, "", "SequenceLength");
    op_add_value(&r, &sequence);
    op_run_ok(&r, 1);
    ck_assert_int_eq(*(int64_t *)r.out[0].t.data, 3);
    op_end(&r);
    grt_value_clear(&sequence);
}
END_TEST

/* Split along each axis, join again: nothing must change. */
START_TEST(test_split_and_join)
{
    float x[2 * 5 * 3];
    const int64_t dims[] = {2, 5, 3}, splits[] = {1, 0, 4}, two = 2;
    fill_floats(x, 30, 1);
    for (int64_t axis = -3; axis < 3; axis++)
        for (int how = 0; how < 3; how++) { /* single elements, by two, by list (axis 1 only) */
            if (how == 2 && axis != 1)
                continue;
            op_runner split, join;
            op_begin(&split, "", "SplitToSequence");
            op_int(&split, "axis", axis);
            op_int(&split, "keepdims", 0);
            op_add(&split, GRT_DTYPE_FLOAT, 3, dims, x);
            if (how)
                op_add(&split, GRT_DTYPE_INT64, how - 1, (const int64_t[]){3}, how == 1 ? &two : splits);
            op_run_ok(&split, 1);
            op_begin(&join, "", "ConcatFromSequence");
            op_int(&join, "axis", axis);
            op_int(&join, "new_axis", how == 0);
            op_add_value(&join, &split.out[0]);
            op_run_ok(&join, 1);
            ck_assert(grt_dims_equal(join.out[0].t.dims, join.out[0].t.rank, dims, 3));
            ck_assert_mem_eq(join.out[0].t.data, x, sizeof x);
            op_end(&split);
            op_end(&join);
        }
}
END_TEST

START_TEST(test_split_keeps_strings)
{
    char text[] = "abc";
    grt_string x[] = {{text, 1}, {text + 1, 2}};
    op_runner r;
    op_begin(&r, "", "SplitToSequence");
    op_add(&r, GRT_DTYPE_STRING, 1, (const int64_t[]){2}, x);
    op_run_ok(&r, 1);
    memset(text, 'x', 3); /* the parts own their bytes */
    const grt_string *second = r.out[0].items[1].t.data;
    ck_assert_uint_eq(second->size, 2);
    ck_assert_mem_eq(second->data, "bc", 2);
    op_end(&r);
}
END_TEST

START_TEST(test_bad_splits)
{
    float x[5] = {0};
    const int64_t dims[] = {5}, negative[] = {6, -1}, small[] = {2, 2}, zero = 0;
    for (int i = 0; i < 3; i++) {
        op_runner r;
        op_begin(&r, "", "SplitToSequence");
        op_add(&r, GRT_DTYPE_FLOAT, 1, dims, x);
        op_add(&r, GRT_DTYPE_INT64, i < 2, (const int64_t[]){2}, i == 0 ? negative : i == 1 ? small : &zero);
        ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_ARGUMENT);
        op_end(&r);
    }
}
END_TEST

/* A table without elements has as many rows as it says. */
START_TEST(test_split_is_a_list)
{
    const float x[5] = {0};
    op_runner r;
    op_begin(&r, "", "SplitToSequence");
    op_add(&r, GRT_DTYPE_FLOAT, 1, (const int64_t[]){0}, x);
    op_add(&r, GRT_DTYPE_INT64, 2, (const int64_t[]){3, 0}, x);
    ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_ARGUMENT);
    op_end(&r);
}
END_TEST

START_TEST(test_optionals)
{
    int64_t seven = 7;
    op_runner r, test, get;
    op_begin(&r, "", "Optional");
    op_add(&r, GRT_DTYPE_INT64, 0, NULL, &seven);
    op_run_ok(&r, 1);
    op_begin(&test, "", "OptionalHasElement");
    op_add_value(&test, &r.out[0]);
    op_run_ok(&test, 1);
    ck_assert_uint_eq(*(uint8_t *)test.out[0].t.data, 1);
    op_begin(&get, "", "OptionalGetElement");
    op_add_value(&get, &r.out[0]);
    op_run_ok(&get, 1);
    ck_assert_int_eq(*(int64_t *)get.out[0].t.data, 7);
    op_end(&r);
    op_end(&test);
    op_end(&get);
    grt_value empty = {.kind = GRT_KIND_OPTIONAL, .t.dtype = GRT_DTYPE_INT64};
    op_begin(&get, "", "OptionalGetElement");
    op_add_value(&get, &empty);
    ck_assert_int_eq(op_run(&get, 1), GRT_STATUS_INVALID_ARGUMENT);
    op_end(&get);
    op_begin(&test, "", "OptionalHasElement");
    op_run_ok(&test, 1);
    ck_assert_uint_eq(*(uint8_t *)test.out[0].t.data, 0);
    op_end(&test);
}
END_TEST

Suite *suite_test_sequence(void)
{
    Suite *suite = suite_create("sequence");
    TCase *tests = tcase_create("sequence");
    tcase_add_test(tests, test_insert_and_erase);
    tcase_add_test(tests, test_at_and_length);
    tcase_add_test(tests, test_split_and_join);
    tcase_add_test(tests, test_split_keeps_strings);
    tcase_add_test(tests, test_bad_splits);
    tcase_add_test(tests, test_split_is_a_list);
    tcase_add_test(tests, test_optionals);
    suite_add_tcase(suite, tests);
    return suite;
}
