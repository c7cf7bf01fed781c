/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles and warpgroups of attention of float32 as TF32 on Hopper. */
#include "backends/cuda/attention_plan.h"
#include "tests/unit/suite.h"

enum { MULTIPROCESSORS = 132 };

START_TEST(tiles_hold_both_sizes)
{
    ck_assert_int_eq(cuda_attention_columns(64, 64), 64);
    ck_assert_int_eq(cuda_attention_columns(80, 80), 80);
    ck_assert_int_eq(cuda_attention_columns(96, 64), 96);
    ck_assert_int_eq(cuda_attention_columns(16, 40), 64);
    ck_assert_int_eq(cuda_attention_columns(192, 128), 192);
    ck_assert_int_eq(cuda_attention_columns(256, 256), 256);
    ck_assert_int_eq(cuda_attention_columns(64, 260), 0);
}
END_TEST

/* Blocks that all run at once are small; others are large. */
START_TEST(blocks_are_as_many_as_multiprocessors)
{
    ck_assert_int_eq(cuda_attention_groups(12, 197, MULTIPROCESSORS), 1);
    ck_assert_int_eq(cuda_attention_groups(12, 512, MULTIPROCESSORS), 1);
    ck_assert_int_eq(cuda_attention_groups(12 * 32, 197, MULTIPROCESSORS), CUDA_ATTENTION_GROUPS);
    ck_assert_int_eq(cuda_attention_groups(64, 129, MULTIPROCESSORS), CUDA_ATTENTION_GROUPS);
    ck_assert_int_eq(cuda_attention_groups(66, 128, MULTIPROCESSORS), 1);
}
END_TEST

/* Windows of 49 tokens: each block would have one warpgroup with rows and one without. */
START_TEST(short_heads_are_left_to_others)
{
    ck_assert_int_eq(cuda_attention_groups(512 * 3, 49, MULTIPROCESSORS), 0);
    ck_assert_int_eq(cuda_attention_groups(133, 64, MULTIPROCESSORS), 0);
    ck_assert_int_eq(cuda_attention_groups(132, 64, MULTIPROCESSORS), 1);
    ck_assert_int_eq(cuda_attention_groups(INT32_MAX, 65, MULTIPROCESSORS), CUDA_ATTENTION_GROUPS);
}
END_TEST

UNIT_SUITE(test_cuda_attention_plan, NULL, NULL, tiles_hold_both_sizes, blocks_are_as_many_as_multiprocessors,
           short_heads_are_left_to_others)
