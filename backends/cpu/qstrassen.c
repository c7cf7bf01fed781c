/* SPDX-License-Identifier: Apache-2.0 */
/* See qstrassen.h. With quarters of A and B, S = A21 + A22 - A11 and T = B22 - B12 + B11,
 *
 *   P0 = A11 B11, P1 = A12 B21, P2 = (A12 - S) B22, P3 = A22 (T - B21), P4 = (A21 + A22) (B12 - B11),
 *   P5 = S T, P6 = (A11 - A21) (B22 - B12),
 *   C11 = P0 + P1, C12 = P0 + P5 + P4 + P2, C21 = P0 + P5 + P6 - P3, C22 = P0 + P5 + P6 + P4.
 *
 * Numbers of A are at most 510 then and those of B at most 512, whose crossed sums fit int16, too. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif
#include "backends/cpu/qstrassen.h"

#include "backends/cpu/dispatch.h"
#include "backends/cpu/qgemm_kernel.h"
#include "src/base/checked.h"
#include "src/base/int64.h"

#include <string.h>

enum {
    NR = GRT_QGEMM_NR,
    WIDTH = GRT_QGEMM_WIDTH,
    LINE = 64,
    PARTS = 2,
    PRODUCTS = 7,
    /* A product's rows stay in the second-level cache while columns go by, as do sums of all products. */
    ROWS_BYTES = 384 << 10,
    SUMS_BYTES = 256 << 10,
    MOST_PART = 128,
};

static int64_t qstrassen_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* What is added before and behind the products is as much for few terms as for many. */
bool grt_qstrassen_pays(const grt_qgemm_kernel *kernel, int64_t rows, int64_t k, int64_t n)
{
    enum {
        LEAST_ROWS = 32,
        LEAST_TERMS = 256,
        LEAST_COLUMNS = 128,
        SMALL_MATRIX = 1 << 16,
        MOST_FILLED = 32
    };
    if (!kernel->pairs || rows < LEAST_ROWS || k < LEAST_TERMS || n < LEAST_COLUMNS || k * n <= SMALL_MATRIX)
        return false;
    return PARTS * grt_qstrassen_of(kernel, k, n).n_part - n <= n / MOST_FILLED;
}

grt_qstrassen grt_qstrassen_of(const grt_qgemm_kernel *kernel, int64_t k, int64_t n)
{
    grt_qstrassen s = {.kernel = kernel->crossed || !kernel->pairs ? kernel : kernel->pairs, .k = k, .n = n};
    const int64_t group = grt_qgemm_panel_group(s.kernel), size = (int64_t)sizeof(int16_t);
    s.groups = qstrassen_ceil_div(qstrassen_ceil_div(k, PARTS), group);
    s.k_part = s.groups * group;
    s.n_part = qstrassen_ceil_div(qstrassen_ceil_div(n, PARTS), WIDTH) * WIDTH;
    s.panel_bytes = grt_qgemm_panel_head(s.kernel) + s.groups * grt_qgemm_panel_group_bytes(s.kernel);
    s.row_bytes = qstrassen_ceil_div(grt_qgemm_row_head(s.kernel) + s.k_part * size, LINE) * LINE;
    return s;
}

/* ---- B ---- */

bool grt_qstrassen_packed_bytes(const grt_qstrassen *s, size_t *out_bytes)
{
    return grt_mul_size((size_t)(s->n_part / NR), (size_t)s->panel_bytes, out_bytes) &&
           grt_mul_size(*out_bytes, PRODUCTS, out_bytes);
}

/* Of a product, the panel that begins with column `col` of a part. */
static int64_t qstrassen_panel_at(const grt_qstrassen *s, int product, int64_t col)
{
    return (product * (s->n_part / NR) + col / NR) * s->panel_bytes;
}

/* B, as grt_qstrassen_pack has it. */
typedef struct qstrassen_b {
    const uint8_t *from;
    int64_t step_k, step_n;
    uint8_t flip;
    int32_t *sums;
} qstrassen_b;

/* As many rows as a line of cache has bytes: a column of them is read at once where B is transposed. */
typedef int16_t qstrassen_rows[LINE][NR];

