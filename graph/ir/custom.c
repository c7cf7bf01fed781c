/* SPDX-License-Identifier: Apache-2.0 */
/* Custom operators as rows: their shape rule, and how they get into the register. */
#include "src/base/custom.h"

#include "graph/ir/op.h"
#include "src/base/structs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    grt_custom_entry base; /* first: the register's entries are these */
    op_row row;
    op_attr *attrs;
    uint64_t *dtypes;
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void describe_input(const ir_type *type, grt_custom_type *out)
{
    *out = (grt_custom_type){.rank = -1};
    if (!type)
        return;
    out->dtype = type->dtype;
    out->rank = type->rank;
    out->value = type->data && type->data->data ? type->data : NULL;
    for (int32_t k = 0; k < type->rank; k++)
        out->dims[k] = type->dims[k];
}

static grt_status take_output(infer *inf, int32_t i, const grt_custom_type *type)
{
    int64_t size;
    GRT_TRY(grt_reserved_check(type->reserved, sizeof type->reserved, "grt_custom_type"));
    if (!grt_dtype_bits(type->dtype) || type->dtype == GRT_DTYPE_STRING)
        return infer_fail(inf, "its rule gives output %d no dtype that custom operators can make", i);
    if (type->rank < -1 || type->rank > GRT_MAX_RANK)
        return infer_fail(inf, "its rule gives output %d the rank %d", i, type->rank);
    grt_dim *dims = type->rank < 0 ? NULL : infer_dims(inf, type->rank);
    for (int32_t k = 0; dims && k < type->rank; k++) {
        const bool is_known = type->dims[k] >= 0 && type->dims[k] < grt_dims_count(inf->dims);
        dims[k] = is_known ? type->dims[k] : grt_dim_fresh(inf->dims);
        if (grt_dim_is_const(inf->dims, dims[k], &size) && size < 0)
            return infer_fail(inf, "its rule gives dim %d of output %d the size %lld", k, i, (long long)size);
    }
    infer_set(inf, i, type->dtype, type->rank, dims);
    return GRT_OK;
}

static grt_status infer_custom(infer *inf)
{
    const grt_custom_op *op = &grt_custom_find(inf->desc->domain, inf->desc->op)->op;
    grt_custom_type *in = GRT_ARENA_ARRAY(inf->arena, grt_custom_type, inf->n_in),
                    *out = GRT_ARENA_ARRAY(inf->arena, grt_custom_type, inf->n_out);
    if (!in || !out)
        return grt_fail_memory(0);
    for (int32_t i = 0; i < inf->n_in; i++)
        describe_input(inf->in[i], &in[i]);
    for (int32_t i = 0; i < inf->n_out; i++)
        out[i] = (grt_custom_type){.rank = -1};
    grt_custom_view view = {.desc = inf->desc, .dims = inf->dims};
    const grt_custom_node node = grt_custom_show(&view, inf->n_in, inf->n_out);
    GRT_TRY(grt_custom_status(&view, op->infer(op->user, &node, in, out)));
    for (int32_t i = 0; i < inf->n_out; i++)
        GRT_TRY(take_output(inf, i, &out[i]));
    return GRT_OK;
}

static void entry_release(entry *e)
{
    for (op_attr *a = e->attrs; a && a->name; a++)
        free((char *)(uintptr_t)a->name);
    free((char *)(uintptr_t)e->base.op.domain);
    free((char *)(uintptr_t)e->base.op.name);
    free(e->attrs);
    free(e->dtypes);
    free(e);
}

