/* SPDX-License-Identifier: Apache-2.0 */
#include "src/quantize/rewrite.h"

#include "src/base/cancel.h"
#include "src/quantize/options.h"

#include <math.h>
#include <string.h>

/* Weights in their quantised form, made once for each way that layers use them. */
typedef struct made_weight {
    const char *data, *scales, *zeros; /* names; zeros NULL: none */
    const char *dequantised;           /* NULL: no DequantizeLinear yet */
    const float *scale;
    int64_t n_scales;
    double error;
} made_weight;

typedef struct rewriter {
    const rewriting *r;
    document *out;
    const char **pairs; /* by value: what DequantizeLinear makes of it, for layers; NULL: nothing yet */
    const char **scale_names, **zero_names; /* by value that has a scale of its own */
    const char **biases;  /* by node: the quantised bias that an Add reads; NULL: it reads what it did */
    const char **dynamic; /* by value: numbers, scale and zero point of DynamicQuantizeLinear */
    names weights;
} rewriter;

static grt_status start_rewriting(rewriter *w, const rewriting *r, document *out)
{
    const size_t n = r->layers->n_values + 1;
    *w = (rewriter){.r = r, .out = out};
    w->pairs = GRT_ARENA_ARRAY(out->arena, const char *, n);
    w->scale_names = GRT_ARENA_ARRAY(out->arena, const char *, n);
    w->zero_names = GRT_ARENA_ARRAY(out->arena, const char *, n);
    w->biases = GRT_ARENA_ARRAY(out->arena, const char *, r->layers->d->n_nodes + 1);
    w->dynamic = GRT_ARENA_ARRAY(out->arena, const char *, 3 * n);
    return document_check(out);
}

static const char *add_constant(rewriter *w, const char *base, const char *suffix, grt_dtype dtype,
                                int32_t rank, int64_t n, const void *data)
{
    grt_tensor t = {.dtype = dtype, .rank = rank, .dims = {n}};
    t.data = grt_arena_memdup(w->out->arena, data, grt_tensor_bytes(&t));
    const char *name = document_name(w->out, base, suffix);
    if (name && t.data)
        document_add_weight(w->out, name, &t);
    return name;
}

static size_t index_of(const rewriter *w, const quant_value *v)
{
    return (size_t)(v - w->r->layers->values);
}

static const quant_value *scale_owner(const quant_value *v)
{
    while (v->like != v)
        v = v->like;
    return v;
}

/* ---- activations ---- */

static void name_scale(rewriter *w, const quant_value *owner)
{
    const size_t i = index_of(w, owner);
    const scale_zero s = w->r->scales[owner->slot];
    const uint8_t zero = (uint8_t)s.zero;
    if (w->scale_names[i])
        return;
    w->scale_names[i] = add_constant(w, owner->name, "/scale", GRT_DTYPE_FLOAT, 0, 1, &s.scale);
    w->zero_names[i] = add_constant(w, owner->name, "/zero_point", w->r->options->activations, 0, 1, &zero);
}

/* QuantizeLinear of `from` and DequantizeLinear of that, which makes `to`. */
static void add_pair(rewriter *w, const quant_value *v, const char *from, const char *to)
{
    document *d = w->out;
    const quant_value *owner = scale_owner(v);
    name_scale(w, owner);
    const size_t i = index_of(w, owner);
    const char *numbers = document_name(d, v->name, "/quantized"),
               *q_name = document_name(d, v->name, "/QuantizeLinear"),
               *dq_name = document_name(d, v->name, "/DequantizeLinear");
    Onnx__NodeProto *q = document_add(d, "QuantizeLinear", q_name);
    node_add_in(d, q, from);
    node_add_in(d, q, w->scale_names[i]);
    node_add_in(d, q, w->zero_names[i]);
    node_add_out(d, q, numbers);
    Onnx__NodeProto *dq = document_add(d, "DequantizeLinear", dq_name);
    node_add_in(d, dq, numbers);
    node_add_in(d, dq, w->scale_names[i]);
    node_add_in(d, dq, w->zero_names[i]);
    node_add_out(d, dq, to);
    w->pairs[index_of(w, v)] = to;
}

