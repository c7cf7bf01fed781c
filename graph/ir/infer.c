/* SPDX-License-Identifier: Apache-2.0 */
/* Type and shape inference: helpers for the rules of graph/ops/, and the driver that runs them. */
#include "graph/ir/infer.h"

#include <stdio.h>
#include <string.h>

grt_status infer_fail(const infer *inf, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return grt_fail_op(inf->desc, GRT_STATUS_INVALID_MODEL, "%s", text);
}

grt_dim *infer_dims(const infer *inf, int32_t n)
{
    return GRT_ARENA_ARRAY(inf->arena, grt_dim, n);
}

void infer_set(infer *inf, int32_t i, grt_dtype dtype, int32_t rank, const grt_dim *dims)
{
    if (i < inf->n_out)
        inf->out[i] = (ir_type){.dtype = dtype, .rank = dims ? rank : -1, .dims = dims};
}

void infer_set_unknown(infer *inf, int32_t i, grt_dtype dtype)
{
    infer_set(inf, i, dtype, -1, NULL);
}

void infer_set_fresh(infer *inf, int32_t i, grt_dtype dtype, int32_t rank)
{
    grt_dim *dims = infer_dims(inf, rank);
    for (int32_t k = 0; dims && k < rank; k++)
        dims[k] = grt_dim_fresh(inf->dims);
    infer_set(inf, i, dtype, rank, dims);
}

void infer_set_like(infer *inf, int32_t i, grt_dtype dtype, const ir_type *shape)
{
    infer_set(inf, i, dtype, shape->rank, shape->rank < 0 ? NULL : shape->dims);
}

grt_status infer_same_dtype(const infer *inf, int32_t a, int32_t b)
{
    if (!infer_has(inf, a) || !infer_has(inf, b))
        return GRT_OK;
    grt_dtype da = inf->in[a]->dtype, db = inf->in[b]->dtype;
    if (da && db && da != db)
        return infer_fail(inf, "inputs %d and %d must have the same dtype, found %s and %s", a, b,
                          grt_dtype_name(da), grt_dtype_name(db));
    return GRT_OK;
}

grt_status infer_broadcast(infer *inf, int32_t from, int32_t to, int32_t *out_rank, const grt_dim **out_dims)
{
    int32_t rank = 0;
    *out_rank = -1;
    *out_dims = NULL;
    for (int32_t i = from; i < to; i++) {
        if (!inf->in[i])
            continue;
        if (inf->in[i]->rank < 0)
            return GRT_OK;
        rank = inf->in[i]->rank > rank ? inf->in[i]->rank : rank;
    }
    grt_dim *dims = infer_dims(inf, rank);
    if (!dims)
        return GRT_OK;
    for (int32_t k = 0; k < rank; k++)
        dims[k] = grt_dim_const(inf->dims, 1);
    for (int32_t i = from; i < to; i++) {
        const ir_type *type = inf->in[i];
        for (int32_t k = 0; type && k < type->rank; k++) {
            grt_dim *dim = &dims[rank - type->rank + k];
            int64_t x, y;
            if (infer_const(inf, *dim, &x) && infer_const(inf, type->dims[k], &y) && x != y && x != 1 &&
                y != 1)
                return infer_fail(
                    inf,
                    "input %d cannot be broadcast with the inputs before it: dim %d is %lld, not %lld or 1",
                    i, k, (long long)y, (long long)x);
            *dim = grt_dim_make(inf->dims, GRT_DIM_BROADCAST, *dim, type->dims[k]);
        }
    }
    *out_rank = rank;
    *out_dims = dims;
    return GRT_OK;
}

/* Constants up to this length are looked into; larger ones are data, not shapes. */
enum { MAX_ELEMS = 128 };

static bool readable_ints(const grt_tensor *t, int64_t *out_n)
{
    if (!t || !t->data || !grt_dtype_in(t->dtype, GRT_SET_INTS | GRT_BIT(BOOL)))
        return false;
    *out_n = grt_tensor_elements(t);
    return *out_n >= 0 && *out_n <= MAX_ELEMS;
}

