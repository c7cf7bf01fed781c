# SPDX-License-Identifier: Apache-2.0
"""Families of transformers that the other catalogues leave out: experts, state spaces with attention, kernels of attention that are not softmax of products, vision and audio."""
from catalogue_language import NARROW, T5, language_model, pictures, samples, tokens
from catalogue_transformers import CAUSAL, IDS, NO_CACHE, SEQ2SEQ, SMALL_CAUSAL, SMALL_SEQ2SEQ, TEXT, tensors

# Products of all experts' weights at once are what both exporters can write.
BATCHED = {"experts_implementation": "batched_mm"}
EXPERTS = {**BATCHED, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 256}
LATENT = {**BATCHED, "q_lora_rank": 64, "kv_lora_rank": 32, "qk_rope_head_dim": 16, "qk_nope_head_dim": 16, "v_head_dim": 32, "n_routed_experts": 4, "num_experts_per_tok": 2,
          "moe_intermediate_size": 256, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "num_key_value_heads": 12}

# ---- decoders of text ----
for name, cls, extra, small in (
        ("deepseek_v2", "DeepseekV2", LATENT, {"num_key_value_heads": 4}), ("deepseek_v3", "DeepseekV3", LATENT, {"num_key_value_heads": 4}), ("olmoe", "Olmoe", EXPERTS, {}),
        ("qwen3_moe", "Qwen3Moe", EXPERTS, {}), ("glm4", "Glm4", {"pad_token_id": 0}, {}), ("cohere2", "Cohere2", {"sliding_window": 64}, {}), ("apertus", "Apertus", {}, {}),
        ("doge", "Doge", {}, {}), ("diffllama", "DiffLlama", {}, {}), ("granitemoe", "GraniteMoe", {**BATCHED, "num_local_experts": 4, "num_experts_per_tok": 2}, {}),
        ("vaultgemma", "VaultGemma", {"sliding_window": 64}, {}), ("olmo3", "Olmo3", {"sliding_window": 64}, {}), ("bitnet", "BitNet", {}, {}),
        ("hunyuan_moe", "HunYuanMoEV1", {**BATCHED, "num_experts": 4, "moe_topk": 2}, {}), ("minimax", "MiniMax", {**BATCHED, "num_local_experts": 4, "num_experts_per_tok": 2}, {}),
        ("jamba", "Jamba", {**BATCHED, "num_experts": 2, "num_experts_per_tok": 1, "use_mamba_kernels": False, "attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2,
                            "expert_layer_offset": 1, "mamba_d_state": 16}, {}),
        ("bamba", "Bamba", {"attn_layer_indices": [1], "mamba_n_heads": 24, "mamba_d_head": 64, "mamba_chunk_size": 32}, {"mamba_n_heads": 8, "mamba_d_head": 16}),
        ("falcon_mamba", "FalconMamba", {"state_size": 16, "use_mambapy": False}, {}),
        ("falcon_h1", "FalconH1", {"mamba_d_ssm": 256, "mamba_n_heads": 8, "mamba_d_head": 32, "mamba_chunk_size": 32, "mamba_d_state": 32},
         {"mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16}),
        ("qwen3_next", "Qwen3Next", {**EXPERTS, "shared_expert_intermediate_size": 256, "linear_num_key_heads": 4, "linear_num_value_heads": 4, "linear_key_head_dim": 32,
                                     "linear_value_head_dim": 32, "layer_types": ["linear_attention", "full_attention"] * 2}, {"layer_types": ["linear_attention", "full_attention"]}),
        ("lfm2_moe", "Lfm2Moe", {**EXPERTS, "num_dense_layers": 1, "layer_types": ["conv", "full_attention"] * 2}, {"layer_types": ["conv", "full_attention"]})):
    language_model(name, f"{cls}Model", (f"{cls}Config", {**CAUSAL, **extra}), {**SMALL_CAUSAL, **small}, tokens(64), NO_CACHE)
language_model("biogpt", "BioGptModel", ("BioGptConfig", TEXT), NARROW, tokens(128), NO_CACHE)
language_model("ctrl", "CTRLModel", ("CTRLConfig", {"vocab_size": 8000, "n_embd": 512, "dff": 2048, "n_layer": 4, "n_head": 8}), {"n_embd": 64, "dff": 128, "n_layer": 2, "n_head": 4},
               tokens(128, mask=False), NO_CACHE)
language_model("openai_gpt", "OpenAIGPTModel", ("OpenAIGPTConfig", {"vocab_size": 8000, "n_layer": 4}), {"n_embd": 64, "n_layer": 2, "n_head": 4}, tokens(128))

# ---- encoders of text ----
for name, cls, config, small, inputs in (
        ("splinter", "SplinterModel", ("SplinterConfig", TEXT), NARROW, tokens(128)), ("luke", "LukeModel", ("LukeConfig", {**TEXT, "entity_vocab_size": 100}), NARROW, tokens(128)),
        ("mra", "MraModel", ("MraConfig", {**TEXT, "max_position_embeddings": 256}), NARROW, tokens(128)),
        ("yoso", "YosoModel", ("YosoConfig", {**TEXT, "use_expectation": True}), NARROW, tokens(128)),
        ("flaubert", "FlaubertModel", ("FlaubertConfig", {"vocab_size": 8000, "emb_dim": 512, "n_layers": 4, "n_heads": 8}), {"emb_dim": 64, "n_layers": 2, "n_heads": 4}, tokens(128)),
        ("data2vec_text", "Data2VecTextModel", ("Data2VecTextConfig", TEXT), NARROW, tokens(128)),
        ("roberta_prelayernorm", "RobertaPreLayerNormModel", ("RobertaPreLayerNormConfig", TEXT), NARROW, tokens(128)),
        ("tapas", "TapasModel", ("TapasConfig", TEXT), NARROW, tokens(128)),
        ("bros", "BrosModel", ("BrosConfig", TEXT), NARROW,
         tensors(input_ids=lambda torch, b, s: torch.randint(3, 1000, (b, 24 if s else 128)), bbox=lambda torch, b, s: torch.rand(b, 24 if s else 128, 8)))):
    language_model(name, cls, config, small, inputs)

# ---- encoders with decoders of text ----
for name, cls, extra in (("plbart", "PLBart", {}), ("mvp", "Mvp", {}), ("bigbird_pegasus", "BigBirdPegasus", {"attention_type": "original_full"}), ("blenderbot", "Blenderbot", {})):
    language_model(name, f"{cls}Model", (f"{cls}Config", {**SEQ2SEQ, **extra}), SMALL_SEQ2SEQ, tokens(64, decoder=16), NO_CACHE)
for name, cls, extra in (("umt5", "UMT5", {}), ("mt5", "MT5", {}), ("longt5", "LongT5", {"local_radius": 15}),
                         ("switch_transformers", "SwitchTransformers", {"num_experts": 4, "expert_capacity": 32})):
    language_model(name, f"{cls}Model", (f"{cls}Config", {"vocab_size": 8000, **extra}), T5, tokens(64, decoder=16), NO_CACHE)
language_model("prophetnet", "ProphetNetModel", ("ProphetNetConfig", {"vocab_size": 8000, "hidden_size": 256, "num_encoder_layers": 2, "num_decoder_layers": 2,
               "num_encoder_attention_heads": 4, "num_decoder_attention_heads": 4, "encoder_ffn_dim": 512, "decoder_ffn_dim": 512}), {"hidden_size": 64}, tokens(64, decoder=16), NO_CACHE)

# ---- vision ----
for name, cls, config, small, inputs in (
        ("dinov2_registers", "Dinov2WithRegistersModel", ("Dinov2WithRegistersConfig", {"num_hidden_layers": 4}), {**NARROW, "image_size": 56, "patch_size": 14}, pictures(224, 56)),
        ("pvt_v2", "PvtV2Model", ("PvtV2Config", {}), {}, pictures(224, 64)),
        ("aimv2", "Aimv2VisionModel", ("Aimv2VisionConfig", {"num_hidden_layers": 4}), {**NARROW, "image_size": 56, "patch_size": 14}, pictures(224, 56)),
        ("vitdet", "VitDetModel", ("VitDetConfig", {"num_hidden_layers": 4, "window_block_indices": [0, 1], "window_size": 7, "use_relative_position_embeddings": True}),
         {**NARROW, "image_size": 112, "patch_size": 8}, pictures(224, 112)),
        ("data2vec_vision", "Data2VecVisionModel", ("Data2VecVisionConfig", {"num_hidden_layers": 4, "use_relative_position_bias": True}),
         {**NARROW, "image_size": 32, "patch_size": 8}, pictures(224, 32)),
        ("clip_vision", "CLIPVisionModel", ("CLIPVisionConfig", {"num_hidden_layers": 4}), {**NARROW, "image_size": 32, "patch_size": 8}, pictures(224, 32)),
        ("blip_vision", "BlipVisionModel", ("BlipVisionConfig", {"num_hidden_layers": 4, "image_size": 224}), {**NARROW, "image_size": 32, "patch_size": 8}, pictures(224, 32)),
        ("groupvit_vision", "GroupViTVisionModel", ("GroupViTVisionConfig", {}), {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "image_size": 112}, pictures(224, 112)),
        ("owlvit_vision", "OwlViTVisionModel", ("OwlViTVisionConfig", {"num_hidden_layers": 4}), {**NARROW, "image_size": 64}, pictures(768, 64)),
        ("mobilenet_v2_hf", "MobileNetV2Model", ("MobileNetV2Config", {}), {}, pictures(224, 64)),
        ("table_transformer", "TableTransformerModel", ("TableTransformerConfig", {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None,
                                                        "backbone_config": {"model_type": "resnet", "out_features": ["stage4"]}}),
         {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128,
          "num_queries": 10}, pictures(256, 64))):
    language_model(name, cls, config, small, inputs)

# ---- audio ----
for name, cls, config, small, inputs in (
        ("clap_audio", "ClapAudioModel", ("ClapAudioConfig", {}), {}, tensors(input_features=lambda torch, b, s: torch.rand(b, 1, 1001, 64))),
        ("speecht5_encoder", "models.speecht5.modeling_speecht5.SpeechT5EncoderWithSpeechPrenet", ("SpeechT5Config", {"encoder_layers": 2}), {}, samples(32000, 8000)),
        ("data2vec_audio_short", "Data2VecAudioModel", ("Data2VecAudioConfig", {"num_hidden_layers": 2, "conv_pos_kernel_size": 7}), NARROW, samples(32000, 8000))):
    language_model(name, cls, config, small, inputs)
