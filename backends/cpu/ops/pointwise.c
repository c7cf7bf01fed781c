/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of all ops that are one function of pointwise.def: unary, binary, Clip, and the variadic Max, Min,
 * Sum, Mean. 16-bit floats are computed in float32, block by block. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/pointwise_loops.h"
#include "backends/cpu/pointwise_walk.h"
#include "backends/shared/pointwise_rows.h"
#include "src/base/float.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum form {
    FORM_CALL, /* the function's arity is the op's */
    FORM_FOLD, /* a binary function folds any number of operands */
    FORM_COPY, /* the same, of one operand */
} form;

typedef struct state {
    form form;
    pw_loop loop;
    pw_loop divide; /* Mean: the sum is divided by `divisor` */
    double divisor_storage;
    float p[PW_MAX_PARAMS];
    grt_dtype dtype;
    bool truth;
    int32_t n_in;         /* operands, omitted bounds of Clip included */
    grt_tensor absent[3]; /* stand in for omitted inputs */
    uint64_t limits[3];   /* their elements */
} state;

typedef struct shape {
    pw_walk *walk;
    const void *data[]; /* set by each run */
} shape;

/* What a block function sees. */
typedef struct call {
    const state *state;
    void (*widen)(int64_t n, const uint16_t *in, float *out);
    void (*narrow)(int64_t n, const float *in, uint16_t *out);
} call;

static void block_typed(const void *user, int64_t n, void *out, const void *const *in, const uint8_t *scalar,
                        void *scratch)
{
    const state *s = ((const call *)user)->state;
    (void)scratch;
    s->loop(n, out, in, scalar, s->p);
}

