/* SPDX-License-Identifier: Apache-2.0 */
/* Branches that are added up: convolutions of one input by constant weights, and that input scaled by
 * channel, which is a convolution by one weight for each channel. */
#ifndef GRT_GRAPH_PASSES_CONV_BRANCH_H
#define GRT_GRAPH_PASSES_CONV_BRANCH_H

#include "graph/passes/channel_affine.h"

enum { CONV_BRANCH_SPATIAL = GRT_MAX_RANK - 2 };

typedef struct conv_branch {
    ir_value *x;
    ir_node *node;              /* the convolution; NULL: x times scaled.scale plus scaled.shift */
    const grt_tensor *w, *bias; /* of the convolution; bias may be NULL */
    channel_affine scaled;
    bool is_plain; /* x itself */
    int32_t spatial;
    int64_t filters, groups, depth; /* depth: input channels of a group */
    int64_t kernel[CONV_BRANCH_SPATIAL], stride[CONV_BRANCH_SPATIAL], dilation[CONV_BRANCH_SPATIAL];
    int64_t begin[CONV_BRANCH_SPATIAL]; /* padding in front */
} conv_branch;

/* The convolution that makes the value. */
bool conv_branch_read(const ir_value *value, conv_branch *out);
/* A value that is the convolution's input, scaled and shifted by channel or as it is. */
bool conv_branch_read_scaled(ir_value *value, const conv_branch *conv, grt_arena *scratch, conv_branch *out);
/* True if nothing else reads the convolution's weights. */
bool conv_branch_owns_weights(const conv_branch *b);
/* True if a convolution of the form of the host, which is one, computes the guest too. */
bool conv_branch_fits(const conv_branch *host, const conv_branch *guest);
/* The host's convolution becomes that of host_sign * host + guest_sign * guest. False, with nothing changed,
 * if the weights would not be finite, the budget does not allow them, or out of memory. Weights that it has
 * made are marked, and changed in place by the next join: marks of constants are its own until the pass ends,
 * and are 0 before it. */
bool conv_branch_join(const conv_branch *host, const conv_branch *guest, double host_sign, double guest_sign,
                      grt_arena *scratch);

#endif
