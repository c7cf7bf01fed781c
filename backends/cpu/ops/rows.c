/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Rows on the CPU: as many rows at a time as fit a block of the first-level cache, one vectorised
 * loop per instruction. A longer row is computed in pieces; what passes from one phase to the next waits in a
 * buffer of one row. Threads share the rows, each row being one thread's. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/move.h"
#include "backends/cpu/pointwise_loops.h"
#include "backends/cpu/pointwise_walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 64 /* of a block */ };

typedef struct rows_state {
    rows_program *program;
    const pw_f32_tables *tables;
    int32_t row_dims;
    int32_t squared[ROWS_MAX_INSTRUCTIONS]; /* of a fold: the instruction right before it whose operand's
                                               squares it adds up, and which is not run; -1: none */
    bool skipped[ROWS_MAX_INSTRUCTIONS];
    grt_dtype dtypes[ROWS_MAX_INPUTS];
} rows_state;

/* How an input's elements are found: in element `offset of the row` + place in the row. */
typedef struct rows_input {
    bool has_row; /* else it has one element for a row */
    bool whole;   /* it has all rows, one behind the other */
    bool fixed;   /* it has one row for all */
    bool one;     /* it has one element for all */
    int64_t strides[GRT_MAX_RANK];
} rows_input;

typedef struct rows_shape {
    int64_t n_rows, length, block_rows;
    int32_t rank; /* of dims in front of the row, without those of 1 */
    int64_t dims[GRT_MAX_RANK];
    rows_input inputs[ROWS_MAX_INPUTS];
    grt_dtype out_dtype;
    int32_t threads;
    /* Bytes from a thread's memory to its parts. */
    size_t numbers_at, folds_at, inputs_at, spread_at, blocks_at, kept_at, thread_bytes;
    int64_t kept_length;
} rows_shape;

static void rows_destroy(void *object)
{
    rows_state *state = object;
    if (state)
        free(state->program);
    free(state);
}

/* x * x, which nothing but the sum behind it reads, needs no buffer. */
static void find_squares(rows_state *state)
{
    const rows_program *p = state->program;
    for (int32_t o = 0; o < p->n; o++)
        state->squared[o] = -1;
    for (int32_t o = 1; o < p->n; o++) {
        const int32_t i = p->order[o], m = p->order[o - 1];
        const rows_instruction *sum = &p->code[i], *product = &p->code[m];
        const rows_operand *a = product->operand, *result = &product->target;
        bool other = m + 1 == p->n;
        if (sum->opcode != rows_opcode_of(ROWS_SUM) || product->opcode != PW_Mul || product->by_row ||
            a[0].home != a[1].home || a[0].index != a[1].index || result->home != ROWS_BLOCK ||
            sum->operand[0].home != ROWS_BLOCK || sum->operand[0].index != result->index)
            continue;
        /* Who reads the buffer later, before it is written again, reads the product. */
        for (int32_t l = o + 1; l < p->n && !other; l++) {
            const rows_instruction *later = &p->code[p->order[l]];
            for (int32_t k = 0; k < later->arity; k++)
                other |= later->operand[k].home == ROWS_BLOCK && later->operand[k].index == result->index;
            if (later->target.home == ROWS_BLOCK && later->target.index == result->index)
                break;
        }
        if (other)
            continue;
        state->squared[i] = m;
        state->skipped[m] = true;
    }
}

static grt_status rows_create(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(rows_state), out_state));
    rows_state *state = *out_state;
    const grt_status status = grt_rows_decode(node->desc, node->n_in, &state->program);
    if (status != GRT_OK) {
        rows_destroy(state);
        *out_state = NULL;
        return status;
    }
    find_squares(state);
    state->tables = cpu_pw_f32();
    state->row_dims = (int32_t)grt_attr_int(node->desc, "row_dims", 1);
    for (int32_t i = 0; i < node->n_in; i++)
        state->dtypes[i] = node->in[i].dtype;
    return GRT_OK;
}

/* ---- shapes ---- */

