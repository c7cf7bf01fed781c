/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of a node, for reports and estimates. */
#ifndef GRT_GRAPH_IR_FLOPS_H
#define GRT_GRAPH_IR_FLOPS_H

#include "graph/ir/ir.h"

/* Multiplications and additions of the node's sums of products, counted separately, with every symbol taken
 * as 1. Only ops that do more than a constant amount of work per element are counted (convolutions, matrix
 * products, attention, recurrences). */
double op_flops(const ir_node *node);

/* Elementary steps that the node takes at most, for nodes whose dims are known: some may take ten
 * nanoseconds. What is not known to grow with the elements of inputs and outputs is taken to grow with their
 * square. */
double op_work(const ir_node *node);

/* Rules for rows. The first result is known, and the first two inputs (of attention the first) are and have a
 * dim at least. */
double flops_conv(const ir_node *node);
double flops_conv_transpose(const ir_node *node);
double flops_woven_conv(const ir_node *node);
double flops_matmul(const ir_node *node);   /* and Gemm */
double flops_qconv(const ir_node *node);    /* graphrt::QConv */
double flops_qmatmul(const ir_node *node);  /* graphrt::QMatMul */
double flops_networks(const ir_node *node); /* graphrt::Networks */
double flops_recurrence(const ir_node *node);
double flops_attention(const ir_node *node); /* causal or not: of all keys */
double flops_rounded_attention(const ir_node *node);
/* The work of an Einsum. */
double flops_einsum(const ir_node *node);

#endif
