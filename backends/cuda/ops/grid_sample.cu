/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample, AffineGrid: a thread per output element gathers what makes it. */
#include "backends/cuda/each.cuh"

namespace
{

/* ---- GridSample ---- */

enum grid_mode { GRID_LINEAR, GRID_NEAREST, GRID_CUBIC };
enum grid_padding { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION };

struct grid_state {
    grid_mode mode;
    grid_padding padding;
    bool align;
};

grt_status create_grid(const grt_kernel_node *node, void **out_state)
{
    const char *mode = grt_attr_string(node->desc, "mode", "linear");
    const char *padding = grt_attr_string(node->desc, "padding_mode", "zeros");
    grid_state *s;
    GRT_TRY(cuda_state(&s));
    s->mode = !strcmp(mode, "nearest") ? GRID_NEAREST : !strcmp(mode, "cubic") ? GRID_CUBIC : GRID_LINEAR;
    s->padding = !strcmp(padding, "border")       ? PAD_BORDER
                 : !strcmp(padding, "reflection") ? PAD_REFLECTION
                                                  : PAD_ZEROS;
    s->align = grt_attr_int(node->desc, "align_corners", 0) != 0;
    *out_state = s;
    return GRT_OK;
}

/* Mirrored at both ends of [low, high] until it lies between them. */
__device__ double reflect(double x, double low, double high)
{
    double range = high - low;
    if (range <= 0)
        return low;
    if (x >= low && x <= high)
        return x;
    double beyond = x < low ? low - x : x - high, turns = floor(beyond / range),
           rest = beyond - turns * range;
    bool even = fmod(turns, 2.0) == 0;
    return (x < low) == even ? low + rest : high - rest;
}

/* The elements of one axis that make a sample: at most 4. index -1: zero. */
struct taps {
    int32_t n, now;
    int64_t index[4];
    double weight[4];
};

__device__ int64_t pixel(const grid_state &s, double i, int64_t n, double low, double high)
{
    if (s.padding == PAD_ZEROS)
        return i >= 0 && i < (double)n ? (int64_t)i : -1;
    if (s.padding == PAD_REFLECTION)
        i = reflect(i, low, high);
    return i <= 0 ? 0 : i >= (double)n ? n - 1 : (int64_t)i;
}

/* `at` is the grid's coordinate, -1 to 1 over an axis of n elements. */
__device__ void find_taps(const grid_state &s, double at, int64_t n, taps *t)
{
    double low = s.align ? 0 : -0.5, high = s.align ? (double)n - 1 : (double)n - 0.5;
    double x = s.align ? (at + 1) / 2 * (double)(n - 1) : ((at + 1) * (double)n - 1) / 2;
    x = (double)(float)x;
    x = x > -0x1p40 ? (x < 0x1p40 ? x : 0x1p40) : -0x1p40; /* NaN counts as far outside */
    if (s.mode == GRID_NEAREST)
        x = rint(x);
    if (x < low || x > high) {
        if (s.padding == PAD_BORDER)
            x = x < 0 ? 0 : x > (double)n - 1 ? (double)n - 1 : x;
        else if (s.padding == PAD_REFLECTION)
            x = reflect(x, low, high);
    }
    t->now = 0;
    if (s.mode == GRID_NEAREST) {
        t->n = 1;
        t->weight[0] = 1;
        t->index[0] = pixel(s, s.padding == PAD_ZEROS ? x : trunc(x), n, low, high);
        return;
    }
    double first = floor(x);
    if (s.mode == GRID_LINEAR) {
        t->n = 2;
        t->weight[0] = 1 - (x - first);
        t->weight[1] = x - first;
    } else {
        const double a = -0.75;
        t->n = 4;
        for (int k = 0; k < 4; k++) {
            double d = fabs(x - first + 1 - k);
            t->weight[k] =
                d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
        }
        first -= 1;
    }
    for (int32_t k = 0; k < t->n; k++)
        t->index[k] = pixel(s, first + k, n, low, high);
}

grt_status run_grid(const grt_run *r)
{
    const grid_state s = *(const grid_state *)r->state;
    const cuda_any in = cuda_any_in(r, 0), grid = cuda_any_in(r, 1), out = cuda_any_out(r, 0);
    const cuda_dims dims = cuda_dims_of(r->in[0]);
    const int32_t n = dims.rank - 2;
    const int64_t points = grt_dims_product(r->out[0]->dims, 2, r->out[0]->rank), channels = dims[1];
    const int64_t pixels = grt_dims_product(r->in[0]->dims, 2, dims.rank);
    if (grt_tensor_elements(r->in[0]) == 0 && grt_tensor_elements(r->out[0]) > 0)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "there is nothing to sample: X has no elements");
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        taps all[GRT_MAX_RANK];
        int64_t p = i % points, plane = i / points, point = plane / channels * points + p;
        for (int32_t k = 0; k < n; k++) /* the grid names the last axis first */
            find_taps(s, grid.get(point * n + n - 1 - k), dims[k + 2], &all[k]);
        double sum = 0;
        for (int32_t k = 0; k >= 0;) {
            double w = 1;
            int64_t at = 0;
            for (k = 0; k < n; k++) {
                int64_t index = all[k].index[all[k].now];
                w = index < 0 ? 0 : w * all[k].weight[all[k].now];
                at = at * dims[k + 2] + (index < 0 ? 0 : index);
            }
            if (w != 0)
                sum += w * in.get(plane * pixels + at);
            for (k = n - 1; k >= 0 && ++all[k].now == all[k].n; k--)
                all[k].now = 0;
        }
        out.put(i, sum);
    });
}

/* ---- AffineGrid ---- */

grt_status create_affine(const grt_kernel_node *node, void **out_state)
{
    bool *align;
    GRT_TRY(cuda_state(&align));
    *align = grt_attr_int(node->desc, "align_corners", 0) != 0;
    *out_state = align;
    return GRT_OK;
}

grt_status run_affine(const grt_run *r)
{
    const grt_tensor *theta = r->in[0], *y = r->out[0];
    const bool align = *(const bool *)r->state;
    const int32_t n = y->rank - 2;
    if (theta->rank != 3 || theta->dims[0] != y->dims[0] || theta->dims[1] != n || theta->dims[2] != n + 1)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "theta must be %lldx%dx%d",
                           (long long)y->dims[0], n, n + 1);
    const cuda_any matrix = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    const cuda_dims dims = cuda_dims_of(y);
    const int64_t points = grt_dims_product(y->dims, 1, n + 1);
    return cuda_each(r, grt_tensor_elements(y), [=] __device__(int64_t i) {
        int64_t p = i / n, rest = p % points, row = (p / points * n + i % n) * (n + 1);
        double sum = matrix.get(row + n);
        for (int32_t k = n - 1; k >= 0; k--) { /* coordinates start with that of the last axis */
            int64_t size = dims[k + 1], at = rest % size;
            rest /= size;
            sum += matrix.get(row + n - 1 - k) *
                   (align ? (size > 1 ? -1 + 2.0 * (double)at / (double)(size - 1) : -1)
                          : (2.0 * (double)at + 1) / (double)size - 1);
        }
        out.put(i, sum);
    });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "GridSample",
     .types = {GRT_SET_NUMBERS, GRT_SET_FLOATS},
     .create = create_grid,
     .destroy = free,
     .run = run_grid},
    {.domain = "",
     .op = "AffineGrid",
     .types = {GRT_SET_FLOATS},
     .create = create_affine,
     .destroy = free,
     .run = run_affine},
};

} // namespace
CUDA_KERNELS(grid_sample, rows);