/* The dim of the inputs' common shape. */
static int64_t dim_of_all(const grt_reshape *r, int32_t k)
{
    int64_t dim = 1;
    for (int32_t i = 0; i < r->n_in; i++) {
        const int32_t at = k - (r->out[0]->rank - r->in[i]->rank);
        dim = at >= 0 && r->in[i]->dims[at] != 1 ? r->in[i]->dims[at] : dim;
    }
    return dim;
}

static grt_status rows_place_input(const grt_reshape *r, const rows_shape *sh, int32_t outer, int32_t i,
                                   rows_input *input)
{
    const grt_tensor *in = r->in[i];
    int64_t strides[GRT_MAX_RANK], row = 1;
    const int32_t rank = r->out[0]->rank;
    for (int32_t k = outer; k < rank; k++)
        row *= k - (rank - in->rank) >= 0 ? in->dims[k - (rank - in->rank)] : 1;
    if (row != 1 && row != sh->length)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_MODEL,
                           "input %d has %lld elements of a row; it must have 1 or all %lld", (int)i,
                           (long long)row, (long long)sh->length);
    grt_broadcast_strides(in->dims, in->rank, rank, strides);
    const int64_t elements = grt_tensor_elements(in);
    *input = (rows_input){.has_row = row == sh->length,
                          .whole = elements == sh->n_rows * row,
                          .fixed = elements == row,
                          .one = elements == 1};
    for (int32_t k = 0, n = 0; k < outer; k++)
        if (r->out[0]->dims[k] != 1)
            input->strides[n++] = strides[k];
    return GRT_OK;
}

static size_t take(size_t *at, size_t bytes)
{
    const size_t begin = *at;
    *at += (bytes + 63) / 64 * 64;
    return begin;
}

static void rows_lay_out(const rows_program *p, rows_shape *sh)
{
    const size_t rows = (size_t)sh->block_rows, block = PW_BLOCK * sizeof(float);
    const int64_t row = (sh->length + 15) / 16 * 16;
    sh->kept_length = sh->block_rows > 1 ? PW_BLOCK : row;
    size_t at = 0;
    sh->numbers_at = take(&at, (size_t)p->n * rows * sizeof(float));
    sh->folds_at = take(&at, (size_t)p->n * rows * sizeof(double));
    sh->inputs_at = take(&at, (size_t)p->n_in * block);
    sh->spread_at = take(&at, PW_MAX_OPERANDS * block);
    sh->blocks_at = take(&at, (size_t)p->n_blocks * block);
    sh->kept_at = take(&at, (size_t)p->n_kept * (size_t)sh->kept_length * sizeof(float));
    sh->thread_bytes = at;
}

static grt_status rows_shape_of(const grt_reshape *r, rows_shape *sh)
{
    const rows_state *state = r->state;
    const int32_t rank = r->out[0]->rank, outer = rank - state->row_dims;
    if (state->row_dims < 1 || outer < 0)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_MODEL, "row_dims is %d; the result has %d dims",
                           (int)state->row_dims, (int)rank);
    sh->out_dtype = r->out[0]->dtype;
    sh->n_rows = grt_dims_product(r->out[0]->dims, 0, outer);
    sh->length = 1;
    for (int32_t k = outer; k < rank && sh->length <= ROWS_MAX_LENGTH; k++)
        sh->length *= dim_of_all(r, k);
    if (sh->length < 1 || sh->length > ROWS_MAX_LENGTH)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_MODEL, "a row must have 1 to %d elements",
                           (int)ROWS_MAX_LENGTH);
    for (int32_t k = 0; k < outer; k++)
        if (r->out[0]->dims[k] != 1)
            sh->dims[sh->rank++] = r->out[0]->dims[k];
    for (int32_t i = 0; i < r->n_in; i++)
        GRT_TRY(rows_place_input(r, sh, outer, i, &sh->inputs[i]));
    sh->block_rows = PW_BLOCK / sh->length;
    sh->block_rows = sh->block_rows < 1 ? 1 : sh->block_rows > MOST_ROWS ? MOST_ROWS : sh->block_rows;
    const int64_t useful = sh->n_rows * sh->length / CPU_GRAIN + 1;
    int64_t threads = r->threads < useful ? r->threads : useful;
    threads = threads < sh->n_rows ? threads : sh->n_rows;
    sh->threads = threads < 1 ? 1 : (int32_t)threads;
    rows_lay_out(state->program, sh);
    return GRT_OK;
}

