/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::WMatMul: products by constant weights of 4 and 8 bits (weight_product.h). */
#include "backends/cuda/libraries.h"
#include "backends/cuda/local.h"
#include "backends/cuda/weight_pack.h"
#include "backends/cuda/weight_product.h"
#include "backends/cuda/weight_steps.h"

#include "src/base/checked.h"
#include "src/base/float.h"
#include "src/base/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    X = GRT_WEIGHTS_X,
    W = GRT_WEIGHTS_W,
    SCALE = GRT_WEIGHTS_SCALE,
    ZERO = GRT_WEIGHTS_ZERO,
    BIAS = GRT_WEIGHTS_BIAS,
    RESIDUAL = GRT_WEIGHTS_RESIDUAL,
    NORM = GRT_WEIGHTS_NORM
};

typedef struct wmatmul_state {
    grt_weights w;
    cuda_weight_form form;
    cuda_weight_numbers numbers;
    grt_act act;
    bool wide_scales, gated;
    float epsilon, norm_unit;                   /* see cuda_weight_product; 0: there is no constant norm */
    int zero;                                   /* of all, if there is no array */
    void *packed, *scales, *zeros, *row_scales; /* in device memory; packed NULL: the plan's own */
} wmatmul_state;

static bool one_of(const grt_kernel_node *node, int32_t i)
{
    return !grt_node_has(node, i) || node->in[i].dtype == node->in[X].dtype ||
           node->in[i].dtype == GRT_DTYPE_FLOAT;
}

/* A norm in front and a gate behind: of weights of 4 bits by 16-bit floats. The gate wants whole tiles of
 * columns in either half. */
static bool fits_steps(const grt_kernel_node *node, const grt_weights *w)
{
    const bool has_norm = grt_node_has(node, NORM), gated = grt_attr_int(node->desc, "gated", 0) != 0;
    if (!has_norm && !gated)
        return true;
    if (w->bits != 4 || w->by_row || node->in[X].dtype == GRT_DTYPE_FLOAT)
        return false;
    if (has_norm && node->in[NORM].dtype != node->in[X].dtype)
        return false;
    return !gated || (w->n % (2 * CUDA_WEIGHT_COLUMNS) == 0 && !grt_node_has(node, RESIDUAL) &&
                      !*grt_attr_string(node->desc, "activation", ""));
}

static bool supports_wmatmul(const grt_kernel_node *node, grt_text *why)
{
    const grt_dtype_set numbers =
        GRT_BIT(UINT8) | GRT_BIT(INT8) | GRT_BIT(UINT4) | GRT_BIT(INT4) | GRT_BIT(FLOAT8E4M3FN);
    grt_weights w;
    grt_act act;
    cuda_weight_form form;
    const bool fits =
        node->n_in > SCALE &&
        grt_dtype_in(node->in[X].dtype, GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16)) &&
        grt_dtype_in(node->in[W].dtype, numbers) && one_of(node, SCALE) && one_of(node, BIAS) &&
        (!grt_node_has(node, ZERO) || node->in[ZERO].dtype == node->in[W].dtype) &&
        (!grt_node_has(node, RESIDUAL) || node->in[RESIDUAL].dtype == node->in[X].dtype) &&
        grt_weights_read(node, &w) && !(w.by_row && w.zeros > 1) && cuda_weight_form_of(&w, &form) &&
        fits_steps(node, &w);
    if (!fits && why)
        grt_text_add(why, "constant weights of 4 or 8 bits are needed, with scales of the input's type or "
                          "float32 for all, for each column, for blocks along the inner dim, or for each "
                          "row of it with one zero point");
    return fits && grt_act_read(node->desc, &act, why);
}

static grt_status pack_wmatmul(const grt_kernel_node *node, int32_t i, grt_packing *out_packing,
                               void **out_data)
{
    grt_weights w;
    if (i != W || !grt_weights_read(node, &w))
        return GRT_OK;
    return cuda_weight_pack(&w, node->in[W].data, out_packing, out_data);
}

static void destroy_wmatmul(void *data)
{
    wmatmul_state *state = data;
    if (!state)
        return;
    void *const all[] = {state->packed, state->scales, state->zeros, state->row_scales};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            cudaFree(all[i]);
    free(state);
}

