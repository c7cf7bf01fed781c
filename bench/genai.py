#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decoders as onnxruntime-genai's builder saves them, against ONNX Runtime and against what PyTorch computes.

    bench/genai.py DIRECTORY [--json out.json] [--hidden 256] [--layers 2] [MODEL...]
        (pip install onnxruntime onnxruntime-genai torch transformers onnx)

Models are small ones of each architecture with random weights, made into DIRECTORY/ARCHITECTURE-PRECISION-TARGET/ with the inputs of a prompt
(set0) and of the token behind it (set1); what is there already is not made again. bench/sweep.py compares them. Full precision must also be
within 1e-3 of PyTorch.
"""
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch
import transformers
from onnxruntime_genai.models import builder

import sweep

PROMPT = 24
WINDOW = 16  # of attention that slides: the prompt is longer
VOCABULARY = 1000  # no other size: the builder knows the last layer by it
VARIANTS = [("fp32", "cpu", []), ("int4", "cpu", []), ("int4", "cpu", ["is_symmetric=false", "block_size=64", "op_types_to_quantize=MatMul/Gather"]), ("fp16", "cuda", []),
            ("int8", "cpu", []), ("int4", "cuda", ["algo_config=k_quant_mixed"])]
SPECIAL = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def shape(args):
    return {"hidden_size": args.hidden, "intermediate_size": 2 * args.hidden, "num_hidden_layers": args.layers, "num_attention_heads": 8,
            "num_key_value_heads": 2, "vocab_size": VOCABULARY, "max_position_embeddings": 256} | SPECIAL


def configs(args):
    t, s = transformers, shape(args)
    full = s | {"num_key_value_heads": 8}
    head = {"head_dim": args.hidden // 8}
    moe = {"num_local_experts": 4, "num_experts_per_tok": 2}
    rope = {"rope_type": "longrope", "type": "longrope", "short_factor": [1.0] * (args.hidden // 16), "long_factor": [2.0] * (args.hidden // 16), "rope_theta": 10000.0,
            "original_max_position_embeddings": 64}
    return {"llama": t.LlamaConfig(**s), "mistral": t.MistralConfig(**s, sliding_window=WINDOW), "phi": t.PhiConfig(**full), "phi3": t.Phi3Config(**s, original_max_position_embeddings=256),
            "phi3-long": t.Phi3Config(**s, original_max_position_embeddings=64, rope_parameters=rope), "qwen2": t.Qwen2Config(**s), "qwen3": t.Qwen3Config(**s, **head),
            "gemma": t.GemmaConfig(**s, **head), "gemma2": t.Gemma2Config(**s, **head, query_pre_attn_scalar=32, sliding_window=WINDOW),
            "gemma3": t.Gemma3TextConfig(**s, **head, query_pre_attn_scalar=32, sliding_window=WINDOW), "granite": t.GraniteConfig(**s), "olmo": t.OlmoConfig(**s),
            "nemotron": t.NemotronConfig(**s, **head), "smollm3": t.SmolLM3Config(**s), "gptoss": t.GptOssConfig(**s, **head, **moe, sliding_window=WINDOW),
            "hunyuan": t.HunYuanDenseV1Config(**s, **head), "ernie": t.Ernie4_5Config(**s, **head), "lfm2": t.Lfm2Config(**s, layer_types=["conv", "full_attention"] * (args.layers // 2))}


def save_checkpoint(name, config, directory):
    """As Hugging Face's tools do, with a tokenizer of one word: the builder wants one."""
    from tokenizers import Tokenizer, models

    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    model.save_pretrained(directory)
    words = Tokenizer(models.WordLevel({"a": 0, "<s>": 1, "</s>": 2}, unk_token="a"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<s>", eos_token="</s>", pad_token="a").save_pretrained(directory)
    return model


def build(source, target, precision, provider, options):
    common = (None, str(source), str(target), precision, provider, str(target / "cache"))
    builder.create_model(*common, **builder.parse_extra_options(*common, options))
    shutil.rmtree(target / "cache", ignore_errors=True)


def feeds(session, tokens, past, head):
    """Inputs for `tokens` behind `past`, a dictionary of earlier presents."""
    values, before = {}, past["length"]
    for i in session.get_inputs():
        kind = np.dtype(sweep.NUMPY[i.type[len("tensor("):-1]])
        if i.name == "input_ids":
            values[i.name] = tokens.astype(kind)
        elif i.name == "attention_mask":
            values[i.name] = np.ones((1, before + tokens.shape[1]), kind)
        elif i.name == "position_ids":
            values[i.name] = np.arange(before, before + tokens.shape[1], dtype=kind)[None]
        elif i.name in past:
            values[i.name] = past[i.name]
        else:
            values[i.name] = np.zeros([d if isinstance(d, int) else {"batch_size": 1, "kv_cache_dim": head, "past_sliding_length": WINDOW}.get(d, 0) for d in i.shape], kind)
    return values


def exact(path):
    """ONNX Runtime without rounding activations to 8 bits, as accuracy_level 4 lets it."""
    model = onnx.load(path)
    for node in model.graph.node:
        kept = [a for a in node.attribute if a.name != "accuracy_level"]
        del node.attribute[:]
        node.attribute.extend(kept)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def record(path, tokens, head):
    """Writes both sets of inputs and the outputs; the logits of both."""
    session, past, logits = exact(path), {"length": 0}, []
    for number, part in enumerate((tokens[:, :-1], tokens[:, -1:])):
        values = feeds(session, part, past, head)
        directory = path.parent / f"set{number}"
        directory.mkdir(exist_ok=True)
        for name, value in values.items():
            np.save(directory / f"in.{name}.npy", value)
        outputs = dict(zip([o.name for o in session.get_outputs()], session.run(None, values)))
        for name, value in outputs.items():
            np.save(directory / f"out.{name}.npy", value)
        logits.append(outputs["logits"].astype(np.float32))
        past = {"length": part.shape[1]} | {name.replace("present", "past_key_values" if ".key" in name or ".value" in name else "past"): v for name, v in outputs.items()}
    return logits


def make(args, name, config):
    source = args.directory / "checkpoints" / name
    tokens = np.random.default_rng(0).integers(3, VOCABULARY, (1, PROMPT + 1))
    made = []
    for number, (precision, provider, options) in enumerate(VARIANTS):
        target = args.directory / f"{name}-{precision}-{provider}{'-' + str(number) if options else ''}"
        made.append(target)
        if (target / "set1").exists():
            continue
        try:
            model = save_checkpoint(name, config, source)
            build(source, target, precision, provider, options)
            logits = record(target / "model.onnx", tokens, args.hidden // 8)
            with torch.no_grad():
                expected = model(torch.from_numpy(tokens)).logits.numpy()
            far = max(sweep.difference(logits[0][:, -1], expected[:, -2]), sweep.difference(logits[1][:, -1], expected[:, -1]))
            (target / "torch.json").write_text(json.dumps({"onnxruntime_to_torch": far}))
        except Exception as problem:  # a model that the builder or ONNX Runtime cannot do is not ours to judge
            print(json.dumps({"model": str(target), "status": "peer", "why": f"{type(problem).__name__}: {problem}"[:300]}), flush=True)
    return made


def arguments():
    p = sweep.maker(__doc__)
    p.add_argument("models", nargs="*", metavar="MODEL")
    p.add_argument("--hidden", type=int, default=256)
    p.add_argument("--layers", type=int, default=2)
    return p.parse_intermixed_args()


def main():
    args = arguments()
    ort.set_default_logger_severity(4)
    known = configs(args)
    models = [target for name in args.models or known for target in make(args, name, known[name])]
    return sweep.made(args, [m / "model.onnx" for m in models if (m / "model.onnx").exists()])


if __name__ == "__main__":
    sys.exit(main())