static void add_side_pair(rewriter *w, const quant_value *v)
{
    if (!w->pairs[index_of(w, v)])
        add_pair(w, v, v->name, document_name(w->out, v->name, "/dequantized"));
}

static const char **add_dynamic(rewriter *w, const quant_value *v)
{
    static const char *const suffixes[] = {"/quantized", "/scale", "/zero_point"};
    document *d = w->out;
    const char **made = &w->dynamic[3 * index_of(w, v)];
    if (made[0])
        return made;
    Onnx__NodeProto *node =
        document_add(d, "DynamicQuantizeLinear", document_name(d, v->name, "/DynamicQuantizeLinear"));
    node_add_in(d, node, v->name);
    for (size_t i = 0; i < 3; i++) {
        made[i] = document_name(d, v->name, suffixes[i]);
        node_add_out(d, node, made[i]);
    }
    return made;
}

/* ---- weights ---- */

static bool is_transposed(const Onnx__NodeProto *node)
{
    return node_is(node, "Gemm") && node_int(node, "transB", 0);
}

/* The axis of output channels. */
static int32_t channel_axis(const Onnx__NodeProto *node)
{
    return node_is(node, "Conv") || is_transposed(node) ? 0 : 1;
}

static grt_tensor rewrite_transpose(rewriter *w, const grt_tensor *t)
{
    const int64_t rows = t->dims[0], columns = t->dims[1];
    grt_tensor made = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {columns, rows}};
    float *to = grt_arena_alloc(w->out->arena, grt_tensor_bytes(t));
    const float *from = t->data;
    for (int64_t i = 0; to && i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            to[k * rows + i] = from[i * columns + k];
    made.data = to;
    return made;
}

/* Scales below which the bias, in units of both scales, would not fit into 32 bits. NULL: there is no bias.
 */
static float *least_scales(rewriter *w, const quant_layer *layer, float in_scale)
{
    if (!layer->bias)
        return NULL;
    const int64_t n = grt_tensor_elements(&layer->bias->tensor);
    float *least = GRT_ARENA_ARRAY(w->out->arena, float, n + 1);
    for (int64_t i = 0; least && i < n; i++)
        least[i] = fabsf(((const float *)layer->bias->tensor.data)[i]) / in_scale * 0x1p-30f;
    return least;
}

typedef struct weight_form {
    grt_tensor tensor;
    grt_dtype dtype;
    int32_t axis;
    int64_t block;
    const float *least;
} weight_form;

static weight_form rewrite_form_of(rewriter *w, const quant_layer *layer, float in_scale)
{
    const grt_quantize_options *o = w->r->options;
    const Onnx__NodeProto *node = w->r->layers->d->nodes[layer->node];
    weight_form f = {.tensor = layer->weight->tensor, .dtype = GRT_DTYPE_INT8, .axis = channel_axis(node)};
    if (o->mode == GRT_QUANTIZE_WEIGHTS) {
        f.dtype = o->weights;
        f.block = o->block > 0 ? o->block : 0;
        f.axis = f.block ? 1 - f.axis : f.axis;
    } else if (o->mode == GRT_QUANTIZE_DYNAMIC) {
        if (is_transposed(node))
            f.tensor = rewrite_transpose(w, &f.tensor);
        f.axis = 1;
    } else if (quantize_options_float8(o)) {
        f.dtype = GRT_DTYPE_FLOAT8E4M3FN;
        f.axis = -1;
    } else {
        f.least = least_scales(w, layer, in_scale);
    }
    return f;
}

static const char *weight_key(rewriter *w, const quant_layer *layer, const weight_form *f)
{
    const char *bias = f->least ? layer->bias->name : "", *in = f->least ? scale_owner(layer->in)->name : "";
    return grt_arena_printf(w->out->arena, "%s\x1f%d\x1f%s\x1f%s", layer->weight->name, f->axis, bias, in);
}

