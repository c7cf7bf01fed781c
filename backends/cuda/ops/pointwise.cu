/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of all ops that are one function of pointwise.def: unary, binary, Clip, Pow, and the variadic Max,
 * Min, Sum, Mean. 16-bit floats are computed in float32. The usual functions of floats have kernels of their
 * own; the others share one that calls its function by number. */
#include "backends/cuda/pointwise_eval.h"
#include "backends/cuda/walk.h"
#include "backends/shared/pointwise_rows.h"

#include <cmath>

namespace
{

enum { MAX_FOLDED = 16 };
typedef cuda_walk<PW_MAX_OPERANDS + 1, GRT_MAX_RANK> call_walk;
typedef cuda_walk<MAX_FOLDED + 1, GRT_MAX_RANK> fold_walk;

enum form {
    FORM_CALL, /* the function's arity is the op's */
    FORM_FOLD, /* a binary function folds any number of operands */
};

struct state {
    form how;
    int32_t opcode, n_in; /* operands, omitted bounds of Clip included */
    bool truth, mean;
    grt_dtype dtype;
    float p[PW_MAX_PARAMS];
    uint64_t limits[PW_MAX_OPERANDS]; /* elements that stand in for omitted inputs */
};

struct shape {
    int32_t vector; /* elements per thread where pointers are aligned; 1: no grouped walk */
    call_walk walk, grouped;
    fold_walk folded; /* FORM_FOLD */
};

/* What a kernel gets, beside the walk. */
struct operands {
    const void *in[PW_MAX_OPERANDS]; /* NULL: the limit */
    void *out;
    uint64_t limits[PW_MAX_OPERANDS];
    bool packed[PW_MAX_OPERANDS]; /* neighbours differ */
    int32_t opcode, n_in;
    float p[PW_MAX_PARAMS];
};

template <typename S, int V>
__device__ __forceinline__ void cuda_pointwise_load(const operands &o, int k, int64_t offset,
                                                    typename pw_storage<S>::T *x)
{
    if (!o.in[k]) {
        S limit;
        memcpy(&limit, &o.limits[k], sizeof limit);
        for (int j = 0; j < V; j++)
            x[j] = pw_widen<S>(limit);
        return;
    }
    const S *from = (const S *)o.in[k] + offset;
    if (V > 1 && o.packed[k]) {
        cuda_pack<S, V> pack = *(const cuda_pack<S, V> *)from;
#pragma unroll
        for (int j = 0; j < V; j++)
            x[j] = pw_widen<S>(pack.v[j]);
    } else {
        typename pw_storage<S>::T one = pw_widen<S>(*from);
#pragma unroll
        for (int j = 0; j < V; j++)
            x[j] = one;
    }
}

/* OP < 0: the opcode and the arity are those of `o`. TRUTH: the result is bool. */
template <typename S, int V, bool TRUTH, int OP, int ARITY>
__global__ void __launch_bounds__(CUDA_BLOCK)
    call_kernel(const __grid_constant__ call_walk walk, const __grid_constant__ operands o)
{
    typedef typename pw_storage<S>::T T;
    typedef typename pw_vocabulary<T>::P P;
    P p0 = (P)o.p[0], p1 = (P)o.p[1];
    CUDA_ITEMS (i, walk.total) {
        int64_t at[PW_MAX_OPERANDS + 1];
        T x[PW_MAX_OPERANDS][V], y[V];
        cuda_walk_at(walk, i, at, ARITY + 1);
#pragma unroll
        for (int k = 0; k < PW_MAX_OPERANDS; k++)
            if (k < ARITY && (OP >= 0 || k < o.n_in))
                cuda_pointwise_load<S, V>(o, k, at[k + 1], x[k]);
            else
                for (int j = 0; j < V; j++)
                    x[k][j] = T(0);
#pragma unroll
        for (int j = 0; j < V; j++)
            y[j] = OP >= 0 ? pw_eval<T>(OP, x[0][j], x[1][j], x[2][j], p0, p1)
                           : pw_eval_any<T>(o.opcode, x[0][j], x[1][j], x[2][j], p0, p1);
        if (TRUTH) {
            cuda_pack<uint8_t, V> pack;
#pragma unroll
            for (int j = 0; j < V; j++)
                pack.v[j] = y[j] != T(0);
            *(cuda_pack<uint8_t, V> *)((uint8_t *)o.out + at[0]) = pack;
        } else {
            cuda_pack<S, V> pack;
#pragma unroll
            for (int j = 0; j < V; j++)
                pack.v[j] = pw_narrow<S>(y[j]);
            *(cuda_pack<S, V> *)((S *)o.out + at[0]) = pack;
        }
    }
}

struct fold_operands {
    const void *in[MAX_FOLDED];
    void *out;
    int32_t opcode, n_in;
    bool mean;
};

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    fold_kernel(const __grid_constant__ fold_walk walk, const __grid_constant__ fold_operands o)
{
    typedef typename pw_storage<S>::T T;
    CUDA_ITEMS (i, walk.total) {
        int64_t at[MAX_FOLDED + 1];
        cuda_walk_at(walk, i, at);
        T acc = pw_widen<S>(((const S *)o.in[0])[at[1]]);
#pragma unroll
        for (int k = 1; k < MAX_FOLDED; k++)
            if (k < o.n_in) {
                T x = pw_widen<S>(((const S *)o.in[k])[at[k + 1]]);
                acc = o.opcode == PW_Add   ? pw_eval<T>(PW_Add, acc, x, x, 0, 0)
                      : o.opcode == PW_Max ? pw_eval<T>(PW_Max, acc, x, x, 0, 0)
                                           : pw_eval<T>(PW_Min, acc, x, x, 0, 0);
            }
        if (o.mean)
            acc = acc / (T)o.n_in;
        ((S *)o.out)[at[0]] = pw_narrow<S>(acc);
    }
}

template <typename S, int V, bool TRUTH, int OP, int ARITY>
grt_status cuda_pointwise_launch(const call_walk &walk, const operands &o, cudaStream_t stream)
{
    call_kernel<S, V, TRUTH, OP, ARITY><<<cuda_grid(walk.total), CUDA_BLOCK, 0, stream>>>(walk, o);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <typename S> constexpr int cuda_pointwise_vector_of()
{
    return sizeof(S) == 8 ? 2 : sizeof(S) == 4 ? 4 : 8;
}

/* The functions whose vectorised loops are worth a kernel each. */
/* clang-format off */
#define USUAL(X)                                                                                         \
    X(Add, 2) X(Sub, 2) X(Mul, 2) X(Div, 2) X(Max, 2) X(Min, 2) X(Pow, 2) X(Neg, 1) X(Abs, 1) X(Sqrt, 1) \
    X(Reciprocal, 1) X(Exp, 1) X(Log, 1) X(Erf, 1) X(Relu, 1) X(Sigmoid, 1) X(Tanh, 1) X(LeakyRelu, 1)   \
    X(HardSigmoid, 1) X(HardSwish, 1) X(Swish, 1) X(Gelu, 1) X(GeluTanh, 1) X(Clip, 3)
/* clang-format on */

template <typename S>
grt_status launch_grouped(const state *s, const call_walk &walk, const operands &o, cudaStream_t stream)
{
    constexpr int V = cuda_pointwise_vector_of<S>();
    if (s->truth)
        return cuda_pointwise_launch<S, V, true, -1, 3>(walk, o, stream);
    if constexpr (std::is_same<typename pw_storage<S>::T, float>::value)
        switch (s->opcode) {
#define X(name, arity) \
    case PW_##name:    \
        return cuda_pointwise_launch<S, V, false, PW_##name, arity>(walk, o, stream);
            USUAL(X)
#undef X
        }
    return cuda_pointwise_launch<S, V, false, -1, 3>(walk, o, stream);
}

template <typename S> grt_status cuda_pointwise_run_typed(const grt_run *r)
{
    const state *s = (const state *)r->state;
    const shape *sh = (const shape *)r->shape;
    cudaStream_t stream = cuda_stream(r);
    if (s->how == FORM_FOLD) {
        fold_operands o = {};
        for (int32_t k = 0; k < s->n_in; k++)
            o.in[k] = r->in[k]->data;
        o.out = r->out[0]->data;
        o.opcode = s->opcode;
        o.n_in = s->n_in;
        o.mean = s->mean;
        fold_kernel<S><<<cuda_grid(sh->folded.total), CUDA_BLOCK, 0, stream>>>(sh->folded, o);
        CUDA_LAUNCHED();
        return GRT_OK;
    }
    operands o = {};
    int32_t last = sh->walk.rank - 1;
    size_t bytes = sizeof(S) * (size_t)sh->vector;
    bool aligned = sh->vector > 1 && cuda_aligned(r->out[0]->data, s->truth ? (size_t)sh->vector : bytes);
    for (int32_t k = 0; k < s->n_in; k++) {
        o.in[k] = k < r->n_in && r->in[k] ? r->in[k]->data : NULL;
        o.packed[k] = sh->walk.strides[k + 1][last] == 1;
        o.limits[k] = s->limits[k];
        aligned &= !o.packed[k] || cuda_aligned(o.in[k], bytes);
    }
    o.out = r->out[0]->data;
    o.opcode = s->opcode;
    o.n_in = s->n_in;
    memcpy(o.p, s->p, sizeof o.p);
    if (aligned)
        return launch_grouped<S>(s, sh->grouped, o, stream);
    if (s->truth)
        return cuda_pointwise_launch<S, 1, true, -1, 3>(sh->walk, o, stream);
    return cuda_pointwise_launch<S, 1, false, -1, 3>(sh->walk, o, stream);
}

/* Lowest (or highest) element of a dtype, as its bytes. */
uint64_t cuda_limit_bits(grt_dtype dtype, bool high)
{
    size_t bits = grt_dtype_bits(dtype);
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
        return high ? 0x7f800000u : 0xff800000u;
    case GRT_DTYPE_DOUBLE:
        return high ? UINT64_C(0x7ff0000000000000) : UINT64_C(0xfff0000000000000);
    case GRT_DTYPE_FLOAT16:
        return high ? 0x7c00u : 0xfc00u;
    case GRT_DTYPE_BFLOAT16:
        return high ? 0x7f80u : 0xff80u;
    default:
        if (grt_dtype_in(dtype, GRT_SET_UNSIGNED))
            return high ? UINT64_MAX >> (64 - bits) : 0;
        return high ? UINT64_MAX >> (65 - bits)
                    : UINT64_C(1) << (bits - 1); /* two's complement, low bytes first */
    }
}

bool is_variadic(const char *op)
{
    return !strcmp(op, "Sum") || !strcmp(op, "Mean") || !strcmp(op, "Max") || !strcmp(op, "Min");
}

bool cuda_pointwise_supports(const grt_kernel_node *node, grt_text *why)
{
    if (!is_variadic(node->desc->op) || node->n_in <= MAX_FOLDED)
        return true;
    if (why)
        grt_text_add(why, "at most %d inputs", MAX_FOLDED);
    return false;
}

grt_status cuda_pointwise_create(const grt_kernel_node *node, void **out_state)
{
    state *s;
    GRT_TRY(cuda_state(&s));
    const char *op = node->desc->op;
    bool variadic = is_variadic(op);
    s->mean = !strcmp(op, "Mean");
    s->opcode = s->mean ? PW_Add : grt_pointwise_function_of(node->desc);
    if (s->opcode < 0) {
        free(s);
        return grt_fail_op(node->desc, GRT_STATUS_INTERNAL, "no function of that name");
    }
    s->dtype = node->in[0].dtype;
    s->truth = grt_pointwise_info(s->opcode)->truth;
    s->n_in = variadic ? node->n_in : grt_pointwise_info(s->opcode)->arity;
    s->how = variadic && (node->n_in != 2 || s->mean) ? FORM_FOLD : FORM_CALL;
    (void)grt_pointwise_params(node->desc, s->opcode, s->p);
    for (int32_t i = 1; s->opcode == PW_Clip && i < 3; i++)
        s->limits[i] = cuda_limit_bits(s->dtype, i == 2);
    *out_state = s;
    return GRT_OK;
}

int vector_limit(grt_dtype dtype)
{
    size_t size = grt_dtype_size(dtype);
    return size == 8 ? 2 : size == 4 ? 4 : 8;
}

grt_status cuda_pointwise_reshape(grt_reshape *r)
{
    const state *s = (const state *)r->state;
    shape *sh;
    GRT_TRY(cuda_state(&sh));
    if (s->how == FORM_FOLD) {
        cuda_walk_broadcast(&sh->folded, r->out[0], s->n_in, r->in);
        r->shape = sh;
        return GRT_OK;
    }
    grt_tensor scalar = {};
    const grt_tensor *in[PW_MAX_OPERANDS] = {};
    for (int32_t k = 0; k < s->n_in; k++)
        in[k] = k < r->n_in && r->in[k] ? r->in[k] : &scalar;
    cuda_walk_broadcast(&sh->walk, r->out[0], s->n_in, in);
    int full = vector_limit(s->dtype);
    sh->vector = cuda_walk_vector(&sh->walk, full) == full && sh->walk.total ? full : 1;
    if (sh->vector > 1)
        sh->grouped = cuda_walk_grouped(&sh->walk, full);
    r->shape = sh;
    return GRT_OK;
}

grt_status cuda_pointwise_run(const grt_run *r)
{
    const state *s = (const state *)r->state;
    const shape *sh = (const shape *)r->shape;
    if ((s->how == FORM_FOLD ? sh->folded.total : sh->walk.total) <= 0)
        return GRT_OK;
    switch (s->dtype) {
    case GRT_DTYPE_FLOAT:
        return cuda_pointwise_run_typed<float>(r);
    case GRT_DTYPE_DOUBLE:
        return cuda_pointwise_run_typed<double>(r);
    case GRT_DTYPE_FLOAT16:
        return cuda_pointwise_run_typed<__half>(r);
    case GRT_DTYPE_BFLOAT16:
        return cuda_pointwise_run_typed<__nv_bfloat16>(r);
    case GRT_DTYPE_INT8:
        return cuda_pointwise_run_typed<int8_t>(r);
    case GRT_DTYPE_INT16:
        return cuda_pointwise_run_typed<int16_t>(r);
    case GRT_DTYPE_INT32:
        return cuda_pointwise_run_typed<int32_t>(r);
    case GRT_DTYPE_INT64:
        return cuda_pointwise_run_typed<int64_t>(r);
    case GRT_DTYPE_UINT8:
    case GRT_DTYPE_BOOL:
        return cuda_pointwise_run_typed<uint8_t>(r);
    case GRT_DTYPE_UINT16:
        return cuda_pointwise_run_typed<uint16_t>(r);
    case GRT_DTYPE_UINT32:
        return cuda_pointwise_run_typed<uint32_t>(r);
    case GRT_DTYPE_UINT64:
        return cuda_pointwise_run_typed<uint64_t>(r);
    default:
        return grt_fail_op(r->desc, GRT_STATUS_INTERNAL, "no kernel for %s", grt_dtype_name(s->dtype));
    }
}

#define ROW(opname, set)                                       \
    {.domain = "",                                             \
     .op = opname,                                             \
     .types = {set, set, set, 0},                              \
     .flags = GRT_KERNEL_IN_PLACE(0) | GRT_KERNEL_IN_PLACE(1), \
     .supports = cuda_pointwise_supports,                      \
     .create = cuda_pointwise_create,                          \
     .destroy = free,                                          \
     .reshape = cuda_pointwise_reshape,                        \
     .release_shape = free,                                    \
     .run = cuda_pointwise_run},

const grt_kernel_row rows[] = {
#define PW_ROWS_ONLY
#define PW(name, since, arity, kind, n_params, p0, d0, p1, d1, expr) ROW(#name, TYPES_##kind)
#include "src/base/pointwise.def"
#undef PW
#undef PW_ROWS_ONLY
    POINTWISE_ROWS(ROW)};

} // namespace
CUDA_KERNELS(pointwise, rows);
