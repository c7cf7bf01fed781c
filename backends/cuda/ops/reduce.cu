/* SPDX-License-Identifier: Apache-2.0 */
/* The Reduce family. Axes are collapsed into those that are kept and those that are reduced. One thread folds
 * an output where neighbouring threads then read neighbours or there is little to fold, else a block does;
 * few long reductions are cut into parts that a second kernel folds. */
#include "backends/cuda/columns.h"
#include "backends/cuda/fold.cuh"

namespace
{

struct shape {
    fold_job first, second;          /* second: folds the parts */
    bool cut, by_thread, by_columns; /* cut and by thread: a thread has a part */
    cuda_columns columns;
    int32_t block;
};

/* ---- kernels ---- */

template <typename IN, typename A, typename OUT>
__global__ void __launch_bounds__(CUDA_BLOCK)
    fold_thread_kernel(const __grid_constant__ fold_job j, const IN *in, OUT *out)
{
    CUDA_ITEMS (i, j.kept.total) {
        int64_t at[2];
        A shift = A(0);
        cuda_walk_at(j.kept, i, at);
        if (j.how == FOLD_EXP)
            shift =
                fold_finite_or_zero(fold_some<IN, A>(j, in + at[1], 0, j.reduced.total, 1, FOLD_MAX, shift));
        out[at[0]] = fold_finished<A, OUT>(
            j, fold_some<IN, A>(j, in + at[1], 0, j.reduced.total, 1, j.how, shift), shift);
    }
}

/* A thread folds a part of an output's elements; threads that are neighbours have neighbouring outputs. The
 * parts of an output follow each other. */
template <typename IN, typename A>
__global__ void __launch_bounds__(CUDA_BLOCK)
    fold_parts_kernel(const __grid_constant__ fold_job j, const IN *in, A *parts)
{
    CUDA_ITEMS (i, j.kept.total * j.parts) {
        const int64_t part = i / j.kept.total, item = i - part * j.kept.total, begin = part * j.per_part,
                      end = begin + j.per_part < j.reduced.total ? begin + j.per_part : j.reduced.total;
        int64_t at[2];
        A shift = A(0);
        cuda_walk_at(j.kept, item, at);
        if (j.how == FOLD_EXP)
            shift = fold_finite_or_zero(fold_some<IN, A>(j, in + at[1], begin, end, 1, FOLD_MAX, shift));
        parts[at[0] * j.parts + part] =
            fold_finished<A, A>(j, fold_some<IN, A>(j, in + at[1], begin, end, 1, j.how, shift), shift);
    }
}

template <typename IN, typename A, typename OUT>
__global__ void __launch_bounds__(512)
    fold_block_kernel(const __grid_constant__ fold_job j, const IN *in, OUT *out)
{
    __shared__ A shared[16];
    for (int64_t i = blockIdx.x; i < j.kept.total * j.parts; i += gridDim.x) {
        int64_t item = j.parts == 1 ? i : i / j.parts, part = i - item * j.parts, at[2];
        int64_t begin = part * j.per_part,
                end = begin + j.per_part < j.reduced.total ? begin + j.per_part : j.reduced.total;
        A shift = A(0);
        cuda_walk_at(j.kept, item, at);
        if (j.how == FOLD_EXP)
            shift = fold_finite_or_zero(fold_block<A>(
                FOLD_MAX, fold_share<IN, A>(j, in + at[1], begin, end, FOLD_MAX, shift), shared));
        A acc = fold_block<A>(j.how, fold_share<IN, A>(j, in + at[1], begin, end, j.how, shift), shared);
        if (threadIdx.x == 0)
            out[at[0] * j.parts + part] = fold_finished<A, OUT>(j, acc, shift);
    }
}

/* ---- kernel life ---- */

/* False if the kernel for columns has no such fold. */
bool columns_fold(const fold_job *j, cuda_columns *c)
{
    switch (j->how) {
    case FOLD_SUM:
        c->fold = CUDA_COLUMNS_SUM;
        break;
    case FOLD_ABS:
        c->fold = CUDA_COLUMNS_ABSOLUTE;
        break;
    case FOLD_SQUARE:
        c->fold = CUDA_COLUMNS_SQUARE;
        break;
    case FOLD_MAX:
        c->fold = CUDA_COLUMNS_MAX;
        break;
    case FOLD_MIN:
        c->fold = CUDA_COLUMNS_MIN;
        break;
    default:
        return false;
    }
    c->divisor = j->end == FINISH_MEAN ? (float)j->count : 1.0f;
    c->root = j->end == FINISH_SQRT;
    return j->end != FINISH_LOG;
}

/* Folds over one stretch of axes with others behind it. */
bool plan_columns(const grt_reshape *r, const fold_job *j, cuda_columns *c)
{
    const int32_t kept = j->kept.rank;
    if (!columns_fold(j, c) || j->reduced.rank != 1 || kept < 1 || kept > 2 ||
        j->kept.strides[1][kept - 1] != 1)
        return false;
    c->wide = r->out[0]->dtype == GRT_DTYPE_FLOAT;
    c->rows = j->reduced.total;
    c->columns = j->kept.dims[kept - 1];
    c->outer = kept == 2 ? j->kept.dims[0] : 1;
    return j->reduced.strides[0][0] == c->columns &&
           (kept == 1 || j->kept.strides[1][0] == c->rows * c->columns) &&
           cuda_columns_plan(c, r->in[0]->dtype, ((const cuda_device *)r->device)->prop.multiProcessorCount);
}

enum { FEW = 32, FEW_OUTPUTS = 1024, MANY_OUTPUTS = 32768, PART = 16384, MAX_PARTS = 512, ALIGNED = 16 };

/* Threads that fold n elements. With few outputs a thread has four: a warp alone would wait for each of its
 * reads. */
int32_t threads_of(int64_t n, int64_t outputs)
{
    if (outputs > FEW_OUTPUTS)
        return n <= 1024 ? 32 : n <= 8192 ? 128 : 512;
    const int64_t warps = (n + 127) / 128;
    return (int32_t)(warps < 16 ? 32 * warps : 512);
}

/* Parts for threads where neighbouring outputs have neighbouring elements; 1: not worth it. */
int64_t parts_of_threads(const fold_job *j)
{
    enum { WIDE = 16, LEAST = 16, THREADS = 1 << 17 };
    const int32_t last = j->kept.rank - 1;
    if (j->kept.total <= 0 || j->kept.strides[1][last] != 1 || j->kept.dims[last] < WIDE)
        return 1;
    int64_t parts = THREADS / j->kept.total, most = j->reduced.total / LEAST;
    parts = parts < most ? parts : most;
    return parts < MAX_PARTS ? parts : MAX_PARTS;
}

bool folds_in_double(const fold_job *j, grt_dtype dtype)
{
    return j->how == FOLD_EXP && !grt_dtype_in(dtype, GRT_SET_FLOATS);
}

/* The walks of a job over `data`; returns whether the last axis with more than one element is kept. */
bool walk_reduction(fold_job *j, const grt_tensor *data, const bool *is_reduced)
{
    int64_t strides[GRT_MAX_RANK], out_stride[GRT_MAX_RANK], n_out = 1;
    bool inner_kept = false;
    grt_dims_strides(data->dims, data->rank, strides);
    for (int32_t k = data->rank - 1; k >= 0; k--) {
        out_stride[k] = n_out;
        n_out *= is_reduced[k] ? 1 : data->dims[k];
    }
    cuda_walk_begin(&j->kept);
    cuda_walk_begin(&j->reduced);
    for (int32_t k = 0; k < data->rank; k++) {
        const int64_t both[2] = {out_stride[k], strides[k]};
        if (is_reduced[k])
            cuda_walk_axis(&j->reduced, data->dims[k], &strides[k]);
        else
            cuda_walk_axis(&j->kept, data->dims[k], both);
        if (data->dims[k] != 1)
            inner_kept = !is_reduced[k];
    }
    cuda_walk_end(&j->kept);
    cuda_walk_end(&j->reduced);
    return inner_kept;
}

/* The first job makes `parts` of each output, the second folds these. */
void cut_in_parts(shape *sh, int64_t parts)
{
    fold_job *j = &sh->first, *k = &sh->second;
    const int64_t n = j->reduced.total;
    *k = *j;
    j->parts = parts < MAX_PARTS ? parts : MAX_PARTS;
    j->per_part = ((n + j->parts - 1) / j->parts + ALIGNED - 1) / ALIGNED * ALIGNED;
    /* The logarithms of parts are folded as what is logarithmed is. */
    j->end = j->how == FOLD_EXP ? FINISH_LOG : FINISH_NONE;
    j->truth = false;
    const int64_t both[2] = {1, j->parts}, one = 1;
    cuda_walk_begin(&k->kept);
    cuda_walk_axis(&k->kept, j->kept.total, both);
    cuda_walk_end(&k->kept);
    cuda_walk_begin(&k->reduced);
    cuda_walk_axis(&k->reduced, j->parts, &one);
    cuda_walk_end(&k->reduced);
    k->per_part = j->parts;
    k->how = k->how == FOLD_ABS || k->how == FOLD_SQUARE ? FOLD_SUM : k->how;
}

/* Which kernels fold, once the first job is known. */
void choose_kernels(const grt_reshape *r, shape *sh, bool inner_kept)
{
    const fold_job *j = &sh->first;
    const int64_t n = j->reduced.total;
    sh->by_columns = n > FEW && plan_columns(r, j, &sh->columns);
    sh->by_thread = n <= FEW || (inner_kept && (j->kept.total >= MANY_OUTPUTS || n <= 8 * FEW));
    sh->block = threads_of(n, j->kept.total);
    sh->cut = !sh->by_thread && j->kept.total < 128 && n > 2 * PART;
    int64_t parts = (n + PART - 1) / PART;
    if (inner_kept && n > FEW && !sh->by_columns && parts_of_threads(j) > 1) {
        parts = parts_of_threads(j);
        sh->cut = sh->by_thread = true;
    }
    if (sh->cut)
        cut_in_parts(sh, parts);
}

grt_status cuda_reduce_reshape(grt_reshape *r)
{
    const grt_reduce *s = (const grt_reduce *)r->state;
    const grt_tensor *data = r->in[0], *axes = r->n_in > 1 ? r->in[1] : NULL;
    bool is_reduced[GRT_MAX_RANK];
    if (axes && grt_tensor_elements(axes) > 0 && !axes->data)
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED, "input axes must be known before the run");
    GRT_TRY(grt_reduce_axes(r->desc, data, axes, r->out[0], s->empty_is_none, is_reduced));
    shape *sh;
    GRT_TRY(cuda_state(&sh));
    fold_job *j = &sh->first;
    const bool inner_kept = walk_reduction(j, data, is_reduced);
    j->how = s->fold;
    j->end = s->finish;
    j->truth = data->dtype == GRT_DTYPE_BOOL;
    j->parts = 1;
    j->per_part = j->reduced.total;
    j->count = (double)j->reduced.total;
    choose_kernels(r, sh, inner_kept);
    if (sh->cut)
        r->workspace_bytes = (size_t)(j->kept.total * j->parts) * sizeof(double);
    if (sh->by_columns && cuda_columns_workspace(&sh->columns) > r->workspace_bytes)
        r->workspace_bytes = cuda_columns_workspace(&sh->columns);
    r->shape = sh;
    return GRT_OK;
}

