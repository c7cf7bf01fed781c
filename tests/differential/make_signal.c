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

/* Of real numbers and of complex ones, along any axis but the last; lengths with small factors and with large
 * ones, longer and shorter than what there is. */
void make_dft(node *n)
{
    static const int64_t lengths[] = {1, 2, 8, 12, 30, 64, 77, 100, 143, 256, 17, 38, 97, 400, 1024};
    const int64_t length = lengths[draw(0, 14)], rank = draw(2, 4), axis = draw(0, rank - 2);
    const bool complex = draw(0, 1), half = draw(0, 2) == 0, inverse = draw(0, 1) && (complex || !half);
    int64_t dims[4];
    for (int32_t k = 0; k < rank - 1; k++)
        dims[k] = draw(1, 5);
    dims[axis] = half && inverse ? length / 2 + 1 : draw(0, 3) ? length : draw(1, 2 * length);
    dims[rank - 1] = complex || inverse ? 2 : 1;
    n->out = draw(0, 2) ? GRT_DTYPE_FLOAT : draw_float();
    add_input(n, n->out, (int32_t)rank, dims);
    add_number(n, GRT_DTYPE_INT64, (double)length);
    add_number(n, GRT_DTYPE_INT64, (double)axis);
    set_int(n, "inverse", inverse);
    set_int(n, "onesided", half && (inverse || !complex));
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
