/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QConv: convolutions of 8-bit images with constant weights, scale, bias, activation and
 * requantisation. Windows are unfolded, a strip at a time, into rows of a product, or go through Winograd's
 * transform; where each channel has a filter of its own they are summed directly. Images with channels second
 * are turned first. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/qgemm_kernel.h"
#include "backends/cpu/qproduct.h"
#include "backends/cpu/qwinograd.h"
#include "backends/cpu/threads.h"
#include "backends/cpu/workspace.h"

#include <stdlib.h>
#include <string.h>

enum { QCONV_PLANE = 2 }; /* spatial dims that Winograd's transform is for */

typedef struct qconv_state {
    bool last, depthwise;
    int64_t groups, filters, per_group, taps; /* filters in all; input channels of each */
    grt_qgemm_b b;                            /* of one group; where there are `sums`: for columns only */
    char *packed;                             /* the groups' matrices; NULL: depthwise */
    bool transformed;                         /* packed is of: */
    cpu_qwinograd winograd;
    const grt_qgemm_kernel *kernel; /* of a depthwise one */
    char *by_tap;                   /* per block of channels, less the zero points */
    int64_t block_bytes;
    int32_t *sums; /* of each filter less its zero point, where the weights are packed so; or NULL */
} qconv_state;

typedef struct qconv_shape {
    cpu_window w;
    int64_t batch, channels;
    size_t columns_at, x_at, y_at, outside_at, room_at, room_bytes, scratch_at;
    bool x_copied, y_copied;
} qconv_shape;

/* ---- create ---- */

static void qconv_destroy(void *data)
{
    qconv_state *state = data;
    if (!state)
        return;
    grt_account_free(state->packed);
    grt_account_free(state->by_tap);
    grt_account_free(state->sums);
    free(state);
}

static int32_t element(const grt_tensor *t, int64_t i)
{
    return t->dtype == GRT_DTYPE_INT8 ? ((const int8_t *)t->data)[i] : ((const uint8_t *)t->data)[i];
}

static int32_t weight_zero(const grt_kernel_node *node, int64_t filter)
{
    if (!grt_node_has(node, QP_W_ZERO))
        return 0;
    const grt_tensor *zero = &node->in[QP_W_ZERO];
    return element(zero, grt_tensor_elements(zero) == 1 ? 0 : filter);
}

static int32_t tap_weight(const grt_kernel_node *node, const qconv_state *state, int64_t c, int64_t t)
{
    return element(&node->in[QP_W], c * state->taps + t) - weight_zero(node, c);
}

/* The best kernel that holds the weights: less a zero point, they may need 9 bits. */
static const grt_qgemm_kernel *kernel_for_taps(const grt_kernel_node *node, const qconv_state *state)
{
    bool bytes = true;
    for (int64_t c = 0; c < state->filters; c++)
        for (int64_t t = 0; t < state->taps; t++) {
            const int32_t v = tap_weight(node, state, c, t);
            bytes = bytes && v >= INT8_MIN && v <= INT8_MAX;
        }
    const grt_qgemm_kernel *const *kernels = grt_qgemm_kernels();
    while (!bytes && !(*kernels)->wide) /* the last one is */
        kernels++;
    return *kernels;
}

static grt_status alloc_sums(const grt_kernel_node *node, int64_t n, qconv_state *state)
{
    const size_t bytes = (size_t)n * sizeof *state->sums;
    GRT_TRY(grt_kernel_alloc(node, bytes, (void **)&state->sums));
    memset(state->sums, 0, bytes);
    return GRT_OK;
}

