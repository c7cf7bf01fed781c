/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Rows on the device. The kernel that was generated for the program (rows_source.h) runs once it is
 * there (backends/code.h). Until then, where none can be made, and for shapes that have no form, one kernel
 * interprets any program: a block has a row, and computes its elements anew for each fold, so that nothing
 * has to be kept. */
#include "backends/cuda/code.h"
#include "backends/cuda/generated.h"
#include "backends/cuda/libraries.h"
#include "backends/cuda/overlap.cuh"
#include "backends/cuda/pointwise_eval.h"
#include "backends/cuda/rows_source.h"
#include "backends/cuda/walk.h"

namespace
{

enum { BLOCK = 256, WARP = 32 };

enum operand_kind : uint8_t { OF_INPUT, OF_CONSTANT, OF_RESULT };

struct instruction {
    int16_t opcode; /* as in the attribute */
    uint8_t arity;
    rows_fold fold; /* of a fold */
    operand_kind kind[PW_MAX_OPERANDS];
    uint8_t index[PW_MAX_OPERANDS];
    float p[PW_MAX_PARAMS];
};

struct program {
    int32_t n, n_in;
    bool number; /* the result is one for each row */
    grt_dtype in_dtype[ROWS_MAX_INPUTS], out_dtype;
    float constants[ROWS_MAX_CONSTANTS];
    instruction code[ROWS_MAX_INSTRUCTIONS];
};

typedef cuda_walk<ROWS_MAX_INPUTS + 1, GRT_MAX_RANK> row_walk;

struct state {
    rows_program *decoded;
    int32_t row_dims;
    program interpreted;
};

struct shape {
    bool formed;
    cuda_rows_form form;
    grt_code *code; /* NULL: there is none */
    row_walk walk;  /* over the rows: where each begins */
    int32_t length;
    bool has_row[ROWS_MAX_INPUTS];
};

struct places {
    const void *in[ROWS_MAX_INPUTS];
    void *out;
    bool has_row[ROWS_MAX_INPUTS];
    int32_t length;
};

/* ---- the interpreter ---- */

__device__ float load_element(grt_dtype dtype, const void *data, int64_t at)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
        return ((const float *)data)[at];
    case GRT_DTYPE_FLOAT16:
        return __half2float(((const __half *)data)[at]);
    case GRT_DTYPE_BFLOAT16:
        return __bfloat162float(((const __nv_bfloat16 *)data)[at]);
    default:
        return ((const uint8_t *)data)[at] ? 1.0f : 0.0f;
    }
}

__device__ void store_element(grt_dtype dtype, void *data, int64_t at, float x)
{
    if (dtype == GRT_DTYPE_FLOAT)
        ((float *)data)[at] = x;
    else if (dtype == GRT_DTYPE_FLOAT16)
        ((__half *)data)[at] = __float2half_rn(x);
    else if (dtype == GRT_DTYPE_BFLOAT16)
        ((__nv_bfloat16 *)data)[at] = __float2bfloat16_rn(x);
    else
        ((uint8_t *)data)[at] = x != 0.0f;
}

__device__ double rows_join(rows_fold fold, double a, double b)
{
    switch (fold) {
    case ROWS_SUM:
        return a + b;
    case ROWS_PRODUCT:
        return a * b;
    case ROWS_MAX:
        return b > a || b != b ? b : a;
    default:
        return b < a || b != b ? b : a;
    }
}

/* Element j of the row through the first n instructions; folds among them have their numbers. The result is
 * that of the last one, or what it folds. */
__device__ float evaluate(const program &p, const places &o, const int64_t *at, int32_t j, int32_t n,
                          const float *numbers)
{
    float results[ROWS_MAX_INSTRUCTIONS], x[PW_MAX_OPERANDS];
    for (int32_t i = 0; i < n; i++) {
        const instruction &in = p.code[i];
        for (int k = 0; k < PW_MAX_OPERANDS; k++) {
            const int32_t index = in.index[k];
            x[k] = k >= in.arity               ? 0.0f
                   : in.kind[k] == OF_CONSTANT ? p.constants[index]
                   : in.kind[k] == OF_RESULT   ? results[index]
                                               : load_element(p.in_dtype[index], o.in[index],
                                                              at[index + 1] + (o.has_row[index] ? j : 0));
        }
        if (in.opcode >= 0)
            results[i] = pw_eval_any<float>(in.opcode, x[0], x[1], x[2], in.p[0], in.p[1]);
        else
            results[i] = i + 1 == n ? x[0] : numbers[i];
    }
    return results[n - 1];
}

