# SPDX-License-Identifier: Apache-2.0
"""Families of transformers that were drawn to judge the passes by: experts, state spaces, memories, towers of speech and pictures, detectors, codecs."""
from catalogue_further import BATCHED, LATENT
from catalogue_language import NARROW, language_model, pictures, tokens
from catalogue_multimodal import SMALL_VISION, VISION
from catalogue_transformers import CAUSAL, IDS, NO_CACHE, SEQ2SEQ, SMALL_CAUSAL, SMALL_SEQ2SEQ, TEXT, tensors

EXPERTS = {**BATCHED, "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 256, "n_group": 1, "topk_group": 1}

# ---- decoders of text ----
for name, cls, extra, small in (
        ("afmoe", "Afmoe", {**EXPERTS, "num_dense_layers": 1, "sliding_window": 64}, {}),
        ("glm4_moe", "Glm4Moe", {**EXPERTS, "first_k_dense_replace": 1}, {}), ("flex_olmo", "FlexOlmo", {**EXPERTS, **IDS}, {}), ("minimax_m2", "MiniMaxM2", EXPERTS, {}),
        ("solar_open", "SolarOpen", EXPERTS, {}), ("granitemoehybrid", "GraniteMoeHybrid", {**EXPERTS, "layer_types": ["mamba", "attention"] * 2, "mamba_n_heads": 24, "mamba_d_head": 64,
                                                                                        "mamba_chunk_size": 32}, {"mamba_n_heads": 8, "mamba_d_head": 16, "layer_types": ["mamba", "attention"]}),
        ("qwen3_5_text", "Qwen3_5Text", {"linear_num_key_heads": 4, "linear_num_value_heads": 4, "linear_key_head_dim": 32, "linear_value_head_dim": 32,
                                         "layer_types": ["linear_attention", "full_attention"] * 2}, {"layer_types": ["linear_attention", "full_attention"]}),
        ("longcat_flash", "LongcatFlash", {**LATENT, "num_layers": 2, "ffn_hidden_size": 512, "expert_ffn_hidden_size": 256, "zero_expert_num": 2, "moe_topk": 2}, {"num_key_value_heads": 4}),
        ("deepseek_v32", "DeepseekV32", LATENT, {"num_key_value_heads": 4}), ("mimo_v2_flash", "MiMoV2Flash", {**EXPERTS, "sliding_window": 64}, {}),
        ("hrm_text", "HrmText", {}, {}),
        ("xlstm", "xLSTM", {"num_blocks": 4, "num_heads": 4, "chunk_size": 32, "mode": "inference"}, {"num_blocks": 2}), ("jais2", "Jais2", {}, {}), ("youtu", "Youtu", LATENT, {"num_key_value_heads": 4}),
        ("cwm", "Cwm", {"sliding_window": 64}, {}), ("exaone_moe", "ExaoneMoe", {**EXPERTS, "sliding_window": 64, "first_k_dense_replace": 1}, {}), ("ministral3", "Ministral3", {}, {}),
        ("gpt_neox_japanese", "GPTNeoXJapanese", {"intermediate_multiple_size": 4, **IDS}, {}), ("qwen2_vl_text", "Qwen2VLText", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [8, 12, 12]}}, {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 3, 3]}}), ("qwen3_vl_text", "Qwen3VLText", {}, {})):
    language_model(name, f"{cls}Model", (f"{cls}Config", {**CAUSAL, **extra}), {**SMALL_CAUSAL, **small}, tokens(77), NO_CACHE)
language_model("reformer", "ReformerModel", ("ReformerConfig", {"attn_layers": ["local", "lsh"], "vocab_size": 8000, "is_decoder": False, "num_buckets": 8, "axial_pos_shape": [16, 16],
               "hash_seed": 0, "max_position_embeddings": 256}), {}, tokens(256))
language_model("pegasus_x", "PegasusXModel", ("PegasusXConfig", {**SEQ2SEQ, "block_size": 32, "num_global_tokens": 16}), SMALL_SEQ2SEQ, tokens(77, decoder=16), NO_CACHE)
language_model("fsmt", "FSMTModel", ("FSMTConfig", {**SEQ2SEQ, "langs": ["en", "de"], "src_vocab_size": 8000, "tgt_vocab_size": 8000}), SMALL_SEQ2SEQ, tokens(77, decoder=16), NO_CACHE)
language_model("visual_bert", "VisualBertModel", ("VisualBertConfig", TEXT), NARROW, tokens(77))
language_model("xlm_roberta_xl", "XLMRobertaXLModel", ("XLMRobertaXLConfig", {**TEXT, "hidden_size": 768, "num_attention_heads": 24, "intermediate_size": 3072}), NARROW, tokens(333))
language_model("clip_text", "CLIPTextModel", ("CLIPTextConfig", {**TEXT, **IDS}), NARROW, tokens(77, mask=False))

