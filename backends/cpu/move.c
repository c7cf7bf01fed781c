/* SPDX-License-Identifier: Apache-2.0 */
/* Strided copies: axes are merged first, then the innermost two decide between runs, fills and blocked
 * transposes. */
#include "backends/cpu/move.h"

#include "backends/cpu/dispatch.h"

#include <string.h>

/* Minimum bytes for a second thread, and bytes per task. */
enum { COPY_GRAIN = 1 << 18 };

void cpu_copy(void *dst, const void *src, size_t bytes, int32_t threads)
{
    if (bytes < 2 * COPY_GRAIN || threads < 2) {
        if (bytes)
            memcpy(dst, src, bytes);
        return;
    }
    int64_t chunks = (int64_t)(bytes / COPY_GRAIN);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t c = 0; c < chunks; c++) {
        size_t at = (size_t)c * COPY_GRAIN, end = c + 1 == chunks ? bytes : at + COPY_GRAIN;
        memcpy((char *)dst + at, (const char *)src + at, end - at);
    }
}

/* One element n times, by blocks: compilers leave a loop over single elements as it is. Inlined, so that the
 * size is known. */
static inline __attribute__((always_inline)) void fill_row(void *dst, const void *element, size_t size,
                                                           int64_t n)
{
    enum { BLOCK = 64 };
    char block[BLOCK], *d = dst;
    size_t bytes = (size_t)n * size;
    if (bytes < BLOCK) {
        for (int64_t i = 0; i < n; i++)
            memcpy(d + (size_t)i * size, element, size);
        return;
    }
    for (size_t at = 0; at < BLOCK; at += size)
        memcpy(block + at, element, size);
    for (; bytes >= BLOCK; bytes -= BLOCK, d += BLOCK)
        memcpy(d, block, BLOCK);
    memcpy(d, block, bytes);
}

/* One row of n elements: dst is contiguous or not, src is walked by `from`. */
#define DEFINE_ROW(bits)                                                                    \
    static void row_##bits(void *dst, int64_t to, const void *src, int64_t from, int64_t n) \
    {                                                                                       \
        cpu_bits##bits *d = dst;                                                            \
        const cpu_bits##bits *s = src;                                                      \
        if (to == 1 && from == 0) {                                                         \
            fill_row(d, s, sizeof *s, n);                                                   \
        } else if (to == 1) {                                                               \
            for (int64_t i = 0; i < n; i++)                                                 \
                d[i] = s[i * from];                                                         \
        } else {                                                                            \
            for (int64_t i = 0; i < n; i++)                                                 \
                d[i * to] = s[i * from];                                                    \
        }                                                                                   \
    }
DEFINE_ROW(8)
DEFINE_ROW(16)
DEFINE_ROW(32)
DEFINE_ROW(64)
DEFINE_ROW(128)

/* Two or three source lines interleaved, as the colours of an image are: dst is dense. */
CPU_BODY interleave_body(cpu_bits32 *restrict d, const cpu_bits32 *s, int64_t from, int64_t rows,
                         int64_t cols)
{
    const cpu_bits32 *a = s, *b = s + from, *c = s + 2 * from;
    if (cols == 2) {
#pragma omp simd
        for (int64_t i = 0; i < rows; i++) {
            d[2 * i] = a[i];
            d[2 * i + 1] = b[i];
        }
    } else {
#pragma omp simd
        for (int64_t i = 0; i < rows; i++) {
            d[3 * i] = a[i];
            d[3 * i + 1] = b[i];
            d[3 * i + 2] = c[i];
        }
    }
}
CPU_DISPATCH(interleave,
             (cpu_bits32 *restrict d, const cpu_bits32 *s, int64_t from, int64_t rows, int64_t cols),
             (d, s, from, rows, cols))

CPU_BODY every_second_body(cpu_bits32 *restrict d, const cpu_bits32 *s, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        d[i] = s[2 * i];
}
CPU_DISPATCH(every_second, (cpu_bits32 *restrict d, const cpu_bits32 *s, int64_t n), (d, s, n))

void cpu_fill(void *dst, const void *element, size_t size, int64_t n, int32_t threads)
{
    enum { GRAIN = COPY_GRAIN / 4 };
    if (n * (int64_t)size < 2 * COPY_GRAIN || threads < 2) {
        CPU_BY_SIZE(size, row_, dst, 1, element, 0, n);
        return;
    }
    int64_t chunks = n / GRAIN;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t c = 0; c < chunks; c++)
        CPU_BY_SIZE(size, row_, cpu_at(dst, c * GRAIN, size), 1, element, 0,
                    c + 1 == chunks ? n - c * GRAIN : GRAIN);
}

