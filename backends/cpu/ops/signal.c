/* SPDX-License-Identifier: Apache-2.0 */
/* DFT, STFT, window functions, MelWeightMatrix. */
#include "backends/cpu/cpu.h"
#include "src/base/element.h"
#include "backends/cpu/fft.h"
#include "backends/cpu/threads.h"
#include "backends/shared/cosine_window.h"
#include "backends/shared/mel.h"
#include "backends/shared/spectral.h"

#include <stdlib.h>
#include <string.h>

/* A transform and room for each thread's signal and scratch. Made by reshape where the length is a constant;
 * a length that is only known at run time has it made there. */
typedef struct signal_plan {
    cpu_fft *fft;
    int64_t n, per_thread; /* doubles */
    double *room;
} signal_plan;

static void plan_release(void *pointer)
{
    signal_plan *plan = pointer;
    if (!plan)
        return;
    cpu_fft_release(plan->fft);
    grt_account_free(plan->room);
    free(plan);
}

static grt_status plan_create(const grt_op_desc *desc, int64_t n, int32_t threads, grt_account *account,
                              void **out_plan)
{
    signal_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return grt_fail_memory(sizeof *plan);
    grt_status status = cpu_fft_create(n, account, &plan->fft);
    if (status == GRT_OK) {
        plan->n = n;
        plan->per_thread = 2 * n + cpu_fft_scratch(plan->fft);
        status = grt_account_alloc(account, GRT_ACCOUNT_KERNELS,
                                   (size_t)plan->per_thread * (size_t)threads * sizeof *plan->room,
                                   (void **)&plan->room);
    }
    if (status != GRT_OK) {
        plan_release(plan);
        return grt_fail_context(status, "%s node '%s'", desc->op, desc->name);
    }
    cpu_fft_fill(plan->fft);
    *out_plan = plan;
    return GRT_OK;
}

/* A number that is a constant of the graph. */
typedef struct known {
    bool known;
    int64_t value;
} known;

static known signal_constant(const grt_kernel_node *node, int32_t i)
{
    const grt_tensor *t = grt_node_has(node, i) ? &node->in[i] : NULL;
    bool found = t && t->data && grt_tensor_elements(t) == 1;
    return (known){found, found ? grt_tensor_int(t, 0) : 0};
}

static const grt_tensor *signal_optional(const grt_tensor *const *in, int32_t n_in, int32_t i)
{
    return i < n_in ? in[i] : NULL;
}

typedef struct dft_state {
    bool inverse, onesided;
    known length, axis;
} dft_state;

static grt_status dft_create(const grt_kernel_node *node, void **out_state)
{
    dft_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    state->inverse = grt_attr_int(node->desc, "inverse", 0) != 0;
    state->onesided = grt_attr_int(node->desc, "onesided", 0) != 0;
    state->length = signal_constant(node, 1);
    state->axis = signal_constant(node, 2);
    *out_state = state;
    return GRT_OK;
}

/* Length of the transform of an axis of `size`. */
static int64_t dft_length(const dft_state *state, int64_t size)
{
    return state->inverse && state->onesided ? 2 * (size - 1) : size;
}

static grt_status dft_reshape(grt_reshape *reshape)
{
    const dft_state *state = reshape->state;
    const grt_tensor *x = reshape->in[0];
    bool has_axis = signal_optional(reshape->in, reshape->n_in, 2),
         has_length = signal_optional(reshape->in, reshape->n_in, 1);
    int64_t axis = grt_axis(has_axis ? state->axis.value : -2, x->rank);
    if ((has_axis && !state->axis.known) || (has_length && !state->length.known) || axis < 0)
        return GRT_OK; /* run will see */
    int64_t n = has_length ? state->length.value : dft_length(state, x->dims[axis]);
    return n < 1 ? GRT_OK
                 : plan_create(reshape->desc, n, reshape->threads, reshape->account, &reshape->shape);
}

/* Only the axis of the transform and the components may differ. */
static bool dft_keeps_others(const grt_tensor *x, const grt_tensor *y, int64_t axis)
{
    bool same = y->rank == x->rank && y->dims[y->rank - 1] >= 1 && y->dims[y->rank - 1] <= 2;
    for (int32_t i = 0; same && i < x->rank - 1; i++)
        same = i == axis || x->dims[i] == y->dims[i];
    return same;
}

