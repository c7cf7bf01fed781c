/* SPDX-License-Identifier: Apache-2.0 */
/* Which element Resize's nearest takes, against fractions of whole numbers. */
#include "tests/unit/op_runner.h"

#include <check.h>
#include <math.h>

enum { MOST = 48 };

typedef struct fraction {
    int64_t above, below; /* below > 0 */
} fraction;

typedef struct way {
    const char *name;
    fraction (*source)(int64_t i, int64_t in, int64_t out);
} way;

static fraction asymmetric(int64_t i, int64_t in, int64_t out)
{
    return (fraction){i * in, out};
}

static fraction half_pixel(int64_t i, int64_t in, int64_t out)
{
    return (fraction){(2 * i + 1) * in - out, 2 * out};
}

static fraction tf_half_pixel(int64_t i, int64_t in, int64_t out)
{
    return (fraction){(2 * i + 1) * in, 2 * out};
}

static fraction pytorch_half_pixel(int64_t i, int64_t in, int64_t out)
{
    return out == 1 ? (fraction){-1, 2} : half_pixel(i, in, out);
}

static fraction align_corners(int64_t i, int64_t in, int64_t out)
{
    return out == 1 ? (fraction){0, 1} : (fraction){i * (in - 1), out - 1};
}

static const way ways[] = {{"asymmetric", asymmetric},           {"half_pixel", half_pixel},
                           {"half_pixel_symmetric", half_pixel}, {"pytorch_half_pixel", pytorch_half_pixel},
                           {"align_corners", align_corners},     {"tf_half_pixel_for_nn", tf_half_pixel}};
static const char *const roundings[] = {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"};

static int64_t lower(fraction x)
{
    return x.above >= 0 ? x.above / x.below : -((-x.above + x.below - 1) / x.below);
}

static int64_t upper(fraction x)
{
    return -lower((fraction){-x.above, x.below});
}

static int64_t picked(int rounding, fraction x, int64_t in)
{
    const int64_t at = rounding == 0   ? lower(x)
                       : rounding == 1 ? upper(x)
                       : rounding == 2 ? upper((fraction){2 * x.above - x.below, 2 * x.below})
                                       : lower((fraction){2 * x.above + x.below, 2 * x.below});
    return at < 0 ? 0 : at >= in ? in - 1 : at;
}

/* in elements to out, by a scale or by a size. */
static void check_axis(const way *w, int rounding, int64_t in, int64_t out, bool by_size)
{
    const float scale = (float)((double)out / (double)in);
    const int64_t one = 1;
    float x[MOST];
    for (int64_t i = 0; i < in; i++)
        x[i] = (float)i;
    op_runner r;
    op_begin(&r, "", "Resize");
    op_string(&r, "coordinate_transformation_mode", w->name);
    op_string(&r, "nearest_mode", roundings[rounding]);
    op_add(&r, GRT_DTYPE_FLOAT, 1, &in, x);
    op_omit(&r);
    if (by_size) {
        op_omit(&r);
        op_add(&r, GRT_DTYPE_INT64, 1, &one, &out);
    } else {
        op_add(&r, GRT_DTYPE_FLOAT, 1, &one, &scale);
    }
    op_run_ok(&r, 1);
    const float *y = r.out[0].t.data;
    ck_assert_int_eq(r.out[0].t.dims[0], out);
    for (int64_t i = 0; i < out; i++)
        ck_assert_msg((int64_t)y[i] == picked(rounding, w->source(i, in, out), in),
                      "%s, %s, %d to %d by %s: element %d of the output is %g", w->name, roundings[rounding],
                      (int)in, (int)out, by_size ? "size" : "scale", (int)i, (double)y[i]);
    op_end(&r);
}

/* A scale of out / in in float32 gives out elements only where the product is not rounded below it. */
static bool scale_gives(int64_t in, int64_t out)
{
    return (int64_t)floorf((float)in * (float)((double)out / (double)in)) == out;
}

START_TEST(nearest_takes_the_element_that_fractions_say)
{
    const way *w = &ways[_i];
    for (int rounding = 0; rounding < 4; rounding++)
        for (int64_t in = 1; in < MOST; in += 2)
            for (int64_t out = 1; out < MOST; out += 3) {
                if (in != out) /* an axis that keeps its size is not looked up */
                    check_axis(w, rounding, in, out, true);
                if (in != out && scale_gives(in, out))
                    check_axis(w, rounding, in, out, false);
            }
}
END_TEST

Suite *suite_test_resize(void)
{
    Suite *suite = suite_create("resize");
    TCase *tc = tcase_create("resize");
    tcase_add_loop_test(tc, nearest_takes_the_element_that_fractions_say, 0,
                        (int)(sizeof ways / sizeof *ways));
    suite_add_tcase(suite, tc);
    return suite;
}
