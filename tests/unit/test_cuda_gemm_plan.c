/* SPDX-License-Identifier: Apache-2.0 */
/* Forms and splits of products of 16 bits and of TF32 on Hopper. */
#include "backends/cuda/gemm_forms.h"
#include "backends/cuda/gemm_plan.h"
#include "tests/unit/suite.h"

enum { MULTIPROCESSORS = 132 };

typedef struct form {
    int groups, columns, stages;
    bool splits;
} form;

#define FORM(NUMBER, GROUPS, COLUMNS, STAGES, BLOCKS, SPLITS) [NUMBER] = {GROUPS, COLUMNS, STAGES, SPLITS},
static const form forms[] = {GEMM_FORMS(FORM)}, strict_forms[] = {GEMM_STRICT_FORMS(FORM)};
#undef FORM
enum { STRICT_FORMS = sizeof strict_forms / sizeof *strict_forms };

static cuda_gemm product(int64_t rows, int64_t channels, int64_t columns)
{
    return (cuda_gemm){.dtype = GRT_DTYPE_FLOAT16,
                       .across = true,
                       .rows = rows,
                       .channels = channels,
                       .columns = columns,
                       .multiprocessors = MULTIPROCESSORS};
}

static int64_t tiles_of(const cuda_gemm *p)
{
    const int64_t rows = 64 * forms[p->form].groups, columns = forms[p->form].columns;
    return (p->rows + rows - 1) / rows * ((p->columns + columns - 1) / columns);
}

/* 6,304 rows and 768 columns are 33 x 4 tiles of 192 x 192, one for each multiprocessor. */
START_TEST(waves_are_full)
{
    cuda_gemm p = product(6304, 3072, 768);
    ck_assert(cuda_gemm_plan(&p));
    ck_assert_int_eq(tiles_of(&p), MULTIPROCESSORS);
    ck_assert_int_eq(p.splits, 1);
    ck_assert(p.is_long); /* long */
    p = product(128, 768, 768);
    ck_assert(cuda_gemm_plan(&p));
    ck_assert(!p.is_long);
}
END_TEST

/* Few tiles and a long sum: blocks share the sum, whatever the activation. */
START_TEST(sums_are_split)
{
    cuda_gemm p = product(49, 512, 512);
    p.across = false;
    p.is_windows = true;
    p.images = 1;
    for (int i = 0; i < 2; i++) {
        p.in[i] = p.out[i] = 7;
        p.kernel[i] = 3;
        p.stride[i] = p.dilation[i] = p.begin[i] = 1;
    }
    ck_assert(cuda_gemm_plan(&p));
    ck_assert(p.splits > 1 && tiles_of(&p) * p.splits > 32);
    p.act.kind = GRT_ACT_SILU;
    ck_assert(cuda_gemm_plan(&p));
    ck_assert(p.splits > 1 && tiles_of(&p) * p.splits > 32);
}
END_TEST

/* Blocks that have a multiprocessor for themselves get a ring that fills it: BERT's and ViT's products of one
 * sentence and one image, and 98 tiles of 128 x 128. */
START_TEST(rings_are_deep)
{
    const int64_t rows[] = {128, 197, 197}, columns[] = {2304, 2304, 3072};
    for (int i = 0; i < 3; i++) {
        cuda_gemm p = product(rows[i], 768, columns[i]);
        ck_assert(cuda_gemm_plan(&p));
        ck_assert(tiles_of(&p) <= MULTIPROCESSORS && forms[p.form].stages >= 8);
    }
    cuda_gemm p = product(6272, 2304, 256);
    ck_assert(cuda_gemm_plan(&p));
    ck_assert_int_ge(forms[p.form].stages, 5);
}
END_TEST

/* A stage has half as many numbers of the sum, weights lie along it, vectors are shorter. */
START_TEST(tf32_fits)
{
    cuda_gemm p = product(512, 96, 36);
    p.dtype = GRT_DTYPE_FLOAT;
    ck_assert(!cuda_gemm_plan(&p)); /* across */
    p.across = false;
    p.act.kind = GRT_ACT_SILU;
    ck_assert(cuda_gemm_plan(&p));
    p.channels = 98;
    ck_assert(!cuda_gemm_plan(&p)); /* no whole vectors of 16 bytes */
    cuda_gemm narrow = product(4096, 1024, 1024), wide = product(4096, 1024, 1024);
    narrow.across = wide.across = false;
    wide.dtype = GRT_DTYPE_FLOAT;
    ck_assert(cuda_gemm_plan(&narrow) && cuda_gemm_plan(&wide));
    ck_assert(wide.time > 1.5 * narrow.time);
}
END_TEST

/* Strict float32 takes three products where TF32 takes one, in forms of its own. */
START_TEST(strict_products_fit)
{
    cuda_gemm tf32 = product(4096, 1024, 1024), strict;
    tf32.dtype = GRT_DTYPE_FLOAT;
    tf32.across = false;
    strict = tf32;
    strict.strict = true;
    ck_assert(cuda_gemm_plan(&tf32) && cuda_gemm_plan(&strict));
    ck_assert(strict.time > 2 * tf32.time);
    for (int64_t rows = 1; rows < 10000; rows = rows * 3 + 1) {
        strict.rows = rows;
        ck_assert(cuda_gemm_plan(&strict));
        ck_assert_int_lt(strict.form, STRICT_FORMS);
        ck_assert(strict.splits == 1 || strict_forms[strict.form].columns / 8 % strict.splits == 0);
    }
    strict.across = true;
    ck_assert(!cuda_gemm_plan(&strict));
    strict.across = false;
    strict.dtype = GRT_DTYPE_FLOAT16;
    ck_assert(!cuda_gemm_plan(&strict));
}
END_TEST