/* Rows [row, row + n) of columns [col, col + NR), zeros outside B. */
static void qstrassen_read(const grt_qstrassen *s, const qstrassen_b *b, int64_t row, int64_t n, int64_t col,
                           qstrassen_rows to)
{
    const int64_t rows = grt_min64(n, s->k - row), cols = grt_min64(s->n - col, NR);
    memset(to, 0, sizeof(qstrassen_rows));
    for (int64_t j = 0; j < cols && rows > 0; j++) {
        const uint8_t *from = b->from + row * b->step_k + (col + j) * b->step_n;
        int32_t sum = 0;
        for (int64_t i = 0; i < rows; i++) {
            const int8_t v = (int8_t)(from[i * b->step_k] ^ b->flip);
            to[i][j] = v;
            sum += v;
        }
        b->sums[col + j] = (int32_t)((uint32_t)b->sums[col + j] + (uint32_t)sum);
    }
}

/* A row of each quarter to one of each product. */
CPU_BODY combine_row(qstrassen_rows b[PARTS][PARTS], int64_t row, int16_t to[PRODUCTS][NR])
{
    for (int j = 0; j < NR; j++) {
        const int16_t b11 = b[0][0][row][j], b12 = b[0][1][row][j], b21 = b[1][0][row][j],
                      b22 = b[1][1][row][j], t = (int16_t)(b22 - b12 + b11);
        to[0][j] = b11;
        to[1][j] = b21;
        to[2][j] = b22;
        to[3][j] = (int16_t)(t - b21);
        to[4][j] = (int16_t)(b12 - b11);
        to[5][j] = t;
        to[6][j] = (int16_t)(b22 - b12);
    }
}

/* Rows x and x + 1 of a panel, x being even. */
CPU_BODY put_pair(const grt_qgemm_kernel *kernel, const int16_t *first, const int16_t *second, int64_t x,
                  char *panel)
{
    /* The second two of crossed four are before the first ones. */
    const int64_t place = kernel->crossed ? (x / 2) ^ 1 : x / 2;
    int16_t *to = (int16_t *)(void *)(panel + grt_qgemm_panel_head(kernel)) + place * 2 * NR;
    for (int j = 0; j < NR; j++) {
        to[2 * j] = first[j];
        to[2 * j + 1] = second[j];
    }
}

/* What the columns of a crossed panel lose. */
CPU_BODY lose_columns(const grt_qstrassen *s, char *panel)
{
    int32_t *loses = (int32_t *)(void *)panel;
    const int16_t *group = (const int16_t *)(void *)(panel + grt_qgemm_panel_head(s->kernel));
    for (int64_t x = 0; x < s->groups; x++, group += 4 * NR)
        for (int j = 0; j < NR; j++) {
            const int16_t *first = group + 2 * NR + 2 * j, *last = group + 2 * j;
            loses[j] = (int32_t)((uint32_t)loses[j] - (uint32_t)(first[0] * last[0] + first[1] * last[1]));
        }
}

/* Columns [col, col + NR) of both parts. */
CPU_BODY qstrassen_pack_columns_body(const grt_qstrassen *s, const qstrassen_b *b, int64_t col, char *to)
{
    qstrassen_rows parts[PARTS][PARTS];
    int16_t first[PRODUCTS][NR], second[PRODUCTS][NR];
    for (int64_t x = 0; x < s->k_part; x += LINE) {
        const int64_t rows = grt_min64(s->k_part - x, LINE);
        for (int i = 0; i < PARTS * PARTS; i++)
            qstrassen_read(s, b, i / PARTS * s->k_part + x, rows, i % PARTS * s->n_part + col,
                           parts[i / PARTS][i % PARTS]);
        for (int64_t i = 0; i < rows; i += 2) {
            combine_row(parts, i, first);
            combine_row(parts, i + 1, second);
            for (int r = 0; r < PRODUCTS; r++)
                put_pair(s->kernel, first[r], second[r], x + i, to + qstrassen_panel_at(s, r, col));
        }
    }
    for (int r = 0; s->kernel->crossed && r < PRODUCTS; r++)
        lose_columns(s, to + qstrassen_panel_at(s, r, col));
}
CPU_DISPATCH(qstrassen_pack_columns, (const grt_qstrassen *s, const qstrassen_b *b, int64_t col, char *to),
             (s, b, col, to))

void grt_qstrassen_pack(const grt_qstrassen *s, const uint8_t *from, int64_t step_k, int64_t step_n,
                        uint8_t flip, int32_t *sums, char *to)
{
    const qstrassen_b b = {from, step_k, step_n, flip, sums};
    for (int64_t col = 0; col < s->n_part; col += NR)
        qstrassen_pack_columns(s, &b, col, to);
}

/* ---- A ---- */

