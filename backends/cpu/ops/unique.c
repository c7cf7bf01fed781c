/* SPDX-License-Identifier: Apache-2.0 */
/* Unique: the elements, or slices along an axis, are sorted by content and then by place; equal neighbours
 * are one. */
#include "backends/cpu/move.h"

#include "backends/shared/order.h"

#include <string.h>

typedef struct unique_state {
    bool flat, sorted;
    int64_t axis;
} unique_state;

static grt_status create_unique(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(unique_state), out_state));
    unique_state *state = *out_state;
    state->flat = !grt_attr_find(node->desc, "axis");
    state->axis = grt_attr_int(node->desc, "axis", 0);
    state->sorted = grt_attr_int(node->desc, "sorted", 1) != 0;
    return GRT_OK;
}

/* `n` slices of outer x inner elements each. */
typedef struct slices {
    const grt_tensor *in;
    int64_t n, outer, inner;
} slices;

static slices slices_of(const unique_state *s, const grt_tensor *in)
{
    if (s->flat || in->rank == 0)
        return (slices){in, grt_tensor_elements(in), 1, 1};
    int32_t axis = (int32_t)grt_axis(s->axis, in->rank);
    if (grt_tensor_elements(in) == 0) /* other dims may have any size */
        return (slices){in, in->dims[axis], 0, 0};
    return (slices){in, in->dims[axis], grt_dims_product(in->dims, 0, axis),
                    grt_dims_product(in->dims, axis + 1, in->rank)};
}

static int compare_element(const grt_tensor *t, int64_t i, int64_t k)
{
    if (t->dtype == GRT_DTYPE_STRING) {
        const grt_string *x = (const grt_string *)t->data + i, *y = (const grt_string *)t->data + k;
        size_t common = x->size < y->size ? x->size : y->size;
        int order = common ? memcmp(x->data, y->data, common) : 0;
        return order ? order : (x->size > y->size) - (x->size < y->size);
    }
    uint64_t x = cpu_order_key(t->dtype, t->data, i), y = cpu_order_key(t->dtype, t->data, k);
    return (x > y) - (x < y);
}

static int unique_compare(const slices *s, int64_t a, int64_t b)
{
    int order = 0;
    for (int64_t o = 0; o < s->outer && !order; o++)
        for (int64_t i = 0; i < s->inner && !order; i++)
            order = compare_element(s->in, (o * s->n + a) * s->inner + i, (o * s->n + b) * s->inner + i);
    return order;
}

/* Stable merge sort of slice numbers; `spare` has as much room. */
static void unique_sort(const slices *s, int64_t *v, int64_t *spare)
{
    for (int64_t width = 1; width < s->n; width *= 2) {
        for (int64_t from = 0; from < s->n; from += 2 * width) {
            int64_t middle = from + width < s->n ? from + width : s->n,
                    end = middle + width < s->n ? middle + width : s->n;
            for (int64_t left = from, right = middle, to = from; to < end; to++)
                spare[to] = right >= end || (left < middle && unique_compare(s, v[left], v[right]) <= 0)
                                ? v[left++]
                                : v[right++];
        }
        memcpy(v, spare, (size_t)s->n * sizeof *v);
    }
}

static grt_status reshape_unique(grt_reshape *reshape)
{
    slices s = slices_of(reshape->state, reshape->in[0]);
    reshape->workspace_bytes = 4 * (size_t)s.n * sizeof(int64_t);
    return GRT_OK;
}

/* group[i]: number of the slice's group in order of content; first[g]: its first slice. Returns the number of
 * groups. */
static int64_t unique_group(const slices *s, int64_t *order, int64_t *groups, int64_t *first)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->n; i++)
        order[i] = i;
    unique_sort(s, order, groups);
    for (int64_t i = 0; i < s->n; i++) {
        if (i == 0 || unique_compare(s, order[i - 1], order[i]))
            first[n++] = order[i];
        groups[order[i]] = n - 1;
    }
    return n;
}

/* Number the groups by first appearance instead. */
static void by_appearance(const slices *s, int64_t *groups, int64_t *first, int64_t *renamed)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->n; i++)
        if (first[groups[i]] == i)
            renamed[groups[i]] = n++;
    for (int64_t i = 0; i < s->n; i++)
        groups[i] = renamed[groups[i]];
    for (int64_t i = s->n - 1; i >= 0; i--)
        first[groups[i]] = i;
}

static grt_status run_unique(const grt_run *run)
{
    const unique_state *state = run->state;
    const grt_tensor *in = run->in[0];
    slices s = slices_of(state, in);
    int64_t *order = run->workspace, *groups = order + s.n, *first = groups + s.n, *renamed = first + s.n;
    int64_t n = unique_group(&s, order, groups, first), dims[GRT_MAX_RANK];
    if (!state->sorted)
        by_appearance(&s, groups, first, renamed);
    const int64_t all[] = {s.n}, some[] = {n};
    bool flat = state->flat || in->rank == 0;
    memcpy(dims, in->dims, sizeof dims);
    dims[flat ? 0 : grt_axis(state->axis, in->rank)] = n;
    for (int32_t i = 0; i < run->n_out; i++)
        if (run->out[i] && i == 0)
            GRT_TRY(run->hooks->alloc_output(run, 0, flat ? 1 : in->rank, dims));
        else if (run->out[i])
            GRT_TRY(run->hooks->alloc_output(run, i, 1, i == 2 ? all : some));
    size_t bytes = (size_t)s.inner * grt_dtype_size(in->dtype);
    for (int64_t o = 0; run->out[0] && o < s.outer && bytes; o++)
        for (int64_t g = 0; g < n; g++)
            memcpy((char *)run->out[0]->data + (size_t)(o * n + g) * bytes,
                   (const char *)in->data + (size_t)(o * s.n + first[g]) * bytes, bytes);
    if (n && run->n_out > 1 && run->out[1])
        memcpy(run->out[1]->data, first, (size_t)n * sizeof *first);
    if (s.n && run->n_out > 2 && run->out[2])
        memcpy(run->out[2]->data, groups, (size_t)s.n * sizeof *groups);
    if (n && run->n_out > 3 && run->out[3]) {
        int64_t *counts = run->out[3]->data;
        memset(counts, 0, (size_t)n * sizeof *counts);
        for (int64_t i = 0; i < s.n; i++)
            counts[groups[i]]++;
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "Unique",
     .domain = "",
     .types = {GRT_SET_NUMBERS | GRT_BIT(BOOL) | GRT_BIT(STRING)},
     .flags = GRT_KERNEL_DYNAMIC,
     .create = create_unique,
     .destroy = free,
     .reshape = reshape_unique,
     .run = run_unique},
};
CPU_KERNELS(unique, rows);