static grt_status put_weights(const grt_kernel_node *node, wmatmul_state *state)
{
    const grt_packing *packing = grt_node_packing(node, W);
    grt_packing own = {0};
    void *data = NULL;
    if (packing)
        return cuda_weight_is_packed(&state->w, packing)
                   ? GRT_OK
                   : grt_fail_op(node->desc, GRT_STATUS_INVALID_PLAN,
                                 "the weights are packed as '%s', which this product does not read; make "
                                 "the plan again with graphc optimize",
                                 packing->format);
    GRT_TRY(cuda_weight_pack(&state->w, node->in[W].data, &own, &data));
    const grt_status status = cuda_keep(node, data, own.bytes, &state->packed);
    free(data);
    return status;
}

static float cuda_wmatmul_scale_at(const grt_tensor *t, int64_t i)
{
    const uint16_t *narrow = t->data;
    return t->dtype == GRT_DTYPE_FLOAT16    ? grt_half_to_float(narrow[i])
           : t->dtype == GRT_DTYPE_BFLOAT16 ? grt_bfloat16_to_float(narrow[i])
                                            : ((const float *)t->data)[i];
}

/* Scales by row of k go to x, the largest as 1, so that they stay within x's type; what they were divided by
 * is the scale of all columns. */
static grt_status put_row_scales(const grt_kernel_node *node, wmatmul_state *state, float *out_largest)
{
    const int64_t k = state->w.k;
    float *rows = malloc((size_t)k * sizeof *rows), largest = 0;
    if (!rows)
        return grt_fail_memory((size_t)k * sizeof *rows);
    for (int64_t i = 0; i < k; i++)
        largest = fmaxf(largest, fabsf(cuda_wmatmul_scale_at(&node->in[SCALE], i)));
    largest = largest > 0 && isfinite(largest) ? largest : 1;
    for (int64_t i = 0; i < k; i++)
        rows[i] = cuda_wmatmul_scale_at(&node->in[SCALE], i) / largest;
    *out_largest = largest;
    const grt_status status = cuda_keep(node, rows, (size_t)k * sizeof *rows, &state->row_scales);
    free(rows);
    return status;
}

static grt_status cuda_wmatmul_put_scales(const grt_kernel_node *node, wmatmul_state *state)
{
    const grt_tensor *scale = &node->in[SCALE];
    const void *from = scale->data;
    grt_weights w = state->w;
    size_t n, bytes;
    float largest;
    state->wide_scales = scale->dtype == GRT_DTYPE_FLOAT || w.by_row;
    if (w.by_row) {
        GRT_TRY(put_row_scales(node, state, &largest));
        from = &largest;
        w.scales = 1;
    }
    const size_t size = state->wide_scales ? sizeof(float) : sizeof(uint16_t);
    if (!grt_mul_size((size_t)state->form.tiles_n * 16, (size_t)w.blocks, &n) ||
        !grt_mul_size(n, size, &bytes))
        return grt_fail_memory(SIZE_MAX);
    void *packed = calloc(1, bytes);
    if (!packed)
        return grt_fail_memory(bytes);
    cuda_weight_pack_scales(&w, from, size, packed);
    const grt_status status = cuda_keep(node, packed, bytes, &state->scales);
    free(packed);
    return status;
}

static grt_status put_zeros(const grt_kernel_node *node, wmatmul_state *state)
{
    const grt_weights *w = &state->w;
    const void *from = w->zeros ? node->in[ZERO].data : NULL;
    state->zero = from ? grt_weights_number(w, from, 0) : grt_weights_flip(w);
    if (w->zeros <= 1)
        return GRT_OK;
    const size_t bytes = (size_t)(state->form.tiles_n * 16 * w->blocks);
    uint8_t *packed = calloc(1, bytes);
    if (!packed)
        return grt_fail_memory(bytes);
    cuda_weight_pack_zeros(w, from, packed);
    const grt_status status = cuda_keep(node, packed, bytes, &state->zeros);
    free(packed);
    return status;
}

