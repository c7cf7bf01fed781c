/* SPDX-License-Identifier: Apache-2.0 */
#include "src/plan/dims.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

grt_status grt_plan_dims_make(const grt_plan *plan, const int64_t *symbols, grt_plan_dims *out_dims)
{
    const size_t n = (size_t)plan->n_dims + 1;
    *out_dims = (grt_plan_dims){calloc(n, sizeof *out_dims->value), calloc(n, sizeof *out_dims->known)};
    if (!out_dims->value || !out_dims->known) {
        grt_plan_dims_release(out_dims);
        return grt_fail_memory(n * (sizeof *out_dims->value + sizeof *out_dims->known));
    }
    int64_t *value = out_dims->value;
    bool *known = out_dims->known;
    for (int32_t i = 0; i < plan->n_dims; i++) {
        const grt_dim_expr *e = &plan->dims[i];
        known[i] = true;
        if (e->op == GRT_DIM_CONST)
            value[i] = e->value;
        else if (e->op == GRT_DIM_SYMBOL)
            value[i] = symbols ? symbols[e->value] : 1;
        else
            known[i] =
                known[e->a] && known[e->b] && grt_dim_apply(e->op, value[e->a], value[e->b], &value[i]);
    }
    return GRT_OK;
}

void grt_plan_dims_release(grt_plan_dims *dims)
{
    free(dims->value);
    free(dims->known);
    *dims = (grt_plan_dims){0};
}

grt_tensor grt_plan_describe(const grt_plan *plan, const grt_plan_body *body, int32_t value,
                             const grt_plan_dims *dims)
{
    grt_tensor t = {.rank = -1};
    if (value < 0)
        return t;
    const grt_plan_value *v = &body->values[value];
    if (v->role == GRT_VALUE_CONST)
        return plan->weights[v->weight];
    t.dtype = v->dtype;
    t.rank = v->kind == GRT_KIND_TENSOR ? v->rank : -1;
    for (int32_t i = 0; i < t.rank; i++) {
        const int32_t at = v->dims[i];
        const bool known = dims ? dims->known[at] : plan->dims[at].op == GRT_DIM_CONST;
        const int64_t size = dims ? dims->value[at] : plan->dims[at].value;
        t.dims[i] = known && size >= 0 ? size : -1; /* a negative number is no size that a kernel could use */
    }
    return t;
}

static const grt_plan_value *dims_find_input(const grt_plan *plan, const char *name)
{
    const grt_plan_body *body = &plan->bodies[0];
    for (int32_t i = 0; i < body->n_inputs; i++)
        if (name && !strcmp(body->values[body->inputs[i]].name, name))
            return &body->values[body->inputs[i]];
    return NULL;
}

/* symbols: 0 where nothing was said yet */
static grt_status take_shape(const grt_plan *plan, const grt_input_shape *shape, int64_t *symbols)
{
    const grt_plan_value *v = dims_find_input(plan, shape->input);
    if (!v || v->kind != GRT_KIND_TENSOR)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "there is no input tensor '%s' to give a shape to",
                        shape->input ? shape->input : "");
    if (v->rank < 0)
        return GRT_OK;
    if (shape->rank != v->rank)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "input '%s' has rank %d, the shape given %d dims",
                        shape->input, v->rank, shape->rank);
    for (int32_t i = 0; i < v->rank; i++) {
        const grt_dim_expr *e = &plan->dims[v->dims[i]];
        const int64_t given = shape->dims[i];
        const int64_t wanted = e->op == GRT_DIM_CONST    ? e->value
                               : e->op == GRT_DIM_SYMBOL ? symbols[e->value]
                                                         : 0;
        if (given < 0 || (e->op == GRT_DIM_CONST && given != wanted) ||
            (e->op == GRT_DIM_SYMBOL && wanted && given != wanted))
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "dim %d of input '%s' is given as %" PRId64 "; %" PRId64 " is expected", i,
                            shape->input, given, wanted);
        if (e->op == GRT_DIM_SYMBOL)
            symbols[e->value] = given;
    }
    return GRT_OK;
}

grt_status grt_plan_symbols(const grt_plan *plan, const grt_input_shape *shapes, size_t n,
                            int64_t *out_symbols)
{
    memset(out_symbols, 0, (size_t)plan->n_symbols * sizeof *out_symbols);
    for (size_t i = 0; i < n; i++)
        GRT_TRY(take_shape(plan, &shapes[i], out_symbols));
    for (int32_t i = 0; i < plan->n_symbols; i++)
        if (out_symbols[i] == 0)
            out_symbols[i] = 1;
    return GRT_OK;
}
