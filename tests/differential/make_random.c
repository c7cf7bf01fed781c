/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: seeded, so that the same run draws the same numbers everywhere. */
#include "tests/differential/makers.h"

#include <string.h>

void make_random(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 4);
    n->op = draw_op();
    n->out = draw_float();
    if (strstr(n->op, "Like") || n->op[0] == 'B')
        add_input(n, n->out, rank, dims);
    else
        set_ints(n, "shape", dims, rank);
    if (n->op[0] == 'B') /* probabilities */
        for (int64_t i = 0; i < grt_tensor_elements(&n->in[0]); i++)
            element_set(&n->in[0], i, draw_real());
    set_int(n, "dtype", n->out);
    set_real(n, "seed", draw_real());
    if (strstr(n->op, "Normal")) {
        set_real(n, "mean", draw_real());
        set_real(n, "scale", draw_real());
    }
}

void make_multinomial(node *n)
{
    const int64_t dims[] = {draw(1, 4), draw(1, 300)};
    n->out = GRT_DTYPE_INT32;
    add_input(n, draw_float(), 2, dims);
    set_int(n, "sample_size", draw(1, 50));
    set_int(n, "dtype", n->out);
    set_real(n, "seed", draw_real());
}
