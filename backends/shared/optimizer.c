/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/optimizer.h"

#include <stdlib.h>
#include <string.h>

grt_status grt_optimizer_create(const grt_kernel_node *node, void **out_state)
{
    grt_optimizer *o = calloc(1, sizeof *o);
    if (!o)
        return grt_fail_memory(sizeof *o);
    const grt_op_desc *desc = node->desc;
    o->kind = !strcmp(desc->op, "Adam")       ? GRT_ADAM
              : !strcmp(desc->op, "Momentum") ? GRT_MOMENTUM
                                              : GRT_ADAGRAD;
    o->nesterov = !strcmp(grt_attr_string(desc, "mode", "standard"), "nesterov");
    o->alpha = (double)grt_attr_float(desc, "alpha", 0.9f);
    o->beta = (double)grt_attr_float(desc, "beta", 0.999f);
    o->epsilon = (double)grt_attr_float(desc, "epsilon", 1e-6f);
    o->decay = (double)grt_attr_float(desc, "decay_factor", 0);
    o->norm = (double)grt_attr_float(desc, "norm_coefficient", 0);
    o->norm_post = (double)grt_attr_float(desc, "norm_coefficient_post", 0);
    *out_state = o;
    return GRT_OK;
}

grt_status grt_optimizer_reshape(grt_reshape *reshape)
{
    const int32_t tensors = grt_optimizer_tensors(reshape->state), n = (reshape->n_in - 2) / tensors;
    bool fits = grt_tensor_elements(reshape->in[0]) == 1 && grt_tensor_elements(reshape->in[1]) == 1;
    for (int32_t i = 2; fits && i < 2 + n * tensors; i++)
        fits = reshape->in[i] && grt_tensor_same_type(reshape->in[i], reshape->in[2 + (i - 2) % n]);
    return fits ? GRT_OK
                : grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT,
                              "R and T must be scalars; each tensor, its gradient and its states must have "
                              "one type and shape");
}
