/* SPDX-License-Identifier: Apache-2.0 */
// What the transformer families share, node for node in the form that PyTorch's exporter emits.
#ifndef GRT_MODELS_TRANSFORMER_H
#define GRT_MODELS_TRANSFORMER_H

#include <stdbool.h>
#include "builder.h"

// Sizes of one attention layer. batch and sequence may be GEN_BATCH and GEN_SEQUENCE.
struct tf_shape {
    int64_t batch, sequence, heads, head_size;
};

// x @ name.weight ([in, out]) + name.bias.
gen_value tf_linear(struct gen *g, gen_value x, const char *name, int64_t in, int64_t out, bool bias);
gen_value tf_layer_norm(struct gen *g, gen_value x, const char *name, int64_t size, float epsilon);
// [batch, sequence, heads * head_size] -> [batch, heads, sequence, head_size], and back.
gen_value tf_split_heads(struct gen *g, gen_value x, struct tf_shape s);
gen_value tf_merge_heads(struct gen *g, gen_value x, struct tf_shape s);
// softmax(q k' / sqrt(head_size) + mask) v on split heads. mask is additive, NULL for none.
gen_value tf_attention(struct gen *g, gen_value q, gen_value k, gen_value v, gen_value mask,
                       struct tf_shape s);
// prefix.{query,key,value,output} around tf_attention.
gen_value tf_self_attention(struct gen *g, gen_value x, const char *prefix, gen_value mask,
                            struct tf_shape s);
// prefix.{intermediate,output} around a Gelu.
gen_value tf_mlp(struct gen *g, gen_value x, const char *prefix, int64_t size, int64_t inner);

#endif