#define DEFINE_OUTSIDE(bits)                                                                       \
    CPU_BODY outside_##bits##_body(const int##bits##_t *v, int64_t n, int64_t size, int *out_any)  \
    {                                                                                              \
        const int##bits##_t most = size > INT##bits##_MAX ? INT##bits##_MAX : (int##bits##_t)size; \
        int##bits##_t any = 0;                                                                     \
        _Pragma("omp simd reduction(| : any)") for (int64_t i = 0; i < n; i++) any |=              \
            (v[i] >= most) | (v[i] < -most);                                                       \
        *out_any = any != 0;                                                                       \
    }                                                                                              \
    CPU_DISPATCH(outside_##bits, (const int##bits##_t *v, int64_t n, int64_t size, int *out_any),  \
                 (v, n, size, out_any))
DEFINE_OUTSIDE(32)
DEFINE_OUTSIDE(64)

int64_t cpu_index_outside(const grt_tensor *indices, int64_t size)
{
    const int64_t n = grt_tensor_elements(indices);
    int any = 0;
    if (indices->dtype == GRT_DTYPE_INT32 && n > 0)
        outside_32(indices->data, n, size, &any);
    else if (n > 0)
        outside_64(indices->data, n, size, &any);
    for (int64_t i = 0; any && i < n; i++)
        if (cpu_index(indices, i) < -size || cpu_index(indices, i) >= size)
            return i;
    return -1;
}

static void swap_axes(cpu_move *m, int32_t a, int32_t b)
{
    int64_t dim = m->dims[a], to = m->to[a], from = m->from[a];
    m->dims[a] = m->dims[b], m->to[a] = m->to[b], m->from[a] = m->from[b];
    m->dims[b] = dim, m->to[b] = to, m->from[b] = from;
}

/* Drop axes of size 1, order by destination stride, merge what is contiguous on both sides. False: nothing to
 * move. */
static bool simplify(cpu_move *m)
{
    int32_t n = 0;
    for (int32_t i = 0; i < m->rank; i++) {
        if (m->dims[i] == 0)
            return false;
        if (m->dims[i] != 1) {
            swap_axes(m, n, i);
            n++;
        }
    }
    m->rank = n;
    for (int32_t i = 1; i < n; i++)
        for (int32_t k = i; k > 0 && m->to[k - 1] < m->to[k]; k--)
            swap_axes(m, k - 1, k);
    n = 0;
    for (int32_t i = 0; i < m->rank; i++) {
        if (n > 0 && m->to[n - 1] == m->to[i] * m->dims[i] && m->from[n - 1] == m->from[i] * m->dims[i]) {
            m->dims[n - 1] *= m->dims[i];
            m->to[n - 1] = m->to[i];
            m->from[n - 1] = m->from[i];
        } else {
            m->dims[n] = m->dims[i], m->to[n] = m->to[i], m->from[n] = m->from[i];
            n++;
        }
    }
    m->rank = n;
    return true;
}

/* A contiguous run of 2, 4, 8 or 16 bytes is one wider element, if all other strides are multiples of it. */
static void move_widen(cpu_move *m)
{
    int32_t last = m->rank - 1;
    while (m->rank > 0 && m->to[last] == 1 && m->from[last] == 1 && m->dims[last] % 2 == 0 && m->size < 16) {
        for (int32_t i = 0; i < last; i++)
            if (m->to[i] % 2 || m->from[i] % 2)
                return;
        for (int32_t i = 0; i < last; i++)
            m->to[i] /= 2, m->from[i] /= 2;
        m->size *= 2;
        m->dims[last] /= 2;
        if (m->dims[last] == 1)
            m->rank = last--;
    }
}

/* Walk of the axes before the inner ones, flattened. */
typedef struct walk {
    int64_t index[CPU_MOVE_RANK], to, from;
} walk;

static void walk_start(const cpu_move *m, int32_t rank, int64_t flat, walk *w)
{
    w->to = w->from = 0;
    for (int32_t i = rank - 1; i >= 0; i--) {
        w->index[i] = flat % m->dims[i];
        flat /= m->dims[i];
        w->to += w->index[i] * m->to[i];
        w->from += w->index[i] * m->from[i];
    }
}

static void walk_next(const cpu_move *m, int32_t rank, walk *w)
{
    for (int32_t i = rank - 1; i >= 0; i--) {
        w->to += m->to[i];
        w->from += m->from[i];
        if (++w->index[i] < m->dims[i])
            return;
        w->to -= m->dims[i] * m->to[i];
        w->from -= m->dims[i] * m->from[i];
        w->index[i] = 0;
    }
}

static void move_run_rows(const cpu_move *m, void *dst, const void *src, int64_t begin, int64_t end)
{
    int32_t last = m->rank - 1;
    int64_t n = m->dims[last], to = m->to[last], from = m->from[last];
    size_t bytes = to == 1 && from == 1 ? (size_t)n * m->size : 0;
    walk w;
    walk_start(m, last, begin, &w);
    for (int64_t i = begin; i < end; i++, walk_next(m, last, &w)) {
        void *d = cpu_at(dst, w.to, m->size);
        const void *s = cpu_at_const(src, w.from, m->size);
        if (bytes)
            memcpy(d, s, bytes);
        else if (to == 1 && from == 2 && m->size == sizeof(cpu_bits32))
            every_second(d, s, n);
        else
            CPU_BY_SIZE(m->size, row_, d, to, s, from, n);
    }
}

