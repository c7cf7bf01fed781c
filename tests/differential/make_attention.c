/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, and the rotary embedding of its queries and keys.
 *
 * Small ones have sizes that the fast kernels take and others, and few queries with many keys, which are
 * split. Large ones have more blocks of query rows than a GPU has multiprocessors, which is when the kernels
 * for many rows are taken, and a last tile of keys that is not full.
 *
 * The large ones are compared with float32 on the CPU: in 16 bits the CPU rounds every intermediate value,
 * which is slow, and a bfloat16 sum of many weights stops growing.
 */
#include "tests/differential/makers.h"

#include <float.h>
#include <math.h>

void make_rotary(node *n)
{
    int64_t dims[4] = {draw(1, 3), draw(1, 5), draw(1, 9), 2 * draw(1, 16)},
            cache[3] = {dims[0], dims[2], dims[3] / 2};
    n->out = draw_float();
    add_input(n, n->out, 4, dims);
    add_input(n, n->out, 3, cache);
    add_input(n, n->out, 3, cache);
    set_int(n, "interleaved", draw(0, 1));
}

typedef struct attention_draw {
    int64_t batch, kv_heads, heads, size, q_len, kv_len, past;
    bool packed;
} attention_draw;

static void add_heads(node *n, const attention_draw *a)
{
    for (int i = 0; i < 3; i++) {
        const int64_t h = i ? a->kv_heads : a->heads, length = i ? a->kv_len : a->q_len;
        add_input(n, n->out, a->packed ? 3 : 4,
                  a->packed ? (int64_t[]){a->batch, length, h * a->size}
                            : (int64_t[]){a->batch, h, length, a->size});
    }
}

/* The past's keys and values, behind a mask or the place of one. */
static void add_past(node *n, const attention_draw *a)
{
    if (a->past && n->n_in == 3)
        n->omitted[n->n_in++] = true;
    for (int i = 0; a->past && i < 2; i++)
        add_input(n, n->out, 4, (int64_t[]){a->batch, a->kv_heads, a->past, a->size});
}

static void set_heads(node *n, const attention_draw *a)
{
    set_int(n, "is_causal", draw(0, 1));
    if (a->packed) {
        set_int(n, "q_num_heads", a->heads);
        set_int(n, "kv_num_heads", a->kv_heads);
    }
}

/* Blocks: the kernels' of 64 rows. Products: bounds what the CPU has to do. */
enum { LEAST_BLOCKS = 100, MOST_BLOCKS = 400, MOST_PRODUCTS = 60000000, ROWS = 64 };

static int64_t draw_keys(int64_t most)
{
    const int64_t n = draw(1, most);
    return n % ROWS ? n : n - 1;
}

static void draw_lengths(attention_draw *a)
{
    static const int64_t sizes[] = {32, 64, 96, 128, 40, 72, 80, 112, 256, 160, 36, 60, 30, 20, 180, 50};
    int64_t blocks;
    do {
        a->size = sizes[draw(0, 15)];
        a->q_len = draw(0, 1) ? draw(17, ROWS) : draw(ROWS + 1, 150);
        a->kv_len = draw(0, 3) ? draw_keys(300) : a->q_len;
        a->past = draw(0, 3) ? 0 : draw_keys(150);
        a->batch = draw(1, 4);
        const int64_t group = draw(0, 1) ? 1 : draw(2, 8);
        a->kv_heads = draw(1, 12);
        a->heads = a->kv_heads * group;
        blocks = a->batch * a->heads * ((a->q_len + ROWS - 1) / ROWS);
    } while (blocks < LEAST_BLOCKS || blocks > MOST_BLOCKS ||
             a->batch * a->heads * a->q_len * (a->past + a->kv_len) * a->size > MOST_PRODUCTS);
}

/* So many heads of 64 numbers, of two blocks of rows, that a multiprocessor has two of them at a time. */
static void draw_pairs(attention_draw *a)
{
    a->size = 64;
    a->q_len = draw(ROWS + 1, 100);
    a->kv_len = draw(17, ROWS + 16);
    a->batch = 4;
    a->heads = a->kv_heads = draw(34, 40);
}

/* Of the queries' type, bool, or float32, as narrowed models keep masks that float16 cannot hold. */
static grt_dtype draw_mask(const node *n)
{
    const grt_dtype dtypes[] = {n->out, n->out == GRT_DTYPE_DOUBLE ? n->out : GRT_DTYPE_FLOAT, GRT_DTYPE_BOOL,
                                GRT_DTYPE_BOOL};
    return dtypes[draw(0, 3)];
}

/* Single keys by -inf; whole rows, too, as padding does where queries are hidden with their keys, or by the
 * lowest number of float32. */
static void hide_keys(grt_tensor *mask)
{
    const int64_t keys = mask->dims[mask->rank - 1], n = grt_tensor_elements(mask);
    for (int64_t i = 0; i < n; i++)
        if (!draw(0, 3))
            element_set(mask, i, -(double)INFINITY);
    for (int64_t row = 0; row < n / keys; row++) {
        if (draw(0, 3))
            continue;
        const double low =
            mask->dtype == GRT_DTYPE_FLOAT && draw(0, 1) ? -(double)FLT_MAX : -(double)INFINITY;
        for (int64_t j = 0; j < keys; j++)
            element_set(mask, row * keys + j, low);
    }
}

