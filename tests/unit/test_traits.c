/* SPDX-License-Identifier: Apache-2.0 */
/* Traits of op rows: what a new op must state, and what must agree. */
#include "backends/kernel.h"
#include "graph/ir/op.h"

#include <check.h>
#include <string.h>

#define X(file) extern const grt_kernel_table cpu_kernels_##file;
#include "cpu_kernels.inc"
#undef X
static const grt_kernel_table *const tables[] = {
#define X(file) &cpu_kernels_##file,
#include "cpu_kernels.inc"
#undef X
};

/* Does the kernel take float32? As first input a set of 0 accepts any type. */
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
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (size_t i = 0; i < tables[t]->n; i++) {
            const grt_kernel_row *kernel = &tables[t]->rows[i];
            const op_row *row = op_find(kernel->domain, kernel->op);
            ck_assert_msg(row != NULL, "%s::%s has a kernel and no row", kernel->domain, kernel->op);
            ck_assert_msg(row->precision != OP_UNSTATED || !takes_floats(kernel),
                          "%s::%s: the row must state .precision, OP_WIDE if it stays float32",
                          kernel->domain, kernel->op);
        }
}
END_TEST

Suite *suite_test_traits(void);
Suite *suite_test_traits(void)
{
    Suite *suite = suite_create("traits");
    TCase *all = tcase_create("all");
    tcase_add_test(all, ops_with_float_kernels_state_their_precision);
    suite_add_tcase(suite, all);
    return suite;
}
