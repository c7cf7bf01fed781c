/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Pointwise, PointwiseParts and PointwiseConcat on the CPU: the program is run over blocks that stay
 * in the first-level cache, one vectorised loop per instruction, so that intermediate results never reach
 * memory. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/pointwise_loops.h"
#include "backends/cpu/pointwise_walk.h"
#include "src/base/checked.h"
#include "src/base/pointwise_parts.h"

#include <stdlib.h>
#include <string.h>

typedef struct group {
    pw_program *program;
    const pw_f32_tables *tables;
    grt_dtype *dtypes; /* of the operands */
    int32_t joined;    /* inputs that are the first operand */
    grt_dtype out_dtype;
} group;

typedef struct shape {
    pw_walk *walk;
    size_t *offsets;    /* of parts, in bytes */
    grt_tensor whole;   /* the first operand, if it is joined of several */
    size_t whole_bytes; /* which the workspace begins with */
    const void *data[]; /* set by each run */
} shape;

static void pointwise_group_destroy(void *object)
{
    group *g = object;
    if (g) {
        free(g->dtypes);
        free(g->program);
    }
    free(g);
}

static grt_status pointwise_group_create(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(grt_pointwise_check_operands(node->desc, node->n_in));
    group *g = calloc(1, sizeof *g);
    if (!g)
        return grt_fail_memory(sizeof *g);
    g->tables = cpu_pw_f32();
    g->out_dtype = node->out[0].dtype;
    g->joined = grt_pointwise_joined(node->desc);
    const int32_t n = node->n_in - g->joined + 1;
    g->dtypes = calloc((size_t)n, sizeof *g->dtypes);
    const grt_status status = g->dtypes ? grt_pointwise_decode(node->desc, n, true, &g->program)
                                        : grt_fail_memory((size_t)n * sizeof *g->dtypes);
    if (status != GRT_OK) {
        pointwise_group_destroy(g);
        return status;
    }
    for (int32_t i = 0; i < n; i++)
        g->dtypes[i] = node->in[i ? g->joined + i - 1 : 0].dtype;
    *out_state = g;
    return GRT_OK;
}

static bool pointwise_group_widened(const group *g, int32_t i)
{
    return g->dtypes[i] != GRT_DTYPE_FLOAT;
}

static void pointwise_group_widen(const group *g, int32_t i, int64_t n, const void *in, float *out)
{
    if (g->dtypes[i] == GRT_DTYPE_BOOL)
        g->tables->from_bool(n, in, out);
    else if (g->dtypes[i] == GRT_DTYPE_FLOAT16)
        g->tables->from_half(n, in, out);
    else
        g->tables->from_bfloat16(n, in, out);
}

static void narrow(const group *g, int64_t n, const float *in, void *out)
{
    if (g->out_dtype == GRT_DTYPE_BOOL)
        g->tables->to_bool(n, in, out);
    else if (g->out_dtype == GRT_DTYPE_FLOAT16)
        g->tables->to_half(n, in, out);
    else
        g->tables->to_bfloat16(n, in, out);
}

/* Scratch: a float block per widened input, then one per register. */
static void block_group(const void *user, int64_t n, void *out, const void *const *in, const uint8_t *scalar,
                        void *scratch)
{
    const group *g = user;
    const pw_program *p = g->program;
    float *registers = scratch;
    for (int32_t i = 0; i < p->n_in; i++)
        if (pointwise_group_widened(g, i)) {
            pointwise_group_widen(g, i, scalar[i] ? 1 : n, in[i], registers);
            registers += PW_BLOCK;
        }
    for (int32_t i = 0; i < p->n; i++) {
        const pw_instruction *code = &p->code[i];
        const void *from[PW_MAX_OPERANDS];
        uint8_t flags[PW_MAX_OPERANDS];
        for (int k = 0; k < code->arity; k++) {
            int32_t index = code->index[k];
            flags[k] = 1;
            if (code->kind[k] == PW_SOURCE_CONSTANT) {
                from[k] = &p->constants[index];
            } else if (code->kind[k] == PW_SOURCE_REGISTER) {
                from[k] = registers + (size_t)index * PW_BLOCK;
                flags[k] = 0;
            } else {
                from[k] = in[index];
                flags[k] = scalar[index];
                if (pointwise_group_widened(g, index)) {
                    float *block = scratch;
                    for (int32_t j = 0; j < index; j++)
                        block += pointwise_group_widened(g, j) ? PW_BLOCK : 0;
                    from[k] = block;
                }
            }
        }
        bool last = i + 1 == p->n && g->out_dtype == GRT_DTYPE_FLOAT;
        const pw_loop loop = code->opcode == PW_Pow ? cpu_pw_power_f32 : g->tables->group[code->opcode];
        loop(n, last ? out : registers + (size_t)code->target * PW_BLOCK, from, flags, code->p);
    }
    if (g->out_dtype != GRT_DTYPE_FLOAT)
        narrow(g, n, registers + (size_t)p->code[p->n - 1].target * PW_BLOCK, out);
}

static void pointwise_group_release(void *object)
{
    shape *sh = object;
    if (sh) {
        cpu_pw_walk_release(sh->walk);
        free(sh->offsets);
    }
    free(sh);
}