typedef struct dft_layout {
    int64_t size, inner, components, out_size, out_components; /* of the axis; numbers behind it */
} dft_layout;

/* One signal: numbers `at`, at + inner, ... of the input. */
static void dft_signal(const grt_run *run, const signal_plan *plan, const dft_layout *l, int64_t outer,
                       int64_t at)
{
    const dft_state *state = run->state;
    const grt_tensor *x = run->in[0];
    double *room = plan->room + cpu_thread() * plan->per_thread;
    int64_t n = plan->n, given = l->size < n ? l->size : n;
    for (int64_t k = 0; k < n; k++) {
        int64_t from = ((outer * l->size + k) * l->inner + at) * l->components;
        room[2 * k] = k < given ? grt_element_get(x, from) : 0;
        room[2 * k + 1] = k < given && l->components == 2 ? grt_element_get(x, from + 1) : 0;
    }
    /* The other half of a spectrum is the conjugate mirror image; bins that mirror onto themselves use the
     * real part. */
    if (state->inverse && state->onesided) {
        room[1] = 0;
        for (int64_t k = n / 2 + 1; k < n; k++) {
            room[2 * k] = room[2 * (n - k)];
            room[2 * k + 1] = -room[2 * (n - k) + 1];
        }
        if (n % 2 == 0)
            room[n + 1] = 0;
    }
    cpu_fft_run(plan->fft, room, state->inverse, room + 2 * n);
    for (int64_t k = 0; k < l->out_size; k++)
        for (int64_t c = 0; c < l->out_components; c++)
            grt_element_put(run->out[0], ((outer * l->out_size + k) * l->inner + at) * l->out_components + c,
                            room[2 * k + c]);
}

static grt_status dft_run(const grt_run *run)
{
    const dft_state *state = run->state;
    const grt_tensor *x = run->in[0], *y = run->out[0];
    const grt_tensor *length = signal_optional(run->in, run->n_in, 1),
                     *axis_input = signal_optional(run->in, run->n_in, 2);
    int64_t axis = grt_axis(axis_input ? grt_tensor_int(axis_input, 0) : -2, x->rank);
    if (x->rank < 2 || axis < 0 || axis == x->rank - 1 || x->dims[x->rank - 1] < 1 ||
        x->dims[x->rank - 1] > 2)
        return grt_fail_op(
            run->desc, GRT_STATUS_INVALID_ARGUMENT,
            "the input must end in an axis of 1 or 2 components, and the transform be along another one");
    if (!dft_keeps_others(x, y, axis))
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the output's dims are not those of a transform along axis %lld", (long long)axis);
    dft_layout l = {.size = x->dims[axis],
                    .inner = grt_dims_product(x->dims, (int32_t)axis + 1, x->rank - 1),
                    .components = x->dims[x->rank - 1],
                    .out_size = y->dims[axis],
                    .out_components = y->dims[x->rank - 1]};
    int64_t n = length ? grt_tensor_int(length, 0) : dft_length(state, l.size);
    int64_t signals = grt_dims_product(x->dims, 0, (int32_t)axis) * l.inner;
    int64_t expected = state->onesided && !state->inverse ? n / 2 + 1 : n;
    if (n < 1 || expected != l.out_size)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "a transform of length %lld does not fit the output's %lld", (long long)n,
                           (long long)l.out_size);
    void *own = NULL;
    if (!run->shape)
        GRT_TRY(plan_create(run->desc, n, run->threads, NULL, &own));
    const signal_plan *plan = own ? own : run->shape;
#pragma omp parallel for num_threads(run->threads) if (signals * n > CPU_GRAIN / 8)
    for (int64_t i = 0; i < signals; i++)
        dft_signal(run, plan, &l, i / l.inner, i % l.inner);
    plan_release(own);
    return GRT_OK;
}

static grt_status spectral_reshape(grt_reshape *reshape)
{
    int64_t lines, filters;
    GRT_TRY(grt_spectral_lines(reshape, &lines, &filters));
    return plan_create(reshape->desc, grt_attr_int(reshape->desc, "length", 2), reshape->threads,
                       reshape->account, &reshape->shape);
}

