/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution's dims as kernels look at them. */
#include "backends/cpu/conv_columns.h"
#include "backends/cpu/conv_geometry.h"
#include "tests/unit/suite.h"

/* The kernel that a line gets does not depend on the dim that it lies on. */
START_TEST(lines_have_one_geometry)
{
    const cpu_conv upright = {.last = true,
                              .batch = 3,
                              .groups = 2,
                              .in_channels = 32,
                              .out_channels = 64,
                              .w = {2, {50, 1}, {22, 1}, {7, 1}, {2, 5}, {1, 3}, {0, 0}, {0, 0}, 50, 22, 7}};
    const cpu_conv flat = cpu_columns_turn(&upright),
                   found[] = {cpu_conv_line(&upright), cpu_conv_line(&flat)};
    for (int i = 0; i < 2; i++) {
        const cpu_window *w = &found[i].w;
        ck_assert_int_eq(w->spatial, 1);
        ck_assert_int_eq(w->in[0] * 1000 + w->out[0], 50022);
        ck_assert_int_eq(w->kernel[0] * 100 + w->stride[0] * 10 + w->dilation[0], 721);
        ck_assert_int_eq(w->in_pixels * 1000 + w->out_pixels, 50022);
        ck_assert_int_eq(found[i].batch, 3);
    }
    cpu_conv other = upright;
    other.w.in[1] = other.w.out[1] = 2; /* two lines */
    ck_assert_int_eq(cpu_conv_line(&other).w.spatial, 2);
    other = upright;
    other.w.begin[1] = 1; /* a place in the padding */
    ck_assert_int_eq(cpu_conv_line(&other).w.spatial, 2);
}
END_TEST

UNIT_SUITE(test_conv_geometry, NULL, NULL, lines_have_one_geometry)
