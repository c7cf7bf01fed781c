/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that GPUs cut into pieces: long lines that are few, many updates of few elements, many boxes; and
 * what moves several elements at once. */
#include "tests/differential/makers.h"

#include <string.h>

/* A line of some thousand numbers along one axis, few of them; the axis. */
static int32_t long_dims(int64_t *dims)
{
    const bool inner = draw(0, 2) == 0;
    dims[0] = draw(1, 3);
    dims[inner ? 1 : 2] = draw(3000, inner ? 9000 : 30000);
    dims[inner ? 2 : 1] = inner ? draw(1, 5) : draw(1, 2);
    return inner ? 1 : 2;
}

void make_long_lines(node *n)
{
    int64_t dims[3];
    n->op = draw_op();
    const bool cumulates = !strcmp(n->op, "CumSum"), finds = !strncmp(n->op, "Arg", 3),
               reduces = !strncmp(n->op, "Reduce", 6);
    const int32_t axis = long_dims(dims);
    const grt_dtype dtype = cumulates || finds ? draw_number() : draw_float();
    n->out = finds ? GRT_DTYPE_INT64 : dtype;
    add_input(n, dtype, 3, dims);
    if (cumulates) {
        add_number(n, GRT_DTYPE_INT64, axis);
        n->constant[1] = true;
        set_int(n, "exclusive", draw(0, 1));
        set_int(n, "reverse", draw(0, 1));
    } else if (reduces) {
        add_list(n, (int64_t[]){axis}, 1);
        n->constant[1] = true;
    } else {
        set_int(n, "axis", axis);
    }
    if (finds)
        set_int(n, "select_last_index", draw(0, 1));
}

void make_short_softmax(node *n)
{
    n->op = draw_op();
    n->out = draw_float();
    add_input(n, n->out, 2, (int64_t[]){draw(1, 300), draw(1, 70)});
    set_int(n, "axis", 1);
}

/* Numbers of which many are equal, more wanted than a warp keeps. */
void make_long_top_k(node *n)
{
    const int32_t axis = (int32_t)draw(0, 1);
    int64_t dims[2];
    dims[axis] = draw(1025, 30000);
    dims[1 - axis] = draw(1, 3);
    const int64_t k = draw(0, 2) ? draw(1, 140) : draw(1, dims[axis] < 2100 ? dims[axis] : 2100);
    n->out = draw(0, 2) ? draw_float() : draw_whole();
    add_input(n, n->out, 2, dims);
    add_list(n, &k, 1);
    set_int(n, "axis", axis);
    set_int(n, "largest", draw(0, 1));
    n->n_more = 1;
    n->which = (int)draw(0, 1);
    n->out = n->which ? GRT_DTYPE_INT64 : n->out;
}

static void add_indices(node *n, int32_t rank, const int64_t *dims, int64_t size)
{
    grt_tensor *t = add_input(n, draw(0, 1) ? GRT_DTYPE_INT32 : GRT_DTYPE_INT64, rank, dims);
    for (int64_t i = 0; i < grt_tensor_elements(t); i++)
        element_set(t, i, (double)draw(-size, size - 1));
}

/* Many updates meet in each element. */
void make_scatter(node *n)
{
    n->op = draw_op();
    const bool tuples = !strcmp(n->op, "ScatterND");
    const int64_t size = draw(1, 60), inner = draw(1, 7), many = draw(1, 700), outer = draw(1, 3);
    n->out = draw_number();
    if (tuples) {
        add_input(n, n->out, 2, (int64_t[]){size, inner});
        grt_tensor *t = add_input(n, GRT_DTYPE_INT64, 2, (int64_t[]){many, 1});
        for (int64_t i = 0; i < many; i++)
            element_set(t, i, (double)draw(-size, size - 1));
        add_input(n, n->out, 2, (int64_t[]){many, inner});
    } else {
        const int64_t used = draw(1, inner);
        add_input(n, n->out, 3, (int64_t[]){outer, size, inner});
        add_indices(n, 3, (int64_t[]){outer, many, used}, size);
        add_input(n, n->out, 3, (int64_t[]){outer, many, used});
        set_int(n, "axis", 1);
    }
    set_text(n, "reduction", PICK("add", "mul", "max", "min"));
}

void make_many_boxes(node *n)
{
    const int64_t classes = draw(1, 3), boxes = draw(60, 1500);
    n->out = GRT_DTYPE_INT64;
    add_input(n, GRT_DTYPE_FLOAT, 3, (int64_t[]){1, boxes, 4});
    add_input(n, GRT_DTYPE_FLOAT, 3, (int64_t[]){1, classes, boxes});
    add_number(n, GRT_DTYPE_INT64, (double)draw(1, boxes));
    add_number(n, GRT_DTYPE_FLOAT, draw_real());
    if (draw(0, 1))
        add_number(n, GRT_DTYPE_FLOAT, draw_real() * 2 - 1);
    set_int(n, "center_point_box", draw(0, 1));
}

