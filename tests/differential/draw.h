/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of random numbers that a case is drawn from: equal seeds give equal cases on every machine. */
#ifndef GRT_TESTS_DIFFERENTIAL_DRAW_H
#define GRT_TESTS_DIFFERENTIAL_DRAW_H

#include <graphrt/graphrt.h>

void draw_from(uint64_t seed);
/* low and high are among what may come. */
int64_t draw(int64_t low, int64_t high);
/* In [0, 1). */
double draw_real(void);

/* A size that kernels are often tiled for, or a neighbour of one; seldom 0. */
int64_t draw_dim(void);
/* Dims of `least` to `most` axes, of 20000 elements at most; the rank. */
int32_t draw_dims(int64_t *dims, int32_t least, int32_t most);

grt_dtype draw_float(void);
grt_dtype draw_whole(void);
grt_dtype draw_number(void);

/* One of some texts. */
#define PICK(...)           \
    ((const char *const[]){ \
        __VA_ARGS__})[draw(0, (int64_t)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)) - 1)]

#endif
