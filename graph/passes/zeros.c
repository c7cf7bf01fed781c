/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/zeros.h"

#include "graph/ir/constant.h"

#include <string.h>

int64_t zeros_vector(const ir_node *node, const grt_tensor *w)
{
    if (w->dtype == GRT_DTYPE_FLOAT)
        return strcmp(grt_attr_string(&node->desc, "math", ""), "tf32") ? 0 : 4;
    return w->dtype == GRT_DTYPE_FLOAT16 || w->dtype == GRT_DTYPE_BFLOAT16 ? 8 : 0;
}

ir_value *zeros_behind(const ir_value *value, int32_t axis, int64_t more)
{
    const grt_tensor *t = value->type.data;
    int64_t dims[GRT_MAX_RANK];
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    dims[axis] += more;
    grt_tensor *filled = ir_constant_create(value->graph->module, t->dtype, t->rank, dims);
    if (!filled)
        return NULL;
    const size_t n = (size_t)grt_dims_product(t->dims, 0, axis), from = n ? grt_tensor_bytes(t) / n : 0,
                 to = n ? grt_tensor_bytes(filled) / n : 0;
    memset(filled->data, 0, n * to);
    for (size_t i = 0; i < n; i++)
        memcpy((char *)filled->data + i * to, (const char *)t->data + i * from, from);
    return ir_constant(value->graph, NULL, filled);
}

static ir_value *zeros_int(ir_node *node, int64_t value)
{
    return ir_constant_ints(node->graph, node->desc.name, &value, 1);
}

ir_node *zeros_cut_off(ir_node *made, int64_t n)
{
    const int32_t last = made->out[0]->type.rank - 1;
    ir_value *in[] = {made->out[0], zeros_int(made, 0), zeros_int(made, n), zeros_int(made, last)};
    ir_node *slice = in[1] && in[2] && in[3]
                         ? ir_node_create(made->graph, made->next, "", "Slice", made->desc.name, 4, in, 1)
                         : NULL;
    return slice && op_infer_node(slice) == GRT_OK ? slice : NULL;
}
