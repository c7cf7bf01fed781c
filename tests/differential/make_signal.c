/* SPDX-License-Identifier: Apache-2.0 */
/* Signals: transforms, windows, filter banks. */
#include "tests/differential/makers.h"

void make_stft(node *n)
{
    const int64_t length = draw(1, 90), frame = draw(1, length);
    const bool complex = draw(0, 2) == 0;
    n->out = draw_float();
    add_input(n, n->out, 3, (int64_t[]){draw(1, 3), length, complex ? 2 : 1});
    add_number(n, GRT_DTYPE_INT64, (double)draw(1, frame));
    add_input(n, n->out, 1, &frame);
    set_int(n, "onesided", !complex && draw(0, 1));
}

void make_window(node *n)
{
    n->op = draw_op();
    n->out = GRT_DTYPE_FLOAT;
    add_number(n, GRT_DTYPE_INT64, (double)draw(0, 70));
    set_int(n, "periodic", draw(0, 1));
}

void make_mel(node *n)
{
    n->out = GRT_DTYPE_FLOAT;
    add_number(n, GRT_DTYPE_INT64, (double)draw(1, 20));
    add_number(n, GRT_DTYPE_INT64, (double)draw(2, 200));
    add_number(n, GRT_DTYPE_INT64, (double)draw(4000, 16000));
    add_number(n, GRT_DTYPE_FLOAT, draw_real() * 100);
    add_number(n, GRT_DTYPE_FLOAT, 200 + draw_real() * 5000);
}
