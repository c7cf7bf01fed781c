/* SPDX-License-Identifier: Apache-2.0 */
/* Direct convolution of small groups. A vector of eight output channels covers whole groups, as many as fit;
 * their inputs fit a vector as well. For each tap and each input channel of a group, that channel is spread
 * over the lanes of its group's outputs and multiplied by a vector of weights. Several pixels of a line share
 * the weights that are loaded. */
#include "backends/cpu/conv_group.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/epilogue.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/threads.h"
#include "src/base/checked.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_AVX2 1
#include <immintrin.h>
#endif

enum {
    LANES = CPU_GROUP_LANES,
    PIXELS = 4, /* of a line that are computed together */
    CHUNK = 64, /* pixels of a line that are one thread's piece of work */
};

/* One tap: where its input lies, seen from the first input pixel of the window, and which weights are its. */
typedef struct tap {
    int64_t offset, weights;
} tap;

typedef struct blocks {
    int64_t per_group, out_per_group; /* channels */
    int64_t ins, outs;                /* channels of a whole block */
    int64_t n, in_channels, out_channels;
    int64_t taps;                 /* of a whole window, as weights are packed */
    bool in_halves;               /* every lane's inputs are in its own half: the cheaper permutation */
    int32_t spread[LANES][LANES]; /* spread[i][lane]: which of the block's inputs is input i of its group */
} blocks;

static blocks conv_group_blocks_of(const cpu_conv *c)
{
    blocks b = {.per_group = c->in_channels / c->groups,
                .out_per_group = c->out_channels / c->groups,
                .in_channels = c->in_channels,
                .out_channels = c->out_channels,
                .taps = c->w.taps};
    const int64_t most = b.per_group > b.out_per_group ? b.per_group : b.out_per_group, groups = LANES / most;
    b.ins = groups * b.per_group;
    b.outs = groups * b.out_per_group;
    b.n = (c->groups + groups - 1) / groups;
    b.in_halves = true;
    for (int64_t i = 0; i < b.per_group; i++)
        for (int64_t lane = 0; lane < b.outs; lane++) {
            b.spread[i][lane] = (int32_t)(lane / b.out_per_group * b.per_group + i);
            b.in_halves &= b.spread[i][lane] / (LANES / 2) == lane / (LANES / 2);
        }
    return b;
}

bool cpu_conv_group_fits(const cpu_conv *c)
{
    return c->last && c->groups > 1 && c->in_channels > 0 && c->out_channels > 0 &&
           c->in_channels / c->groups <= LANES && c->out_channels / c->groups <= LANES;
}

bool cpu_conv_group_floats(const cpu_conv *c, size_t *out_floats)
{
    const blocks b = conv_group_blocks_of(c);
    return grt_mul_size((size_t)(b.per_group * LANES), (size_t)b.taps, out_floats) &&
           grt_mul_size(*out_floats, (size_t)b.n, out_floats) && *out_floats <= SIZE_MAX / sizeof(float) / 2;
}

/* [block][tap][input of the group][lane] */
void cpu_conv_group_pack(const cpu_conv *c, const float *w, float *packed)
{
    const blocks b = conv_group_blocks_of(c);
    for (int64_t block = 0; block < b.n; block++)
        for (int64_t t = 0; t < b.taps; t++)
            for (int64_t i = 0; i < b.per_group; i++, packed += LANES)
                for (int64_t lane = 0; lane < LANES; lane++) {
                    const int64_t m = block * b.outs + lane;
                    const bool exists = lane < b.outs && m < b.out_channels;
                    packed[lane] = exists ? w[(m * b.per_group + i) * b.taps + t] : 0.0f;
                }
}

bool cpu_conv_group_bytes(const cpu_conv *c, int threads, size_t *out_bytes)
{
    return grt_mul_size((size_t)c->w.taps, sizeof(tap) * (size_t)threads, out_bytes);
}

/* `count` pixels, whose windows are `step` floats apart, with the same taps. */
typedef void pixels_fn(const blocks *b, const tap *taps, int64_t n, const float *x, int64_t step,
                       int64_t count, const float *weights, const float *bias, float *y);

