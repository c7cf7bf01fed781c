/* SPDX-License-Identifier: Apache-2.0 */
/* The Reduce family. Axes are collapsed into those that are kept and those that are reduced. One thread folds
 * an output where neighbouring threads then read neighbours or there is little to fold, else a block does;
 * few long reductions are cut into parts that a second kernel folds. 16-bit and 32-bit floats are folded in
 * float32, integers wrap in 64 bits. */
#include "backends/cuda/columns.h"
#include "backends/cuda/number.cuh"
#include "backends/cuda/pointwise_eval.h"
#include "backends/cuda/walk.h"
#include "backends/shared/reduce.h"

namespace
{

/* The fold over the elements, and the function applied to its result. */
enum fold { FOLD_SUM, FOLD_ABS, FOLD_SQUARE, FOLD_PROD, FOLD_MAX, FOLD_MIN, FOLD_EXP };
enum finish { FINISH_NONE, FINISH_MEAN, FINISH_SQRT, FINISH_LOG };

const struct {
    const char *op;
    fold how;
    finish end;
} kinds[] = {
    {"ReduceSum", FOLD_SUM, FINISH_NONE},   {"ReduceMean", FOLD_SUM, FINISH_MEAN},
    {"ReduceProd", FOLD_PROD, FINISH_NONE}, {"ReduceMax", FOLD_MAX, FINISH_NONE},
    {"ReduceMin", FOLD_MIN, FINISH_NONE},   {"ReduceL1", FOLD_ABS, FINISH_NONE},
    {"ReduceL2", FOLD_SQUARE, FINISH_SQRT}, {"ReduceSumSquare", FOLD_SQUARE, FINISH_NONE},
    {"ReduceLogSum", FOLD_SUM, FINISH_LOG}, {"ReduceLogSumExp", FOLD_EXP, FINISH_LOG},
};

struct state {
    fold how;
    finish end;
    bool empty_is_none; /* without axes nothing is reduced */
};

/* in[kept.strides[1] + reduced.strides[0]] */
struct job {
    cuda_walk<2, GRT_MAX_RANK> kept; /* operand 0 is the output */
    cuda_walk<1, GRT_MAX_RANK> reduced;
    fold how;
    finish end;
    bool truth;
    int64_t parts,
        per_part; /* every output is folded in `parts` pieces, which follow each other in the output */
    double count; /* for means */
};

struct shape {
    job first, second;               /* second: folds the parts */
    bool cut, by_thread, by_columns; /* cut and by thread: a thread has a part */
    cuda_columns columns;
    int32_t block;
};

/* ---- folding ---- */

/* Result of an empty set: lowest or greatest number of the type for maxima and minima. */
template <typename IN, typename A> __device__ __forceinline__ A start(fold how)
{
    if (how == FOLD_PROD)
        return A(1);
    if (how != FOLD_MAX && how != FOLD_MIN)
        return A(0);
    if constexpr (std::is_floating_point<A>::value) {
        return how == FOLD_MAX ? (A)-INFINITY : (A)INFINITY;
    } else {
        IN low = std::is_signed<IN>::value ? (IN)(UINT64_C(1) << (8 * sizeof(IN) - 1)) : IN(0);
        return how == FOLD_MAX ? (A)low : (A)(IN)~low;
    }
}

/* Two results of the same fold. A NaN wins every comparison. */
template <typename A> __device__ __forceinline__ A cuda_reduce_join(fold how, A a, A b)
{
    switch (how) {
    case FOLD_PROD:
        return pw_vocabulary<A>::mul(a, b);
    case FOLD_MAX:
        return b > a || b != b ? b : a;
    case FOLD_MIN:
        return b < a || b != b ? b : a;
    default:
        return pw_vocabulary<A>::add(a, b);
    }
}

template <typename A> __device__ __forceinline__ A cuda_reduce_take(fold how, A acc, A x, A shift)
{
    switch (how) {
    case FOLD_ABS:
        x = pw_vocabulary<A>::absolute(x);
        break;
    case FOLD_SQUARE:
        x = pw_vocabulary<A>::mul(x, x);
        break;
    case FOLD_EXP:
        if constexpr (std::is_floating_point<A>::value)
            x = m_exp(x - shift);
        break;
    default:
        break;
    }
    return cuda_reduce_join<A>(how, acc, x);
}

/* What a finished number is stored as. Reals that become integers are cut off. */
template <typename OUT> __device__ __forceinline__ OUT cut_off(double v)
{
    return (OUT)(v >= 0x1p63   ? (uint64_t)INT64_MAX
                 : v > -0x1p63 ? (uint64_t)(int64_t)v
                 : v != v      ? 0
                               : (uint64_t)INT64_MIN);
}

template <typename A, typename OUT> __device__ __forceinline__ OUT finished(const job &j, A acc, A shift)
{
    constexpr bool real_out = std::is_floating_point<typename pw_storage<OUT>::T>::value;
    constexpr bool real = std::is_floating_point<A>::value;
    typedef typename std::conditional<real, A, double>::type R;
    if (!real && j.end == FINISH_NONE) {
        if constexpr (!real_out)
            return j.truth ? (OUT)(acc != A(0)) : (OUT)acc;
    }
    if (!real && j.end == FINISH_MEAN && j.count > 0) {
        if constexpr (!real_out && !real)
            return (OUT)(acc / (A)j.count);
    }
    R v = (R)acc;
    switch (j.end) {
    case FINISH_MEAN:
        v = v / (R)j.count;
        break;
    case FINISH_SQRT:
        v = m_sqrt(v);
        break;
    case FINISH_LOG:
        v = m_log(v) + (R)shift;
        break;
    default:
        break;
    }
    if constexpr (real_out)
        return pw_narrow<OUT>((typename pw_storage<OUT>::T)v);
    else
        return cut_off<OUT>((double)v);
}

template <typename A> __device__ __forceinline__ A cuda_finite_or_zero(A v)
{
    return v - v == A(0) ? v : A(0);
}

/* ---- kernels ---- */

enum { AT_ONCE = 4 }; /* reads of a thread, none of which waits for another */

/* The elements begin, begin + step, ... of a reduction over one axis. */
template <typename IN, typename A>
__device__ __forceinline__ A fold_axis(const job &j, const IN *in, int64_t begin, int64_t end, int64_t step,
                                       fold how, A shift)
{
    const int64_t stride = j.reduced.strides[0][0];
    A acc[AT_ONCE];
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++)
        acc[k] = start<IN, A>(how);
    int64_t r = begin;
    for (; r + (AT_ONCE - 1) * step < end; r += AT_ONCE * step) {
        IN v[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            v[k] = in[(r + k * step) * stride];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            acc[k] = cuda_reduce_take<A>(how, acc[k], (A)pw_widen<IN>(v[k]), shift);
    }
    for (; r < end; r += step)
        acc[0] = cuda_reduce_take<A>(how, acc[0], (A)pw_widen<IN>(in[r * stride]), shift);
#pragma unroll
    for (int k = 1; k < AT_ONCE; k++)
        acc[0] = cuda_reduce_join<A>(how, acc[0], acc[k]);
    return acc[0];
}

template <typename IN, typename A>
__device__ __forceinline__ A fold_some(const job &j, const IN *in, int64_t begin, int64_t end, int64_t step,
                                       fold how, A shift)
{
    if (j.reduced.rank == 1)
        return fold_axis<IN, A>(j, in, begin, end, step, how, shift);
    A acc = start<IN, A>(how);
    for (int64_t r = begin; r < end; r += step) {
        int64_t at[1];
        cuda_walk_at(j.reduced, r, at);
        acc = cuda_reduce_take<A>(how, acc, (A)pw_widen<IN>(in[at[0]]), shift);
    }
    return acc;
}

/* What a thread of a block folds of the elements from begin to end: neighbours, 16 bytes at a time, where
 * they are aligned. */
template <typename IN, typename A>
__device__ __forceinline__ A fold_share(const job &j, const IN *in, int64_t begin, int64_t end, fold how,
                                        A shift)
{
    enum { N = 16 / sizeof(IN) };
    if (N == 1 || j.reduced.rank != 1 || j.reduced.strides[0][0] != 1 || ((uintptr_t)(in + begin) & 15))
        return fold_some<IN, A>(j, in, begin + threadIdx.x, end, blockDim.x, how, shift);
    const cuda_vector<IN> *packs = (const cuda_vector<IN> *)(in + begin);
    const int64_t n = end > begin ? (end - begin) / N : 0;
    A acc[2] = {start<IN, A>(how), start<IN, A>(how)};
    int64_t i = threadIdx.x;
    for (; i + blockDim.x < n; i += 2 * blockDim.x) {
        const cuda_vector<IN> pack[2] = {packs[i], packs[i + blockDim.x]};
#pragma unroll
        for (int k = 0; k < 2 * N; k++)
            acc[k % 2] = cuda_reduce_take<A>(how, acc[k % 2], (A)pw_widen<IN>(pack[k % 2].v[k / 2]), shift);
    }
    if (i < n) {
        const cuda_vector<IN> pack = packs[i];
#pragma unroll
        for (int k = 0; k < N; k++)
            acc[k % 2] = cuda_reduce_take<A>(how, acc[k % 2], (A)pw_widen<IN>(pack.v[k]), shift);
    }
    for (int64_t r = begin + n * N + threadIdx.x; r < end; r += blockDim.x)
        acc[0] = cuda_reduce_take<A>(how, acc[0], (A)pw_widen<IN>(in[r]), shift);
    return cuda_reduce_join<A>(how, acc[0], acc[1]);
}

template <typename IN, typename A, typename OUT>
__global__ void __launch_bounds__(CUDA_BLOCK)
    thread_kernel(const __grid_constant__ job j, const IN *in, OUT *out)
{
    CUDA_ITEMS (i, j.kept.total) {
        int64_t at[2];
        A shift = A(0);
        cuda_walk_at(j.kept, i, at);
        if (j.how == FOLD_EXP)
            shift =
                cuda_finite_or_zero(fold_some<IN, A>(j, in + at[1], 0, j.reduced.total, 1, FOLD_MAX, shift));
        out[at[0]] =
            finished<A, OUT>(j, fold_some<IN, A>(j, in + at[1], 0, j.reduced.total, 1, j.how, shift), shift);
    }
}

/* A thread folds a part of an output's elements; threads that are neighbours have neighbouring outputs. The
 * parts of an output follow each other. */
template <typename IN, typename A>
__global__ void __launch_bounds__(CUDA_BLOCK)
    thread_parts_kernel(const __grid_constant__ job j, const IN *in, A *parts)
{
    CUDA_ITEMS (i, j.kept.total * j.parts) {
        const int64_t part = i / j.kept.total, item = i - part * j.kept.total, begin = part * j.per_part,
                      end = begin + j.per_part < j.reduced.total ? begin + j.per_part : j.reduced.total;
        int64_t at[2];
        A shift = A(0);
        cuda_walk_at(j.kept, item, at);
        if (j.how == FOLD_EXP)
            shift = cuda_finite_or_zero(fold_some<IN, A>(j, in + at[1], begin, end, 1, FOLD_MAX, shift));
        parts[at[0] * j.parts + part] =
            finished<A, A>(j, fold_some<IN, A>(j, in + at[1], begin, end, 1, j.how, shift), shift);
    }
}

/* All threads get the result. blockDim.x is a multiple of 32. */
template <typename A> __device__ __forceinline__ A fold_block(fold how, A acc, A *shared)
{
    for (int lane = 16; lane; lane /= 2)
        acc = cuda_reduce_join<A>(how, acc, __shfl_xor_sync(0xffffffffu, acc, lane));
    int warps = blockDim.x / 32;
    if (warps == 1)
        return acc;
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = acc;
    __syncthreads();
    acc = shared[0];
    for (int w = 1; w < warps; w++)
        acc = cuda_reduce_join<A>(how, acc, shared[w]);
    return acc;
}

template <typename IN, typename A, typename OUT>
__global__ void __launch_bounds__(512) block_kernel(const __grid_constant__ job j, const IN *in, OUT *out)
{
    __shared__ A shared[16];
    for (int64_t i = blockIdx.x; i < j.kept.total * j.parts; i += gridDim.x) {
        int64_t item = j.parts == 1 ? i : i / j.parts, part = i - item * j.parts, at[2];
        int64_t begin = part * j.per_part,
                end = begin + j.per_part < j.reduced.total ? begin + j.per_part : j.reduced.total;
        A shift = A(0);
        cuda_walk_at(j.kept, item, at);
        if (j.how == FOLD_EXP)
            shift = cuda_finite_or_zero(fold_block<A>(
                FOLD_MAX, fold_share<IN, A>(j, in + at[1], begin, end, FOLD_MAX, shift), shared));
        A acc = fold_block<A>(j.how, fold_share<IN, A>(j, in + at[1], begin, end, j.how, shift), shared);
        if (threadIdx.x == 0)
            out[at[0] * j.parts + part] = finished<A, OUT>(j, acc, shift);
    }
}

/* ---- kernel life ---- */

grt_status cuda_reduce_create(const grt_kernel_node *node, void **out_state)
{
    state *s;
    GRT_TRY(cuda_state(&s));
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (!strcmp(node->desc->op, kinds[k].op)) {
            s->how = kinds[k].how;
            s->end = kinds[k].end;
        }
    s->empty_is_none = grt_attr_int(node->desc, "noop_with_empty_axes", 0) != 0;
    *out_state = s;
    return GRT_OK;
}

/* False if the kernel for columns has no such fold. */
bool columns_fold(const job *j, cuda_columns *c)
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
bool plan_columns(const grt_reshape *r, const job *j, cuda_columns *c)
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
int64_t parts_of_threads(const job *j)
{
    enum { WIDE = 16, LEAST = 16, THREADS = 1 << 17 };
    const int32_t last = j->kept.rank - 1;
    if (j->kept.total <= 0 || j->kept.strides[1][last] != 1 || j->kept.dims[last] < WIDE)
        return 1;
    int64_t parts = THREADS / j->kept.total, most = j->reduced.total / LEAST;
    parts = parts < most ? parts : most;
    return parts < MAX_PARTS ? parts : MAX_PARTS;
}

bool folds_in_double(const job *j, grt_dtype dtype)
{
    return j->how == FOLD_EXP && !grt_dtype_in(dtype, GRT_SET_FLOATS);
}

grt_status cuda_reduce_reshape(grt_reshape *r)
{
    const state *s = (const state *)r->state;
    const grt_tensor *data = r->in[0];
    bool is_reduced[GRT_MAX_RANK], inner_kept = false;
    int64_t strides[GRT_MAX_RANK], out_stride[GRT_MAX_RANK], n_out = 1;
    const grt_tensor *axes = r->n_in > 1 ? r->in[1] : NULL;
    if (axes && grt_tensor_elements(axes) > 0 && !axes->data)
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED, "input axes must be known before the run");
    GRT_TRY(grt_reduce_axes(r->desc, data, axes, r->out[0], s->empty_is_none, is_reduced));
    shape *sh;
    GRT_TRY(cuda_state(&sh));
    job *j = &sh->first;
    grt_dims_strides(data->dims, data->rank, strides);
    for (int32_t k = data->rank - 1; k >= 0; k--) {
        out_stride[k] = n_out;
        n_out *= is_reduced[k] ? 1 : data->dims[k];
    }
    cuda_walk_begin(&j->kept);
    cuda_walk_begin(&j->reduced);
    for (int32_t k = 0; k < data->rank; k++) {
        int64_t both[2] = {out_stride[k], strides[k]};
        if (is_reduced[k])
            cuda_walk_axis(&j->reduced, data->dims[k], &strides[k]);
        else
            cuda_walk_axis(&j->kept, data->dims[k], both);
        if (data->dims[k] != 1)
            inner_kept = !is_reduced[k];
    }
    cuda_walk_end(&j->kept);
    cuda_walk_end(&j->reduced);
    j->how = s->how;
    j->end = s->end;
    j->truth = data->dtype == GRT_DTYPE_BOOL;
    j->parts = 1;
    j->per_part = j->reduced.total;
    j->count = (double)j->reduced.total;
    int64_t n = j->reduced.total;
    sh->by_columns = n > FEW && plan_columns(r, j, &sh->columns);
    sh->by_thread = n <= FEW || (inner_kept && (j->kept.total >= MANY_OUTPUTS || n <= 8 * FEW));
    sh->block = threads_of(n, j->kept.total);
    sh->cut = !sh->by_thread && j->kept.total < 128 && n > 2 * PART;
    int64_t parts = (n + PART - 1) / PART;
    if (inner_kept && n > FEW && !sh->by_columns && parts_of_threads(j) > 1) {
        parts = parts_of_threads(j);
        sh->cut = sh->by_thread = true;
    }
    if (sh->cut) {
        sh->second = *j;
        j->parts = parts < MAX_PARTS ? parts : MAX_PARTS;
        j->per_part = ((n + j->parts - 1) / j->parts + ALIGNED - 1) / ALIGNED * ALIGNED;
        /* The logarithms of parts are folded as what is logarithmed is. */
        j->end = j->how == FOLD_EXP ? FINISH_LOG : FINISH_NONE;
        j->truth = false;
        job *k = &sh->second;
        int64_t both[2] = {1, j->parts}, one = 1;
        cuda_walk_begin(&k->kept);
        cuda_walk_axis(&k->kept, j->kept.total, both);
        cuda_walk_end(&k->kept);
        cuda_walk_begin(&k->reduced);
        cuda_walk_axis(&k->reduced, j->parts, &one);
        cuda_walk_end(&k->reduced);
        k->per_part = j->parts;
        k->how = k->how == FOLD_ABS || k->how == FOLD_SQUARE ? FOLD_SUM : k->how;
        r->workspace_bytes = (size_t)(j->kept.total * j->parts) * sizeof(double);
    }
    if (sh->by_columns && cuda_columns_workspace(&sh->columns) > r->workspace_bytes)
        r->workspace_bytes = cuda_columns_workspace(&sh->columns);
    r->shape = sh;
    return GRT_OK;
}