static grt_status pointwise_group_walk(grt_reshape *r, size_t scratch_bytes, shape *sh)
{
    const group *g = r->state;
    const int32_t n = g->program->n_in;
    int64_t(*strides)[GRT_MAX_RANK] = calloc((size_t)n, sizeof *strides);
    const grt_tensor **in = calloc((size_t)n, sizeof *in);
    grt_status status = strides && in && sh->offsets ? GRT_OK : grt_fail_memory((size_t)n * sizeof *strides);
    if (status == GRT_OK && g->joined > 1)
        status = grt_pointwise_join(r->desc, r->in, g->joined, &sh->whole);
    for (int32_t i = 0; status == GRT_OK && i < n; i++) {
        pw_part_view view;
        in[i] = i ? r->in[g->joined + i - 1] : g->joined > 1 ? &sh->whole : r->in[0];
        status = grt_pointwise_view_part(r->desc, i, in[i], &view);
        if (status != GRT_OK)
            break;
        grt_pointwise_view_strides(&view, r->out[0]->rank, strides[i]);
        if (grt_tensor_elements(r->out[0]) > 0) /* else there may be no data */
            sh->offsets[i] = (size_t)view.offset * grt_dtype_size(in[i]->dtype);
    }
    if (status == GRT_OK)
        status = cpu_pw_walk_create_strided(r->out[0]->rank, r->out[0]->dims, n, in,
                                            (const int64_t(*)[GRT_MAX_RANK])strides, r->threads,
                                            scratch_bytes, &sh->walk);
    free(strides);
    free(in);
    return status;
}

static grt_status pointwise_group_reshape(grt_reshape *r)
{
    const group *g = r->state;
    const size_t n = (size_t)g->program->n_in;
    size_t blocks = (size_t)g->program->n_registers;
    for (int32_t i = 0; i < g->program->n_in; i++)
        blocks += pointwise_group_widened(g, i);
    shape *sh = calloc(1, sizeof *sh + n * sizeof *sh->data);
    if (sh)
        sh->offsets = calloc(n, sizeof *sh->offsets);
    grt_status status =
        sh ? pointwise_group_walk(r, blocks * PW_BLOCK * sizeof(float), sh) : grt_fail_memory(sizeof *sh);
    if (status == GRT_OK && g->joined > 1) {
        sh->whole_bytes = grt_elements_bytes(sh->whole.dtype, grt_tensor_elements(&sh->whole));
        if (sh->whole_bytes > SIZE_MAX / 2)
            status = grt_fail_memory(sh->whole_bytes);
        sh->whole_bytes = grt_align_up(sh->whole_bytes, 64);
    }
    if (status != GRT_OK) {
        pointwise_group_release(sh);
        return status;
    }
    r->shape = sh;
    r->workspace_bytes = sh->whole_bytes + cpu_pw_walk_workspace(sh->walk);
    return GRT_OK;
}

/* The first inputs one behind the other, row by row. */
static void pointwise_group_join(const grt_run *r, int32_t joined, const grt_tensor *whole)
{
    const int32_t last = whole->rank - 1;
    const size_t size = grt_dtype_size(whole->dtype), pitch = (size_t)whole->dims[last] * size;
    const int64_t rows = grt_dims_product(whole->dims, 0, last);
    size_t at = 0;
    for (int32_t i = 0; i < joined; i++) {
        const size_t bytes = (size_t)r->in[i]->dims[last] * size;
        for (int64_t row = 0; bytes && row < rows; row++)
            memcpy((char *)r->workspace + (size_t)row * pitch + at,
                   (const char *)r->in[i]->data + (size_t)row * bytes, bytes);
        at += bytes;
    }
}

static grt_status pointwise_group_run(const grt_run *r)
{
    const group *g = r->state;
    shape *sh = r->shape;
    if (g->joined > 1)
        pointwise_group_join(r, g->joined, &sh->whole);
    for (int32_t i = 0; i < g->program->n_in; i++) {
        const char *data = i ? r->in[g->joined + i - 1]->data : g->joined > 1 ? r->workspace : r->in[0]->data;
        sh->data[i] = data + sh->offsets[i];
    }
    cpu_pw_walk_run(sh->walk, sh->data, r->out[0]->data, grt_dtype_size(r->out[0]->dtype),
                    (char *)r->workspace + sh->whole_bytes, block_group, r->state);
    return GRT_OK;
}

#define TYPES (GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16) | GRT_BIT(BOOL))
#define GROUP(name, overwritten)                                                                      \
    {                                                                                                 \
        .domain = "graphrt", .op = name, .types = {TYPES, TYPES, TYPES, TYPES}, .flags = overwritten, \
        .create = pointwise_group_create, .destroy = pointwise_group_destroy,                         \
        .reshape = pointwise_group_reshape, .release_shape = pointwise_group_release,                 \
        .run = pointwise_group_run                                                                    \
    }
static const grt_kernel_row rows[] = {
    /* Any input that dies here: a block is read before it is written. */
    GROUP("Pointwise", 0xff),
    /* Parts may have as many elements as the result in all: none is overwritten. */
    GROUP("PointwiseParts", 0),
    GROUP("PointwiseConcat", 0),
};
CPU_KERNELS(pointwise_group, rows);
