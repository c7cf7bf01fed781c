/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/flip.h"

#include "backends/cpu/isa.h"

#include <string.h>

/* In tiles that stay in the first-level cache. */
#define DEFINE_FLIP(bits)                                                                       \
    static void flip_##bits(void *dst, int64_t to, const void *src, int64_t from, int64_t rows, \
                            int64_t cols)                                                       \
    {                                                                                           \
        enum { TILE = 8 };                                                                      \
        cpu_bits##bits *d = dst;                                                                \
        const cpu_bits##bits *s = src;                                                          \
        int64_t r = 0;                                                                          \
        for (; r + TILE <= rows; r += TILE) {                                                   \
            int64_t c = 0;                                                                      \
            for (; c + TILE <= cols; c += TILE) {                                               \
                cpu_bits##bits tile[TILE][TILE];                                                \
                for (int k = 0; k < TILE; k++)                                                  \
                    for (int i = 0; i < TILE; i++)                                              \
                        tile[k][i] = s[r + i + (c + k) * from];                                 \
                for (int i = 0; i < TILE; i++)                                                  \
                    for (int k = 0; k < TILE; k++)                                              \
                        d[(r + i) * to + c + k] = tile[k][i];                                   \
            }                                                                                   \
            for (; c < cols; c++)                                                               \
                for (int i = 0; i < TILE; i++)                                                  \
                    d[(r + i) * to + c] = s[r + i + c * from];                                  \
        }                                                                                       \
        for (; r < rows; r++)                                                                   \
            for (int64_t c = 0; c < cols; c++)                                                  \
                d[r * to + c] = s[r + c * from];                                                \
    }
DEFINE_FLIP(8)
DEFINE_FLIP(16)
DEFINE_FLIP(32)
DEFINE_FLIP(64)
DEFINE_FLIP(128)

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAVE_SHUFFLE 1
#endif
#endif

#ifdef HAVE_SHUFFLE
typedef uint32_t vec4 __attribute__((vector_size(16)));

static inline vec4 load4(const cpu_bits32 *s)
{
    vec4 v;
    memcpy(&v, s, sizeof v);
    return v;
}

/* Four elements of each of four source columns become four rows. */
static inline void flip_4x4(cpu_bits32 *d, int64_t to, const cpu_bits32 *s, int64_t from)
{
    const vec4 a = load4(s), b = load4(s + from), c = load4(s + 2 * from), e = load4(s + 3 * from);
    const vec4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
               ce_low = __builtin_shufflevector(c, e, 0, 4, 1, 5);
    const vec4 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7),
               ce_high = __builtin_shufflevector(c, e, 2, 6, 3, 7);
    const vec4 rows[] = {__builtin_shufflevector(ab_low, ce_low, 0, 1, 4, 5),
                         __builtin_shufflevector(ab_low, ce_low, 2, 3, 6, 7),
                         __builtin_shufflevector(ab_high, ce_high, 0, 1, 4, 5),
                         __builtin_shufflevector(ab_high, ce_high, 2, 3, 6, 7)};
    for (int i = 0; i < 4; i++)
        memcpy(d + i * to, &rows[i], sizeof rows[i]);
}
#endif

#if defined(HAVE_SHUFFLE) && defined(__x86_64__)
#define HAVE_EIGHTS 1
typedef uint32_t vec8 __attribute__((vector_size(32)));
#define AVX2 __attribute__((target("avx2")))

/* Four elements of two source columns, one in each half: the load does that part of the transpose. */
AVX2 static inline __attribute__((always_inline)) vec8 load_halves(const cpu_bits32 *low,
                                                                   const cpu_bits32 *high)
{
    return __builtin_shufflevector(load4(low), load4(high), 0, 1, 2, 3, 4, 5, 6, 7);
}

