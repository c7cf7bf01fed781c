/* SPDX-License-Identifier: Apache-2.0 */
/* Which convolutions of volumes are seen as convolutions of planes. */
#include "backends/cuda/conv_fold.h"
#include "tests/unit/suite.h"

static cuda_conv_windows windows(int64_t deep, int64_t high, int64_t wide)
{
    const cuda_conv_windows c = {.in = {4, 6, 8},
                                 .out = {4, 6, 8},
                                 .kernel = {deep, high, wide},
                                 .stride = {1, 1, 1},
                                 .dilation = {1, 1, 1},
                                 .begin = {deep / 2, high / 2, wide / 2}};
    return c;
}

START_TEST(planes_are_images)
{
    cuda_conv_windows c = windows(1, 3, 3);
    int64_t batch = 5;
    c.stride[1] = 2;
    c.out[1] = 3;
    cuda_conv_fold(&c, &batch);
    ck_assert(cuda_conv_is_plane(&c));
    ck_assert(batch == 20 && c.in[0] == 1 && c.in[1] == 6 && c.out[1] == 3 && c.in[2] == 8 &&
              c.stride[1] == 2);
}
END_TEST

START_TEST(lines_of_planes_are_joined)
{
    cuda_conv_windows c = windows(3, 1, 1);
    int64_t batch = 5;
    c.stride[0] = 2;
    c.out[0] = 2;
    cuda_conv_fold(&c, &batch);
    ck_assert(cuda_conv_is_plane(&c));
    ck_assert(batch == 5 && c.in[1] == 4 && c.out[1] == 2 && c.in[2] == 48 && c.out[2] == 48);
    ck_assert(c.kernel[1] == 3 && c.stride[1] == 2 && c.begin[1] == 1 && c.kernel[2] == 1 && c.begin[2] == 0);
}
END_TEST

START_TEST(others_stay_volumes)
{
    cuda_conv_windows all[] = {windows(3, 3, 3), windows(3, 1, 3), windows(1, 3, 3), windows(3, 1, 1)};
    all[2].stride[0] = 2; /* planes are left out */
    all[2].out[0] = 2;
    all[3].stride[2] = 2;
    all[3].out[2] = 4;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int64_t batch = 5;
        cuda_conv_fold(&all[i], &batch);
        ck_assert(!cuda_conv_is_plane(&all[i]));
        ck_assert(batch == 5 && all[i].in[0] == 4 && all[i].in[2] == 8);
    }
}
END_TEST

UNIT_SUITE(test_conv_fold, NULL, NULL, planes_are_images, lines_of_planes_are_joined, others_stay_volumes)
