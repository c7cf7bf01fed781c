/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample and AffineGrid. */
#include "backends/cpu/move.h"

#include "src/base/element.h"

#include <string.h>

/* ---- GridSample ---- */

typedef enum grid_mode { GRID_LINEAR, GRID_NEAREST, GRID_CUBIC } grid_mode;
typedef enum grid_padding { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION } grid_padding;

typedef struct grid_state {
    grid_mode mode;
    grid_padding padding;
    bool align;
} grid_state;

static grt_status create_grid(const grt_kernel_node *node, void **out_state)
{
    const char *mode = grt_attr_string(node->desc, "mode", "linear");
    const char *padding = grt_attr_string(node->desc, "padding_mode", "zeros");
    GRT_TRY(cpu_state(sizeof(grid_state), out_state));
    grid_state *s = *out_state;
    s->mode = !strcmp(mode, "nearest") ? GRID_NEAREST : !strcmp(mode, "cubic") ? GRID_CUBIC : GRID_LINEAR;
    s->padding = !strcmp(padding, "border")       ? PAD_BORDER
                 : !strcmp(padding, "reflection") ? PAD_REFLECTION
                                                  : PAD_ZEROS;
    s->align = grt_attr_int(node->desc, "align_corners", 0) != 0;
    return GRT_OK;
}

/* Mirrored at both ends of [low, high] until it lies between them. */
static double reflect(double x, double low, double high)
{
    double range = high - low;
    if (range <= 0)
        return low;
    if (x >= low && x <= high)
        return x;
    double beyond = x < low ? low - x : x - high, turns = floor(beyond / range),
           rest = beyond - turns * range;
    bool even = fmod(turns, 2) == 0;
    return (x < low) == even ? low + rest : high - rest;
}

/* The elements of one axis that make a sample: at most 4. index -1: zero. */
typedef struct taps {
    int32_t n;
    int64_t index[4];
    double weight[4];
} taps;

static int64_t pixel(const grid_state *s, double i, int64_t n, double low, double high)
{
    if (s->padding == PAD_ZEROS)
        return i >= 0 && i < (double)n ? (int64_t)i : -1;
    if (s->padding == PAD_REFLECTION)
        i = reflect(i, low, high);
    return i <= 0 ? 0 : i >= (double)n ? n - 1 : (int64_t)i;
}

static void cubic_weights(double x, double *w)
{
    const double a = -0.75;
    for (int k = 0; k < 4; k++) {
        double d = fabs(x + 1 - k);
        w[k] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    }
}

/* `at` is the grid's coordinate, -1 to 1 over an axis of n elements. */
static void find_taps(const grid_state *s, double at, int64_t n, taps *t)
{
    double low = s->align ? 0 : -0.5, high = s->align ? (double)n - 1 : (double)n - 0.5;
    double x = s->align ? (at + 1) / 2 * (double)(n - 1) : ((at + 1) * (double)n - 1) / 2;
    x = (double)(float)x;
    x = x > -0x1p40 ? (x < 0x1p40 ? x : 0x1p40) : -0x1p40; /* NaN counts as far outside */
    if (s->mode == GRID_NEAREST)
        x = rint(x);
    if (x < low || x > high) {
        if (s->padding == PAD_BORDER)
            x = x < 0 ? 0 : x > (double)n - 1 ? (double)n - 1 : x;
        else if (s->padding == PAD_REFLECTION)
            x = reflect(x, low, high);
    }
    if (s->mode == GRID_NEAREST) {
        *t = (taps){1, {pixel(s, s->padding == PAD_ZEROS ? x : trunc(x), n, low, high)}, {1}};
        return;
    }
    double first = floor(x);
    if (s->mode == GRID_LINEAR) {
        t->n = 2;
        t->weight[0] = 1 - (x - first);
        t->weight[1] = x - first;
    } else {
        t->n = 4;
        cubic_weights(x - first, t->weight);
        first -= 1;
    }
    for (int32_t k = 0; k < t->n; k++)
        t->index[k] = pixel(s, first + k, n, low, high);
}