/* One line. w: its filter's first number. */
static void spectral_line(const grt_run *run, const signal_plan *plan, int64_t line, int64_t w)
{
    const grt_tensor *x = run->in[0];
    const int64_t n = plan->n, size = x->dims[x->rank - 2], given = size < n ? size : n;
    double *room = plan->room + cpu_thread() * plan->per_thread;
    for (int64_t k = 0; k < n; k++) {
        room[2 * k] = k < given ? grt_element_get(x, line * size + k) : 0;
        room[2 * k + 1] = 0;
    }
    cpu_fft_run(plan->fft, room, false, room + 2 * n);
    for (int64_t k = 0; k < n; k++) {
        const bool mirror = k > n / 2, real = k == 0 || 2 * k == n;
        const int64_t at = w + 2 * (mirror ? n - k : k);
        const double a = room[2 * k], b = room[2 * k + 1], c = grt_element_get(run->in[1], at),
                     d = real ? 0 : (mirror ? -1 : 1) * grt_element_get(run->in[1], at + 1);
        room[2 * k] = a * c - b * d;
        room[2 * k + 1] = a * d + b * c;
    }
    cpu_fft_run(plan->fft, room, true, room + 2 * n);
    for (int64_t k = 0; k < n; k++)
        grt_element_put(run->out[0], line * n + k, room[2 * k]);
}

static grt_status spectral_run(const grt_run *run)
{
    const signal_plan *plan = run->shape;
    const int64_t lines = grt_tensor_elements(run->out[0]) / plan->n, numbers = 2 * (plan->n / 2 + 1),
                  filters = grt_tensor_elements(run->in[1]) / numbers;
#pragma omp parallel for num_threads(run->threads) if (lines * plan->n > CPU_GRAIN / 8)
    for (int64_t i = 0; i < lines; i++)
        spectral_line(run, plan, i, i % filters * numbers);
    return GRT_OK;
}

typedef struct stft_state {
    bool onesided;
    known length;
} stft_state;

static grt_status stft_create(const grt_kernel_node *node, void **out_state)
{
    stft_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    state->onesided = grt_attr_int(node->desc, "onesided", 1) != 0;
    state->length = signal_constant(node, 3);
    *out_state = state;
    return GRT_OK;
}

static grt_status stft_reshape(grt_reshape *reshape)
{
    const stft_state *state = reshape->state;
    const grt_tensor *window = signal_optional(reshape->in, reshape->n_in, 2), *x = reshape->in[0];
    bool has_length = signal_optional(reshape->in, reshape->n_in, 3);
    if (x->rank < 2 || (has_length && !state->length.known) || (window && window->rank != 1))
        return GRT_OK; /* run will see */
    int64_t n = has_length ? state->length.value : window ? window->dims[0] : x->dims[1];
    return n < 1 ? GRT_OK
                 : plan_create(reshape->desc, n, reshape->threads, reshape->account, &reshape->shape);
}

static void stft_frame(const grt_run *run, const signal_plan *plan, int64_t row, int64_t start, int64_t out)
{
    const grt_tensor *x = run->in[0], *window = signal_optional(run->in, run->n_in, 2);
    double *room = plan->room + cpu_thread() * plan->per_thread;
    int64_t n = plan->n, components = x->rank == 3 ? x->dims[2] : 1, bins = run->out[0]->dims[2];
    for (int64_t k = 0; k < n; k++) {
        int64_t from = (row * x->dims[1] + start + k) * components;
        double weight = window ? grt_element_get(window, k) : 1;
        room[2 * k] = weight * grt_element_get(x, from);
        room[2 * k + 1] = components == 2 ? weight * grt_element_get(x, from + 1) : 0;
    }
    cpu_fft_run(plan->fft, room, false, room + 2 * n);
    for (int64_t k = 0; k < 2 * bins; k++)
        grt_element_put(run->out[0], out * 2 * bins + k, room[k]);
}