static grt_status rows_reshape(grt_reshape *r)
{
    rows_shape *sh = calloc(1, sizeof *sh);
    if (!sh)
        return grt_fail_memory(sizeof *sh);
    const grt_status status = rows_shape_of(r, sh);
    if (status != GRT_OK) {
        free(sh);
        return status;
    }
    r->shape = sh;
    r->workspace_bytes = (size_t)sh->threads * sh->thread_bytes;
    return GRT_OK;
}

/* ---- running ---- */

typedef struct vector {
    const float *data;
    bool scalar;
} vector;

/* One thread's work: the rows from `row` on, and in them elements from `at` on. */
typedef struct rows_job {
    const rows_state *state;
    const rows_shape *sh;
    const grt_run *run;
    char *mine;
    int64_t row, rows, at, n; /* n elements in all */
    uint32_t ready, spread; /* bits: inputs that are ready for these elements; fixed ones that were spread */
    vector in[ROWS_MAX_INPUTS];
} rows_job;

static float *part(const rows_job *j, size_t at, int64_t elements)
{
    return (float *)(void *)(j->mine + at) + elements;
}

static void rows_widen(const rows_job *j, int32_t i, int64_t n, const void *from, float *to)
{
    const pw_f32_tables *tables = j->state->tables;
    switch (j->state->dtypes[i]) {
    case GRT_DTYPE_FLOAT:
        memcpy(to, from, (size_t)n * sizeof *to);
        break;
    case GRT_DTYPE_FLOAT16:
        tables->from_half(n, from, to);
        break;
    case GRT_DTYPE_BFLOAT16:
        tables->from_bfloat16(n, from, to);
        break;
    default:
        tables->from_bool(n, from, to);
    }
}

static const char *rows_row_of(const rows_job *j, int32_t i, int64_t row)
{
    const rows_input *input = &j->sh->inputs[i];
    const int64_t offset = input->fixed   ? 0
                           : input->whole ? row * (input->has_row ? j->sh->length : 1)
                                          : grt_strided_offset(j->sh->dims, j->sh->rank, input->strides, row);
    return (const char *)j->run->in[i]->data + (size_t)offset * grt_dtype_size(j->state->dtypes[i]);
}

/* Each row's element or elements, row by row. */
static void spread_rows(const rows_job *j, int32_t i, int64_t rows, float *to)
{
    const int64_t length = j->sh->length;
    for (int64_t r = 0; r < rows; r++, to += length) {
        const char *from = rows_row_of(j, i, j->row + r);
        if (j->sh->inputs[i].has_row) {
            rows_widen(j, i, length, from, to);
            continue;
        }
        float one;
        rows_widen(j, i, 1, from, &one);
        for (int64_t k = 0; k < length; k++)
            to[k] = one;
    }
}

static vector input_of(rows_job *j, int32_t i)
{
    const rows_input *input = &j->sh->inputs[i];
    const size_t size = grt_dtype_size(j->state->dtypes[i]);
    const bool wide = j->state->dtypes[i] == GRT_DTYPE_FLOAT, many = j->sh->block_rows > 1;
    const bool vectors = input->has_row && (!many || input->whole);
    float *own = part(j, j->sh->inputs_at, (int64_t)i * PW_BLOCK);
    if (j->ready >> i & 1)
        return j->in[i];
    j->ready |= 1u << i;
    j->in[i] = (vector){own, false};
    if (vectors || input->one || !many) {
        const char *from = rows_row_of(j, i, j->row) + (vectors ? (size_t)j->at * size : 0);
        j->in[i].scalar = !vectors;
        if (wide)
            j->in[i].data = (const float *)(const void *)from;
        else
            rows_widen(j, i, vectors ? j->n : 1, from, own);
    } else if (!input->fixed) {
        spread_rows(j, i, j->rows, own);
    } else if (!(j->spread >> i & 1)) {
        spread_rows(j, i, j->sh->block_rows, own);
        j->spread |= 1u << i;
    }
    return j->in[i];
}

static float *rows_numbers_of(const rows_job *j, int32_t instruction)
{
    return part(j, j->sh->numbers_at, instruction * j->sh->block_rows);
}