/* Whatever the sizes, the form can do what is asked. */
START_TEST(forms_fit)
{
    const int64_t sizes[] = {8, 64, 200, 1000, 4096};
    for (int i = 0; i < 5 * 5 * 5 * 4; i++) {
        cuda_gemm p = product(sizes[i % 5] + 1, sizes[i / 5 % 5], sizes[i / 25 % 5]);
        p.across = i / 125 % 2;
        p.act.kind = i / 250 ? p.across ? GRT_ACT_GELU_ERF : GRT_ACT_TANH : GRT_ACT_RELU;
        ck_assert(cuda_gemm_plan(&p));
        ck_assert(p.splits == 1 || (forms[p.form].splits && forms[p.form].columns / 8 % p.splits == 0 &&
                                    p.splits * 64 < p.channels + 64));
        ck_assert(!p.across || forms[p.form].columns >= 64);
    }
}
END_TEST

/* Beside tiles of 128 x 256 and the like: 6,304 rows leave these empty, 4,096 do not. */
START_TEST(tiles_are_compared)
{
    cuda_gemm p = product(6304, 768, 3072);
    ck_assert(cuda_gemm_plan(&p) && cuda_gemm_fills_better(&p));
    p = product(4096, 768, 768);
    ck_assert(cuda_gemm_plan(&p) && !cuda_gemm_fills_better(&p));
}
END_TEST

START_TEST(few_channels_leave_tiles_empty)
{
    cuda_gemm p = product(1000, 24, 144);
    ck_assert(!cuda_gemm_is_whole(&p));
    p = product(1000, 192, 24);
    ck_assert(!cuda_gemm_is_whole(&p));
    p = product(1000, 192, 32);
    ck_assert(cuda_gemm_is_whole(&p));
}
END_TEST

static cuda_gemm windows(int32_t images, int32_t pixels, int64_t channels, grt_dtype dtype)
{
    cuda_gemm p = product((int64_t)images * pixels * pixels, channels, channels);
    p.dtype = dtype;
    p.across = false;
    p.is_windows = true;
    p.images = images;
    p.act.kind = GRT_ACT_RELU;
    for (int i = 0; i < 2; i++) {
        p.in[i] = p.out[i] = pixels;
        p.kernel[i] = 3;
        p.stride[i] = p.dilation[i] = p.begin[i] = 1;
    }
    return p;
}

/* 32 channels of float16 fill half of a stage. */
START_TEST(short_windows_are_kept)
{
    cuda_gemm p = windows(1, 256, 32, GRT_DTYPE_FLOAT16);
    ck_assert(cuda_gemm_plan(&p) && p.is_long && !cuda_gemm_is_whole(&p) && cuda_gemm_is_better_kept(&p));
    p = windows(4, 256, 32, GRT_DTYPE_FLOAT16);
    ck_assert(cuda_gemm_plan(&p) && !cuda_gemm_is_better_kept(&p));
    p = product(65536, 24, 24);
    ck_assert(cuda_gemm_plan(&p) && !cuda_gemm_is_better_kept(&p));
}
END_TEST

/* Those of a U-Net at batch 32 are cuDNN's, those of ResNet-50 are not, nor what it would need a pass for. */
START_TEST(large_windows_are_left)
{
    const grt_dtype dtypes[] = {GRT_DTYPE_FLOAT, GRT_DTYPE_FLOAT16};
    for (int i = 0; i < 2; i++) {
        cuda_gemm p = windows(32, 64, 128, dtypes[i]);
        ck_assert(cuda_gemm_plan(&p) && cuda_gemm_is_better_left(&p));
        p.act.kind = GRT_ACT_SILU;
        ck_assert(cuda_gemm_plan(&p) && !cuda_gemm_is_better_left(&p));
        p = windows(32, 28, 128, dtypes[i]);
        ck_assert(cuda_gemm_plan(&p) && !cuda_gemm_is_better_left(&p));
    }
}
END_TEST

START_TEST(others_are_refused)
{
    cuda_gemm p = product(100, 60, 64);
    ck_assert(!cuda_gemm_plan(&p)); /* rows are no multiples of 16 bytes */
    p = product(100, 64, 60);
    ck_assert(!cuda_gemm_plan(&p));
    p = product(100, 64, 64);
    p.dtype = GRT_DTYPE_FLOAT;
    ck_assert(!cuda_gemm_plan(&p));
    p = product(INT64_MAX / 2, 64, 64);
    ck_assert(!cuda_gemm_plan(&p));
}
END_TEST

UNIT_SUITE(test_cuda_gemm_plan, NULL, NULL, waves_are_full, sums_are_split, rings_are_deep, tf32_fits,
           strict_products_fit, forms_fit, tiles_are_compared, few_channels_leave_tiles_empty,
           short_windows_are_kept, large_windows_are_left, others_are_refused)
