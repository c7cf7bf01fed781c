/* SPDX-License-Identifier: Apache-2.0 */
/* Pad and CenterCropPad: which part of the input is used, where it goes, and what fills the border. */
#ifndef GRT_BACKENDS_SHARED_PAD_H
#define GRT_BACKENDS_SHARED_PAD_H

#include "backends/kernel.h"
#include "src/base/float.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum grt_pad_mode {
    GRT_PAD_CONSTANT,
    GRT_PAD_REFLECT,
    GRT_PAD_EDGE,
    GRT_PAD_WRAP,
} grt_pad_mode;

/* `first` and `size` say which part of each axis is used, `at` where that starts in the output, in which it
 * lies even if it is empty. Where `used`, the product of the sizes, is 0, `first` is as the model says and
 * may lie outside of the input. */
typedef struct grt_padding_plan {
    int64_t first[GRT_MAX_RANK], size[GRT_MAX_RANK], at[GRT_MAX_RANK], used;
} grt_padding_plan;

/* For kernel rows: the state is a grt_pad_mode, which free releases. */
grt_status grt_pad_create(const grt_kernel_node *node, void **out_state);
/* Inputs as Pad's, pads and axes in host memory. Errors: INVALID_ARGUMENT if they do not fit the input, or if
 * nothing of it is left that could fill the border. */
grt_status grt_pad_plan(const grt_op_desc *desc, grt_pad_mode mode, const grt_tensor *const *in, int32_t n_in,
                        const grt_tensor *out, grt_padding_plan *plan);
/* CenterCropPad. */
void grt_center_plan(const grt_tensor *in, const grt_tensor *out, grt_padding_plan *plan);

/* The element, of the n that are used, that stands at position i, which may lie beyond them. */
GRT_INLINE int64_t grt_pad_source(grt_pad_mode mode, int64_t i, int64_t n)
{
    if (i >= 0 && i < n)
        return i;
    if (mode == GRT_PAD_EDGE)
        return i < 0 ? 0 : n - 1;
    const int64_t period = mode == GRT_PAD_WRAP ? n : n > 1 ? 2 * (n - 1) : 1;
    i %= period;
    i = i < 0 ? i + period : i;
    return i < n ? i : period - i;
}

#ifdef __cplusplus
}
#endif
#endif