static float *buffer_of(const rows_job *j, rows_operand place)
{
    return place.home == ROWS_KEPT ? part(j, j->sh->kept_at, place.index * j->sh->kept_length + j->at)
                                   : part(j, j->sh->blocks_at, (int64_t)place.index * PW_BLOCK);
}

/* Operand k as elements of the rows. whole: not as a scalar. */
static vector rows_operand_of_block(rows_job *j, const rows_instruction *in, int32_t k, bool whole)
{
    const rows_operand from = in->operand[k];
    float *room = part(j, j->sh->spread_at, (int64_t)k * PW_BLOCK);
    vector v = {room, false};
    if (from.home == ROWS_INPUT)
        v = input_of(j, from.index);
    else if (from.home == ROWS_CONSTANT)
        v = (vector){&j->state->program->constants[from.index], true};
    else if (from.home != ROWS_NUMBER)
        v.data = buffer_of(j, from);
    else if (j->sh->block_rows == 1)
        v = (vector){rows_numbers_of(j, from.index), true};
    else
        j->state->tables->spread(j->rows, j->sh->length, rows_numbers_of(j, from.index), room);
    if (!whole || !v.scalar)
        return v;
    const float one = *v.data;
    for (int64_t i = 0; i < j->n; i++)
        room[i] = one;
    return (vector){room, false};
}

static pw_loop loop_of(const rows_job *j, const rows_instruction *in)
{
    return in->opcode == PW_Pow ? cpu_pw_power_f32 : j->state->tables->group[in->opcode];
}

static double fold_start(rows_fold fold)
{
    return fold == ROWS_SUM ? 0 : fold == ROWS_PRODUCT ? 1 : fold == ROWS_MAX ? -INFINITY : INFINITY;
}

static void rows_run_fold(rows_job *j, int32_t instruction)
{
    const rows_state *state = j->state;
    const int32_t squared = state->squared[instruction];
    const rows_instruction *in = &state->program->code[squared >= 0 ? squared : instruction];
    const rows_fold fold = rows_fold_of(state->program->code[instruction].opcode);
    double *sums = (double *)(void *)(j->mine + j->sh->folds_at) + instruction * j->sh->block_rows;
    const float *x = rows_operand_of_block(j, in, 0, true).data;
    for (int64_t r = 0; r < j->rows && j->at == 0; r++)
        sums[r] = fold_start(fold);
    (squared >= 0 ? state->tables->fold_squares : state->tables->fold[fold])(
        j->rows, j->sh->block_rows > 1 ? j->sh->length : j->n, x, sums);
    for (int64_t r = 0; r < j->rows; r++)
        rows_numbers_of(j, instruction)[r] = (float)sums[r];
}

/* A number for each row. */
static void run_by_row(rows_job *j, int32_t instruction)
{
    const rows_program *p = j->state->program;
    const rows_instruction *in = &p->code[instruction];
    const void *from[PW_MAX_OPERANDS];
    uint8_t scalar[PW_MAX_OPERANDS];
    for (int32_t k = 0; k < in->arity; k++) {
        scalar[k] = in->operand[k].home == ROWS_CONSTANT;
        from[k] = scalar[k] ? &p->constants[in->operand[k].index] : rows_numbers_of(j, in->operand[k].index);
    }
    loop_of(j, in)(j->rows, rows_numbers_of(j, instruction), from, scalar, in->p);
}

static void run_elements(rows_job *j, int32_t instruction, float *to)
{
    const rows_instruction *in = &j->state->program->code[instruction];
    const void *from[PW_MAX_OPERANDS];
    uint8_t scalar[PW_MAX_OPERANDS];
    for (int32_t k = 0; k < in->arity; k++) {
        const vector v = rows_operand_of_block(j, in, k, false);
        from[k] = v.data;
        scalar[k] = v.scalar;
    }
    loop_of(j, in)(j->n, to, from, scalar, in->p);
}

