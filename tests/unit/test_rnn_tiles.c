/* SPDX-License-Identifier: Apache-2.0 */
/* How a GPU's recurrent layers are divided among blocks: what the kernel multiplies lies where tensor cores
 * want it, every unit is somebody's, and messages have a place each. */
#include "backends/cuda/rnn_tiles.h"
#include "tests/unit/suite.h"

#include <stdlib.h>
#include <string.h>

enum { H100_BLOCKS = 132, H100_SHARED = 232448 };

/* A gate's tile of R times hidden states, through fragments: lane g * 4 + t of a tensor core holds words t of
 * rows g and g + 8 (A), and of column g (B), for both halves of the depth. */
static void multiply_through_fragments(const rnn_tiles *t, int gate, const float *fragments,
                                       const float *hidden, int words, float *out)
{
    for (int chunk = 0; chunk < t->chunks; chunk++)
        for (int half = 0; half < 2; half++)
            for (int row = 0; row < RNN_UNITS; row++)
                for (int column = 0; column < t->rows; column++)
                    for (int depth = 0; depth < 2; depth++)
                        for (int lane = 0; lane < 4; lane++) {
                            const int of_a =
                                (((chunk * t->gates + gate) * 2 + half) * 32 + row % 8 * 4 + lane) * 4;
                            const int word = chunk * RNN_CHUNK_WORDS + lane * 4 + half * 2 + depth;
                            out[row * t->rows + column] +=
                                fragments[of_a + row / 8 + 2 * depth] *
                                (word < words ? hidden[column * words + word] : 0.0f);
                        }
}

START_TEST(fragments_multiply)
{
    const int32_t hidden = 45; /* of floats: three chunks, the last one not full */
    rnn_tiles t;
    ck_assert(rnn_tiles_plan(3, 1, 8, hidden, 4, H100_BLOCKS, H100_SHARED, &t));
    const int words = t.chunks * RNN_CHUNK_WORDS, all = words * RNN_UNITS * t.gates;
    float *fragments = calloc((size_t)all, sizeof *fragments), *r = calloc((size_t)all, sizeof *r);
    float *h = calloc((size_t)(t.rows * words), sizeof *h);
    bool *taken = calloc((size_t)all, sizeof *taken);
    for (int i = 0; i < t.rows * words; i++)
        h[i] = i % words < hidden ? (float)(i * 7 % 11 - 5) : 0.0f;
    for (int gate = 0; gate < t.gates; gate++)
        for (int unit = 0; unit < RNN_UNITS; unit++)
            for (int word = 0; word < words; word++) {
                const int at = rnn_fragment_at(t.gates, gate, unit, word),
                          i = (gate * RNN_UNITS + unit) * words + word;
                ck_assert_int_ge(at, 0);
                ck_assert_int_lt(at, all);
                ck_assert(!taken[at]);
                taken[at] = true;
                r[i] = word < hidden ? (float)(i * 5 % 13 - 6) : 0.0f;
                fragments[at] = r[i];
            }
    for (int gate = 0; gate < t.gates; gate++) {
        float found[RNN_UNITS * RNN_MOST_ROWS] = {0};
        multiply_through_fragments(&t, gate, fragments, h, words, found);
        for (int unit = 0; unit < RNN_UNITS; unit++)
            for (int row = 0; row < t.rows; row++) {
                float want = 0;
                for (int word = 0; word < words; word++)
                    want += r[(gate * RNN_UNITS + unit) * words + word] * h[row * words + word];
                ck_assert_float_eq(found[unit * t.rows + row], want);
            }
    }
    free(fragments);
    free(r);
    free(h);
    free(taken);
}
END_TEST

START_TEST(items_are_all_units_of_all_rows)
{
    for (int32_t rows = 8; rows <= RNN_MOST_ROWS; rows *= 2) {
        bool met[RNN_UNITS * RNN_MOST_ROWS] = {false};
        for (int32_t item = 0; item < RNN_UNITS * rows; item++) {
            const int32_t unit = rnn_item_unit(item, rows), row = rnn_item_row(item, rows);
            ck_assert(unit >= 0 && unit < RNN_UNITS && row >= 0 && row < rows);
            ck_assert(!met[unit * rows + row]);
            met[unit * rows + row] = true;
            if (item % 2) { /* neighbours make a word */
                ck_assert_int_eq(unit, rnn_item_unit(item - 1, rows) + 1);
                ck_assert_int_eq(row, rnn_item_row(item - 1, rows));
            }
        }
    }
}
END_TEST