static grt_status spread_taps(const grt_kernel_node *node, qconv_state *state)
{
    const int64_t n = grt_qgemm_padded(state->filters);
    state->kernel = kernel_for_taps(node, state);
    const grt_tensor *w = &node->in[QP_W];
    const int64_t columns = w->dims[w->rank - 1], lines = state->taps / columns;
    const int64_t per_column = grt_qgemm_line_groups(state->kernel, lines), groups = columns * per_column;
    const int64_t padded = per_column * grt_qgemm_group(state->kernel);
    size_t bytes;
    if (!grt_mul_size((size_t)n, (size_t)groups * GRT_QGEMM_TAPS_BYTES / GRT_QGEMM_WIDTH, &bytes))
        return grt_fail_memory(SIZE_MAX);
    state->block_bytes = groups * GRT_QGEMM_TAPS_BYTES;
    GRT_TRY(grt_kernel_alloc(node, bytes, (void **)&state->by_tap));
    memset(state->by_tap, 0, bytes);
    GRT_TRY(alloc_sums(node, n, state));
    for (int64_t c = 0; c < state->filters; c++)
        for (int64_t t = 0; t < state->taps; t++) {
            const int16_t v = (int16_t)tap_weight(node, state, c, t);
            char *to =
                state->by_tap + c / GRT_QGEMM_WIDTH * state->block_bytes +
                grt_qgemm_tap_at(state->kernel, t % columns * padded + t / columns, c % GRT_QGEMM_WIDTH);
            memcpy(to, &v, state->kernel->wide ? sizeof v : 1); /* little endian: the low byte is first */
            state->sums[c] += v;
        }
    state->b = (grt_qgemm_b){.k = state->taps, .n = state->filters, .is_signed = true};
    return GRT_OK;
}

/* Of all images of a result; -1 while that is not known. */
static int64_t qconv_pixels(const grt_tensor *y, bool last)
{
    const int32_t channels = last ? y->rank - 1 : 1;
    int64_t pixels = 1;
    for (int32_t i = 0; i < y->rank; i++) {
        if (y->dims[i] < 0)
            return -1;
        if (i != channels)
            pixels = grt_mul_saturated(pixels, y->dims[i]);
    }
    return pixels;
}

/* Filters [filter][channel][tap] become rows of B in the order [tap][channel]. */
static grt_status pack_groups(const grt_kernel_node *node, qconv_state *state)
{
    const int64_t n = state->filters / state->groups, k = state->taps * state->per_group;
    size_t bytes;
    const int64_t rows = state->groups == 1 ? qconv_pixels(&node->out[0], state->last) : -1;
    if (!grt_qgemm_b_init_constant(NULL, rows, k, n, node->in[QP_W].dtype == GRT_DTYPE_INT8, &state->b) ||
        !grt_mul_size((size_t)state->b.bytes, (size_t)state->groups, &bytes) || bytes > SIZE_MAX / 2)
        return grt_fail_memory(SIZE_MAX);
    GRT_TRY(grt_kernel_alloc(node, bytes, (void **)&state->packed));
    uint8_t *turned;
    GRT_TRY(grt_account_alloc(NULL, GRT_ACCOUNT_KERNELS, (size_t)(k * n), (void **)&turned));
    for (int64_t g = 0; g < state->groups; g++) {
        const uint8_t *from = (const uint8_t *)node->in[QP_W].data + g * n * k;
        for (int64_t f = 0; f < n; f++)
            for (int64_t c = 0; c < state->per_group; c++)
                for (int64_t t = 0; t < state->taps; t++)
                    turned[f * k + t * state->per_group + c] =
                        from[(f * state->per_group + c) * state->taps + t];
        grt_qgemm_pack(&state->b, turned, 1, k, state->packed + g * state->b.bytes);
    }
    grt_account_free(turned);
    return GRT_OK;
}

/* The sizes of a plane, each -1 while they are not known. */
static void qconv_plane(const grt_tensor *t, bool last, int64_t *out)
{
    const int32_t at = last ? 1 : 2;
    for (int32_t i = 0; i < QCONV_PLANE; i++)
        out[i] = t->rank == QCONV_PLANE + 2 ? t->dims[at + i] : -1;
}

static bool find_winograd(const grt_kernel_node *node, qconv_state *state)
{
    const grt_tensor *w = &node->in[QP_W];
    int64_t in[QCONV_PLANE], out[QCONV_PLANE];
    cpu_window window;
    if (state->groups != 1 || w->rank != QCONV_PLANE + 2)
        return false;
    qconv_plane(&node->in[QP_X], state->last, in);
    qconv_plane(&node->out[0], state->last, out);
    cpu_window_read(node->desc, QCONV_PLANE, in, out, w->dims + 2, false, &window);
    return cpu_qwinograd_fits(NULL, &window, state->per_group, state->filters, &state->winograd);
}

