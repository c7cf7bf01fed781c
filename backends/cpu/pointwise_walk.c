/* SPDX-License-Identifier: Apache-2.0 */
/* Walking tensors that are broadcast together, block by block. */
#include "backends/cpu/pointwise_walk.h"

#include "backends/cpu/cpu.h"
#include "src/base/checked.h"
#include "src/base/int64.h"

#include <stdlib.h>
#include <string.h>

/* Rows shorter than this are not worth a call each: operands are gathered into blocks instead. */
enum { SHORT_ROW = 32 };
/* Rows up to this length are walked several at a time, if there are as many, and as many elements in all:
 * a block does not go on beyond the rows that share an operand's, and small ones cost more than gathering. */
enum { GROUPED_ROW = PW_BLOCK / 2, LEAST_ROWS = 4, LEAST_SLICE = 128 };

typedef enum operand_mode {
    OPERAND_FLAT,   /* elements in the output's order */
    OPERAND_SCALAR, /* one element */
    OPERAND_ROWS,   /* anything else */
} operand_mode;

typedef struct operand {
    operand_mode mode;
    size_t size;      /* bytes per element */
    size_t buffer_at; /* of its gathered block within a thread's workspace */
    int64_t strides[GRT_MAX_RANK];
} operand;

struct pw_walk {
    int32_t rank; /* of the merged dims, at least 1 */
    int32_t n, threads;
    bool gather;
    int64_t rows; /* of a block; 0: rows are not grouped */
    int64_t total;
    int64_t dims[GRT_MAX_RANK];
    size_t pointers_at, flags_at, offsets_at, scratch_at, thread_bytes; /* layout of a thread's workspace */
    operand operands[];
};

/* Can dim i+1 (inner) be merged into dim i for every operand? */
static bool mergeable(const pw_walk *walk, int32_t i)
{
    for (int32_t k = 0; k < walk->n; k++) {
        const int64_t *s = walk->operands[k].strides;
        if (s[i] != s[i + 1] * walk->dims[i + 1])
            return false;
    }
    return true;
}

static void drop_dim(pw_walk *walk, int32_t i)
{
    for (int32_t j = i; j + 1 < walk->rank; j++) {
        walk->dims[j] = walk->dims[j + 1];
        for (int32_t k = 0; k < walk->n; k++)
            walk->operands[k].strides[j] = walk->operands[k].strides[j + 1];
    }
    walk->rank--;
}

static void merge_dims(pw_walk *walk)
{
    for (int32_t i = walk->rank - 1; i >= 0; i--)
        if (walk->dims[i] == 1 && walk->rank > 1)
            drop_dim(walk, i);
    for (int32_t i = walk->rank - 2; i >= 0; i--)
        if (mergeable(walk, i)) {
            walk->dims[i + 1] *= walk->dims[i];
            drop_dim(walk, i);
        }
}

static operand_mode pointwise_walk_mode_of(const pw_walk *walk, const operand *op)
{
    int64_t stride = 1;
    bool flat = true, scalar = true;
    for (int32_t i = walk->rank - 1; i >= 0; i--) {
        flat &= op->strides[i] == stride;
        scalar &= op->strides[i] == 0;
        stride *= walk->dims[i];
    }
    return scalar ? OPERAND_SCALAR : flat ? OPERAND_FLAT : OPERAND_ROWS;
}

/* Within the last two dims: the same row again and again. */
static bool row_repeats(const pw_walk *walk, const operand *op)
{
    return op->strides[walk->rank - 2] == 0 && op->strides[walk->rank - 1] == 1;
}

/* Within the last two dims: elements in the output's order. */
static bool flows(const pw_walk *walk, const operand *op)
{
    return op->strides[walk->rank - 1] == 1 && op->strides[walk->rank - 2] == walk->dims[walk->rank - 1];
}

/* As a channel's scales are to pixels with channels last: rows that repeat are copied side by side, once for
 * all the rows that they meet, and a block is then several rows. 0: some operand is another. */
static int64_t grouped_rows_of(const pw_walk *walk)
{
    const int32_t last = walk->rank - 1;
    if (last < 1 || walk->dims[last] < 1 || walk->dims[last] > GROUPED_ROW ||
        walk->dims[last - 1] < LEAST_ROWS || walk->dims[last - 1] < LEAST_SLICE / walk->dims[last])
        return 0;
    for (int32_t k = 0; k < walk->n; k++) {
        const operand *op = &walk->operands[k];
        const bool one = op->strides[last] == 0 && op->strides[last - 1] == 0;
        if (!one && !row_repeats(walk, op) && !flows(walk, op))
            return 0;
    }
    return grt_min64(PW_BLOCK / walk->dims[last], walk->dims[last - 1]);
}

