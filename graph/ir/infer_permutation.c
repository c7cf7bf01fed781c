/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes whose perm counts axes from the end, as PyTorch's TorchScript exporter copies it from a model.
 * The standard has no such entries; they have one meaning. */
#include "graph/ir/infer.h"

#include "src/base/tensor.h"

grt_status infer_permutation(ir_node *node)
{
    int64_t counted[GRT_MAX_RANK], first = 0;
    size_t n = 0;
    const int64_t *perm =
        grt_op_is(&node->desc, "", "Transpose") ? grt_attr_ints(&node->desc, "perm", &n) : NULL;
    if (!perm || n > GRT_MAX_RANK)
        return GRT_OK;
    for (size_t k = 0; k < n; k++) {
        counted[k] = perm[k] < 0 && perm[k] >= -(int64_t)n ? perm[k] + (int64_t)n : perm[k];
        if (counted[k] != perm[k] && !first)
            first = perm[k];
    }
    if (!first)
        return GRT_OK;
    GRT_TRY(ir_warn(node->graph->module, node,
                    "perm has the entry %lld, which the standard does not; it was counted from the end",
                    (long long)first));
    ir_attr_set_ints(node, "perm", counted, n);
    return GRT_OK;
}