/* *out_packed: false where sums might not fit. */
static grt_status pack_transformed(const grt_kernel_node *node, qconv_state *state, bool *out_packed)
{
    const grt_tensor *w = &node->in[QP_W],
                     *zero = grt_node_has(node, QP_W_ZERO) ? &node->in[QP_W_ZERO] : NULL;
    const cpu_qwinograd_weights weights = {.data = w->data,
                                           .is_signed = w->dtype == GRT_DTYPE_INT8,
                                           .zero = zero ? zero->data : NULL,
                                           .zero_each = zero && grt_tensor_elements(zero) > 1};
    size_t bytes;
    if (!cpu_qwinograd_packed_bytes(&state->winograd, &bytes))
        return grt_fail_memory(SIZE_MAX);
    GRT_TRY(grt_kernel_alloc(node, bytes, (void **)&state->packed));
    GRT_TRY(alloc_sums(node, grt_qgemm_padded(state->filters), state));
    *out_packed = cpu_qwinograd_pack(&state->winograd, &weights, state->packed, state->sums);
    if (*out_packed) {
        state->b = (grt_qgemm_b){.k = state->taps * state->per_group, .n = state->filters, .is_signed = true};
        return GRT_OK;
    }
    grt_account_free(state->packed);
    grt_account_free(state->sums);
    state->packed = NULL;
    state->sums = NULL;
    return GRT_OK;
}

static grt_status qconv_pack(const grt_kernel_node *node, qconv_state *state)
{
    if (state->depthwise)
        return spread_taps(node, state);
    if (find_winograd(node, state))
        GRT_TRY(pack_transformed(node, state, &state->transformed));
    return state->transformed ? GRT_OK : pack_groups(node, state);
}