/* What a thread copies of operand k, in elements: a block may begin within a row. */
static size_t copied(const pw_walk *walk, const operand *op)
{
    if (walk->rows)
        return row_repeats(walk, op) ? (size_t)((walk->rows + 1) * walk->dims[walk->rank - 1]) : 0;
    return walk->gather && op->mode == OPERAND_ROWS ? PW_BLOCK : 0;
}

static void layout_workspace(pw_walk *walk, size_t scratch_bytes)
{
    size_t at = 0, n = (size_t)walk->n;
    walk->pointers_at = at;
    at = grt_align_up(at + n * sizeof(void *), 64);
    walk->offsets_at = at;
    at = grt_align_up(at + n * sizeof(int64_t), 64);
    walk->flags_at = at;
    at = grt_align_up(at + n, 64);
    for (int32_t k = 0; k < walk->n; k++) {
        operand *op = &walk->operands[k];
        op->buffer_at = at;
        at += grt_align_up(copied(walk, op) * op->size, 64);
    }
    walk->scratch_at = at;
    walk->thread_bytes = grt_align_up(at + scratch_bytes, 64);
}

grt_status cpu_pw_walk_create_strided(int32_t rank, const int64_t *dims, int32_t n,
                                      const grt_tensor *const *in, const int64_t (*strides)[GRT_MAX_RANK],
                                      int32_t threads, size_t scratch_bytes, pw_walk **out_walk)
{
    size_t bytes = sizeof(pw_walk) + (size_t)n * sizeof(operand);
    pw_walk *walk = calloc(1, bytes);
    if (!walk)
        return grt_fail_memory(bytes);
    walk->n = n;
    walk->total = grt_dims_product(dims, 0, rank);
    walk->rank = rank ? rank : 1;
    walk->dims[0] = 1;
    if (rank)
        memcpy(walk->dims, dims, (size_t)rank * sizeof *dims);
    for (int32_t k = 0; k < n; k++) {
        walk->operands[k].size = grt_dtype_size(in[k]->dtype);
        if (strides)
            memcpy(walk->operands[k].strides, strides[k], (size_t)rank * sizeof **strides);
        else
            grt_broadcast_strides(in[k]->dims, in[k]->rank, rank, walk->operands[k].strides);
    }
    merge_dims(walk);
    walk->rows = grouped_rows_of(walk);
    walk->gather = !walk->rows && walk->rank > 1 && walk->dims[walk->rank - 1] < SHORT_ROW;
    for (int32_t k = 0; k < n; k++)
        walk->operands[k].mode = pointwise_walk_mode_of(walk, &walk->operands[k]);
    int64_t useful = walk->total / CPU_GRAIN + 1;
    walk->threads = threads < 1 ? 1 : useful < threads ? (int32_t)useful : threads;
    layout_workspace(walk, scratch_bytes);
    *out_walk = walk;
    return GRT_OK;
}

grt_status cpu_pw_walk_create(int32_t rank, const int64_t *dims, int32_t n, const grt_tensor *const *in,
                              int32_t threads, size_t scratch_bytes, pw_walk **out_walk)
{
    return cpu_pw_walk_create_strided(rank, dims, n, in, NULL, threads, scratch_bytes, out_walk);
}

void cpu_pw_walk_release(void *walk)
{
    free(walk);
}

size_t cpu_pw_walk_workspace(const pw_walk *walk)
{
    return (size_t)walk->threads * walk->thread_bytes;
}

/* `count` elements from `src`, all the same one if `step` is 0. */
static void copy_row(char *dst, const char *src, size_t size, int64_t step, int64_t count)
{
    if (step) {
        memcpy(dst, src, (size_t)count * size);
        return;
    }
    switch (size) {
    case 1:
        memset(dst, *(const unsigned char *)src, (size_t)count);
        break;
    case 4:
        for (int64_t i = 0; i < count; i++)
            memcpy(dst + 4 * i, src, 4);
        break;
    case 8:
        for (int64_t i = 0; i < count; i++)
            memcpy(dst + 8 * i, src, 8);
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            memcpy(dst + (size_t)i * size, src, size);
    }
}

