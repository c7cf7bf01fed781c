#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models as users export them: from torchvision, timm, transformers and PyTorch itself, by both of PyTorch's exporters, with random weights.

    exports.py DIR [--only NAME ...] [--exporters dynamo script] [--sizes small full] [--batches 1 32] [--half]

writes DIR/NAME.SIZE.bBATCH.EXPORTER.onnx (half precision: NAME.SIZE.bBATCH.EXPORTER.half.onnx), beside each the inputs and the outputs of PyTorch in float32
as .npz. "dynamo" is torch.export's way, "script" the TorchScript exporter. small: the same layers, fewer and narrower, for checks that take seconds.
Models of packages that are not installed are left out, and said so.
"""
import argparse
import importlib
import importlib.util
import logging
import multiprocessing
import os
import time
import warnings
from pathlib import Path

EXPORTERS = {"dynamo": {"dynamo": True, "external_data": False, "verbose": False}, "script": {"dynamo": False, "opset_version": 18}}
LARGE_BATCH = 32

# name -> (package, channels_last, function of (small, batch) that makes the module and its inputs)
CATALOGUE = {}


def entry(name, package="torch", channels_last=False):
    def add(function):
        CATALOGUE[name] = (package, channels_last, function)
        return function
    return add


# ---- torchvision, timm ----

def image(batch, size):
    import torch
    return (torch.rand(batch, 3, size, size),)


def torchvision_model(name, small=None, size=224, small_size=64, **options):
    """`small`: the smaller module's constructor; without one the full one is given a smaller picture."""
    def make(is_small, batch):
        import torchvision
        module = small(torchvision.models) if is_small and small else torchvision.models.get_model(name, weights=None, **options)
        return module, image(batch, small_size if is_small else size)
    entry(name, "torchvision", True)(make)


def timm_model(name, small=None, size=224, small_size=64):
    def make(is_small, batch):
        import timm
        side = small_size if is_small else size
        options = {**small, "img_size": side} if is_small and small else {}
        return timm.create_model(name, pretrained=False, **options), image(batch, side)
    entry(f"timm_{name}", "timm", True)(make)


torchvision_model("vit_b_16", lambda m: m.VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128), small_size=32)
torchvision_model("swin_t", lambda m: m.SwinTransformer(patch_size=[4, 4], embed_dim=32, depths=[2, 2], num_heads=[2, 4], window_size=[7, 7]), small_size=112)
torchvision_model("convnext_tiny", small_size=64)
torchvision_model("resnet50")
torchvision_model("efficientnet_b0")
torchvision_model("mobilenet_v3_large")
torchvision_model("densenet121")
torchvision_model("squeezenet1_1")
timm_model("vit_base_patch16_224", {"depth": 2, "embed_dim": 64, "num_heads": 4})
timm_model("deit_small_patch16_224", {"depth": 2, "embed_dim": 64, "num_heads": 4})
timm_model("swin_tiny_patch4_window7_224", {"depths": (2, 2), "embed_dim": 32, "num_heads": (2, 4)}, small_size=112)
timm_model("eva02_tiny_patch14_224", {"depth": 2}, small_size=56)


# ---- transformers ----

def language_model(name, cls, config, small, inputs, call=None, kind="last_hidden_state"):
    """inputs: function of (batch, small) that gives names and tensors of forward's arguments."""
    def make(is_small, batch):
        import torch
        import transformers

        class Named(torch.nn.Module):
            """Arguments by position, and one tensor as the result."""

            def __init__(self, inner, names):
                super().__init__()
                self.inner, self.names = inner, names

            def forward(self, *tensors):
                result = self.inner(**dict(zip(self.names, tensors)), **(call or {}), return_dict=True)
                for key in (kind, "logits", "last_hidden_state"):
                    if getattr(result, key, None) is not None:
                        return getattr(result, key)
                return result[0]

        settings = getattr(transformers, config[0])(**{**config[1], **(small if is_small else {})})
        module = transformers
        for part in cls.split("."):
            module = getattr(module, part)
        settings._attn_implementation = "sdpa" if getattr(module, "_supports_sdpa", False) else "eager"
        names, tensors = inputs(batch, is_small)
        return Named(module(settings), names), tuple(tensors)
    entry(name, "transformers")(make)