/* One operand of a variadic op. */
static void block_copy(const void *user, int64_t n, void *out, const void *const *in, const uint8_t *scalar,
                       void *scratch)
{
    size_t size = grt_dtype_size(((const call *)user)->state->dtype);
    (void)scratch;
    if (!scalar[0]) {
        memmove(out, in[0], (size_t)n * size);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memmove((char *)out + (size_t)i * size, in[0], size);
}

/* Fold the operands from the left. The sum so far stays in scratch, as `out` may be the memory of a later
 * operand. */
static void fold(const state *s, int64_t n, void *out, const void *const *in, const uint8_t *scalar,
                 void *scratch)
{
    const void *pair[2] = {in[0], NULL};
    uint8_t flags[2] = {scalar[0], 0};
    for (int32_t k = 1; k < s->n_in; k++) {
        void *to = k + 1 == s->n_in && !s->divide ? out : scratch;
        pair[1] = in[k];
        flags[1] = scalar[k];
        s->loop(n, to, pair, flags, s->p);
        pair[0] = to;
        flags[0] = 0;
    }
    if (!s->divide)
        return;
    pair[1] = &s->divisor_storage;
    flags[1] = 1;
    s->divide(n, out, pair, flags, s->p);
}

static void block_fold(const void *user, int64_t n, void *out, const void *const *in, const uint8_t *scalar,
                       void *scratch)
{
    fold(((const call *)user)->state, n, out, in, scalar, scratch);
}

/* 16-bit floats. Scratch: one float block per operand, one for the result, one to fold in; then the operand
 * pointers. */
static void block_16(const void *user, int64_t n, void *out, const void *const *in, const uint8_t *scalar,
                     void *scratch)
{
    const call *c = user;
    const state *s = c->state;
    float *buffer = scratch, *result = buffer + (size_t)s->n_in * PW_BLOCK, *extra = result + PW_BLOCK;
    const void **wide = (const void **)(void *)(extra + PW_BLOCK);
    for (int32_t k = 0; k < s->n_in; k++) {
        c->widen(scalar[k] ? 1 : n, in[k], buffer + (size_t)k * PW_BLOCK);
        wide[k] = buffer + (size_t)k * PW_BLOCK;
    }
    void *to = s->truth ? out : result;
    if (s->form == FORM_FOLD)
        fold(s, n, to, wide, scalar, extra);
    else
        s->loop(n, to, wide, scalar, s->p);
    if (!s->truth)
        c->narrow(n, result, out);
}

static bool is_16(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT16 || dtype == GRT_DTYPE_BFLOAT16;
}

/* Lowest (or highest) element of a dtype, as its bytes. */
static uint64_t limit_bits(grt_dtype dtype, bool high)
{
    size_t bits = grt_dtype_bits(dtype);
    union {
        uint64_t u;
        float f;
        double d;
    } v = {0};
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
        v.f = high ? INFINITY : -INFINITY;
        return v.u;
    case GRT_DTYPE_DOUBLE:
        v.d = high ? (double)INFINITY : -(double)INFINITY;
        return v.u;
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

static grt_status cpu_pointwise_create(const grt_kernel_node *node, void **out_state)
{
    state *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    bool mean = !strcmp(node->desc->op, "Mean"), clip = !strcmp(node->desc->op, "Clip");
    bool variadic = mean || !strcmp(node->desc->op, "Sum") || !strcmp(node->desc->op, "Max") ||
                    !strcmp(node->desc->op, "Min");
    int32_t opcode = mean ? PW_Add : grt_pointwise_function_of(node->desc);
    s->dtype = node->in[0].dtype;
    grt_dtype compute = is_16(s->dtype) ? GRT_DTYPE_FLOAT : s->dtype;
    pw_table table = cpu_pw_table(compute);
    s->loop = table ? table[opcode] : NULL;
    s->truth = grt_pointwise_info(opcode)->truth;
    s->n_in = variadic ? node->n_in : grt_pointwise_info(opcode)->arity;
    s->form = !variadic ? FORM_CALL : node->n_in == 1 ? FORM_COPY : FORM_FOLD;
    (void)grt_pointwise_params(node->desc, opcode, s->p);
    if (mean && table) {
        float count_f = (float)node->n_in;
        s->divide = table[PW_Div];
        s->divisor_storage = (double)node->n_in;
        if (compute == GRT_DTYPE_FLOAT)
            memcpy(&s->divisor_storage, &count_f, sizeof count_f);
    }
    for (int32_t i = 1; clip && i < 3; i++) {
        s->limits[i] = limit_bits(s->dtype, i == 2);
        s->absent[i] = (grt_tensor){.dtype = s->dtype, .data = &s->limits[i]};
    }
    if (!s->loop) {
        free(s);
        return grt_fail_op(node->desc, GRT_STATUS_INVALID_PLAN,
                           "input 0 is %s in the plan, a type that %s does not compute with",
                           grt_dtype_name(node->in[0].dtype), node->desc->op);
    }
    *out_state = s;
    return GRT_OK;
}

static const grt_tensor *operand_of(const state *s, const grt_tensor *const *in, int32_t n_in, int32_t k)
{
    return k < n_in && in[k] ? in[k] : &s->absent[k];
}

static void pointwise_release(void *object)
{
    shape *sh = object;
    if (sh)
        cpu_pw_walk_release(sh->walk);
    free(sh);
}

static grt_status pointwise_reshape(grt_reshape *r)
{
    const state *s = r->state;
    size_t n = (size_t)s->n_in, bytes = sizeof(shape) + n * sizeof(void *);
    shape *sh = calloc(1, bytes);
    const grt_tensor **in = calloc(n, sizeof *in);
    grt_status status = sh && in ? GRT_OK : grt_fail_memory(bytes);
    for (int32_t k = 0; status == GRT_OK && k < s->n_in; k++)
        in[k] = operand_of(s, r->in, r->n_in, k);
    size_t scratch = is_16(s->dtype)        ? (n + 2) * PW_BLOCK * sizeof(float) + n * sizeof(void *)
                     : s->form == FORM_FOLD ? PW_BLOCK * grt_dtype_size(s->dtype)
                                            : 0;
    if (status == GRT_OK)
        status =
            cpu_pw_walk_create(r->out[0]->rank, r->out[0]->dims, s->n_in, in, r->threads, scratch, &sh->walk);
    free(in);
    if (status != GRT_OK) {
        pointwise_release(sh);
        return status;
    }
    r->shape = sh;
    r->workspace_bytes = cpu_pw_walk_workspace(sh->walk);
    return GRT_OK;
}

static grt_status pointwise_run(const grt_run *r)
{
    const state *s = r->state;
    shape *sh = r->shape;
    for (int32_t k = 0; k < s->n_in; k++)
        sh->data[k] = operand_of(s, r->in, r->n_in, k)->data;
    call c = {.state = s};
    pw_block block = s->form == FORM_COPY ? block_copy : s->form == FORM_FOLD ? block_fold : block_typed;
    if (is_16(s->dtype) && s->form != FORM_COPY) {
        const pw_f32_tables *tables = cpu_pw_f32();
        bool half = s->dtype == GRT_DTYPE_FLOAT16;
        c.widen = half ? tables->from_half : tables->from_bfloat16;
        c.narrow = half ? tables->to_half : tables->to_bfloat16;
        block = block_16;
    }
    cpu_pw_walk_run(sh->walk, sh->data, r->out[0]->data, grt_dtype_size(r->out[0]->dtype), r->workspace,
                    block, &c);
    return GRT_OK;
}

#define ROW(opname, set)                                       \
    {.domain = "",                                             \
     .op = opname,                                             \
     .types = {set, set, set},                                 \
     .flags = GRT_KERNEL_IN_PLACE(0) | GRT_KERNEL_IN_PLACE(1), \
     .create = cpu_pointwise_create,                           \
     .destroy = free,                                          \
     .reshape = pointwise_reshape,                             \
     .release_shape = pointwise_release,                       \
     .run = pointwise_run},

static const grt_kernel_row rows[] = {
#define PW_ROWS_ONLY
#define PW(name, since, arity, kind, n_params, p0, d0, p1, d1, expr) ROW(#name, TYPES_##kind)
#include "src/base/pointwise.def"
#undef PW
#undef PW_ROWS_ONLY
    POINTWISE_ROWS(ROW)};
CPU_KERNELS(pointwise, rows);
