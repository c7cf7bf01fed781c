/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN: the inputs of all steps are multiplied at once, then the recurrence is run with R in the
 * shared memory of each block (rnn_rows.cu) or of all together (rnn_resident.cu) or, where that does not fit,
 * step by step (rnn_steps.cu). */
#include "backends/cuda/lt_matmul.h"
#include "backends/cuda/number.cuh"
#include "backends/cuda/rnn.h"
#include "backends/cuda/walk.h"
#include "src/base/checked.h"

namespace
{

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES };

enum rnn_way { RNN_BY_STEPS, RNN_RESIDENT, RNN_BY_ROWS };

/* For one combination of dims. */
struct rnn_shape {
    rnn_size size;
    grt_dtype dtype;
    cuda_lt_plan *project; /* X W^T; NULL: nothing to multiply */
    rnn_way way;
    rnn_tiles tiles;
    rnn_row_blocks rows;
    rnn_steps *steps; /* NULL: another way */
    size_t projected_bytes, other_bytes;
};

bool cuda_rnn_read_layer(const grt_op_desc *desc, rnn_layer *s, grt_text *why)
{
    s->tf32 = !strcmp(grt_attr_string(desc, "math", ""), "tf32");
    return grt_rnn_layer_read(desc, s, why);
}

bool cuda_rnn_supports(const grt_kernel_node *node, grt_text *why)
{
    rnn_layer s = {};
    return cuda_rnn_read_layer(node->desc, &s, why);
}

grt_status cuda_rnn_create(const grt_kernel_node *node, void **out_state)
{
    const cuda_blas *blas; /* fail now if cuBLASLt is missing */
    GRT_TRY(cuda_blas_get(((const cuda_device *)node->device)->libraries, &blas));
    rnn_layer *s;
    GRT_TRY(cuda_state(&s));
    cuda_rnn_read_layer(node->desc, s, NULL);
    *out_state = s;
    return GRT_OK;
}

void release_shape(void *data)
{
    rnn_shape *sh = (rnn_shape *)data;
    if (sh) {
        cuda_lt_plan_release(sh->project);
        rnn_steps_release(sh->steps);
    }
    free(sh);
}

/* Bytes of n elements in the workspace; false: too many. */
bool part_bytes(int64_t n, grt_dtype dtype, size_t *out)
{
    const size_t alignment = CUDA_LT_WORKSPACE_ALIGNMENT;
    if (n > INT64_MAX / 32)
        return false;
    *out = grt_align_up((size_t)n * grt_dtype_size(dtype), alignment);
    return true;
}

grt_status plan_projection(const grt_reshape *r, const rnn_layer *s, rnn_shape *sh)
{
    cuda_lt_matmul m = {};
    m.dtype = sh->dtype;
    m.tf32 = s->tf32;
    m.trans_b = true;
    m.m = sh->size.steps * sh->size.batch;
    m.n = s->directions * s->gates * sh->size.hidden;
    m.k = sh->size.input;
    m.batch = 1;
    m.alignment = 16;
    m.workspace_cap = (size_t)32 << 20;
    if (m.m == 0 || m.n == 0 || m.k == 0)
        return GRT_OK;
    GRT_TRY(cuda_lt_plan_create((cuda_device *)r->device, r->desc, &m, NULL, &sh->project));
    if (sh->project)
        return GRT_OK;
    return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                       "cuBLASLt has no algorithm for a %s product of %lld x %lld x %lld",
                       grt_dtype_name(sh->dtype), (long long)m.m, (long long)m.k, (long long)m.n);
}

/* Blocks that wait for no other are the faster ones while three quarters of R are in their registers. Where
 * they read more of R from shared memory in each step, blocks that share it are, if all fit on the device at
 * once. */
rnn_way way_of(const cuda_device *device, const rnn_layer *s, rnn_shape *sh)
{
    const bool rows = rnn_rows_takes(s, &sh->size, sh->dtype, &device->prop, &sh->rows);
    if (rows && sh->rows.chunks * 3 <= sh->rows.held * 4)
        return RNN_BY_ROWS;
    if (rnn_resident_takes(s, &sh->size, sh->dtype, &device->prop, &sh->tiles))
        return RNN_RESIDENT;
    return rows ? RNN_BY_ROWS : RNN_BY_STEPS;
}

grt_status plan_recurrence(const grt_reshape *r, const rnn_layer *s, rnn_shape *sh)
{
    cuda_device *device = (cuda_device *)r->device;
    const bool peepholes = s->kind == GRT_RNN_LSTM && r->n_in > PEEPHOLES && r->in[PEEPHOLES];
    if (sh->size.batch == 0 || sh->size.hidden == 0)
        return GRT_OK;
    sh->way = peepholes ? RNN_BY_STEPS : way_of(device, s, sh);
    switch (sh->way) {
    case RNN_BY_ROWS:
        CUDA_TRY(rnn_rows_prepare(s, &sh->rows, sh->dtype));
        return GRT_OK;
    case RNN_RESIDENT:
        sh->other_bytes = sh->tiles.message_bytes;
        CUDA_TRY(rnn_resident_prepare(s, &sh->size, &sh->tiles, sh->dtype));
        return GRT_OK;
    default:
        GRT_TRY(rnn_steps_create(device, r->desc, s, &sh->size, sh->dtype, &sh->steps));
        sh->other_bytes = rnn_steps_workspace(sh->steps);
        return GRT_OK;
    }
}

