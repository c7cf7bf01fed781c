/* Constant folding: nodes whose inputs are all known become constants, computed by the target's own kernels.
 * Types are inferred again on the way, as a folded shape input makes the shapes after it known. */
#include "graph/passes/passes.h"

#include "src/base/checked.h"

#include <string.h>

/* A fold may not blow a small model up: a result beyond the first limit must not be larger than what it was
 * made from. Weights that a model makes by ConstantOfShape or Expand are the exception, bounded for the model
 * as a whole. */
enum { FREE_BYTES = 1 << 20, UNKNOWN_ELEMENTS = 1 << 16 };
static const size_t expansion_budget = (size_t)1 << 30;

typedef struct fold {
    pass_context *context;
    size_t expanded;
} fold;

/* ---- is it worth it, and safe? ---- */

static size_t bytes_of(const grt_dims *dims, const ir_type *type)
{
    grt_tensor t = rewrite_tensor(dims, type);
    return type->rank < 0 || !type->dtype ? SIZE_MAX : grt_tensor_bytes(&t);
}

static bool may_expand(fold *f, const ir_node *node, size_t out_bytes)
{
    if (!rewrite_is(node, "ConstantOfShape") && !rewrite_is(node, "Expand"))
        return false;
    if (out_bytes > expansion_budget - f->expanded)
        return false;
    f->expanded += out_bytes;
    return true;
}

static bool size_is_fine(fold *f, const ir_node *node)
{
    const grt_dims *dims = f->context->module->dims;
    size_t in_bytes = 0, out_bytes = 0;
    int64_t in_elements = 0;
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *value = node->in[i].value;
        if (!value)
            continue;
        in_bytes += grt_tensor_bytes(value->type.data);
        in_elements += grt_tensor_elements(value->type.data);
    }
    for (int32_t i = 0; i < node->n_out; i++) {
        size_t bytes = node->out[i] ? bytes_of(dims, &node->out[i]->type) : 0;
        if (bytes == SIZE_MAX) /* a shape that depends on the data: fine where it is not larger than that */
            return in_elements <= UNKNOWN_ELEMENTS &&
                   (rewrite_is(node, "NonZero") || rewrite_is(node, "Unique") ||
                    rewrite_is(node, "Compress"));
        if (!grt_add_size(out_bytes, bytes, &out_bytes))
            return false;
    }
    return out_bytes <= FREE_BYTES || out_bytes <= in_bytes || may_expand(f, node, out_bytes);
}

static bool is_foldable(fold *f, const ir_node *node)
{
    if (!node->row || (node->row->flags & (OP_RANDOM | OP_CONTROL)) || rewrite_has_body(node) || !node->n_in)
        return false;
    for (int32_t i = 0; i < node->n_in; i++)
        if (node->in[i].value && !node->in[i].value->type.data)
            return false;
    bool wanted = false;
    for (int32_t i = 0; i < node->n_out; i++) {
        if (node->out[i] && node->out[i]->type.kind != GRT_KIND_TENSOR)
            return false;
        wanted |= node->out[i] && node->out[i]->n_uses;
    }
    return wanted && size_is_fine(f, node);
}

/* ---- folding ---- */

/* The constant that takes the place of `old`. It takes the name too if that is an output's, which nobody else
 * may have. */
static void put_constant(fold *f, ir_value *old, const grt_tensor *tensor)
{
    ir_value *constant = ir_constant(old->graph, NULL, tensor);
    if (!constant)
        return;
    const char *name = constant->name;
    constant->name = old->name;
    old->name = name;
    ir_value_replace(old, constant);
    f->context->changed++;
}

static grt_status evaluate(fold *f, ir_node *node, grt_value *out, bool *out_done)
{
    const grt_target *target = f->context->target;
    grt_arena *arena = f->context->module->arena;
    const grt_tensor **in = GRT_ARENA_ARRAY(arena, const grt_tensor *, node->n_in);
    if (!in)
        return grt_fail_memory(0);
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = node->in[i].value ? node->in[i].value->type.data : NULL;
    grt_status status = target->evaluate(target, &node->desc, in, node->n_in, out, node->n_out);
    /* A node that fails on its constants may never be reached: let it fail when it runs. */
    *out_done = status == GRT_OK;
    return status == GRT_STATUS_OUT_OF_MEMORY ? status : GRT_OK;
}

