/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Pointwise, PointwiseParts and PointwiseConcat on the device. The kernel that was generated for the
 * program (pointwise_source.h) runs once it is there (backends/code.h); else one kernel interprets any
 * program: every thread runs the whole program for a few neighbouring elements, so that intermediate results
 * never reach device memory unless there are very many. The program travels in the kernel's parameters; all
 * threads take the same way through it. */
#include "backends/cuda/code.h"
#include "backends/cuda/concat.h"
#include "backends/cuda/generated.h"
#include "backends/cuda/libraries.h"
#include "backends/cuda/overlap.cuh"
#include "backends/cuda/pointwise_eval.h"
#include "backends/cuda/pointwise_source.h"
#include "backends/cuda/walk.h"
#include "src/base/pointwise_parts.h"

namespace
{

/* What the compiler's groups keep to, and what fits in the parameters of a kernel. */
enum { MAX_INPUTS = CUDA_POINTWISE_INPUTS, MAX_CODE = 32, MAX_CONSTANTS = 96, VECTOR = 4, BLOCK = 128 };

struct instruction {
    uint8_t opcode, arity;
    uint8_t target;                /* register */
    bool keep;                     /* some later instruction but the next one reads the result */
    uint8_t kind[PW_MAX_OPERANDS]; /* pw_source_kind */
    uint8_t index[PW_MAX_OPERANDS];
    float p[PW_MAX_PARAMS];
};

struct program {
    int32_t n, n_in, n_registers, joined; /* n_in: operands; joined: inputs that are the first */
    grt_dtype in_dtype[MAX_INPUTS], out_dtype;
    float constants[MAX_CONSTANTS];
    instruction code[MAX_CODE];
};

typedef cuda_walk<MAX_INPUTS + 1, GRT_MAX_RANK> group_walk;

struct fast_plan {
    uint32_t n; /* vectors */
    cuda_divisor by_inner, by_middle;
    uint32_t strides[MAX_INPUTS][3]; /* of an input's elements: outer, middle, and vectors of inner */
};

struct shape {
    bool grouped, formed, fast; /* formed: form is set; fast: the fast kernel takes it */
    cuda_pointwise_form form;
    grt_code *code; /* NULL: there is none */
    fast_plan plan;
    group_walk walk, groups;
    size_t offsets[MAX_INPUTS]; /* of parts, in bytes */
    grt_tensor whole;           /* the first operand, if it is joined of several inputs */
    uint32_t ends[PW_MOST_JOINED];
    cuda_concat join;
    bool joins_at_once; /* by one launch, if the pointers are aligned */
};

struct operands {
    const void *in[MAX_INPUTS];
    void *out;
    bool packed[MAX_INPUTS]; /* neighbours differ */
};

/* ---- the kernel ---- */

template <typename S, int V>
__device__ __forceinline__ void load_typed(const void *data, int64_t at, bool packed, float *x)
{
    const S *from = (const S *)data + at;
    if (V > 1 && packed) {
        cuda_pack<S, V> pack = *(const cuda_pack<S, V> *)from;
#pragma unroll
        for (int j = 0; j < V; j++)
            x[j] = (float)pw_widen<S>(pack.v[j]);
    } else {
        float one = (float)pw_widen<S>(*from);
#pragma unroll
        for (int j = 0; j < V; j++)
            x[j] = one;
    }
}

template <int V>
__device__ __forceinline__ void cuda_pointwise_group_load(grt_dtype dtype, const void *data, int64_t at,
                                                          bool packed, float *x)
{
    if (dtype == GRT_DTYPE_FLOAT) {
        load_typed<float, V>(data, at, packed, x);
    } else if (dtype == GRT_DTYPE_FLOAT16) {
        load_typed<__half, V>(data, at, packed, x);
    } else if (dtype == GRT_DTYPE_BFLOAT16) {
        load_typed<__nv_bfloat16, V>(data, at, packed, x);
    } else {
        load_typed<uint8_t, V>(data, at, packed, x);
#pragma unroll
        for (int j = 0; j < V; j++)
            x[j] = x[j] != 0.0f ? 1.0f : 0.0f;
    }
}

template <typename S, int V>
__device__ __forceinline__ void store_typed(void *data, int64_t at, const float *x)
{
    cuda_pack<S, V> pack;
#pragma unroll
    for (int j = 0; j < V; j++)
        pack.v[j] = pw_narrow<S>(x[j]);
    *(cuda_pack<S, V> *)((S *)data + at) = pack;
}

template <int V>
__device__ __forceinline__ void cuda_pointwise_group_store(grt_dtype dtype, void *data, int64_t at,
                                                           const float *x)
{
    if (dtype == GRT_DTYPE_FLOAT) {
        store_typed<float, V>(data, at, x);
    } else if (dtype == GRT_DTYPE_FLOAT16) {
        store_typed<__half, V>(data, at, x);
    } else if (dtype == GRT_DTYPE_BFLOAT16) {
        store_typed<__nv_bfloat16, V>(data, at, x);
    } else {
        cuda_pack<uint8_t, V> pack;
#pragma unroll
        for (int j = 0; j < V; j++)
            pack.v[j] = x[j] != 0.0f;
        *(cuda_pack<uint8_t, V> *)((uint8_t *)data + at) = pack;
    }
}

/* The usual functions are met here without a call. */
template <int V> __device__ __forceinline__ void eval(const instruction &in, const float (*x)[V], float *y)
{
#define EACH(opcode)                                     \
    _Pragma("unroll") for (int j = 0; j < V; j++) y[j] = \
        pw_eval<float>(opcode, x[0][j], x[1][j], x[2][j], in.p[0], in.p[1])
#define X(name)          \
    case PW_##name:      \
        EACH(PW_##name); \
        break;
    switch (in.opcode) {
        /* clang-format off */
        X(Add) X(Sub) X(Mul) X(Div) X(Max) X(Min) X(Neg) X(Sqrt) X(Relu) X(Sigmoid) X(Tanh) X(Clip) X(Where)
        X(LeakyRelu) X(Exp) X(Erf) X(Reciprocal) X(HardSigmoid) X(HardSwish) X(Swish)
    default:
#pragma unroll
        for (int j = 0; j < V; j++)
            y[j] = pw_eval_any<float>(in.opcode, x[0][j], x[1][j], x[2][j], in.p[0], in.p[1]);
        /* clang-format on */
    }
#undef X
#undef EACH
}

template <int V, int REGISTERS>
__global__ void __launch_bounds__(BLOCK)
    group_kernel(const __grid_constant__ group_walk walk, const __grid_constant__ program p,
                 const __grid_constant__ operands o)
{
    CUDA_ITEMS (i, walk.total) {
        int64_t at[MAX_INPUTS + 1];
        float registers[REGISTERS][V], x[PW_MAX_OPERANDS][V], y[V];
        cuda_walk_at(walk, i, at);
#pragma unroll
        for (int j = 0; j < V; j++)
            y[j] = 0.0f;
        for (int32_t c = 0; c < p.n; c++) {
            const instruction &in = p.code[c];
#pragma unroll
            for (int k = 0; k < PW_MAX_OPERANDS; k++) {
                int index = in.index[k];
                if (k >= in.arity || in.kind[k] == PW_SOURCE_PREVIOUS) {
#pragma unroll
                    for (int j = 0; j < V; j++)
                        x[k][j] = y[j];
                } else if (in.kind[k] == PW_SOURCE_INPUT) {
                    cuda_pointwise_group_load<V>(p.in_dtype[index], o.in[index], at[index + 1],
                                                 o.packed[index], x[k]);
                } else {
#pragma unroll
                    for (int j = 0; j < V; j++)
                        x[k][j] = in.kind[k] == PW_SOURCE_CONSTANT ? p.constants[index] : registers[index][j];
                }
            }
            eval<V>(in, x, y);
            if (in.keep) {
#pragma unroll
                for (int j = 0; j < V; j++)
                    registers[in.target][j] = y[j];
            }
        }
        cuda_pointwise_group_store<V>(p.out_dtype, o.out, at[0], y);
    }
}

/* The usual case: shapes that have a form (pointwise_source.h), and no more than a few results wait. 16 bytes
 * of 16-bit floats a thread, no walk, and registers that need no memory. */
enum { FAST_VECTOR = CUDA_POINTWISE_VECTOR, FAST_KEPT = 3, FAST_BLOCK = CUDA_POINTWISE_BLOCK };

__global__ void __launch_bounds__(FAST_BLOCK)
    fast_kernel(const __grid_constant__ fast_plan f, const __grid_constant__ program p,
                const __grid_constant__ operands o)
{
    enum { V = FAST_VECTOR };
    const uint32_t i = blockIdx.x * FAST_BLOCK + threadIdx.x;
    overlap_let_next_begin();
    overlap_wait();
    if (i >= f.n)
        return;
    const uint32_t row = cuda_divide(i, f.by_inner), inner = i - row * f.by_inner.divisor;
    const uint32_t outer = cuda_divide(row, f.by_middle), middle = row - outer * f.by_middle.divisor;
    float kept[FAST_KEPT][V], x[PW_MAX_OPERANDS][V], y[V];
#pragma unroll
    for (int j = 0; j < V; j++)
        y[j] = kept[0][j] = kept[1][j] = kept[2][j] = 0.0f;
    for (int32_t c = 0; c < p.n; c++) {
        const instruction &in = p.code[c];
#pragma unroll
        for (int k = 0; k < PW_MAX_OPERANDS; k++) {
            const int index = in.index[k];
            if (k >= in.arity || in.kind[k] == PW_SOURCE_PREVIOUS) {
#pragma unroll
                for (int j = 0; j < V; j++)
                    x[k][j] = y[j];
            } else if (in.kind[k] == PW_SOURCE_INPUT) {
                const uint32_t *strides = f.strides[index];
                cuda_pointwise_group_load<V>(p.in_dtype[index], o.in[index],
                                             outer * strides[0] + middle * strides[1] + inner * strides[2],
                                             strides[2] != 0, x[k]);
            } else if (in.kind[k] == PW_SOURCE_CONSTANT) {
#pragma unroll
                for (int j = 0; j < V; j++)
                    x[k][j] = p.constants[index];
            } else {
#pragma unroll
                for (int j = 0; j < V; j++)
                    x[k][j] = index == 0 ? kept[0][j] : index == 1 ? kept[1][j] : kept[2][j];
            }
        }
        eval<V>(in, x, y);
        if (in.keep) {
#pragma unroll
            for (int j = 0; j < V; j++) {
                kept[0][j] = in.target == 0 ? y[j] : kept[0][j];
                kept[1][j] = in.target == 1 ? y[j] : kept[1][j];
                kept[2][j] = in.target == 2 ? y[j] : kept[2][j];
            }
        }
    }
    cuda_pointwise_group_store<V>(p.out_dtype, o.out, (int64_t)i * V, y);
}

/* ---- kernel life ---- */

bool cuda_pointwise_group_supports(const grt_kernel_node *node, grt_text *why)
{
    size_t n, n_constants;
    (void)grt_attr_ints(node->desc, "program", &n);
    (void)grt_attr_floats(node->desc, "constants", &n_constants);
    if (n / 4 <= MAX_CODE && n_constants <= MAX_CONSTANTS &&
        node->n_in - grt_pointwise_joined(node->desc) < MAX_INPUTS)
        return true;
    if (why)
        grt_text_add(why, "at most %d instructions, %d constants and %d inputs", MAX_CODE, MAX_CONSTANTS,
                     MAX_INPUTS);
    return false;
}

grt_status cuda_pointwise_group_create(const grt_kernel_node *node, void **out_state)
{
    program *p;
    pw_program *decoded;
    const int32_t joined = grt_pointwise_joined(node->desc);
    GRT_TRY(grt_pointwise_check_operands(node->desc, node->n_in));
    GRT_TRY(grt_pointwise_decode(node->desc, node->n_in - joined + 1, false, &decoded));
    const grt_status status = cuda_state(&p);
    if (status != GRT_OK) {
        free(decoded);
        return status;
    }
    p->n = decoded->n;
    p->joined = joined;
    p->n_in = decoded->n_in;
    p->n_registers = decoded->n_registers;
    p->out_dtype = node->out[0].dtype;
    for (int32_t i = 0; i < p->n_in; i++)
        p->in_dtype[i] = node->in[i ? joined + i - 1 : 0].dtype;
    for (int32_t i = 0; i < decoded->n_constants; i++)
        p->constants[i] = decoded->constants[i];
    for (int32_t i = 0; i < p->n; i++) {
        const pw_instruction *from = &decoded->code[i];
        instruction *to = &p->code[i];
        to->opcode = (uint8_t)from->opcode;
        to->arity = (uint8_t)from->arity;
        to->keep = from->target >= 0;
        to->target = to->keep ? (uint8_t)from->target : 0;
        for (int k = 0; k < PW_MAX_OPERANDS; k++) {
            to->kind[k] = (uint8_t)from->kind[k];
            to->index[k] = from->kind[k] == PW_SOURCE_PREVIOUS ? 0 : (uint8_t)from->index[k];
        }
        memcpy(to->p, from->p, sizeof to->p);
    }
    free(decoded);
    *out_state = p;
    return GRT_OK;
}

struct asked {
    const grt_op_desc *desc;
    const cuda_pointwise_form *form;
};

void cuda_pointwise_group_add_key(const void *user, grt_text *key)
{
    const asked *a = (const asked *)user;
    cuda_pointwise_key(a->desc, a->form, key);
}

void cuda_pointwise_group_add_source(const void *user, grt_text *source)
{
    const asked *a = (const asked *)user;
    cuda_pointwise_source(a->desc, a->form, source);
}

grt_status cuda_pointwise_group_find_generated(grt_reshape *r, shape *sh)
{
    const asked a = {r->desc, &sh->form};
    const cuda_generated wanted = {"Pointwise", cuda_pointwise_group_add_key, cuda_pointwise_group_add_source,
                                   &a,          CUDA_POINTWISE_KERNEL,        0};
    return cuda_generated_take(r, &wanted, &sh->code);
}

void cuda_pointwise_group_release_shape(void *object)
{
    shape *sh = (shape *)object;
    grt_code_give(sh->code);
    free(sh);
}

void plan_fast(const cuda_pointwise_form &form, fast_plan *f)
{
    f->n = form.n;
    f->by_inner = cuda_divisor_of(form.inner);
    f->by_middle = cuda_divisor_of(form.middle);
    for (int32_t i = 0; i < form.n_in; i++) {
        const uint8_t place = form.place[i];
        const uint32_t pitch = form.pitch[i] * (place & CUDA_PLACE_INNER ? FAST_VECTOR : 1),
                       inner = place & CUDA_PLACE_INNER ? form.inner * FAST_VECTOR : 1,
                       middle = place & CUDA_PLACE_MIDDLE ? form.middle : 1,
                       row = form.cut[i] == 1 ? pitch : inner, plane = form.cut[i] > 1 ? pitch : row * middle;
        f->strides[i][0] = place & CUDA_PLACE_OUTER ? plane : 0;
        f->strides[i][1] = place & CUDA_PLACE_MIDDLE ? row : 0;
        f->strides[i][2] = place & CUDA_PLACE_INNER ? FAST_VECTOR : 0;
    }
}

void walk_views(const pw_part_view *views, const grt_tensor *out, int32_t n_in, group_walk *walk)
{
    int64_t strides[MAX_INPUTS + 1][GRT_MAX_RANK] = {};
    grt_dims_strides(out->dims, out->rank, strides[0]);
    for (int32_t k = 0; k < n_in; k++)
        grt_pointwise_view_strides(&views[k], out->rank, strides[k + 1]);
    cuda_walk_begin(walk);
    for (int32_t i = 0; i < out->rank; i++) {
        int64_t axis[MAX_INPUTS + 1];
        for (int k = 0; k <= MAX_INPUTS; k++)
            axis[k] = strides[k][i];
        cuda_walk_axis(walk, out->dims[i], axis);
    }
    cuda_walk_end(walk);
}

/* What the operands are, and which of them are parts. */
grt_status find_views(const grt_reshape *r, shape *sh, pw_part_view *views)
{
    const program *p = (const program *)r->state;
    if (p->joined > 1)
        GRT_TRY(grt_pointwise_join(r->desc, r->in, p->joined, &sh->whole));
    for (int32_t i = 0; i < p->n_in; i++) {
        const grt_tensor *in = i ? r->in[p->joined + i - 1] : p->joined > 1 ? &sh->whole : r->in[0];
        GRT_TRY(grt_pointwise_view_part(r->desc, i, in, &views[i]));
        sh->offsets[i] = (size_t)views[i].offset * grt_dtype_size(in->dtype);
    }
    if (p->joined > 1) { /* its rows lie in several places */
        views[0].axis = sh->whole.rank - 1;
        views[0].pitch = sh->whole.dims[views[0].axis];
    }
    return GRT_OK;
}

/* For runs without generated code. */
void plan_join(grt_reshape *r, int32_t joined, shape *sh)
{
    static_assert((int)PW_MOST_JOINED <= (int)CUDA_CONCAT_MOST, "parts of one launch");
    const int32_t last = sh->whole.rank - 1;
    int64_t row_bytes[PW_MOST_JOINED];
    for (int32_t i = 0; i < joined; i++)
        row_bytes[i] = r->in[i]->dims[last] * (int64_t)grt_dtype_size(sh->whole.dtype);
    sh->joins_at_once =
        cuda_concat_plan(&sh->join, grt_dims_product(sh->whole.dims, 0, last), joined, row_bytes);
    r->workspace_bytes = grt_elements_bytes(sh->whole.dtype, grt_tensor_elements(&sh->whole));
}

grt_status cuda_pointwise_group_reshape(grt_reshape *r)
{
    const program *p = (const program *)r->state;
    shape *sh;
    pw_part_view views[MAX_INPUTS];
    GRT_TRY(cuda_state(&sh));
    grt_status status = find_views(r, sh, views);
    sh->formed = status == GRT_OK && cuda_pointwise_form_of(views, p->n_in, r->out[0], &sh->form) &&
                 cuda_pointwise_join(r->in, p->joined, &sh->form, sh->ends);
    if (sh->formed)
        status = cuda_pointwise_group_find_generated(r, sh);
    if (status != GRT_OK) {
        free(sh);
        return status;
    }
    sh->fast = sh->formed && !sh->form.uneven && sh->form.dims <= 3 && p->n_registers <= FAST_KEPT;
    if (sh->fast)
        plan_fast(sh->form, &sh->plan);
    walk_views(views, r->out[0], p->n_in, &sh->walk);
    sh->grouped = sh->walk.total > 0 && cuda_walk_vector(&sh->walk, VECTOR) == VECTOR;
    if (sh->grouped)
        sh->groups = cuda_walk_grouped(&sh->walk, VECTOR);
    if (p->joined > 1)
        plan_join(r, p->joined, sh);
    r->shape = sh;
    return GRT_OK;
}

bool begins_early(const grt_run *r)
{
    return ((const cuda_device *)r->device)->prop.major >= 9;
}

grt_status cuda_pointwise_group_launch_generated(const shape *sh, cudaKernel_t generated, const operands &o,
                                                 const grt_run *r)
{
    cuda_pointwise_args args = {};
    memcpy(args.in, o.in, sizeof args.in);
    args.joined = (uint32_t)sh->form.joined;
    for (int32_t i = 0; sh->form.joined > 1 && i < sh->form.joined; i++) {
        args.part[i] = r->in[i]->data;
        args.ends[i] = sh->ends[i];
    }
    args.out = o.out;
    cuda_pointwise_sizes(&sh->form, &args);
    void *list[] = {&args};
    CUDA_TRY(overlap_launch_code(begins_early(r), generated,
                                 dim3((args.n + CUDA_POINTWISE_BLOCK - 1) / CUDA_POINTWISE_BLOCK),
                                 dim3(CUDA_POINTWISE_BLOCK), 0, cuda_stream(r), list));
    return GRT_OK;
}

/* Views may begin anywhere; whole vectors need their alignment. */
bool is_aligned(const grt_run *r, const shape *sh, const operands &o)
{
    const int32_t joined = sh->form.joined > 1 ? sh->form.joined : 0;
    bool aligned = cuda_aligned(o.out, FAST_VECTOR * grt_dtype_size(sh->form.out_dtype));
    for (int32_t k = 0; k < joined; k++)
        aligned = aligned && cuda_aligned(r->in[k]->data, FAST_VECTOR * grt_dtype_size(sh->form.in_dtype[0]));
    for (int32_t k = joined > 0; k < sh->form.n_in; k++)
        aligned = aligned && (!cuda_pointwise_reads_vectors(&sh->form, k) ||
                              cuda_aligned(o.in[k], FAST_VECTOR * grt_dtype_size(sh->form.in_dtype[k])));
    return aligned;
}

template <int V>
grt_status cuda_pointwise_group_launch(const group_walk &walk, const program &p, const operands &o,
                                       cudaStream_t stream)
{
    if (p.n_registers <= 4)
        group_kernel<V, 4><<<cuda_grid(walk.total, BLOCK), BLOCK, 0, stream>>>(walk, p, o);
    else
        group_kernel<V, MAX_CODE><<<cuda_grid(walk.total, BLOCK), BLOCK, 0, stream>>>(walk, p, o);
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* Without generated code: the first operand as one tensor. */
grt_status join_first(const grt_run *r, const shape *sh, int32_t joined)
{
    const grt_tensor *whole = &sh->whole;
    void *parts[PW_MOST_JOINED];
    bool done = false;
    for (int32_t i = 0; i < joined; i++)
        parts[i] = (void *)r->in[i]->data;
    if (sh->joins_at_once)
        GRT_TRY(
            cuda_concat_run(&sh->join, r->workspace, parts, false, begins_early(r), cuda_stream(r), &done));
    const int32_t last = whole->rank - 1;
    const size_t size = grt_dtype_size(whole->dtype), pitch = (size_t)whole->dims[last] * size,
                 rows = (size_t)grt_dims_product(whole->dims, 0, last);
    char *to = (char *)r->workspace;
    for (int32_t i = 0; !done && i < joined; i++) {
        const size_t bytes = (size_t)r->in[i]->dims[last] * size;
        if (bytes)
            CUDA_TRY(cudaMemcpy2DAsync(to, pitch, r->in[i]->data, bytes, bytes, rows,
                                       cudaMemcpyDeviceToDevice, cuda_stream(r)));
        to += bytes;
    }
    return GRT_OK;
}

grt_status cuda_pointwise_group_run(const grt_run *r)
{
    const program *p = (const program *)r->state;
    const shape *sh = (const shape *)r->shape;
    if (sh->walk.total <= 0)
        return GRT_OK;
    operands o = {};
    int32_t last = sh->walk.rank - 1;
    bool aligned = sh->grouped && cuda_aligned(r->out[0]->data, VECTOR * grt_dtype_size(p->out_dtype));
    for (int32_t k = 0; k < p->n_in; k++) {
        const void *data = k ? r->in[p->joined + k - 1]->data : p->joined > 1 ? r->workspace : r->in[0]->data;
        o.in[k] = (const char *)data + sh->offsets[k];
        o.packed[k] = sh->walk.strides[k + 1][last] == 1;
        aligned &= !o.packed[k] || cuda_aligned(o.in[k], VECTOR * grt_dtype_size(p->in_dtype[k]));
    }
    o.out = r->out[0]->data;
    const cudaKernel_t generated = cuda_code_kernel(sh->code);
    const bool formed = (generated || sh->fast) && is_aligned(r, sh, o);
    if (formed && generated)
        return cuda_pointwise_group_launch_generated(sh, generated, o, r);
    if (p->joined > 1)
        GRT_TRY(join_first(r, sh, p->joined));
    if (formed) {
        CUDA_TRY(overlap_launch(begins_early(r), fast_kernel, (sh->plan.n + FAST_BLOCK - 1) / FAST_BLOCK,
                                FAST_BLOCK, 0, cuda_stream(r), sh->plan, *p, o));
        return GRT_OK;
    }
    return aligned ? cuda_pointwise_group_launch<VECTOR>(sh->groups, *p, o, cuda_stream(r))
                   : cuda_pointwise_group_launch<1>(sh->walk, *p, o, cuda_stream(r));
}

#define TYPES (GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16) | GRT_BIT(BOOL))
const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "Pointwise",
     .types = {TYPES, TYPES, TYPES, TYPES},
     .flags = GRT_KERNEL_CHOOSES |
              0xff, /* any input that dies here: an element is read by the thread that writes it, before */
     .supports = cuda_pointwise_group_supports,
     .create = cuda_pointwise_group_create,
     .destroy = free,
     .reshape = cuda_pointwise_group_reshape,
     .release_shape = cuda_pointwise_group_release_shape,
     .run = cuda_pointwise_group_run},
    {.domain = "graphrt",
     .op = "PointwiseParts", /* parts may have as many elements as the result in all: none is overwritten */
     .types = {TYPES, TYPES, TYPES, TYPES},
     .flags = GRT_KERNEL_CHOOSES,
     .supports = cuda_pointwise_group_supports,
     .create = cuda_pointwise_group_create,
     .destroy = free,
     .reshape = cuda_pointwise_group_reshape,
     .release_shape = cuda_pointwise_group_release_shape,
     .run = cuda_pointwise_group_run},
    {.domain = "graphrt",
     .op = "PointwiseConcat",
     .types = {TYPES, TYPES, TYPES, TYPES},
     .flags = GRT_KERNEL_CHOOSES,
     .supports = cuda_pointwise_group_supports,
     .create = cuda_pointwise_group_create,
     .destroy = free,
     .reshape = cuda_pointwise_group_reshape,
     .release_shape = cuda_pointwise_group_release_shape,
     .run = cuda_pointwise_group_run},
};

} // namespace
CUDA_KERNELS(pointwise_group, rows);
