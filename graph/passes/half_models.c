/* SPDX-License-Identifier: Apache-2.0 */
/* Models in half precision that their exporter made float32 on the way.
 *
 * PyTorch's TorchScript exporter writes masks in float32. Where one meets scores in float16, it casts these
 * and, as the result is float32 then, the weights of all that follows: a model that its author keeps in half
 * is float32 from its first attention on. (PyTorch itself goes on in float16 there.) A target that is faster
 * in float16 takes such a model as if --precision fp16 had been asked for. What must hold, so that no model
 * is taken for one that its author wanted in float32:
 *
 *   - a value that was cast from float16 meets, element by element, float32 that comes from constants,
 * shapes, integers and bools alone, and is no single number;
 *   - products with constant weights follow in float32, with no cast back to float16 in between;
 *   - weights of other products or norms are float16 in the file;
 *   - each float32 weight of a product or norm holds numbers of float16 only, as weights that were widened
 * do. */
#include "graph/passes/rewrite.h"

#include "src/base/float.h"

/* ir_value.mark */
enum {
    FREE = 1,    /* comes from no float but constants, and from nothing in float16 */
    PROMOTED = 2 /* float32 because of what a value in float16 met */
};

typedef struct half_search {
    const ir_node *met; /* where the first value in float16 was promoted */
    int64_t promoted;   /* products and norms of promoted values by weights */
    bool halves;        /* there are weights in float16 */
    bool wide;          /* a float32 weight holds what float16 cannot */
} half_search;

static bool half_models_is_float(const ir_value *value)
{
    return value && value->type.kind == GRT_KIND_TENSOR && value->type.dtype == GRT_DTYPE_FLOAT;
}

static bool half_models_is_constant(const ir_value *value)
{
    return value && value->type.data && !value->producer && !value->is_input;
}

static bool is_one_number(const ir_value *value)
{
    return value->type.rank == 0 ||
           (half_models_is_constant(value) && grt_tensor_elements(value->type.data) == 1);
}

static bool holds_halves(const grt_tensor *t)
{
    const float *x = t->data;
    const int64_t n = grt_tensor_elements(t);
    int64_t i = 0;
    while (x && i < n && grt_half_to_float(grt_float_to_half(x[i])) == x[i])
        i++;
    return i == n;
}

static int64_t mark_of(const ir_value *value)
{
    if (!value || value->type.kind != GRT_KIND_TENSOR || !grt_dtype_in(value->type.dtype, GRT_SET_FLOATS) ||
        half_models_is_constant(value))
        return FREE;
    return value->producer ? value->mark : 0;
}

static bool is_widened(const ir_value *value)
{
    const ir_node *cast = half_models_is_float(value) ? rewrite_producer(value, "Cast") : NULL;
    return cast && ir_in(cast, 0) && ir_in(cast, 0)->type.dtype == GRT_DTYPE_FLOAT16 &&
           mark_of(value) != FREE;
}

static bool promotes(const ir_node *node)
{
    bool widened = false, free = false;
    if (!node->row || !(node->row->flags & OP_ONE_FLOAT_TYPE) || !(node->row->flags & OP_POINTWISE))
        return false;
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *in = ir_in(node, i);
        widened |= is_widened(in);
        free |= half_models_is_float(in) && mark_of(in) == FREE && !is_one_number(in);
    }
    return widened && free;
}

static int64_t mark_of_results(half_search *s, const ir_node *node)
{
    bool free = !ir_node_has_body(node);
    if (promotes(node)) {
        s->met = s->met ? s->met : node;
        return PROMOTED;
    }
    for (int32_t i = 0; i < node->n_in; i++) {
        const int64_t mark = mark_of(ir_in(node, i));
        if (mark == PROMOTED)
            return PROMOTED;
        free &= mark == FREE;
    }
    return free ? FREE : 0;
}

static void look_at_weights(half_search *s, const ir_node *node, bool promoted)
{
    for (int32_t i = 0; i < node->n_in && !s->wide; i++) {
        const ir_value *in = ir_in(node, i);
        if (!half_models_is_constant(in) || is_one_number(in))
            continue;
        s->halves |= in->type.dtype == GRT_DTYPE_FLOAT16;
        if (!half_models_is_float(in))
            continue;
        s->wide = !holds_halves(in->type.data);
        s->promoted += promoted;
    }
}

/* Rows of a table in float16, as embeddings are, come from constants and integers, but they are no mask. */
static int64_t mark_of_result(const ir_value *value, int64_t mark)
{
    const bool half = value->type.kind == GRT_KIND_TENSOR && value->type.dtype == GRT_DTYPE_FLOAT16;
    return (mark == PROMOTED && !half_models_is_float(value)) || (mark == FREE && half) ? 0 : mark;
}

static void search_node(half_search *s, const ir_node *node)
{
    const int64_t mark = mark_of_results(s, node);
    const op_precision role = node->row ? node->row->precision : OP_UNSTATED;
    if (role == OP_NARROW || role == OP_NARROW_TABLE)
        look_at_weights(s, node, mark == PROMOTED);
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i])
            node->out[i]->mark = mark_of_result(node->out[i], mark);
}

grt_status pass_half_models(pass_context *context)
{
    half_search s = {0};
    ir_module *module = context->module;
    if (!context->target->traits->half_floats || context->precision_asked || module->warnings.strict)
        return GRT_OK;
    IR_FOR_EACH_NODE (node, module->main)
        if (!s.wide)
            search_node(&s, node);
    if (!s.met || !s.promoted || !s.halves || s.wide)
        return GRT_OK;
    context->precision = GRT_PRECISION_FLOAT16;
    context->changed++;
    return ir_warn(
        module, s.met,
        "a float32 mask makes float32 of float16 values here and of all that follows, whose weights "
        "are float16 numbers; the model was taken as one of float16, as its exporter had it "
        "(precision fp32 leaves it as written)");
}
