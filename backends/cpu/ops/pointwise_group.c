/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Pointwise on the CPU: the program is run over blocks that stay in the first-level cache, one
 * vectorised loop per instruction, so that intermediate results never reach memory. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/pointwise_loops.h"
#include "backends/cpu/pointwise_walk.h"

#include <stdlib.h>
#include <string.h>

typedef enum source_kind { SOURCE_INPUT, SOURCE_CONSTANT, SOURCE_REGISTER } source_kind;

typedef struct source {
    source_kind kind;
    int32_t index;
} source;

typedef struct instruction {
    pw_loop loop;
    int32_t arity, target; /* register */
    source in[PW_MAX_OPERANDS];
    float p[PW_MAX_PARAMS];
} instruction;

typedef struct program {
    int32_t n_in, n_constants, n_registers;
    size_t n;
    const pw_f32_tables *tables;
    grt_dtype *dtypes; /* of the inputs */
    grt_dtype out_dtype;
    float *constants;
    instruction code[];
} program;

typedef struct shape {
    pw_walk *walk;
    const void *data[]; /* set by each run */
} shape;

static void destroy(void *object)
{
    program *p = object;
    if (p) {
        free(p->dtypes);
        free(p->constants);
    }
    free(p);
}

/* ---- registers ---- */

/* Operand numbers of the attribute: inputs, constants, results. */
static source source_of(const program *p, const int32_t *target_of, int64_t operand)
{
    if (operand < p->n_in)
        return (source){SOURCE_INPUT, (int32_t)operand};
    operand -= p->n_in;
    if (operand < p->n_constants)
        return (source){SOURCE_CONSTANT, (int32_t)operand};
    return (source){SOURCE_REGISTER, target_of[operand - p->n_constants]};
}

/* A register is free after the last reader of its value; that reader may overwrite it. */
static grt_status assign_registers(program *p, const int64_t *code)
{
    size_t n = p->n;
    int64_t first_result = p->n_in + p->n_constants;
    size_t *last_use = calloc(n, sizeof *last_use);
    int32_t *target_of = calloc(n, sizeof *target_of), *idle = calloc(n, sizeof *idle);
    grt_status status = last_use && target_of && idle ? GRT_OK : grt_fail_memory(n * sizeof *last_use);
    for (size_t i = 0; status == GRT_OK && i < n; i++) {
        last_use[i] = i;
        for (int k = 0; k < p->code[i].arity; k++)
            if (code[4 * i + 1 + k] >= first_result)
                last_use[code[4 * i + 1 + k] - first_result] = i;
    }
    int32_t n_idle = 0;
    for (size_t i = 0; status == GRT_OK && i < n; i++) {
        instruction *in = &p->code[i];
        for (int k = 0; k < in->arity; k++) {
            int64_t result = code[4 * i + 1 + k] - first_result;
            in->in[k] = source_of(p, target_of, code[4 * i + 1 + k]);
            if (result >= 0 && last_use[result] == i) {
                idle[n_idle++] = target_of[result];
                last_use[result] = n; /* an operand that occurs twice is freed once */
            }
        }
        in->target = n_idle ? idle[--n_idle] : p->n_registers++;
        target_of[i] = in->target;
        if (last_use[i] == i) /* never read */
            idle[n_idle++] = in->target;
    }
    free(last_use);
    free(target_of);
    free(idle);
    return status;
}

static grt_status create(const grt_kernel_node *node, void **out_state)
{
    size_t n, n_constants;
    GRT_TRY(grt_pointwise_check(node->desc, node->n_in));
    const int64_t *code = grt_attr_ints(node->desc, "program", &n);
    const float *constants = grt_attr_floats(node->desc, "constants", &n_constants);
    n /= 4;
    program *p = calloc(1, sizeof *p + n * sizeof *p->code);
    if (!p)
        return grt_fail_memory(sizeof *p + n * sizeof *p->code);
    p->n = n;
    p->n_in = node->n_in;
    p->n_constants = (int32_t)n_constants;
    p->tables = cpu_pw_f32();
    p->out_dtype = node->out[0].dtype;
    p->dtypes = calloc((size_t)node->n_in, sizeof *p->dtypes);
    p->constants = calloc(n_constants + 1, sizeof *p->constants);
    grt_status status =
        p->dtypes && p->constants ? GRT_OK : grt_fail_memory(n_constants * sizeof *p->constants);
    for (int32_t i = 0; status == GRT_OK && i < node->n_in; i++)
        p->dtypes[i] = node->in[i].dtype;
    if (status == GRT_OK && n_constants)
        memcpy(p->constants, constants, n_constants * sizeof *constants);
    for (size_t i = 0; status == GRT_OK && i < n; i++) {
        const pw_info *info = grt_pointwise_info((int32_t)code[4 * i]);
        p->code[i].loop = code[4 * i] == PW_Pow ? cpu_pw_power_f32 : p->tables->group[code[4 * i]];
        p->code[i].arity = info->arity;
        for (int k = 0; k < info->n_params; k++)
            p->code[i].p[k] = constants[code[4 * i + 1 + info->arity + k] - node->n_in];
    }
    if (status == GRT_OK)
        status = assign_registers(p, code);
    if (status != GRT_OK) {
        destroy(p);
        return status;
    }
    *out_state = p;
    return GRT_OK;
}