int64_t grt_qstrassen_rows(const grt_qstrassen *s)
{
    return PARTS * grt_max64(grt_min64(ROWS_BYTES / s->row_bytes, MOST_PART), s->kernel->mr);
}

int64_t grt_qstrassen_columns(const grt_qstrassen *s, int64_t rows)
{
    const int64_t each = PRODUCTS * grt_qstrassen_part(rows) * WIDTH * (int64_t)sizeof(int32_t),
                  most = grt_max64(SUMS_BYTES / each, 1), all = s->n_part / WIDTH;
    return qstrassen_ceil_div(all, qstrassen_ceil_div(all, most)) * WIDTH;
}

bool grt_qstrassen_scratch_bytes(const grt_qstrassen *s, int64_t rows, size_t *out_rows, size_t *out_sums)
{
    const size_t part = (size_t)grt_qstrassen_part(rows);
    return grt_mul_size(PRODUCTS * part, (size_t)s->row_bytes, out_rows) &&
           grt_mul_size(PRODUCTS * part, (size_t)grt_qstrassen_columns(s, rows) * sizeof(int32_t), out_sums);
}

/* Numbers [from, from + n) of an upper row and a lower one, and those behind them by `half`, to rows of all
 * products, `step` numbers apart. */
CPU_BODY qstrassen_combine_body(const uint8_t *upper, const uint8_t *lower, int64_t half, int64_t n,
                                uint8_t flip, int16_t *to, int64_t step)
{
    const uint8_t *upper_right = upper + half, *lower_right = lower + half;
    int16_t *p0 = to, *p1 = p0 + step, *p2 = p1 + step, *p3 = p2 + step, *p4 = p3 + step, *p5 = p4 + step,
            *p6 = p5 + step;
#pragma omp simd
    for (int64_t x = 0; x < n; x++) {
        const int16_t a11 = upper[x] ^ flip, a12 = upper_right[x] ^ flip, a21 = lower[x] ^ flip,
                      a22 = lower_right[x] ^ flip;
        const int16_t sum = (int16_t)(a21 + a22), s = (int16_t)(sum - a11);
        p0[x] = a11;
        p1[x] = a12;
        p2[x] = (int16_t)(a12 - s);
        p3[x] = a22;
        p4[x] = sum;
        p5[x] = s;
        p6[x] = (int16_t)(a11 - a21);
    }
}
CPU_DISPATCH(qstrassen_combine,
             (const uint8_t *upper, const uint8_t *lower, int64_t half, int64_t n, uint8_t flip, int16_t *to,
              int64_t step),
             (upper, lower, half, n, flip, to, step))

/* The last numbers of a first half, which no second one has: from `x` on. */
static void combine_rest(const grt_qstrassen *s, const uint8_t *upper, const uint8_t *lower, int64_t x,
                         uint8_t flip, int16_t *to, int64_t step)
{
    for (; x < s->k_part; x++) {
        const int16_t a11 = x < s->k ? upper[x] ^ flip : 0, a21 = x < s->k ? lower[x] ^ flip : 0;
        const int of[PRODUCTS] = {a11, 0, a11 - a21, 0, a21, a21 - a11, a11 - a21};
        for (int r = 0; r < PRODUCTS; r++)
            to[r * step + x] = (int16_t)of[r];
    }
}

void grt_qstrassen_split(const grt_qstrassen *s, const uint8_t *bytes, int64_t ld, int64_t rows, uint8_t flip,
                         char *to)
{
    const int64_t part = grt_qstrassen_part(rows), step = part * s->row_bytes / (int64_t)sizeof(int16_t),
                  both = grt_max64(s->k - s->k_part, 0);
    for (int64_t i = 0; i < part; i++) {
        int16_t *row = (int16_t *)(void *)(to + i * s->row_bytes + grt_qgemm_row_head(s->kernel));
        /* An odd number of rows has its last one twice: its lower sums are not read. */
        const uint8_t *upper = bytes + i * ld, *lower = part + i < rows ? upper + part * ld : upper;
        qstrassen_combine(upper, lower, s->k_part, both, flip, row, step);
        combine_rest(s, upper, lower, both, flip, row, step);
    }
    if (s->kernel->crossed)
        s->kernel->lose(to, s->row_bytes, PRODUCTS * part, s->k_part);
}

/* ---- products ---- */

/* Columns of a tile. */
typedef struct qstrassen_tile {
    const grt_qstrassen *s;
    int64_t part, col, cols;
    const char *a, *packed;
} qstrassen_tile;