grt_status cuda_rnn_plan(const grt_reshape *r, rnn_shape *sh)
{
    const rnn_layer *s = (const rnn_layer *)r->state;
    const int64_t states = grt_mul_saturated(sh->size.batch, sh->size.hidden),
                  width = grt_mul_saturated(states, s->directions * s->gates);
    if (!part_bytes(grt_mul_saturated(width, sh->size.steps), sh->dtype, &sh->projected_bytes) ||
        width > INT64_MAX / 64)
        return grt_fail_memory(SIZE_MAX);
    GRT_TRY(plan_projection(r, s, sh));
    GRT_TRY(plan_recurrence(r, s, sh));
    const size_t product = sh->project ? cuda_lt_plan_workspace(sh->project) : 0;
    /* The product's own workspace is free again when the recurrence starts. */
    sh->other_bytes = sh->other_bytes > product ? sh->other_bytes : product;
    return GRT_OK;
}

grt_status cuda_rnn_reshape(grt_reshape *r)
{
    const rnn_layer *s = (const rnn_layer *)r->state;
    const grt_tensor *x = r->in[X], *w = r->in[W], *rec = r->in[R];
    const int32_t rank = s->layout == GRT_RNN_STEPS_INSIDE ? 4 : 3;
    if (x->rank != rank || w->rank != 3 || rec->rank != 3 || w->dims[0] != s->directions ||
        rec->dims[0] != s->directions || w->dims[2] != x->dims[rank - 1] ||
        rec->dims[1] != s->gates * rec->dims[2] || w->dims[1] != rec->dims[1])
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "X, W and R do not fit together");
    rnn_shape *sh;
    GRT_TRY(cuda_state(&sh));
    sh->size = {grt_rnn_places_of(s, x->dims), x->dims[rank - 1], rec->dims[2]};
    sh->dtype = x->dtype;
    const grt_status status = cuda_rnn_plan(r, sh);
    if (status != GRT_OK) {
        release_shape(sh);
        return status;
    }
    r->workspace_bytes = sh->projected_bytes + sh->other_bytes + CUDA_LT_WORKSPACE_ALIGNMENT;
    r->shape = sh;
    return GRT_OK;
}

template <class T> const T *input(const grt_run *r, int32_t i)
{
    return i < r->n_in && r->in[i] ? (const T *)r->in[i]->data : NULL;
}
template <class T> T *output(const grt_run *r, int32_t i)
{
    return i < r->n_out && r->out[i] ? (T *)r->out[i]->data : NULL;
}

template <class T> grt_status cuda_rnn_run_typed(const grt_run *r)
{
    const rnn_layer *s = (const rnn_layer *)r->state;
    const rnn_shape *sh = (const rnn_shape *)r->shape;
    cudaStream_t stream = cuda_stream(r);
    if (sh->size.batch == 0 || sh->size.hidden == 0)
        return GRT_OK;
    char *projected = (char *)grt_align_up((uintptr_t)r->workspace, CUDA_LT_WORKSPACE_ALIGNMENT);
    void *other = projected + sh->projected_bytes;
    rnn_data<T> data = {};
    data.projected = (const T *)projected;
    data.r = input<T>(r, R);
    data.bias = input<T>(r, B);
    data.lengths = input<int32_t>(r, LENGTHS);
    data.h0 = input<T>(r, INITIAL_H);
    data.c0 = s->kind == GRT_RNN_LSTM ? input<T>(r, INITIAL_C) : NULL;
    data.peepholes = s->kind == GRT_RNN_LSTM ? input<T>(r, PEEPHOLES) : NULL;
    data.y = output<T>(r, 0);
    data.last_h = output<T>(r, 1);
    data.last_c = s->kind == GRT_RNN_LSTM ? output<T>(r, 2) : NULL;
    if (sh->project) {
        const cuda_lt_args args = {1, 0, input<T>(r, X), input<T>(r, W), NULL, NULL, projected, other};
        GRT_TRY(cuda_lt_plan_run(sh->project, r->desc, &args, stream));
    } else {
        CUDA_TRY(cudaMemsetAsync(projected, 0, sh->projected_bytes, stream));
    }
    switch (sh->way) {
    case RNN_BY_ROWS:
        return rnn_rows_run(s, &sh->size, &sh->rows, sh->dtype, &data, stream);
    case RNN_RESIDENT:
        return rnn_resident_run(s, &sh->size, &sh->tiles, sh->dtype, &data, other, stream);
    default:
        return rnn_steps_run(sh->steps, r->desc, &data, other, stream);
    }
}

grt_status cuda_rnn_run(const grt_run *r)
{
    CUDA_FOR_FLOATS(r->in[X]->dtype, T, return cuda_rnn_run_typed<T>(r))
    return GRT_OK;
}

#define LAYER(of, name)                                                                             \
    {                                                                                               \
        .domain = of, .op = name,                                                                   \
        .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS | GRT_BIT(INT32)}, \
        .supports = cuda_rnn_supports, .create = cuda_rnn_create, .destroy = free,                  \
        .reshape = cuda_rnn_reshape, .release_shape = release_shape, .run = cuda_rnn_run            \
    }

const grt_kernel_row rows[] = {LAYER("", "LSTM"),        LAYER("", "GRU"),        LAYER("", "RNN"),
                               LAYER("graphrt", "LSTM"), LAYER("graphrt", "GRU"), LAYER("graphrt", "RNN")};

} // namespace
CUDA_KERNELS(rnn, rows);