/* A view of a constant: the same data under other dims. */
static bool fold_view(fold *f, ir_node *node)
{
    const ir_module *module = f->context->module;
    ir_value *out = node->out[0];
    const grt_tensor *in = ir_in(node, 0)->type.data;
    grt_tensor t = rewrite_tensor(module->dims, &out->type);
    if (t.rank < 0 || grt_tensor_elements(&t) < 0 || grt_tensor_elements(&t) != grt_tensor_elements(in))
        return false;
    t.dtype = in->dtype;
    t.data = in->data;
    const grt_tensor *kept = grt_arena_memdup(module->arena, &t, sizeof t);
    if (!kept)
        return false;
    put_constant(f, out, kept);
    ir_node_remove(node);
    return true;
}

static grt_status fold_node(fold *f, ir_node *node)
{
    if (node->row->flags & OP_VIEW) {
        fold_view(f, node);
        return GRT_OK;
    }
    grt_value *out = GRT_ARENA_ARRAY(f->context->module->arena, grt_value, node->n_out);
    if (!out)
        return grt_fail_memory(0);
    bool done;
    grt_status status = evaluate(f, node, out, &done);
    bool all = done;
    for (int32_t i = 0; i < node->n_out && done; i++) {
        ir_value *value = node->out[i];
        if (!value || !value->n_uses)
            continue;
        const grt_tensor *tensor = out[i].kind == GRT_KIND_TENSOR && out[i].t.dtype
                                       ? rewrite_adopt(f->context->module, &out[i])
                                       : NULL;
        if (tensor)
            put_constant(f, value, tensor);
        all = all && tensor;
    }
    for (int32_t i = 0; i < node->n_out; i++)
        grt_value_clear(&out[i]);
    if (all)
        ir_node_remove(node);
    return status;
}

/* ---- shape arithmetic ---- */

/* A value whose elements are all constant dims: the node that computes it is not needed, whatever its inputs
 * are. */
static void fold_elems(fold *f, ir_value *value)
{
    const ir_type *type = &value->type;
    const ir_module *module = f->context->module;
    if (!type->elems || !value->n_uses || type->kind != GRT_KIND_TENSOR || type->rank < 0 || type->rank > 1 ||
        !grt_dtype_in(type->dtype, GRT_BIT(INT64) | GRT_BIT(INT32)))
        return;
    if (type->rank == 1 && !grt_dim_equals(module->dims, type->dims[0], type->n_elems))
        return;
    size_t size = grt_dtype_size(type->dtype);
    grt_tensor t = {.dtype = type->dtype, .rank = type->rank, .dims = {type->n_elems}};
    char *data = grt_arena_calloc(module->arena, (size_t)type->n_elems + 1, size);
    for (int64_t i = 0; data && i < type->n_elems; i++) {
        int64_t v;
        if (!grt_dim_is_const(module->dims, type->elems[i], &v))
            return;
        memcpy(data + (size_t)i * size, &v, size); /* little endian: an int32 is the first half */
    }
    t.data = data;
    const grt_tensor *kept = data ? grt_arena_memdup(module->arena, &t, sizeof t) : NULL;
    if (kept)
        put_constant(f, value, kept);
}

/* ---- the sweep ---- */

static bool nobody_uses(const ir_node *node)
{
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i] && node->out[i]->n_uses)
            return false;
    return true;
}

static grt_status fold_graph(fold *f, ir_graph *graph);

static grt_status visit(fold *f, ir_node *node)
{
    GRT_TRY(op_infer_node(node));
    for (size_t i = 0; i < node->desc.n_attrs; i++)
        if (node->desc.attrs[i].kind == GRT_ATTR_GRAPH)
            GRT_TRY(fold_graph(f, node->desc.attrs[i].graph));
    if (is_foldable(f, node))
        return fold_node(f, node);
    if (node->row && (node->row->flags & (OP_RANDOM | OP_CONTROL)))
        return GRT_OK;
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i])
            fold_elems(f, node->out[i]);
    if (nobody_uses(node))
        ir_node_remove(node);
    return GRT_OK;
}

static grt_status fold_graph(fold *f, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        GRT_TRY(visit(f, node));
    return GRT_OK;
}

grt_status pass_fold(pass_context *context)
{
    fold f = {.context = context};
    return fold_graph(&f, context->module->main);
}
