/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that go to other places unchanged. */
#include "tests/differential/makers.h"

#include <string.h>

/* Planes that become channels, as in image transposes. */
static void make_weave(node *n)
{
    n->out = draw_number();
    add_input(n, n->out, 4,
              (int64_t[]){draw(1, 3), draw(1, 5), draw(1, 9), draw(0, 3) ? 16 * draw(1, 3) : draw(1, 40)});
    set_ints(n, "perm", (int64_t[]){0, 2, 3, 1}, 4);
}

void make_transpose(node *n)
{
    int64_t dims[GRT_MAX_RANK], perm[GRT_MAX_RANK];
    if (draw(0, 3) == 0) {
        make_weave(n);
        return;
    }
    int32_t rank = draw_dims(dims, 1, 10);
    for (int32_t k = 0; k < rank; k++) {
        int32_t at = (int32_t)draw(0, k);
        perm[k] = perm[at];
        perm[at] = k;
    }
    n->out = draw_number();
    add_input(n, n->out, rank, dims);
    set_ints(n, "perm", perm, rank);
}

void make_slice(node *n)
{
    int64_t dims[GRT_MAX_RANK], starts[GRT_MAX_RANK], ends[GRT_MAX_RANK], axes[GRT_MAX_RANK],
        steps[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 8), count = 0;
    for (int32_t k = 0; k < rank; k++) {
        if (!draw(0, 1))
            continue;
        starts[count] = draw(-dims[k] - 2, dims[k] + 2);
        ends[count] = draw(-dims[k] - 2, dims[k] + 2);
        axes[count] = draw(0, 1) ? k : k - rank;
        steps[count] = draw(0, 2) ? draw(1, 3) : draw(-3, -1);
        count++;
    }
    n->out = draw_number();
    add_input(n, n->out, rank, dims);
    add_list(n, starts, count);
    add_list(n, ends, count);
    add_list(n, axes, count);
    add_list(n, steps, count);
}

void make_pad(node *n)
{
    int64_t dims[GRT_MAX_RANK], pads[2 * GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 6);
    for (int32_t k = 0; k < rank; k++) {
        dims[k] = dims[k] < 2 ? 3 : dims[k];
        pads[k] = draw(-1, dims[k] - 1 < 3 ? dims[k] - 1 : 3);
        pads[rank + k] = draw(0, dims[k] - 1 < 3 ? dims[k] - 1 : 3);
        if (pads[k] < 0)
            pads[rank + k] = 0;
    }
    n->out = draw_number();
    const char *mode = PICK("constant", "reflect", "edge", "wrap");
    for (int32_t k = 0; k < rank && strcmp(mode, "constant"); k++)
        pads[k] = pads[k] < 0 ? 0 : pads[k];
    add_input(n, n->out, rank, dims);
    add_list(n, pads, 2 * rank);
    set_text(n, "mode", mode);
}

void make_gather(node *n)
{
    int64_t dims[GRT_MAX_RANK], indices[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 6), wide = draw_dims(indices, 0, 2);
    int64_t axis = draw(0, rank - 1);
    dims[axis] = dims[axis] ? dims[axis] : 3;
    for (int32_t k = 0; k < wide; k++)
        indices[k] = indices[k] > 5 ? 5 : indices[k];
    n->out = draw_number();
    add_input(n, n->out, rank, dims);
    grt_tensor *t = add_input(n, draw(0, 1) ? GRT_DTYPE_INT32 : GRT_DTYPE_INT64, wide, indices);
    for (int64_t i = 0; i < grt_tensor_elements(t); i++)
        element_set(t, i, (double)draw(-dims[axis], dims[axis] - 1));
    set_int(n, "axis", axis);
}

void make_concat(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 6), count = (int32_t)draw(1, 5);
    int64_t axis = draw(0, rank - 1);
    n->out = draw_number();
    for (int32_t i = 0; i < count; i++) {
        dims[axis] = draw(0, 9);
        add_input(n, n->out, rank, dims);
    }
    set_int(n, "axis", axis);
}

void make_compress(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 4), axis = (int32_t)draw(0, rank - 1);
    n->out = draw_number();
    add_input(n, n->out, rank, dims);
    add_input(n, GRT_DTYPE_BOOL, 1, &dims[axis]);
    set_int(n, "axis", axis);
}

void make_tensor_scatter(node *n)
{
    const int64_t batch = draw(1, 3), heads = draw(1, 3), length = draw(1, 20), size = draw(1, 9),
                  count = draw(1, length);
    const bool circular = draw(0, 1);
    n->out = draw_number();
    add_input(n, n->out, 4, (int64_t[]){batch, heads, length, size});
    add_input(n, n->out, 4, (int64_t[]){batch, heads, count, size});
    if (draw(0, 3)) {
        grt_tensor *at = add_input(n, GRT_DTYPE_INT64, 1, &batch);
        for (int64_t i = 0; i < batch; i++)
            element_set(at, i, (double)draw(0, circular ? 3 * length : length - count));
    }
    set_text(n, "mode", circular ? "circular" : "linear");
}

/* A Transpose beside what a Concat joins to it, as new keys behind those of a cache. */
void make_joined_moves(node *n)
{
    int64_t dims[GRT_MAX_RANK], perm[GRT_MAX_RANK], beside[GRT_MAX_RANK];
    const int32_t rank = draw_dims(dims, 2, 5);
    for (int32_t k = 0; k < rank; k++) {
        const int32_t at = (int32_t)draw(0, k);
        dims[k] = draw(0, 2) ? draw(1, 9) : 8 * draw(1, 9);
        perm[k] = perm[at];
        perm[at] = k;
    }
    n->out = draw_number();
    n->joined = true;
    n->joined_first = draw(0, 1);
    n->joined_axis = draw(0, rank - 1);
    for (int32_t k = 0; k < rank; k++)
        beside[k] = k == n->joined_axis ? draw(1, 40) : dims[perm[k]];
    add_input(n, n->out, rank, dims);
    add_input(n, n->out, rank, beside);
    set_ints(n, "perm", perm, rank);
}
