/* SPDX-License-Identifier: Apache-2.0 */
/* Ops whose results, and often their number, depend on the data. */
#include "tests/differential/makers.h"

void make_top_k(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 4), axis = (int32_t)draw(0, rank - 1);
    n->out = draw_number();
    if (draw(0, 3) == 0) { /* long lines are sorted */
        rank = 2;
        axis = (int32_t)draw(0, 1);
        dims[axis] = draw(5000, 20000);
        dims[1 - axis] = draw(1, 3);
    }
    add_input(n, n->out, rank, dims);
    const int64_t k = draw(0, dims[axis]);
    add_list(n, &k, 1);
    set_int(n, "axis", axis);
    set_int(n, "largest", draw(0, 1));
    n->n_more = 1;
    n->which = (int)draw(0, 1);
    n->out = n->which ? GRT_DTYPE_INT64 : n->out;
}

/* Lines that lie in registers, with numbers that are equal. */
void make_short_top_k(node *n)
{
    const int64_t dims[2] = {draw(1, 40), draw(1, 1100)}, k = draw(1, dims[1] < 130 ? dims[1] : 130);
    n->out = draw(0, 1) ? draw_float() : draw_whole();
    add_input(n, n->out, 2, dims);
    add_list(n, &k, 1);
    set_int(n, "axis", -1);
    set_int(n, "largest", draw(0, 1));
    n->n_more = 1;
    n->which = (int)draw(0, 1);
    n->out = n->which ? GRT_DTYPE_INT64 : n->out;
}

void make_nms(node *n)
{
    const int64_t batch = draw(1, 2), classes = draw(1, 4), boxes = draw(0, 5) ? draw(1, 300) : 0;
    n->out = GRT_DTYPE_INT64;
    add_input(n, GRT_DTYPE_FLOAT, 3, (int64_t[]){batch, boxes, 4});
    add_input(n, GRT_DTYPE_FLOAT, 3, (int64_t[]){batch, classes, boxes});
    add_number(n, GRT_DTYPE_INT64, (double)draw(0, 40));
    add_number(n, GRT_DTYPE_FLOAT, draw_real());
    if (draw(0, 1))
        add_number(n, GRT_DTYPE_FLOAT, draw_real() * 2 - 1);
    set_int(n, "center_point_box", draw(0, 1));
}

void make_unique(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 4);
    n->out = draw_number();
    for (int32_t k = 0; k < rank; k++)
        dims[k] = dims[k] ? dims[k] : 1;
    add_input(n, n->out, rank, dims);
    set_int(n, "sorted", draw(0, 1));
    n->n_more = 3;
    n->which = (int)draw(0, 3);
    n->out = n->which ? GRT_DTYPE_INT64 : n->out;
    if (draw(0, 1))
        set_int(n, "axis", draw(-rank, rank - 1));
}

void make_non_zero(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 5);
    n->out = GRT_DTYPE_INT64;
    add_input(n, draw(0, 1) ? GRT_DTYPE_BOOL : GRT_DTYPE_INT32, rank, dims);
}
