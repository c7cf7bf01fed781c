/* SPDX-License-Identifier: Apache-2.0 */
/* See widen.h. Constants are widened once, other tensors at each run, into the workspace. */
#include "backends/cpu/widen.h"

#include "backends/cpu/convert.h"
#include "backends/cpu/tables.h"
#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

typedef struct widen_state {
    const grt_kernel_row *row; /* of the float32 kernel */
    void *state;
    int32_t n_in;
    float **constants; /* n_in; NULL where the input is none, or has 32 bits already */
} widen_state;

/* One context's: tensors as the float32 kernel sees them, and where in the workspace they lie. */
typedef struct widen_shape {
    const widen_state *state;
    void *shape;
    int32_t n_in, n_out;
    grt_tensor *tensors; /* inputs, then outputs */
    const grt_tensor **in;
    grt_tensor **out;
    size_t *offsets; /* SIZE_MAX: not in the workspace */
} widen_shape;

enum { ALIGNMENT = 64, BLOCK = 1 << 14 };

static bool widen_is_narrow(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT16 || dtype == GRT_DTYPE_BFLOAT16;
}

static void widen_all(grt_dtype dtype, const void *from, int64_t n, float *to, int threads)
{
#pragma omp parallel for num_threads(threads) if (n > 4 * BLOCK)
    for (int64_t i = 0; i < n; i += BLOCK)
        cpu_widen(dtype, from, i, n - i < BLOCK ? n - i : BLOCK, to + i);
}

static void narrow_all(grt_dtype dtype, const float *from, int64_t n, void *to, int threads)
{
#pragma omp parallel for num_threads(threads) if (n > 4 * BLOCK)
    for (int64_t i = 0; i < n; i += BLOCK)
        cpu_narrow(dtype, from + i, n - i < BLOCK ? n - i : BLOCK, to, i, (cpu_convert_options){0});
}

static const grt_kernel_row widened_row;

/* The node with float32 for its 16-bit floats, whose content is left out; false if it has none. */
static bool widen_describe(const grt_kernel_node *node, grt_tensor *tensors, grt_kernel_node *out)
{
    bool any = false;
    memcpy(tensors, node->in, (size_t)node->n_in * sizeof *tensors);
    memcpy(tensors + node->n_in, node->out, (size_t)node->n_out * sizeof *tensors);
    for (int32_t i = 0; i < node->n_in + node->n_out; i++)
        if (widen_is_narrow(tensors[i].dtype)) {
            tensors[i].dtype = GRT_DTYPE_FLOAT;
            tensors[i].data = NULL;
            any = true;
        }
    *out = *node;
    out->in = tensors;
    out->out = tensors + node->n_in;
    out->packing = NULL;
    return any;
}

static const grt_kernel_row *find_wide(const grt_kernel_node *wide)
{
    const grt_kernel_row *row = grt_kernel_find(cpu_tables.list, cpu_tables.n, wide, NULL);
    return row && !(row->flags & (GRT_KERNEL_DYNAMIC | GRT_KERNEL_VALUES)) ? row : NULL;
}

const grt_kernel_row *cpu_widen_find(const grt_kernel_node *node)
{
    enum { FEW = 32 }; /* looking up a kernel cannot fail for lack of memory; the buffer is rarely needed */
    const size_t n = (size_t)node->n_in + (size_t)node->n_out;
    grt_kernel_node wide;
    grt_tensor few[FEW], *tensors = n <= FEW ? few : malloc(n * sizeof *tensors);
    const bool found = tensors && widen_describe(node, tensors, &wide) && find_wide(&wide);
    if (tensors != few)
        free(tensors);
    return found ? &widened_row : NULL;
}

static void widen_destroy(void *data)
{
    widen_state *state = data;
    if (!state)
        return;
    if (state->row && state->row->destroy && state->state)
        state->row->destroy(state->state);
    for (int32_t i = 0; state->constants && i < state->n_in; i++)
        grt_account_free(state->constants[i]);
    free(state->constants);
    free(state);
}

static grt_status widen_constants(const grt_kernel_node *node, widen_state *state, grt_tensor *wide)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        const grt_tensor *t = &node->in[i];
        if (!widen_is_narrow(t->dtype) || !t->data)
            continue;
        const int64_t n = grt_tensor_elements(t);
        GRT_TRY(grt_kernel_alloc(node, (size_t)n * sizeof(float), (void **)&state->constants[i]));
        widen_all(t->dtype, t->data, n, state->constants[i], node->threads);
        wide[i].data = state->constants[i];
    }
    return GRT_OK;
}

static grt_status widen_fill(const grt_kernel_node *node, widen_state *state, grt_tensor *tensors)
{
    grt_kernel_node wide;
    widen_describe(node, tensors, &wide);
    GRT_TRY(widen_constants(node, state, tensors));
    state->row = find_wide(&wide);
    if (!state->row)
        return grt_fail_op(node->desc, GRT_STATUS_UNSUPPORTED, "no kernel takes its inputs as float32");
    return state->row->create ? state->row->create(&wide, &state->state) : GRT_OK;
}

