# SPDX-License-Identifier: Apache-2.0
"""Models of transformers, and one step of decoding with a past."""
from catalogue import entry


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