static grt_status fill_weight(rewriter *w, const quant_layer *layer, const weight_form *f, made_weight *made)
{
    document *d = w->out;
    quantised_weights q;
    GRT_TRY(document_check(d));
    GRT_TRY(quantise_weights(&f->tensor, f->dtype, f->axis, f->block, f->least, d->arena, &q));
    made->data = document_name(d, layer->weight->name, "/quantized");
    made->scales = document_name(d, layer->weight->name, "/scale");
    made->scale = q.scales.data;
    made->n_scales = grt_tensor_elements(&q.scales);
    made->error = q.signal > 0 ? sqrt(q.error / q.signal) : 0;
    if (!made->data || !made->scales)
        return document_check(d);
    document_add_weight(d, made->data, &q.data);
    document_add_weight(d, made->scales, &q.scales);
    if (f->block || f->dtype != GRT_DTYPE_INT8)
        return document_check(d);
    int8_t *zeros = GRT_ARENA_ARRAY(d->arena, int8_t, made->n_scales + 1);
    if (zeros)
        made->zeros =
            add_constant(w, layer->weight->name, "/zero_point", GRT_DTYPE_INT8, 1, made->n_scales, zeros);
    return document_check(d);
}

static grt_status make_weight(rewriter *w, quant_layer *layer, float in_scale, made_weight **out,
                              weight_form *out_form)
{
    *out_form = rewrite_form_of(w, layer, in_scale);
    const char *key = weight_key(w, layer, out_form);
    names_entry *e = key ? names_add(&w->weights, w->out->arena, key) : NULL;
    made_weight *made = e && e->thing ? e->thing : GRT_ARENA_NEW(w->out->arena, made_weight);
    if (!e || !made)
        return grt_fail_memory(0);
    if (!e->thing)
        GRT_TRY(fill_weight(w, layer, out_form, made));
    e->thing = made;
    layer->weight_error = made->error;
    *out = made;
    return GRT_OK;
}

static const char *rewrite_dequantise(rewriter *w, const char *base, const char *data, const char *scales,
                                      const char *zeros, int64_t axis, int64_t block)
{
    document *d = w->out;
    const char *result = document_name(d, base, "/dequantized");
    Onnx__NodeProto *node = document_add(d, "DequantizeLinear", document_name(d, base, "/DequantizeLinear"));
    node_add_in(d, node, data);
    node_add_in(d, node, scales);
    if (zeros)
        node_add_in(d, node, zeros);
    node_add_out(d, node, result);
    if (axis >= 0)
        node_set_int(d, node, "axis", axis);
    if (block)
        node_set_int(d, node, "block_size", block);
    return result;
}

static const char *dequantised_weight(rewriter *w, const quant_layer *layer, made_weight *made,
                                      const weight_form *f)
{
    if (!made->dequantised)
        made->dequantised = rewrite_dequantise(w, layer->weight->name, made->data, made->scales, made->zeros,
                                               f->axis, f->block);
    return made->dequantised;
}

/* The bias in units of both scales. */
static const char *dequantised_bias(rewriter *w, const quant_layer *layer, const made_weight *made,
                                    float in_scale)
{
    const int64_t n = grt_tensor_elements(&layer->bias->tensor);
    const char *base = document_name(w->out, layer->out->name, "/bias");
    float *scales = GRT_ARENA_ARRAY(w->out->arena, float, n + 1);
    int32_t *numbers = GRT_ARENA_ARRAY(w->out->arena, int32_t, n + 1);
    if (!base || !scales || !numbers)
        return "";
    for (int64_t i = 0; i < n; i++) {
        scales[i] = in_scale * made->scale[i % made->n_scales];
        const double units =
            nearbyint((double)((const float *)layer->bias->tensor.data)[i] / (double)scales[i]);
        numbers[i] = (int32_t)fmin(fmax(units, -2147483647.0), 2147483647.0);
    }
    const char *data = add_constant(w, base, "/quantized", GRT_DTYPE_INT32, 1, n, numbers),
               *scale = add_constant(w, base, "/scale", GRT_DTYPE_FLOAT, 1, n, scales);
    return rewrite_dequantise(w, base, data, scale, NULL, 0, 0);
}

/* ---- layers ---- */