template <typename S, typename A, typename O> grt_status fold_to(const grt_run *r)
{
    const shape *sh = (const shape *)r->shape;
    const job *j = &sh->first;
    const S *in = (const S *)r->in[0]->data;
    O *out = (O *)r->out[0]->data;
    cudaStream_t stream = cuda_stream(r);
    if (sh->by_thread && !sh->cut) {
        thread_kernel<S, A, O><<<cuda_grid(j->kept.total), CUDA_BLOCK, 0, stream>>>(*j, in, out);
    } else if (sh->cut) {
        A *parts = (A *)r->workspace;
        if (sh->by_thread)
            thread_parts_kernel<S, A>
                <<<cuda_grid(j->kept.total * j->parts), CUDA_BLOCK, 0, stream>>>(*j, in, parts);
        else
            block_kernel<S, A, A>
                <<<cuda_grid(j->kept.total * j->parts, 1), (unsigned)sh->block, 0, stream>>>(*j, in, parts);
        CUDA_LAUNCHED();
        block_kernel<A, A, O>
            <<<cuda_grid(j->kept.total, 1), sh->by_thread ? 32 : 128, 0, stream>>>(sh->second, parts, out);
    } else {
        block_kernel<S, A, O><<<cuda_grid(j->kept.total, 1), (unsigned)sh->block, 0, stream>>>(*j, in, out);
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

#define REDUCE_OF(space, name, set)                                                            \
    {                                                                                          \
        .domain = space, .op = name, .types = {set, CUDA_INDEX}, .flags = GRT_KERNEL_READS(1), \
        .create = cuda_reduce_create, .destroy = free, .reshape = cuda_reduce_reshape,         \
        .release_shape = free, .run = cuda_reduce_run                                          \
    }
#define REDUCE(name, set) REDUCE_OF("", name, set),
/* The result is float32. */
#define WIDE(name) REDUCE_OF("graphrt", name, GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16)),

const grt_kernel_row rows[] = {REDUCE_ROWS(REDUCE) REDUCE_WIDE_ROWS(WIDE)};

} // namespace
CUDA_KERNELS(reduce, rows);