static grt_status widen_create(const grt_kernel_node *node, void **out_state)
{
    widen_state *state = calloc(1, sizeof *state);
    grt_tensor *tensors = malloc(((size_t)(node->n_in + node->n_out) + 1) * sizeof *tensors);
    grt_status status = GRT_OK;
    if (state) {
        state->n_in = node->n_in;
        state->constants = calloc((size_t)node->n_in + 1, sizeof *state->constants);
    }
    status = state && tensors && state->constants ? widen_fill(node, state, tensors) : grt_fail_memory(0);
    free(tensors);
    if (status != GRT_OK) {
        widen_destroy(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

static void widen_release_shape(void *data)
{
    widen_shape *s = data;
    if (!s)
        return;
    if (s->shape && s->state->row->release_shape)
        s->state->row->release_shape(s->shape);
    free(s->tensors);
    free(s->in);
    free(s->out);
    free(s->offsets);
    free(s);
}

/* The tensor for the float32 kernel; tensors without memory get some in the workspace. */
static bool widen_place(widen_shape *s, int32_t at, const grt_tensor *t, const float *constant, size_t *bytes)
{
    s->offsets[at] = SIZE_MAX;
    s->tensors[at] = *t;
    if (!widen_is_narrow(t->dtype))
        return true;
    s->tensors[at].dtype = GRT_DTYPE_FLOAT;
    s->tensors[at].data = (void *)constant;
    if (constant)
        return true;
    s->offsets[at] = *bytes;
    const size_t size = grt_tensor_bytes(&s->tensors[at]);
    return size < SIZE_MAX / 4 && grt_add_size(*bytes, grt_align_up(size, ALIGNMENT), bytes);
}

static grt_status place_all(const grt_reshape *r, widen_shape *s, size_t *bytes)
{
    const widen_state *state = r->state;
    bool fits = true;
    for (int32_t i = 0; i < r->n_in; i++)
        if (r->in[i]) {
            fits = fits && widen_place(s, i, r->in[i], i < state->n_in ? state->constants[i] : NULL, bytes);
            s->in[i] = &s->tensors[i];
        }
    for (int32_t i = 0; i < r->n_out; i++)
        if (r->out[i]) {
            fits = fits && widen_place(s, r->n_in + i, r->out[i], NULL, bytes);
            s->out[i] = &s->tensors[r->n_in + i];
        }
    return fits ? GRT_OK : grt_fail_memory(SIZE_MAX);
}

static grt_status widen_prepare(grt_reshape *r, widen_shape *s)
{
    size_t bytes = 0;
    GRT_TRY(place_all(r, s, &bytes));
    grt_reshape inner = *r;
    inner.state = s->state->state;
    inner.in = s->in;
    inner.out = (const grt_tensor *const *)s->out;
    inner.shape = NULL;
    inner.workspace_bytes = 0;
    if (s->state->row->reshape)
        GRT_TRY(s->state->row->reshape(&inner));
    s->shape = inner.shape;
    return grt_add_size(bytes, inner.workspace_bytes, &r->workspace_bytes) ? GRT_OK
                                                                           : grt_fail_memory(SIZE_MAX);
}

static grt_status widen_reshape(grt_reshape *r)
{
    const size_t n = (size_t)(r->n_in + r->n_out) + 1;
    widen_shape *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    s->state = r->state;
    s->n_in = r->n_in;
    s->n_out = r->n_out;
    s->tensors = calloc(n, sizeof *s->tensors);
    s->in = calloc(n, sizeof *s->in);
    s->out = calloc(n, sizeof *s->out);
    s->offsets = calloc(n, sizeof *s->offsets);
    grt_status status = s->tensors && s->in && s->out && s->offsets ? widen_prepare(r, s)
                                                                    : grt_fail_memory(n * sizeof *s->tensors);
    if (status != GRT_OK) {
        widen_release_shape(s);
        return status;
    }
    r->shape = s;
    return GRT_OK;
}

static grt_status widen_run(const grt_run *r)
{
    const widen_shape *s = r->shape;
    char *workspace = r->workspace;
    size_t used = 0;
    for (int32_t i = 0; i < s->n_in + s->n_out; i++) {
        const grt_tensor *from = i < s->n_in ? r->in[i] : r->out[i - s->n_in];
        if (!from)
            continue;
        if (s->offsets[i] == SIZE_MAX) {
            if (!widen_is_narrow(from->dtype))
                s->tensors[i].data = from->data;
            continue;
        }
        s->tensors[i].data = workspace + s->offsets[i];
        used = s->offsets[i] + grt_align_up(grt_tensor_bytes(&s->tensors[i]), ALIGNMENT);
        if (i < s->n_in)
            widen_all(from->dtype, from->data, grt_tensor_elements(from), s->tensors[i].data, r->threads);
    }
    grt_run inner = *r;
    inner.state = s->state->state;
    inner.shape = s->shape;
    inner.workspace = workspace + used;
    inner.in = s->in;
    inner.out = s->out;
    GRT_TRY(s->state->row->run(&inner));
    for (int32_t i = 0; i < s->n_out; i++)
        if (s->out[i] && s->offsets[s->n_in + i] != SIZE_MAX)
            narrow_all(r->out[i]->dtype, s->out[i]->data, grt_tensor_elements(r->out[i]), r->out[i]->data,
                       r->threads);
    return GRT_OK;
}

static const grt_kernel_row widened_row = {.domain = "",
                                           .op = "",
                                           .create = widen_create,
                                           .destroy = widen_destroy,
                                           .reshape = widen_reshape,
                                           .release_shape = widen_release_shape,
                                           .run = widen_run};
