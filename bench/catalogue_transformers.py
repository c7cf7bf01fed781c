# SPDX-License-Identifier: Apache-2.0
"""Further architectures of transformers: a few layers, of usual widths where that is not too large."""
from catalogue_language import NARROW, language_model, pictures, samples, tokens

TEXT = {"num_hidden_layers": 4, "vocab_size": 8000}
CAUSAL = {"hidden_size": 768, "num_hidden_layers": 4, "num_attention_heads": 12, "num_key_value_heads": 4, "intermediate_size": 2048, "vocab_size": 8000, "head_dim": 64}
SMALL_CAUSAL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "head_dim": 16}
IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SEQ2SEQ = {"vocab_size": 8000, "d_model": 512, "encoder_layers": 3, "decoder_layers": 3, "encoder_attention_heads": 8, "decoder_attention_heads": 8, "encoder_ffn_dim": 2048,
           "decoder_ffn_dim": 2048, "decoder_start_token_id": 1, **IDS}
SMALL_SEQ2SEQ = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
NO_CACHE = {"use_cache": False}


def tensors(**made):
    """name -> function of (torch, batch, small)."""
    def make(batch, small):
        import torch
        return list(made), [function(torch, batch, small) for function in made.values()]
    return make


# ---- encoders of text ----
for name, cls, config, small, inputs in (
        ("funnel", "FunnelModel", ("FunnelConfig", {"block_sizes": [2, 2, 2], "vocab_size": 8000}),
         {"block_sizes": [1, 1], "d_model": 64, "n_head": 4, "d_head": 16, "d_inner": 128}, tokens(128)),
        ("longformer", "LongformerModel", ("LongformerConfig", {**TEXT, "attention_window": 64, **IDS}), {**NARROW, "attention_window": 8}, tokens(256)),
        ("bigbird", "BigBirdModel", ("BigBirdConfig", {**TEXT, "attention_type": "original_full"}), NARROW, tokens(128)),
        ("rembert", "RemBertModel", ("RemBertConfig", {**TEXT, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}), NARROW, tokens(128)),
        ("ernie", "ErnieModel", ("ErnieConfig", TEXT), NARROW, tokens(128)),
        ("nystromformer", "NystromformerModel", ("NystromformerConfig", {**TEXT, "segment_means_seq_len": 128, "max_position_embeddings": 130}),
         {**NARROW, "segment_means_seq_len": 24, "num_landmarks": 8}, tokens(128)),
        ("modernbert", "ModernBertModel", ("ModernBertConfig", TEXT), NARROW, tokens(128)),
        ("nomic_bert", "NomicBertModel", ("NomicBertConfig", TEXT), NARROW, tokens(128)),
        ("eurobert", "EuroBertModel", ("EuroBertConfig", {**TEXT, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}), NARROW, tokens(128)),
        ("esm", "EsmModel", ("EsmConfig", {"num_hidden_layers": 6, "vocab_size": 33, "hidden_size": 320, "num_attention_heads": 20, "intermediate_size": 1280,
                                           "pad_token_id": 1, "mask_token_id": 32, "position_embedding_type": "rotary"}), NARROW, tokens(128, 30)),
        ("ibert", "IBertModel", ("IBertConfig", TEXT), NARROW, tokens(128)),
        ("canine", "CanineModel", ("CanineConfig", {"num_hidden_layers": 4}), NARROW, tokens(256)),
        ("layoutlm", "LayoutLMModel", ("LayoutLMConfig", TEXT), NARROW,
         tensors(input_ids=lambda torch, b, s: torch.randint(0, 1000, (b, 24 if s else 128)), bbox=lambda torch, b, s: torch.randint(0, 500, (b, 24 if s else 128, 4)).sort(-1).values)),
        ("lilt", "LiltModel", ("LiltConfig", TEXT), NARROW,
         tensors(input_ids=lambda torch, b, s: torch.randint(3, 1000, (b, 24 if s else 128)), bbox=lambda torch, b, s: torch.randint(0, 500, (b, 24 if s else 128, 4)).sort(-1).values)),
        ("perceiver", "PerceiverModel", ("PerceiverConfig", {"num_latents": 128, "d_latents": 512, "d_model": 256, "num_blocks": 1, "num_self_attends_per_block": 4}),
         {"num_latents": 8, "d_latents": 64, "d_model": 32}, tensors(inputs=lambda torch, b, s: torch.rand(b, 64 if s else 512, 32 if s else 256)))):
    language_model(name, cls, config, small, inputs)