static grt_status qconv_create(const grt_kernel_node *node, void **out_state)
{
    const grt_tensor *w = &node->in[QP_W];
    qconv_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    state->last = grt_channels_last(node->desc);
    state->groups = grt_attr_int(node->desc, "group", 1);
    state->filters = w->dims[0];
    state->per_group = w->dims[1];
    state->taps = grt_dims_product(w->dims, 2, w->rank);
    state->depthwise = state->per_group == 1 && state->groups == state->filters;
    const grt_status status = qconv_pack(node, state);
    if (status != GRT_OK) {
        qconv_destroy(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

static bool qconv_supports(const grt_kernel_node *node, grt_text *why)
{
    if (!cpu_qproduct_supports(node, why))
        return false;
    const bool constant = grt_qconv_has_filters(node);
    if (!constant && why)
        grt_text_add(why, "constant weights are needed, with one constant zero point or one for each filter");
    return constant;
}

/* ---- reshape ---- */

/* The product of one group. */
static grt_qgemm qconv_describe(const qconv_state *state, const qconv_shape *s, bool is_signed)
{
    grt_qgemm g = {.m = s->batch * s->w.out_pixels,
                   .a_signed = is_signed,
                   .fill = cpu_qwindow_rows,
                   .b = &state->b,
                   .ldy = state->filters};
    static const uint8_t any;
    if (state->groups == 1 && cpu_qwindow_is_plain(&s->w)) {
        g.a = &any;
        g.lda = s->channels;
    }
    return g;
}

/* The longest strip of a depthwise convolution. */
static grt_qgemm_strip describe_strip(const cpu_window *w)
{
    const int32_t last = w->spatial - 1;
    return (grt_qgemm_strip){.count = w->out[last] < GRT_QGEMM_PIXELS ? w->out[last] : GRT_QGEMM_PIXELS,
                             .lines = w->taps / w->kernel[last],
                             .columns = w->kernel[last],
                             .step = w->stride[last],
                             .gap = w->dilation[last]};
}

/* What a thread needs for a strip: where its columns begin, copies of those whose last block of channels ends
 * behind the image, and interleaved columns. */
typedef struct strip_room {
    const uint8_t **columns, **whole;
    uint8_t *copies;
    char *mixed;
} strip_room;

static bool lay_out_room(const qconv_state *state, const grt_qgemm_strip *strip, char *memory,
                         strip_room *out, size_t *out_bytes)
{
    cpu_layout layout = {0};
    const int64_t taps = grt_qgemm_strip_columns(strip) * strip->lines;
    const size_t columns = cpu_layout_add(&layout, taps, 2 * sizeof(const uint8_t *)),
                 copies = cpu_layout_add(&layout, taps, GRT_QGEMM_WIDTH),
                 mixed = cpu_layout_add(&layout, grt_qgemm_mixed_bytes(state->kernel, strip), 1);
    *out_bytes = layout.bytes;
    if (memory)
        *out = (strip_room){.columns = (const uint8_t **)(void *)(memory + columns),
                            .whole = (const uint8_t **)(void *)(memory + columns) + taps,
                            .copies = (uint8_t *)memory + copies,
                            .mixed = memory + mixed};
    return !layout.overflow;
}

static grt_status qconv_size_workspace(grt_reshape *r, qconv_shape *s)
{
    const qconv_state *state = r->state;
    const bool is_signed = r->in[QP_X]->dtype == GRT_DTYPE_INT8;
    const grt_qgemm g = qconv_describe(state, s, is_signed);
    size_t scratch = 0;
    cpu_layout layout = {0};
    s->x_copied = !state->last || (state->depthwise && is_signed);
    s->y_copied = !state->last;
    if (state->depthwise) {
        const grt_qgemm_strip strip = describe_strip(&s->w);
        layout.overflow = !lay_out_room(state, &strip, NULL, NULL, &s->room_bytes);
    } else if (state->transformed) {
        layout.overflow =
            !cpu_qwinograd_scratch_bytes(&state->winograd, &s->w, s->batch, r->threads, &scratch);
    } else {
        layout.overflow = !grt_qgemm_scratch_bytes(&g, r->threads, &scratch);
    }
    s->columns_at = cpu_layout_add(&layout, state->depthwise ? 1 : state->groups,
                                   (size_t)cpu_qproduct_columns_bytes(state->b.n));
    s->x_at = cpu_layout_add(&layout, s->x_copied ? grt_tensor_elements(r->in[QP_X]) : 0, 1);
    s->y_at = cpu_layout_add(&layout, s->y_copied ? grt_tensor_elements(r->out[0]) : 0,
                             2 * grt_dtype_size(r->out[0]->dtype)); /* the residual's turned copy, too */
    s->outside_at = cpu_layout_add(&layout, state->depthwise ? s->channels + GRT_QGEMM_WIDTH : 0, 1);
    s->room_at = cpu_layout_add(&layout, state->depthwise ? r->threads : 0, s->room_bytes);
    s->scratch_at = cpu_layout_add(&layout, 1, scratch);
    r->workspace_bytes = layout.bytes;
    return layout.overflow ? grt_fail_memory(SIZE_MAX) : GRT_OK;
}

static grt_status qconv_reshape(grt_reshape *r)
{
    qconv_shape *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    const qconv_state *state = r->state;
    grt_status status = grt_qconv_fit(r, state->last, state->per_group * state->groups, &s->w);
    s->batch = r->in[QP_X]->dims[0];
    s->channels = state->per_group * state->groups;
    if (status == GRT_OK)
        status = qconv_size_workspace(r, s);
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    r->shape = s;
    return GRT_OK;
}

/* ---- turning ---- */

/* rows x cols elements become cols x rows. */
static void turn(const char *from, int64_t rows, int64_t cols, size_t size, char *to)
{
    enum { BLOCK = 32 };
    for (int64_t i = 0; i < rows; i += BLOCK)
        for (int64_t j = 0; j < cols; j += BLOCK)
            for (int64_t y = j; y < cols && y < j + BLOCK; y++)
                for (int64_t x = i; x < rows && x < i + BLOCK; x++)
                    memcpy(to + (size_t)(y * rows + x) * size, from + (size_t)(x * cols + y) * size, size);
}

static void turn_images(const void *from, int64_t batch, int64_t rows, int64_t cols, size_t size, void *to,
                        int threads)
{
#pragma omp parallel for num_threads(threads) if (batch * rows * cols > CPU_GRAIN)
    for (int64_t i = 0; i < batch; i++)
        turn((const char *)from + (size_t)(i * rows * cols) * size, rows, cols, size,
             (char *)to + (size_t)(i * rows * cols) * size);
}

/* ---- run ---- */

typedef struct job {
    const grt_run *run;
    const qconv_shape *s;
    cpu_qwindow window;
    grt_qgemm_finish finish;
    char *y;
} job;

static void qconv_run_group(const job *w, int64_t group)
{
    const qconv_state *state = w->run->state;
    const qconv_shape *s = w->s;
    const int64_t n = state->b.n, size = (int64_t)grt_dtype_size(w->run->out[0]->dtype);
    cpu_qwindow window = w->window;
    grt_qgemm_params params;
    char *memory = cpu_workspace_at(w->run->workspace, s->columns_at);
    const grt_qgemm_columns columns = cpu_qproduct_columns(memory + group * cpu_qproduct_columns_bytes(n), n);
    grt_qgemm g = qconv_describe(state, s, window.flip != 0);
    window.first = group * state->per_group;
    window.used = state->per_group;
    g.a = g.a ? window.x : NULL;
    g.user = &window;
    g.packed = state->packed + group * state->b.bytes;
    g.finish = w->finish;
    g.y = w->y + group * n * size;
    if (g.finish.residual)
        g.finish.residual = (const char *)g.finish.residual + group * n;
    cpu_qproduct_params(w->run, group * n, &params);
    grt_qgemm_set_columns(&state->b, g.packed, &params, &columns);
    grt_qgemm_use_columns(&state->b, &params, &columns, &g.finish);
    grt_qgemm_run(&g, cpu_workspace_at(w->run->workspace, s->scratch_at), w->run->threads);
}

/* Columns of which a whole block of channels from `channel` on can be read: copies replace the others. */
static const uint8_t *const *whole_columns(const job *w, int64_t taps, int64_t channel, int64_t n,
                                           const strip_room *room)
{
    const uint8_t *end = w->window.x + w->window.images * w->s->w.in_pixels * w->s->channels;
    const uint8_t *outside = cpu_workspace_at(w->run->workspace, w->s->outside_at);
    if (n == GRT_QGEMM_WIDTH)
        return room->columns;
    for (int64_t i = 0; i < taps; i++) {
        const uint8_t *from = room->columns[i];
        room->whole[i] = from;
        if (from == outside || end - (from + channel) >= GRT_QGEMM_WIDTH)
            continue;
        uint8_t *copy = room->copies + i * GRT_QGEMM_WIDTH;
        memcpy(copy, from + channel, (size_t)n);
        memset(copy + n, 0, (size_t)(GRT_QGEMM_WIDTH - n));
        room->whole[i] = copy - channel;
    }
    return room->whole;
}

/* Output pixels from `pixel` on, all in one line, whose filters are a channel each. */
static void qconv_run_strip(const job *w, const grt_qgemm_strip *strip, int64_t pixel, const strip_room *room)
{
    const qconv_state *state = w->run->state;
    const int64_t n = state->filters, size = (int64_t)grt_dtype_size(w->run->out[0]->dtype);
    const int64_t columns = grt_qgemm_strip_columns(strip);
    const uint8_t *residual = w->finish.residual;
    _Alignas(64) int32_t sums[GRT_QGEMM_PIXELS * GRT_QGEMM_WIDTH];
    cpu_qwindow_columns(&w->window, pixel, columns, cpu_workspace_at(w->run->workspace, w->s->outside_at),
                        room->columns);
    for (int64_t c = 0; c < n; c += GRT_QGEMM_WIDTH) {
        const int64_t now = n - c < GRT_QGEMM_WIDTH ? n - c : GRT_QGEMM_WIDTH;
        const uint8_t *const *x = whole_columns(w, columns * strip->lines, c, now, room);
        state->kernel->windows(strip, x, c, state->by_tap + c / GRT_QGEMM_WIDTH * state->block_bytes,
                               room->mixed, sums);
        state->kernel->finish(&w->finish, c, (int)strip->count, now, sums, NULL,
                              residual ? residual + pixel * n + c : NULL, w->y + (pixel * n + c) * size, n);
    }
}

/* The epilogue's columns where filters are less their zero points. */
static void use_sums(job *w)
{
    const qconv_state *state = w->run->state;
    const grt_qgemm_columns columns =
        cpu_qproduct_columns(cpu_workspace_at(w->run->workspace, w->s->columns_at), state->b.n);
    grt_qgemm_params params;
    cpu_qproduct_params(w->run, 0, &params);
    params.b_zero = NULL;
    params.b_zero_each = false;
    grt_qgemm_set_columns(&state->b, state->sums, &params, &columns);
    grt_qgemm_use_columns(&state->b, &params, &columns, &w->finish);
}

static void run_transformed(job *w)
{
    const qconv_state *state = w->run->state;
    w->window.used = w->s->channels;
    use_sums(w);
    cpu_qwinograd_run(&state->winograd, &w->window, state->packed, &w->finish, w->y,
                      cpu_workspace_at(w->run->workspace, w->s->scratch_at), w->run->threads);
}

static void run_depthwise(job *w)
{
    const qconv_state *state = w->run->state;
    const qconv_shape *s = w->s;
    const int64_t pixels = s->batch * s->w.out_pixels;
    use_sums(w);
    memset(cpu_workspace_at(w->run->workspace, s->outside_at), w->window.zero,
           (size_t)s->channels + GRT_QGEMM_WIDTH);
    const grt_qgemm_strip longest = describe_strip(&s->w);
    const int64_t width = s->w.out[s->w.spatial - 1],
                  per_line = (width + GRT_QGEMM_PIXELS - 1) / GRT_QGEMM_PIXELS,
                  strips = pixels / width * per_line;
#pragma omp parallel for num_threads(w->run->threads) if (pixels * state->filters * state->taps > \
                                                          8 * CPU_GRAIN)
    for (int64_t i = 0; i < strips; i++) {
        const int64_t from = i % per_line * GRT_QGEMM_PIXELS;
        grt_qgemm_strip strip = longest;
        strip_room room;
        size_t unused;
        lay_out_room(state, &longest,
                     cpu_workspace_at(w->run->workspace, s->room_at + (size_t)cpu_thread() * s->room_bytes),
                     &room, &unused);
        strip.count = width - from < strip.count ? width - from : strip.count;
        qconv_run_strip(w, &strip, i / per_line * width + from, &room);
    }
}

/* The input with channels last, and unsigned where the loops want it so. */
static void qconv_bind_input(job *w)
{
    const qconv_state *state = w->run->state;
    const qconv_shape *s = w->s;
    const grt_tensor *x = w->run->in[QP_X];
    uint8_t *copy = cpu_workspace_at(w->run->workspace, s->x_at);
    const int64_t n = grt_tensor_elements(x);
    w->window.x = s->x_copied ? copy : x->data;
    if (!state->last)
        turn_images(x->data, s->batch, s->channels, s->w.in_pixels, 1, copy, w->run->threads);
    else if (s->x_copied)
        memcpy(copy, x->data, (size_t)n);
    if (!state->depthwise || !w->window.flip)
        return;
    for (int64_t i = 0; i < n; i++)
        copy[i] ^= w->window.flip;
    w->window.flip = 0;
}

static grt_status qconv_run(const grt_run *r)
{
    const qconv_state *state = r->state;
    const qconv_shape *s = r->shape;
    grt_tensor *y = r->out[0];
    const size_t size = grt_dtype_size(y->dtype);
    const grt_tensor *zero = grt_run_in(r, QP_X_ZERO);
    job w = {.run = r, .s = s, .window = {.w = &s->w, .images = s->batch, .channels = s->channels}};
    if (grt_tensor_elements(y) == 0)
        return GRT_OK;
    w.window.flip = r->in[QP_X]->dtype == GRT_DTYPE_INT8 ? 0x80 : 0;
    w.window.zero = (zero ? *(const uint8_t *)zero->data : 0) ^ w.window.flip;
    qconv_bind_input(&w);
    cpu_qproduct_finish(r, state->filters, &w.finish);
    w.y = s->y_copied ? cpu_workspace_at(r->workspace, s->y_at) : y->data;
    if (s->y_copied && w.finish.residual) {
        char *turned = w.y + (size_t)grt_tensor_elements(y) * size;
        turn_images(w.finish.residual, s->batch, state->filters, s->w.out_pixels, 1, turned, r->threads);
        w.finish.residual = turned;
    }
    if (state->depthwise)
        run_depthwise(&w);
    else if (state->transformed)
        run_transformed(&w);
    else
        for (int64_t group = 0; group < state->groups; group++)
            qconv_run_group(&w, group);
    if (s->y_copied)
        turn_images(w.y, s->batch, s->w.out_pixels, state->filters, size, y->data, r->threads);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "QConv",
     .supports = qconv_supports,
     .create = qconv_create,
     .destroy = qconv_destroy,
     .reshape = qconv_reshape,
     .release_shape = free,
     .run = qconv_run},
};
CPU_KERNELS(qconv, rows);
