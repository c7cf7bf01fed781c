/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding: nodes whose inputs are all known become constants, computed by the target's own kernels.
 * Types are inferred again on the way, as a folded shape input makes the shapes after it known. */
#include "graph/ir/flops.h"
#include "graph/ir/constant.h"
#include "graph/passes/fold_repeats.h"
#include "graph/passes/rewrite.h"

#include "src/base/checked.h"

#include <string.h>

/* A fold may not blow a small model up: a result beyond the first limit must not be larger than what it was
 * made from, but for weights that a model makes by ConstantOfShape or Expand, and for those of few bits that
 * no step reads as they are (pass `quantised` went before): they would be widened in every run. The module's
 * budget bounds all of it together, and the work. */
enum {
    FREE_BYTES = 1 << 20,
    FEW_BYTES =
        1 << 16, /* of what ConstantOfShape or Expand makes a result of, but for factors of products */
    UNKNOWN_ELEMENTS = 1 << 16,
    MOST_WORKSPACE = 16 << 20
};

typedef struct fold {
    pass_context *context;
} fold;

static size_t fold_bytes_of(const grt_dims *dims, const ir_type *type)
{
    grt_tensor t = rewrite_tensor(dims, type);
    return type->rank < 0 || !type->dtype ? SIZE_MAX : grt_tensor_bytes(&t);
}

/* Most bytes that a string of the node's constants has: of results they may have all of it in each element.
 */
static size_t longest_strings(const ir_node *node)
{
    size_t sum = 0;
    for (int32_t i = 0; i < node->n_in; i++) {
        const grt_tensor *t = node->in[i].value ? node->in[i].value->type.data : NULL;
        size_t longest = 0;
        for (int64_t k = 0; t && t->dtype == GRT_DTYPE_STRING && k < grt_tensor_elements(t); k++)
            longest = ((const grt_string *)t->data)[k].size > longest ? ((const grt_string *)t->data)[k].size
                                                                      : longest;
        sum += longest;
    }
    return sum;
}

/* Bytes of a result, strings included; SIZE_MAX if that is not known. */
static size_t result_bytes(const fold *f, const ir_node *node, const ir_value *value)
{
    enum { NUMBER = 32 }; /* written out */
    size_t bytes = value ? fold_bytes_of(f->context->module->dims, &value->type) : 0, text;
    if (!bytes || bytes == SIZE_MAX || value->type.dtype != GRT_DTYPE_STRING)
        return bytes;
    return grt_add_size(longest_strings(node), NUMBER, &text) &&
                   grt_mul_size(text, bytes / sizeof(grt_string), &text) && grt_add_size(bytes, text, &bytes)
               ? bytes
               : SIZE_MAX;
}

/* A factor of a product would be made again in every run, and is read as a whole; other readers broadcast. */
static bool is_factor(const ir_value *value)
{
    enum { FACTORS = 2 };
    for (const ir_use *use = value->uses; use; use = use->next)
        if (use->node && use->node->row && use->node->row->flags & OP_TF32 && use->index < FACTORS)
            return true;
    return false;
}

/* Bytes of all results; false if they are more than may be. */
static bool fold_measure(const fold *f, const ir_node *node, size_t *out_bytes)
{
    size_t in_bytes = 0;
    int64_t in_elements = 0;
    *out_bytes = 0;
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *value = node->in[i].value;
        if (!value)
            continue;
        in_bytes += grt_tensor_bytes(value->type.data);
        in_elements += grt_tensor_elements(value->type.data);
    }
    for (int32_t i = 0; i < node->n_out; i++) {
        const size_t bytes = result_bytes(f, node, node->out[i]);
        if (bytes == SIZE_MAX) { /* a shape that depends on the data: fine where it is not larger than that */
            *out_bytes = (size_t)in_elements * GRT_MAX_RANK * sizeof(int64_t);
            return in_elements <= UNKNOWN_ELEMENTS && node->row->flags & OP_SELECTS;
        }
        if (!grt_add_size(*out_bytes, bytes, out_bytes))
            return false;
    }
    return *out_bytes <= FREE_BYTES || *out_bytes <= in_bytes ||
           (node->row->flags & OP_FILLS && (in_bytes <= FEW_BYTES || is_factor(node->out[0]))) ||
           rewrite_is(node, "DequantizeLinear");
}

/* Takes the work from the budget if that has room for the node. */
static bool take_budget(const fold *f, const ir_node *node)
{
    compile_budget *budget = &f->context->module->budget;
    const double work = op_work(node);
    size_t bytes;
    if (!fold_measure(f, node, &bytes) || !budget_allows(budget, bytes, work))
        return false;
    budget_work(budget, work);
    return true;
}

static bool is_foldable(fold *f, const ir_node *node)
{
    if (!node->row || (node->row->flags & OP_RANDOM) || node->row->control || ir_node_has_body(node) ||
        !node->n_in || (f->context->keeps_quantised && rewrite_is(node, "DequantizeLinear")))
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
    return wanted && ((node->row->flags & OP_VIEW) || take_budget(f, node));
}

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

static grt_status fold_evaluate(fold *f, ir_node *node, grt_value *out, bool *out_done)
{
    const grt_target *target = f->context->target;
    grt_arena *arena = f->context->module->arena;
    const grt_tensor **in = GRT_ARENA_ARRAY(arena, const grt_tensor *, node->n_in);
    if (!in)
        return grt_fail_memory(0);
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = node->in[i].value ? node->in[i].value->type.data : NULL;
    grt_status status =
        target->evaluate(target, &node->desc, in, node->n_in, out, node->n_out, MOST_WORKSPACE);
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
    grt_status status = fold_evaluate(f, node, out, &done);
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

/* A result that is too large to be folded as a whole may repeat a slice that is not. */
static grt_status fold_slice(fold *f, ir_node *node)
{
    const size_t bytes = node->row && node->n_out == 1 && node->out[0]
                             ? fold_bytes_of(f->context->module->dims, &node->out[0]->type)
                             : 0;
    ir_node *made = bytes > FREE_BYTES && bytes != SIZE_MAX ? fold_repeats(node) : NULL;
    f->context->changed += made != NULL;
    return made && is_foldable(f, made) ? fold_node(f, made) : GRT_OK;
}

static grt_status fold_graph(fold *f, ir_graph *graph);

static grt_status fold_visit(fold *f, ir_node *node)
{
    GRT_TRY(grt_cancel_check(&f->context->module->budget.cancel));
    GRT_TRY(op_infer_node(node));
    for (size_t i = 0; i < node->desc.n_attrs; i++)
        if (node->desc.attrs[i].kind == GRT_ATTR_GRAPH)
            GRT_TRY(fold_graph(f, node->desc.attrs[i].graph));
    if (is_foldable(f, node)) {
        GRT_TRY(fold_node(f, node));
        return ir_constants_collect(f->context->module);
    }
    if (node->row && (node->row->flags & OP_RANDOM || node->row->control))
        return GRT_OK;
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i])
            fold_elems(f, node->out[i]);
    if (!ir_node_is_unused(node))
        return fold_slice(f, node);
    ir_node_remove(node);
    return GRT_OK;
}

static grt_status fold_graph(fold *f, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        GRT_TRY(fold_visit(f, node));
    return GRT_OK;
}

grt_status pass_fold(pass_context *context)
{
    fold f = {.context = context};
    return fold_graph(&f, context->module->main);
}