static grt_status add_static_layer(rewriter *w, quant_layer *layer, const char *result)
{
    const bool weights_only = w->r->options->mode == GRT_QUANTIZE_WEIGHTS,
               is_integer = !weights_only && !quantize_options_float8(w->r->options);
    const float in_scale = weights_only ? 1 : w->r->scales[scale_owner(layer->in)->slot].scale;
    made_weight *made;
    weight_form form;
    GRT_TRY(make_weight(w, layer, in_scale, &made, &form));
    const char *weight = dequantised_weight(w, layer, made, &form),
               *bias = layer->bias && is_integer ? dequantised_bias(w, layer, made, in_scale) : NULL;
    Onnx__NodeProto *node = document_add_copy(w->out, w->r->layers->d->nodes[layer->node]);
    GRT_TRY(document_check(w->out));
    if (!weights_only)
        node->input[0] = (char *)(uintptr_t)w->pairs[index_of(w, layer->in)];
    node->input[1] = (char *)(uintptr_t)weight;
    if (bias && layer->bias_node >= 0)
        w->biases[layer->bias_node] = bias;
    else if (bias)
        node->input[2] = (char *)(uintptr_t)bias;
    node->output[0] = (char *)(uintptr_t)result;
    return GRT_OK;
}

static const char *add_binary(rewriter *w, const char *op, const char *title, const char *a, const char *b,
                              const char *result)
{
    document *d = w->out;
    Onnx__NodeProto *node = document_add(d, op, document_name(d, title, ""));
    node_add_in(d, node, a);
    if (b)
        node_add_in(d, node, b);
    node_add_out(d, node, result ? result : document_name(d, title, "/output"));
    return node_out(node, 0);
}

/* Numbers times numbers, scaled. */
static grt_status add_dynamic_layer(rewriter *w, quant_layer *layer, const char *result)
{
    document *d = w->out;
    const Onnx__NodeProto *node = w->r->layers->d->nodes[layer->node];
    const char **x = add_dynamic(w, layer->in), *title = document_name(d, node_title(node), "/integer");
    made_weight *made;
    weight_form form;
    GRT_TRY(make_weight(w, layer, 1, &made, &form));
    GRT_TRY(document_check(d));
    const char *sums = document_name(d, title, "/sums"), *floats = document_name(d, title, "/float_sums");
    Onnx__NodeProto *product = document_add(d, "MatMulInteger", document_name(d, title, "/MatMulInteger"));
    node_add_in(d, product, x[0]);
    node_add_in(d, product, made->data);
    node_add_in(d, product, x[2]);
    node_add_in(d, product, made->zeros);
    node_add_out(d, product, sums);
    Onnx__NodeProto *cast = document_add(d, "Cast", document_name(d, title, "/Cast"));
    node_add_in(d, cast, sums);
    node_add_out(d, cast, floats);
    node_set_int(d, cast, "to", GRT_DTYPE_FLOAT);
    const char *c = node_is(node, "Gemm") && layer->bias ? layer->bias->name : NULL,
               *scales = add_binary(w, "Mul", grt_arena_printf(d->arena, "%s/scales", title), x[1],
                                    made->scales, NULL),
               *scaled = add_binary(w, "Mul", grt_arena_printf(d->arena, "%s/scaled", title), floats, scales,
                                    c ? NULL : result);
    if (c)
        add_binary(w, "Add", grt_arena_printf(d->arena, "%s/bias", title), scaled, c, result);
    return document_check(d);
}

static grt_status add_layer(rewriter *w, quant_layer *layer, const char *result)
{
    return w->r->options->mode == GRT_QUANTIZE_DYNAMIC ? add_dynamic_layer(w, layer, result)
                                                       : add_static_layer(w, layer, result);
}

/* ---- the whole ---- */

static quant_value *carried_output(const rewriter *w, const Onnx__NodeProto *node, size_t i)
{
    quant_value *v = layers_value(w->r->layers, node_out(node, i));
    return v && v->wanted && v->carried ? v : NULL;
}

