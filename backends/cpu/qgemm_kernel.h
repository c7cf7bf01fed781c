/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between the driver of 8-bit products (qgemm.c) and its micro-kernels.
 *
 * B is packed in panels of 16 columns. A group is 64 bytes: for each column 4 consecutive int8, or 2 int16
 * where the kernel has no instruction that multiplies bytes exactly. A comes as rows of uint8 or, for such a
 * kernel, of int16. Signed A is moved by 128 and unsigned B by -128; finish.offset accounts for both.
 *
 * Two forms halve what a kernel of int16 does. Crossed: a1 * b1 + a2 * b2 is one product,
 * (a1 + b2) * (a2 + b1), less a1 * a2, which is the same for a row, and b1 * b2, which is the same for a
 * column (Winograd's inner product). A group is 128 bytes, for each column int16 of elements 3 and 4 of four
 * and, behind those of all columns, of 1 and 2, so that 1 and 3, 2 and 4 are crossed; a panel begins with
 * what its columns lose, a row of A with what it loses.
 *
 * Planes: an instruction multiplies bytes, A's without a sign by B's with one, and saturates sums of two
 * products, so that two planes of A's bytes make a row: their low four bits and their high ones. Then eight
 * such sums fit 16 bits before they are widened. Such a kernel reads half the bytes of B, which bounds
 * products of few rows. */
#ifndef GRT_BACKENDS_CPU_QGEMM_KERNEL_H
#define GRT_BACKENDS_CPU_QGEMM_KERNEL_H

#include "backends/cpu/qgemm_finish.h"

#include <stdbool.h>
#include <stddef.h>

enum { GRT_QGEMM_NR = 16, GRT_QGEMM_GROUP_BYTES = 64, GRT_QGEMM_MOST_ROWS = 32 };

/* rows x (16 * panels) sums of `groups` groups. A's rows are lda bytes apart. onto: a kernel with `depth`
 * adds them to what sums has; a and b are behind the heads of rows and panels then. */
typedef void grt_qgemm_block(int rows, int panels, int64_t groups, const void *a, int64_t lda, const void *b,
                             int64_t panel_stride, bool onto, int32_t *sums);

/* Where a block of bytes goes: its first column and how many it has, at most those of the kernel's panels. */
typedef struct grt_qgemm_plain {
    const grt_qgemm_finish *finish; /* grt_qgemm_is_plain */
    int64_t col, cols, ldy;
    uint8_t *y;
} grt_qgemm_plain;

/* Blocks of `each` rows that leave as bytes: their sums stay in registers. */
typedef void grt_qgemm_block_plain(int rows, int each, int panels, int64_t groups, const void *a, int64_t lda,
                                   const void *b, int64_t panel_stride, const grt_qgemm_plain *to);

/* Output pixels of one line whose windows are summed channel by channel. A window has `lines` taps in each of
 * its columns: those of all dims but the last. */
typedef struct grt_qgemm_strip {
    int64_t count, lines, columns;
    int64_t step, gap; /* columns from pixel to pixel; from column to column of a window */
} grt_qgemm_strip;

enum {
    GRT_QGEMM_PIXELS = 16,     /* of a strip at most; sums are written for whole fours */
    GRT_QGEMM_TAPS_BYTES = 128 /* of a group of 4 taps, or of 2 where the kernel is wide */
};

/* Columns that the windows of a strip lie in. */
static inline int64_t grt_qgemm_strip_columns(const grt_qgemm_strip *s)
{
    return (s->count - 1) * s->step + (s->columns - 1) * s->gap + 1;
}

/* Columns that are `step` apart, with room for pixels that are summed beyond the last one. */
static inline int64_t grt_qgemm_strip_slots(const grt_qgemm_strip *s)
{
    return (grt_qgemm_strip_columns(s) - 1) / s->step + 1 + 4;
}

/* Sums over the taps of each pixel of x[column][line][channel + c] * w[column][line][c] for GRT_QGEMM_WIDTH
 * channels c, all of which can be read; x has a pointer for each line of each column. w: of these channels,
 * as grt_qgemm_tap_at says. mixed: room of grt_qgemm_mixed_bytes. */
typedef void grt_qgemm_windows(const grt_qgemm_strip *strip, const uint8_t *const *x, int64_t channel,
                               const void *w, void *mixed, int32_t *sums);

/* Rows of k bytes that are ld bytes apart, each changed by `flip`, as the kernel reads them, ldt bytes apart:
 * int16, zeros in the last group. Behind it there is room for whole vectors. */
typedef void grt_qgemm_widen(const uint8_t *from, int64_t ld, int64_t rows, int64_t k, uint8_t flip, void *to,
                             int64_t ldt);

typedef struct grt_qgemm_kernel {
    const char *name;
    int mr, panels; /* of a full block */
    bool wide;      /* int16: groups of 2, or of 4 in one of the forms: */
    bool crossed, planes;
    const struct grt_qgemm_kernel *few; /* for products of few rows; NULL: this one */
    /* Its block multiplies any int16, modulo 2^32: a kernel that is wide and in none of the forms, or NULL
     * where products of bytes are more than twice as fast. */
    const struct grt_qgemm_kernel *pairs;
    int short_k; /* up to that many terms `pairs` is faster */
    int depth;   /* groups of a panel that the first-level cache holds beside rows of A, or 0: all at once */
    int step;    /* panels are filled up with zeros to a multiple of that many groups */
    grt_qgemm_block *block;
    grt_qgemm_block_plain *plain; /* NULL: none */
    void (*leave)(void);          /* called by a thread that has no more blocks for now, or NULL */
    grt_qgemm_finish_rows *finish;
    grt_qgemm_windows *windows;
    grt_qgemm_widen *widen; /* of a wide kernel without planes */
    /* Of a crossed kernel: puts what n rows of k numbers lose before them. */
    void (*lose)(void *rows, int64_t lda, int64_t n, int64_t k);
    void (*split)(const uint8_t *from, int64_t k, uint8_t *to); /* a row of k bytes as two planes, or NULL */
    void (*row_sums)(const uint8_t *a, int64_t lda, int64_t rows, int64_t k, int32_t *sums);
} grt_qgemm_kernel;

/* Of taps. */
static inline int grt_qgemm_group(const grt_qgemm_kernel *kernel)
{
    return kernel->wide ? 2 : 4;
}

/* Of a panel: elements of a column, and bytes; what precedes a panel's groups, and a row's. */
static inline int grt_qgemm_panel_group(const grt_qgemm_kernel *kernel)
{
    return kernel->wide && !kernel->crossed && !kernel->planes ? 2 : 4;
}

static inline int64_t grt_qgemm_panel_group_bytes(const grt_qgemm_kernel *kernel)
{
    return kernel->crossed ? 2 * GRT_QGEMM_GROUP_BYTES : GRT_QGEMM_GROUP_BYTES;
}

static inline int64_t grt_qgemm_panel_head(const grt_qgemm_kernel *kernel)
{
    return kernel->crossed ? GRT_QGEMM_NR * (int64_t)sizeof(int32_t) : 0;
}

static inline int64_t grt_qgemm_row_head(const grt_qgemm_kernel *kernel)
{
    return kernel->crossed ? 4 * (int64_t)sizeof(int16_t) : 0;
}

/* Groups of the taps of one column. */
static inline int64_t grt_qgemm_line_groups(const grt_qgemm_kernel *kernel, int64_t lines)
{
    const int group = grt_qgemm_group(kernel);
    return lines / group + (lines % group != 0);
}

static inline int64_t grt_qgemm_mixed_bytes(const grt_qgemm_kernel *kernel, const grt_qgemm_strip *s)
{
    return grt_qgemm_line_groups(kernel, s->lines) * grt_qgemm_strip_slots(s) * s->step *
           GRT_QGEMM_TAPS_BYTES;
}

/* Bytes before the weight of tap t and channel c, taps being counted in whole groups, column by column. A
 * group holds a vector for channels 0 to 3 and 16 to 19, one for 4 to 7 and 20 to 23, and so on: the order in
 * which bytes of several pixels are interleaved. */
static inline int64_t grt_qgemm_tap_at(const grt_qgemm_kernel *kernel, int64_t t, int64_t c)
{
    const int group = grt_qgemm_group(kernel);
    return t / group * GRT_QGEMM_TAPS_BYTES + c % 16 / 4 * 32 + c / 16 * 16 + c % 4 * 4 +
           t % group * (4 / group);
}

extern const grt_qgemm_kernel grt_qgemm_kernel_c;
extern const grt_qgemm_kernel grt_qgemm_kernel_avx2_pairs; /* part of AVX2's, where there is that */
/* NULL where the machine (or the level that GRAPHRT_CPU_ISA allows) or the build has no such kernel. */
const grt_qgemm_kernel *grt_qgemm_kernel_avx2(void);
const grt_qgemm_kernel *grt_qgemm_kernel_avx2_vnni(void);
const grt_qgemm_kernel *grt_qgemm_kernel_avx512(void);
const grt_qgemm_kernel *grt_qgemm_kernel_avx512_vnni(void);
const grt_qgemm_kernel *grt_qgemm_kernel_amx(void);
/* All of these that there are, best first, and then NULL. The first one is this process's. */
const grt_qgemm_kernel *const *grt_qgemm_kernels(void);

#endif
