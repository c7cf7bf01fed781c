/* SPDX-License-Identifier: Apache-2.0 */
/* Training steps of ai.onnx.preview.training: Adagrad, Adam, Momentum. Inputs are the learning rate R, the
 * step T, then for n tensors their values, their gradients and one or two kinds of state; outputs are new
 * values and states. */
#include "graph/ir/op.h"

#include <string.h>

static const op_attr adagrad_attrs[] = {
    {"decay_factor", GRT_ATTR_FLOAT, false},
    {"epsilon", GRT_ATTR_FLOAT, false},
    {"norm_coefficient", GRT_ATTR_FLOAT, false},
    {0},
};
static const op_attr adam_attrs[] = {
    {"alpha", GRT_ATTR_FLOAT, false},
    {"beta", GRT_ATTR_FLOAT, false},
    {"epsilon", GRT_ATTR_FLOAT, false},
    {"norm_coefficient", GRT_ATTR_FLOAT, false},
    {"norm_coefficient_post", GRT_ATTR_FLOAT, false},
    {0},
};
static const op_attr momentum_attrs[] = {
    {"alpha", GRT_ATTR_FLOAT, true},
    {"beta", GRT_ATTR_FLOAT, true},
    {"mode", GRT_ATTR_STRING, true},
    {"norm_coefficient", GRT_ATTR_FLOAT, true},
    {0},
};

static grt_status infer_step(infer *inf)
{
    int32_t kinds = !strcmp(inf->desc->op, "Adam") ? 4 : 3, n = (inf->n_in - 2) / kinds;
    const char *mode = grt_attr_string(inf->desc, "mode", "standard");
    if (inf->n_in < 2 + kinds || (inf->n_in - 2) % kinds || inf->n_out != n * (kinds - 1))
        return infer_fail(
            inf, "has %d inputs and %d outputs; it must have 2 + %d n inputs and %d n outputs for n tensors",
            inf->n_in, inf->n_out, kinds, kinds - 1);
    if (strcmp(mode, "standard") && strcmp(mode, "nesterov"))
        return infer_fail(inf, "attribute mode is '%s'; it must be standard or nesterov", mode);
    for (int32_t i = 2; i < inf->n_in; i++)
        if (!infer_has(inf, i))
            return infer_fail(inf, "input %d is missing", i);
    for (int32_t i = 0; i < inf->n_out; i++) {
        const ir_type *same = inf->in[2 + (i < n ? i : i + n)]; /* gradients have no output */
        infer_set_like(inf, i, same->dtype, same);
    }
    return GRT_OK;
}

#define ROW(op, list)                                                                                     \
    {                                                                                                     \
        .domain = "ai.onnx.preview.training", .name = op, .since = 1, .min_in = 3, .max_in = OP_VARIADIC, \
        .min_out = 1, .max_out = OP_VARIADIC, .attrs = list, .precision = OP_WIDE, .infer = infer_step    \
    }
static const op_row rows[] = {
    ROW("Adagrad", adagrad_attrs),
    ROW("Adam", adam_attrs),
    ROW("Momentum", momentum_attrs),
};
OP_TABLE(optimizer, rows);
