/* SPDX-License-Identifier: Apache-2.0 */
/* Precision: where the caller allows it, products run as TF32, or weights and activations become float16 or
 * bfloat16. The model's inputs and outputs keep their types.
 *
 * Nodes are visited in order. What each does is a trait of its op (op_precision): ops that gain always
 * switch, others follow what they are given, and the rest, and nodes that the target has no kernel for, keep
 * float32. Kernels accumulate in float32 whatever their inputs are. Weights are converted here, values by
 * Cast nodes, at most one per value and direction. Bodies of control flow keep float32. Nodes may be excepted
 * by name. */
#include "graph/passes/rewrite.h"
#include "graph/ir/constant.h"
#include "graph/ops/qproduct.h"
#include "graph/passes/quotients.h"

#include "src/base/float.h"
#include "src/base/grow.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEQUANTISED_INPUTS = 3, MOST_MOVES = 8 };

/* What stands for a value in the other type; value->mark is an index into these, 0 for none. */
typedef struct precision {
    pass_context *context;
    ir_graph *graph;
    grt_dtype narrow;
    ir_value **twins;
    int64_t n, capacity;
    grt_status status; /* OK until something fails that is no refusal */
} precision;

/* ---- what the caller asked for ---- */

bool pass_precision_read(const char *text, size_t size, grt_precision *out)
{
    static const char *const names[] = {"fp32", "tf32", "fp16", "bf16"}; /* as grt_precision */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (size == strlen(names[i]) && !memcmp(text, names[i], size)) {
            *out = (grt_precision)i;
            return true;
        }
    return false;
}

/* Does the pattern fit one of the names that '+' joins? */
static bool fits_name(const char *pattern, const char *name)
{
    char part[512];
    while (name && *name) {
        const size_t size = strcspn(name, "+");
        if (size < sizeof part) {
            memcpy(part, name, size);
            part[size] = 0;
            if (!fnmatch(pattern, part, 0))
                return true;
        }
        name += size + (name[size] == '+');
    }
    return false;
}

bool pass_precision_find(const char *exceptions, const char *name, grt_precision *out)
{
    for (const char *p = exceptions; p && *p; p += *p == ',') {
        char pattern[512];
        const size_t size = strcspn(p, ","), word = strcspn(p, "=");
        if (word < size && word < sizeof pattern) {
            memcpy(pattern, p, word);
            pattern[word] = 0;
            if (fits_name(pattern, name) && pass_precision_read(p + word + 1, size - word - 1, out))
                return true;
        }
        p += size;
    }
    return false;
}

grt_precision pass_precision_of(const pass_context *context, const ir_node *node)
{
    grt_precision found = context->precision;
    pass_precision_find(context->exceptions, node->desc.name, &found);
    return found;
}

static grt_dtype narrow_dtype(grt_precision asked)
{
    return asked == GRT_PRECISION_FLOAT16    ? GRT_DTYPE_FLOAT16
           : asked == GRT_PRECISION_BFLOAT16 ? GRT_DTYPE_BFLOAT16
                                             : GRT_DTYPE_NONE;
}

/* The 16-bit type that takes part; NONE: float32 alone. */
static grt_dtype narrow_of_all(const pass_context *context)
{
    grt_dtype found = narrow_dtype(context->precision);
    for (const char *p = context->exceptions; p && *p && !found; p += *p == ',') {
        const size_t size = strcspn(p, ","), word = strcspn(p, "=") + 1;
        grt_precision one;
        if (word < size && pass_precision_read(p + word, size - word, &one))
            found = narrow_dtype(one);
        p += size;
    }
    return found;
}

/* ---- twins ---- */

static ir_value *precision_remember(precision *p, ir_value *value, ir_value *twin)
{
    p->n = p->n ? p->n : 1;
    if (!GRT_GROW(p->twins, p->n, p->capacity)) {
        p->status = grt_fail_memory(2 * (size_t)p->capacity * sizeof *p->twins);
        return NULL;
    }
    p->twins[p->n] = twin;
    value->mark = p->n++;
    return twin;
}

