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
for convolutional in ("regnet_y_400mf", "shufflenet_v2_x1_0", "vgg11_bn", "googlenet", "squeezenet1_1", "mnasnet1_0", "resnext50_32x4d", "efficientnet_v2_s"):
    torchvision_model(convolutional, **({"init_weights": False} if convolutional == "googlenet" else {}))
torchvision_model("inception_v3", size=299, small_size=96, init_weights=False)
torchvision_model("swin_v2_t", lambda m: m.swin_transformer.SwinTransformer(patch_size=[4, 4], embed_dim=32, depths=[2, 2], num_heads=[2, 4], window_size=[8, 8],
                  block=m.swin_transformer.SwinTransformerBlockV2, downsample_layer=m.swin_transformer.PatchMergingV2), small_size=128, size=256)
torchvision_model("maxvit_t", lambda m: m.MaxVit(input_size=(112, 112), stem_channels=32, partition_size=7, block_channels=[32, 64], block_layers=[1, 1], head_dim=16,
                  stochastic_depth_prob=0), small_size=112)
for timm_name in ("repvgg_a0", "ghostnet_100", "seresnet50", "hrnet_w18_small", "mobilevit_s", "edgenext_x_small", "poolformer_s12", "ecaresnet26t", "res2net50_14w_8s",
                  "cspdarknet53", "lambda_resnet26t", "resnest26d"):
    timm_model(timm_name)
timm_model("convnextv2_atto")
timm_model("levit_128", small_size=224)
timm_model("mixer_s32_224", small_size=224)
timm_model("coatnet_0_rw_224", small_size=224)
timm_model("beit_base_patch16_224", {"depth": 2, "embed_dim": 64, "num_heads": 4})
timm_model("cait_xxs24_224", {"depth": 2, "embed_dim": 64, "num_heads": 4})
timm_model("swinv2_tiny_window8_256", {"depths": (2, 2), "embed_dim": 32, "num_heads": (2, 4)}, size=256, small_size=128)
timm_model("pvt_v2_b0", small_size=224)


def torchvision_part(name, family, size, small_size, frames=None):
    """A network of torchvision.models' segmentation or video package."""
    def make(is_small, batch):
        import torch
        import torchvision

        class Out(torch.nn.Module):
            def __init__(self):
                super().__init__()
                options = {"weights_backbone": None} if family == "segmentation" else {}
                self.inner = getattr(getattr(torchvision.models, family), name)(weights=None, **options)

            def forward(self, x):
                result = self.inner(x)
                return result["out"] if isinstance(result, dict) else result

        side = small_size if is_small else size
        return Out(), (torch.rand(batch, 3, *([frames] if frames else []), side, side),)
    entry(name, "torchvision", True)(make)


for segmentation in ("deeplabv3_resnet50", "fcn_resnet50", "lraspp_mobilenet_v3_large"):
    torchvision_part(segmentation, "segmentation", 520, 96)
for video in ("r3d_18", "r2plus1d_18", "mc3_18"):
    torchvision_part(video, "video", 112, 32, frames=16)


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

