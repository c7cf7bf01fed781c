/* SPDX-License-Identifier: Apache-2.0 */
/* See refused.h. docs/import.md has the same table; tests/scripts/refused.sh compares them. */
#include "graph/ops/refused.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Of com.microsoft: names, a space behind each, and the reason. */
static const struct {
    const char *names, *why;
} refused[] = {
    {"BeamSearch WhisperBeamSearch GreedySearch Sampling ",
     "a generation loop, its search and its cache in one node, whose rules are those of one "
     "library's release; export the decoder, and search in the program"},
    {"NGramRepeatBlock BifurcationDetector DynamicTimeWarping NGramHashMapping "
     "VarlenNGramHashMapping ",
     "a step of a program that generates text, between two calls of a model"},
    {"SparseToDenseMatMul ", "takes a sparse tensor as a value, which ai.onnx has for constants only"},
    {"SparseAttention LongformerAttention DynamicSparseAttention PackedAttention "
     "PackedMultiHeadAttention PagedAttention SparsePagedAttention RemovePadding "
     "RestorePadding ",
     "attention over pages, blocks or packed rows that a server's own allocator hands out; "
     "Attention and GroupQueryAttention say the same over tensors"},
    {"DecoderAttention RelativePositionBias GatedRelativePositionBias ",
     "fusions that one library writes for its GPU kernels, of models that it reads unfused as "
     "well"},
    {"AttnLSTM WordConvEmbedding EngramGate GatedDeltaNet ", "written by no exporter that is known"},
    {"MatMulFpQ4 QuantizeBFP DequantizeBFP GemmFloat8 QOrderedMatMul QOrderedAttention "
     "QOrderedGelu QOrderedLayerNormalization QuantizeWithOrder DequantizeWithOrder ",
     "bytes laid out for one release or one vendor's library"},
    {"EPContext Snpe ", "a program compiled for another runtime"},
    {"MaxpoolWithMask SampleOp ", "for that library's own tests"},
    {"Rfft Irfft ", "DFT is the standard's"},
    {"BitmaskDropout BitmaskBiasDropout Gradient ", "training"},
};

static bool lists(const char *names, const char *op)
{
    const size_t size = strlen(op);
    for (const char *at = names; size && (at = strstr(at, op)); at += size)
        if ((at == names || at[-1] == ' ') && at[size] == ' ')
            return true;
    return false;
}

const char *op_refused_why(const char *domain, const char *op)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused && !strcmp(domain, "com.microsoft"); i++)
        if (lists(refused[i].names, op))
            return refused[i].why;
    return "this op is not known to this version of the library";
}
