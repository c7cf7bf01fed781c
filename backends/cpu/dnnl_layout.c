/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/dnnl_layout.h"

#include <stdlib.h>
#include <string.h>

enum { TILE = 16 }; /* a line of memory on both sides */

/* An element's place is the sum of what each of its indices adds. */
typedef struct places {
    const int64_t *from[DNNL_LAYOUT_DIMS], *to[DNNL_LAYOUT_DIMS];
} places;

static int64_t layout_place(const dnnl_layout *l, int dim, int64_t index)
{
    int64_t place = 0, step = 1;
    for (int b = l->blocks - 1; b >= 0; b--) {
        if (l->block_dim[b] == dim) {
            place += index % l->block[b] * step;
            index /= l->block[b];
        }
        step *= l->block[b];
    }
    return place + index * l->stride[dim];
}

/* One table for each dim and side; *out_table is to be freed. */
static bool make_places(const dnnl_layout *from, const dnnl_layout *to, places *out, int64_t **out_table)
{
    size_t n = 0;
    for (int d = 0; d < from->rank; d++)
        n += 2 * (size_t)from->dims[d];
    int64_t *at = malloc((n + 1) * sizeof *at);
    *out_table = at;
    for (int d = 0; at && d < from->rank; d++) {
        const int64_t size = from->dims[d];
        for (int64_t i = 0; i < size; i++) {
            at[i] = layout_place(from, d, i);
            at[size + i] = layout_place(to, d, i);
        }
        out->from[d] = at;
        out->to[d] = at + size;
        at += 2 * size;
    }
    return *out_table != NULL;
}

/* The dim whose elements lie closest together. */
static int closest(const dnnl_layout *l)
{
    int found = 0;
    int64_t least = INT64_MAX;
    for (int d = 0; d < l->rank; d++) {
        const int64_t step = l->dims[d] > 1 ? layout_place(l, d, 1) : INT64_MAX;
        if (step < least) {
            least = step;
            found = d;
        }
    }
    return found;
}

static void layout_copy_row(const int64_t *from_places, const float *from, const int64_t *to_places,
                            float *to, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        to[to_places[i]] = from[from_places[i]];
}

/* Two dims, `row` closest together in `to` and `column` in `from`, by tiles: each line is whole when it
 * leaves the cache. */
static void copy_plane(const places *p, const dnnl_layout *l, int row, int column, const float *from,
                       float *to)
{
    const int64_t rows = l->dims[row], columns = l->dims[column];
    for (int64_t c = 0; c < columns; c += TILE)
        for (int64_t r = 0; r < rows; r += TILE)
            for (int64_t i = c; i < columns && i < c + TILE; i++)
                layout_copy_row(p->from[row], from + p->from[column][i], p->to[row], to + p->to[column][i], r,
                                r + TILE < rows ? r + TILE : rows);
}

/* The next combination of indices of all dims but two; false after the last. */
static bool step_on(const dnnl_layout *l, int row, int column, int64_t *index)
{
    for (int d = l->rank - 1; d >= 0; d--) {
        if (d == row || d == column)
            continue;
        if (++index[d] < l->dims[d])
            return true;
        index[d] = 0;
    }
    return false;
}

static size_t layout_elements(const dnnl_layout *l)
{
    size_t n = 1;
    for (int d = 0; d < l->rank; d++)
        n *= (size_t)l->dims[d];
    return n;
}

bool dnnl_layout_copy(const dnnl_layout *from_layout, const float *from, const dnnl_layout *to_layout,
                      float *to)
{
    const int row = closest(to_layout), column = closest(from_layout);
    int64_t index[DNNL_LAYOUT_DIMS] = {0}, *table;
    places p;
    if (to_layout->floats != layout_elements(to_layout))
        memset(to, 0, to_layout->floats * sizeof *to);
    if (layout_elements(to_layout) == 0)
        return true;
    if (!make_places(from_layout, to_layout, &p, &table))
        return false;
    do {
        int64_t from_at = 0, to_at = 0;
        for (int d = 0; d < from_layout->rank; d++) {
            from_at += p.from[d][index[d]];
            to_at += p.to[d][index[d]];
        }
        if (row == column)
            layout_copy_row(p.from[row], from + from_at, p.to[row], to + to_at, 0, from_layout->dims[row]);
        else
            copy_plane(&p, from_layout, row, column, from + from_at, to + to_at);
    } while (step_on(from_layout, row, column, index));
    free(table);
    return true;
}
