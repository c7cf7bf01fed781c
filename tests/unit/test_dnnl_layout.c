/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between layouts of convolution weights. */
#include "backends/cpu/dnnl_layout.h"
#include "tests/unit/suite.h"

#include <stdlib.h>

/* Blocks of `a` and `b` elements of dims 0 and 1, innermost dim 0 if there are any; the rest in order. a, b
 * 1: none. */
static dnnl_layout layout_of(int rank, const int64_t *dims, int64_t b, int64_t a)
{
    dnnl_layout l = {.rank = rank, .floats = (size_t)(a * b)};
    if (b > 1) {
        l.block[l.blocks] = b;
        l.block_dim[l.blocks++] = 1;
    }
    if (a > 1) {
        l.block[l.blocks] = a;
        l.block_dim[l.blocks++] = 0;
    }
    for (int d = rank - 1; d >= 0; d--) {
        const int64_t block = d == 0 ? a : d == 1 ? b : 1;
        l.dims[d] = dims[d];
        l.stride[d] = (int64_t)l.floats;
        l.floats *= (size_t)((dims[d] + block - 1) / block);
    }
    return l;
}

/* The place that the layout's definition says. */
static int64_t place(const dnnl_layout *l, const int64_t *index, int64_t b, int64_t a)
{
    int64_t at = index[1] % b * a + index[0] % a;
    for (int d = 0; d < l->rank; d++)
        at += index[d] / (d == 0 ? a : d == 1 ? b : 1) * l->stride[d];
    return at;
}

/* From blocks to other blocks: each element is where it belongs, and all else is 0. */
static void check_copy(int rank, const int64_t *dims, int64_t from_b, int64_t from_a, int64_t to_b,
                       int64_t to_a)
{
    const dnnl_layout from = layout_of(rank, dims, from_b, from_a), to = layout_of(rank, dims, to_b, to_a);
    float *data = malloc(from.floats * sizeof *data), *found = malloc((to.floats + 1) * sizeof *found);
    float *expected = calloc(to.floats, sizeof *expected);
    for (size_t i = 0; i < from.floats; i++)
        data[i] = (float)i + 1;
    for (size_t i = 0; i <= to.floats; i++)
        found[i] = -1;
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= dims[d];
    for (int64_t i = 0; i < n; i++) {
        int64_t index[DNNL_LAYOUT_DIMS], rest = i;
        for (int d = rank - 1; d >= 0; rest /= dims[d], d--)
            index[d] = rest % dims[d];
        expected[place(&to, index, to_b, to_a)] = data[place(&from, index, from_b, from_a)];
    }
    ck_assert(dnnl_layout_copy(&from, data, &to, found));
    ck_assert_mem_eq(found, expected, to.floats * sizeof *found);
    ck_assert(found[to.floats] == -1);
    free(data);
    free(found);
    free(expected);
}

START_TEST(elements_find_their_places)
{
    static const int64_t images[] = {70, 35, 3, 2}, points[] = {100, 50, 1, 1},
                         volumes[] = {3, 20, 18, 2, 1, 3}, one[] = {1, 1, 1}, row[] = {1, 40, 1};
    check_copy(4, images, 1, 1, 1, 48);
    check_copy(4, images, 1, 48, 1, 64);
    check_copy(4, images, 16, 16, 1, 32);
    check_copy(4, images, 16, 16, 1, 1);
    check_copy(4, points, 1, 64, 8, 8);
    check_copy(4, points, 1, 1, 16, 16);
    check_copy(6, volumes, 4, 1, 1, 16);
    check_copy(3, one, 1, 1, 1, 16);
    check_copy(3, row, 8, 1, 1, 8);
}
END_TEST

START_TEST(empty_weights_are_padding)
{
    static const int64_t none[] = {16, 0, 1};
    check_copy(3, none, 1, 1, 1, 16);
}
END_TEST

UNIT_SUITE(test_dnnl_layout, NULL, NULL, elements_find_their_places, empty_weights_are_padding)