language_model("albert", "AlbertModel", ("AlbertConfig", {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}), NARROW, tokens(128))
language_model("electra", "ElectraModel", ("ElectraConfig", {}), {**NARROW, "embedding_size": 32}, tokens(128))
language_model("xlnet", "XLNetModel", ("XLNetConfig", {"vocab_size": 8000, "d_model": 768, "n_layer": 12, "n_head": 12, "d_inner": 3072}),
               {"d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 128}, tokens(128))
language_model("xlm", "XLMModel", ("XLMConfig", {"vocab_size": 8000, "emb_dim": 768, "n_layers": 6, "n_heads": 12}), {"emb_dim": 64, "n_layers": 2, "n_heads": 4}, tokens(128))
language_model("swin2sr", "Swin2SRModel", ("Swin2SRConfig", {}), {"embed_dim": 60, "depths": [2, 2], "num_heads": [6, 6]}, pictures(64, 64))
language_model("xlm_roberta", "XLMRobertaModel", ("XLMRobertaConfig", {"vocab_size": 8000}), NARROW, tokens(128))
language_model("mpnet", "MPNetModel", ("MPNetConfig", {}), NARROW, tokens(128))
language_model("mobilebert", "MobileBertModel", ("MobileBertConfig", {}), {"num_hidden_layers": 2}, tokens(128))
language_model("squeezebert", "SqueezeBertModel", ("SqueezeBertConfig", {"embedding_size": 768}), {**NARROW, "embedding_size": 64}, tokens(128))
language_model("opt", "OPTModel", ("OPTConfig", {"vocab_size": 8000}),
               {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 128, "word_embed_proj_dim": 64}, tokens(256), {"use_cache": False})
language_model("gpt_neo", "GPTNeoModel", ("GPTNeoConfig", {"hidden_size": 768, "num_layers": 12, "num_heads": 12, "attention_types": [[["global", "local"], 6]], "vocab_size": 8000}),
               {"hidden_size": 64, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]}, tokens(256), {"use_cache": False})
language_model("phi", "PhiModel", ("PhiConfig", {"hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 8000}), NARROW,
               tokens(256), {"use_cache": False})
language_model("stablelm", "StableLmModel", ("StableLmConfig", LLAMA), {**NARROW, "num_key_value_heads": 2}, tokens(256), {"use_cache": False})
language_model("gemma", "GemmaModel", ("GemmaConfig", {"hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256,
               "intermediate_size": 4096, "vocab_size": 8000}), {**NARROW, "num_key_value_heads": 1, "head_dim": 32}, tokens(256), {"use_cache": False})
language_model("falcon", "FalconModel", ("FalconConfig", {"hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16, "vocab_size": 8000}),
               {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}, tokens(256), {"use_cache": False})
language_model("bart", "BartModel", ("BartConfig", {"vocab_size": 8000, "d_model": 768, "encoder_layers": 6, "decoder_layers": 6, "encoder_attention_heads": 12,
               "decoder_attention_heads": 12, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072}),
               {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128},
               tokens(128, decoder=64), {"use_cache": False})
language_model("mamba", "MambaModel", ("MambaConfig", {"hidden_size": 768, "num_hidden_layers": 2, "vocab_size": 8000}), {"hidden_size": 64}, tokens(24, mask=False), {"use_cache": False})
language_model("hubert", "HubertModel", ("HubertConfig", {}), NARROW, samples(80000, 8000))
language_model("wavlm", "WavLMModel", ("WavLMConfig", {}), NARROW, samples(80000, 8000))
language_model("ast", "ASTModel", ("ASTConfig", {}), {**NARROW, "max_length": 64}, lambda batch, small: (["input_values"], [__import__("torch").rand(batch, 64 if small else 1024, 128)]))
language_model("siglip", "SiglipVisionModel", ("SiglipVisionConfig", {}), {**NARROW, "image_size": 32, "patch_size": 8}, pictures(224, 32))
language_model("dinov2", "Dinov2Model", ("Dinov2Config", {"image_size": 224}), {**NARROW, "image_size": 56}, pictures(224, 56))
language_model("hf_beit", "BeitModel", ("BeitConfig", {}), {**NARROW, "image_size": 32, "patch_size": 8}, pictures(224, 32))
language_model("segformer", "SegformerForSemanticSegmentation", ("SegformerConfig", {}), {"hidden_sizes": [16, 32, 64, 64], "depths": [1, 1, 1, 1]}, pictures(512, 64))
language_model("yolos", "YolosModel", ("YolosConfig", {"image_size": [256, 256]}), {**NARROW, "image_size": [64, 64]}, pictures(256, 64))
language_model("videomae", "VideoMAEModel", ("VideoMAEConfig", {}), {**NARROW, "image_size": 32, "patch_size": 8, "num_frames": 4},
               lambda batch, small: (["pixel_values"], [__import__("torch").rand(batch, 4 if small else 16, 3, *2 * [32 if small else 224])]))


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


def recurrent(name, kind, width, layers, classes, bidirectional):
    """Tokens in, a class a token out."""
    def make(small, batch):
        import torch

        class Tagger(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.table = torch.nn.Embedding(1000, 16 if small else 128)
                self.inner = getattr(torch.nn, kind)(16 if small else 128, 24 if small else width, num_layers=layers, batch_first=True, bidirectional=bidirectional)
                self.head = torch.nn.Linear((24 if small else width) * (2 if bidirectional else 1), classes)

            def forward(self, ids):
                return self.head(self.inner(self.table(ids))[0])

        return Tagger(), (torch.randint(0, 1000, (batch, 6 if small else 64)),)
    entry(name)(make)


recurrent("gru_tagger", "GRU", 256, 2, 17, True)
recurrent("lstm_tagger", "LSTM", 256, 1, 17, True)


@entry("autoencoder")
def autoencoder(small, batch):
    from torch import nn
    widths = [64, 32, 8] if small else [784, 512, 256, 64, 12]
    both = widths + widths[-2::-1]
    import torch
    return nn.Sequential(*[k for a, b in zip(both, both[1:]) for k in (nn.Linear(a, b), nn.ReLU())][:-1], nn.Sigmoid()), (torch.rand(batch, widths[0]),)


@entry("convolutional_autoencoder", channels_last=True)
def convolutional_autoencoder(small, batch):
    from torch import nn
    a, b, c = (8, 16, 16) if small else (32, 64, 128)
    layers = [nn.Conv2d(3, a, 3, 2, 1), nn.ReLU(), nn.Conv2d(a, b, 3, 2, 1), nn.ReLU(), nn.Conv2d(b, c, 3, 2, 1), nn.ReLU(),
              nn.ConvTranspose2d(c, b, 3, 2, 1, 1), nn.ReLU(), nn.ConvTranspose2d(b, a, 3, 2, 1, 1), nn.ReLU(), nn.ConvTranspose2d(a, 3, 3, 2, 1, 1), nn.Sigmoid()]
    return nn.Sequential(*layers), image(batch, 32 if small else 128)


@entry("dcgan", channels_last=True)
def dcgan(small, batch):
    import torch
    from torch import nn
    n = 8 if small else 64
    widths = [100, 8 * n, 4 * n, 2 * n, n]
    layers = [k for i, (a, b) in enumerate(zip(widths, widths[1:]))
              for k in (nn.ConvTranspose2d(a, b, 4, 2 if i else 1, 1 if i else 0, bias=False), nn.BatchNorm2d(b), nn.ReLU())]
    return nn.Sequential(*layers, nn.ConvTranspose2d(n, 3, 4, 2, 1, bias=False), nn.Tanh()), (torch.randn(batch, 100, 1, 1),)


@entry("cbam_net", channels_last=True)
def cbam_net(small, batch):
    """Attention over channels, by mean and maximum, and over places."""
    import torch
    from torch import nn

    class Cbam(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.conv = nn.Sequential(nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c), nn.ReLU())
            self.mlp = nn.Sequential(nn.Conv2d(c, c // 8, 1, bias=False), nn.ReLU(), nn.Conv2d(c // 8, c, 1, bias=False))
            self.place = nn.Conv2d(2, 1, 7, padding=3, bias=False)

        def forward(self, x):
            y = self.conv(x)
            y = y * torch.sigmoid(self.mlp(nn.functional.adaptive_avg_pool2d(y, 1)) + self.mlp(nn.functional.adaptive_max_pool2d(y, 1)))
            y = y * torch.sigmoid(self.place(torch.cat([y.mean(1, keepdim=True), y.amax(1, keepdim=True)], 1)))
            return torch.relu(x + y)

    c = 16 if small else 64
    return nn.Sequential(nn.Conv2d(3, c, 7, 2, 3), nn.ReLU(), *[Cbam(c) for _ in range(2 if small else 6)], nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 10)), \
        image(batch, 32 if small else 224)


@entry("detector", channels_last=True)
def detector(small, batch):
    """A one-stage detector: CSP blocks, SPPF, a feature pyramid, a decoupled head over three scales, boxes decoded from distributions."""
    import torch
    from torch import nn
    w = 8 if small else 32

    def conv(a, b, k=3, s=1):
        return nn.Sequential(nn.Conv2d(a, b, k, s, k // 2, bias=False), nn.BatchNorm2d(b), nn.SiLU())

    class Block(nn.Module):
        def __init__(self, a, b, n, add=True):
            super().__init__()
            self.first, self.last, self.add = conv(a, b, 1), conv(b // 2 * (2 + n), b, 1), add
            self.steps = nn.ModuleList([nn.Sequential(conv(b // 2, b // 2), conv(b // 2, b // 2)) for _ in range(n)])

        def forward(self, x):
            parts = list(self.first(x).chunk(2, 1))
            for step in self.steps:
                parts.append(parts[-1] + step(parts[-1]) if self.add else step(parts[-1]))
            return self.last(torch.cat(parts, 1))

    class Pool(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.first, self.last, self.pool = conv(c, c // 2, 1), conv(2 * c, c, 1), nn.MaxPool2d(5, 1, 2)

        def forward(self, x):
            parts = [self.first(x)]
            for _ in range(3):
                parts.append(self.pool(parts[-1]))
            return self.last(torch.cat(parts, 1))

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(conv(3, w // 2, 3, 2), conv(w // 2, w, 3, 2), Block(w, w, 1))
            self.c3, self.c4 = nn.Sequential(conv(w, 2 * w, 3, 2), Block(2 * w, 2 * w, 2)), nn.Sequential(conv(2 * w, 4 * w, 3, 2), Block(4 * w, 4 * w, 2))
            self.c5 = nn.Sequential(conv(4 * w, 8 * w, 3, 2), Block(8 * w, 8 * w, 1), Pool(8 * w))
            self.up = nn.Upsample(scale_factor=2.0)
            self.n4, self.n3 = Block(12 * w, 4 * w, 1, False), Block(6 * w, 2 * w, 1, False)
            self.d4, self.d5 = conv(2 * w, 2 * w, 3, 2), conv(4 * w, 4 * w, 3, 2)
            self.m4, self.m5 = Block(6 * w, 4 * w, 1, False), Block(12 * w, 8 * w, 1, False)
            self.boxes = nn.ModuleList([nn.Sequential(conv(c, 64), conv(64, 64), nn.Conv2d(64, 64, 1)) for c in (2 * w, 4 * w, 8 * w)])
            self.classes = nn.ModuleList([nn.Sequential(conv(c, 2 * w), conv(2 * w, 2 * w), nn.Conv2d(2 * w, 80, 1)) for c in (2 * w, 4 * w, 8 * w)])
            self.register_buffer("steps", torch.arange(16.0).view(1, 16, 1, 1))

        def forward(self, x):
            p3 = self.c3(self.stem(x))
            p4 = self.c4(p3)
            p5 = self.c5(p4)
            p4 = self.n4(torch.cat([self.up(p5), p4], 1))
            p3 = self.n3(torch.cat([self.up(p4), p3], 1))
            p4 = self.m4(torch.cat([self.d4(p3), p4], 1))
            p5 = self.m5(torch.cat([self.d5(p4), p5], 1))
            levels = [torch.cat([box(p), kind(p)], 1).flatten(2) for box, kind, p in zip(self.boxes, self.classes, (p3, p4, p5))]
            box, kind = torch.cat(levels, 2).split((64, 80), 1)
            b, _, n = box.shape
            sides = (box.view(b, 4, 16, n).transpose(1, 2).softmax(1) * self.steps).sum(1)
            return torch.cat([sides, kind.sigmoid()], 1)

    return Detector(), image(batch, 64 if small else 640)


@entry("pyramid", channels_last=True)
def pyramid(small, batch):
    """A feature pyramid for segmentation: lateral 1 x 1 convolutions, nearest upsampling and sums, GroupNorm in the heads, bilinear at the end."""
    import torch
    from torch import nn
    w, out = (8, 16) if small else (64, 128)

    def down(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())

    class Pyramid(nn.Module):
        def __init__(self):
            super().__init__()
            sizes = [w, 2 * w, 4 * w, 8 * w]
            self.stem = down(3, w)
            self.down = nn.ModuleList([down(a, b) for a, b in zip([w, *sizes], sizes)])
            self.side = nn.ModuleList([nn.Conv2d(c, out, 1) for c in sizes])
            self.heads = nn.ModuleList([nn.Sequential(nn.Conv2d(out, out, 3, 1, 1), nn.GroupNorm(8, out), nn.ReLU()) for _ in sizes])
            self.last = nn.Conv2d(out, 19, 1)

        def forward(self, x):
            side = x.shape[-2:]
            x, found = self.stem(x), []
            for step in self.down:
                x = step(x)
                found.append(x)
            found = [lateral(f) for lateral, f in zip(self.side, found)]
            for i in (2, 1, 0):
                found[i] = found[i] + nn.functional.interpolate(found[i + 1], scale_factor=2.0, mode="nearest")
            heads = [nn.functional.interpolate(head(f), size=found[0].shape[-2:], mode="bilinear", align_corners=False) for head, f in zip(self.heads, found)]
            return nn.functional.interpolate(self.last(sum(heads)), size=side, mode="bilinear", align_corners=False)

    return Pyramid(), image(batch, 64 if small else 512)


@entry("denoiser", channels_last=True)
def denoiser(small, batch):
    """A diffusion model's U-Net: GroupNorm + SiLU in front of convolutions, a time embedding, attention with one head of all channels."""
    import torch
    from torch import nn
    w = 16 if small else 128

    class Residual(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.n1, self.c1, self.t = nn.GroupNorm(8, a), nn.Conv2d(a, b, 3, padding=1), nn.Linear(4 * w, b)
            self.n2, self.c2 = nn.GroupNorm(8, b), nn.Conv2d(b, b, 3, padding=1)
            self.skip = nn.Conv2d(a, b, 1) if a != b else nn.Identity()

        def forward(self, x, t):
            h = self.c1(nn.functional.silu(self.n1(x))) + self.t(nn.functional.silu(t))[:, :, None, None]
            return self.skip(x) + self.c2(nn.functional.silu(self.n2(h)))

    class Attend(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.norm, self.qkv, self.out = nn.GroupNorm(8, c), nn.Conv1d(c, 3 * c, 1), nn.Conv1d(c, c, 1)

        def forward(self, x):
            b, c, h, v = x.shape
            q, k, value = self.qkv(self.norm(x).reshape(b, c, h * v)).reshape(b * 4, 3 * c // 4, h * v).split(c // 4, 1)
            weights = torch.softmax(torch.einsum("bct,bcs->bts", q * (c // 4) ** -0.25, k * (c // 4) ** -0.25), -1)
            return x + self.out(torch.einsum("bts,bcs->bct", weights, value).reshape(b, c, h * v)).reshape(b, c, h, v)

    class Denoiser(nn.Module):
        def __init__(self):
            super().__init__()
            self.time = nn.Sequential(nn.Linear(w, 4 * w), nn.SiLU(), nn.Linear(4 * w, 4 * w))
            self.stem, self.r1, self.d1, self.r2, self.a2 = nn.Conv2d(3, w, 3, padding=1), Residual(w, w), nn.Conv2d(w, w, 3, 2, 1), Residual(w, 2 * w), Attend(2 * w)
            self.u1, self.r3, self.r4 = nn.Conv2d(2 * w, 2 * w, 3, padding=1), Residual(3 * w, w), Residual(2 * w, w)
            self.last = nn.Sequential(nn.GroupNorm(8, w), nn.SiLU(), nn.Conv2d(w, 3, 3, padding=1))
            self.register_buffer("rates", torch.exp(-9.2 * torch.arange(w // 2) / (w // 2)))

        def forward(self, x, step):
            angles = step[:, None] * self.rates[None]
            t = self.time(torch.cat([angles.cos(), angles.sin()], 1))
            a = self.stem(x)
            b = self.r1(a, t)
            y = self.a2(self.r2(self.d1(b), t))
            y = self.u1(nn.functional.interpolate(y, scale_factor=2.0, mode="nearest"))
            return self.last(self.r4(torch.cat([self.r3(torch.cat([y, b], 1), t), a], 1), t))

    side = 16 if small else 64
    return Denoiser(), (torch.rand(batch, 3, side, side), torch.full((batch,), 10.0))


@entry("style", channels_last=True)
def style(small, batch):
    """Reflection padding, InstanceNorm, residual blocks, nearest upsampling."""
    from torch import nn
    w = 8 if small else 32

    def conv(a, b, k, s=1):
        return [nn.ReflectionPad2d(k // 2), nn.Conv2d(a, b, k, s), nn.InstanceNorm2d(b, affine=True)]

    class Residual(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.inner = nn.Sequential(*conv(c, c, 3), nn.ReLU(), *conv(c, c, 3))

        def forward(self, x):
            return x + self.inner(x)

    up = [k for a, b in ((4 * w, 2 * w), (2 * w, w)) for k in (nn.Upsample(scale_factor=2.0), *conv(a, b, 3), nn.ReLU())]
    return nn.Sequential(*conv(3, w, 9), nn.ReLU(), *conv(w, 2 * w, 3, 2), nn.ReLU(), *conv(2 * w, 4 * w, 3, 2), nn.ReLU(), *[Residual(4 * w) for _ in range(1 if small else 5)],
                         *up, *conv(w, 3, 9)[:2]), image(batch, 32 if small else 256)


@entry("super_resolution", channels_last=True)
def super_resolution(small, batch):
    from torch import nn
    w = 16 if small else 64
    body = [k for _ in range(2 if small else 8) for k in (nn.Conv2d(w, w, 3, padding=1), nn.PReLU(w))]
    return nn.Sequential(nn.Conv2d(3, w, 5, padding=2), nn.PReLU(w), *body, nn.Conv2d(w, 48, 3, padding=1), nn.PixelShuffle(4)), image(batch, 16 if small else 128)


@entry("temporal")
def temporal(small, batch):
    """Dilated causal convolutions over time with gates (WaveNet's)."""
    import torch
    from torch import nn
    c, n, t = (16, 3, 64) if small else (64, 8, 4000)

    class Wave(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Conv1d(1, c, 1), nn.Sequential(nn.ReLU(), nn.Conv1d(c, c, 1), nn.ReLU(), nn.Conv1d(c, 64, 1))
            self.both = nn.ModuleList([nn.Conv1d(c, 2 * c, 2, dilation=2 ** i) for i in range(n)])
            self.out = nn.ModuleList([nn.Conv1d(c, 2 * c, 1) for _ in range(n)])

        def forward(self, x):
            x, kept = self.first(x), 0
            for i, (both, out) in enumerate(zip(self.both, self.out)):
                a, b = both(nn.functional.pad(x, (2 ** i, 0))).chunk(2, 1)
                skip, more = out(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
                x, kept = x + more, kept + skip
            return self.last(kept)

    return Wave(), (torch.rand(batch, 1, t),)


@entry("pointnet")
def pointnet(small, batch):
    import torch
    from torch import nn
    sizes = [3, 16, 32] if small else [3, 64, 128, 1024]

    class Points(nn.Module):
        def __init__(self):
            super().__init__()
            self.each = nn.Sequential(*[k for a, b in zip(sizes, sizes[1:]) for k in (nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())])
            self.all = nn.Sequential(nn.Linear(sizes[-1], 256), nn.ReLU(), nn.Linear(256, 40))

        def forward(self, x):
            return nn.functional.log_softmax(self.all(self.each(x).max(2)[0]), 1)

    return Points(), (torch.rand(batch, 3, 64 if small else 2048),)


@entry("fourier")
def fourier(small, batch):
    """A Fourier neural operator in one dimension, its transforms as products with the modes that are kept."""
    import math
    import torch
    from torch import nn
    n, c, modes = (32, 8, 6) if small else (1024, 64, 16)

    class Spectral(nn.Module):
        def __init__(self):
            super().__init__()
            self.real, self.imaginary, self.short = nn.Parameter(torch.randn(c, c, modes) / c), nn.Parameter(torch.randn(c, c, modes) / c), nn.Conv1d(c, c, 1)
            angle = 2 * math.pi * torch.arange(n)[:, None] * torch.arange(modes)[None] / n
            self.register_buffer("cos", angle.cos())
            self.register_buffer("sin", angle.sin())

        def forward(self, x):
            a, b = x @ self.cos, -(x @ self.sin)
            re = torch.einsum("bim,iom->bom", a, self.real) - torch.einsum("bim,iom->bom", b, self.imaginary)
            im = torch.einsum("bim,iom->bom", a, self.imaginary) + torch.einsum("bim,iom->bom", b, self.real)
            return nn.functional.gelu((re @ self.cos.T - im @ self.sin.T) / n + self.short(x))

    class Operator(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.layers, self.last = nn.Linear(2, c), nn.Sequential(*[Spectral() for _ in range(4)]), nn.Sequential(nn.Linear(c, 128), nn.GELU(), nn.Linear(128, 1))

        def forward(self, x):
            return self.last(self.layers(self.first(x).transpose(1, 2)).transpose(1, 2))

    return Operator(), (torch.rand(batch, n, 2),)


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
