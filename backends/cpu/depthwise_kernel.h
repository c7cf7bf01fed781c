/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between depthwise convolutions (conv_depthwise.c) and their loops (depthwise_loops.inc), which
 * are compiled once per instruction set. */
#ifndef GRT_BACKENDS_CPU_DEPTHWISE_KERNEL_H
#define GRT_BACKENDS_CPU_DEPTHWISE_KERNEL_H

#include <stdint.h>

/* A tap in all dims but the last: where its line lies, seen from the image, and which weights are the first
 * of its line. */
typedef struct depthwise_tap {
    int64_t line, weights;
} depthwise_tap;

/* Neighbouring outputs of a line that have the same taps. */
typedef struct depthwise_pixels {
    const float *x; /* what tap `from` of the last dim reads for the first of them, in line 0 */
    float *y;
    int64_t count, step, tap_step; /* floats between what neighbours read, and between taps */
    int64_t channels, taps;        /* of a whole window, as weights are packed */
    const depthwise_tap *outer;
    int64_t n_outer, from, to;  /* taps of the last dim */
    const float *packed, *bias; /* bias may be NULL */
    float least, most;          /* outputs stay within */
} depthwise_pixels;

/* Outputs [from, to) of a line whose last dim has stride and dilation 1. */
typedef struct depthwise_line {
    const float *x; /* the image */
    float *y;       /* the line's output 0 */
    int64_t from, to;
    int64_t first_block, end_block;    /* of channels */
    int64_t width, begin;              /* of the input's lines, and their padding before */
    int64_t channels, line_taps, taps; /* taps of the last dim, and of a whole window */
    const depthwise_tap *outer;
    int64_t n_outer;
    const float *packed, *bias; /* bias may be NULL */
    float least, most;          /* outputs stay within */
} depthwise_line;

/* Weights are packed by blocks of `lanes` channels: [block][tap][channel]. The last block ends with the last
 * channel and may have some in common with the one before; fewer channels than lanes are one block, with
 * zeros behind. */
typedef struct depthwise_kernel {
    int64_t lanes;
    void (*run)(const depthwise_pixels *p);
    void (*run_line)(const depthwise_line *d); /* NULL: none; needs `lanes` channels */
} depthwise_kernel;

extern const depthwise_kernel cpu_depthwise_base, cpu_depthwise_avx2, cpu_depthwise_avx512;

/* The one of this process's instruction set. */
const depthwise_kernel *cpu_depthwise_best(void);

#endif
