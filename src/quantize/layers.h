/* SPDX-License-Identifier: Apache-2.0 */
/* What of a model is quantised: layers with constant weights, and the values between them.
 *
 * A value is quantised by a pair of QuantizeLinear and DequantizeLinear. `carried` values come out of steps
 * that runtimes compute with integers: all users read the pair's result. Of others, only layers read it. */
#ifndef GRT_SRC_QUANTIZE_LAYERS_H
#define GRT_SRC_QUANTIZE_LAYERS_H

#include "src/quantize/document.h"

typedef struct quant_value {
    const char *name;
    int32_t maker;        /* node; -1: an input of the model, a weight, or from outside of the main graph */
    int32_t n_uses;       /* by nodes, their subgraphs, and as an output of the model */
    int32_t only_user;    /* a node, if n_uses is 1 and it is a node's input; else -1 */
    bool wanted, carried; /* decided by layers_decide */
    struct quant_value *like; /* has the same scale; itself: its own */
    int32_t slot;             /* of its statistics; -1: none */
} quant_value;

typedef struct quant_layer {
    int32_t node;
    quant_value *in, *out;
    quant_value *tail; /* of a convolution: behind its Relu or Clip, else `out`; NULL: of a product */
    const document_weight *weight, *bias; /* bias may be NULL */
    int32_t bias_node;   /* the Add behind a MatMul that has the bias; -1: the layer has it */
    const char *kept;    /* why it stays float; NULL: it is quantised */
    double weight_error; /* relative: sqrt(sum of squares lost / sum of squares) */
    double error;        /* of the layer's output with float inputs, relative; -1: not measured */
} quant_layer;

typedef struct quant_layers {
    const document *d;
    grt_arena *arena; /* the document's */
    quant_value *values;
    size_t n_values;
    names by_name;
    quant_layer *layers;
    size_t n;
} quant_layers;

/* How layers are chosen. */
typedef struct layer_rules {
    const char *const *ops; /* of layers; NULL ends */
    bool products_only;     /* dynamic, weights alone, float8: MatMul and Gemm */
} layer_rules;

/* Index the document and find its layers. Those that have no quantised form are listed with the reason. */
grt_status layers_find(quant_layers *l, document *d, const layer_rules *rules);
quant_value *layers_value(const quant_layers *l, const char *name);
/* Gives a slot to every value that is quantised if no layer is kept, in the order of nodes: others never are.
 */
void layers_number_values(quant_layers *l);
/* Which values are quantised, for the layers that are not `kept`. */
void layers_decide(quant_layers *l);
size_t layers_active(const quant_layers *l);

#endif
