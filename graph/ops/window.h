/* SPDX-License-Identifier: Apache-2.0 */
/* Sliding windows: what convolutions and pools have in common, as their shape rules see it. */
#ifndef GRT_GRAPH_OPS_WINDOW_H
#define GRT_GRAPH_OPS_WINDOW_H

#include "graph/ir/op.h"

/* Output sizes from input sizes, kernel sizes (dims, as they may come from a weight's shape) and the
 * attributes strides, dilations, pads, auto_pad and ceil_mode. All arrays have `spatial` entries. */
grt_status window_sizes(const infer *inf, int32_t spatial, const grt_dim *in, const grt_dim *kernel,
                        grt_dim *out);
/* The same for ConvTranspose, with output_padding and output_shape. */
grt_status window_transposed_sizes(const infer *inf, int32_t spatial, const grt_dim *in,
                                   const grt_dim *kernel, grt_dim *out);
/* The integer list attribute `name` of n entries; NULL in *out if absent. */
grt_status window_attr(const infer *inf, const char *name, int32_t n, const int64_t **out);

/* Of the attributes of convolutions and pools: rows of ops that have a window name these, so that no rule and
 * no kernel meets other numbers, whatever is known of dims and ranks. */
extern const op_range window_ranges[];

/* Conv's attributes. */
#define CONV_ATTRS                                                              \
    {"auto_pad", GRT_ATTR_STRING, false}, {"dilations", GRT_ATTR_INTS, false},  \
        {"group", GRT_ATTR_INT, false}, {"kernel_shape", GRT_ATTR_INTS, false}, \
        {"pads", GRT_ATTR_INTS, false},                                         \
    {                                                                           \
        "strides", GRT_ATTR_INTS, false                                         \
    }

/* The rule of Conv: inputs x, w, bias; further inputs are not looked at. Knows the attribute `layout`. */
grt_status infer_conv(infer *inf);

#endif