__global__ void __launch_bounds__(BLOCK)
    rows_kernel(const __grid_constant__ row_walk walk, const __grid_constant__ program p,
                const __grid_constant__ places o)
{
    __shared__ float numbers[ROWS_MAX_INSTRUCTIONS + 1];
    __shared__ double parts[BLOCK / WARP];
    for (int64_t row = blockIdx.x; row < walk.total; row += gridDim.x) {
        int64_t at[ROWS_MAX_INPUTS + 1];
        cuda_walk_at(walk, row, at);
        for (int32_t i = 0; i < p.n; i++) {
            if (p.code[i].opcode >= 0)
                continue;
            const rows_fold fold = p.code[i].fold;
            double sum = fold == ROWS_SUM       ? 0
                         : fold == ROWS_PRODUCT ? 1
                         : fold == ROWS_MAX     ? -(double)INFINITY
                                                : (double)INFINITY;
            const double start = sum;
            for (int32_t j = threadIdx.x; j < o.length; j += BLOCK)
                sum = rows_join(fold, sum, evaluate(p, o, at, j, i + 1, numbers));
            for (int lane = WARP / 2; lane; lane /= 2)
                sum = rows_join(fold, sum, __shfl_xor_sync(0xffffffffu, sum, lane));
            __syncthreads();
            if (threadIdx.x % WARP == 0)
                parts[threadIdx.x / WARP] = sum;
            __syncthreads();
            if (threadIdx.x == 0) {
                sum = start;
                for (int warp = 0; warp < BLOCK / WARP; warp++)
                    sum = rows_join(fold, sum, parts[warp]);
                numbers[i] = (float)sum;
            }
            __syncthreads();
        }
        const bool folds_last = p.code[p.n - 1].opcode < 0;
        for (int32_t j = threadIdx.x; j < (p.number ? 1 : o.length); j += BLOCK)
            store_element(p.out_dtype, o.out, p.number ? row : row * o.length + j,
                          folds_last ? numbers[p.n - 1] : evaluate(p, o, at, j, p.n, numbers));
        __syncthreads();
    }
}

/* ---- kernel life ---- */

void cuda_rows_destroy(void *object)
{
    state *s = (state *)object;
    if (s)
        free(s->decoded);
    free(s);
}

/* As the attribute has it: its order is one in which all can be computed. */
void interpret(const grt_kernel_node *node, const rows_program *decoded, program *p)
{
    size_t n, n_constants;
    const int64_t *code = grt_attr_ints(node->desc, "program", &n);
    (void)grt_attr_floats(node->desc, "constants", &n_constants);
    const int64_t results = node->n_in + (int64_t)n_constants;
    p->n = decoded->n;
    p->n_in = node->n_in;
    p->number = decoded->code[decoded->n - 1].by_row;
    p->out_dtype = node->out[0].dtype;
    for (int32_t i = 0; i < node->n_in; i++)
        p->in_dtype[i] = node->in[i].dtype;
    memcpy(p->constants, decoded->constants, sizeof p->constants);
    for (int32_t i = 0; i < p->n; i++) {
        instruction *in = &p->code[i];
        in->opcode = (int16_t)decoded->code[i].opcode;
        in->arity = (uint8_t)decoded->code[i].arity;
        in->fold = decoded->code[i].folds ? rows_fold_of(in->opcode) : ROWS_SUM;
        memcpy(in->p, decoded->code[i].p, sizeof in->p);
        for (int32_t k = 0; k < in->arity; k++) {
            const int64_t operand = code[4 * i + 1 + k];
            in->kind[k] = operand >= results ? OF_RESULT : operand >= node->n_in ? OF_CONSTANT : OF_INPUT;
            in->index[k] = (uint8_t)(operand - (operand >= results      ? results
                                                : operand >= node->n_in ? node->n_in
                                                                        : 0));
        }
    }
}

grt_status cuda_rows_create(const grt_kernel_node *node, void **out_state)
{
    state *s;
    GRT_TRY(cuda_state(&s));
    const grt_status status = grt_rows_decode(node->desc, node->n_in, &s->decoded);
    if (status != GRT_OK) {
        cuda_rows_destroy(s);
        return status;
    }
    s->row_dims = (int32_t)grt_attr_int(node->desc, "row_dims", 1);
    interpret(node, s->decoded, &s->interpreted);
    *out_state = s;
    return GRT_OK;
}

struct asked {
    const grt_reshape *r;
    const shape *sh;
};

void cuda_rows_add_key(const void *user, grt_text *key)
{
    const asked *a = (const asked *)user;
    cuda_rows_key(a->r->desc, &a->sh->form, key);
}

void cuda_rows_add_source(const void *user, grt_text *source)
{
    const asked *a = (const asked *)user;
    cuda_rows_source(((const state *)a->r->state)->decoded, &a->sh->form, source);
}

grt_status cuda_rows_find_generated(grt_reshape *r, shape *sh)
{
    const asked a = {r, sh};
    const cuda_generated wanted = {"Rows", cuda_rows_add_key, cuda_rows_add_source, &a, CUDA_ROWS_KERNEL, 0};
    return cuda_generated_take(r, &wanted, &sh->code);
}

void cuda_rows_release_shape(void *object)
{
    shape *sh = (shape *)object;
    grt_code_give(sh->code);
    free(sh);
}

