/* SPDX-License-Identifier: Apache-2.0 */
/* Float16 constants beside float32 values. PyTorch's TorchScript exporter writes half-precision models with
 * masks so; the standard wants one type. A float16 constant is the same number in float32; a float32 constant
 * of one element beside float16 values is what PyTorch calls a scalar, which takes the tensor's type.
 * Whatever else is mixed could mean two things, and stays an error. */
#include "graph/ir/infer.h"

#include "src/base/float.h"

#include <string.h>

static ir_value *converted(ir_node *node, const grt_tensor *from, grt_dtype to)
{
    grt_arena *arena = node->graph->module->arena;
    grt_tensor *t = grt_arena_memdup(arena, from, sizeof *from);
    const int64_t n = grt_tensor_elements(from);
    if (!t)
        return NULL;
    t->dtype = to;
    t->data = grt_arena_calloc(arena, (size_t)n + 1, grt_dtype_size(to));
    for (int64_t i = 0; t->data && i < n; i++)
        if (to == GRT_DTYPE_FLOAT)
            ((float *)t->data)[i] = grt_half_to_float(((const uint16_t *)from->data)[i]);
        else
            ((uint16_t *)t->data)[i] = grt_float_to_half(((const float *)from->data)[i]);
    return t->data ? ir_constant(node->graph, NULL, t) : NULL;
}

/* The type of the values that are computed, if they have one; NONE if there is none. */
static grt_dtype computed_type(const ir_node *node)
{
    grt_dtype found = GRT_DTYPE_NONE;
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *value = node->in[i].value;
        if (!value || value->type.data || !grt_dtype_in(value->type.dtype, GRT_BIT(FLOAT) | GRT_BIT(FLOAT16)))
            continue;
        if (found && found != value->type.dtype)
            return GRT_DTYPE_NONE;
        found = value->type.dtype;
    }
    return found;
}

grt_status infer_mixed(ir_node *node)
{
    if (node->n_in < 2 || !node->row || !(node->row->flags & OP_ONE_FLOAT_TYPE))
        return GRT_OK;
    const grt_dtype wanted = computed_type(node);
    for (int32_t i = 0; i < node->n_in && wanted; i++) {
        ir_value *value = node->in[i].value;
        const grt_tensor *data = value ? value->type.data : NULL;
        if (!data || !data->data || data->dtype == wanted ||
            data->dtype != (wanted == GRT_DTYPE_FLOAT ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_FLOAT) ||
            (wanted == GRT_DTYPE_FLOAT16 && grt_tensor_elements(data) != 1))
            continue;
        GRT_TRY(ir_warn(node->graph->module, node,
                        "input %d is a constant of %s beside values of %s; it was taken as %s", i,
                        grt_dtype_name(data->dtype), grt_dtype_name(wanted), grt_dtype_name(wanted)));
        ir_value *constant = converted(node, data, wanted);
        if (!constant)
            return grt_fail_memory(0);
        ir_node_set_input(node, i, constant);
    }
    return GRT_OK;
}