static uint16_t narrow_one(grt_dtype dtype, float x)
{
    const float largest = 65504.0f; /* a limit or mask beyond it, not infinite by itself, stays finite */
    if (dtype == GRT_DTYPE_BFLOAT16)
        return grt_float_to_bfloat16(x);
    if (isfinite(x))
        x = x > largest ? largest : x < -largest ? -largest : x;
    return grt_float_to_half(x);
}

static ir_value *narrow_constant(precision *p, const ir_value *value)
{
    const grt_tensor *from = value->type.data;
    grt_tensor *to = ir_constant_create(p->graph->module, p->narrow, from->rank, from->dims);
    if (!to)
        return NULL;
    const float *x = from->data;
    uint16_t *data = to->data;
    for (int64_t i = 0; i < grt_tensor_elements(from); i++)
        data[i] = narrow_one(p->narrow, x[i]);
    return ir_constant(p->graph, NULL, to);
}

/* What DequantizeLinear makes, in 16 bits: read once more, as 8-bit numbers are fewer bytes than float32. */
static ir_value *dequantised_narrow(precision *p, ir_value *value)
{
    ir_node *from = rewrite_producer(value, "DequantizeLinear");
    ir_value *in[DEQUANTISED_INPUTS] = {NULL};
    if (!from || from->n_in > DEQUANTISED_INPUTS)
        return NULL;
    for (int32_t i = 0; i < from->n_in; i++)
        in[i] = ir_in(from, i);
    ir_node *made =
        ir_node_create(from->graph, from->next, "", "DequantizeLinear", from->desc.name, from->n_in, in, 1);
    if (!made)
        return NULL;
    ir_attrs_copy(made, from);
    ir_attr_set_int(made, "output_dtype", p->narrow);
    if (op_infer_node(made) == GRT_OK && rewrite_supported(p->context, made, NULL))
        return made->out[0];
    ir_node_remove(made);
    return NULL;
}

static ir_value *cast_of(precision *p, ir_value *value, grt_dtype to)
{
    ir_node *place = value->producer ? value->producer->next : p->graph->first;
    const char *name = value->producer ? value->producer->desc.name : value->name;
    ir_value *read = to == p->narrow ? dequantised_narrow(p, value) : NULL;
    if (read)
        return read;
    ir_node *cast = ir_node_create(p->graph, place, "", "Cast", name, 1, &value, 1);
    if (cast)
        ir_attr_set_int(cast, "to", to);
    const grt_status status = cast ? op_infer_node(cast) : grt_fail_memory(0);
    if (status == GRT_OK)
        return cast->out[0];
    p->status = status;
    return NULL;
}

/* The value, moved from what a Cast of the model widened, without that cast: the numbers are the same. NULL
 * if it is none. */
static ir_value *unwidened_moves(precision *p, ir_value *value, int32_t depth)
{
    enum { MOST_INPUTS = 4 };
    ir_value *in[MOST_INPUTS] = {NULL};
    ir_node *node = value->producer;
    if (!node || !ir_in(node, 0) || value->type.dtype != GRT_DTYPE_FLOAT)
        return NULL;
    if (rewrite_is(node, "Cast"))
        return ir_in(node, 0)->type.dtype == p->narrow ? ir_in(node, 0) : NULL;
    if (depth == 0 || node->n_out != 1 || node->n_in > MOST_INPUTS ||
        !(rewrite_has(node, OP_VIEW) || rewrite_is(node, "Transpose")))
        return NULL;
    for (int32_t i = 1; i < node->n_in; i++)
        in[i] = ir_in(node, i);
    if (!(in[0] = unwidened_moves(p, ir_in(node, 0), depth - 1)))
        return NULL;
    ir_node *made = ir_node_create(p->graph, node->next, node->desc.domain, node->desc.op, node->desc.name,
                                   node->n_in, in, 1);
    if (!made)
        return NULL;
    ir_attrs_copy(made, node);
    if (op_infer_node(made) == GRT_OK && rewrite_supported(p->context, made, NULL))
        return made->out[0];
    ir_node_remove(made);
    return NULL;
}

