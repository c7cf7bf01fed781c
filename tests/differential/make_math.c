/* SPDX-License-Identifier: Apache-2.0 */
/* Element by element, and along axes. */
#include "tests/differential/makers.h"

#include <string.h>

void make_binary(node *n)
{
    int64_t dims[GRT_MAX_RANK], other[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 0, 10), less = (int32_t)draw(0, rank);
    n->op = draw_op();
    n->out = !strcmp(n->op, "Less") || !strcmp(n->op, "Equal") ? GRT_DTYPE_BOOL : draw_number();
    grt_dtype dtype = n->out == GRT_DTYPE_BOOL ? draw_number() : n->out;
    for (int32_t k = 0; k < rank - less; k++)
        other[k] = draw(0, 2) ? dims[less + k] : 1;
    for (int32_t k = 0; k < rank; k++)
        if (k >= less && dims[k] != 1 && other[k - less] == dims[k] && draw(0, 3) == 0)
            dims[k] = 1;
    add_input(n, dtype, rank, dims);
    add_input(n, dtype, rank - less, other);
    for (int i = 0; i < 2; i++)
        n->computed[i] = n->in[i].rank > 0 && n->in[i].dims[0] > 0 && draw(0, 2) == 0;
}

/* An operand with as many bytes as the result, as it is broadcast and of a wider type: its last use, but the
 * result must not overwrite it. */
void make_overwritten(node *n)
{
    static const grt_dtype wide[] = {GRT_DTYPE_FLOAT, GRT_DTYPE_INT64, GRT_DTYPE_FLOAT16, GRT_DTYPE_DOUBLE,
                                     GRT_DTYPE_INT32};
    const grt_dtype dtype = wide[draw(0, 4)];
    const int64_t times = (int64_t)grt_tensor_bytes(&(grt_tensor){.dtype = dtype}),
                  columns = draw(1, 3) * draw_dim(), rows = draw(1, 40);
    const int64_t whole[] = {times, rows, columns}, column[] = {times, 1, 1};
    const bool first = draw(0, 1), all = draw(0, 1);
    n->op = draw_op();
    n->then = draw(0, 1) ? "Not" : NULL;
    n->out = GRT_DTYPE_BOOL;
    for (int i = 0; i < 2; i++)
        if (first == (i == 0))
            add_input(n, dtype, 2, whole + 1);
        else
            add_input(n, dtype, 3, all ? whole : column);
    n->computed[first ? 0 : 1] = true;
}

void make_unary(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 0, 10);
    n->op = draw_op();
    n->out = draw_float();
    add_input(n, n->out, rank, dims);
}

void make_where(node *n)
{
    int64_t dims[GRT_MAX_RANK], part[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 0, 8);
    n->out = draw_number();
    for (int i = 0; i < 3; i++) {
        for (int32_t k = 0; k < rank; k++)
            part[k] = i == 0 || draw(0, 2) ? dims[k] : 1;
        add_input(n, i == 0 ? GRT_DTYPE_BOOL : n->out, rank, part);
    }
}

void make_cast(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 0, 8);
    n->out = draw_number();
    add_input(n, draw_number(), rank, dims);
    set_int(n, "to", n->out);
}

void make_softmax(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 6);
    n->op = draw_op();
    n->out = draw_float();
    add_input(n, n->out, rank, dims);
    set_int(n, "axis", draw(-rank, rank - 1));
}

void make_reduce(node *n)
{
    int64_t dims[GRT_MAX_RANK], axes[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 8), count = 0;
    for (int32_t k = 0; k < rank; k++) {
        dims[k] = dims[k] ? dims[k] : 1; /* what nothing reduces to is for the conformance cases */
        if (draw(0, 1))
            axes[count++] = draw(0, 1) ? k : k - rank;
    }
    n->op = draw_op();
    n->out = draw_float();
    add_input(n, n->out, rank, dims);
    add_list(n, axes, count);
    set_int(n, "keepdims", draw(0, 1));
}

/* Few columns that are long. */
void make_tall_softmax(node *n)
{
    n->op = draw_op();
    n->out = draw_float();
    add_input(n, n->out, 3, (int64_t[]){draw(1, 3), draw(60, 2500), draw(2, 70)});
    set_int(n, "axis", 1);
}

/* Tensors that GPUs divide among many blocks. */
void make_spread(node *n)
{
    n->op = draw_op();
    n->out = draw_float();
    const bool reduces = n->op[0] == 'R';
    const int64_t groups = draw(1, 8), channels = groups * draw(1, 6);
    if (reduces) { /* of the axes in the middle */
        const int64_t rows = draw(33, 400), columns = 8 * draw(1, 40), outer = draw(1, 3);
        add_input(n, n->out, 4, (int64_t[]){outer, draw(1, 2), rows, columns});
        add_list(n, (int64_t[]){1, 2}, 2);
        n->constant[1] = true;
        return;
    }
    const int64_t least = draw(0, 1) ? 60 : 10;
    add_input(n, n->out, 4, (int64_t[]){draw(1, 3), channels, draw(least, 130), draw(least, 130)});
    add_input(n, n->out, 1, &channels);
    add_input(n, n->out, 1, &channels);
    if (n->op[0] == 'G')
        set_int(n, "num_groups", groups);
}

void make_cumsum(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 5);
    n->out = draw(0, 1) ? GRT_DTYPE_INT64 : GRT_DTYPE_FLOAT;
    add_input(n, n->out, rank, dims);
    grt_tensor *axis = add_input(n, GRT_DTYPE_INT64, 0, NULL);
    *(int64_t *)axis->data = draw(-rank, rank - 1);
    n->constant[1] = draw(0, 1);
    set_int(n, "exclusive", draw(0, 1));
    set_int(n, "reverse", draw(0, 1));
}

void make_norm(node *n)
{
    int64_t dims[GRT_MAX_RANK], axis;
    int32_t rank = draw_dims(dims, 1, 5);
    n->out = draw_float();
    axis = draw(0, rank - 1);
    for (int32_t k = 0; k < rank; k++)
        dims[k] = dims[k] ? dims[k] : 1;
    dims[rank - 1] = draw(2, 300); /* one number has no variance */
    add_input(n, n->out, rank, dims);
    add_input(n, n->out, rank - (int32_t)axis, dims + axis);
    set_int(n, "axis", axis);
}

/* Long lines, short ones, and lines whose numbers are apart. */
void make_lp_norm(node *n)
{
    const int64_t dims[3] = {draw(1, 6), draw(0, 1) ? draw(1, 70) : draw(900, 2100),
                             draw(0, 1) ? 1 : draw(1, 40)};
    n->out = draw_float();
    add_input(n, n->out, dims[2] == 1 ? 2 : 3, dims);
    set_int(n, "axis", 1);
    set_int(n, "p", draw(1, 2));
}
