/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of 3 x 3 run as Winograd's products where those gain; large depthwise windows, small groups,
 * depthwise windows and dilated lines that oneDNN would unfold (im2col), transposed lines, and windows to few
 * channels, on the others. */
#include "backends/cpu/conv_kernels.h"

#include "backends/cpu/conv_depthwise.h"
#include "backends/cpu/conv_dots.h"
#include "backends/cpu/conv_group.h"
#include "backends/cpu/conv_lines.h"
#include "backends/cpu/conv_phases.h"
#include "backends/cpu/conv_taps.h"
#include "backends/cpu/conv_winograd.h"
#include "backends/cpu/isa.h"

#include <string.h>

enum {
    FLAT_TAPS = 7,         /* oneDNN is faster for fewer, in groups along images that are lines */
    FLAT_TAPS_AVX512 = 20, /* the same there */
    DEEP_TAPS = 16,        /* the same, depthwise */
    DEEP_TAPS_AVX512 = 56, /* the same there */
    DEEP_WINDOWS = 16,     /* that a line has side by side, depthwise: oneDNN is faster for fewer */
    LONG_TAPS = 16,        /* of a window along a line, in groups */
    MOST_FILTERS = 4,      /* of a group of one channel: with more, oneDNN's vectors are full enough */
    MANY_WINDOWS = 4,      /* that a line has side by side: fewer of long ones see much padding */
    LARGE_SIDE = 7,        /* of a depthwise window that is dense: of any image as wide as it */
    MEDIUM_SIDE = 5,       /* the same of images that are neither narrow nor wide: */
    MEDIUM_NARROW = 20,
    MEDIUM_WIDE = 64
};

static const cpu_conv_kernel winograd = {cpu_winograd_floats, cpu_winograd_pack, cpu_winograd_bytes,
                                         cpu_winograd_run};
static const cpu_conv_kernel depthwise = {cpu_depthwise_floats, cpu_depthwise_pack, cpu_depthwise_bytes,
                                          cpu_depthwise_run};
static const cpu_conv_kernel dots = {cpu_conv_dots_floats, cpu_conv_dots_pack, cpu_conv_dots_bytes,
                                     cpu_conv_dots_run};
static const cpu_conv_kernel by_taps = {cpu_conv_taps_floats, cpu_conv_taps_pack, cpu_conv_taps_bytes,
                                        cpu_conv_taps_run};
static const cpu_conv_kernel by_lines = {cpu_conv_lines_floats, cpu_conv_lines_pack, cpu_conv_lines_bytes,
                                         cpu_conv_lines_run};
static const cpu_conv_kernel by_phases = {cpu_conv_phases_floats, cpu_conv_phases_pack, cpu_conv_phases_bytes,
                                          cpu_conv_phases_run};
static const cpu_conv_kernel grouped = {cpu_conv_group_floats, cpu_conv_group_pack, cpu_conv_group_bytes,
                                        cpu_conv_group_run};

cpu_conv cpu_conv_kernel_geometry(const cpu_conv *c)
{
    const cpu_conv line = cpu_conv_line(c);
    return cpu_conv_dots_fits(c) && !cpu_conv_dots_fits(&line) ? *c : line; /* taps apart are dots */
}

/* oneDNN's kernels of images serve images that are lines, a few taps best. */
static bool suits_onednn(const grt_kernel_node *node, const cpu_conv *c, int64_t taps, int64_t taps_avx512)
{
    const bool is_image = node->in[1].rank == 4;
    return is_image && c->w.taps < (cpu_isa_best() >= CPU_ISA_AVX512 ? taps_avx512 : taps);
}

static bool is_deep_line(const grt_kernel_node *node, const cpu_conv *c)
{
    return c->w.spatial == 1 && c->w.out[0] / DEEP_WINDOWS >= c->w.taps &&
           !suits_onednn(node, c, DEEP_TAPS, DEEP_TAPS_AVX512);
}

/* Groups of one channel with a few filters each (depth multipliers): oneDNN fills both sides of each up to a
 * vector, weights too. */
static bool has_thin_groups(const cpu_conv *c)
{
    return cpu_conv_group_fits(c) && c->in_channels == c->groups && c->out_channels > c->groups &&
           c->out_channels / c->groups <= MOST_FILTERS;
}

const cpu_conv_kernel *cpu_conv_kernel_fallback(const grt_kernel_node *node, const cpu_conv_attrs *a,
                                                const char *impl)
{
    cpu_conv guess;
    const bool unfolds = strstr(impl, "gemm") || strstr(impl, "ref");
    if (a->transposed || !cpu_conv_can_guess(node, a))
        return NULL;
    cpu_conv_guess(node, a, &guess);
    guess = cpu_conv_kernel_geometry(&guess);
    if (!unfolds) /* groups of few channels as of any number, most of their lanes idle */
        return cpu_depthwise_fits(&guess) && (!strstr(impl, "dw") || is_deep_line(node, &guess)) ? &depthwise
               : has_thin_groups(&guess)                                                         ? &grouped
                                                                                                 : NULL;
    return cpu_depthwise_fits(&guess)    ? &depthwise
           : cpu_conv_group_fits(&guess) ? &grouped
           : cpu_conv_taps_fits(&guess)  ? &by_taps
                                         : NULL;
}

/* Much of what its long windows see is padding, which products of single taps leave out. */
static bool is_short_line(const cpu_conv *c)
{
    return c->w.spatial == 1 && c->w.taps >= LONG_TAPS && c->w.out[0] / MANY_WINDOWS < c->w.taps;
}

/* Depthwise windows of an image that gain by loading each input once for all outputs beside each other that
 * see it, on processors whose vectors of 512 bits are whole (docs/measurements/cpu-math.md). */
static bool is_dense_image(const cpu_conv *c)
{
    if (c->w.spatial != 2 || !cpu_depthwise_fits(c) || !cpu_depthwise_is_dense(c) || cpu_isa_halves_avx512())
        return false;
    const int64_t side = c->w.kernel[0] < c->w.kernel[1] ? c->w.kernel[0] : c->w.kernel[1],
                  width = c->w.out[1];
    return side >= LARGE_SIDE ? width >= LARGE_SIDE
                              : side >= MEDIUM_SIDE && width >= MEDIUM_NARROW && width <= MEDIUM_WIDE;
}

const cpu_conv_kernel *cpu_conv_kernel_faster(const grt_kernel_node *node, const cpu_conv_attrs *a)
{
    cpu_conv guess;
    if (!cpu_conv_can_guess(node, a) || !cpu_conv_guess(node, a, &guess))
        return NULL;
    guess = cpu_conv_kernel_geometry(&guess);
    if (a->transposed)
        return cpu_conv_phases_fits(&guess) ? &by_phases : NULL;
    const bool flat = suits_onednn(node, &guess, FLAT_TAPS, FLAT_TAPS_AVX512);
    const bool long_groups = guess.groups > 1 && guess.w.taps >= LONG_TAPS && !(flat && guess.w.spatial == 1);
    const bool line_of_planes = guess.w.spatial == 1 && node->in[1].rank == 5 && guess.w.dilation[0] > 1;
    if (!is_short_line(&guess) && !flat && cpu_conv_lines_fits(&guess))
        return &by_lines;
    if ((line_of_planes || long_groups) && cpu_conv_taps_fits(&guess))
        return &by_taps;
    if (is_dense_image(&guess))
        return &depthwise;
    if (cpu_conv_dots_fits(&guess))
        return &dots;
    return cpu_winograd_fits(&guess) ? &winograd : NULL;
}