static void pixels_c(const blocks *b, const tap *taps, int64_t n, const float *x, int64_t step, int64_t count,
                     const float *weights, const float *bias, float *y)
{
    for (int64_t p = 0; p < count; p++)
        for (int64_t m = 0; m < b->out_channels; m++) {
            const int64_t block = m / b->outs, lane = m % b->outs, first = block * b->ins;
            const float *w = weights + block * b->taps * b->per_group * LANES + lane;
            float sum = bias ? bias[m] : 0.0f;
            for (int64_t t = 0; t < n; t++)
                for (int64_t i = 0; i < b->per_group; i++)
                    sum += x[p * step + taps[t].offset + first + b->spread[i][lane]] *
                           w[(taps[t].weights * b->per_group + i) * LANES];
            y[p * b->out_channels + m] = sum;
        }
}

#ifdef HAVE_AVX2
#define TARGET __attribute__((target("avx2,fma")))
#define INLINE TARGET static inline __attribute__((always_inline))

INLINE __m256i mask_of(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n > LANES ? LANES : (int)n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* How an input channel gets to the lanes of its group. */
typedef enum spreading { IN_HALVES, ANYWHERE } spreading;

INLINE __m256 spread(__m256 v, __m256i lanes, const spreading how)
{
    return how == IN_HALVES ? _mm256_permutevar_ps(v, lanes) : _mm256_permutevar8x32_ps(v, lanes);
}

/* All blocks of `count` pixels; that and `how` are constants where this is inlined. */
INLINE void blocks_avx2(const blocks *b, const tap *taps, int64_t n, const float *x, int64_t step,
                        const float *weights, const float *bias, float *y, const int count,
                        const spreading how)
{
    for (int64_t block = 0; block < b->n; block++) {
        const int64_t first = block * b->ins, out = block * b->outs, left = b->in_channels - first,
                      out_left = b->out_channels - out;
        const __m256i in_mask = mask_of(left < b->ins ? left : b->ins),
                      out_mask = mask_of(out_left < b->outs ? out_left : b->outs);
        const float *w = weights + block * b->taps * b->per_group * LANES;
        const __m256 start = bias ? _mm256_maskload_ps(bias + out, out_mask) : _mm256_setzero_ps();
        __m256 sum[PIXELS] = {start, start, start, start};
        for (int64_t t = 0; t < n; t++) {
            const float *from = x + taps[t].offset + first, *wt = w + taps[t].weights * b->per_group * LANES;
            __m256 v[PIXELS];
#pragma GCC unroll 4
            for (int p = 0; p < count; p++)
                v[p] = _mm256_maskload_ps(from + p * step, in_mask);
            for (int64_t i = 0; i < b->per_group; i++) {
                const __m256 f = _mm256_loadu_ps(wt + i * LANES);
                const __m256i lanes = _mm256_loadu_si256((const __m256i *)(const void *)b->spread[i]);
#pragma GCC unroll 4
                for (int p = 0; p < count; p++)
                    sum[p] = _mm256_fmadd_ps(spread(v[p], lanes, how), f, sum[p]);
            }
        }
#pragma GCC unroll 4
        for (int p = 0; p < count; p++)
            _mm256_maskstore_ps(y + p * b->out_channels + out, out_mask, sum[p]);
    }
}

INLINE void pixels_how(const blocks *b, const tap *taps, int64_t n, const float *x, int64_t step,
                       int64_t count, const float *weights, const float *bias, float *y, const spreading how)
{
    for (; count >= PIXELS; count -= PIXELS, x += PIXELS * step, y += PIXELS * b->out_channels)
        blocks_avx2(b, taps, n, x, step, weights, bias, y, PIXELS, how);
    for (; count > 0; count--, x += step, y += b->out_channels)
        blocks_avx2(b, taps, n, x, step, weights, bias, y, 1, how);
}

TARGET static void pixels_avx2(const blocks *b, const tap *taps, int64_t n, const float *x, int64_t step,
                               int64_t count, const float *weights, const float *bias, float *y)
{
    if (b->in_halves)
        pixels_how(b, taps, n, x, step, count, weights, bias, y, IN_HALVES);
    else
        pixels_how(b, taps, n, x, step, count, weights, bias, y, ANYWHERE);
}
#endif

static pixels_fn *conv_group_pick(void)
{
#ifdef HAVE_AVX2
    if (cpu_isa_best() >= CPU_ISA_AVX2)
        return pixels_avx2;
#endif
    return pixels_c;
}

/* The taps of line `line` of the output that lie inside in all dims but the last, each with those of the last
 * dim in [from, to). Offsets count from the pixel of tap `from` in line 0. */
static int64_t list_taps(const cpu_conv *c, int64_t line, int64_t from, int64_t to, tap *taps)
{
    const cpu_window *w = &c->w;
    const int32_t last = w->spatial - 1;
    int64_t k[CPU_MAX_SPATIAL], low[CPU_MAX_SPATIAL], high[CPU_MAX_SPATIAL], at[CPU_MAX_SPATIAL], n = 0,
                                                                                                  outer = 1;
    for (int32_t i = last - 1; i >= 0; i--) {
        cpu_window_taps(w, i, line % w->out[i], &low[i], &high[i], &at[i]);
        line /= w->out[i];
        k[i] = low[i];
        outer *= high[i] - low[i];
    }
    for (int64_t t = 0; t < outer; t++) {
        int64_t position = 0, weights = 0;
        for (int32_t i = 0; i < last; i++) {
            position = (position + at[i] + k[i] * w->dilation[i]) * w->in[i + 1];
            weights = (weights + k[i]) * w->kernel[i + 1];
        }
        for (int64_t x = from; x < to; x++)
            taps[n++] = (tap){(position + (x - from) * w->dilation[last]) * c->in_channels, weights + x};
        for (int32_t i = last - 1; i >= 0 && ++k[i] >= high[i]; i--)
            k[i] = low[i];
    }
    return n;
}

/* Output pixels [begin, end) of a line. y: the line's first pixel; x: its image. */
static void run_line(const cpu_conv *c, const blocks *b, pixels_fn *pixels, int64_t line, int64_t begin,
                     int64_t end, const float *x, const float *packed, const float *bias, float *y, tap *taps)
{
    const cpu_window *w = &c->w;
    const int32_t last = w->spatial - 1;
    int64_t from, to, first, n = 0, listed_from = -1, listed_to = -1;
    for (int64_t o = begin, count; o < end; o += count) {
        cpu_window_taps(w, last, o, &from, &to, &first);
        if (from != listed_from || to != listed_to) {
            n = list_taps(c, line, from, to, taps);
            listed_from = from;
            listed_to = to;
        }
        for (count = 1; o + count < end; count++) { /* neighbours with the same taps */
            int64_t next_from, next_to, next_first;
            cpu_window_taps(w, last, o + count, &next_from, &next_to, &next_first);
            if (next_from != from || next_to != to)
                break;
        }
        if (n == 0)
            first = from = 0; /* nothing is read, not even an address made */
        pixels(b, taps, n, x + (first + from * w->dilation[last]) * c->in_channels,
               w->stride[last] * c->in_channels, count, packed, bias, y + o * c->out_channels);
    }
}

void cpu_conv_group_run(const cpu_conv *c, const float *x, const float *packed, const float *bias,
                        const float *residual, float *y, void *workspace, int threads)
{
    const cpu_window *w = &c->w;
    const blocks b = conv_group_blocks_of(c);
    pixels_fn *pixels = conv_group_pick();
    const int64_t width = w->out[w->spatial - 1], lines = width ? w->out_pixels / width : 0,
                  chunks = (width + CHUNK - 1) / CHUNK;
    const bool many =
        (double)c->batch * (double)w->out_pixels * (double)c->out_channels * (double)w->taps > CPU_GRAIN;
#pragma omp parallel for num_threads(threads) if (many) schedule(static)
    for (int64_t item = 0; item < c->batch * lines * chunks; item++) {
        const int64_t image = item / (lines * chunks), line = item / chunks % lines,
                      begin = item % chunks * CHUNK, end = begin + CHUNK < width ? begin + CHUNK : width;
        const int64_t at = (image * w->out_pixels + line * width) * c->out_channels,
                      mine = at + begin * c->out_channels;
        run_line(c, &b, pixels, line, begin, end, x + image * w->in_pixels * c->in_channels, packed, bias,
                 y + at, (tap *)workspace + (int64_t)cpu_thread() * w->taps);
        const grt_epilogue e = {.rows = end - begin,
                                .cols = c->out_channels,
                                .residual = residual ? residual + mine : NULL,
                                .act = c->act};
        grt_epilogue_run(&e, y + mine, 1);
    }
}