/* Position of output element `pos` in every merged dim. */
static void pointwise_walk_locate(const pw_walk *walk, int64_t pos, int64_t *index)
{
    for (int32_t i = walk->rank - 1; i >= 0; i--) {
        index[i] = pos % walk->dims[i];
        pos /= walk->dims[i];
    }
}

static void pointwise_walk_gather(const pw_walk *walk, const operand *op, const char *data, int64_t pos,
                                  int64_t n, char *dst)
{
    int64_t index[GRT_MAX_RANK], offset = 0;
    int32_t last = walk->rank - 1;
    pointwise_walk_locate(walk, pos, index);
    for (int32_t i = 0; i <= last; i++)
        offset += index[i] * op->strides[i];
    while (n > 0) {
        int64_t run = walk->dims[last] - index[last];
        run = run < n ? run : n;
        copy_row(dst, data + (size_t)offset * op->size, op->size, op->strides[last], run);
        dst += (size_t)run * op->size;
        n -= run;
        /* to the beginning of the next row */
        offset -= index[last] * op->strides[last];
        index[last] = 0;
        for (int32_t i = last - 1; i >= 0; i--) {
            offset += op->strides[i];
            if (++index[i] < walk->dims[i])
                break;
            offset -= walk->dims[i] * op->strides[i];
            index[i] = 0;
        }
    }
}

typedef struct job {
    const pw_walk *walk;
    const void *const *data;
    char *out;
    size_t out_size;
    pw_block block;
    const void *user;
} job;

/* Whole output in one order: all operands are flat, scalar or gathered. */
static void pointwise_walk_run_blocks(const job *j, int64_t begin, int64_t end, char *mine)
{
    const pw_walk *walk = j->walk;
    const void **in = (const void **)(void *)(mine + walk->pointers_at);
    uint8_t *scalar = (uint8_t *)mine + walk->flags_at;
    for (int32_t k = 0; k < walk->n; k++) {
        scalar[k] = walk->operands[k].mode == OPERAND_SCALAR;
        in[k] = j->data[k];
    }
    for (int64_t pos = begin; pos < end; pos += PW_BLOCK) {
        int64_t n = end - pos < PW_BLOCK ? end - pos : PW_BLOCK;
        for (int32_t k = 0; k < walk->n; k++) {
            const operand *op = &walk->operands[k];
            if (op->mode == OPERAND_FLAT)
                in[k] = (const char *)j->data[k] + (size_t)pos * op->size;
            else if (op->mode == OPERAND_ROWS) {
                pointwise_walk_gather(walk, op, j->data[k], pos, n, mine + op->buffer_at);
                in[k] = mine + op->buffer_at;
            }
        }
        j->block(j->user, n, j->out + (size_t)pos * j->out_size, in, scalar, mine + walk->scratch_at);
    }
}

/* Row by row: within a row every operand is a vector or one element. */
static void pointwise_walk_run_rows(const job *j, int64_t begin, int64_t end, char *mine)
{
    const pw_walk *walk = j->walk;
    const void **in = (const void **)(void *)(mine + walk->pointers_at);
    int64_t *offset = (int64_t *)(void *)(mine + walk->offsets_at); /* of the row's first element */
    uint8_t *scalar = (uint8_t *)mine + walk->flags_at;
    int32_t last = walk->rank - 1;
    int64_t index[GRT_MAX_RANK], inner = walk->dims[last];
    pointwise_walk_locate(walk, begin, index);
    for (int32_t k = 0; k < walk->n; k++) {
        const int64_t *s = walk->operands[k].strides;
        scalar[k] = s[last] == 0;
        offset[k] = 0;
        for (int32_t i = 0; i < last; i++)
            offset[k] += index[i] * s[i];
    }
    for (int64_t pos = begin; pos < end;) {
        int64_t n = inner - index[last];
        n = n < end - pos ? n : end - pos;
        n = n < PW_BLOCK ? n : PW_BLOCK;
        for (int32_t k = 0; k < walk->n; k++)
            in[k] = (const char *)j->data[k] +
                    (size_t)(offset[k] + (scalar[k] ? 0 : index[last])) * walk->operands[k].size;
        j->block(j->user, n, j->out + (size_t)pos * j->out_size, in, scalar, mine + walk->scratch_at);
        pos += n;
        index[last] += n;
        if (index[last] < inner)
            continue;
        index[last] = 0;
        for (int32_t i = last - 1; i >= 0; i--) {
            for (int32_t k = 0; k < walk->n; k++)
                offset[k] += walk->operands[k].strides[i];
            if (++index[i] < walk->dims[i])
                break;
            for (int32_t k = 0; k < walk->n; k++)
                offset[k] -= walk->dims[i] * walk->operands[k].strides[i];
            index[i] = 0;
        }
    }
}