/* The last two axes are transposed tile by tile: rows x cols, of which a work item takes a strip of rows.
 * Tiles are as wide as a line of the destination's cache, which is written once, and as long as a strip,
 * along which the source is read in order. */
enum { STRIP = 512, LEAST_STRIP = 64, NARROW_STRIP = 2048, NARROW = 4, LINE = 64, LEAST_COLS = 8 };

/* items: strips of one row that there are. Shorter strips where threads would have none. */
static int64_t strip_rows(const cpu_move *m, int64_t items, int32_t threads)
{
    int64_t strip = STRIP;
    if (m->dims[m->rank - 1] < NARROW)
        return NARROW_STRIP;
    while (threads > 1 && strip > LEAST_STRIP && items / strip < 2 * threads)
        strip /= 2;
    return strip;
}

static void run_flips(const cpu_move *m, void *dst, const void *src, int64_t strip, int64_t begin,
                      int64_t end)
{
    int32_t outer = m->rank - 2;
    int64_t rows = m->dims[outer], cols = m->dims[outer + 1], to = m->to[outer], from = m->from[outer + 1];
    const int64_t strips = (rows + strip - 1) / strip, line = LINE / (int64_t)m->size,
                  width = cols < NARROW       ? cols
                          : line > LEAST_COLS ? line
                                              : LEAST_COLS;
    for (int64_t i = begin; i < end; i++) {
        walk w;
        walk_start(m, outer, i / strips, &w);
        int64_t row = i % strips * strip, n = rows - row < strip ? rows - row : strip;
        for (int64_t col = 0; col < cols; col += width) {
            void *d = cpu_at(dst, w.to + row * to + col, m->size);
            const void *s = cpu_at_const(src, w.from + row + col * from, m->size);
            int64_t n_cols = cols - col < width ? cols - col : width;
            if (cols < NARROW)
                interleave(d, s, from, n, n_cols);
            else
                cpu_flip(m->size, d, to, s, from, n, n_cols);
        }
    }
}

/* The axis along which the source is contiguous becomes the last but one, if that makes a transpose of two
 * axes. */
static bool find_flip(cpu_move *m)
{
    int32_t last = m->rank - 1;
    if (last < 1 || m->to[last] != 1 || m->from[last] == 1 || m->from[last] == 0)
        return false;
    const bool narrow = m->dims[last] < NARROW;
    if (narrow && m->size != sizeof(cpu_bits32))
        return false;
    for (int32_t i = 0; i < last; i++)
        if (m->from[i] == 1 && m->dims[i] >= 4 && (!narrow || m->to[i] == m->dims[last])) {
            for (int32_t k = i; k + 1 < last; k++)
                swap_axes(m, k, k + 1);
            return true;
        }
    return false;
}

/* A very short last axis (two channel groups that are interleaved) costs a step of the walk every few
 * elements: walk along the longer axis before it. */
static void prefer_long_rows(cpu_move *m)
{
    const int32_t last = m->rank - 1;
    if (last >= 1 && m->dims[last] < 8 && m->dims[last - 1] > m->dims[last] &&
        !(m->to[last] == 1 && m->from[last] == 1))
        swap_axes(m, last - 1, last);
}

void cpu_move_run(cpu_move *m, void *dst, const void *src, int32_t threads)
{
    if (!simplify(m))
        return;
    move_widen(m);
    if (m->rank == 0) {
        memcpy(dst, src, m->size);
        return;
    }
    bool flip = find_flip(m);
    if (!flip)
        prefer_long_rows(m);
    int32_t outer = m->rank - (flip ? 2 : 1);
    int64_t items = 1;
    for (int32_t i = 0; i < outer; i++)
        items *= m->dims[i];
    const int64_t strip = flip ? strip_rows(m, items * m->dims[outer], threads) : 1,
                  each = m->dims[m->rank - 1] * strip;
    items *= flip ? (m->dims[outer] + strip - 1) / strip : 1;
    if (items == 1 && !flip && m->to[0] == 1 && m->from[0] == 1) {
        cpu_copy(dst, src, (size_t)m->dims[0] * m->size, threads);
        return;
    }
    if (items == 1 && !flip && m->to[0] == 1 && m->from[0] == 0) {
        cpu_fill(dst, src, m->size, m->dims[0], threads);
        return;
    }
    int64_t parts = items * each < 2 * CPU_GRAIN ? 1 : items * each / CPU_GRAIN;
    parts = parts > 4 * threads ? 4 * threads : parts > items ? items : parts;
    if (parts < 2 || threads < 2) {
        if (flip)
            run_flips(m, dst, src, strip, 0, items);
        else
            move_run_rows(m, dst, src, 0, items);
        return;
    }
    parts = parts > items ? items : parts;
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t p = 0; p < parts; p++) {
        int64_t begin = items * p / parts, end = items * (p + 1) / parts;
        if (flip)
            run_flips(m, dst, src, strip, begin, end);
        else
            move_run_rows(m, dst, src, begin, end);
    }
}