/* Sum over all combinations of the axes' taps, from axis `k` on. */
static double sample(const grt_tensor *in, const taps *all, const int64_t *strides, int32_t k, int32_t n,
                     int64_t offset)
{
    double sum = 0;
    for (int32_t i = 0; i < all[k].n; i++) {
        if (all[k].index[i] < 0 || all[k].weight[i] == 0)
            continue;
        int64_t at = offset + all[k].index[i] * strides[k];
        sum +=
            all[k].weight[i] * (k + 1 < n ? sample(in, all, strides, k + 1, n, at) : grt_element_get(in, at));
    }
    return sum;
}

static grt_status run_grid(const grt_run *run)
{
    const grid_state *s = run->state;
    const grt_tensor *in = run->in[0], *grid = run->in[1];
    grt_tensor *out = run->out[0];
    int32_t n = in->rank - 2;
    int64_t strides[GRT_MAX_RANK], channels = in->dims[1], points = grt_dims_product(out->dims, 2, out->rank);
    grt_dims_strides(in->dims, in->rank, strides);
    if (grt_tensor_elements(in) == 0 && grt_tensor_elements(out) > 0)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "there is nothing to sample: X has no elements");
#pragma omp parallel for num_threads(run->threads) schedule(static) if (points * channels > CPU_GRAIN / 16)
    for (int64_t p = 0; p < in->dims[0] * points; p++) {
        taps all[GRT_MAX_RANK];
        for (int32_t k = 0; k < n; k++) /* the grid names the last axis first */
            find_taps(s, grt_element_get(grid, p * n + n - 1 - k), in->dims[k + 2], &all[k]);
        for (int64_t c = 0; c < channels; c++) {
            int64_t from = p / points * strides[0] + c * strides[1];
            grt_element_put(out, (p / points * channels + c) * points + p % points,
                            sample(in, all, strides + 2, 0, n, from));
        }
    }
    return GRT_OK;
}

/* ---- AffineGrid ---- */

static grt_status create_affine(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(bool), out_state));
    *(bool *)*out_state = grt_attr_int(node->desc, "align_corners", 0) != 0;
    return GRT_OK;
}

static grt_status run_affine(const grt_run *run)
{
    const grt_tensor *theta = run->in[0];
    grt_tensor *out = run->out[0];
    bool align = *(const bool *)run->state;
    int32_t n = out->rank - 2;
    int64_t points = grt_dims_product(out->dims, 1, n + 1);
    if (theta->rank != 3 || theta->dims[0] != out->dims[0] || theta->dims[1] != n || theta->dims[2] != n + 1)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT, "theta must be %lldx%dx%d",
                           (long long)out->dims[0], n, n + 1);
#pragma omp parallel for num_threads(run->threads) schedule(static) if (out->dims[0] * points > CPU_GRAIN / 8)
    for (int64_t p = 0; p < out->dims[0] * points; p++) {
        double at[GRT_MAX_RANK];
        int64_t rest = p % points;
        for (int32_t k = n - 1; k >= 0; k--) { /* coordinates start with that of the last axis */
            int64_t size = out->dims[k + 1], i = rest % size;
            rest /= size;
            at[n - 1 - k] = align ? (size > 1 ? -1 + 2.0 * (double)i / (double)(size - 1) : -1)
                                  : (2.0 * (double)i + 1) / (double)size - 1;
        }
        for (int32_t r = 0; r < n; r++) {
            int64_t row = (p / points * n + r) * (n + 1);
            double sum = grt_element_get(theta, row + n);
            for (int32_t k = 0; k < n; k++)
                sum += grt_element_get(theta, row + k) * at[k];
            grt_element_put(out, p * n + r, sum);
        }
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "GridSample",
     .domain = "",
     .types = {GRT_SET_NUMBERS, GRT_SET_FLOATS},
     .create = create_grid,
     .destroy = free,
     .run = run_grid},
    {.op = "AffineGrid",
     .domain = "",
     .types = {GRT_SET_FLOATS, GRT_BIT(INT64)},
     .create = create_affine,
     .destroy = free,
     .run = run_affine},
};
CPU_KERNELS(grid_sample, rows);
