/* SPDX-License-Identifier: Apache-2.0 */
/* How recurrent layers' rows are divided among blocks that have all of R: every row and unit is somebody's,
 * what a block has fits, and lanes do not meet in banks of shared memory. */
#include "backends/cuda/rnn_row_blocks.h"
#include "tests/unit/suite.h"

#include <string.h>

enum { H100_BLOCKS = 132, H100_SHARED = 232448, BANKS = 32 };

static void check_division(int gates, int directions, int64_t batch, int64_t hidden, int element, bool strict)
{
    rnn_row_blocks t;
    if (!rnn_row_blocks_plan(gates, directions, batch, hidden, element, strict, H100_BLOCKS, H100_SHARED,
                             &t)) {
        /* Nothing that would fit is refused: what registers cannot hold of R is near what a block may have.
         */
        ck_assert((int64_t)gates * hidden * hidden * element > H100_SHARED / 2 ||
                  hidden > RNN_ROWS_MOST_WARPS * RNN_UNITS);
        return;
    }
    ck_assert(t.rows == 8 || t.rows == 16);
    ck_assert_int_ge((int64_t)t.blocks / directions * t.rows, batch);
    ck_assert_int_lt(((int64_t)t.blocks / directions - 1) * t.rows, batch);
    ck_assert_int_ge((int64_t)t.parts * RNN_UNITS, hidden);
    ck_assert(t.parts <= RNN_ROWS_WARPS || (t.parts <= RNN_ROWS_MOST_WARPS && t.rows == 8));
    ck_assert_int_ge((int64_t)t.chunks * RNN_CHUNK_WORDS * 4, hidden * element);
    ck_assert_int_ge(t.pitch, t.chunks * RNN_CHUNK_WORDS * 4);
    const int64_t behind = hidden * element - (int64_t)t.held * RNN_CHUNK_WORDS * 4; /* bytes of a row of R */
    ck_assert_int_ge((int64_t)t.part_bytes * t.parts, gates * hidden * (behind > 0 ? behind : 0));
    ck_assert_uint_eq(t.part_bytes % 16, 0);
    ck_assert_uint_le(t.shared, H100_SHARED);
    ck_assert_int_ge(t.held, 0);
    ck_assert_int_le(t.held, t.chunks);
    ck_assert_int_le(t.held * gates * 8 * (t.rows / 8), strict || t.parts > RNN_ROWS_WARPS ? 0 : 144);
}

START_TEST(divisions_cover_layers)
{
    for (int gates = 1; gates <= 4; gates += gates == 1 ? 2 : 1)
        for (int directions = 1; directions <= 2; directions++)
            for (int64_t hidden = 1; hidden < 400; hidden += hidden < 70 ? 1 : 13)
                for (int64_t batch = 1; batch < 5000; batch = batch * 3 + 1)
                    for (int kind = 0; kind < 3; kind++) /* 16 bits, TF32, float32 */
                        check_division(gates, directions, batch, hidden, kind ? 4 : 2, kind == 2);
    rnn_row_blocks t;
    ck_assert(rnn_row_blocks_plan(4, 2, 1024, 48, 2, false, H100_BLOCKS, H100_SHARED, &t));
    ck_assert_int_eq(t.rows, 16);
    ck_assert_int_eq(t.blocks, 128);
    ck_assert(rnn_row_blocks_plan(4, 2, 1, 128, 2, false, H100_BLOCKS, H100_SHARED, &t));
    ck_assert_int_eq(t.rows, 8);
    ck_assert_int_eq(t.parts, RNN_ROWS_WARPS);
    ck_assert(!rnn_row_blocks_plan(4, 1, 1, 256, 2, false, H100_BLOCKS, H100_SHARED, &t)); /* 512 KiB */
    ck_assert(!rnn_row_blocks_plan(4, 1, 0, 64, 2, false, H100_BLOCKS, H100_SHARED, &t));
    ck_assert(!rnn_row_blocks_plan(4, 1, 1, 0, 2, false, H100_BLOCKS, H100_SHARED, &t));
}
END_TEST

START_TEST(columns_are_all_rows)
{
    unsigned met = 0;
    for (int column = 0; column < 8; column++) {
        const int32_t row = rnn_rows_row(column);
        ck_assert(row >= 0 && row < 8);
        met |= 1u << row;
    }
    ck_assert_uint_eq(met, 0xff);
}
END_TEST

/* Eight lanes read 16 bytes each at a time, the rows of two columns; a warp stores 16-bit numbers of eight
 * neighbouring units of four rows, two in a word. */
START_TEST(lanes_have_banks_of_their_own)
{
    for (int64_t hidden = 1; hidden <= 256; hidden++) {
        rnn_row_blocks t;
        if (!rnn_row_blocks_plan(4, 1, 8, hidden, 2, false, H100_BLOCKS, H100_SHARED, &t))
            continue;
        for (int first = 0; first < 32; first += 8) {
            int met[BANKS] = {0};
            for (int lane = first; lane < first + 8; lane++)
                for (int word = 0; word < 4; word++)
                    met[(rnn_rows_row(lane / 4) * t.pitch + lane % 4 * 16 + word * 4) / 4 % BANKS]++;
            for (int bank = 0; bank < BANKS; bank++)
                ck_assert_int_eq(met[bank], 1);
        }
        for (int k = 0; k < 2; k++) {
            int word_of[BANKS];
            memset(word_of, -1, sizeof word_of);
            for (int lane = 0; lane < 32; lane++) {
                const int word = (rnn_rows_row(lane % 4 * 2 + k) * t.pitch + lane / 4 * 2) / 4;
                ck_assert(word_of[word % BANKS] == -1 || word_of[word % BANKS] == word);
                word_of[word % BANKS] = word;
            }
        }
    }
}
END_TEST

Suite *suite_test_rnn_row_blocks(void)
{
    Suite *suite = suite_create("rnn row blocks");
    TCase *tcase = tcase_create("rows");
    tcase_add_test(tcase, divisions_cover_layers);
    tcase_add_test(tcase, columns_are_all_rows);
    tcase_add_test(tcase, lanes_have_banks_of_their_own);
    suite_add_tcase(suite, tcase);
    return suite;
}
