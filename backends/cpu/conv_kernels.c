/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of 3 x 3 run as Winograd's products where those gain; small groups, depthwise windows and dilated
 * lines that oneDNN would unfold (im2col), transposed lines, and windows to few channels, on the others. */
#include "backends/cpu/conv_kernels.h"

#include "backends/cpu/conv_depthwise.h"
#include "backends/cpu/conv_dots.h"
#include "backends/cpu/conv_group.h"
#include "backends/cpu/conv_lines.h"
#include "backends/cpu/conv_phases.h"
#include "backends/cpu/conv_taps.h"
#include "backends/cpu/conv_winograd.h"

#include <string.h>

enum {
    LONG_TAPS = 16,  /* of a window along a line, in groups */
    MANY_WINDOWS = 4 /* that a line has side by side: fewer of long ones see much padding */
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

const cpu_conv_kernel *cpu_conv_kernel_fallback(const grt_kernel_node *node, const cpu_conv_attrs *a,
                                                const char *impl)
{
    cpu_conv guess;
    const bool unfolds = strstr(impl, "gemm") || strstr(impl, "ref");
    if (a->transposed || !cpu_conv_can_guess(node, a))
        return NULL;
    cpu_conv_guess(node, a, &guess);
    if (!unfolds) /* groups of one channel as of any number, most of their lanes idle */
        return cpu_depthwise_fits(&guess) && !strstr(impl, "dw") ? &depthwise : NULL;
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

const cpu_conv_kernel *cpu_conv_kernel_faster(const grt_kernel_node *node, const cpu_conv_attrs *a)
{
    cpu_conv guess;
    if (!cpu_conv_can_guess(node, a) || !cpu_conv_guess(node, a, &guess))
        return NULL;
    if (a->transposed)
        return cpu_conv_phases_fits(&guess) ? &by_phases : NULL;
    const bool long_groups = guess.groups > 1 && guess.w.taps >= LONG_TAPS;
    const bool line_of_planes = guess.w.spatial == 1 && node->in[1].rank == 5 && guess.w.dilation[0] > 1;
    if (!is_short_line(&guess) && cpu_conv_lines_fits(&guess))
        return &by_lines;
    if ((line_of_planes || long_groups) && cpu_conv_taps_fits(&guess))
        return &by_taps;
    if (cpu_conv_dots_fits(&guess))
        return &dots;
    return cpu_winograd_fits(&guess) ? &winograd : NULL;
}
