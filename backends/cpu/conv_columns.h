/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions in blocks of columns, a column being a position of the output's last spatial dim.
 *
 * What oneDNN keeps and computes when a convolution is created can grow with the columns of one operation
 * (about 1.2 KB and 5 us each for brgconv, a second of sound having 24,000), and its kernels for very wide
 * lines are slow ones. A wide output is computed by a few operations of bounded width instead, the middle one
 * again and again. */
#ifndef GRT_BACKENDS_CPU_CONV_COLUMNS_H
#define GRT_BACKENDS_CPU_CONV_COLUMNS_H

#include "backends/cpu/conv.h"

typedef struct cpu_columns {
    int64_t width, count; /* of a block; the last one has up to half more or less. count 1: not cut */
    bool lines;           /* the data has several lines, so that a block has to be copied together */
} cpu_columns;

/* Dim i is 1 and the window looks at nothing else along it. */
bool cpu_columns_is_unit(const cpu_window *w, int32_t i);
/* The same computation with its only spatial dim, if there is but one, as the last: H x 1 becomes 1 x H. */
cpu_conv cpu_columns_turn(const cpu_conv *c);

/* False: the output is too wide for one operation, and cannot be cut. transposed: see cpu_conv. */
bool cpu_columns_cut(const cpu_conv *c, bool transposed, int threads, cpu_columns *out);

/* Blocks of one kind have the same geometry: the first, those in the middle, the last two. */
enum { CPU_COLUMN_KINDS = 4 };
int cpu_columns_kinds(const cpu_columns *cut);
int cpu_columns_kind(const cpu_columns *cut, int64_t block);
int64_t cpu_columns_first(const cpu_columns *cut, int kind); /* a block of that kind */

/* Block i of an image: its geometry, with a batch of one, and where its columns begin. */
typedef struct cpu_column_block {
    cpu_conv conv;
    int64_t in_at, out_at;
} cpu_column_block;
cpu_column_block cpu_columns_block(const cpu_conv *c, bool transposed, const cpu_columns *cut, int64_t i);

#endif