/* The name under which a node makes its output: another one where a pair makes the value. */
static const char *raw_name(rewriter *w, const Onnx__NodeProto *node, size_t i)
{
    return carried_output(w, node, i) ? document_name(w->out, node_out(node, i), "/float")
                                      : node_out(node, i);
}

static void add_other(rewriter *w, const Onnx__NodeProto *node, const char *first, const char *bias)
{
    if (!carried_output(w, node, 0) && !bias) {
        document_keep(w->out, node);
        return;
    }
    Onnx__NodeProto *copy = document_add_copy(w->out, node);
    if (grt_arena_failed(w->out->arena))
        return;
    copy->output[0] = (char *)(uintptr_t)first;
    if (bias)
        copy->input[document_find(w->r->layers->d, node_in(node, 0)) ? 0 : 1] = (char *)(uintptr_t)bias;
}

static void add_pairs_behind(rewriter *w, const Onnx__NodeProto *node, const char *first)
{
    for (size_t i = 0; i < node->n_output; i++) {
        const quant_value *v = layers_value(w->r->layers, node_out(node, i));
        if (!v || !v->wanted)
            continue;
        if (v->carried)
            add_pair(w, v, first, v->name);
        else
            add_side_pair(w, v);
    }
}

/* Weights take a while in large models. */
static grt_status tell_layer(const rewriter *w, size_t done)
{
    const grt_quantize_options *o = w->r->options;
    const grt_cancel cancel = {o->cancel, o->user};
    if (o->progress)
        o->progress(o->user, "quantise weights", (double)done / (double)w->r->layers->n);
    return grt_cancel_check(&cancel);
}

static grt_status rewrite_nodes(rewriter *w)
{
    quant_layers *l = w->r->layers;
    size_t next = 0; /* layers are in the order of their nodes */
    for (size_t i = 0; i < l->n_values; i++)
        if (l->values[i].wanted && l->values[i].maker < 0)
            add_side_pair(w, &l->values[i]);
    for (size_t i = 0; i < l->d->n_nodes; i++) {
        const Onnx__NodeProto *node = l->d->nodes[i];
        quant_layer *layer = next < l->n && l->layers[next].node == (int32_t)i ? &l->layers[next++] : NULL;
        const char *first = raw_name(w, node, 0);
        if (layer)
            GRT_TRY(tell_layer(w, next - 1));
        if (layer && !layer->kept)
            GRT_TRY(add_layer(w, layer, first));
        else
            add_other(w, node, first, w->biases[i]);
        add_pairs_behind(w, node, first);
    }
    return document_check(w->out);
}

grt_status rewrite_document(const rewriting *r, document *out)
{
    rewriter w;
    GRT_TRY(document_copy_frame(out, r->layers->d));
    GRT_TRY(start_rewriting(&w, r, out));
    return rewrite_nodes(&w);
}

grt_status rewrite_beside(const rewriting *r, document *out)
{
    rewriter w;
    GRT_TRY(document_copy(out, r->layers->d));
    GRT_TRY(start_rewriting(&w, r, out));
    out->n_outputs = 0;
    for (size_t i = 0; i < r->layers->n; i++) {
        quant_layer *layer = &r->layers->layers[i];
        if (layer->kept)
            continue;
        if (r->options->mode == GRT_QUANTIZE_STATIC)
            add_side_pair(&w, layer->in);
        const char *result = document_name(out, layer->out->name, "/result");
        GRT_TRY(add_layer(&w, layer, result));
        const char *lost = add_binary(&w, "Sub", grt_arena_printf(out->arena, "%s/lost", layer->out->name),
                                      result, layer->out->name, NULL);
        const char *sums[] = {lost, layer->out->name};
        for (size_t k = 0; k < 2; k++) {
            const char *title = grt_arena_printf(out->arena, "%s/squares", sums[k]);
            const char *sum = add_binary(&w, "ReduceSumSquare", title, sums[k], NULL, NULL);
            GRT_TRY(document_check(out));
            node_set_int(out, out->nodes[out->n_nodes - 1], "keepdims", 0);
            document_add_output(out, sum);
        }
    }
    return document_check(out);
}