bool infer_elems(const infer *inf, int32_t i, const grt_dim **out_dims, int64_t *out_n)
{
    if (!infer_has(inf, i))
        return false;
    const ir_type *type = inf->in[i];
    if (type->elems) {
        *out_dims = type->elems;
        *out_n = type->n_elems;
        return true;
    }
    if (!readable_ints(type->data, out_n))
        return false;
    grt_dim *dims = infer_dims(inf, (int32_t)*out_n);
    for (int64_t k = 0; dims && k < *out_n; k++)
        dims[k] = grt_dim_const(inf->dims, grt_tensor_int(type->data, k));
    *out_dims = dims;
    return dims != NULL;
}

bool infer_ints(const infer *inf, int32_t i, const int64_t **out_values, int64_t *out_n)
{
    const grt_dim *dims;
    if (!infer_elems(inf, i, &dims, out_n))
        return false;
    int64_t *values = GRT_ARENA_ARRAY(inf->arena, int64_t, *out_n);
    if (!values)
        return false;
    for (int64_t k = 0; k < *out_n; k++)
        if (!infer_const(inf, dims[k], &values[k]))
            return false;
    *out_values = values;
    return true;
}

bool infer_scalar(const infer *inf, int32_t i, double *out_value)
{
    const grt_tensor *t = infer_has(inf, i) ? inf->in[i]->data : NULL;
    if (t && t->data && grt_dtype_in(t->dtype, GRT_SET_NUMBERS) && grt_tensor_elements(t) == 1) {
        *out_value = grt_tensor_double(t, 0);
        return true;
    }
    int64_t n;
    const int64_t *ints;
    if (!infer_ints(inf, i, &ints, &n) || n != 1)
        return false;
    *out_value = (double)ints[0];
    return true;
}

grt_dim infer_product(const infer *inf, const grt_dim *dims, int32_t from, int32_t to)
{
    grt_dim product = grt_dim_const(inf->dims, 1);
    for (int32_t i = from; i < to; i++)
        product = grt_dim_mul(inf->dims, product, dims[i]);
    return product;
}

grt_status infer_axis(const infer *inf, const char *what, int64_t axis, int32_t rank, int32_t *out_axis)
{
    int64_t normal = grt_axis(axis, rank);
    if (normal < 0)
        return infer_fail(inf, "%s is %lld; for rank %d it must lie in [%d, %d]", what, (long long)axis, rank,
                          -rank, rank - 1);
    *out_axis = (int32_t)normal;
    return GRT_OK;
}

grt_status infer_tensor(const infer *inf, int32_t i)
{
    if (infer_has(inf, i) && inf->in[i]->kind != GRT_KIND_TENSOR)
        return infer_fail(inf, "input %d is %s %s; it must be a tensor", i,
                          inf->in[i]->kind == GRT_KIND_OPTIONAL ? "an" : "a",
                          grt_kind_name(inf->in[i]->kind));
    return GRT_OK;
}

grt_status infer_dtype_attr(const infer *inf, const char *name, grt_dtype_set allowed, grt_dtype absent,
                            grt_dtype *out_dtype)
{
    const int64_t number = grt_attr_int(inf->desc, name, 0);
    if (number && (number < 0 || number >= GRT_DTYPE_COUNT || !grt_dtype_in((grt_dtype)number, allowed)))
        return infer_fail(inf, "attribute %s is %lld, an element type that is not allowed here", name,
                          (long long)number);
    if (!number && absent && !grt_dtype_in(absent, allowed)) /* the type of an input */
        return infer_fail(
            inf, "without attribute %s the result would be %s, an element type that is not allowed here",
            name, grt_dtype_name(absent));
    *out_dtype = number ? (grt_dtype)number : absent;
    return GRT_OK;
}

grt_status infer_same_as_first(infer *inf)
{
    inf->out[0] = *inf->in[0];
    inf->out[0].data = NULL;
    inf->out[0].elems = NULL;
    return GRT_OK;
}

grt_status infer_elementwise(infer *inf)
{
    int32_t rank;
    const grt_dim *dims;
    for (int32_t i = 1; i < inf->n_in; i++)
        GRT_TRY(infer_same_dtype(inf, 0, i));
    GRT_TRY(infer_broadcast(inf, 0, inf->n_in, &rank, &dims));
    infer_set(inf, 0, inf->in[0]->dtype, rank, dims);
    return GRT_OK;
}