# ---- decoders of text ----
for name, cls, extra in (
        ("mistral", "Mistral", {"sliding_window": 64}), ("qwen3", "Qwen3", {}), ("gemma2", "Gemma2", {"sliding_window": 64}), ("gemma3", "Gemma3Text", {"sliding_window": 64}),
        ("phi3", "Phi3", IDS), ("olmo2", "Olmo2", {}), ("cohere", "Cohere", {}), ("glm", "Glm", {"pad_token_id": 0}), ("smollm3", "SmolLM3", IDS), ("granite", "Granite", {}),
        ("nemotron", "Nemotron", {}), ("helium", "Helium", {}), ("persimmon", "Persimmon", {}),
        ("mixtral", "Mixtral", {"num_local_experts": 4}), ("gpt_oss", "GptOss", {"num_local_experts": 4, "num_experts_per_tok": 2, "rope_scaling": None}),
        ("lfm2", "Lfm2", {"full_attn_idxs": [1, 3]})):
    language_model(name, f"{cls}Model", (f"{cls}Config", {**CAUSAL, **extra}), SMALL_CAUSAL, tokens(128), NO_CACHE)
language_model("codegen", "CodeGenModel", ("CodeGenConfig", {"n_embd": 1024, "n_layer": 4, "n_head": 16, "rotary_dim": 32, "vocab_size": 8000}),
               {"n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 8}, tokens(128), NO_CACHE)
language_model("gpt_bigcode", "GPTBigCodeModel", ("GPTBigCodeConfig", {"n_layer": 4, "vocab_size": 8000}), {"n_embd": 64, "n_layer": 2, "n_head": 4}, tokens(128), NO_CACHE)
language_model("xglm", "XGLMModel", ("XGLMConfig", {"vocab_size": 8000, "d_model": 768, "ffn_dim": 3072, "num_layers": 4, "attention_heads": 12}),
               {"d_model": 64, "ffn_dim": 128, "num_layers": 2, "attention_heads": 4}, tokens(128), NO_CACHE)
language_model("mamba2", "Mamba2Model", ("Mamba2Config", {"hidden_size": 512, "num_hidden_layers": 2, "num_heads": 16, "head_dim": 64, "vocab_size": 8000, "chunk_size": 32,
               "state_size": 64, "n_groups": 1}), {"hidden_size": 64, "num_heads": 4, "head_dim": 32, "state_size": 16, "chunk_size": 8}, tokens(64, mask=False), NO_CACHE)
language_model("rwkv", "RwkvModel", ("RwkvConfig", {"hidden_size": 512, "num_hidden_layers": 2, "vocab_size": 8000}), {"hidden_size": 64}, tokens(16, mask=False), NO_CACHE)
language_model("recurrent_gemma", "RecurrentGemmaModel", ("RecurrentGemmaConfig", {"hidden_size": 512, "num_hidden_layers": 3, "num_attention_heads": 8, "intermediate_size": 1536,
               "vocab_size": 8000, "lru_width": 512, "attention_window_size": 64}),
               {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "lru_width": 64}, tokens(32), NO_CACHE)

# ---- encoders and decoders ----
for name, cls in (("pegasus", "Pegasus"), ("marian", "Marian"), ("mbart", "MBart"), ("m2m_100", "M2M100"), ("blenderbot_small", "BlenderbotSmall"), ("led", "LED")):
    extra = {"attention_window": 64} if cls == "LED" else {}
    language_model(name, f"{cls}Model", (f"{cls}Config", {**SEQ2SEQ, **extra}), {**SMALL_SEQ2SEQ, **({"attention_window": 8} if extra else {})}, tokens(128, decoder=32), NO_CACHE)
language_model("trocr_decoder", "TrOCRForCausalLM", ("TrOCRConfig", {"vocab_size": 8000, "d_model": 512, "decoder_layers": 4, "decoder_attention_heads": 8, "decoder_ffn_dim": 2048,
               "is_decoder": True}), {"d_model": 64, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 128}, tokens(32, mask=False), NO_CACHE)

# ---- speech and sound ----
SPEECH = {"num_hidden_layers": 4}
for name, cls, config, small in (("unispeech_sat", "UniSpeechSatModel", "UniSpeechSatConfig", NARROW), ("data2vec_audio", "Data2VecAudioModel", "Data2VecAudioConfig", NARROW)):
    language_model(name, cls, (config, SPEECH), small, samples(48000, 8000))
language_model("wav2vec2_bert", "Wav2Vec2BertModel", ("Wav2Vec2BertConfig", {**SPEECH, "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 2048}), NARROW,
               tensors(input_features=lambda torch, b, s: torch.rand(b, 32 if s else 200, 160)))
language_model("encodec", "EncodecModel", ("EncodecConfig", {}), {}, samples(24000, 8000), kind="audio_values")
language_model("dac", "DacModel", ("DacConfig", {}), {"encoder_hidden_size": 16, "decoder_hidden_size": 256, "hidden_size": 256}, samples(16000, 8000), kind="audio_values")
language_model("univnet", "UnivNetModel", ("UnivNetConfig", {}), {"model_hidden_channels": 8}, tensors(
    input_features=lambda torch, b, s: torch.rand(b, 20 if s else 100, 100), noise_sequence=lambda torch, b, s: torch.rand(b, 20 if s else 100, 64)), kind="waveforms")
language_model("moonshine", "models.moonshine.modeling_moonshine.MoonshineEncoder", ("MoonshineConfig", {}),
               {"hidden_size": 64, "intermediate_size": 128, "encoder_num_hidden_layers": 2, "encoder_num_attention_heads": 4, "encoder_num_key_value_heads": 4}, samples(48000, 8000))
language_model("parakeet", "ParakeetEncoder", ("ParakeetEncoderConfig", {"num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 2048}), NARROW,
               tensors(input_features=lambda torch, b, s: torch.rand(b, 64 if s else 300, 80)))
language_model("speech2text", "models.speech_to_text.modeling_speech_to_text.Speech2TextEncoder", ("Speech2TextConfig", {**SEQ2SEQ}), SMALL_SEQ2SEQ,
               tensors(input_features=lambda torch, b, s: torch.rand(b, 64 if s else 400, 80)))
language_model("fastspeech2_conformer", "FastSpeech2ConformerModel", ("FastSpeech2ConformerConfig", {}), {"hidden_size": 64}, tokens(40, 70, mask=False), kind="spectrogram")

# ---- pictures ----
for name, cls, config, small, inputs in (
        ("dinov3", "DINOv3ViTModel", ("DINOv3ViTConfig", {"num_hidden_layers": 6}), {**NARROW, "image_size": 32, "patch_size": 8}, pictures(224, 32)),
        ("dinov3_convnext", "DINOv3ConvNextModel", ("DINOv3ConvNextConfig", {}), {}, pictures(224, 64)),
        ("ijepa", "IJepaModel", ("IJepaConfig", {"num_hidden_layers": 4}), {**NARROW, "image_size": 32, "patch_size": 8}, pictures(224, 32)),
        ("hf_hiera", "HieraModel", ("HieraConfig", {}), {}, pictures(224, 224)),
        ("pvt", "PvtModel", ("PvtConfig", {}), {}, pictures(224, 224)),
        ("cvt", "CvtModel", ("CvtConfig", {}), {}, pictures(224, 224)),
        ("focalnet_hf", "FocalNetModel", ("FocalNetConfig", {}), {}, pictures(224, 224)),
        ("swiftformer_hf", "SwiftFormerModel", ("SwiftFormerConfig", {}), {}, pictures(224, 224)),
        ("mobilenet_v1", "MobileNetV1Model", ("MobileNetV1Config", {}), {}, pictures(192, 64)),
        ("bit", "BitModel", ("BitConfig", {}), {}, pictures(224, 64)),
        ("poolformer_hf", "PoolFormerModel", ("PoolFormerConfig", {}), {}, pictures(224, 64)),
        ("textnet", "TextNetModel", ("TextNetConfig", {}), {}, pictures(320, 64)),
        ("vivit", "VivitModel", ("VivitConfig", {"num_hidden_layers": 2, "num_frames": 8}), {**NARROW, "image_size": 32, "tubelet_size": [2, 8, 8]},
         tensors(pixel_values=lambda torch, b, s: torch.rand(b, 8, 3, *2 * [32 if s else 224]))),
        ("swinv2_hf", "Swinv2Model", ("Swinv2Config", {}), {"embed_dim": 32, "depths": [2, 2], "num_heads": [2, 4], "image_size": 112}, pictures(224, 112)),
        ("efficientnet_hf", "EfficientNetModel", ("EfficientNetConfig", {"image_size": 224, "width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280}), {},
         pictures(224, 64)),
        ("upernet", "UperNetForSemanticSegmentation", ("UperNetConfig", {"use_auxiliary_head": False}), {"hidden_size": 64}, pictures(256, 128)),
        ("depth_anything", "DepthAnythingForDepthEstimation", ("DepthAnythingConfig", {}), {}, pictures(224, 112)),
        ("vitmatte", "VitMatteForImageMatting", ("VitMatteConfig", {}), {}, tensors(pixel_values=lambda torch, b, s: torch.rand(b, 4, *2 * [64 if s else 256]))),
        ("superpoint_encoder", "models.superpoint.modeling_superpoint.SuperPointEncoder", ("SuperPointConfig", {}), {},
         tensors(input=lambda torch, b, s: torch.rand(b, 1, *2 * [64 if s else 240]))),
        ("sam_vision", "SamVisionModel", ("SamVisionConfig", {"num_hidden_layers": 4, "global_attn_indexes": [1, 3], "image_size": 512}),
         {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "mlp_dim": 128, "image_size": 128, "global_attn_indexes": [1]}, pictures(512, 128)),
        ("mask2former", "Mask2FormerForUniversalSegmentation", ("Mask2FormerConfig", {"encoder_layers": 2, "decoder_layers": 3}), {}, pictures(256, 128)),
        ("maskformer", "MaskFormerForInstanceSegmentation", ("MaskFormerConfig", {}), {}, pictures(256, 128)),
        ("deformable_detr", "DeformableDetrForObjectDetection", ("DeformableDetrConfig", {"encoder_layers": 2, "decoder_layers": 2, "use_timm_backbone": False,
                                                                 "use_pretrained_backbone": False, "backbone": None,
                                                                 "backbone_config": {"model_type": "resnet", "out_features": ["stage2", "stage3", "stage4"]}}), {}, pictures(320, 128)),
        ("conditional_detr", "ConditionalDetrForObjectDetection", ("ConditionalDetrConfig", {"encoder_layers": 2, "decoder_layers": 2, "use_timm_backbone": False,
                                                                   "use_pretrained_backbone": False, "backbone": None,
                                                                   "backbone_config": {"model_type": "resnet", "out_features": ["stage4"]}}), {}, pictures(320, 128)),
        ("dab_detr", "DabDetrForObjectDetection", ("DabDetrConfig", {"encoder_layers": 2, "decoder_layers": 2, "use_timm_backbone": False, "use_pretrained_backbone": False,
                                                   "backbone": None, "backbone_config": {"model_type": "resnet", "out_features": ["stage4"]}}), {}, pictures(320, 128)),
        ("rt_detr", "RTDetrForObjectDetection", ("RTDetrConfig", {"decoder_layers": 2, "num_queries": 100}), {}, pictures(320, 128)),
        ("d_fine", "DFineForObjectDetection", ("DFineConfig", {"decoder_layers": 2, "num_queries": 100}), {}, pictures(320, 128))):
    language_model(name, cls, config, small, inputs)

# ---- pictures and text ----
language_model("clipseg", "CLIPSegForImageSegmentation", ("CLIPSegConfig", {"text_config": {"num_hidden_layers": 4, "vocab_size": 8000, "eos_token_id": 2},
               "vision_config": {"num_hidden_layers": 10, "hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536}}), {},
               tensors(input_ids=lambda torch, b, s: torch.randint(3, 1000, (b, 16)), pixel_values=lambda torch, b, s: torch.rand(b, 3, 224, 224)))
language_model("vilt", "ViltModel", ("ViltConfig", {**TEXT, "image_size": 224}), NARROW,
               tensors(input_ids=lambda torch, b, s: torch.randint(3, 1000, (b, 40)), pixel_values=lambda torch, b, s: torch.rand(b, 3, 224, 224)))
language_model("git", "GitModel", ("GitConfig", {**TEXT, "vision_config": {"num_hidden_layers": 4}}), NARROW,
               tensors(input_ids=lambda torch, b, s: torch.randint(3, 1000, (b, 20)), pixel_values=lambda torch, b, s: torch.rand(b, 3, 224, 224)), NO_CACHE)
language_model("layoutlmv3", "LayoutLMv3Model", ("LayoutLMv3Config", TEXT), NARROW,
               tensors(input_ids=lambda torch, b, s: torch.randint(3, 1000, (b, 64)), bbox=lambda torch, b, s: torch.randint(0, 500, (b, 64, 4)),
                       pixel_values=lambda torch, b, s: torch.rand(b, 3, 224, 224)))
language_model("owlv2", "Owlv2ForObjectDetection", ("Owlv2Config", {"text_config": {"num_hidden_layers": 2, "vocab_size": 8000}, "vision_config": {"num_hidden_layers": 4, "image_size": 256}}),
               {}, tensors(input_ids=lambda torch, b, s: torch.randint(3, 1000, (2 * b, 16)), pixel_values=lambda torch, b, s: torch.rand(b, 3, 256, 256)))

# ---- series ----
SERIES = {"prediction_length": 12, "context_length": 24, "lags_sequence": [1, 2, 3], "num_time_features": 2, "encoder_layers": 2, "decoder_layers": 2, "d_model": 64}
for name, cls in (("informer", "Informer"), ("autoformer", "Autoformer"), ("time_series_transformer", "TimeSeriesTransformer")):
    language_model(name, f"{cls}Model", (f"{cls}Config", SERIES), {}, tensors(
        past_values=lambda torch, b, s: torch.rand(b, 27), past_time_features=lambda torch, b, s: torch.rand(b, 27, 2),
        past_observed_mask=lambda torch, b, s: torch.ones(b, 27), future_values=lambda torch, b, s: torch.rand(b, 12),
        future_time_features=lambda torch, b, s: torch.rand(b, 12, 2)))
language_model("patchtsmixer", "PatchTSMixerModel", ("PatchTSMixerConfig", {"context_length": 512, "patch_length": 16, "patch_stride": 16, "num_input_channels": 7, "d_model": 48}), {},
               tensors(past_values=lambda torch, b, s: torch.rand(b, 512, 7)))