static grt_status check_op(const grt_custom_op *op)
{
    static const char *const ours[] = {"", "ai.onnx", "ai.onnx.ml", "graphrt"};
    const char *domain = op->domain ? op->domain : "", *name = op->name ? op->name : "";
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (!strcmp(domain, ours[i]))
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "custom operator '%s': the domain is '%s'; it must be one of its own", name,
                            domain);
    if (!*name || !op->infer || (!op->run && !op->run_cuda))
        return grt_fail(
            GRT_STATUS_INVALID_ARGUMENT,
            "custom operator '%s::%s': a name, a shape rule and a function that runs it are needed", domain,
            name);
    if (op->min_inputs > op->max_inputs || op->min_outputs > op->max_outputs || op->min_outputs < 1 ||
        op->min_inputs >= OP_VARIADIC || op->min_outputs >= OP_VARIADIC)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "custom operator '%s::%s': it must have at least one output, and minima that are not "
                        "above the maxima",
                        domain, name);
    if ((op->n_attributes && !op->attributes) || (op->n_input_dtypes && !op->input_dtypes))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "custom operator '%s::%s': a list is NULL", domain,
                        name);
    for (size_t i = 0; i < op->n_attributes; i++) {
        const grt_custom_attribute *a = &op->attributes[i];
        GRT_TRY(grt_reserved_check(a->reserved, sizeof a->reserved, "grt_custom_attribute"));
        if (!a->name || (unsigned)a->kind > GRT_ATTR_STRINGS)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "custom operator '%s::%s': attribute %zu has no name or no kind", domain, name,
                            i);
    }
    return GRT_OK;
}

static int16_t custom_limit(size_t n)
{
    return n < OP_VARIADIC ? (int16_t)n : OP_VARIADIC;
}

/* A copy that the register owns; NULL when out of memory. */
static entry *entry_create(const grt_custom_op *op)
{
    entry *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->base.op = *op;
    e->base.op.domain = strdup(op->domain);
    e->base.op.name = strdup(op->name);
    e->attrs = calloc(op->n_attributes + 1, sizeof *e->attrs);
    e->dtypes = calloc(op->n_input_dtypes + 1, sizeof *e->dtypes);
    bool ok = e->base.op.domain && e->base.op.name && e->attrs && e->dtypes;
    for (size_t i = 0; ok && i < op->n_attributes; i++) {
        e->attrs[i] = (op_attr){strdup(op->attributes[i].name), (grt_attr_kind)op->attributes[i].kind,
                                op->attributes[i].required};
        ok = e->attrs[i].name != NULL;
    }
    if (!ok) {
        entry_release(e);
        return NULL;
    }
    if (op->n_input_dtypes)
        memcpy(e->dtypes, op->input_dtypes, op->n_input_dtypes * sizeof *e->dtypes);
    e->base.op.input_dtypes = e->dtypes;
    e->base.op.attributes = NULL; /* the row has them */
    e->base.row = &e->row;
    e->row = (op_row){.domain = e->base.op.domain,
                      .name = e->base.op.name,
                      .since = 1,
                      .min_in = (int16_t)op->min_inputs,
                      .max_in = custom_limit(op->max_inputs),
                      .min_out = (int16_t)op->min_outputs,
                      .max_out = custom_limit(op->max_outputs),
                      .attrs = e->attrs,
                      .flags = op->random ? OP_RANDOM : 0,
                      .infer = infer_custom};
    return e;
}

/* Put one in front of the new ones, none of which anybody else sees yet. */
static grt_status custom_add(const void *given, grt_custom_entry **list)
{
    grt_custom_op op = {.struct_size = sizeof op};
    GRT_TRY(grt_options_take(&op, sizeof op, given, "grt_custom_op"));
    GRT_TRY(check_op(&op));
    if (op_find(op.domain, op.name) || grt_custom_find_in(*list, op.domain, op.name))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "custom operator '%s::%s': there is one of this name",
                        op.domain, op.name);
    entry *e = entry_create(&op);
    if (!e)
        return grt_fail_memory(sizeof *e);
    e->base.next = *list;
    *list = &e->base;
    return GRT_OK;
}

grt_status grt_custom_ops_register(const grt_custom_op *ops, size_t n)
{
    size_t stride = 0;
    if (!ops || !n)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_custom_ops_register: there are no operators");
    memcpy(&stride, ops, sizeof stride); /* that of the header that the caller was compiled with */
    grt_custom_entry *list = NULL, *last = NULL;
    grt_status status = GRT_OK;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; status == GRT_OK && i < n; i++) {
        status = custom_add((const char *)ops + i * stride, &list);
        last = last ? last : list;
    }
    if (status == GRT_OK)
        grt_custom_publish(list, last);
    pthread_mutex_unlock(&lock);
    while (status != GRT_OK && list) {
        grt_custom_entry *next = list->next;
        entry_release((entry *)list);
        list = next;
    }
    return status;
}
