/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU's convolutions of images with few channels: the terms that a block multiplies are those of the
 * convolution, words lie at words, and every pixel of a tile reads within the block's window. */
#include "backends/cuda/few_channels_form.h"
#include "tests/unit/suite.h"

#include <stdlib.h>

typedef struct stem_case {
    int32_t channels, deep, kernel[2], stride[2], begin[2], in[2], out[2];
} stem_case;

static const stem_case cases[] = {
    {3, 1, {7, 7}, {2, 2}, {3, 3}, {30, 224}, {15, 112}}, {3, 1, {3, 3}, {2, 2}, {1, 1}, {34, 50}, {17, 25}},
    {3, 1, {3, 3}, {1, 1}, {1, 1}, {20, 31}, {20, 31}},   {1, 1, {5, 5}, {1, 1}, {0, 2}, {28, 28}, {24, 28}},
    {1, 1, {1, 10}, {1, 5}, {0, 0}, {1, 400}, {1, 79}},   {4, 1, {3, 3}, {1, 1}, {1, 1}, {9, 150}, {9, 150}},
    {2, 1, {2, 3}, {3, 1}, {0, 1}, {12, 7}, {4, 7}},      {3, 1, {6, 6}, {2, 2}, {2, 2}, {20, 64}, {10, 32}},
    {3, 5, {7, 7}, {2, 2}, {3, 3}, {30, 112}, {15, 56}},  {1, 3, {3, 3}, {1, 1}, {1, 1}, {9, 21}, {9, 21}},
};

static few_channels_form form_of(const stem_case *c)
{
    return few_channels_form_of(c->channels, c->deep, c->kernel, c->stride, c->begin[1], c->in[1], c->out[1]);
}

static int pixel(const stem_case *c, int plane, int row, int at)
{
    const int n = c->in[1] * c->channels;
    return row < 0 || row >= c->in[0] || at < 0 || at >= n
               ? 0
               : ((plane * c->in[0] + row) * n + at) * 7 % 23 - 11;
}

static int weight(int at)
{
    return at * 5 % 17 - 8;
}

/* As the kernel: through the window of a tile, in pairs. *ok is cleared by what must not be; a check for each
 * number would take seconds. */
static int through_pairs(const stem_case *c, const few_channels_form *f, int row, int column, bool *ok)
{
    const int tile_row = row % f->tile_rows, tile_column = column % f->tile_columns;
    const int first_row = (row - tile_row) * c->stride[0] - c->begin[0];
    const int first = ((column - tile_column) * c->stride[1] - c->begin[1]) * c->channels - f->shift;
    const int begin = tile_row * c->stride[0] * f->pitch + tile_column * c->stride[1] * c->channels;
    int sum = 0;
    for (int pair = 0; pair < f->steps * FEW_PAIRS; pair++) {
        const few_channels_pair p = few_channels_pair_at(f, pair);
        for (int half = 0; half < 2; half++) {
            const int at = begin + p.offset + half, w = few_channels_weight_at(f, 2 * pair + half);
            const bool counts = half ? p.mask >> 16 : p.mask & 0xffff;
            *ok = *ok && counts == (w >= 0);
            *ok = *ok && (!p.mask ||
                          (at >= 0 && at < c->deep * f->window_rows * f->pitch)); /* both halves are read */
            if (counts)
                sum += pixel(c, at / f->pitch / f->window_rows, first_row + at / f->pitch % f->window_rows,
                             first + at % f->pitch) *
                       weight(w);
        }
    }
    return sum;
}

static int by_definition(const stem_case *c, int row, int column)
{
    const int taps = c->kernel[1] * c->channels;
    int sum = 0;
    for (int a = 0; a < c->deep * c->kernel[0]; a++)
        for (int b = 0; b < taps; b++)
            sum += pixel(c, a / c->kernel[0], row * c->stride[0] - c->begin[0] + a % c->kernel[0],
                         (column * c->stride[1] - c->begin[1]) * c->channels + b) *
                   weight(a * taps + b);
    return sum;
}

START_TEST(terms_are_those_of_the_convolution)
{
    const stem_case *c = &cases[_i];
    const few_channels_form f = form_of(c);
    bool ok = true;
    for (int row = 0; row < c->out[0]; row++)
        for (int column = 0; column < c->out[1]; column++)
            ok = through_pairs(c, &f, row, column, &ok) == by_definition(c, row, column) && ok;
    ck_assert(ok);
}
END_TEST

START_TEST(words_lie_at_words)
{
    const stem_case *c = &cases[_i];
    const few_channels_form f = form_of(c);
    ck_assert_int_eq(f.tile_rows * f.tile_columns, FEW_PIXELS);
    ck_assert_int_eq(f.tile_columns % 16, 0); /* a tensor core's 16 pixels are of one row */
    ck_assert_int_eq(f.pitch % 2, 0);
    if (!f.paired)
        return;
    ck_assert_int_eq(c->in[1] * c->channels % 2, 0);
    ck_assert_int_eq((-c->begin[1] * c->channels - f.shift) % 2, 0);
    ck_assert_int_eq(f.tile_columns * c->stride[1] * c->channels % 2, 0);
    ck_assert_int_eq(c->stride[1] * c->channels % 2, 0);
    for (int pair = 0; pair < f.steps * FEW_PAIRS; pair++)
        ck_assert_int_eq(few_channels_pair_at(&f, pair).offset % 2, 0);
}
END_TEST

Suite *suite_test_few_channels(void)
{
    Suite *suite = suite_create("few channels");
    TCase *tc = tcase_create("few channels");
    tcase_add_loop_test(tc, terms_are_those_of_the_convolution, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(tc, words_lie_at_words, 0, sizeof cases / sizeof *cases);
    suite_add_tcase(suite, tc);
    return suite;
}
