/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions with several filters for each channel (depth multipliers). */
#include "tests/unit/windows.h"

#include <check.h>
#include <stdlib.h>

/* Two filters a channel: no layout that fills each group up to a vector. */
START_TEST(depth_multipliers_are_not_filled_up)
{
    enum { CHANNELS = 64, SIDE = 15, KERNEL = 7, RESULTS = 2 * CHANNELS * 8 * 8 };
    const int64_t x_dims[] = {1, SIDE, SIDE, CHANNELS}, w_dims[] = {2 * CHANNELS, 1, KERNEL, KERNEL},
                  strides[] = {2, 2}, pads[] = {3, 3, 3, 3};
    float *x = window_floats(SIDE * SIDE * CHANNELS, 1),
          *weights = window_floats(2 * CHANNELS * KERNEL * KERNEL, 2);
    op_runner runs[2]; /* weights of a run, and constant ones that a plan may pack */
    for (int i = 0; i < 2; i++) {
        op_runner *r = &runs[i];
        op_begin(r, "graphrt", "Conv");
        r->threads = 2;
        r->constants = i ? 2 : 0;
        r->pack = i == 1;
        op_int(r, "group", CHANNELS);
        op_ints(r, "strides", strides, 2);
        op_ints(r, "pads", pads, 4);
        op_string(r, "layout", "NHWC");
        op_add(r, GRT_DTYPE_FLOAT, 4, x_dims, x);
        op_add(r, GRT_DTYPE_FLOAT, 4, w_dims, weights);
        op_run_ok(r, 1);
        for (int64_t k = 0; k < RESULTS; k++)
            ck_assert_double_eq_tol((double)((float *)r->out[0].t.data)[k],
                                    (double)((float *)runs[0].out[0].t.data)[k], 1e-5);
    }
    ck_assert_ptr_null(runs[1].packed[1]);
    for (int i = 0; i < 2; i++)
        op_end(&runs[i]);
    free(x);
    free(weights);
}
END_TEST

Suite *suite_test_depth_multipliers(void)
{
    Suite *suite = suite_create("depth_multipliers");
    TCase *tc = tcase_create("depth_multipliers");
    tcase_add_test(tc, depth_multipliers_are_not_filled_up);
    suite_add_tcase(suite, tc);
    return suite;
}