grt_status op_infer_types(const op_row *row, infer *inf)
{
    for (int32_t i = 0; i < row->min_in; i++)
        if (!infer_has(inf, i))
            return infer_fail(inf, "input %d is missing; %s needs at least %d", i, row->name, row->min_in);
    for (int32_t i = 0; i < inf->n_in && !(row->flags & OP_ANY_KIND); i++)
        GRT_TRY(infer_tensor(inf, i));
    for (int32_t i = 0; i < inf->n_out; i++)
        inf->out[i].rank = -1;
    grt_status status = row->infer(inf);
    for (int32_t i = 0; status == GRT_OK && i < inf->n_out; i++)
        if (inf->out[i].rank > GRT_MAX_RANK)
            status = infer_fail(inf, "output %d would have rank %d; tensors have at most %d dims", i,
                                inf->out[i].rank, GRT_MAX_RANK);
    /* Out of memory, a rule knows less than it should and may refuse valid nodes: report the lack of memory.
     */
    bool failed = grt_arena_failed(inf->arena) || grt_dims_failed(inf->dims);
    for (int32_t i = 0; i < inf->n_out; i++)
        for (int32_t k = 0; k < inf->out[i].rank; k++)
            failed |= inf->out[i].dims[k] < 0;
    return failed ? grt_fail_memory(0) : status;
}

static bool is_fresh(const grt_dims *dims, grt_dim dim)
{
    grt_dim_expr e = grt_dim_get(dims, dim);
    return e.op == GRT_DIM_SYMBOL && grt_dims_symbol_name(dims, (int32_t)e.value)[0] == '?';
}

/* Merges two types of one value: declared or inferred before, and inferred now. The inferred one wins, but a
 * fresh symbol has no information: then a declared constant or an earlier symbol stays. */
static grt_status refine(ir_module *module, ir_type *known, const ir_type *found)
{
    ir_type merged = *found;
    if (known->kind == found->kind && !merged.dtype)
        merged.dtype = known->dtype;
    bool comparable = known->kind == merged.kind && known->dtype == merged.dtype;
    if (comparable && merged.rank < 0) {
        merged.rank = known->rank;
        merged.dims = known->dims;
    } else if (comparable && merged.rank > 0 && known->rank == merged.rank) {
        /* found->dims may be shared with an input's type: never write into it */
        grt_dim *dims = GRT_ARENA_ARRAY(module->arena, grt_dim, merged.rank);
        if (!dims)
            return grt_fail_memory((size_t)merged.rank * sizeof *dims);
        for (int32_t i = 0; i < merged.rank; i++) {
            bool keep = is_fresh(module->dims, found->dims[i]) &&
                        (grt_dim_is_const(module->dims, known->dims[i], NULL) ||
                         is_fresh(module->dims, known->dims[i]));
            dims[i] = keep ? known->dims[i] : found->dims[i];
        }
        merged.dims = dims;
    }
    if (comparable && !merged.elems && known->elems) {
        merged.elems = known->elems;
        merged.n_elems = known->n_elems;
    }
    *known = merged;
    return GRT_OK;
}

static grt_status infer_outputs(ir_node *node)
{
    ir_module *module = node->graph->module;
    if (!node->row || !node->row->infer)
        return GRT_OK;
    GRT_TRY(op_check_ranges(node->row, &node->desc));
    GRT_TRY(infer_mixed(node));
    GRT_TRY(infer_types(node));
    GRT_TRY(infer_reduction(node));
    GRT_TRY(infer_permutation(node));
    const ir_type **in = GRT_ARENA_ARRAY(module->arena, const ir_type *, node->n_in);
    ir_type *out = GRT_ARENA_ARRAY(module->arena, ir_type, node->n_out);
    if (!in || !out)
        return grt_fail_memory(0);
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = node->in[i].value ? &node->in[i].value->type : NULL;
    infer inf = {&node->desc, module->dims, module->arena, node->n_in, node->n_out, in, out};
    GRT_TRY(op_infer_types(node->row, &inf));
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i])
            GRT_TRY(refine(module, &node->out[i]->type, &out[i]));
    return grt_arena_failed(module->arena) ? grt_fail_memory(0) : GRT_OK;
}

grt_status infer_by_row(ir_node *node)
{
    const grt_status status = infer_outputs(node);
    if (status != GRT_STATUS_INVALID_MODEL)
        return status;
    grt_text inputs = {0};
    ir_node_add_inputs(node, &inputs);
    grt_fail_inputs(status, &inputs);
    grt_text_release(&inputs);
    return status;
}
