/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of pass `quantised` share: QuantizeLinear and DequantizeLinear as they are read, and nodes
 * that are offered to the target. */
#ifndef GRT_GRAPH_PASSES_QUANTISED_H
#define GRT_GRAPH_PASSES_QUANTISED_H

#include "graph/passes/rewrite.h"
#include "src/base/qproduct.h"

/* Types of float8 that products are computed of; the fnuz ones are widened. */
#define QUANTISED_FLOAT8 (GRT_BIT(FLOAT8E4M3FN) | GRT_BIT(FLOAT8E5M2))

/* A tensor of 8-bit numbers with its scale and zero point: DequantizeLinear's inputs. */
typedef struct quantity {
    ir_value *data, *scale, *zero; /* zero NULL: 0 */
    int32_t axis;                  /* of several scales; -1: there is one */
} quantity;

/* True for graphrt::QConv and QMatMul. */
bool quantised_is_product(const ir_node *node);
/* A float32 value that DequantizeLinear makes of 8-bit numbers, without blocks. */
bool quantised_read(const ir_value *value, quantity *out);
/* The same of float8 numbers, whose zero points are 0. */
bool quantised_read_float8(const ir_value *value, quantity *out);
/* As quantised_read, with one scale. */
bool quantised_read_single(const ir_value *value, quantity *out);
/* A QuantizeLinear to 8 bits from float32 with one scale: data is its input, and `zero` is made if it was
 * omitted. */
bool quantised_read_target(ir_node *node, quantity *out);
/* The same from any float type. */
bool quantised_read_rounding(ir_node *node, quantity *out);
/* The same to float8, where what is too large becomes the largest number: steps have no other rounding. */
bool quantised_read_float8_rounding(ir_node *node, quantity *out);
/* True if scale and zero point of both are known, equal and of one dtype. */
bool quantised_same(const quantity *a, const quantity *b);
/* The only scale, if it is constant and greater than zero; else 0. */
float quantised_scale(const quantity *q);

/* A zero point of the dtype; NULL when out of memory. */
ir_value *quantised_zero(ir_graph *graph, grt_dtype dtype);
/* Infers the node and asks the target; false, with the node removed, if its type is not `like`'s or there is
 * no kernel. */
bool quantised_offer(pass_context *context, ir_node *node, const ir_value *like);
/* Sets the activation of `node` to that of `act`: Relu, or Clip with constant limits. False: it is none. */
bool quantised_set_activation(ir_node *node, const ir_node *act);
/* The attributes of a convolution's window. */
void quantised_copy_window(ir_node *to, const ir_node *from);
/* The activation that is the only user of the value; NULL: none. */
ir_node *quantised_activation(const ir_value *value);

/* Every value of an 8-bit type in order, in the shape [256]. */
void quantised_all_bytes(grt_dtype dtype, uint8_t *bytes, grt_tensor *out);
/* True of a table of 256 elements that gives each number of the dtype itself, as a product by a constant does
 * whose result has the scale of that. */
bool quantised_changes_nothing(const grt_tensor *table, grt_dtype dtype);

/* The parts, one sweep each. */
grt_status quantised_casts(pass_context *context, ir_graph *graph);   /* Cast, Sub, Mul of weights */
grt_status quantised_integer(pass_context *context, ir_graph *graph); /* QLinear*, *Integer */
grt_status quantised_moves(pass_context *context, ir_graph *graph);
grt_status quantised_products(pass_context *context, ir_graph *graph);
grt_status quantised_weights(pass_context *context, ir_graph *graph);
grt_status quantised_pointwise(pass_context *context, ir_graph *graph);
grt_status quantised_means(pass_context *context, ir_graph *graph); /* and Softmax */
grt_status quantised_tables(pass_context *context, ir_graph *graph);
grt_status quantised_turns(pass_context *context, ir_graph *graph);
grt_status quantised_sums(pass_context *context, ir_graph *graph);
grt_status quantised_lookups(pass_context *context, ir_graph *graph); /* tables behind products */
/* Changes nothing: says why what is left reads dequantised numbers. */
grt_status quantised_reasons(pass_context *context, ir_graph *graph);

#endif
