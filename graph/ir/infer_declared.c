/* SPDX-License-Identifier: Apache-2.0 */
/* Declared types of values compared with inferred ones. The inferred type wins. */
#include "graph/ir/infer.h"

#include <inttypes.h>
#include <stdio.h>

static grt_status contradicted(ir_module *module, const ir_declared *d, const char *what,
                               const char *declared, const char *found)
{
    return ir_warn(module, d->value->producer, "'%s' is declared with %s %s, but has %s; that was taken",
                   d->value->name, what, declared, found);
}

static grt_status infer_declared_compare(ir_module *module, const ir_declared *d)
{
    const ir_type *type = &d->value->type;
    char declared[32], found[32], what[32];
    int64_t size;
    if (type->kind != GRT_KIND_TENSOR || !d->value->producer || !d->value->producer->graph)
        return GRT_OK;
    if (d->dtype && type->dtype && d->dtype != type->dtype)
        return contradicted(module, d, "dtype", grt_dtype_name(d->dtype), grt_dtype_name(type->dtype));
    if (d->rank < 0 || type->rank < 0)
        return GRT_OK;
    if (d->rank != type->rank) {
        snprintf(declared, sizeof declared, "%d", d->rank);
        snprintf(found, sizeof found, "%d", type->rank);
        return contradicted(module, d, "rank", declared, found);
    }
    for (int32_t i = 0; i < d->rank; i++) {
        if (d->dims[i] < 0 || !grt_dim_is_const(module->dims, type->dims[i], &size) || size == d->dims[i])
            continue;
        snprintf(what, sizeof what, "dim %d", i);
        snprintf(declared, sizeof declared, "%" PRId64, d->dims[i]);
        snprintf(found, sizeof found, "%" PRId64, size);
        return contradicted(module, d, what, declared, found);
    }
    return GRT_OK;
}

grt_status infer_declared(ir_module *module)
{
    for (const ir_declared *d = module->declared; d; d = d->next)
        GRT_TRY(infer_declared_compare(module, d));
    return GRT_OK;
}