/* Along up to three axes, of any number of neighbours. */
void make_taps(node *n)
{
    const int32_t rank = (int32_t)draw(1, 5);
    int64_t dims[5], sizes[5];
    n->out = draw(0, 1) ? GRT_DTYPE_FLOAT : GRT_DTYPE_FLOAT16;
    for (int32_t k = 0, active = 0; k < rank; k++) {
        const bool is = active < 3 && draw(0, 2);
        dims[k] = draw(2, 12);
        sizes[k] = is ? draw(1, 20) : dims[k];
        active += is;
    }
    add_input(n, n->out, rank, dims);
    n->omitted[n->n_in++] = true;
    n->omitted[n->n_in++] = true;
    add_list(n, sizes, rank);
    set_text(n, "mode", PICK("linear", "cubic"));
    set_int(n, "antialias", draw(0, 1));
    set_int(n, "exclude_outside", draw(0, 1));
}

/* Elements of which several are moved at once. */
void make_packed_where(node *n)
{
    const int64_t rows = draw(1, 9), columns = 16 * draw(1, 20);
    const int64_t dims[3][2] = {{rows, columns}, {1, columns}, {rows, 1}};
    n->out = draw_number();
    add_input(n, GRT_DTYPE_BOOL, 2, dims[draw(0, 2)]);
    add_input(n, n->out, 2, dims[0]);
    add_input(n, n->out, 2, dims[draw(0, 2)]);
}

/* Points of images and volumes, some outside. */
void make_points(node *n)
{
    const int32_t axes = (int32_t)draw(1, 3);
    int64_t dims[5] = {draw(1, 2), draw(1, 19)}, grid[5] = {dims[0]};
    for (int32_t k = 0; k < axes; k++) {
        dims[2 + k] = draw(1, 12);
        grid[1 + k] = draw(1, 9);
    }
    grid[1 + axes] = axes;
    n->out = draw_float();
    add_input(n, n->out, 2 + axes, dims);
    add_input(n, draw(0, 3) ? n->out : GRT_DTYPE_FLOAT, 2 + axes, grid);
    set_text(n, "mode", axes == 2 ? PICK("linear", "nearest", "cubic") : PICK("linear", "nearest"));
    set_text(n, "padding_mode", PICK("zeros", "border", "reflection"));
    set_int(n, "align_corners", draw(0, 1));
}

/* Channels that become planes, as when images are read. */
void make_unweave(node *n)
{
    const bool plain = draw(0, 1);
    n->out = draw_number();
    add_input(n, n->out, 4,
              (int64_t[]){draw(1, 3), draw(1, 9), plain ? draw(1, 40) : 16 * draw(1, 3), draw(1, 5)});
    set_ints(n, "perm", (int64_t[]){0, 3, 1, 2}, 4);
}

void make_picks(node *n)
{
    n->op = draw_op();
    n->out = draw_number();
    const int64_t rows = draw(1, 9), columns = draw(0, 1) ? 16 * draw(1, 5) : draw(1, 70), inner = draw(1, 9);
    if (!strcmp(n->op, "Trilu")) {
        add_input(n, n->out, 3, (int64_t[]){draw(1, 3), rows, columns});
        add_number(n, GRT_DTYPE_INT64, (double)draw(-columns, columns));
        set_int(n, "upper", draw(0, 1));
        return;
    }
    if (!strcmp(n->op, "ReverseSequence")) {
        add_input(n, n->out, 3, (int64_t[]){rows, columns, 4 * inner});
        grt_tensor *lengths = add_input(n, GRT_DTYPE_INT64, 1, &columns);
        for (int64_t i = 0; i < columns; i++)
            element_set(lengths, i, (double)draw(1, rows));
        set_int(n, "time_axis", 0);
        set_int(n, "batch_axis", 1);
        return;
    }
    const int64_t depth = draw(1, 33);
    grt_tensor *t =
        add_input(n, draw(0, 1) ? GRT_DTYPE_INT64 : GRT_DTYPE_FLOAT, 2, (int64_t[]){rows, columns});
    for (int64_t i = 0; i < rows * columns; i++)
        element_set(t, i, (double)draw(-depth - 1, depth));
    add_number(n, GRT_DTYPE_INT64, (double)depth);
    n->constant[1] = true;
    add_input(n, n->out, 1, (int64_t[]){2});
    set_int(n, "axis", draw(-3, 2));
}
