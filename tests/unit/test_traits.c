/* SPDX-License-Identifier: Apache-2.0 */
/* Traits of op rows: what a new op must state, and what must agree. */
#include "backends/kernel.h"
#include "graph/ir/op.h"

#include <check.h>
#include <string.h>

#define X(file) extern const grt_kernel_table cpu_kernels_##file;
#include "cpu_kernels.inc"
#undef X
static const struct {
    const char *file;
    const grt_kernel_table *table;
} kernels[] = {
#define X(file) {#file, &cpu_kernels_##file},
#include "cpu_kernels.inc"
#undef X
};
enum { N_KERNELS = sizeof kernels / sizeof *kernels };

#define X(file) extern const op_table grt_ops_##file;
#include "graph_ops.inc"
#undef X
static const struct {
    const char *file;
    const op_table *table;
} ops[] = {
#define X(file) {#file, &grt_ops_##file},
#include "graph_ops.inc"
#undef X
};
enum { N_OPS = sizeof ops / sizeof *ops };

/* True if the kernel takes float32. As first input a set of 0 accepts any type. */
static bool takes_floats(const grt_kernel_row *kernel)
{
    if (!kernel->types[0])
        return true;
    for (size_t i = 0; i < sizeof kernel->types / sizeof *kernel->types; i++)
        if (kernel->types[i] & GRT_BIT(FLOAT))
            return true;
    return false;
}

START_TEST(ops_with_float_kernels_state_their_precision)
{
    for (size_t t = 0; t < N_KERNELS; t++)
        for (size_t i = 0; i < kernels[t].table->n; i++) {
            const grt_kernel_row *kernel = &kernels[t].table->rows[i];
            const op_row *row = op_find(kernel->domain, kernel->op);
            ck_assert_msg(row != NULL, "%s::%s has a kernel and no row", kernel->domain, kernel->op);
            ck_assert_msg(row->precision != OP_UNSTATED || !takes_floats(kernel),
                          "%s::%s: the row must state .precision, OP_WIDE if it stays float32",
                          kernel->domain, kernel->op);
        }
}
END_TEST

static const char *file_of(const op_row *row)
{
    for (size_t t = 0; t < N_OPS; t++)
        if (row >= ops[t].table->rows && row < ops[t].table->rows + ops[t].table->n)
            return ops[t].file;
    return "";
}

/* Rows in fused.c are of ops that have kernels beside those of their plain forms; kernels in pointwise.c are
 * of all that pointwise.def lists. */
START_TEST(rows_and_kernels_are_in_files_of_one_name)
{
    for (size_t t = 0; t < N_KERNELS; t++)
        for (size_t i = 0; i < kernels[t].table->n; i++) {
            const grt_kernel_row *kernel = &kernels[t].table->rows[i];
            const op_row *row = op_find(kernel->domain, kernel->op);
            const char *file = file_of(row), *other = kernels[t].file;
            const bool listed = row->flags & OP_POINTWISE && !strcmp(other, "pointwise");
            ck_assert_msg(!strcmp(file, other) || !strcmp(file, "fused") || listed,
                          "%s: its row is in graph/ops/%s.c, its kernel in backends/cpu/ops/%s.c", kernel->op,
                          file, other);
        }
}
END_TEST

static bool has_attr(const op_row *row, grt_attr_kind kind, const char *name)
{
    for (const op_attr *a = row->attrs; a && a->name; a++)
        if (a->kind == kind && (!name || !strcmp(a->name, name)))
            return true;
    return false;
}

START_TEST(traits_agree_with_the_row)
{
    for (size_t i = 0; op_at(i); i++) {
        const op_row *r = op_at(i);
        const bool traits =
            r->precision || r->layout || r->batch || r->cost || r->control || r->flops || r->work;
        ck_assert_msg(!traits || !r->rewrite, "%s is rewritten at once: its traits are never read", r->name);
        ck_assert_msg(!r->control || (!r->infer && has_attr(r, GRT_ATTR_GRAPH, NULL)), "%s: no body",
                      r->name);
        ck_assert_msg(!(r->flags & (OP_ZERO_IS_NEUTRAL | OP_ONE_IS_NEUTRAL)) ||
                          (r->min_in == 2 && r->max_in == 2),
                      "%s: neutral elements are of binary ops", r->name);
        ck_assert_msg(!(r->flags & OP_INVOLUTION) || r->max_in == 1, "%s: involutions have one input",
                      r->name);
        ck_assert_msg(!(r->flags & OP_SINGLE) || r->min_in == 1, "%s: one input is not enough", r->name);
        ck_assert_msg(!(r->flags & OP_COMMUTATIVE) || r->max_in >= 2, "%s: nothing to exchange", r->name);
        ck_assert_msg(!(r->flags & OP_TF32) || r->flops || r->work, "%s: a product without flops", r->name);
        ck_assert_msg(!r->batch || !*r->domain, "%s: batches are of ai.onnx", r->name);
        ck_assert_msg(!r->cost || !(r->flags & (OP_POINTWISE | OP_VIEW)), "%s: its flags say the cost",
                      r->name);
        ck_assert_msg(!r->layout || !(r->flags & OP_POINTWISE), "%s: element-wise ops go as they are",
                      r->name);
    }
}
END_TEST