/* Where each row begins: inputs and result without the row's dims are walked, in steps of rows. */
grt_status outer_of(const grt_reshape *r, int32_t row_dims, shape *sh)
{
    const int32_t rank = r->out[0]->rank;
    grt_tensor rows[ROWS_MAX_INPUTS] = {};
    const grt_tensor *in[ROWS_MAX_INPUTS] = {};
    int64_t length = 1, own[ROWS_MAX_INPUTS];
    for (int32_t i = 0; i < r->n_in; i++) {
        own[i] = 1;
        for (int32_t k = r->in[i]->rank - row_dims; k < r->in[i]->rank; k++)
            own[i] *= k >= 0 && own[i] <= ROWS_MAX_LENGTH ? r->in[i]->dims[k] : 1;
        length = own[i] != 1 ? own[i] : length;
    }
    for (int32_t i = 0; i < r->n_in; i++) {
        sh->has_row[i] = own[i] != 1;
        if (length < 1 || length > ROWS_MAX_LENGTH || (own[i] != 1 && own[i] != length))
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_MODEL,
                               "input %d has %lld elements of a row; it must have 1 or all %lld, at most %d",
                               (int)i, (long long)own[i], (long long)length, (int)ROWS_MAX_LENGTH);
    }
    if (row_dims < 1 || row_dims > rank)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_MODEL, "row_dims is %d; the result has %d dims",
                           (int)row_dims, (int)rank);
    for (int32_t i = 0; i < r->n_in; i++) {
        rows[i] = *r->in[i];
        rows[i].rank = rows[i].rank > row_dims ? rows[i].rank - row_dims : 0;
        in[i] = &rows[i];
    }
    grt_tensor out = *r->out[0];
    out.rank = rank - row_dims;
    cuda_walk_broadcast(&sh->walk, &out, r->n_in, in);
    for (int32_t i = 0; i < r->n_in; i++)
        for (int32_t k = 0; k < sh->walk.rank && sh->has_row[i]; k++)
            sh->walk.strides[i + 1][k] *= length;
    sh->length = (int32_t)length;
    return GRT_OK;
}

grt_status cuda_rows_reshape(grt_reshape *r)
{
    const state *s = (const state *)r->state;
    shape *sh;
    GRT_TRY(cuda_state(&sh));
    grt_status status = outer_of(r, s->row_dims, sh);
    sh->formed = status == GRT_OK && cuda_rows_form_of(s->decoded, s->row_dims, r->in, r->out[0], &sh->form);
    if (sh->formed)
        status = cuda_rows_find_generated(r, sh);
    if (status != GRT_OK) {
        free(sh);
        return status;
    }
    r->shape = sh;
    return GRT_OK;
}

/* Whole vectors need their alignment. */
bool rows_are_aligned(const grt_run *r, const shape *sh)
{
    bool aligned = cuda_aligned(r->out[0]->data, sh->form.vector * grt_dtype_size(sh->form.out_dtype));
    for (int32_t i = 0; i < r->n_in; i++)
        aligned =
            aligned && cuda_aligned(r->in[i]->data, sh->form.vector * grt_dtype_size(sh->form.in_dtype[i]));
    return aligned;
}

grt_status cuda_rows_run(const grt_run *r)
{
    const state *s = (const state *)r->state;
    const shape *sh = (const shape *)r->shape;
    if (sh->walk.total <= 0)
        return GRT_OK;
    const cudaKernel_t generated = cuda_code_kernel(sh->code);
    if (generated && rows_are_aligned(r, sh)) {
        cuda_rows_args args = {};
        for (int32_t i = 0; i < r->n_in; i++)
            args.in[i] = r->in[i]->data;
        args.out = r->out[0]->data;
        args.rows = sh->form.rows;
        memcpy(args.sizes, sh->form.sizes, sizeof args.sizes);
        void *list[] = {&args};
        CUDA_TRY(overlap_launch_code(((const cuda_device *)r->device)->prop.major >= 9, generated,
                                     dim3(cuda_rows_grid(&sh->form)), dim3(cuda_rows_block(&sh->form)), 0,
                                     cuda_stream(r), list));
        return GRT_OK;
    }
    places o = {};
    for (int32_t i = 0; i < r->n_in; i++) {
        o.in[i] = r->in[i]->data;
        o.has_row[i] = sh->has_row[i];
    }
    o.out = r->out[0]->data;
    o.length = sh->length;
    const int64_t most = 65535;
    rows_kernel<<<(uint32_t)(sh->walk.total < most ? sh->walk.total : most), BLOCK, 0, cuda_stream(r)>>>(
        sh->walk, s->interpreted, o);
    CUDA_LAUNCHED();
    return GRT_OK;
}

#define TYPES (GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16) | GRT_BIT(BOOL))
const grt_kernel_row rows[] = {
    /* Never in place: threads of a block read a row's elements while others write theirs. */
    {.domain = "graphrt",
     .op = "Rows",
     .types = {TYPES, TYPES, TYPES, TYPES},
     .flags = GRT_KERNEL_CHOOSES,
     .create = cuda_rows_create,
     .destroy = cuda_rows_destroy,
     .reshape = cuda_rows_reshape,
     .release_shape = cuda_rows_release_shape,
     .run = cuda_rows_run},
};

} // namespace
CUDA_KERNELS(rows, rows);