static void rows_store(const rows_job *j, int64_t n, const float *from, void *to)
{
    const pw_f32_tables *tables = j->state->tables;
    if (j->sh->out_dtype == GRT_DTYPE_FLOAT)
        memcpy(to, from, (size_t)n * sizeof *from);
    else if (j->sh->out_dtype == GRT_DTYPE_FLOAT16)
        tables->to_half(n, from, to);
    else if (j->sh->out_dtype == GRT_DTYPE_BFLOAT16)
        tables->to_bfloat16(n, from, to);
    else
        tables->to_bool(n, from, to);
}

/* The instructions of a phase for the elements from j->at on; `order` is where its elements begin. */
static void rows_run_piece(rows_job *j, int32_t order, int32_t phase)
{
    const rows_program *p = j->state->program;
    char *out = (char *)j->run->out[0]->data +
                (size_t)(j->row * j->sh->length + j->at) * grt_dtype_size(j->sh->out_dtype);
    j->ready = 0;
    for (; order < p->n && p->code[p->order[order]].phase == phase; order++) {
        const int32_t i = p->order[order];
        if (j->state->skipped[i])
            continue;
        if (p->code[i].folds) {
            rows_run_fold(j, i);
        } else if (i + 1 < p->n) {
            run_elements(j, i, buffer_of(j, p->code[i].target));
        } else if (j->sh->out_dtype == GRT_DTYPE_FLOAT) {
            run_elements(j, i, (float *)(void *)out);
        } else {
            float *to = buffer_of(j, p->code[i].target);
            run_elements(j, i, to);
            rows_store(j, j->n, to, out);
        }
    }
}

static void rows_run_block(rows_job *j)
{
    const rows_program *p = j->state->program;
    const int64_t elements = j->rows * j->sh->length;
    for (int32_t phase = 0, order = 0; phase < p->n_phases; phase++) {
        while (order < p->n && p->code[p->order[order]].phase == phase && p->code[p->order[order]].by_row &&
               !p->code[p->order[order]].folds)
            run_by_row(j, p->order[order++]);
        if (order == p->n || p->code[p->order[order]].phase != phase)
            continue;
        for (j->at = 0; j->at < elements; j->at += PW_BLOCK) {
            j->n = elements - j->at < PW_BLOCK ? elements - j->at : PW_BLOCK;
            rows_run_piece(j, order, phase);
        }
        while (order < p->n && p->code[p->order[order]].phase == phase)
            order++;
    }
    if (p->code[p->n - 1].by_row)
        rows_store(j, j->rows, rows_numbers_of(j, p->n - 1),
                   (char *)j->run->out[0]->data + (size_t)j->row * grt_dtype_size(j->sh->out_dtype));
}

static grt_status rows_run(const grt_run *r)
{
    const rows_shape *sh = r->shape;
#pragma omp parallel for num_threads(sh->threads) schedule(static) if (sh->threads > 1)
    for (int32_t t = 0; t < sh->threads; t++) {
        rows_job j = {.state = r->state,
                      .sh = sh,
                      .run = r,
                      .mine = (char *)r->workspace + (size_t)t * sh->thread_bytes};
        const int64_t end = sh->n_rows * (t + 1) / sh->threads;
        for (j.row = sh->n_rows * t / sh->threads; j.row < end; j.row += sh->block_rows) {
            j.rows = end - j.row < sh->block_rows ? end - j.row : sh->block_rows;
            rows_run_block(&j);
        }
    }
    return GRT_OK;
}

static bool gives_elements(const grt_kernel_node *node, grt_text *why)
{
    (void)why;
    return grt_rows_check(node->desc, node->n_in) == GRT_OK && !grt_rows_gives_number(node->desc, node->n_in);
}

#define TYPES (GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16) | GRT_BIT(BOOL))
#define KERNEL                                                                                       \
    .domain = "graphrt", .op = "Rows", .types = {TYPES, TYPES, TYPES, TYPES}, .create = rows_create, \
    .destroy = rows_destroy, .reshape = rows_reshape, .release_shape = free, .run = rows_run
static const grt_kernel_row rows[] = {
    /* Any input that dies here: one with as many elements has all rows, and is read last where it is
     * written. */
    {KERNEL, .flags = 0xff, .supports = gives_elements},
    /* One that has a row for all may have as many elements as there are rows. */
    {KERNEL},
};
CPU_KERNELS(rows, rows);