static bool precision_is_constant(const ir_value *value)
{
    return value->type.data && !value->producer && !value->is_input;
}

/* The value in the other type. NULL: see p->status. */
static ir_value *precision_twin_of(precision *p, ir_value *value)
{
    if (value->mark > 0)
        return p->twins[value->mark];
    const bool wide = value->type.dtype == GRT_DTYPE_FLOAT;
    ir_value *twin = !wide                          ? NULL
                     : precision_is_constant(value) ? narrow_constant(p, value)
                                                    : unwidened_moves(p, value, MOST_MOVES);
    if (!twin) /* a constant over the budget is narrowed when the model runs */
        twin = cast_of(p, value, wide ? p->narrow : GRT_DTYPE_FLOAT);
    return !twin ? NULL : precision_remember(p, value, twin);
}

/* ---- deciding ---- */

static bool precision_is_float(const ir_value *value)
{
    return value && value->type.kind == GRT_KIND_TENSOR && value->type.dtype == GRT_DTYPE_FLOAT;
}

/* A float16 value that was float32 in the model: a model's own 16-bit values have their role already. */
static bool precision_is_narrow(const precision *p, const ir_value *value)
{
    return value && value->type.kind == GRT_KIND_TENSOR && value->type.dtype == p->narrow;
}

/* One number that would be nothing in float16: an epsilon. */
static bool vanishes(const precision *p, const ir_value *value)
{
    double x;
    return p->narrow == GRT_DTYPE_FLOAT16 && ir_const_float(value, &x) && x != 0 &&
           grt_float_to_half((float)fabs(x)) == 0;
}

/* A mask of an attention that hides by a number beyond float16, or is bounded by one: narrower, something of
 * the scores would be left in rows that are hidden altogether, or nothing of these rows. Kernels read masks
 * of any type. */
static bool is_wide_mask(const ir_value *value)
{
    const ir_node *node = value ? value->producer : NULL;
    const bool where = node && rewrite_is(node, "Where"), bound = node && rewrite_is(node, "Max");
    double hidden;
    if ((!where && !bound) || !precision_is_float(value))
        return false;
    for (const ir_use *use = value->uses; use; use = use->next)
        if (!use->node || strcmp(use->node->desc.op, "Attention") != 0 || use->index != 3)
            return false;
    for (int32_t i = where ? 1 : 0; i < node->n_in; i++)
        if (ir_const_float(ir_in(node, i), &hidden) && isfinite(hidden) && hidden < -65504)
            return true;
    return false;
}

/* A sum of few numbers, which is as safe as the Adds that it stands for. */
static bool sums_few(const ir_node *node)
{
    enum { FEW = 8 };
    const ir_value *x = rewrite_is(node, "ReduceSum") ? ir_in(node, 0) : NULL;
    const int64_t *axes;
    int64_t n, dim, terms = 1;
    if (!x || x->type.rank < 0 || !ir_const_ints(ir_in(node, 1), &axes, &n) || n == 0)
        return false;
    for (int64_t i = 0; i < n; i++) {
        if (!grt_dim_is_const(node->graph->module->dims, x->type.dims[grt_axis(axes[i], x->type.rank)],
                              &dim) ||
            dim > FEW)
            return false;
        terms *= dim;
        if (terms > FEW)
            return false;
    }
    return true;
}

/* The trait of its op, or what this node has that others of the op do not. */
static op_precision role_of(const ir_node *node)
{
    return sums_few(node) ? OP_FOLLOWS_FIRST : node->row->precision;
}

static bool may_narrow(const precision *p, const ir_node *node)
{
    return node->row && role_of(node) >= OP_NARROW && role_of(node) < OP_READS_NARROW &&
           narrow_dtype(pass_precision_of(p->context, node)) == p->narrow;
}

/* Inputs from this one on keep their type. */
static int32_t narrow_inputs(const ir_node *node)
{
    const op_precision role = role_of(node);
    if (role == OP_NARROW_RESULT)
        return 0;
    const bool first_only = role == OP_FOLLOWS_FIRST || role == OP_NARROW_FIRST || role == OP_NARROW_TABLE;
    return first_only && node->n_in > 1 ? 1 : node->n_in;
}

