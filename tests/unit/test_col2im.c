/* SPDX-License-Identifier: Apache-2.0 */
/* Col2Im of 16-bit floats: what overlapping windows add to a pixel is rounded once, not once a window. */
#include "src/base/float.h"
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include <math.h>

enum {
    SIDE = 9,
    WINDOW = 4,
    PLACES = (SIDE - WINDOW + 1) * (SIDE - WINDOW + 1),
    TAPS = WINDOW * WINDOW,
    PLANES = 3
};

static uint16_t narrowed(grt_dtype dtype, float x)
{
    return dtype == GRT_DTYPE_FLOAT16 ? grt_float_to_half(x) : grt_float_to_bfloat16(x);
}
static float widened(grt_dtype dtype, uint16_t x)
{
    return dtype == GRT_DTYPE_FLOAT16 ? grt_half_to_float(x) : grt_bfloat16_to_float(x);
}

/* images[plane][y][x] by definition, of columns[plane][tap][place]. */
static void by_definition(grt_dtype dtype, const uint16_t *columns, double *images)
{
    const int steps = SIDE - WINDOW + 1;
    for (int i = 0; i < PLANES * SIDE * SIDE; i++)
        images[i] = 0;
    for (int plane = 0; plane < PLANES; plane++)
        for (int tap = 0; tap < TAPS; tap++)
            for (int place = 0; place < PLACES; place++) {
                const int y = place / steps + tap / WINDOW, x = place % steps + tap % WINDOW;
                images[(plane * SIDE + y) * SIDE + x] +=
                    (double)widened(dtype, columns[(plane * TAPS + tap) * PLACES + place]);
            }
}

START_TEST(sums_are_rounded_once)
{
    const grt_dtype dtype = _i % 2 ? GRT_DTYPE_BFLOAT16 : GRT_DTYPE_FLOAT16;
    float values[PLANES * TAPS * PLACES];
    uint16_t columns[PLANES * TAPS * PLACES];
    double images[PLANES * SIDE * SIDE];
    fill_floats(values, PLANES * TAPS * PLACES, 5);
    for (int i = 0; i < PLANES * TAPS * PLACES; i++)
        columns[i] = narrowed(dtype, values[i]);
    by_definition(dtype, columns, images);
    op_runner r;
    op_begin(&r, "", "Col2Im");
    r.threads = 1 + _i / 2;
    op_add(&r, dtype, 3, (int64_t[]){1, PLANES * TAPS, PLACES}, columns);
    op_add(&r, GRT_DTYPE_INT64, 1, (int64_t[]){2}, (int64_t[]){SIDE, SIDE});
    op_add(&r, GRT_DTYPE_INT64, 1, (int64_t[]){2}, (int64_t[]){WINDOW, WINDOW});
    r.constants = 6;
    op_run_ok(&r, 1);
    const uint16_t *found = r.out[0].t.data;
    for (int i = 0; i < PLANES * SIDE * SIDE; i++)
        ck_assert_msg(found[i] == narrowed(dtype, (float)images[i]), "pixel %d is %g, expected %g", i,
                      (double)widened(dtype, found[i]), images[i]);
    op_end(&r);
}
END_TEST

Suite *suite_test_col2im(void);
Suite *suite_test_col2im(void)
{
    Suite *s = suite_create("col2im");
    TCase *tc = tcase_create("col2im");
    tcase_add_loop_test(tc, sums_are_rounded_once, 0, 4);
    suite_add_tcase(s, tc);
    return s;
}
