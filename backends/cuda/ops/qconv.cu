/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QConv: convolutions of bytes with constant weights, scale, bias, activation and requantisation.
 * Images with channels last, in multiples of what is read at once, are read where they are; others are laid
 * out so first, with channels filled up, or, where they are few, with the taps of a line side by side.
 * Filters of one channel each have a kernel of their own. */
#include "backends/cuda/libraries.h"
#include "backends/cuda/packing.h"
#include "backends/cuda/qdepthwise.h"
#include "backends/cuda/qgemm.h"
#include "backends/cuda/qgemm_lines.h"
#include "backends/cuda/qgemm_words.h"
#include "backends/cuda/qpack.h"
#include "backends/cuda/walk.h"
#include "src/base/tensor.h"

extern "C" {
#include "backends/shared/window.h"
}

namespace
{

enum { ALIGNMENT = 256 };

struct qconv_state {
    bool last, depthwise, has_zeros, outside_is_zero;
    bool unfolds;                             /* the taps of a line are one */
    int64_t columns;                          /* taps of a line, if it does; else 1 */
    int64_t width;                            /* of a window */
    int64_t groups, filters, per_group, taps; /* per_group: input channels of a filter */
    bool has_words;                           /* of depthwise filters: see qdepthwise.h */
    void *weights;                            /* device copies; NULL on a device that is only described */
    void *finish;                             /* NULL: made in each run */
    void *sums;                               /* of each filter */
};

struct qconv_shape {
    cuda_qgemm g;
    cuda_qdepthwise d;
    cuda_qrows rows; /* how the image is laid out anew, */
    bool copied;
    cuda_qlines lines; /* or unfolded, */
    bool in_place;     /* by the product itself, */
    bool in_words;     /* whose pixels are words */
    size_t finish_at;
};

void destroy_qconv(void *data)
{
    qconv_state *state = (qconv_state *)data;
    if (!state)
        return;
    cudaFree(state->weights);
    cudaFree(state->finish);
    cudaFree(state->sums);
    free(state);
}

int32_t byte_at(const grt_tensor *t, int64_t i)
{
    return t->dtype == GRT_DTYPE_INT8 ? ((const int8_t *)t->data)[i] : ((const uint8_t *)t->data)[i];
}

/* [channels, 1, window] to [window, channels], less the zero points. */
void cuda_qconv_spread_taps(const grt_kernel_node *node, const qconv_state *state, int16_t *to)
{
    const grt_tensor *w = &node->in[QP_W],
                     *zero = grt_node_has(node, QP_W_ZERO) ? &node->in[QP_W_ZERO] : NULL;
    const bool each = zero && grt_tensor_elements(zero) > 1;
    for (int64_t c = 0; c < state->filters; c++)
        for (int64_t t = 0; t < state->taps; t++)
            to[t * state->filters + c] =
                (int16_t)(byte_at(w, c * state->taps + t) - (zero ? byte_at(zero, each ? c : 0) : 0));
}

/* Where words begin behind the numbers of depthwise filters. */
size_t depthwise_words_at(const qconv_state *state)
{
    return (sizeof(int16_t) * (size_t)(state->filters * state->taps) + CUDA_QCHUNK - 1) / CUDA_QCHUNK *
           CUDA_QCHUNK;
}

size_t depthwise_words_bytes(const qconv_state *state)
{
    return sizeof(uint32_t) *
           (size_t)(state->filters * (state->taps / state->width) * CUDA_QDEPTHWISE_WORDS(state->width));
}

/* False: a number does not fit a byte. */
bool gather_words(const qconv_state *state, const int16_t *numbers, int8_t *to)
{
    const int64_t words = CUDA_QDEPTHWISE_WORDS(state->width);
    for (int64_t t = 0; t < state->taps; t++)
        for (int64_t c = 0; c < state->filters; c++) {
            const int64_t row = t / state->width, column = t % state->width;
            const int16_t number = numbers[t * state->filters + c];
            if (number < INT8_MIN || number > INT8_MAX)
                return false;
            to[((row * words + column / 4) * state->filters + c) * 4 + column % 4] = (int8_t)number;
        }
    return true;
}

/* What a row of the product has of a tap, or of a line of taps. */
int64_t row_width(const qconv_state *state)
{
    return state->per_group * state->columns;
}

/* Filters [filter][tap][channel]. */
cuda_qrows filter_rows(const qconv_state *state)
{
    const int64_t width = row_width(state), depth = state->per_group * state->taps;
    return {{1, state->filters, state->taps / state->columns}, width, {0, depth, width, 1}};
}

size_t filter_rows_bytes(const qconv_state *state)
{
    return (size_t)(state->filters * (state->taps / state->columns) * cuda_qrow_bytes(row_width(state)));
}

/* Behind filters whose taps of a line are one: the same as words, if they fit. */
size_t filter_words_bytes(const qconv_state *state)
{
    return state->unfolds ? (size_t)state->filters * cuda_qwords_bytes(state->taps / state->columns,
                                                                       state->columns, state->per_group)
                          : 0;
}

size_t cuda_qconv_weight_bytes(const qconv_state *state)
{
    return state->depthwise ? depthwise_words_at(state) + depthwise_words_bytes(state)
                            : filter_rows_bytes(state) + filter_words_bytes(state);
}

cuda_qsource source_of(const qconv_state *state, const grt_op_desc *desc, const grt_tensor *const *in,
                       int32_t n_in)
{
    cuda_qsource s = cuda_qproduct_source(desc, in, n_in);
    s.columns = s.levels = state->filters;
    s.depth = state->taps * state->per_group;
    s.filled = state->taps / state->columns * (cuda_qrow_bytes(row_width(state)) - row_width(state));
    return s;
}

/* The source of what is known when the session is made. */
cuda_qsource source_of_node(const qconv_state *state, const grt_kernel_node *node)
{
    const grt_tensor *in[QP_INPUTS];
    for (int32_t i = 0; i < node->n_in && i < QP_INPUTS; i++)
        in[i] = grt_node_has(node, i) ? &node->in[i] : NULL;
    return source_of(state, node->desc, in, node->n_in < QP_INPUTS ? node->n_in : QP_INPUTS);
}

grt_status upload_finish(const grt_kernel_node *node, const int32_t *sums, qconv_state *state)
{
    const cuda_qsource source = source_of_node(state, node);
    const size_t bytes = cuda_qfinish_bytes(state->filters);
    if (!cuda_qproduct_is_constant(node))
        return GRT_OK;
    void *memory = calloc(1, bytes);
    if (!memory)
        return grt_fail_memory(bytes);
    cuda_qfinish_fill(&source, state->depthwise ? NULL : sums, memory);
    const grt_status status = cuda_keep(node, memory, bytes, &state->finish);
    free(memory);
    return status;
}

/* From [filter][channel][tap]. */
grt_status pack_filters(const qconv_state *state, const grt_tensor *w, void *packed, int32_t *sums)
{
    const cuda_qrows rows = filter_rows(state);
    void *turned = malloc(grt_tensor_bytes(w));
    if (!turned)
        return grt_fail_memory(grt_tensor_bytes(w));
    cuda_packing_turn(w, turned);
    cuda_qweights_pack(&rows, turned, w->dtype == GRT_DTYPE_INT8, packed, sums);
    if (filter_words_bytes(state) > 0)
        cuda_qwords_pack((const int8_t *)packed, cuda_qrow_bytes(row_width(state)), state->filters,
                         state->taps / state->columns, state->columns, state->per_group,
                         (int8_t *)packed + filter_rows_bytes(state));
    free(turned);
    return GRT_OK;
}

grt_status upload_filters(const grt_kernel_node *node, qconv_state *state)
{
    const grt_tensor *w = &node->in[QP_W];
    const size_t bytes = cuda_qconv_weight_bytes(state), sum_bytes = sizeof(int32_t) * (size_t)state->filters;
    void *packed = calloc(1, bytes);
    int32_t *sums = (int32_t *)calloc(1, sum_bytes);
    grt_status status = packed && sums ? GRT_OK : grt_fail_memory(bytes);
    if (status == GRT_OK && state->depthwise) {
        cuda_qconv_spread_taps(node, state, (int16_t *)packed);
        state->has_words =
            gather_words(state, (const int16_t *)packed, (int8_t *)packed + depthwise_words_at(state));
    } else if (status == GRT_OK)
        status = pack_filters(state, w, packed, sums);
    if (status == GRT_OK)
        status = cuda_keep(node, packed, bytes, &state->weights);
    if (status == GRT_OK)
        status = cuda_keep(node, sums, sum_bytes, &state->sums);
    if (status == GRT_OK)
        status = upload_finish(node, sums, state);
    free(packed);
    free(sums);
    return status;
}

grt_status create_qconv(const grt_kernel_node *node, void **out_state)
{
    const grt_tensor *w = &node->in[QP_W];
    qconv_state *state;
    GRT_TRY(cuda_state(&state));
    state->last = grt_channels_last(node->desc);
    state->groups = grt_attr_int(node->desc, "group", 1);
    state->filters = w->dims[0];
    state->per_group = w->dims[1];
    state->taps = grt_dims_product(w->dims, 2, w->rank);
    state->depthwise = state->per_group == 1 && state->groups == state->filters;
    const int64_t columns = state->width = w->dims[w->rank - 1];
    state->unfolds =
        !state->depthwise && state->groups == 1 && columns > 1 &&
        cuda_qrow_bytes(columns * state->per_group) < columns * cuda_qrow_bytes(state->per_group);
    state->columns = state->unfolds ? columns : 1;
    const cuda_qsource source = source_of_node(state, node);
    state->has_zeros = !state->depthwise && cuda_qproduct_has_zeros(&source);
    state->outside_is_zero =
        !grt_node_has(node, QP_X_ZERO) || (node->in[QP_X_ZERO].data && byte_at(&node->in[QP_X_ZERO], 0) == 0);
    const grt_status status = cuda_is_described(node->device) ? GRT_OK : upload_filters(node, state);
    if (status != GRT_OK) {
        destroy_qconv(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

bool supports_qconv(const grt_kernel_node *node, grt_text *why)
{
    if (!cuda_qproduct_supports(node, why))
        return false;
    const bool plain = grt_node_has(node, QP_RESIDUAL) && !grt_node_has(node, QP_Y_SCALE);
    const bool fits = !plain && !grt_node_has(node, QP_TABLE) && grt_qconv_has_filters(node) &&
                      node->in[QP_W].rank <= 4 && grt_qproduct_constants_fit(node, node->in[QP_W].dims[0]);
    if (!fits && why)
        grt_text_add(why,
                     "constant weights with one or two spatial dims are needed, with one constant zero point "
                     "and scale or one for each filter, a bias for each, no residual of a result that is not "
                     "quantised, and no table");
    return fits;
}

/* A line is an image of one row. */
template <class S> void set_window(const cpu_window *w, S *to)
{
    const int32_t skip = 2 - w->spatial;
    for (int32_t i = 0; i < 2; i++) {
        const int32_t k = i - skip;
        to->in[i] = k < 0 ? 1 : (int32_t)w->in[k];
        to->out[i] = k < 0 ? 1 : (int32_t)w->out[k];
        to->kernel[i] = k < 0 ? 1 : (int32_t)w->kernel[k];
        to->stride[i] = k < 0 ? 1 : (int32_t)w->stride[k];
        to->dilation[i] = k < 0 ? 1 : (int32_t)w->dilation[k];
        to->begin[i] = k < 0 ? 0 : (int32_t)w->begin[k];
    }
}

void cuda_qconv_describe_depthwise(const grt_reshape *r, const cpu_window *w, qconv_shape *s)
{
    const qconv_state *state = (const qconv_state *)r->state;
    cuda_qdepthwise *d = &s->d;
    const int64_t c = state->filters;
    set_window(w, d);
    d->overlaps = ((const cuda_device *)r->device)->prop.major >= 9;
    d->images = (int32_t)r->in[QP_X]->dims[0];
    d->channels = (int32_t)c;
    d->x_image = c * w->in_pixels;
    d->y_image = c * w->out_pixels;
    d->x_pixel = d->y_pixel = state->last ? c : 1;
    d->x_channel = state->last ? 1 : w->in_pixels;
    d->y_channel = state->last ? 1 : w->out_pixels;
}

/* The taps of a line become channels of one tap. */
void describe_lines(const grt_reshape *r, cuda_qgemm *g, qconv_shape *s)
{
    const qconv_state *state = (const qconv_state *)r->state;
    const int64_t c = state->per_group, pixels = (int64_t)g->in[0] * g->in[1], across = state->last ? c : 1;
    s->lines = {r->in[QP_X]->dims[0] * g->in[0],
                g->in[1],
                g->out[1],
                g->kernel[1],
                c,
                g->stride[1],
                g->dilation[1],
                g->begin[1],
                c * pixels,
                across * g->in[1],
                across,
                state->last ? 1 : pixels,
                g->in[0]};
    g->in[1] = g->out[1];
    g->kernel[1] = g->stride[1] = g->dilation[1] = 1;
    g->begin[1] = 0;
}

void cuda_qconv_describe_product(const grt_reshape *r, const cpu_window *w, qconv_shape *s)
{
    const qconv_state *state = (const qconv_state *)r->state;
    cuda_qgemm *g = &s->g;
    const int64_t channels = state->groups * state->per_group, row = cuda_qrow_bytes(row_width(state)),
                  images = r->in[QP_X]->dims[0];
    set_window(w, g);
    int64_t pixels = w->in_pixels;
    if (state->unfolds) {
        describe_lines(r, g, s);
        pixels = (int64_t)g->in[0] * g->in[1];
    }
    g->images = (int32_t)images;
    g->n = (int32_t)(state->filters / state->groups);
    g->chunks = (int32_t)(row / CUDA_QCHUNK);
    g->x_pixel = row * state->groups;
    g->x_image = g->x_pixel * pixels;
    g->x_item = row;
    g->y_image = state->filters * w->out_pixels;
    g->y_pixel = state->last ? state->filters : 1;
    g->y_channel = state->last ? 1 : w->out_pixels;
    g->y_item = g->n * g->y_channel;
    g->items = state->groups;
    g->lead = 1;
    g->dims[0] = state->groups;
    g->x_strides[0] = g->w_strides[0] = 1;
    g->sums_rows = state->has_zeros;
    cuda_qgemm_set_device(g, (const cuda_device *)r->device);
    g->is_constant = state->finish != NULL;
    g->outside_is_zero = state->outside_is_zero;
    s->in_words = filter_words_bytes(state) > 0 && cuda_qgemm_words_fits(g, &s->lines);
    s->in_place = s->in_words || (state->unfolds && cuda_qgemm_lines_fits(g, &s->lines));
    s->copied = !state->unfolds && (!state->last || row != state->per_group);
    s->rows = {{images, w->in_pixels, state->groups},
               state->per_group,
               {channels * w->in_pixels, state->last ? channels : 1,
                state->per_group * (state->last ? 1 : w->in_pixels), state->last ? 1 : w->in_pixels}};
}

grt_status size_workspace(grt_reshape *r, qconv_shape *s)
{
    const qconv_state *state = (const qconv_state *)r->state;
    size_t bytes = s->copied || (state->unfolds && !s->in_place) ? (size_t)(s->g.x_image * s->g.images) : 0;
    s->finish_at = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    r->workspace_bytes = s->finish_at + cuda_qfinish_bytes(state->filters);
    return GRT_OK;
}

grt_status describe_qconv(grt_reshape *r, qconv_shape *s)
{
    const qconv_state *state = (const qconv_state *)r->state;
    const grt_tensor *x = r->in[QP_X], *y = r->out[0], *residual = grt_reshape_in(r, QP_RESIDUAL);
    cpu_window window;
    GRT_TRY(grt_qconv_fit(r, state->last, state->per_group * state->groups, &window));
    for (int32_t i = 0; i < x->rank; i++)
        if (x->dims[i] > INT32_MAX / 2 || y->dims[i] > INT32_MAX / 2)
            return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED, "dims of more than 2^30 are not supported");
    if (!cpu_window_is_small(&window))
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                           "spatial dims, windows and padding of more than 2^29 are not supported");
    s->g.x_signed = s->d.x_signed = x->dtype == GRT_DTYPE_INT8;
    s->g.y = s->d.y = y->dtype;
    s->g.y_size = (int32_t)grt_dtype_size(y->dtype);
    s->g.sum = s->d.sum = grt_reshape_in(r, QP_SUM_SCALE) != NULL;
    s->g.residual = s->d.residual = residual ? residual->dtype : GRT_DTYPE_NONE;
    s->g.act = s->d.act = cuda_qproduct_activation(r->desc, y->dtype);
    if (state->depthwise) {
        cuda_qconv_describe_depthwise(r, &window, s);
        return GRT_OK;
    }
    cuda_qconv_describe_product(r, &window, s);
    return cuda_qgemm_fits(&s->g) ? GRT_OK
                                  : grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED, "the image is too large");
}

grt_status reshape_qconv(grt_reshape *r)
{
    qconv_shape *s;
    GRT_TRY(cuda_state(&s));
    grt_status status = describe_qconv(r, s);
    if (status == GRT_OK)
        status = size_workspace(r, s);
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    r->shape = s;
    return GRT_OK;
}

grt_status run_qconv(const grt_run *r)
{
    const qconv_state *state = (const qconv_state *)r->state;
    const qconv_shape *s = (const qconv_shape *)r->shape;
    const grt_tensor *zero = grt_run_in(r, QP_X_ZERO), *residual = grt_run_in(r, QP_RESIDUAL);
    const void *x = r->in[QP_X]->data;
    void *finish = state->finish ? state->finish : (char *)r->workspace + s->finish_at;
    if (grt_tensor_elements(r->out[0]) == 0)
        return GRT_OK;
    if (!state->finish) {
        const cuda_qsource source = source_of(state, r->desc, r->in, r->n_in);
        GRT_TRY(cuda_qfinish_enqueue(&source, state->depthwise ? NULL : (const int32_t *)state->sums, finish,
                                     cuda_stream(r)));
    }
    const cuda_qfinish f = cuda_qfinish_at(finish, state->filters);
    if (state->depthwise) {
        const char *words = (const char *)state->weights + depthwise_words_at(state);
        const cuda_qdepthwise_weights w = {(const int16_t *)state->weights,
                                           state->has_words ? (const uint32_t *)words : NULL};
        return cuda_qdepthwise_enqueue(&s->d, x, &w, residual ? residual->data : NULL, &f, r->out[0]->data,
                                       cuda_stream(r));
    }
    if (s->in_words)
        return cuda_qgemm_words_enqueue(
            &s->g, &s->lines, x, (const char *)state->weights + filter_rows_bytes(state),
            residual ? residual->data : NULL, &f, r->out[0]->data, cuda_stream(r));
    if (s->in_place)
        return cuda_qgemm_lines_enqueue(&s->g, &s->lines, x, state->weights, residual ? residual->data : NULL,
                                        &f, r->out[0]->data, cuda_stream(r));
    const void *fill = zero ? zero->data : NULL;
    if (state->unfolds)
        GRT_TRY(cuda_qlines_unfold(&s->lines, x, fill, r->workspace, cuda_stream(r)));
    else if (s->copied)
        GRT_TRY(cuda_qrows_copy(&s->rows, x, fill, r->workspace, cuda_stream(r)));
    if (state->unfolds || s->copied)
        x = r->workspace;
    if (!cuda_aligned(x, CUDA_QCHUNK))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input lies at %p; expected an address that is a multiple of %d bytes", x,
                           CUDA_QCHUNK);
    return cuda_qgemm_enqueue(&s->g, x, state->weights, residual ? residual->data : NULL, &f, r->out[0]->data,
                              cuda_stream(r));
}

const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "QConv",
     .supports = supports_qconv,
     .create = create_qconv,
     .destroy = destroy_qconv,
     .reshape = reshape_qconv,
     .release_shape = free,
     .run = run_qconv},
};

} // namespace
CUDA_KERNELS(qconv, rows);
