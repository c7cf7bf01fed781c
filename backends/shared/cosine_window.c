/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/cosine_window.h"

#include <stdlib.h>

grt_status grt_cosine_window_create(const grt_kernel_node *node, void **out_state)
{
    grt_cosine_window *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    const bool blackman = grt_op_is(node->desc, "", "BlackmanWindow"),
               hamming = grt_op_is(node->desc, "", "HammingWindow");
    state->a[0] = blackman ? 0.42 : hamming ? 25.0 / 46 : 0.5;
    state->a[1] = blackman ? 0.5 : hamming ? 21.0 / 46 : 0.5;
    state->a[2] = blackman ? 0.08 : 0;
    state->periodic = grt_attr_int(node->desc, "periodic", 1) != 0;
    *out_state = state;
    return GRT_OK;
}