static grt_status stft_run(const grt_run *run)
{
    const stft_state *state = run->state;
    const grt_tensor *x = run->in[0], *y = run->out[0], *window = signal_optional(run->in, run->n_in, 2);
    const grt_tensor *length = signal_optional(run->in, run->n_in, 3);
    bool shaped = (x->rank == 2 || (x->rank == 3 && (x->dims[2] == 1 || x->dims[2] == 2))) &&
                  (!window || window->rank == 1);
    int64_t step = grt_tensor_int(run->in[1], 0);
    int64_t n = !shaped ? 0 : length ? grt_tensor_int(length, 0) : window ? window->dims[0] : x->dims[1];
    int64_t bins = state->onesided ? n / 2 + 1 : n;
    if (!shaped || step < 1 || n < 1 || n > x->dims[1] || (window && window->dims[0] != n) ||
        y->dims[1] != (x->dims[1] - n) / step + 1 || y->dims[2] != bins)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "frames of length %lld, %lld apart, do not fit the signal (batch x length x 1 or "
                           "2) or the window",
                           (long long)n, (long long)step);
    void *own = NULL;
    if (!run->shape)
        GRT_TRY(plan_create(run->desc, n, run->threads, NULL, &own));
    const signal_plan *plan = own ? own : run->shape;
    int64_t frames = y->dims[1], all = x->dims[0] * frames;
#pragma omp parallel for num_threads(run->threads) if (all * n > CPU_GRAIN / 8)
    for (int64_t i = 0; i < all; i++)
        stft_frame(run, plan, i / frames, i % frames * step, i);
    plan_release(own);
    return GRT_OK;
}

static grt_status window_run(const grt_run *run)
{
    const grt_cosine_window *state = run->state;
    int64_t size = run->out[0]->dims[0], n = state->periodic ? size : size - 1;
    for (int64_t k = 0; k < size; k++) {
        double angle = n ? 2 * M_PI * (double)k / (double)n : M_PI; /* a window of one element is 1 */
        grt_element_put(run->out[0], k,
                        state->a[0] - state->a[1] * cos(angle) + state->a[2] * cos(2 * angle));
    }
    return GRT_OK;
}

/* One triangle, from `low` over its peak at `centre` to `high`, in a column of zeros. */
static void mel_triangle(grt_tensor *out, int64_t column, int64_t low, int64_t centre, int64_t high)
{
    const int64_t columns = out->dims[1], rows = out->dims[0];
    for (int64_t row = low; row < centre; row++)
        grt_element_put(out, row * columns + column, (double)(row - low) / (double)(centre - low));
    for (int64_t row = centre; row < rows && (row == centre || row < high); row++)
        grt_element_put(out, row * columns + column,
                        row == centre ? 1.0 : (double)(high - row) / (double)(high - centre));
}

static grt_status mel_run(const grt_run *run)
{
    grt_tensor *out = run->out[0];
    grt_mel mel;
    GRT_TRY(grt_mel_read(run->desc, run->in, out->dims[1], &mel));
    if (grt_tensor_elements(out) > 0)
        memset(out->data, 0, grt_tensor_bytes(out));
    for (int64_t i = 0; i < out->dims[1]; i++) {
        int64_t bins[3];
        grt_mel_bins(&mel, i, out->dims[0], bins);
        mel_triangle(out, i, bins[0], bins[1], bins[2]);
    }
    return GRT_OK;
}

#define LENGTHS (GRT_BIT(INT32) | GRT_BIT(INT64))
#define WINDOW(name)                                                                                       \
    {                                                                                                      \
        .domain = "", .op = name, .types = {LENGTHS}, .create = grt_cosine_window_create, .destroy = free, \
        .run = window_run                                                                                  \
    }
static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "DFT",
     .types = {GRT_SET_FLOATS, LENGTHS, LENGTHS},
     .create = dft_create,
     .destroy = free,
     .reshape = dft_reshape,
     .release_shape = plan_release,
     .run = dft_run},
    {.domain = "",
     .op = "STFT",
     .types = {GRT_SET_FLOATS, LENGTHS, GRT_SET_FLOATS, LENGTHS},
     .create = stft_create,
     .destroy = free,
     .reshape = stft_reshape,
     .release_shape = plan_release,
     .run = stft_run},
    {.domain = "graphrt",
     .op = "SpectralConv",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS},
     .reshape = spectral_reshape,
     .release_shape = plan_release,
     .run = spectral_run},
    WINDOW("BlackmanWindow"),
    WINDOW("HammingWindow"),
    WINDOW("HannWindow"),
    {.domain = "",
     .op = "MelWeightMatrix",
     .types = {LENGTHS, LENGTHS, LENGTHS, GRT_SET_FLOATS},
     .run = mel_run},
};
CPU_KERNELS(signal, rows);
