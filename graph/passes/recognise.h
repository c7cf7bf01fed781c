/* SPDX-License-Identifier: Apache-2.0 */
/* What the patterns of `recognise` are matched by and replaced with, and the patterns. */
#ifndef GRT_GRAPH_PASSES_RECOGNISE_H
#define GRT_GRAPH_PASSES_RECOGNISE_H

#include "graph/passes/rewrite.h"

/* constant * x[0] * x[1] ..., as Mul and Div by constants write it, through nodes that only serve this
 * product. */
enum { RECOGNISE_FACTORS = 4 };
typedef struct recognise_product {
    double constant;
    int32_t n;
    ir_value *x[RECOGNISE_FACTORS];
    grt_dtype narrow; /* of a constant in 16 bits; NONE without */
} recognise_product;

/* The factors of `value`; false if they are more than that. */
bool recognise_factors_of(ir_value *value, recognise_product *p);
bool recognise_is_near(double found, double expected);
/* The product's constant is near, or it, or what divides, is the number of 16 bits next to the expected one:
 * models in half hold sqrt(2) so. */
bool recognise_has_constant(const recognise_product *p, double expected);
/* x of Add(x, c) or Add(c, x); NULL otherwise. */
ir_value *recognise_plus_constant(const ir_value *value, double expected);
/* The input of `op` if that makes the value and only serves here. */
ir_value *recognise_input_of(const ir_value *value, const char *op);
/* Replaces the pattern that ends in `node` by `made`. The covered nodes are dead then. */
bool recognise_put(pass_context *context, ir_node *node, ir_node *made);
ir_node *recognise_unary(ir_node *node, const char *op, ir_value *x);

/* Each takes the last node of its pattern, and is true if that was replaced. The product is what `node`
 * makes. */
/* x * sigmoid(alpha * x) */
bool recognise_swish(pass_context *context, ir_node *node, const recognise_product *p);
/* x * hardsigmoid(x) with the slope and offset of hardswish */
bool recognise_hard_swish(pass_context *context, ir_node *node, const recognise_product *p);
/* 0.5 * x * (1 + f(x)) with f the error function, or tanh of a polynomial */
bool recognise_gelu(pass_context *context, ir_node *node, const recognise_product *p);
/* (x - mean) / sqrt(var + eps) * w + b, from its Add */
bool recognise_layer_norm(pass_context *context, ir_node *node);
/* x / rms(x) * w, from its last Mul; layer normalisation without a bias if x is y - mean(y). */
bool recognise_rms_norm(pass_context *context, ir_node *node);
/* x / max(norm(x), e) over one axis, as float16 that is to come. It knows no norm between zero and 5.9e-8: e
 * below divides zeros alone, and rows may be divided by their norms wherever those are not zero. */
bool recognise_unit_rows(pass_context *context, ir_node *node);
/* Groups of channels seen as channels: Reshape to [N, groups, ...], InstanceNormalization, Reshape back. */
bool recognise_group_norm(pass_context *context, ir_node *node);
/* What multiplies the channels of a group normalisation, or is added to them, joins its scale and bias. */
bool recognise_wider_group_norm(pass_context *context, ir_node *node);
/* The mask of the last selection found in a graph, and its bools, which are made in front of the first node
 * that needs them. {NULL, NULL} in front of the graph's first node. */
typedef struct selection_mask {
    const ir_value *mask;
    ir_value *condition;
} selection_mask;
/* x * m + c * (1 - m), where m is zeros and ones, from its Add or Sub. Nodes are asked in their order. */
bool recognise_selection(pass_context *context, selection_mask *last, ir_node *node);
/* Norms, scales and the like of each row of a head, behind the transpose that puts heads in front of tokens,
 * go in front of it. From the last such node. */
bool recognise_row_of_head(pass_context *context, ir_node *node);

#endif