/* Four elements of each of eight source columns become four rows. */
AVX2 static inline __attribute__((always_inline)) void flip_4x8(cpu_bits32 *d, int64_t to,
                                                                const cpu_bits32 *s, int64_t from)
{
    const vec8 v[] = {load_halves(s, s + 4 * from), load_halves(s + from, s + 5 * from),
                      load_halves(s + 2 * from, s + 6 * from), load_halves(s + 3 * from, s + 7 * from)};
    const vec8 ab_low = __builtin_shufflevector(v[0], v[1], 0, 8, 1, 9, 4, 12, 5, 13),
               ce_low = __builtin_shufflevector(v[2], v[3], 0, 8, 1, 9, 4, 12, 5, 13),
               ab_high = __builtin_shufflevector(v[0], v[1], 2, 10, 3, 11, 6, 14, 7, 15),
               ce_high = __builtin_shufflevector(v[2], v[3], 2, 10, 3, 11, 6, 14, 7, 15);
    const vec8 rows[] = {__builtin_shufflevector(ab_low, ce_low, 0, 1, 8, 9, 4, 5, 12, 13),
                         __builtin_shufflevector(ab_low, ce_low, 2, 3, 10, 11, 6, 7, 14, 15),
                         __builtin_shufflevector(ab_high, ce_high, 0, 1, 8, 9, 4, 5, 12, 13),
                         __builtin_shufflevector(ab_high, ce_high, 2, 3, 10, 11, 6, 7, 14, 15)};
    for (int i = 0; i < 4; i++)
        memcpy(d + i * to, &rows[i], sizeof rows[i]);
}

/* rows are a multiple of 4, cols of 8. Sixteen columns at a time fill a line of the destination's cache. */
AVX2 static void flip_eights(cpu_bits32 *d, int64_t to, const cpu_bits32 *s, int64_t from, int64_t rows,
                             int64_t cols)
{
    int64_t c = 0;
    for (; c + 16 <= cols; c += 16)
        for (int64_t r = 0; r < rows; r += 4) {
            flip_4x8(d + r * to + c, to, s + r + c * from, from);
            flip_4x8(d + r * to + c + 8, to, s + r + (c + 8) * from, from);
        }
    for (int64_t r = 0; c < cols && r < rows; r += 4)
        flip_4x8(d + r * to + c, to, s + r + c * from, from);
}
#endif

#ifdef HAVE_SHUFFLE
static void flip_fours(cpu_bits32 *d, int64_t to, const cpu_bits32 *s, int64_t from, int64_t rows,
                       int64_t cols)
{
    for (int64_t c = 0; c < cols; c += 8)
        for (int64_t r = 0; r < rows; r += 4) {
            flip_4x4(d + r * to + c, to, s + r + c * from, from);
            flip_4x4(d + r * to + c + 4, to, s + r + (c + 4) * from, from);
        }
}
#endif

/* The commonest size. Columns are taken eight or more at a time: each source line is used up while it is
 * in the first-level cache, even where the stride maps all of them to one set. */
static void flip_words(void *dst, int64_t to, const void *src, int64_t from, int64_t rows, int64_t cols)
{
#ifdef HAVE_SHUFFLE
    cpu_bits32 *d = dst;
    const cpu_bits32 *s = src;
    int64_t whole_rows = rows / 4 * 4, whole_cols = cols / 8 * 8;
#ifdef HAVE_EIGHTS
    if (cpu_isa_best() >= CPU_ISA_AVX2)
        flip_eights(d, to, s, from, whole_rows, whole_cols);
    else
#endif
        flip_fours(d, to, s, from, whole_rows, whole_cols);
    if (whole_cols < cols)
        flip_32(d + whole_cols, to, s + whole_cols * from, from, whole_rows, cols - whole_cols);
    if (whole_rows < rows)
        flip_32(d + whole_rows * to, to, s + whole_rows, from, rows - whole_rows, cols);
#else
    flip_32(dst, to, src, from, rows, cols);
#endif
}

void cpu_flip(size_t size, void *dst, int64_t to, const void *src, int64_t from, int64_t rows, int64_t cols)
{
    if (size == 4)
        flip_words(dst, to, src, from, rows, cols);
    else
        CPU_BY_SIZE(size, flip_, dst, to, src, from, rows, cols);
}
