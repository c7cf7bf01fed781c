/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise loops for x86-64 with AVX-512. */
#include "backends/cpu/isa.h"
#ifdef CPU_HAS_AVX512_COPY
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,prefer-vector-width=512")
#include <immintrin.h>
#include <string.h>

enum { LANES = 16 };
#define MOST_PIXELS 12
#define INLINE      static inline __attribute__((always_inline))

typedef __m512 floats;

INLINE floats read_some(const void *p, int64_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}

INLINE void write_some(float *p, int64_t n, floats v)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v);
}

INLINE floats within_lanes(floats v, floats least, floats most)
{
    return _mm512_min_ps(most, _mm512_max_ps(least, v)); /* the second operand where one is NaN */
}

#include "backends/cpu/depthwise_loops.inc"

/* ---- lines ----
 *
 * Neighbouring outputs read nearly the same inputs. Up to MOST_TAPS weights of a line of the window are kept
 * in registers, and each input is loaded once for all outputs that see it, so that a multiplication needs a
 * fraction of a load, where depthwise_loops.inc needs one. AVX2 has not the registers. Inputs in the padding
 * are left out one by one: ends of a line are like its middle. */

enum {
    MOST_LINE = 14, /* outputs whose sums stay in registers */
    MOST_TAPS = 7   /* weights that stay there beside them */
};

/* A run of outputs and a block of channels. */
typedef struct line_tile {
    const depthwise_line *d;
    int64_t output, channel; /* the first */
    const float *weights;    /* of the block */
} line_tile;

/* Adds `taps` taps of a line of the window to `count` sums, both constants where this is inlined. at: where
 * the first tap of the first output reads, which is outside where its bit in `inside` is not set. */
INLINE void add_line_taps(floats *sum, const float *w, uintptr_t at, uintptr_t step, uint32_t inside,
                          const int count, const int taps)
{
    floats f[MOST_TAPS];
#pragma GCC unroll 8
    for (int t = 0; t < taps; t++)
        f[t] = read_lanes(w + t * LANES);
#pragma GCC unroll 32
    for (int i = 0; i < count + taps - 1; i++) {
        if (i > 0 && i % PIXELS_A_POINTER == 0) {
            at += PIXELS_A_POINTER * step;
            __asm__("" : "+r"(at)); /* the compiler would add to one pointer for each position */
        }
        if (!(inside >> i & 1))
            continue;
        const floats v = read_lanes((const void *)(at + (uintptr_t)(i % PIXELS_A_POINTER) * step));
#pragma GCC unroll 8
        for (int t = 0; t < taps; t++)
            if (i >= t && i - t < count)
                sum[i - t] += f[t] * v;
    }
}

/* Bit i: whether position `first` + i is one of the line's. */
INLINE uint32_t positions_inside(int64_t first, int64_t width)
{
    const uint32_t all = UINT32_MAX;
    const uint32_t from = first >= 0 ? all : first > -32 ? all << -first : 0;
    const int64_t left = width - first;
    return from & (left >= 32 ? all : left > 0 ? ~(all << left) : 0);
}

INLINE void sum_line(const line_tile *tile, const int count)
{
    const depthwise_line *d = tile->d;
    const floats zero = {0};
    const floats start = d->bias ? read_lanes(d->bias + tile->channel) : zero;
    floats sum[MOST_LINE];
#pragma GCC unroll 16
    for (int p = 0; p < count; p++)
        sum[p] = start;
    const int64_t parts = (d->line_taps + MOST_TAPS - 1) / MOST_TAPS, fewest = d->line_taps / parts,
                  longer = d->line_taps % parts;
    const uintptr_t step = (uintptr_t)d->channels * sizeof(float);
    for (int64_t o = 0; o < d->n_outer; o++) {
        const float *w = tile->weights + d->outer[o].weights * LANES;
        int64_t first = tile->output - d->begin;
        uintptr_t at = (uintptr_t)(d->x + d->outer[o].line + tile->channel) + (uintptr_t)first * step;
        for (int64_t i = 0; i < parts; i++) {
            const int64_t now = fewest + (i < longer);
            const uint32_t inside = positions_inside(first, d->width);
#define OF_TAPS(n)                                         \
    case n:                                                \
        add_line_taps(sum, w, at, step, inside, count, n); \
        break
            switch (now) {
                OF_TAPS(1);
                OF_TAPS(2);
                OF_TAPS(3);
                OF_TAPS(4);
                OF_TAPS(5);
                OF_TAPS(6);
                OF_TAPS(7);
            default:
                break;
            }
            first += now;
            at += (uintptr_t)now * step;
            w += now * LANES;
        }
    }
    float *y = d->y + tile->output * d->channels + tile->channel;
#pragma GCC unroll 16
    for (int p = 0; p < count; p++) {
        const floats v = within_lanes(sum[p], zero + d->least, zero + d->most);
        memcpy(y + p * d->channels, &v, sizeof v);
    }
}

#define LINE_OF_COUNT(n)                        \
    static void line_##n(const line_tile *tile) \
    {                                           \
        sum_line(tile, n);                      \
    }
LINE_OF_COUNT(1)
LINE_OF_COUNT(2)
LINE_OF_COUNT(3)
LINE_OF_COUNT(4)
LINE_OF_COUNT(5)
LINE_OF_COUNT(6)
LINE_OF_COUNT(7)
LINE_OF_COUNT(8)
LINE_OF_COUNT(9)
LINE_OF_COUNT(10)
LINE_OF_COUNT(11)
LINE_OF_COUNT(12)
LINE_OF_COUNT(13)
LINE_OF_COUNT(14)

static void run_depthwise_line(const depthwise_line *d)
{
    static void (*const sums[])(const line_tile *) = {
        NULL,   line_1, line_2,  line_3,  line_4,  line_5,  line_6,  line_7,
        line_8, line_9, line_10, line_11, line_12, line_13, line_14,
    };
    const int64_t count = d->to - d->from, runs = (count + MOST_LINE - 1) / MOST_LINE;
    line_tile tile = {.d = d, .weights = d->packed + d->first_block * d->taps * LANES};
    for (int64_t block = d->first_block; block < d->end_block; block++, tile.weights += d->taps * LANES) {
        tile.channel = first_of_block(block * LANES, d->channels);
        tile.output = d->from;
        for (int64_t i = 0; i < runs; i++) {
            const int64_t now = (d->to - tile.output + runs - i - 1) / (runs - i);
            sums[now](&tile);
            tile.output += now;
        }
    }
}

const depthwise_kernel cpu_depthwise_avx512 = {LANES, run_depthwise_pixels, run_depthwise_line};
#endif