/* Of every rank, any dim but the keys' broadcast, and at times of fewer keys than there are. */
static void add_mask(node *n, const attention_draw *a)
{
    const int64_t total = a->past + a->kv_len;
    const int64_t full[] = {a->batch, a->heads, a->q_len, draw(0, 3) ? total : draw(1, total)};
    int64_t dims[4];
    const int32_t rank = (int32_t)draw(1, 4);
    for (int32_t k = 0; k < rank; k++)
        dims[k] = k == rank - 1 || draw(0, 1) ? full[4 - rank + k] : 1;
    grt_tensor *mask = add_input(n, draw_mask(n), rank, dims);
    if (mask->dtype != GRT_DTYPE_BOOL)
        hide_keys(mask);
}

/* More rows than two blocks have, and rows of masks that are whole vectors. */
static void draw_masked(attention_draw *a)
{
    static const int64_t sizes[] = {32, 64, 96, 128, 48};
    a->size = sizes[draw(0, 4)];
    a->q_len = draw(2 * ROWS + 1, 200);
    a->kv_len = 16 * draw(1, 14);
    a->batch = draw(1, 4);
    a->heads = a->kv_heads = draw(2, 12);
}

/* A mask with rows, which for some of a batch hides what is later, and so whole tiles. */
static void add_row_mask(node *n, const attention_draw *a)
{
    const int64_t dims[] = {draw(0, 1) ? a->batch : 1, draw(0, 1) ? a->heads : 1, a->q_len, a->kv_len};
    grt_tensor *mask = add_input(n, draw_mask(n), 4, dims);
    const double hidden = mask->dtype == GRT_DTYPE_BOOL                  ? 0
                          : mask->dtype == GRT_DTYPE_FLOAT && draw(0, 1) ? -(double)FLT_MAX
                                                                         : -(double)INFINITY;
    for (int64_t i = 0; i < dims[0] * dims[1]; i++) {
        const int64_t lead = draw(0, 2) ? draw(-20, 40) : dims[3];
        for (int64_t row = 0; row < dims[2]; row++)
            for (int64_t j = row + lead < 0 ? 0 : row + lead; j < dims[3]; j++)
                element_set(mask, (i * dims[2] + row) * dims[3] + j, hidden);
    }
}

static void add_lengths(node *n, const attention_draw *a)
{
    while (n->n_in < 6)
        n->omitted[n->n_in++] = true;
    grt_tensor *t = add_input(n, GRT_DTYPE_INT64, 1, &a->batch);
    for (int64_t i = 0; i < a->batch; i++)
        element_set(t, i, (double)draw(0, a->kv_len));
}

static void make_large(node *n)
{
    static const grt_dtype dtypes[] = {GRT_DTYPE_FLOAT16, GRT_DTYPE_FLOAT16, GRT_DTYPE_BFLOAT16,
                                       GRT_DTYPE_FLOAT};
    attention_draw a = {.packed = draw(0, 1)};
    const bool has_rows = !draw(0, 3);
    if (has_rows)
        draw_masked(&a);
    else if (draw(0, 3))
        draw_lengths(&a);
    else
        draw_pairs(&a);
    n->out = dtypes[draw(0, 3)];
    n->wide = true;
    add_heads(n, &a);
    if (has_rows)
        add_row_mask(n, &a);
    else if (!draw(0, 2))
        add_mask(n, &a);
    add_past(n, &a);
    if (!has_rows && !a.past && !draw(0, 3))
        add_lengths(n, &a);
    set_heads(n, &a);
    if (!draw(0, 3))
        set_int(n, "left_window_size", draw(0, 100));
    if (!draw(0, 3))
        set_int(n, "right_window_size", draw(0, 100));
    if (!draw(0, 3))
        set_real(n, "softcap", 1 + draw_real() * 20);
    if (!draw(0, 3))
        set_real(n, "scale", draw_real() / sqrt((double)a.size));
    if (n->out == GRT_DTYPE_FLOAT && draw(0, 1))
        n->precision = "tf32";
    else if (n->out != GRT_DTYPE_FLOAT)
        set_int(n, "softmax_precision", GRT_DTYPE_FLOAT); /* as GPUs do anyway */
}

static void make_small(node *n)
{
    static const int64_t sizes[] = {32, 64, 96, 128, 256, 8, 20, 80},
                         queries[] = {1, 1, 2, 5, 16, 17, 33, 70, 130},
                         lengths[] = {1, 7, 64, 65, 130, 600, 1300};
    attention_draw a = {.batch = draw(1, 2), .kv_heads = draw(1, 3)};
    a.heads = a.kv_heads * draw(1, 4);
    a.size = sizes[draw(0, 7)];
    a.q_len = queries[draw(0, 8)];
    a.kv_len = lengths[draw(0, 6)];
    a.past = draw(0, 2) ? 0 : lengths[draw(0, 6)];
    a.packed = draw(0, 1);
    const bool is_masked = draw(0, 2) == 0;
    n->out = draw_float();
    add_heads(n, &a);
    if (is_masked)
        add_input(n, draw_mask(n), 2, (int64_t[]){draw(0, 3) ? a.q_len : 1, a.past + a.kv_len});
    add_past(n, &a);
    set_heads(n, &a);
    if (n->out == GRT_DTYPE_FLOAT && draw(0, 1))
        n->precision = "tf32";
    if (!a.past && !is_masked && !draw(0, 3))
        add_lengths(n, &a);
    if (!draw(0, 3))
        set_int(n, "left_window_size", draw(0, 300));
    if (!draw(0, 3))
        set_int(n, "right_window_size", draw(0, 300));
}

void make_attention(node *n)
{
    if (draw(0, 3))
        make_small(n);
    else
        make_large(n);
}
