/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/flip.h"

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

/* The commonest size. Columns are taken eight at a time: each source line is used up while it is
 * in the first-level cache, even where the stride maps all of them to one set. */
static void flip_words(void *dst, int64_t to, const void *src, int64_t from, int64_t rows, int64_t cols)
{
#ifdef HAVE_SHUFFLE
    cpu_bits32 *d = dst;
    const cpu_bits32 *s = src;
    int64_t whole_rows = rows / 4 * 4, whole_cols = cols / 8 * 8;
    for (int64_t c = 0; c < whole_cols; c += 8)
        for (int64_t r = 0; r < whole_rows; r += 4) {
            flip_4x4(d + r * to + c, to, s + r + c * from, from);
            flip_4x4(d + r * to + c + 4, to, s + r + (c + 4) * from, from);
        }
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
