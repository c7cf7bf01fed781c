/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs written as text, for tests of inference and passes; and a plain interpreter, to see that a rewrite
 * computes the same.
 *
 *   in x f32 2,seq          input; dims are numbers or symbols, "-" for a scalar
 *   in m map:f32 -          a map to float32
 *   const w f32 3,4 0.5 -1  constant; the values are repeated as needed; without any, they look random
 *   y = MatMul x w          node; "_" for an omitted input, "a,b = Split ..." for several outputs
 *   z = Transpose y perm=1,0 then attributes, of the kinds that the op's row says
 *   out z
 */
#ifndef GRT_TESTS_IR_TEXT_H
#define GRT_TESTS_IR_TEXT_H

#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"
#include "graph/passes/supported.h"

/* Types are inferred. Fails the test on anything that cannot be read. */
ir_module *ir_text(const char *text);
/* The same with only the types of inputs and constants. */
ir_module *ir_text_read(const char *text);
/* Run one pass (or "" for all of them) for the CPU and verify the result. Returns the number of rewrites. */
int64_t ir_text_pass(ir_module *module, const char *pass);
/* "MatMul Add graphrt::Conv": the ops of the main graph in order. Lives as long as the module. */
const char *ir_text_ops(const ir_module *module);
/* The node of that op, the nth of them (from 0); fails the test if there is none. */
ir_node *ir_text_node(const ir_module *module, const char *op, int nth);
/* The text's graph gives the same outputs before and after the pass, and the ops are `expected` after it
 * (NULL: any). */
void ir_text_check(const char *text, const char *pass, const char *expected);
/* Two graphs of one form outside give the same outputs. */
void ir_text_compare(ir_module *plain, ir_module *rewritten);
/* The target that these use: the CPU, with the passes that only other targets gain by. */
grt_target ir_text_target(void);
/* For target.supports: a device that has every kernel. */
bool ir_text_takes_all(const grt_target *target, const grt_op_desc *desc, const grt_tensor *in, int32_t n_in,
                       const grt_tensor *out, int32_t n_out, grt_text *why);

#endif
