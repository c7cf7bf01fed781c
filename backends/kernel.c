/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the kernel row that fits a node; memory for what kernels keep. */
#include "backends/kernel.h"

#include <string.h>

static grt_status keep(grt_account *account, const grt_op_desc *desc, size_t bytes, void **out_data)
{
    const grt_status status = grt_account_alloc(account, GRT_ACCOUNT_KERNELS, bytes, out_data);
    return status == GRT_OK ? GRT_OK : grt_fail_op(desc, status, "%s", grt_last_error());
}

grt_status grt_kernel_alloc(const grt_kernel_node *node, size_t bytes, void **out_data)
{
    return keep(node->account, node->desc, bytes, out_data);
}

grt_status grt_reshape_alloc(const grt_reshape *reshape, size_t bytes, void **out_data)
{
    return keep(reshape->account, reshape->desc, bytes, out_data);
}

static grt_dtype_set accepted(const grt_kernel_row *row, int32_t i)
{
    if (i < 4)
        return row->types[i];
    for (int32_t k = 3; k >= 0; k--)
        if (row->types[k])
            return row->types[k];
    return 0;
}

static void add_types(grt_text *why, grt_dtype_set set)
{
    const char *separator = "";
    for (int d = 1; d < GRT_DTYPE_COUNT; d++)
        if (set >> d & 1u) {
            grt_text_add(why, "%s%s", separator, grt_dtype_name((grt_dtype)d));
            separator = ", ";
        }
}

static bool row_fits(const grt_kernel_row *row, const grt_kernel_node *node, grt_text *why)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        grt_dtype dtype = node->in[i].dtype;
        grt_dtype_set set = accepted(row, i);
        if (dtype == GRT_DTYPE_NONE || !set || grt_dtype_in(dtype, set))
            continue;
        if (why) {
            grt_text_add(why, "%sinput %d is %s; the kernel takes ", why->size ? "; or " : "", i,
                         grt_dtype_name(dtype));
            add_types(why, set);
        }
        return false;
    }
    return !row->supports || row->supports(node, why);
}

const grt_kernel_row *grt_kernel_find(const grt_kernel_table *const *tables, size_t n_tables,
                                      const grt_kernel_node *node, grt_text *why)
{
    bool known = false;
    for (size_t t = 0; t < n_tables; t++)
        for (size_t i = 0; i < tables[t]->n; i++) {
            const grt_kernel_row *row = &tables[t]->rows[i];
            if (!grt_op_is(node->desc, row->domain, row->op))
                continue;
            known = true;
            if (row_fits(row, node, why))
                return row;
        }
    if (!known && why)
        grt_text_add(why, "there is no kernel for this op");
    return NULL;
}