/* A power of two, by which times the norm's largest scale x grows no larger. */
static float norm_unit_of(const grt_kernel_node *node)
{
    if (!grt_node_has(node, NORM) || !node->in[NORM].data)
        return 0;
    float largest = 0;
    int exponent = 0;
    for (int64_t i = 0; i < grt_tensor_elements(&node->in[NORM]); i++)
        largest = fmaxf(largest, fabsf(cuda_wmatmul_scale_at(&node->in[NORM], i)));
    if (largest > 0 && isfinite(largest))
        frexpf(largest, &exponent);
    return ldexpf(1, -exponent);
}

static grt_status fill_state(const grt_kernel_node *node, wmatmul_state *state)
{
    if (!grt_weights_read(node, &state->w) || !cuda_weight_form_of(&state->w, &state->form) ||
        !node->in[SCALE].data)
        return grt_fail_op(node->desc, GRT_STATUS_INVALID_PLAN,
                           "the weights, scales and zero points do not fit");
    state->numbers = state->w.is_float    ? CUDA_WEIGHT_E4M3
                     : state->w.bits == 4 ? CUDA_WEIGHT_4
                                          : CUDA_WEIGHT_8;
    grt_act_read(node->desc, &state->act, NULL);
    state->gated = grt_attr_int(node->desc, "gated", 0) != 0;
    state->epsilon = grt_attr_float(node->desc, "epsilon", 1e-5f);
    state->norm_unit = norm_unit_of(node);
    if (cuda_is_described(node->device))
        return GRT_OK;
    GRT_TRY(put_weights(node, state));
    GRT_TRY(cuda_wmatmul_put_scales(node, state));
    return put_zeros(node, state);
}

