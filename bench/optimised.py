#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models after the tools that people put between an exporter and a runtime, against ONNX Runtime and against the plain export.

    bench/optimised.py DIRECTORY [MODEL...] [--json out.json] [--forms FORM...]
        (pip install onnxruntime torch transformers onnx onnxconverter-common onnxslim onnxsim)

Small models with random weights are exported by PyTorch into DIRECTORY/MODEL-plain/, and from there changed into DIRECTORY/MODEL-FORM/ by
ONNX Runtime's transformer optimiser with several options, its and onnxconverter-common's float16 converters, onnxslim and onnxsim, and ONNX
Runtime saving what it has optimised itself. What is there already is not made again. bench/sweep.py compares their outputs with the plain
export's (of fused-gelu, which approximates, with ONNX Runtime's). A line tells what a form has made of the operators.
"""
import collections
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch
import transformers
from onnxruntime.transformers import optimizer
from onnxruntime.transformers.fusion_options import FusionOptions

import sweep

HIDDEN, HEADS, LAYERS, WORDS = 256, 8, 4, 1000
KIND = {"bert": "bert", "gpt2": "gpt2", "llama": "gpt2", "whisper-encoder": "bart", "whisper-decoder": "bart", "vit": "vit", "clip": "clip", "t5": "t5"}


class Outputs(torch.nn.Module):
    """A model of transformers that takes and gives tensors only; the cache is the last inputs, keys and values in turns."""

    def __init__(self, model, names, cross=False):
        super().__init__()
        self.model, self.names, self.cross = model, names, cross

    def forward(self, *inputs):
        from transformers.cache_utils import DynamicCache, EncoderDecoderCache

        given, past = dict(zip(self.names, inputs)), inputs[len(self.names):]
        if past:
            cache = lambda first, step: DynamicCache([(past[i], past[i + 1]) for i in range(first, len(past), step)])
            given["past_key_values"] = EncoderDecoderCache(cache(0, 4), cache(2, 4)) if self.cross else cache(0, 2)
        result = self.model(**given)
        found = [result[0]]
        if past:
            own = result.past_key_values.self_attention_cache if self.cross else result.past_key_values
            found += [t for layer in own.layers for t in (layer.keys, layer.values)]
        return tuple(found)


def models():
    t, ids = transformers, lambda *shape: torch.randint(1, WORDS, shape)
    common = {"attn_implementation": "eager"}
    past = lambda heads, length: [torch.randn(1, heads, length, HIDDEN // HEADS) for _ in range(2 * LAYERS)]
    whisper = t.WhisperConfig(vocab_size=WORDS, d_model=HIDDEN, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS,
                              encoder_ffn_dim=2 * HIDDEN, decoder_ffn_dim=2 * HIDDEN, max_source_positions=100, num_mel_bins=20, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                              decoder_start_token_id=1, **common)
    llama = t.LlamaConfig(hidden_size=HIDDEN, intermediate_size=2 * HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=HEADS, vocab_size=WORDS, **common)
    gpt2 = t.GPT2Config(n_embd=HIDDEN, n_head=HEADS, n_layer=LAYERS, vocab_size=WORDS, **common)
    sizes = {"hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 4 * HIDDEN}
    bert = t.BertConfig(vocab_size=WORDS, **sizes, **common)
    mask = torch.ones(1, 64, dtype=torch.int64)
    mask[:, 50:] = 0
    crossed = [c for own, other in zip(zip(*[iter(past(HEADS, 12))] * 2), zip(*[iter(past(HEADS, 100))] * 2)) for c in own + other]
    return {"bert": (lambda: t.BertModel(bert), ["input_ids", "attention_mask", "token_type_ids"], [ids(1, 64), mask, torch.zeros(1, 64, dtype=torch.int64)], False),
            "gpt2": (lambda: t.GPT2LMHeadModel(gpt2), ["input_ids"], [ids(1, 1), *past(HEADS, 24)], False),
            "llama": (lambda: t.LlamaForCausalLM(llama), ["input_ids"], [ids(1, 1), *past(HEADS, 24)], False),
            "vit": (lambda: t.ViTModel(t.ViTConfig(image_size=64, patch_size=8, **sizes, **common)), ["pixel_values"], [torch.randn(1, 3, 64, 64)], False),
            "clip": (lambda: t.CLIPTextModel(t.CLIPTextConfig(vocab_size=WORDS, **sizes, bos_token_id=1, eos_token_id=2, pad_token_id=0, **common)), ["input_ids"], [ids(1, 32)], False),
            "t5": (lambda: t.T5EncoderModel(t.T5Config(vocab_size=WORDS, d_model=HIDDEN, d_kv=HIDDEN // HEADS, d_ff=2 * HIDDEN, num_layers=LAYERS, num_heads=HEADS)), ["input_ids"],
                   [ids(1, 48)], False),
            "whisper-encoder": (lambda: t.WhisperForConditionalGeneration(whisper).model.encoder, ["input_features"], [torch.randn(1, 20, 200)], False),
            "whisper-decoder": (lambda: t.WhisperForConditionalGeneration(whisper).model.decoder, ["input_ids", "encoder_hidden_states"],
                                [ids(1, 1), torch.randn(1, 100, HIDDEN), *crossed], True)}


def export(name, target, scripted):
    make, names, inputs, cross = models()[name]
    torch.manual_seed(0)
    module = Outputs(make().eval(), names, cross)
    all_names = names + [f"past_{i}" for i in range(len(inputs) - len(names))]
    with torch.no_grad():
        outputs = module(*inputs)
        torch.onnx.export(module, tuple(inputs), str(target), input_names=all_names, output_names=["output"] + [f"present_{i}" for i in range(len(outputs) - 1)],
                          opset_version=17 if scripted else 20, dynamo=not scripted, **({} if scripted else {"external_data": False}))
    used = {i.name for i in onnx.load(target).graph.input}
    return {n: v.numpy() for n, v in zip(all_names, inputs) if n in used}


def fused(options=(), opt_level=0, half=None, **convert):
    def make(name, source, target):
        chosen = FusionOptions(KIND[name])
        for option in options:
            setattr(chosen, option, True)
        model = optimizer.optimize_model(str(source), model_type=KIND[name], num_heads=HEADS, hidden_size=HIDDEN, optimization_options=chosen, opt_level=opt_level)
        if half:
            model.convert_float_to_float16(**convert)
        model.save_model_to_file(str(target))
    return make


def saved(level):
    """What ONNX Runtime's own passes leave; the third level's layouts are for its kernels alone."""
    def make(name, source, target):
        options = ort.SessionOptions()
        options.graph_optimization_level = level
        options.optimized_model_filepath = str(target)
        ort.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    return make


def common_half(name, source, target):
    from onnxconverter_common import float16
    onnx.save(float16.convert_float_to_float16(onnx.load(source), keep_io_types=True), target)


def slim(name, source, target):
    import onnxslim
    onnxslim.slim(str(source), str(target))


def simplified(name, source, target):
    import onnxsim
    onnx.save(onnxsim.simplify(onnx.load(source))[0], target)


FORMS = {"fused": fused(), "fused-mha": fused(["use_multi_head_attention"]), "fused-gelu": fused(["enable_gelu_approximation", "enable_gemm_fast_gelu"]),
         "fused-level2": fused(opt_level=2), "fused-half": fused(half=True), "fused-half-io": fused(half=True, keep_io_types=True),
         "fused-mha-half": fused(["use_multi_head_attention"], half=True), "saved-basic": saved(ort.GraphOptimizationLevel.ORT_ENABLE_BASIC),
         "saved-extended": saved(ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED), "half": common_half, "slim": slim, "simplified": simplified}


def counts(path):
    return dict(collections.Counter(f"{n.domain}::{n.op_type}" for n in onnx.load(path, load_external_data=False).graph.node if n.domain or "Simplified" in n.op_type))


def write_set(target, values, outputs):
    """Inputs and outputs, in the types that the model has."""
    directory = target.parent / "set0"
    directory.mkdir(exist_ok=True)
    session = sweep.session(target, False)
    for kind, wanted, given in (("in", session.get_inputs(), values), ("out", session.get_outputs(), outputs)):
        for v in wanted:
            if v.name in given:
                np.save(directory / f"{kind}.{v.name}.npy", given[v.name].astype(sweep.NUMPY[v.type[len("tensor("):-1]]))


def plain(args, name):
    target = args.directory / f"{name}-plain" / "model.onnx"
    if not (target.parent / "set0").exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        values = export(name, target, not args.dynamo)
        session = sweep.session(target, False)
        write_set(target, values, dict(zip([o.name for o in session.get_outputs()], session.run(None, values))))
    values = {f.name[3:-4]: np.load(f) for f in target.parent.glob("set0/in.*.npy")}
    outputs = {f.name[4:-4]: np.load(f) for f in target.parent.glob("set0/out.*.npy")}
    return target, values, outputs


def make(args, name, form, source, values, outputs):
    target = args.directory / f"{name}-{form}" / "model.onnx"
    if not (target.parent / "set0").exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            FORMS[form](name, source, target)
            write_set(target, values, {} if "gelu" in form else outputs)
        except Exception as problem:  # what a tool cannot do is not ours to judge
            print(json.dumps({"model": str(target), "status": "peer", "why": f"{type(problem).__name__}: {problem}"[:300]}), flush=True)
            return []
    print(json.dumps({"model": str(target), "operators": counts(target)}), flush=True)
    return [str(target)]


def arguments():
    p = sweep.maker(__doc__)
    p.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(KIND) + " (default: all)")
    p.add_argument("--forms", nargs="+", choices=list(FORMS), default=list(FORMS), metavar="FORM", help=", ".join(FORMS) + " (default: all)")
    p.add_argument("--dynamo", action="store_true", help="export by torch.export; default: by TorchScript, which the optimiser's patterns are made for")
    return p.parse_intermixed_args()


def main():
    args = arguments()
    ort.set_default_logger_severity(4)
    models = []
    for name in args.models or KIND:
        source, values, outputs = plain(args, name)
        models += [str(source)] + [m for form in args.forms for m in make(args, name, form, source, values, outputs)]
    return sweep.made(args, models)


if __name__ == "__main__":
    sys.exit(main())
