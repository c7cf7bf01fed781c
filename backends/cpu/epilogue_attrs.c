/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a fused node's activation. */
#include "backends/cpu/epilogue_attrs.h"

/* Names as graph/ops/fused.c lists them. */
static const struct {
    const char *name;
    grt_act_kind kind;
} acts[] = {
    {"", GRT_ACT_NONE},
    {"Relu", GRT_ACT_RELU},
    {"LeakyRelu", GRT_ACT_LEAKY_RELU},
    {"Clip", GRT_ACT_CLIP},
    {"Elu", GRT_ACT_ELU},
    {"Sigmoid", GRT_ACT_SIGMOID},
    {"Tanh", GRT_ACT_TANH},
    {"Silu", GRT_ACT_SILU},
    {"Gelu", GRT_ACT_GELU_ERF},
    {"GeluTanh", GRT_ACT_GELU_TANH},
    {"HardSigmoid", GRT_ACT_HARD_SIGMOID},
    {"HardSwish", GRT_ACT_HARD_SWISH},
    {"Softplus", GRT_ACT_SOFTPLUS},
};

bool cpu_act_read(const grt_op_desc *desc, grt_act *out, grt_text *why)
{
    const char *name = grt_attr_string(desc, "activation", "");
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (!strcmp(acts[i].name, name)) {
            *out = (grt_act){acts[i].kind, grt_attr_float(desc, "alpha", 0), grt_attr_float(desc, "beta", 0)};
            return true;
        }
    *out = (grt_act){GRT_ACT_NONE, 0, 0};
    if (why)
        grt_text_add(why, "the CPU backend has no activation '%s' in an epilogue", name);
    return false;
}

float cpu_act_scalar(grt_act act, float x)
{
    grt_act_apply(act, &x, 1);
    return x;
}