template <typename S, typename A, typename O> grt_status fold_to(const grt_run *r)
{
    const shape *sh = (const shape *)r->shape;
    const fold_job *j = &sh->first;
    const S *in = (const S *)r->in[0]->data;
    O *out = (O *)r->out[0]->data;
    cudaStream_t stream = cuda_stream(r);
    if (sh->by_thread && !sh->cut) {
        fold_thread_kernel<S, A, O><<<cuda_grid(j->kept.total), CUDA_BLOCK, 0, stream>>>(*j, in, out);
    } else if (sh->cut) {
        A *parts = (A *)r->workspace;
        if (sh->by_thread)
            fold_parts_kernel<S, A>
                <<<cuda_grid(j->kept.total * j->parts), CUDA_BLOCK, 0, stream>>>(*j, in, parts);
        else
            fold_block_kernel<S, A, A>
                <<<cuda_grid(j->kept.total * j->parts, 1), (unsigned)sh->block, 0, stream>>>(*j, in, parts);
        CUDA_LAUNCHED();
        fold_block_kernel<A, A, O>
            <<<cuda_grid(j->kept.total, 1), sh->by_thread ? 32 : 128, 0, stream>>>(sh->second, parts, out);
    } else {
        fold_block_kernel<S, A, O>
            <<<cuda_grid(j->kept.total, 1), (unsigned)sh->block, 0, stream>>>(*j, in, out);
    }
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <typename S, typename A> grt_status fold_as(const grt_run *r)
{
    return fold_to<S, A, S>(r);
}

/* 16-bit floats; the result may be float32. */
template <typename S> grt_status fold_narrow(const grt_run *r)
{
    return r->out[0]->dtype == GRT_DTYPE_FLOAT ? fold_to<S, float, float>(r) : fold_to<S, float, S>(r);
}

template <typename S> grt_status fold_int(const grt_run *r)
{
    typedef typename std::conditional<std::is_signed<S>::value, int64_t, uint64_t>::type A;
    const shape *sh = (const shape *)r->shape;
    return folds_in_double(&sh->first, r->in[0]->dtype) ? fold_as<S, double>(r) : fold_as<S, A>(r);
}

grt_status cuda_reduce_run(const grt_run *r)
{
    const shape *sh = (const shape *)r->shape;
    if (sh->first.kept.total <= 0)
        return GRT_OK;
    if (sh->by_columns && cuda_columns_run(&sh->columns, r->in[0]->dtype, r->in[0]->data, r->out[0]->data,
                                           r->workspace, cuda_stream(r))) {
        CUDA_LAUNCHED();
        return GRT_OK;
    }
    switch (r->in[0]->dtype) {
    case GRT_DTYPE_FLOAT:
        return fold_as<float, float>(r);
    case GRT_DTYPE_DOUBLE:
        return fold_as<double, double>(r);
    case GRT_DTYPE_FLOAT16:
        return fold_narrow<__half>(r);
    case GRT_DTYPE_BFLOAT16:
        return fold_narrow<__nv_bfloat16>(r);
    case GRT_DTYPE_INT8:
        return fold_int<int8_t>(r);
    case GRT_DTYPE_INT16:
        return fold_int<int16_t>(r);
    case GRT_DTYPE_INT32:
        return fold_int<int32_t>(r);
    case GRT_DTYPE_INT64:
        return fold_int<int64_t>(r);
    case GRT_DTYPE_UINT16:
        return fold_int<uint16_t>(r);
    case GRT_DTYPE_UINT32:
        return fold_int<uint32_t>(r);
    case GRT_DTYPE_UINT64:
        return fold_int<uint64_t>(r);
    default: /* UINT8, BOOL */
        return fold_int<uint8_t>(r);
    }
}

#define REDUCE_OF(space, name, set)                                                                          \
    {                                                                                                        \
        .domain = space, .op = name, .types = {set, CUDA_INDEX}, .flags = GRT_KERNEL_READS(1),               \
        .create = grt_reduce_create, .destroy = free, .reshape = cuda_reduce_reshape, .release_shape = free, \
        .run = cuda_reduce_run                                                                               \
    }
#define REDUCE(name, set) REDUCE_OF("", name, set),
/* The result is float32. */
#define WIDE(name) REDUCE_OF("graphrt", name, GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16)),

const grt_kernel_row rows[] = {REDUCE_ROWS(REDUCE) REDUCE_WIDE_ROWS(WIDE)};

} // namespace
CUDA_KERNELS(reduce, rows);