# ---- pictures ----
for name, cls, config, small, inputs in (
        ("siglip2_vision", "Siglip2VisionModel", ("Siglip2VisionConfig", {**VISION, "num_patches": 256}), NARROW, tensors(
            pixel_values=lambda torch, b, s: torch.rand(b, 256, 768), pixel_attention_mask=lambda torch, b, s: torch.ones(b, 256, dtype=torch.long), spatial_shapes=lambda torch, b, s: torch.tensor([[16, 16]] * b))),
        ("idefics3_vision", "models.idefics3.modeling_idefics3.Idefics3VisionTransformer", ("Idefics3VisionConfig", {**VISION, "image_size": 224, "patch_size": 14}), SMALL_VISION, pictures(224, 32)),
        ("mllama_vision", "MllamaVisionModel", ("MllamaVisionConfig", {"hidden_size": 384, "attention_heads": 6, "num_hidden_layers": 4, "num_global_layers": 2, "image_size": 112, "intermediate_size": 1536,
                                                                     "intermediate_layers_indices": [1, 2], "vision_output_dim": 1152}), {}, tensors(
            pixel_values=lambda torch, b, s: torch.rand(b, 1, 4, 3, 112, 112), aspect_ratio_ids=lambda torch, b, s: torch.ones(b, 1, dtype=torch.long),
            aspect_ratio_mask=lambda torch, b, s: torch.ones(b, 1, 4, dtype=torch.long))),
        ("radio", "RadioModel", ("RadioConfig", VISION), {}, pictures(224, 224)),
        ("sam_hq_vision", "SamHQVisionModel", ("SamHQVisionConfig", {**VISION, "image_size": 256, "window_size": 7, "global_attn_indexes": [1, 3], "mlp_dim": 1536}), {}, pictures(256, 256)),
        ("seggpt", "SegGptModel", ("SegGptConfig", {**VISION, "image_size": [112, 56], "intermediate_hidden_state_indices": [1, 2, 3], "merge_index": 1, "mlp_dim": 1536}), {}, tensors(
            pixel_values=lambda torch, b, s: torch.rand(b, 3, 56, 56), prompt_pixel_values=lambda torch, b, s: torch.rand(b, 3, 56, 56), prompt_masks=lambda torch, b, s: torch.rand(b, 3, 56, 56))),
        ("maskformer_swin", "MaskFormerSwinModel", ("MaskFormerSwinConfig", {}), {}, pictures(197, 197))):
    language_model(name, cls, config, small, inputs)

# ---- speech and sound ----
for name, cls, config, small, inputs in (
        ("qwen2_audio", "Qwen2AudioEncoder", ("Qwen2AudioEncoderConfig", {"encoder_layers": 4, "d_model": 512, "encoder_attention_heads": 8, "encoder_ffn_dim": 2048, "max_source_positions": 500}), {"d_model": 64},
         tensors(input_features=lambda torch, b, s: torch.rand(b, 128, 1000))),
        ("seamless_speech_v2", "models.seamless_m4t_v2.modeling_seamless_m4t_v2.SeamlessM4Tv2SpeechEncoder", ("SeamlessM4Tv2Config", {
            "hidden_size": 256, "speech_encoder_layers": 2, "speech_encoder_attention_heads": 4, "speech_encoder_intermediate_size": 1024}), {}, tensors(input_features=lambda torch, b, s: torch.rand(b, 77, 160))),
        ("speecht5_vocoder", "SpeechT5HifiGan", ("SpeechT5HifiGanConfig", {"upsample_initial_channel": 256}), {"upsample_initial_channel": 64}, tensors(spectrogram=lambda torch, b, s: torch.rand(b, 77, 80))),
        ("xcodec", "XcodecModel", ("XcodecConfig", {}), {}, tensors(input_values=lambda torch, b, s: torch.rand(b, 1, 16000))),
        ("granite_speech", "models.granite_speech.modeling_granite_speech.GraniteSpeechCTCEncoder", ("GraniteSpeechEncoderConfig", {"num_layers": 4, "hidden_dim": 512, "context_size": 100}), {},
         tensors(hidden_states=lambda torch, b, s: torch.rand(b, 333, 160))),
        ("timesfm2_5", "TimesFm2_5Model", ("TimesFm2_5Config", {"num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 512}), {},
         tensors(past_values=lambda torch, b, s: torch.rand(b, 512), past_values_padding=lambda torch, b, s: torch.zeros(b, 512, dtype=torch.long))),
        ("lasr", "LasrEncoder", ("LasrEncoderConfig", {"num_hidden_layers": 4}), {}, tensors(input_features=lambda torch, b, s: torch.rand(b, 333, 128))),
        ("parakeet_ctc", "ParakeetForCTC", ("ParakeetCTCConfig", {"encoder_config": {"num_hidden_layers": 2}}), {}, tensors(input_features=lambda torch, b, s: torch.rand(b, 333, 80)))):
    language_model(name, cls, config, small, inputs)
