/* SPDX-License-Identifier: Apache-2.0 */
#include "src/quantize/layers.h"

#include <string.h>

static bool is_listed(const Onnx__NodeProto *node, const char *const *ops)
{
    for (; *ops; ops++)
        if (node_is(node, *ops))
            return true;
    return false;
}

/* Input 0 is moved, or its largest elements are taken: the result has the input's scale. */
static bool layers_is_move(const Onnx__NodeProto *node)
{
    static const char *const ops[] = {"Reshape",      "Transpose", "Flatten", "Squeeze",
                                      "Unsqueeze",    "Slice",     "MaxPool", "DepthToSpace",
                                      "SpaceToDepth", "Expand",    NULL};
    return is_listed(node, ops) && !*node_out(node, 1);
}

/* Computed with integers where all inputs are. */
static bool is_joint(const Onnx__NodeProto *node)
{
    static const char *const ops[] = {"Add", "Concat", "AveragePool", "GlobalAveragePool", NULL};
    return is_listed(node, ops);
}

static bool is_activation(const Onnx__NodeProto *node)
{
    return node_is(node, "Relu") || node_is(node, "Clip");
}

static bool is_convolution(const Onnx__NodeProto *node)
{
    return node_is(node, "Conv") || node_is(node, "ConvTranspose");
}

static quant_value *layers_add_value(quant_layers *l, const char *name)
{
    names_entry *e = *name ? names_add(&l->by_name, l->arena, name) : NULL;
    if (!e)
        return NULL;
    if (!e->thing) {
        quant_value *v = &l->values[l->n_values++];
        *v = (quant_value){.name = name, .maker = -1, .only_user = -1, .like = v, .slot = -1};
        e->thing = v;
    }
    return e->thing;
}

quant_value *layers_value(const quant_layers *l, const char *name)
{
    const names_entry *e = *name ? names_find(&l->by_name, name) : NULL;
    return e ? e->thing : NULL;
}

static void count_captured(void *user, const char *name)
{
    quant_value *v = layers_value(user, name);
    if (v)
        v->n_uses++;
}

static grt_status index_document(quant_layers *l)
{
    const document *d = l->d;
    size_t n = d->n_inputs;
    for (size_t i = 0; i < d->n_nodes; i++)
        n += d->nodes[i]->n_input + d->nodes[i]->n_output;
    l->values = GRT_ARENA_ARRAY(l->arena, quant_value, n + 1);
    if (!l->values)
        return grt_fail_memory(n * sizeof *l->values);
    for (size_t i = 0; i < d->n_inputs; i++)
        layers_add_value(l, d->inputs[i]->name);
    for (size_t i = 0; i < d->n_nodes; i++) {
        const Onnx__NodeProto *node = d->nodes[i];
        for (size_t k = 0; k < node->n_input; k++) {
            quant_value *v = layers_add_value(l, node_in(node, k));
            if (v)
                v->only_user = v->n_uses++ ? -1 : (int32_t)i;
        }
        for (size_t k = 0; k < node->n_output; k++) {
            quant_value *v = layers_add_value(l, node_out(node, k));
            if (v)
                v->maker = (int32_t)i;
        }
    }
    for (size_t i = 0; i < d->n_nodes; i++)
        node_each_captured(d->nodes[i], count_captured, l);
    for (size_t i = 0; i < d->n_outputs; i++)
        count_captured(l, d->outputs[i]->name);
    for (size_t i = 0; i < l->n_values; i++)
        if (l->values[i].n_uses > 1)
            l->values[i].only_user = -1;
    return document_check(d);
}

static const document_weight *float_weight(const quant_layers *l, const char *name)
{
    const document_weight *w = document_find(l->d, name);
    return w && w->tensor.dtype == GRT_DTYPE_FLOAT && grt_tensor_elements(&w->tensor) > 0 ? w : NULL;
}

static bool is_finite(const grt_tensor *t)
{
    const float *data = t->data;
    float odd = 0;
    for (int64_t i = 0, n = grt_tensor_elements(t); i < n; i++)
        odd += data[i] * 0; /* NaN for NaN and infinities */
    return odd == 0;
}

/* Why a layer of constant weights has no quantised form; NULL: it has. */
static const char *no_form(const Onnx__NodeProto *node, const quant_layer *layer, const layer_rules *rules)
{
    if (!is_listed(node, rules->ops))
        return "layers of this op are not among those to quantise";
    if (!is_finite(&layer->weight->tensor) || (layer->bias && !is_finite(&layer->bias->tensor)))
        return "its weights are not all finite";
    if (is_convolution(node))
        return rules->products_only                ? "a convolution: this mode is for products"
               : *node_in(node, 2) && !layer->bias ? "its bias is no constant"
               : layer->weight->tensor.rank < 3    ? "its weights have less than 3 dims"
                                                   : NULL;
    if (layer->weight->tensor.rank != 2)
        return "its weights are no matrix";
    if (!node_is(node, "Gemm"))
        return NULL;
    return node_int(node, "transA", 0)                             ? "it transposes A"
           : node_float(node, "alpha", 1) != 1                     ? "its alpha is not 1"
           : *node_in(node, 2) && node_float(node, "beta", 1) != 1 ? "its beta is not 1"
           : *node_in(node, 2) && (!layer->bias || layer->bias->tensor.rank != 1)
               ? "its C is no constant vector"
           : *node_in(node, 2) && layer->bias->tensor.dims[0] !=
                                      layer->weight->tensor.dims[node_int(node, "transB", 0) ? 0 : 1]
               ? "its C is no constant vector"
               : NULL;
}