/* What comes behind the groups of a panel: it lies in no near cache. */
typedef struct qstrassen_next {
    const char *at;
    int64_t bytes;
} qstrassen_next;

/* All rows and `groups` groups from a and b on, onto sums or not. */
static void qstrassen_multiply_groups(const qstrassen_tile *t, const char *a, const char *b, int64_t groups,
                                      bool onto, qstrassen_next next, int32_t *sums)
{
    const grt_qgemm_kernel *kernel = t->s->kernel;
    const int64_t lda = t->s->row_bytes, strips = qstrassen_ceil_div(t->part, kernel->mr),
                  each = qstrassen_ceil_div(t->part, strips),
                  ahead = qstrassen_ceil_div(next.bytes, strips * LINE) * LINE;
    for (int64_t i = 0; i < t->part; i += each, next.at += ahead) {
        kernel->block((int)grt_min64(each, t->part - i), kernel->panels, groups, a + i * lda, lda, b,
                      t->s->panel_bytes, onto, sums + i * WIDTH);
        for (int64_t x = 0; x < ahead; x += LINE)
            __builtin_prefetch(next.at + x, 0, 3);
    }
}

/* A part of a panel after the other, which stays in the first-level cache while rows go by. */
static void qstrassen_multiply_panels(const qstrassen_tile *t, const char *a, const char *b, const char *next,
                                      int32_t *sums)
{
    const grt_qgemm_kernel *kernel = t->s->kernel;
    const int64_t groups = t->s->groups, most = kernel->depth ? kernel->depth : groups,
                  depth = qstrassen_ceil_div(groups, qstrassen_ceil_div(groups, most)),
                  bytes = depth * grt_qgemm_panel_group_bytes(kernel),
                  row_bytes = depth * grt_qgemm_panel_group(kernel) * (int64_t)sizeof(int16_t);
    for (int64_t x = 0; x < groups; x += depth) {
        const bool last = x + depth >= groups;
        const char *from = b;
        b += bytes + (x ? 0 : grt_qgemm_panel_head(kernel));
        qstrassen_multiply_groups(t, a, from, last ? groups - x : depth, x > 0,
                                  (qstrassen_next){last ? next : b, bytes}, sums);
        a += row_bytes + (x ? 0 : grt_qgemm_row_head(kernel));
    }
}

static void qstrassen_multiply_product(const qstrassen_tile *t, int product, int32_t *sums)
{
    enum { PANELS = WIDTH / NR };
    const grt_qstrassen *s = t->s;
    const int64_t panels = t->cols / NR, each = s->kernel->panels;
    const char *a = t->a + product * t->part * s->row_bytes,
               *b = t->packed + qstrassen_panel_at(s, product, t->col);
    for (int64_t p = 0; p < panels; p += each, b += each * s->panel_bytes) {
        const char *next = p + each < panels ? b + each * s->panel_bytes
                                             : t->packed + qstrassen_panel_at(s, product + 1, t->col);
        qstrassen_multiply_panels(t, a, b, next, sums + p / PANELS * t->part * WIDTH + p % PANELS * NR);
    }
}

/* Seven products of n sums to the four quarters, in the first ones' places. */
CPU_BODY qstrassen_gather_body(int32_t *sums, int64_t n)
{
    uint32_t *p0 = (uint32_t *)sums, *p1 = p0 + n, *p2 = p1 + n, *p3 = p2 + n;
    const uint32_t *p4 = p3 + n, *p5 = p4 + n, *p6 = p5 + n;
#pragma omp simd
    for (int64_t x = 0; x < n; x++) {
        const uint32_t s = p0[x] + p5[x], both = s + p6[x], c11 = p0[x] + p1[x], c12 = s + p4[x] + p2[x],
                       c21 = both - p3[x], c22 = both + p4[x];
        p0[x] = c11;
        p1[x] = c12;
        p2[x] = c21;
        p3[x] = c22;
    }
}
CPU_DISPATCH(qstrassen_gather, (int32_t * sums, int64_t n), (sums, n))

void grt_qstrassen_multiply(const grt_qstrassen *s, int64_t rows, const char *a, const char *packed,
                            int64_t col, int64_t cols, int32_t *sums)
{
    const int64_t part = grt_qstrassen_part(rows);
    const qstrassen_tile t = {s, part, col, cols, a, packed};
    for (int r = 0; r < PRODUCTS; r++)
        qstrassen_multiply_product(&t, r, sums + r * part * cols);
    qstrassen_gather(sums, part * cols);
}
