/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised models: QuantizeLinear and DequantizeLinear around an op are read as the language that they are,
 * and make one integer step of it. Weights stay 8-bit numbers: until this pass has run, `fold` leaves
 * DequantizeLinear of constants alone. Whatever has no integer form keeps its float32 step between them. */
#include "graph/passes/quantised.h"

grt_status pass_quantised(pass_context *context)
{
    static grt_status (*const parts[])(pass_context *, ir_graph *) = {
        quantised_casts, quantised_integer,   quantised_moves,   quantised_products,
        quantised_moves, quantised_pointwise, quantised_means,   quantised_tables,
        quantised_turns, quantised_sums,      quantised_weights, quantised_reasons};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        GRT_TRY(rewrite_each_graph(context, parts[i]));
        GRT_TRY(pass_dce(context)); /* what a part has replaced uses values that the next one counts */
    }
    context->keeps_quantised = false;
    return GRT_OK;
}
