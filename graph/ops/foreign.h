/* SPDX-License-Identifier: Apache-2.0 */
/* What operators of other domains, and old ones that never became standard, are rewritten with.
 *
 * Such an operator is a row with `rewrite`: inference calls it once, when the types of the inputs are known,
 * and goes on with the nodes that it made. So whatever is written here is optimised and executed like a model
 * that says the same with standard operators.
 *
 * Nodes are put in front of `at`, the node that is rewritten, and bear its name. NULL for a value is an
 * operand that is left out; values are NULL, too, when memory has run out, which foreign_done notices. */
#ifndef GRT_GRAPH_OPS_FOREIGN_H
#define GRT_GRAPH_OPS_FOREIGN_H

#include "graph/ir/ir.h"

/* One row: FOREIGN("com.microsoft", "Gelu", 1, 1, 1, 1, NULL, rewrite_gelu). Further fields may follow. */
#define FOREIGN(domain_name, op_name, least_in, most_in, least_out, most_out, attributes, ...)     \
    {                                                                                              \
        .domain = domain_name, .name = op_name, .since = 1, .min_in = least_in, .max_in = most_in, \
        .min_out = least_out, .max_out = most_out, .attrs = attributes, .rewrite = __VA_ARGS__     \
    }
#define MS "com.microsoft"

ir_value *put(ir_node *at, const char *op, int32_t n_in, ir_value *const *in);
ir_value *put1(ir_node *at, const char *op, ir_value *a);
ir_value *put2(ir_node *at, const char *op, ir_value *a, ir_value *b);
ir_value *put3(ir_node *at, const char *op, ir_value *a, ir_value *b, ir_value *c);
/* An attribute of the node that makes `value`; returns `value`. */
ir_value *with_int(ir_value *value, const char *name, int64_t number);
ir_value *with_float(ir_value *value, const char *name, double number);
ir_value *with_ints(ir_value *value, const char *name, const int64_t *numbers, size_t n);
/* The attribute of `from`, if it has that. */
ir_value *with_attr_of(ir_value *value, const ir_node *from, const char *name);

ir_value *put_cast(ir_node *at, ir_value *x, grt_dtype to);
ir_value *put_scalar(ir_node *at, grt_dtype dtype, double number);
ir_value *put_int(ir_node *at, int64_t number); /* int64 scalar */
ir_value *put_ints(ir_node *at, const int64_t *numbers, int64_t n);
/* x + b where b is there. */
ir_value *put_add(ir_node *at, ir_value *x, ir_value *b);
/* Dims as Reshape takes them: 0 keeps, -1 is what is left. */
ir_value *put_reshape(ir_node *at, ir_value *x, const int64_t *dims, int64_t n);
ir_value *put_transpose(ir_node *at, ir_value *x, const int64_t *perm, size_t n);
/* x[..., from:to, ...]; bounds are int64[1]. */
ir_value *put_slice(ir_node *at, ir_value *x, int64_t axis, ir_value *from, ir_value *to);
ir_value *put_part(ir_node *at, ir_value *x, int64_t axis, int64_t from, int64_t to);
/* x[..., index, ...], without that axis. */
ir_value *put_item(ir_node *at, ir_value *x, int64_t axis, int64_t index);
ir_value *put_concat(ir_node *at, int64_t axis, int32_t n, ir_value *const *in);
ir_value *put_unsqueeze(ir_node *at, ir_value *x, const int64_t *axes, int64_t n);
ir_value *put_squeeze(ir_node *at, ir_value *x, const int64_t *axes, int64_t n);
/* Dim `axis` of x as int64[1]. */
ir_value *put_dim(ir_node *at, ir_value *x, int64_t axis);
/* 0, 1, ... below the int64 scalar. */
ir_value *put_range(ir_node *at, ir_value *limit);
/* x with all its axes reduced that are listed, which stay as 1. */
ir_value *put_reduce(ir_node *at, const char *op, ir_value *x, const int64_t *axes, int64_t n);
/* An activation by its ONNX name, NULL or "" for none; parameters are attributes as the operator calls them,
 * in the order alpha, beta (Clip: min, max, of the dtype). Fails for those that are not pointwise functions
 * of ai.onnx. */
grt_status put_activation(ir_node *at, const char *op, const float *params, size_t n, grt_dtype dtype,
                          ir_value **x);

/* Rank and dims of an input, as far as inference knows them. */
int32_t foreign_rank(const ir_node *node, int32_t i);                     /* -1: unknown */
bool foreign_dim(const ir_value *value, int32_t axis, int64_t *out_size); /* axis from the end if negative */
/* True if the output is asked for. */
bool foreign_wants(const ir_node *node, int32_t i);
/* INVALID_MODEL, or UNSUPPORTED, and the node is named. */
grt_status foreign_invalid(const ir_node *node, const char *format, ...) GRT_PRINTF(2, 3);
grt_status foreign_unsupported(const ir_node *node, const char *format, ...) GRT_PRINTF(2, 3);
/* Fail unless input i is there; or, unless it has a rank that is known. */
grt_status foreign_need(const ir_node *node, int32_t i, const char *what);
grt_status foreign_need_rank(const ir_node *node, int32_t i, const char *what);
/* Fail if the output is asked for. */
grt_status foreign_refuse_output(const ir_node *node, int32_t i, const char *what);

/* For rows of operators without an expression in ai.onnx: the operator of the same name of the domain
 * graphrt, which has a kernel, takes the node's inputs, attributes and output. */
grt_status foreign_own(ir_node *node);
/* made[i] takes the place of output i, and the node goes. made[i] may be NULL where nobody wants it. */
grt_status foreign_done(ir_node *node, int32_t n, ir_value *const *made);
grt_status foreign_done1(ir_node *node, ir_value *made);

#endif