/* Offsets of the operands where the last two dims begin for the `slice`-th time; copies rows that repeat. */
static void enter_slice(const job *j, int64_t slice, int64_t *offset, char *mine)
{
    const pw_walk *walk = j->walk;
    const int32_t last = walk->rank - 1;
    int64_t index[GRT_MAX_RANK] = {0};
    for (int32_t i = last - 2; i >= 0; i--) {
        index[i] = slice % walk->dims[i];
        slice /= walk->dims[i];
    }
    for (int32_t k = 0; k < walk->n; k++) {
        const operand *op = &walk->operands[k];
        const size_t bytes = (size_t)walk->dims[last] * op->size;
        offset[k] = 0;
        for (int32_t i = 0; i < last - 1; i++)
            offset[k] += index[i] * op->strides[i];
        const char *row = (const char *)j->data[k] + (size_t)offset[k] * op->size;
        for (int64_t i = 0; row_repeats(walk, op) && i <= walk->rows; i++)
            memcpy(mine + op->buffer_at + (size_t)i * bytes, row, bytes);
    }
}

/* Several rows at a time: operands are in the output's order, one element, or rows that repeat. */
static void pointwise_walk_run_grouped(const job *j, int64_t begin, int64_t end, char *mine)
{
    const pw_walk *walk = j->walk;
    const void **in = (const void **)(void *)(mine + walk->pointers_at);
    int64_t *offset = (int64_t *)(void *)(mine + walk->offsets_at);
    uint8_t *scalar = (uint8_t *)mine + walk->flags_at;
    const int32_t last = walk->rank - 1;
    const int64_t inner = walk->dims[last], slice = inner * walk->dims[last - 1];
    for (int32_t k = 0; k < walk->n; k++)
        scalar[k] = walk->operands[k].strides[last] == 0;
    int64_t left = 0; /* of a slice */
    for (int64_t pos = begin, n; pos < end; pos += n, left -= n) {
        const int64_t at = pos % slice;
        if (left == 0) {
            enter_slice(j, pos / slice, offset, mine);
            left = slice - at;
        }
        n = grt_min64(grt_min64(walk->rows * inner, left), end - pos);
        for (int32_t k = 0; k < walk->n; k++) {
            const operand *op = &walk->operands[k];
            if (row_repeats(walk, op))
                in[k] = mine + op->buffer_at + (size_t)(at % inner) * op->size;
            else
                in[k] = (const char *)j->data[k] + (size_t)(offset[k] + (scalar[k] ? 0 : at)) * op->size;
        }
        j->block(j->user, n, j->out + (size_t)pos * j->out_size, in, scalar, mine + walk->scratch_at);
    }
}

static void pointwise_walk_run_range(const job *j, int64_t begin, int64_t end, char *mine)
{
    if (begin >= end)
        return;
    if (j->walk->rows)
        pointwise_walk_run_grouped(j, begin, end, mine);
    else if (j->walk->rank > 1 && !j->walk->gather)
        pointwise_walk_run_rows(j, begin, end, mine);
    else
        pointwise_walk_run_blocks(j, begin, end, mine);
}

void cpu_pw_walk_run(const pw_walk *walk, const void *const *data, void *out, size_t out_size,
                     void *workspace, pw_block block, const void *user)
{
    job j = {walk, data, out, out_size, block, user};
    if (walk->threads == 1) {
        pointwise_walk_run_range(&j, 0, walk->total, workspace);
        return;
    }
    /* Equal shares, cut at multiples of 64 elements so that no two threads write to one cache line. */
    int64_t share = (walk->total / walk->threads / 64 + 1) * 64;
#pragma omp parallel for num_threads(walk->threads) schedule(static)
    for (int32_t t = 0; t < walk->threads; t++) {
        int64_t begin = t * share, end = begin + share;
        pointwise_walk_run_range(&j, begin, end < walk->total ? end : walk->total,
                                 (char *)workspace + (size_t)t * walk->thread_bytes);
    }
}