static bool precision_wants(const precision *p, const ir_node *node)
{
    const int32_t last = narrow_inputs(node);
    bool narrow = false, wide = false;
    op_precision role = role_of(node);
    if (node->n_out == 1 && node->out[0] && is_wide_mask(node->out[0]))
        return false;
    if (p->narrow == GRT_DTYPE_FLOAT16 && quotients_has_part(node))
        return false;
    for (int32_t i = 0; i < last; i++) {
        const ir_value *in = node->in[i].value;
        if (!in || (!precision_is_float(in) && !precision_is_narrow(p, in)))
            continue;
        if (vanishes(p, in))
            return false;
        narrow |= precision_is_narrow(p, in);
        /* Inputs of the model may be either. */
        wide |= precision_is_float(in) && in->producer;
    }
    if (role == OP_NARROW_TABLE)
        role = precision_is_float(ir_in(node, 0)) && precision_is_constant(ir_in(node, 0)) ? OP_NARROW
                                                                                           : OP_FOLLOWS;
    return role == OP_NARROW || role == OP_NARROW_FIRST || role == OP_NARROW_RESULT || (narrow && !wide);
}

/* ---- switching ---- */

static bool types_fit(const precision *p, const ir_node *node)
{
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i] && node->out[i]->type.dtype == GRT_DTYPE_FLOAT)
            return false;
    return rewrite_supported(p->context, node, NULL);
}

/* Give the node narrow inputs and outputs; everything is put back if it has no kernel then. */
static bool narrow_node(precision *p, ir_node *node)
{
    const int32_t last = narrow_inputs(node);
    grt_arena *arena = p->graph->module->arena;
    ir_value **was = GRT_ARENA_ARRAY(arena, ir_value *, node->n_in + 1);
    ir_type *types = GRT_ARENA_ARRAY(arena, ir_type, node->n_out + 1);
    if (!was || !types) {
        p->status = grt_fail_memory(0);
        return false;
    }
    for (int32_t i = 0; i < node->n_in; i++)
        was[i] = node->in[i].value;
    for (int32_t i = 0; i < node->n_out; i++) {
        if (!node->out[i])
            continue;
        types[i] = node->out[i]->type;
        if (precision_is_float(node->out[i]))
            node->out[i]->type.dtype = p->narrow;
    }
    const bool result_only = node->row->precision == OP_NARROW_RESULT;
    if (result_only)
        ir_attr_set_int(node, "output_dtype", p->narrow);
    for (int32_t i = 0; i < node->n_in; i++) {
        const bool narrows = result_only ? i == QPRODUCT_RESIDUAL : i < last;
        if (!narrows || !precision_is_float(was[i]) || is_wide_mask(was[i]))
            continue;
        ir_value *twin = precision_twin_of(p, was[i]);
        if (twin)
            ir_node_set_input(node, i, twin);
    }
    if (p->status == GRT_OK && op_infer_node(node) == GRT_OK && types_fit(p, node)) {
        p->context->changed++;
        return true;
    }
    if (result_only)
        ir_attr_remove(node, "output_dtype");
    for (int32_t i = 0; i < node->n_in; i++)
        if (node->in[i].value != was[i])
            ir_node_set_input(node, i, was[i]);
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i])
            node->out[i]->type = types[i];
    return false;
}

/* A node that stays reads float32. */
static void precision_widen_inputs(precision *p, ir_node *node, const bool *ours)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        ir_value *in = node->in[i].value;
        if (in && in->producer && precision_is_narrow(p, in) && ours[i]) {
            ir_value *twin = precision_twin_of(p, in);
            if (twin)
                ir_node_set_input(node, i, twin);
        }
    }
}

/* ---- the sweep ---- */

/* node->mark: the node was switched, its narrow outputs are of our making. */
static bool made_here(const ir_value *value)
{
    return value && value->producer && value->producer->mark == 1;
}

