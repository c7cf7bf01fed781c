/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers read and write rows where they lie. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <check.h>

/* Weights of a layer of 4 inputs and 3 hidden values, one way or both. */
#define ONE_WAY(GATES) "const w f32 1," GATES ",4\nconst r f32 1," GATES ",3\nconst b f32 1,24\n"
#define BOTH_WAYS      "const w f32 2,12,4\nconst r f32 2,12,3\nconst b f32 2,24\n"

/* A batch of sequences, both ways. */
#define OF_BATCH(BATCH, STEPS)                                           \
    "in x f32 " BATCH "," STEPS ",4\n" BOTH_WAYS "const s i64 3 0 0 6\n" \
    "t = Transpose x perm=1,0,2\n"                                       \
    "y = LSTM t w r b hidden_size=3 direction=bidirectional\n"           \
    "u = Transpose y perm=2,0,1,3\n"                                     \
    "z = Reshape u s\n"                                                  \
    "out z\n"

START_TEST(batches_of_sequences)
{
    ir_text_check(OF_BATCH("2", "5"), "", "Reshape graphrt::LSTM Reshape");
    ir_text_check(OF_BATCH("b", "t"), "", "Reshape graphrt::LSTM Reshape");
    ir_text_check(OF_BATCH("b", "5"), "", "Reshape graphrt::LSTM Reshape");
}
END_TEST

/* Columns of a batch of images, [2, 5, 3]: steps go down, between images and columns. */
START_TEST(columns_of_images)
{
    ir_text_check("in x f32 2,5,3,4\n" BOTH_WAYS "const s i64 3 6 5 4\nconst o i64 4 2 3 5 6\n"
                  "c = Transpose x perm=0,2,1,3\n"
                  "f = Reshape c s\n"
                  "t = Transpose f perm=1,0,2\n"
                  "y = LSTM t w r b hidden_size=3 direction=bidirectional\n"
                  "u = Transpose y perm=2,0,1,3\n"
                  "v = Reshape u o\n"
                  "z = Transpose v perm=0,2,1,3\n"
                  "out z\n",
                  "", "graphrt::LSTM Reshape");
}
END_TEST

/* What one layer writes the next reads where it lies, whichever moves are between them. */
START_TEST(layers_in_a_row)
{
    ir_text_check("in x f32 b,t,4\n" ONE_WAY("9") "const v f32 1,9,3\nconst one i64 1 1\n"
                                                  "s = Transpose x perm=1,0,2\n"
                                                  "y = GRU s w r hidden_size=3\n"
                                                  "q = Squeeze y one\n"
                                                  "z = GRU q v r hidden_size=3\n"
                                                  "p = Squeeze z one\n"
                                                  "o = Transpose p perm=1,0,2\n"
                                                  "out o\n",
                  "", "Reshape graphrt::GRU Reshape graphrt::GRU Reshape");
    ir_text_check("in x f32 5,2,4\n" BOTH_WAYS "const v f32 2,12,6\nconst s i64 3 0 0 6\n"
                  "y = LSTM x w r b hidden_size=3 direction=bidirectional\n"
                  "u = Transpose y perm=0,2,1,3\n"
                  "q = Reshape u s\n"
                  "z = LSTM q v r b hidden_size=3 direction=bidirectional\n"
                  "p = Transpose z perm=0,2,1,3\n"
                  "o = Reshape p s\n"
                  "out o\n",
                  "", "Reshape graphrt::LSTM Reshape graphrt::LSTM Reshape");
}
END_TEST

/* The order of the batch stays, so lengths, first and last states are as they were. */
START_TEST(states_stay)
{
    ir_text_check("in x f32 2,5,3,4\n" BOTH_WAYS "const s i64 3 5 6 4\nconst n i32 6 5 3 1 0 4 2\n"
                  "in h f32 2,6,3\nin c f32 2,6,3\n"
                  "f = Transpose x perm=1,0,2,3\n"
                  "t = Reshape f s\n"
                  "y,lh,lc = LSTM t w r b n h c hidden_size=3 direction=bidirectional\n"
                  "out y\nout lh\nout lc\n",
                  "step_rows", NULL);
    ir_text_check("in x f32 2,5,4\n" BOTH_WAYS "t = Transpose x perm=1,0,2\n"
                  "y,lh = LSTM t w r b hidden_size=3 direction=bidirectional\n"
                  "out lh\n",
                  "", "Reshape graphrt::LSTM");
    ir_text_check("in x f32 2,5,4\n" ONE_WAY("3") "t = Transpose x perm=1,0,2\n"
                                                  "y,lh = RNN t w r hidden_size=3 direction=reverse\n"
                                                  "out lh\n",
                  "", "Reshape graphrt::RNN");
}
END_TEST

static void step_rows_stay(const char *text)
{
    ir_module *module = ir_text(text);
    ck_assert_int_eq(ir_text_pass(module, "step_rows"), 0);
    ir_module_release(module);
}

/* Nothing is moved; inputs of a step are; a part of what was transposed; a result that is wider than what is
 * read, and would be moved instead; a dim of the batch behind another one. */
START_TEST(layers_that_stay)
{
    step_rows_stay("in x f32 5,2,4\n" ONE_WAY("9") "y,h = GRU x w r hidden_size=3\nout y\n");
    step_rows_stay("in x f32 5,4,2\n" ONE_WAY("9") "t = Transpose x perm=0,2,1\n"
                                                   "y,h = GRU t w r hidden_size=3\nout h\n");
    step_rows_stay("in x f32 3,5,4\n" ONE_WAY("9") "const a i64 1 0\nconst e i64 1 2\nconst one i64 1 1\n"
                                                   "t = Transpose x perm=1,0,2\ns = Slice t a e one\n"
                                                   "y,h = GRU s w r hidden_size=3\nout h\n");
    step_rows_stay("in x f32 2,5,4\n" BOTH_WAYS "t = Transpose x perm=1,0,2\n"
                   "y = LSTM t w r b hidden_size=3 direction=bidirectional\nout y\n");
    step_rows_stay("in x f32 2,3,5,4\n" ONE_WAY("9") "const s i64 3 5 6 4\n"
                                                     "t = Transpose x perm=2,1,0,3\nq = Reshape t s\n"
                                                     "y,h = GRU q w r hidden_size=3\nout h\n");
}
END_TEST

UNIT_SUITE(test_pass_step_rows, NULL, NULL, batches_of_sequences, columns_of_images, layers_in_a_row,
           states_stay, layers_that_stay)