START_TEST(forms_with_channels_last_are_there)
{
    int n = 0;
    for (size_t i = 0; op_at(i); i++) {
        const op_row *r = op_at(i);
        if (r->layout != OP_LAYOUT_FORM && r->layout != OP_LAYOUT_CONV)
            continue;
        const op_row *last = op_find("graphrt", r->name);
        ck_assert_msg(last && has_attr(last, GRT_ATTR_STRING, "layout"), "graphrt::%s", r->name);
        ck_assert_msg(last->precision == r->precision, "graphrt::%s: another precision", r->name);
        n++;
    }
    ck_assert_int_gt(n, 5);
}
END_TEST

static const op_range *range_of(const op_row *row, const char *attr)
{
    for (const op_range *r = row->ranges; r && r->attr; r++)
        if (!strcmp(r->attr, attr))
            return r;
    return NULL;
}

/* Kernels multiply numbers of windows before dims are known: each lies in 32 bits, and steps are positive. */
START_TEST(windows_state_their_ranges)
{
    static const struct {
        const char *attr;
        grt_attr_kind kind;
        int64_t least;
    } numbers[] = {{"kernel_shape", GRT_ATTR_INTS, 1}, {"strides", GRT_ATTR_INTS, 1},
                   {"dilations", GRT_ATTR_INTS, 1},    {"pads", GRT_ATTR_INTS, -INT32_MAX},
                   {"group", GRT_ATTR_INT, 1},         {"output_padding", GRT_ATTR_INTS, 0},
                   {"offset_group", GRT_ATTR_INT, 1}};
    enum { NUMBERS = sizeof numbers / sizeof *numbers, OF_WINDOWS = 3 };
    int n = 0;
    for (size_t i = 0; op_at(i); i++) {
        const op_row *r = op_at(i);
        bool window = false;
        for (size_t k = 0; k < OF_WINDOWS; k++)
            window = window || has_attr(r, numbers[k].kind, numbers[k].attr);
        for (size_t k = 0; k < NUMBERS && window && !r->rewrite; k++) {
            const op_range *range = range_of(r, numbers[k].attr);
            ck_assert_msg(!has_attr(r, numbers[k].kind, numbers[k].attr) ||
                              (range && range->least >= numbers[k].least && range->most == INT32_MAX),
                          "%s::%s: the range of %s", r->domain, r->name, numbers[k].attr);
        }
        n += window;
    }
    ck_assert_int_gt(n, 10);
}
END_TEST

/* A range of what is no number would never be looked at. */
START_TEST(ranges_are_of_numbers)
{
    for (size_t i = 0; op_at(i); i++)
        for (const op_range *r = op_at(i)->ranges; r && r->attr; r++) {
            const op_row *row = op_at(i);
            for (const op_attr *a = row->attrs; a && a->name; a++)
                ck_assert_msg(strcmp(a->name, r->attr) != 0 || a->kind == GRT_ATTR_INT ||
                                  a->kind == GRT_ATTR_INTS,
                              "%s: %s is no number", row->name, a->name);
            ck_assert_msg(r->least <= r->most, "%s: the range of %s is empty", row->name, r->attr);
        }
}
END_TEST

Suite *suite_test_traits(void);
Suite *suite_test_traits(void)
{
    Suite *suite = suite_create("traits");
    TCase *all = tcase_create("all");
    tcase_add_test(all, ops_with_float_kernels_state_their_precision);
    tcase_add_test(all, rows_and_kernels_are_in_files_of_one_name);
    tcase_add_test(all, traits_agree_with_the_row);
    tcase_add_test(all, forms_with_channels_last_are_there);
    tcase_add_test(all, windows_state_their_ranges);
    tcase_add_test(all, ranges_are_of_numbers);
    suite_add_tcase(suite, all);
    return suite;
}
