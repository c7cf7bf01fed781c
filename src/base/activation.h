/* SPDX-License-Identifier: Apache-2.0 */
/* The activations that a convolution or product may apply to its result: the one list of them. */
#ifndef GRT_BASE_ACTIVATION_H
#define GRT_BASE_ACTIVATION_H

#include "src/base/op_desc.h"
#include "src/base/text.h"

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

/* X(kind, what the attribute `activation` of graphrt::Conv and graphrt::MatMul says, function of
 * pointwise.def). The function's parameters are attributes alpha and beta: a and b. */
#define GRT_ACTIVATIONS(X)                                                                                 \
    X(RELU, "Relu", Relu)                                                                                  \
    X(LEAKY_RELU, "LeakyRelu", LeakyRelu) /* a: slope below zero */                                        \
    X(CLIP, "Clip", Clip)                 /* a: lowest, b: highest */                                      \
    X(ELU, "Elu", Elu)                    /* a: scale below zero */                                        \
    X(SIGMOID, "Sigmoid", Sigmoid)                                                                         \
    X(TANH, "Tanh", Tanh)                                                                                  \
    X(SILU, "Silu", Swish)             /* x * sigmoid(a * x); a is 1 for SiLU, 1.702 for the quick GELU */ \
    X(GELU_ERF, "Gelu", Gelu)          /* x * Phi(x) */                                                    \
    X(GELU_TANH, "GeluTanh", GeluTanh) /* its tanh approximation */                                        \
    X(HARD_SIGMOID, "HardSigmoid", HardSigmoid) /* clip(a * x + b, 0, 1) */                                \
    X(HARD_SWISH, "HardSwish", HardSwish)       /* x * clip(x / 6 + 0.5, 0, 1) */                          \
    X(SOFTPLUS, "Softplus", Softplus)

typedef enum grt_act_kind {
    GRT_ACT_NONE,
#define X(kind, name, function) GRT_ACT_##kind,
    GRT_ACTIVATIONS(X)
#undef X
} grt_act_kind;

typedef struct grt_act {
    grt_act_kind kind;
    float a, b;
} grt_act;

/* The activation of a fused node; false, with the reason in why (may be NULL), if it is none of these. */
bool grt_act_read(const grt_op_desc *desc, grt_act *out, grt_text *why);
/* The activation of that name, "" for none; false if there is no such. */
bool grt_act_find(const char *name, size_t length, grt_act_kind *out);
/* The pointwise function that it is; -1: none. */
int32_t grt_act_function(grt_act_kind kind);
/* What `activation` says for a pointwise function; NULL if no product applies it. */
const char *grt_act_name_of(int32_t function);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
