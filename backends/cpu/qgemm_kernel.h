/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between the driver of 8-bit products (qgemm.c) and its micro-kernels.
 *
 * B is packed in panels of 16 columns. A group is 64 bytes: for each column 4 consecutive int8, or 2 int16
 * where the kernel has no instruction that multiplies bytes exactly. A comes as rows of uint8 or, for such a
 * kernel, of int16. Signed A is moved by 128 and unsigned B by -128; finish.offset accounts for both. */
#ifndef GRT_BACKENDS_CPU_QGEMM_KERNEL_H
#define GRT_BACKENDS_CPU_QGEMM_KERNEL_H

#include "backends/cpu/qgemm_finish.h"

#include <stdbool.h>
#include <stddef.h>

enum { GRT_QGEMM_NR = 16, GRT_QGEMM_GROUP_BYTES = 64, GRT_QGEMM_MOST_ROWS = 12 };

/* rows x (16 * panels) sums of `groups` groups. A's rows are lda bytes apart. */
typedef void grt_qgemm_block(int rows, int panels, int64_t groups, const void *a, int64_t lda, const void *b,
                             int64_t panel_stride, int32_t *sums);

/* Sums over taps of x[tap][channel + c] * w[tap][c] for GRT_QGEMM_WIDTH channels c, all of which can be read.
 * w: of these channels, as grt_qgemm_tap_at says. */
typedef void grt_qgemm_taps(int64_t taps, const uint8_t *const *x, int64_t channel, const void *w,
                            int32_t *sums);

enum { GRT_QGEMM_TAPS_BYTES = 128 }; /* of a group of 4 taps, or of 2 where the kernel is wide */

typedef struct grt_qgemm_kernel {
    const char *name;
    int mr, panels; /* of a full block */
    bool wide;      /* int16: groups of 2 */
    grt_qgemm_block *block;
    grt_qgemm_finish_rows *finish;
    grt_qgemm_taps *taps;
    void (*widen)(const uint8_t *from, int64_t n, int16_t *to);
    void (*row_sums)(const uint8_t *a, int64_t lda, int64_t rows, int64_t k, int32_t *sums);
} grt_qgemm_kernel;

static inline int grt_qgemm_group(const grt_qgemm_kernel *kernel)
{
    return kernel->wide ? 2 : 4;
}

/* Bytes before the weight of tap t and channel c. A group holds a vector for channels 0 to 3 and 16 to 19,
 * one for 4 to 7 and 20 to 23, and so on: the order in which bytes of several pixels are interleaved. */
static inline int64_t grt_qgemm_tap_at(const grt_qgemm_kernel *kernel, int64_t t, int64_t c)
{
    const int group = grt_qgemm_group(kernel);
    return t / group * GRT_QGEMM_TAPS_BYTES + c % 16 / 4 * 32 + c / 16 * 16 + c % 4 * 4 +
           t % group * (4 / group);
}

extern const grt_qgemm_kernel grt_qgemm_kernel_c;
/* NULL where the machine (or the level that GRAPHRT_CPU_ISA allows) or the build has no such kernel. */
const grt_qgemm_kernel *grt_qgemm_kernel_avx2(void);
const grt_qgemm_kernel *grt_qgemm_kernel_avx2_vnni(void);
const grt_qgemm_kernel *grt_qgemm_kernel_avx512(void);
const grt_qgemm_kernel *grt_qgemm_kernel_avx512_vnni(void);
/* All of these that there are, best first, and then NULL. The first one is this process's. */
const grt_qgemm_kernel *const *grt_qgemm_kernels(void);

#endif