def tokens(length, vocabulary=1000, mask=True, decoder=None):
    def make(batch, small):
        import torch
        n = min(length, 24) if small else length
        names, tensors = ["input_ids"], [torch.randint(0, vocabulary, (batch, n))]
        if mask:
            kept = torch.ones(batch, n, dtype=torch.long)
            kept[-1, n - n // 4:] = 0
            names.append("attention_mask")
            tensors.append(kept)
        if decoder:
            names.append("decoder_input_ids")
            tensors.append(torch.randint(0, vocabulary, (batch, min(decoder, 12) if small else decoder)))
        return names, tensors
    return make


def samples(n, small_n):
    def make(batch, small):
        import torch
        return ["input_values"], [torch.rand(batch, small_n if small else n)]
    return make


def pictures(size, small_size, names=("pixel_values",)):
    def make(batch, small):
        import torch
        return list(names), [torch.rand(batch, 3, *2 * [small_size if small else size])]
    return make


NARROW = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
T5 = {"d_model": 64, "d_ff": 128, "d_kv": 16, "num_heads": 4, "num_layers": 2}
WHISPER = {"d_model": 512, "encoder_layers": 6, "encoder_attention_heads": 8, "encoder_ffn_dim": 2048, "decoder_layers": 6, "decoder_attention_heads": 8,
           "decoder_ffn_dim": 2048}
SMALL_WHISPER = {"d_model": 64, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_layers": 2,
                 "decoder_attention_heads": 4, "decoder_ffn_dim": 128, "max_source_positions": 50}
LLAMA = {"hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 2816, "vocab_size": 8000}

language_model("bert", "BertModel", ("BertConfig", {}), NARROW, tokens(128))
language_model("bert_nomask", "BertModel", ("BertConfig", {}), NARROW, tokens(128, mask=False))
language_model("distilbert", "DistilBertModel", ("DistilBertConfig", {}), {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128}, tokens(128))
language_model("roberta", "RobertaModel", ("RobertaConfig", {}), NARROW, tokens(128))
language_model("deberta", "DebertaV2Model", ("DebertaV2Config", {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
               "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 256, "share_att_key": True, "norm_rel_ebd": "layer_norm"}), NARROW,
               tokens(128))
language_model("gpt2", "GPT2LMHeadModel", ("GPT2Config", {"vocab_size": 8000}), {"n_embd": 64, "n_layer": 2, "n_head": 4}, tokens(512, mask=False), {"use_cache": False})
language_model("gpt2_masked", "GPT2LMHeadModel", ("GPT2Config", {"vocab_size": 8000}), {"n_embd": 64, "n_layer": 2, "n_head": 4}, tokens(128), {"use_cache": False})
language_model("llama", "LlamaForCausalLM", ("LlamaConfig", LLAMA), {**NARROW, "num_key_value_heads": 2}, tokens(256, mask=False), {"use_cache": False})
language_model("llama_masked", "LlamaForCausalLM", ("LlamaConfig", LLAMA), {**NARROW, "num_key_value_heads": 2}, tokens(256), {"use_cache": False})
language_model("qwen2", "Qwen2ForCausalLM", ("Qwen2Config", LLAMA), {**NARROW, "num_key_value_heads": 2}, tokens(256, mask=False), {"use_cache": False})
language_model("bloom", "BloomModel", ("BloomConfig", {"hidden_size": 1024, "n_layer": 4, "n_head": 16, "vocab_size": 8000}),
               {"hidden_size": 64, "n_layer": 2, "n_head": 4}, tokens(128), {"use_cache": False})
language_model("mpt", "MptModel", ("MptConfig", {"d_model": 1024, "n_layers": 4, "n_heads": 16, "vocab_size": 8000}), {"d_model": 64, "n_layers": 2, "n_heads": 4},
               tokens(128), {"use_cache": False})
language_model("gpt_neox", "GPTNeoXModel", ("GPTNeoXConfig", {"hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16, "intermediate_size": 4096,
               "vocab_size": 8000}), NARROW, tokens(128), {"use_cache": False})
language_model("gptj", "GPTJModel", ("GPTJConfig", {"n_embd": 1024, "n_layer": 4, "n_head": 16, "rotary_dim": 32, "vocab_size": 8000}),
               {"n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 8}, tokens(128, mask=False), {"use_cache": False})
language_model("t5", "T5Model", ("T5Config", {"vocab_size": 8000}), T5, tokens(128, decoder=32), {"use_cache": False})
language_model("t5_encoder", "T5EncoderModel", ("T5Config", {"vocab_size": 8000}), T5, tokens(128))
language_model("whisper_encoder", "models.whisper.modeling_whisper.WhisperEncoder", ("WhisperConfig", WHISPER), SMALL_WHISPER,
               lambda batch, small: (["input_features"], [__import__("torch").rand(batch, 80, 100 if small else 3000)]))
language_model("whisper", "WhisperModel", ("WhisperConfig", {**WHISPER, "vocab_size": 8000, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}),
               SMALL_WHISPER, lambda batch, small: (["input_features", "decoder_input_ids"], [__import__("torch").rand(batch, 80, 100 if small else 3000),
                                                    __import__("torch").randint(0, 1000, (batch, 8 if small else 64))]), {"use_cache": False})
language_model("wav2vec2", "Wav2Vec2Model", ("Wav2Vec2Config", {}), NARROW, samples(80000, 8000))
language_model("hf_vit", "ViTModel", ("ViTConfig", {}), {**NARROW, "image_size": 32, "patch_size": 8}, pictures(224, 32))
language_model("hf_swin", "SwinModel", ("SwinConfig", {}), {"embed_dim": 32, "depths": [2, 2], "num_heads": [2, 4], "image_size": 112}, pictures(224, 112))
language_model("clip", "CLIPModel", ("CLIPConfig", {}), {"text_config": {**NARROW, "vocab_size": 1000, "eos_token_id": 2}, "projection_dim": 32,
               "vision_config": {**NARROW, "image_size": 32, "patch_size": 8}},
               lambda batch, small: (["input_ids", "pixel_values", "attention_mask"], [*tokens(77, mask=False)(batch, small)[1], *pictures(224, 32)(batch, small)[1],
                                                                                       *tokens(77)(batch, small)[1][1:]]), kind="logits_per_image")
language_model("detr", "DetrModel", ("DetrConfig", {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None,
               "backbone_config": {"model_type": "resnet", "out_features": ["stage4"]}}),
               {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128,
                "decoder_ffn_dim": 128, "num_queries": 10}, pictures(512, 64))


# ---- decoding with a past ----

@entry("gpt2_past", "transformers")
def gpt2_past(small, batch):
    import torch
    import transformers
    layers, heads, width, past = (2, 4, 64, 8) if small else (12, 12, 768, 511)

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            settings = transformers.GPT2Config(n_layer=layers, n_head=heads, n_embd=width, vocab_size=8000)
            settings._attn_implementation = "sdpa"
            self.inner = transformers.GPT2LMHeadModel(settings)

        def forward(self, ids, *cache):
            pairs = [(cache[2 * i], cache[2 * i + 1]) for i in range(layers)]
            held = transformers.DynamicCache(pairs) if hasattr(transformers.DynamicCache, "is_initialized") else transformers.DynamicCache.from_legacy_cache(pairs)
            return self.inner(input_ids=ids, past_key_values=held, use_cache=True, return_dict=True).logits

    return Step(), (torch.randint(0, 1000, (batch, 1)), *(torch.rand(batch, heads, past, width // heads) for _ in range(2 * layers)))


# ---- PyTorch itself ----

@entry("torch_encoder")
def torch_encoder(small, batch):
    import torch
    width, heads, layers, length = (64, 4, 2, 12) if small else (512, 8, 6, 128)
    layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), (torch.rand(batch, length, width),)


@entry("torch_decoder")
def torch_decoder(small, batch):
    """Sequence first, causal, with cross attention."""
    import torch
    width, heads, layers, length = (64, 4, 2, 12) if small else (512, 8, 6, 128)

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(width, heads, 4 * width), layers)

        def forward(self, x, memory):
            hidden = torch.nn.Transformer.generate_square_subsequent_mask(x.shape[0])
            return self.inner(x, memory, tgt_mask=hidden, tgt_is_causal=True)

    return Decoder(), (torch.rand(length, batch, width), torch.rand(2 * length, batch, width))


@entry("lstm")
def lstm(small, batch):
    import torch

    class Recurrent(torch.nn.Module):
        def __init__(self, *sizes):
            super().__init__()
            self.inner = torch.nn.LSTM(*sizes, num_layers=2, batch_first=True)

        def forward(self, x):
            return self.inner(x)[0]

    return (Recurrent(16, 32), (torch.rand(batch, 6, 16),)) if small else (Recurrent(256, 512), (torch.rand(batch, 128, 256),))


@entry("dlrm")
def dlrm(small, batch):
    import torch
    tables, rows, width = (4, 100, 16) if small else (26, 100000, 64)

    def layers(*sizes):
        return torch.nn.Sequential(*[k for a, b in zip(sizes, sizes[1:]) for k in (torch.nn.Linear(a, b), torch.nn.ReLU())])

    class Ranking(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = torch.nn.ModuleList([torch.nn.Embedding(rows, width) for _ in range(tables)])
            self.bottom, self.top = layers(13, 256, width), layers(width + (tables + 1) * tables // 2, 256, 1)
            i, j = torch.tril_indices(tables + 1, tables + 1, -1)
            self.register_buffer("pairs", i * (tables + 1) + j)

        def forward(self, dense, sparse):
            v = torch.stack([self.bottom(dense)] + [table(sparse[:, k]) for k, table in enumerate(self.tables)], 1)
            z = torch.bmm(v, v.transpose(1, 2)).flatten(1).index_select(1, self.pairs)
            return self.top(torch.cat([v[:, 0], z], 1))

    return Ranking(), (torch.rand(batch, 13), torch.randint(0, rows, (batch, tables)))


@entry("unet", channels_last=True)
def unet(small, batch):
    import torch
    from torch import nn
    widths = [8, 16, 32] if small else [32, 64, 128, 256]

    def block(a, b):
        return nn.Sequential(*[k for i, o in ((a, b), (b, b)) for k in (nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())])

    class Unet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([block(a, b) for a, b in zip([3, *widths], widths)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(widths, widths[1:])][::-1])
            self.join = nn.ModuleList([block(2 * a, a) for a in widths[:-1]][::-1])
            self.last = nn.Conv2d(widths[0], 2, 1)

        def forward(self, x):
            kept = []
            for i, down in enumerate(self.down):
                x = down(x if i == 0 else nn.functional.max_pool2d(x, 2))
                kept.append(x)
            for up, join, skip in zip(self.up, self.join, kept[-2::-1]):
                x = join(torch.cat([up(x), skip], 1))
            return self.last(x)

    return Unet(), image(batch, 32 if small else 256)


# ---- making and exporting ----

def installed(package):
    return importlib.util.find_spec(package) is not None


def names():
    return [name for name, (package, _, _) in CATALOGUE.items() if installed(package)]


def make(name, size="full", batch=1):
    """The module, its inputs, and whether it is at its best with channels last. Weights that start as zeros get values, and batch norms the statistics of the
    inputs: the results of random networks are then neither zero nor out of float16's range."""
    import torch
    torch.manual_seed(0)
    _, channels_last, function = CATALOGUE[name]
    module, inputs = function(size == "small", batch)
    module.eval()
    norms = [m for m in module.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    with torch.no_grad():
        for weight in module.parameters():
            if weight.dim() > 1 and not weight.any():
                torch.nn.init.normal_(weight, std=0.02)
        for norm in norms:
            norm.momentum = None
            norm.reset_running_stats()
            norm.train()
        try:
            if norms:
                module(*inputs)
        except ValueError:  # one value a channel has no statistics
            for norm in norms:
                norm.reset_running_stats()
    return module.eval(), inputs, channels_last


def file_name(name, size, batch, exporter, half):
    return f"{name}.{size}.b{batch}.{exporter}{'.half' if half else ''}.onnx"


def export(directory, name, size, batch, exporter, half):
    """Writes the model, and its inputs and outputs beside it. Returns the path."""
    import numpy as np
    import torch
    path = Path(directory) / file_name(name, size, batch, exporter, half)
    module, inputs, _ = make(name, size, batch)
    with torch.inference_mode():
        result = module(*inputs)
    outputs = result if isinstance(result, (tuple, list)) else (result,)
    arrays = {f"in{k}": x.numpy() for k, x in enumerate(inputs)} | {f"out{k}": x.numpy() for k, x in enumerate(outputs)}
    np.savez(path.with_suffix(".npz"), **arrays)
    if half:
        module, inputs = module.half(), tuple(x.half() if x.is_floating_point() else x for x in inputs)
    torch.backends.mha.set_fastpath_enabled(False)  # one op that the TorchScript exporter does not know
    with torch.no_grad():
        torch.onnx.export(module, inputs, str(path), input_names=[f"in{k}" for k in range(len(inputs))], output_names=[f"out{k}" for k in range(len(outputs))],
                          **EXPORTERS[exporter])
    return path


def export_quietly(path, what):
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    shown = os.dup(1)
    with open(os.devnull, "w") as null:
        os.dup2(null.fileno(), 1)  # the exporters' own text, PyTorch's C++ included
        os.dup2(null.fileno(), 2)
    try:
        export(path.parent, *what)
        return
    except Exception as error:
        path.unlink(missing_ok=True)
        os.dup2(shown, 1)
        print(f"{path.name}: not exported: {type(error).__name__}: {' '.join(str(error).split())[:300]}", flush=True)
    os._exit(1)


def export_apart(directory, *what):
    """In a child of its own, as exporters keep memory and change modules; packages are imported once, before. The path; None if it failed, with the reason printed."""
    import onnxscript  # noqa: F401
    import torch  # noqa: F401
    if CATALOGUE[what[0]][0] != "torch":
        importlib.import_module(CATALOGUE[what[0]][0])
    path = Path(directory) / file_name(*what)
    if not path.exists() or not path.with_suffix(".npz").exists():
        child = multiprocessing.get_context("fork").Process(target=export_quietly, args=(path, what))
        child.start()
        child.join()
        if child.exitcode:
            path.unlink(missing_ok=True)
    return path if path.exists() else None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("directory", type=Path)
    p.add_argument("--only", nargs="+", default=names(), choices=list(CATALOGUE), metavar="NAME")
    p.add_argument("--exporters", nargs="+", default=list(EXPORTERS), choices=list(EXPORTERS))
    p.add_argument("--sizes", nargs="+", default=["small", "full"], choices=["small", "full"])
    p.add_argument("--batches", nargs="+", type=int, default=[1])
    p.add_argument("--half", action="store_true", help="in half precision")
    args = p.parse_args()
    args.directory.mkdir(parents=True, exist_ok=True)
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    for missing in sorted({package for package, _, _ in CATALOGUE.values() if not installed(package)}):
        print(f"{missing} is not installed: its models are left out")
    for size in args.sizes:
        for name in args.only:
            for batch in args.batches:
                for exporter in args.exporters:
                    start = time.monotonic()
                    path = export_apart(args.directory, name, size, batch, exporter, args.half)
                    if path:
                        print(f"{path.name}: {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