/* ---- running ---- */

static bool widened(const program *p, int32_t i)
{
    return p->dtypes[i] != GRT_DTYPE_FLOAT;
}

static void widen(const program *p, int32_t i, int64_t n, const void *in, float *out)
{
    if (p->dtypes[i] == GRT_DTYPE_BOOL)
        p->tables->from_bool(n, in, out);
    else if (p->dtypes[i] == GRT_DTYPE_FLOAT16)
        p->tables->from_half(n, in, out);
    else
        p->tables->from_bfloat16(n, in, out);
}

static void narrow(const program *p, int64_t n, const float *in, void *out)
{
    if (p->out_dtype == GRT_DTYPE_BOOL)
        p->tables->to_bool(n, in, out);
    else if (p->out_dtype == GRT_DTYPE_FLOAT16)
        p->tables->to_half(n, in, out);
    else
        p->tables->to_bfloat16(n, in, out);
}

/* Scratch: a float block per widened input, then one per register. */
static void block_group(const void *user, int64_t n, void *out, const void *const *in, const uint8_t *scalar,
                        void *scratch)
{
    const program *p = user;
    float *registers = scratch;
    for (int32_t i = 0; i < p->n_in; i++)
        if (widened(p, i)) {
            widen(p, i, scalar[i] ? 1 : n, in[i], registers);
            registers += PW_BLOCK;
        }
    for (size_t i = 0; i < p->n; i++) {
        const instruction *code = &p->code[i];
        const void *from[PW_MAX_OPERANDS];
        uint8_t flags[PW_MAX_OPERANDS];
        for (int k = 0; k < code->arity; k++) {
            int32_t index = code->in[k].index;
            flags[k] = 1;
            if (code->in[k].kind == SOURCE_CONSTANT) {
                from[k] = &p->constants[index];
            } else if (code->in[k].kind == SOURCE_REGISTER) {
                from[k] = registers + (size_t)index * PW_BLOCK;
                flags[k] = 0;
            } else {
                from[k] = in[index];
                flags[k] = scalar[index];
                if (widened(p, index)) {
                    float *block = scratch;
                    for (int32_t j = 0; j < index; j++)
                        block += widened(p, j) ? PW_BLOCK : 0;
                    from[k] = block;
                }
            }
        }
        bool last = i + 1 == p->n && p->out_dtype == GRT_DTYPE_FLOAT;
        code->loop(n, last ? out : registers + (size_t)code->target * PW_BLOCK, from, flags, code->p);
    }
    if (p->out_dtype != GRT_DTYPE_FLOAT)
        narrow(p, n, registers + (size_t)p->code[p->n - 1].target * PW_BLOCK, out);
}

static void release(void *object)
{
    shape *sh = object;
    if (sh)
        cpu_pw_walk_release(sh->walk);
    free(sh);
}

static grt_status reshape(grt_reshape *r)
{
    const program *p = r->state;
    size_t blocks = (size_t)p->n_registers;
    for (int32_t i = 0; i < p->n_in; i++)
        blocks += widened(p, i);
    shape *sh = calloc(1, sizeof *sh + (size_t)r->n_in * sizeof *sh->data);
    grt_status status = sh ? GRT_OK : grt_fail_memory(sizeof *sh);
    if (status == GRT_OK)
        status = cpu_pw_walk_create(r->out[0]->rank, r->out[0]->dims, r->n_in, r->in, r->threads,
                                    blocks * PW_BLOCK * sizeof(float), &sh->walk);
    if (status != GRT_OK) {
        release(sh);
        return status;
    }
    r->shape = sh;
    r->workspace_bytes = cpu_pw_walk_workspace(sh->walk);
    return GRT_OK;
}

static grt_status run(const grt_run *r)
{
    shape *sh = r->shape;
    for (int32_t i = 0; i < r->n_in; i++)
        sh->data[i] = r->in[i]->data;
    cpu_pw_walk_run(sh->walk, sh->data, r->out[0]->data, grt_dtype_size(r->out[0]->dtype), r->workspace,
                    block_group, r->state);
    return GRT_OK;
}

#define TYPES (GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16) | GRT_BIT(BOOL))
static const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "Pointwise",
     .types = {TYPES, TYPES, TYPES, TYPES},
     .flags = 0xff, /* in place on any input: a block is read before it is written */
     .create = create,
     .destroy = destroy,
     .reshape = reshape,
     .release_shape = release,
     .run = run},
};
CPU_KERNELS(pointwise_group, rows);