START_TEST(messages_have_a_place_each)
{
    rnn_tiles t;
    ck_assert(rnn_tiles_plan(4, 2, 20, 40, 2, H100_BLOCKS, H100_SHARED, &t));
    const size_t n = t.message_bytes / 8;
    bool *met = calloc(n, sizeof *met);
    for (int step = 0; step < 2; step++)
        for (int d = 0; d < t.directions; d++)
            for (int slice = 0; slice < t.slices; slice++)
                for (int row = 0; row < t.rows; row++)
                    for (int word = 0; word < t.row_words; word++) {
                        const int64_t at = rnn_message_at(&t, step, d, slice, row) + word;
                        ck_assert(at >= 0 && (size_t)at < n && !met[at]);
                        met[at] = true;
                    }
    for (size_t i = 0; i < n; i++)
        ck_assert(met[i]);
    ck_assert_int_eq(t.row_words % 2, 0); /* read two at a time */
    free(met);
}
END_TEST

static void check_division(int gates, int directions, int64_t batch, int64_t hidden, int element)
{
    rnn_tiles t;
    if (!rnn_tiles_plan(gates, directions, batch, hidden, element, H100_BLOCKS, H100_SHARED, &t))
        return;
    ck_assert_int_le(rnn_blocks(&t), H100_BLOCKS);
    ck_assert_int_ge((int64_t)t.slices * t.rows, batch);
    ck_assert_int_ge((int64_t)t.parts * RNN_UNITS, hidden);
    ck_assert_int_ge((int64_t)t.chunks * RNN_CHUNK_WORDS * 4, hidden * element);
    ck_assert_int_ge(t.pitch, t.row_words * 4);
    ck_assert_int_ge(t.pitch, t.chunks * RNN_CHUNK_WORDS * 4);
    ck_assert_int_eq(t.pitch % 128, 64);
    ck_assert(t.splits >= 1 && t.splits <= RNN_WARPS && t.splits <= t.chunks);
    ck_assert_uint_le(t.shared, H100_SHARED);
}

START_TEST(divisions_cover_layers)
{
    for (int gates = 1; gates <= 4; gates += gates == 1 ? 2 : 1)
        for (int directions = 1; directions <= 2; directions++)
            for (int64_t hidden = 1; hidden < 1500; hidden += hidden < 70 ? 1 : 53)
                for (int64_t batch = 1; batch < 300; batch = batch * 2 + 1)
                    for (int element = 2; element <= 4; element += 2)
                        check_division(gates, directions, batch, hidden, element);
    rnn_tiles t;
    ck_assert(rnn_tiles_plan(4, 1, 32, 512, 2, H100_BLOCKS, H100_SHARED, &t));
    ck_assert_int_eq(rnn_blocks(&t), 128);
    ck_assert(rnn_tiles_plan(4, 1, 32, 512, 4, H100_BLOCKS, H100_SHARED, &t));
    ck_assert(rnn_tiles_plan(4, 2, 1, 1024, 2, H100_BLOCKS, H100_SHARED, &t));
    ck_assert(!rnn_tiles_plan(4, 1, 32, 4096, 2, H100_BLOCKS, H100_SHARED, &t)); /* 134 MB */
    ck_assert(!rnn_tiles_plan(4, 1, 0, 64, 2, H100_BLOCKS, H100_SHARED, &t));
}
END_TEST

Suite *suite_test_rnn_tiles(void)
{
    Suite *suite = suite_create("rnn tiles");
    TCase *tcase = tcase_create("tiles");
    tcase_add_test(tcase, fragments_multiply);
    tcase_add_test(tcase, items_are_all_units_of_all_rows);
    tcase_add_test(tcase, messages_have_a_place_each);
    tcase_add_test(tcase, divisions_cover_layers);
    suite_add_tcase(suite, tcase);
    return suite;
}
