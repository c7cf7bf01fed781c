# SPDX-License-Identifier: Apache-2.0
"""Families of transformers of this and the last year: towers of vision-language models, video, detection, speech and text."""
from catalogue_language import NARROW, language_model, pictures, samples, tokens
from catalogue_transformers import CAUSAL, IDS, NO_CACHE, SEQ2SEQ, SMALL_CAUSAL, SMALL_SEQ2SEQ, TEXT, tensors

VISION = {"num_hidden_layers": 4, "hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536}
SMALL_VISION = {**NARROW, "image_size": 32, "patch_size": 8}
BATCHED = {"experts_implementation": "batched_mm"}


def frames(n, size, small_size):
    """Frames before channels."""
    def make(batch, small):
        import torch
        return ["pixel_values"], [torch.rand(batch, n, 3, *2 * [small_size if small else size])]
    return make


def renamed(made, name):
    return lambda batch, small: ([name], made(batch, small)[1])


# ---- pictures and video ----
for name, cls, config, small, inputs in (
        ("sam2_vision", "Sam2VisionModel", ("Sam2VisionConfig", {}), {}, pictures(256, 128)),
        ("sam2_hiera", "Sam2HieraDetModel", ("Sam2HieraDetConfig", {}), {}, pictures(256, 128)),
        ("vitpose", "VitPoseBackbone", ("VitPoseBackboneConfig", {**VISION, "image_size": [256, 192]}), {**NARROW, "image_size": [32, 32], "patch_size": [8, 8]},
         tensors(pixel_values=lambda torch, b, s: torch.rand(b, 3, *((32, 32) if s else (256, 192))))),
        ("vjepa2", "VJEPA2Model", ("VJEPA2Config", {**VISION, "crop_size": 128, "frames_per_clip": 8, "pred_hidden_size": 192, "pred_num_hidden_layers": 2, "pred_num_attention_heads": 6,
                                                    "mlp_ratio": 4}), {**NARROW, "crop_size": 32, "frames_per_clip": 4}, renamed(frames(8, 128, 128), "pixel_values_videos")),
        ("videoprism", "VideoPrismVisionModel", ("VideoPrismVisionConfig", {**VISION, "num_spatial_layers": 2, "num_temporal_layers": 2, "num_frames": 8, "image_size": 144}), {},
         renamed(frames(8, 144, 144), "pixel_values_videos")),
        ("hgnet_v2", "HGNetV2ForImageClassification", ("HGNetV2Config", {}), {}, pictures(224, 64)),
        ("florence2_vision", "Florence2VisionBackbone", ("Florence2VisionConfig", {"embed_dim": [64, 128, 256, 512], "num_heads": [2, 4, 8, 16], "num_groups": [2, 4, 8, 16], "depths": [1, 1, 2, 1]}),
         {}, pictures(224, 224, ("hidden_states",))),
        ("internvl_vision", "InternVLVisionModel", ("InternVLVisionConfig", {**VISION, "image_size": [224, 224], "patch_size": [16, 16]}),
         {**NARROW, "image_size": [32, 32], "patch_size": [8, 8]}, pictures(224, 32)),
        ("pixtral_vision", "PixtralVisionModel", ("PixtralVisionConfig", {**VISION, "head_dim": 64, "image_size": 224}), {**SMALL_VISION, "head_dim": 16}, pictures(224, 32)),
        ("llama4_vision", "Llama4VisionModel", ("Llama4VisionConfig", {**VISION, "image_size": 224, "vision_output_dim": 512, "projector_input_dim": 512, "projector_output_dim": 512}),
         {**SMALL_VISION, "intermediate_size": 256}, pictures(224, 32)),
        ("pix2struct_vision", "Pix2StructVisionModel", ("Pix2StructVisionConfig", {"num_hidden_layers": 4}), {}, tensors(flattened_patches=lambda torch, b, s: torch.cat(
            [torch.arange(1, 65 if s else 257).repeat(b, 1)[..., None] // 16, torch.arange(1, 65 if s else 257).repeat(b, 1)[..., None] % 16, torch.rand(b, 64 if s else 256, 768)], -1))),
        ("mgp_str", "MgpstrForSceneTextRecognition", ("MgpstrConfig", {"num_hidden_layers": 4, "image_size": [32, 128]}), {},
         tensors(pixel_values=lambda torch, b, s: torch.rand(b, 3, 32, 128))),
        ("x_clip_vision", "XCLIPVisionModel", ("XCLIPVisionConfig", {**VISION, "mit_hidden_size": 384, "mit_num_attention_heads": 6, "num_frames": 8}), {}, tensors(pixel_values=lambda torch, b, s: torch.rand(8 * b, 3, 224, 224))),
        ("zoedepth", "ZoeDepthForDepthEstimation", ("ZoeDepthConfig", {"backbone_config": {"model_type": "beit", **VISION, "image_size": 224, "use_relative_position_bias": True, "reshape_hidden_states": False,
                                                                      "out_features": ["stage1", "stage2", "stage3", "stage4"], "num_hidden_layers": 4}}), {}, pictures(224, 224)),
        ("pp_lcnet", "PPLCNetForImageClassification", ("PPLCNetConfig", {}), {}, pictures(224, 64)),
        ("slanet", "SLANetBackbone", ("SLANetConfig", {}), {}, pictures(320, 64, ("hidden_states",))),
        ("flava_picture", "FlavaImageModel", ("FlavaImageConfig", {"num_hidden_layers": 4}), SMALL_VISION, pictures(224, 32)),
        ("lxmert", "LxmertModel", ("LxmertConfig", {"vocab_size": 8000, "l_layers": 2, "x_layers": 2, "r_layers": 2}), {},
         tensors(input_ids=lambda torch, b, s: torch.randint(0, 1000, (b, 32)), visual_feats=lambda torch, b, s: torch.rand(b, 36, 2048), visual_pos=lambda torch, b, s: torch.rand(b, 36, 4)))):
    language_model(name, cls, config, small, inputs)

# ---- text ----
for name, cls, extra, small in (
        ("nanochat", "NanoChat", {}, {}), ("minicpm3", "MiniCPM3", {"q_lora_rank": 128, "kv_lora_rank": 64, "qk_rope_head_dim": 32, "qk_nope_head_dim": 32, "v_head_dim": 64, "num_key_value_heads": 12},
                                           {"q_lora_rank": 32, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16, "num_key_value_heads": 4}),
        ("gemma4", "Gemma4Text", {"sliding_window": 64, "hidden_size_per_layer_input": 64, "vocab_size_per_layer_input": 8000, "global_head_dim": 128, "num_global_key_value_heads": 2,
                                  "layer_types": ["sliding_attention", "full_attention"] * 2, "num_kv_shared_layers": 0},
         {"layer_types": ["sliding_attention", "full_attention"], "global_head_dim": 32, "num_global_key_value_heads": 1}),
        ("gemma3n", "Gemma3nText", {"sliding_window": 64, "vocab_size_per_layer_input": 8000, "num_kv_shared_layers": 0, "layer_types": ["sliding_attention", "full_attention"] * 2,
                                    "activation_sparsity_pattern": [0.0] * 4, "intermediate_size": [2048] * 4},
         {"layer_types": ["sliding_attention", "full_attention"], "activation_sparsity_pattern": [0.0] * 2, "intermediate_size": [128] * 2}),
        ("llama4", "Llama4Text", {"num_local_experts": 4, "interleave_moe_layer_step": 2, "intermediate_size_mlp": 2048, "attention_chunk_size": 32}, {"intermediate_size_mlp": 128}),
        ("jetmoe", "JetMoe", {**BATCHED, "num_local_experts": 4, "kv_channels": 64}, {"kv_channels": 16}),
        ("ernie4_5_moe", "Ernie4_5_Moe", {**BATCHED, "moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 256, "moe_layer_start_index": 1}, {}),
        ("olmo_hybrid", "OlmoHybrid", {**IDS, "layer_types": ["linear_attention", "full_attention"] * 2}, {"layer_types": ["linear_attention", "full_attention"]}),
        ("kimi_linear", "KimiLinear", IDS, {}), ("nemotron_h", "NemotronH", {}, {}),
        ("modernbert_decoder", "ModernBertDecoder", {**IDS, "local_attention": 64}, {}), ("neomme", "NeoMME", {}, {})):
    language_model(name, f"{cls}Model", (f"{cls}Config", {**CAUSAL, **extra}), {**SMALL_CAUSAL, **small}, tokens(64), NO_CACHE)
for name, cls, config, small, inputs in (
        ("jina_embeddings_v3", "JinaEmbeddingsV3Model", ("JinaEmbeddingsV3Config", TEXT), NARROW, tokens(128)),
        ("esmc", "EsmcModel", ("EsmcConfig", {"num_hidden_layers": 4}), {"hidden_size": 64, "num_attention_heads": 4}, tokens(128, 30)),
        ("markuplm", "MarkupLMModel", ("MarkupLMConfig", TEXT), NARROW, tokens(128)),
        ("imagegpt", "ImageGPTModel", ("ImageGPTConfig", {"n_layer": 4}), {"n_embd": 64, "n_layer": 2, "n_head": 4}, tokens(256, 512, mask=False)),
        ("decision_transformer", "DecisionTransformerModel", ("DecisionTransformerConfig", {"n_layer": 3, "n_head": 4, "hidden_size": 128}), {},
         tensors(states=lambda torch, b, s: torch.rand(b, 20, 17), actions=lambda torch, b, s: torch.rand(b, 20, 4), rewards=lambda torch, b, s: torch.rand(b, 20, 1),
                 returns_to_go=lambda torch, b, s: torch.rand(b, 20, 1), timesteps=lambda torch, b, s: torch.arange(20).repeat(b, 1), attention_mask=lambda torch, b, s: torch.ones(b, 20))),
        ("timesfm", "TimesFmModel", ("TimesFmConfig", {"num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8, "head_dim": 64, "intermediate_size": 512}), {},
         tensors(past_values=lambda torch, b, s: torch.rand(b, 512), past_values_padding=lambda torch, b, s: torch.zeros(b, 512, dtype=torch.long), freq=lambda torch, b, s: torch.zeros(b, 1, dtype=torch.long)))):
    language_model(name, cls, config, small, inputs)

# ---- speech and sound ----
for name, cls, config, small, inputs in (
        ("mimi", "MimiModel", ("MimiConfig", {"num_hidden_layers": 2, "use_streaming": False}), {}, tensors(input_values=lambda torch, b, s: torch.rand(b, 1, 7680 if s else 24000))),
        ("vits", "models.vits.modeling_vits.VitsTextEncoder", ("VitsConfig", {}), {"hidden_size": 64, "ffn_dim": 128, "num_hidden_layers": 2},
         tensors(input_ids=lambda torch, b, s: torch.randint(0, 38, (b, 24 if s else 128)), padding_mask=lambda torch, b, s: torch.ones(b, 24 if s else 128, 1))),
        ("musicgen_decoder", "models.musicgen.modeling_musicgen.MusicgenModel", ("MusicgenDecoderConfig", {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "ffn_dim": 2048}),
         {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 128}, tensors(input_ids=lambda torch, b, s: torch.randint(0, 2048, (4 * b, 16 if s else 64)))),
        ("seamless_speech", "models.seamless_m4t.modeling_seamless_m4t.SeamlessM4TSpeechEncoder", ("SeamlessM4TConfig", {"hidden_size": 256, "speech_encoder_layers": 2, "speech_encoder_attention_heads": 4,
                                                                                                                    "speech_encoder_intermediate_size": 1024}), {},
         tensors(input_features=lambda torch, b, s: torch.rand(b, 32 if s else 128, 160))),
        ("dia_encoder", "models.dia.modeling_dia.DiaEncoder", ("DiaEncoderConfig", {"num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64,
                                                                                "intermediate_size": 2048}), {}, tokens(128, 200))):
    language_model(name, cls, config, small, inputs, NO_CACHE if name == "musicgen_decoder" else None)
language_model("t5gemma", "T5GemmaEncoderModel", ("T5GemmaConfig", {"is_encoder_decoder": False, "encoder": {"model_type": "t5_gemma_module", **CAUSAL, "query_pre_attn_scalar": 64, "sliding_window": 64},
               "decoder": {"model_type": "t5_gemma_module", **CAUSAL}}), {}, tokens(128))
language_model("nllb_moe", "NllbMoeModel", ("NllbMoeConfig", {**SEQ2SEQ, "num_experts": 4, "encoder_sparse_step": 2, "decoder_sparse_step": 2, **IDS}), SMALL_SEQ2SEQ, tokens(64, decoder=16), NO_CACHE)