static void find_tail(const quant_layers *l, quant_layer *layer)
{
    const Onnx__NodeProto *user = layer->out->only_user < 0 ? NULL : l->d->nodes[layer->out->only_user];
    layer->tail = layer->out;
    if (user && is_activation(user) && !strcmp(node_in(user, 0), layer->out->name))
        layer->tail = layers_value(l, node_out(user, 0));
}

/* A constant vector that is added to a MatMul's result and nothing else is: runtimes make one step of both.
 */
static void find_added_bias(const quant_layers *l, quant_layer *layer)
{
    const Onnx__NodeProto *add = layer->out->only_user < 0 ? NULL : l->d->nodes[layer->out->only_user];
    if (!add || !node_is(add, "Add") || layer->weight->tensor.rank != 2)
        return;
    const size_t other = !strcmp(node_in(add, 0), layer->out->name);
    const document_weight *bias = float_weight(l, node_in(add, other));
    if (!bias || bias->tensor.rank != 1 || bias->tensor.dims[0] != layer->weight->tensor.dims[1])
        return;
    layer->bias = bias;
    layer->bias_node = layer->out->only_user;
}

static void find_layer(quant_layers *l, size_t i, const layer_rules *rules)
{
    const Onnx__NodeProto *node = l->d->nodes[i];
    const bool conv = is_convolution(node);
    if (!conv && !node_is(node, "MatMul") && !node_is(node, "Gemm"))
        return;
    quant_layer layer = {.node = (int32_t)i,
                         .in = layers_value(l, node_in(node, 0)),
                         .out = layers_value(l, node_out(node, 0)),
                         .weight = float_weight(l, node_in(node, 1)),
                         .bias = float_weight(l, node_in(node, 2)),
                         .bias_node = -1,
                         .error = -1};
    if (!layer.in || !layer.out || !layer.weight || document_find(l->d, layer.in->name))
        return;
    if (conv)
        find_tail(l, &layer);
    else if (node_is(node, "MatMul"))
        find_added_bias(l, &layer);
    layer.kept = no_form(node, &layer, rules);
    l->layers[l->n++] = layer;
}

grt_status layers_find(quant_layers *l, document *d, const layer_rules *rules)
{
    *l = (quant_layers){.d = d, .arena = d->arena};
    GRT_TRY(index_document(l));
    l->layers = GRT_ARENA_ARRAY(l->arena, quant_layer, d->n_nodes + 1);
    for (size_t i = 0; l->layers && i < d->n_nodes; i++)
        find_layer(l, i, rules);
    return document_check(d);
}

size_t layers_active(const quant_layers *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        n += !l->layers[i].kept;
    return n;
}

static bool all_carried(const quant_layers *l, const Onnx__NodeProto *node)
{
    for (size_t k = 0; k < node->n_input; k++) {
        const quant_value *v = layers_value(l, node_in(node, k));
        if (!v || !v->carried)
            return false;
    }
    return node->n_input > 0;
}

/* Forwards: what integer steps make, or could make if they were asked to. */
static void mark_carried(quant_layers *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (!l->layers[i].kept && l->layers[i].tail)
            l->layers[i].tail->carried = true;
    for (size_t i = 0; i < l->d->n_nodes; i++) {
        const Onnx__NodeProto *node = l->d->nodes[i];
        const quant_value *in = layers_value(l, node_in(node, 0));
        quant_value *out = layers_value(l, node_out(node, 0));
        if (out && in && in->carried && (layers_is_move(node) || is_activation(node)))
            out->carried = true;
        else if (out && is_joint(node) && all_carried(l, node))
            out->carried = true;
    }
}

/* The value that a joint's step makes: behind a Relu that is its only user. */
static quant_value *joint_tail(const quant_layers *l, quant_value *out)
{
    const Onnx__NodeProto *user = out->only_user < 0 ? NULL : l->d->nodes[out->only_user];
    return user && is_activation(user) && !strcmp(node_in(user, 0), out->name)
               ? layers_value(l, node_out(user, 0))
               : out;
}

static void want_joint(quant_layers *l, const Onnx__NodeProto *node, quant_value *out)
{
    for (size_t k = 0; k < node->n_input; k++)
        layers_value(l, node_in(node, k))->wanted = true;
    joint_tail(l, out)->wanted = true;
}

/* Backwards: what layers and joints read, through moves. */
static void mark_wanted(quant_layers *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const quant_layer *layer = &l->layers[i];
        if (layer->kept)
            continue;
        layer->in->wanted = true;
        if (layer->tail)
            layer->tail->wanted = true;
    }
    for (size_t i = l->d->n_nodes; i-- > 0;) {
        const Onnx__NodeProto *node = l->d->nodes[i];
        quant_value *in = layers_value(l, node_in(node, 0)), *out = layers_value(l, node_out(node, 0));
        if (!in || !out || !out->carried)
            continue;
        if (is_joint(node) && all_carried(l, node)) {
            want_joint(l, node, out);
        } else if (layers_is_move(node) && in->carried && out->wanted) {
            in->wanted = true;
            out->like = in;
        }
    }
}

void layers_decide(quant_layers *l)
{
    for (size_t i = 0; i < l->n_values; i++) {
        quant_value *v = &l->values[i];
        v->wanted = v->carried = false;
        v->like = v;
    }
    mark_carried(l);
    mark_wanted(l);
}

void layers_number_values(quant_layers *l)
{
    int32_t n = 0;
    layers_decide(l);
    for (size_t i = 0; i < l->n_values; i++)
        if (l->values[i].wanted)
            l->values[i].slot = n++;
}