static grt_status create_wmatmul(const grt_kernel_node *node, void **out_state)
{
    wmatmul_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    const grt_status status = fill_state(node, state);
    if (status != GRT_OK) {
        destroy_wmatmul(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

typedef grt_status weight_use(const cuda_weight_product *, cuda_weight_numbers, const cuda_weight_choice *,
                              cudaStream_t);

static weight_use *use_of(grt_dtype dtype, cuda_weight_spread spread)
{
    const bool half = dtype == GRT_DTYPE_FLOAT16;
    if (spread >= CUDA_WEIGHT_WIDE_64)
        return half ? cuda_weight_wide_half : cuda_weight_wide_bfloat;
    if (spread >= CUDA_WEIGHT_ROW_16 && spread <= CUDA_WEIGHT_ROW_32_MANY)
        return half ? cuda_weight_row_half : cuda_weight_row_bfloat;
    if (spread >= CUDA_WEIGHT_FEW_1)
        return half ? cuda_weight_few_half : cuda_weight_few_bfloat;
    return half                          ? cuda_weight_use_half
           : dtype == GRT_DTYPE_BFLOAT16 ? cuda_weight_use_bfloat
                                         : cuda_weight_use_float;
}

/* `any` is for an x that begins at no multiple of 16 bytes. Products with a norm or a gate bring x to the
 * workspace then. */
typedef struct wmatmul_shape {
    cuda_weight_choice choice, any;
    size_t x_at, y_at; /* in the workspace: x and y of steps that are taken apart */
} wmatmul_shape;

static bool has_whole_pieces(const wmatmul_state *state, size_t size)
{
    const grt_weights *w = &state->w;
    return (w->blocks == 1 || w->block == state->form.padded_block) && !state->row_scales && !w->by_row &&
           (size_t)w->k * size % 16 == 0;
}

/* See cuda_weight_task. Blocks of 128 rows and more share one scale in 128; other numbers than those of 4
 * bits have no kernel for blocks of 16 and 64. */
static int regular_blocks(const wmatmul_state *state, const grt_tensor *x)
{
    const grt_weights *w = &state->w;
    const int64_t block = w->block;
    if (x->dtype == GRT_DTYPE_FLOAT || !has_whole_pieces(state, grt_dtype_size(x->dtype)))
        return CUDA_WEIGHT_IRREGULAR;
    if (w->blocks == 1)
        return 0;
    if (state->wide_scales || block < 16 || (block & (block - 1)) ||
        (block < CUDA_WEIGHT_ROWS && state->form.tiles_k * CUDA_WEIGHT_ROWS != w->blocks * block))
        return CUDA_WEIGHT_IRREGULAR;
    const int blocks = block >= 128 ? 1 : (int)(128 / block);
    return state->numbers == CUDA_WEIGHT_4 || blocks == 1 || blocks == 4 ? blocks : CUDA_WEIGHT_IRREGULAR;
}

static cuda_weight_task task_of(const wmatmul_state *state, const cuda_device *device, const grt_tensor *x)
{
    const bool warpgroups = device->prop.major == 9 && device->prop.minor == 0;
    return (cuda_weight_task){.m = grt_tensor_elements(x) / state->w.k,
                              .tiles_n = state->form.tiles_n,
                              .tiles_k = state->form.tiles_k,
                              .numbers = state->numbers,
                              .wide = x->dtype == GRT_DTYPE_FLOAT,
                              .gated = state->gated,
                              .blocks = regular_blocks(state, x),
                              .overlaps = device->prop.major >= 9,
                              .encode = warpgroups ? cuda_tensor_map_find() : NULL,
                              .processors = device->prop.multiProcessorCount,
                              .shared = device->prop.sharedMemPerBlockOptin};
}

static grt_status prepare_products(const wmatmul_state *state, grt_dtype dtype, const wmatmul_shape *shape)
{
    GRT_TRY(use_of(dtype, shape->choice.spread)(NULL, state->numbers, &shape->choice, NULL));
    return use_of(dtype, shape->any.spread)(NULL, state->numbers, &shape->any, NULL);
}

static bool has_steps(const wmatmul_state *state, bool has_norm)
{
    return state->gated || has_norm;
}

/* False: too large. */
static bool plan_workspace(const wmatmul_state *state, bool has_norm, int64_t m, size_t size,
                           wmatmul_shape *shape, size_t *out_bytes)
{
    enum { PLACE = 256 };
    size_t x = 0, y = 0;
    shape->x_at = grt_align_up(shape->choice.workspace_bytes, PLACE);
    if (has_steps(state, has_norm) &&
        !(grt_mul_size((size_t)m, (size_t)state->w.k, &x) && grt_mul_size(x, size, &x)))
        return false;
    shape->y_at = shape->x_at + grt_align_up(x, PLACE);
    if (state->gated && !cuda_weight_has_gate(&shape->choice) &&
        !(grt_mul_size((size_t)m, (size_t)state->w.n, &y) && grt_mul_size(y, size, &y)))
        return false;
    *out_bytes = shape->y_at + y;
    return true;
}

static grt_status reshape_wmatmul(grt_reshape *r)
{
    const wmatmul_state *state = r->state;
    const grt_tensor *x = r->in[X];
    const int64_t inner = x->rank ? x->dims[x->rank - 1] : 0, m = grt_tensor_elements(x) / state->w.k;
    if (inner != state->w.k || m > INT32_MAX / 2)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input has %lld rows of %lld; the weights have %lld rows, and up to %d of the "
                           "input are supported",
                           (long long)m, (long long)inner, (long long)state->w.k, INT32_MAX / 2);
    const grt_tensor *residual = grt_reshape_in(r, RESIDUAL);
    if (residual && grt_tensor_elements(residual) != m * state->w.n)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the residual has %lld elements; the result has %lld",
                           (long long)grt_tensor_elements(residual), (long long)(m * state->w.n));
    wmatmul_shape *shape = calloc(1, sizeof *shape);
    if (!shape)
        return grt_fail_memory(sizeof *shape);
    r->shape = shape;
    if (m == 0)
        return GRT_OK;
    const cuda_weight_task task = task_of(state, (const cuda_device *)r->device, x);
    shape->choice = cuda_weight_choose(&task);
    shape->any = cuda_weight_choose_any(&task);
    if (!plan_workspace(state, grt_reshape_in(r, NORM), m, grt_dtype_size(x->dtype), shape,
                        &r->workspace_bytes))
        return grt_fail_memory(SIZE_MAX);
    return prepare_products(state, x->dtype, shape);
}

static void describe_blocks(const wmatmul_state *state, cuda_weight_product *p)
{
    const grt_weights *w = &state->w;
    p->block = (int)(w->by_block ? w->block : w->k);
    p->padded_block = (int)state->form.padded_block;
    p->blocks = (int)w->blocks;
    p->block_shift = p->blocks == 1 || p->padded_block % 64 == 0 ? 2 : p->padded_block % 32 == 0 ? 1 : 0;
    p->block_log =
        (p->padded_block & (p->padded_block - 1)) == 0 ? __builtin_ctz((unsigned)p->padded_block) : -1;
}

/* What no kernel does on the way: before the product, and, with p changed to leave its result in the
 * workspace, after it. */
static grt_status run_with_steps(const grt_run *r, const wmatmul_shape *shape, cuda_weight_product *p)
{
    const cuda_weight_choice *choice = &shape->choice;
    const wmatmul_state *state = r->state;
    const grt_dtype dtype = r->in[X]->dtype;
    const bool overlaps = ((const cuda_device *)r->device)->prop.major >= 9,
               aligned = ((uintptr_t)p->x & 15) == 0;
    void *const x = (char *)r->workspace + shape->x_at, *const y = (char *)r->workspace + shape->y_at;
    if (p->norm &&
        !(aligned && cuda_weight_has_norm(choice) && p->norm_unit > 0 && ((uintptr_t)p->norm & 15) == 0)) {
        GRT_TRY(cuda_weight_normalise(p, dtype, overlaps, x, r->stream));
        p->norm = NULL;
        p->x = x;
    } else if (!aligned) {
        CUDA_TRY(cudaMemcpyAsync(x, p->x, (size_t)p->m * (size_t)p->k * grt_dtype_size(dtype),
                                 cudaMemcpyDeviceToDevice, r->stream));
        p->x = x;
    }
    if (!p->gated || cuda_weight_has_gate(choice))
        return use_of(dtype, choice->spread)(p, state->numbers, choice, r->stream);
    cuda_weight_product plain = *p;
    plain.gated = false;
    plain.y = y;
    GRT_TRY(use_of(dtype, choice->spread)(&plain, state->numbers, choice, r->stream));
    return cuda_weight_gate(p, dtype, overlaps, y, r->stream);
}

static grt_status run_wmatmul(const grt_run *r)
{
    const wmatmul_state *state = r->state;
    const wmatmul_shape *shape = r->shape;
    const grt_weights *w = &state->w;
    const grt_tensor *x = r->in[X], *bias = grt_run_in(r, BIAS), *residual = grt_run_in(r, RESIDUAL),
                     *norm = grt_run_in(r, NORM);
    const bool aligned = ((uintptr_t)x->data & 15) == 0, steps = has_steps(state, norm);
    const cuda_weight_choice *choice =
        aligned || steps || shape->choice.spread < CUDA_WEIGHT_ROW_16 ? &shape->choice : &shape->any;
    cuda_weight_product p = {
        .x = x->data,
        .w = state->packed ? state->packed : r->in[W]->data,
        .scales = state->scales,
        .bias = bias ? bias->data : NULL,
        .residual = residual ? residual->data : NULL,
        .zeros = state->zeros,
        .row_scale = state->row_scales,
        .y = r->out[0]->data,
        .partial = choice->splits > 1 ? r->workspace : NULL,
        .gated = state->gated,
        .norm = norm ? norm->data : NULL,
        .epsilon = state->epsilon,
        .norm_unit = state->norm_unit,
        .m = (int)(grt_tensor_elements(x) / w->k),
        .n = (int)w->n,
        .k = (int)w->k,
        .tiles_n = (int)state->form.tiles_n,
        .tiles_k = (int)state->form.tiles_k,
        .split_tiles = choice->split_tiles,
        .zero = state->zero,
        .wide_scales = state->wide_scales,
        .in_pieces = (aligned || steps) && has_whole_pieces(state, grt_dtype_size(x->dtype)),
        .bias_dtype = (int)(bias ? bias->dtype : GRT_DTYPE_NONE),
        .act = state->act,
    };
    if (p.m == 0)
        return GRT_OK;
    describe_blocks(state, &p);
    if (steps)
        return run_with_steps(r, shape, &p);
    return use_of(x->dtype, choice->spread)(&p, state->numbers, choice, r->stream);
}

static const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "WMatMul",
     .supports = supports_wmatmul,
     .pack = pack_wmatmul,
     .create = create_wmatmul,
     .destroy = destroy_wmatmul,
     .reshape = reshape_wmatmul,
     .release_shape = free,
     .run = run_wmatmul},
};
CUDA_KERNELS(wmatmul, rows);
