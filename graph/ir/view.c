/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/ir/view.h"

#include "graph/ir/ir.h"
#include "src/base/checked.h"

static bool view_is_known(const ir_value *value, grt_tensor *out)
{
    const ir_type *type = value ? &value->type : NULL;
    if (!type || type->kind != GRT_KIND_TENSOR || !grt_dtype_in(type->dtype, GRT_SET_PLAIN) || type->rank < 0)
        return false;
    *out = (grt_tensor){.dtype = type->dtype, .rank = type->rank};
    for (int32_t i = 0; i < type->rank; i++)
        if (!grt_dim_is_const(value->graph->module->dims, type->dims[i], &out->dims[i]))
            return false;
    return grt_tensor_bytes(out) != SIZE_MAX;
}

/* One row is cut into ranges of it; of several rows, a part has something of each. */
static bool view_is_one_row(const ir_node *node, const grt_tensor *whole)
{
    const int64_t axis = grt_axis(grt_attr_int(&node->desc, "axis", 0), whole->rank);
    return axis >= 0 && grt_dims_product(whole->dims, 0, (int32_t)axis) == 1;
}

static bool gives_ranges(const ir_node *node)
{
    grt_tensor whole, part;
    size_t at = 0;
    if (!view_is_known(ir_in(node, 0), &whole) || !view_is_one_row(node, &whole))
        return false;
    for (int32_t i = 0; i < node->n_out; i++) {
        if (at % GRT_VALUE_ALIGNMENT || !view_is_known(node->out[i], &part) || part.dtype != whole.dtype)
            return false;
        if (!grt_add_size(at, grt_tensor_bytes(&part), &at))
            return false;
    }
    return at == grt_tensor_bytes(&whole);
}

bool ir_is_view(const ir_node *node)
{
    const uint32_t flags = node->row ? node->row->flags : 0;
    return flags & OP_VIEW || (flags & OP_PARTS && gives_ranges(node));
}
