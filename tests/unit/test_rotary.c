/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::RotaryEmbedding: of heads side by side the first are rotated, as RotaryEmbedding rotates them by
 * themselves, and the others are as they were. */
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include <string.h>

enum { BATCH = 2, LENGTH = 3, HEADS = 4, ROTATED = 3, SIZE = 8, TURNED = 6, HALF = TURNED / 2 };

static const int64_t cache_dims[] = {BATCH, LENGTH, HALF};

static void rotary_begin(op_runner *r, const char *domain, int64_t heads, const float *x, const float *cosine,
                         const float *sine)
{
    op_begin(r, domain, "RotaryEmbedding");
    op_int(r, "num_heads", heads);
    op_int(r, "rotary_embedding_dim", TURNED);
    op_add(r, GRT_DTYPE_FLOAT, 3, (const int64_t[]){BATCH, LENGTH, heads * SIZE}, x);
    op_add(r, GRT_DTYPE_FLOAT, 3, cache_dims, cosine);
    op_add(r, GRT_DTYPE_FLOAT, 3, cache_dims, sine);
}

START_TEST(the_first_heads_are_rotated)
{
    float x[BATCH * LENGTH * HEADS * SIZE], first[BATCH * LENGTH * ROTATED * SIZE],
        cosine[BATCH * LENGTH * HALF], sine[BATCH * LENGTH * HALF];
    op_runner r, plain;
    fill_floats(x, BATCH * LENGTH * HEADS * SIZE, 1);
    fill_floats(cosine, BATCH * LENGTH * HALF, 2);
    fill_floats(sine, BATCH * LENGTH * HALF, 3);
    for (size_t row = 0; row < BATCH * LENGTH; row++)
        memcpy(first + row * ROTATED * SIZE, x + row * HEADS * SIZE, ROTATED * SIZE * sizeof *x);
    rotary_begin(&plain, "", ROTATED, first, cosine, sine);
    op_run_ok(&plain, 1);
    rotary_begin(&r, "graphrt", HEADS, x, cosine, sine);
    op_int(&r, "rotated_heads", ROTATED);
    op_run_ok(&r, 1);
    const float *found = r.out[0].t.data, *want = plain.out[0].t.data;
    for (size_t row = 0; row < BATCH * LENGTH; row++) {
        const float *at = found + row * HEADS * SIZE;
        ck_assert_mem_eq(at, want + row * ROTATED * SIZE, ROTATED * SIZE * sizeof *x);
        ck_assert_mem_eq(at + ROTATED * SIZE, x + row * HEADS * SIZE + ROTATED * SIZE,
                         (HEADS - ROTATED) * SIZE * sizeof *x);
    }
    op_end(&r);
    op_end(&plain);
}
END_TEST

START_TEST(more_heads_than_there_are)
{
    const float x[BATCH * LENGTH * HEADS * SIZE] = {0}, cache[BATCH * LENGTH * HALF] = {0};
    op_runner r;
    rotary_begin(&r, "graphrt", HEADS, x, cache, cache);
    op_int(&r, "rotated_heads", HEADS + 1);
    ck_assert_int_ne(op_run(&r, 1), GRT_OK);
    op_end(&r);
}
END_TEST

UNIT_SUITE(test_rotary, NULL, NULL, the_first_heads_are_rotated, more_heads_than_there_are)