/* Else there is nothing to switch: the model itself says what the node works on. */
static bool makes_float(const ir_node *node)
{
    for (int32_t i = 0; i < node->n_out; i++)
        if (precision_is_float(node->out[i]))
            return true;
    return false;
}

/* True if the node takes the narrow input 0 that it has. */
static bool reads_narrow(const precision *p, ir_node *node)
{
    if (!node->row || node->row->precision != OP_READS_NARROW || !precision_is_narrow(p, ir_in(node, 0)) ||
        grt_attr_find(&node->desc, "precision"))
        return false;
    ir_attr_set_int(node, "precision", GRT_DTYPE_FLOAT);
    if (op_infer_node(node) == GRT_OK && rewrite_supported(p->context, node, NULL))
        return true;
    ir_attr_remove(node, "precision");
    return false;
}

/* True if the node, as graphrt's op of its name, takes the narrow input 0 that was made here. */
static bool becomes_ours(const precision *p, ir_node *node)
{
    if (!node->row || role_of(node) != OP_WIDE_RESULT || !precision_is_narrow(p, ir_in(node, 0)) ||
        !made_here(ir_in(node, 0)))
        return false;
    const char *op = node->desc.op;
    ir_node_become(node, "graphrt", op);
    if (op_infer_node(node) == GRT_OK && precision_is_float(node->out[0]) &&
        rewrite_supported(p->context, node, NULL))
        return true;
    ir_node_become(node, "", op);
    return false;
}

static void precision_visit(precision *p, ir_node *node)
{
    node->mark = 0;
    if (reads_narrow(p, node) || becomes_ours(p, node))
        return;
    if (may_narrow(p, node) && makes_float(node) && precision_wants(p, node) && narrow_node(p, node)) {
        node->mark = 1;
        return;
    }
    bool *ours = GRT_ARENA_ARRAY(p->graph->module->arena, bool, node->n_in + 1);
    if (!ours) {
        p->status = grt_fail_memory(0);
        return;
    }
    for (int32_t i = 0; i < node->n_in; i++)
        ours[i] = made_here(node->in[i].value);
    precision_widen_inputs(p, node, ours);
}

/* Uses in bodies, and as results of the model, were not visited. */
static void widen_elsewhere(precision *p, ir_value *value)
{
    for (ir_use *use = value->uses, *next; use && p->status == GRT_OK; use = next) {
        next = use->next;
        if (use->node && use->graph == p->graph)
            continue;
        ir_value *twin = precision_twin_of(p, value);
        if (!twin)
            return;
        if (use->node)
            ir_node_set_input(use->node, use->index, twin);
        else
            ir_graph_set_output(use->graph, use->index, twin);
    }
}

static grt_status narrow_graph(precision *p)
{
    for (ir_node *node = p->graph->first; node && p->status == GRT_OK;
         node = node->next) /* casts are put before it */
        precision_visit(p, node);
    IR_FOR_EACH_NODE (node, p->graph)
        for (int32_t i = 0; node->mark == 1 && i < node->n_out; i++)
            if (precision_is_narrow(p, node->out[i]))
                widen_elsewhere(p, node->out[i]);
    return p->status;
}

static void precision_clear_marks(ir_graph *graph)
{
    ir_clear_marks(graph);
    IR_FOR_EACH_NODE (node, graph)
        node->mark = 0;
}

static grt_status allow_tf32(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        if (node->row && node->row->flags & OP_TF32 && precision_is_float(ir_in(node, 0)) &&
            pass_precision_of(context, node) == GRT_PRECISION_TF32) {
            ir_attr_set_string(node, "math", "tf32");
            context->changed++;
        }
    return GRT_OK;
}

grt_status pass_precision(pass_context *context)
{
    precision p = {.context = context, .graph = context->module->main, .narrow = narrow_of_all(context)};
    if (p.narrow == GRT_DTYPE_BFLOAT16 && context->bfloat16_products)
        p.narrow = GRT_DTYPE_NONE;
    if (p.narrow) {
        precision_clear_marks(p.graph);
        const grt_status status = narrow_graph(&p);
        free(p.twins);
        GRT_TRY(status);
    }
    return rewrite_each_graph(context, allow_tf32);
}
