# SPDX-License-Identifier: Apache-2.0
"""The families of families.py: small models out of bench's catalogue, and smaller ones here where those are large."""
from catalogue import entry, image
from catalogue_families import sequence
from catalogue_language import NARROW, T5, language_model, pictures, samples, tokens
from catalogue_vision import timm_model, torchvision_model

SOUND = {**NARROW, "conv_dim": [16, 16], "conv_kernel": [10, 4], "conv_stride": [5, 4], "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8,
         "num_conv_pos_embedding_groups": 4}
RESNET = {"embedding_size": 8, "hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]}
WINDOWS = {"embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "image_size": 32, "patch_size": 2, "window_size": 4}
SEQ2SEQ = {"d_model": 64, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 128}

for name, cls in (("wav2vec2", "Wav2Vec2"), ("hubert", "Hubert"), ("wavlm", "WavLM"), ("data2vec_audio", "Data2VecAudio")):
    language_model(name, f"{cls}Model", (f"{cls}Config", {}), SOUND, samples(400, 400))
language_model("wav2vec2_conformer", "Wav2Vec2ConformerModel", ("Wav2Vec2ConformerConfig", {}), {**SOUND, "conv_depthwise_kernel_size": 7, "max_source_positions": 64}, samples(400, 400))
language_model("hf_swin", "SwinModel", ("SwinConfig", {}), WINDOWS, pictures(32, 32))
language_model("swinv2_hf", "Swinv2Model", ("Swinv2Config", {}), WINDOWS, pictures(32, 32))
language_model("dinov2", "Dinov2Model", ("Dinov2Config", {}), {**NARROW, "image_size": 32, "patch_size": 8}, pictures(32, 32))
language_model("timesformer", "TimesformerModel", ("TimesformerConfig", {}), {**NARROW, "image_size": 16, "patch_size": 8, "num_frames": 3},
               lambda batch, small: (["pixel_values"], [__import__("torch").rand(batch, 3, 3, 16, 16)]))
language_model("sam_vision", "SamVisionModel", ("SamVisionConfig", {}), {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "mlp_dim": 64, "image_size": 32,
               "patch_size": 4, "window_size": 3, "global_attn_indexes": [1], "output_channels": 16}, pictures(32, 32))
language_model("hiera", "HieraModel", ("HieraConfig", {}), {"embed_dim": 16, "image_size": [64, 64], "depths": [1, 1, 1, 1], "num_heads": [1, 2, 4, 8]}, pictures(64, 64))
language_model("levit", "LevitModel", ("LevitConfig", {}), {"hidden_sizes": [32, 48, 64], "num_attention_heads": [2, 3, 4], "depths": [1, 1, 1], "key_dim": [16, 16, 16],
               "image_size": 64}, pictures(64, 64))
language_model("mobilevit_hf", "MobileViTModel", ("MobileViTConfig", {}), {"hidden_sizes": [16, 16, 32], "neck_hidden_sizes": [8, 8, 8, 16, 16, 16, 32]}, pictures(32, 32))
language_model("mobilevitv2", "MobileViTV2Model", ("MobileViTV2Config", {}), {"width_multiplier": 0.25, "base_attn_unit_dims": [64, 64, 64], "n_attn_blocks": [1, 1, 1]},
               pictures(64, 64))
language_model("resnet_hf", "ResNetModel", ("ResNetConfig", {}), RESNET, pictures(32, 32))
language_model("convnext_hf", "ConvNextModel", ("ConvNextConfig", {}), {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]}, pictures(32, 32))
language_model("convnextv2_hf", "ConvNextV2Model", ("ConvNextV2Config", {}), {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]}, pictures(32, 32))
language_model("efficientnet_hf", "EfficientNetModel", ("EfficientNetConfig", {}), {"width_coefficient": 0.25, "depth_coefficient": 0.3, "hidden_dim": 320, "image_size": 32},
               pictures(32, 32))
language_model("regnet_hf", "RegNetModel", ("RegNetConfig", {}), {"embedding_size": 8, "hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "groups_width": 8}, pictures(32, 32))
language_model("segformer", "SegformerForSemanticSegmentation", ("SegformerConfig", {}), {"hidden_sizes": [8, 16, 40, 64], "depths": [1, 1, 1, 1], "decoder_hidden_size": 16,
               "num_labels": 5}, pictures(64, 64))
language_model("whisper_encoder", "models.whisper.modeling_whisper.WhisperEncoder", ("WhisperConfig", {}), {**SEQ2SEQ, "max_source_positions": 12, "num_mel_bins": 16},
               lambda batch, small: (["input_features"], [__import__("torch").rand(batch, 16, 24)]))
language_model("whisper", "WhisperModel", ("WhisperConfig", {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "vocab_size": 99}),
               {**SEQ2SEQ, "max_source_positions": 12, "num_mel_bins": 16}, lambda batch, small: (["input_features", "decoder_input_ids"], [
                   __import__("torch").rand(batch, 16, 24), __import__("torch").randint(0, 99, (batch, 8))]), {"use_cache": False})
language_model("modernbert", "ModernBertModel", ("ModernBertConfig", {"vocab_size": 99, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1,
               "sep_token_id": 2}), NARROW, tokens(24))
language_model("qwen2", "Qwen2Model", ("Qwen2Config", {}), {**NARROW, "num_key_value_heads": 2, "vocab_size": 99}, tokens(24), {"use_cache": False})
language_model("gptj", "GPTJModel", ("GPTJConfig", {}), {"n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 8, "vocab_size": 99}, tokens(24), {"use_cache": False})
language_model("falcon_groups", "FalconModel", ("FalconConfig", {}), {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_kv_heads": 2,
               "new_decoder_architecture": True, "vocab_size": 99}, tokens(24), {"use_cache": False})
language_model("persimmon", "PersimmonModel", ("PersimmonConfig", {}), {**NARROW, "vocab_size": 99}, tokens(24), {"use_cache": False})
language_model("glm4", "Glm4Model", ("Glm4Config", {"pad_token_id": 0}), {**NARROW, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 99}, tokens(24), {"use_cache": False})
language_model("deepseek_v3", "DeepseekV3Model", ("DeepseekV3Config", {}), {
    **NARROW, "num_key_value_heads": 4, "vocab_size": 99, "q_lora_rank": 32, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16,
    "first_k_dense_replace": 2}, tokens(24), {"use_cache": False})
language_model("openai_gpt", "OpenAIGPTModel", ("OpenAIGPTConfig", {}), {"vocab_size": 99, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 4}, tokens(24, mask=False))
language_model("umt5", "UMT5Model", ("UMT5Config", {}), {**T5, "vocab_size": 99}, tokens(24, 99, decoder=12), {"use_cache": False})
language_model("moonshine", "models.moonshine.modeling_moonshine.MoonshineEncoder", ("MoonshineConfig", {}), {
    "hidden_size": 64, "intermediate_size": 128, "encoder_num_hidden_layers": 2, "encoder_num_attention_heads": 4, "encoder_num_key_value_heads": 4}, samples(2000, 2000))
language_model("yolos", "YolosModel", ("YolosConfig", {}), {**NARROW, "image_size": [32, 32], "patch_size": 8, "num_detection_tokens": 4}, pictures(32, 32))
language_model("ast", "ASTModel", ("ASTConfig", {}), {**NARROW, "max_length": 32, "num_mel_bins": 16, "patch_size": 8, "time_stride": 4, "frequency_stride": 4},
               lambda batch, small: (["input_values"], [__import__("torch").rand(batch, 32, 16)]))

torchvision_model("swin_t", lambda m: m.SwinTransformer(patch_size=[2, 2], embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=[4, 4]), small_size=32)
torchvision_model("swin_v2_t", lambda m: m.swin_transformer.SwinTransformer(
    patch_size=[2, 2], embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=[4, 4], block=m.swin_transformer.SwinTransformerBlockV2,
    downsample_layer=m.swin_transformer.PatchMergingV2), small_size=32)
torchvision_model("convnext_tiny", lambda m: m.ConvNeXt([m.convnext.CNBlockConfig(8, 16, 2), m.convnext.CNBlockConfig(16, None, 2)]), small_size=32)
torchvision_model("densenet121", lambda m: m.DenseNet(growth_rate=8, block_config=(2, 2), num_init_features=8, num_classes=10), small_size=32)
torchvision_model("mobilenet_v2", lambda m: m.MobileNetV2(width_mult=0.25, num_classes=10, inverted_residual_setting=[[1, 8, 1, 1], [6, 16, 2, 2], [6, 24, 2, 2]]), small_size=32)
torchvision_model("squeezenet1_1", lambda m: m.SqueezeNet("1_1", num_classes=10), small_size=32)
timm_model("swin_tiny_patch4_window7_224", {"depths": (2, 2), "embed_dim": 16, "num_heads": (2, 4), "patch_size": 2, "window_size": 4}, small_size=32)
timm_model("vit_base_patch16_224", {"depth": 2, "embed_dim": 64, "num_heads": 4, "patch_size": 8}, small_size=32)
timm_model("deit_small_patch16_224", {"depth": 2, "embed_dim": 64, "num_heads": 4, "patch_size": 8}, small_size=32)
timm_model("beit_base_patch16_224", {"depth": 2, "embed_dim": 64, "num_heads": 4, "patch_size": 8}, small_size=32)
timm_model("eva02_tiny_patch14_224", {"depth": 2, "embed_dim": 64, "num_heads": 4, "patch_size": 8}, small_size=32)
timm_model("cait_xxs24_224", {"depth": 2, "embed_dim": 64, "num_heads": 4, "patch_size": 8}, small_size=32)
timm_model("xcit_nano_12_p16_224", {"depth": 2, "embed_dim": 32, "num_heads": 4}, small_size=32)


@entry("detr", "transformers")
def detr(small, batch):
    import torch
    import transformers

    class Detector(torch.nn.Module):
        def __init__(self):
            super().__init__()
            backbone = transformers.ResNetConfig(out_features=["stage4"], **RESNET)
            settings = transformers.DetrConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=backbone, num_queries=6, **SEQ2SEQ)
            settings._attn_implementation = "sdpa"
            settings.backbone_config._attn_implementation = "eager"
            self.inner = transformers.DetrModel(settings)

        def forward(self, pixel_values):
            return self.inner(pixel_values=pixel_values, return_dict=True).last_hidden_state

    return Detector(), image(batch, 64)


@entry("timm_davit", "timm")
def timm_davit(small, batch):
    import timm
    return timm.models.davit.DaVit(depths=(1, 1), embed_dims=(16, 32), num_heads=(1, 2), num_classes=10), image(batch, 96)


@entry("timm_mixer", "timm")
def timm_mixer(small, batch):
    import timm
    return timm.models.mlp_mixer.MlpMixer(img_size=32, patch_size=8, num_blocks=2, embed_dim=64, num_classes=10), image(batch, 32)


@entry("timm_gmlp", "timm")
def timm_gmlp(small, batch):
    import timm
    mixers = timm.models.mlp_mixer
    return mixers.MlpMixer(img_size=32, patch_size=8, num_blocks=2, embed_dim=32, num_classes=10, mlp_ratio=6, block_layer=mixers.SpatialGatingBlock,
                           mlp_layer=mixers.GatedMlp), image(batch, 32)


@entry("timm_resmlp", "timm")
def timm_resmlp(small, batch):
    import functools
    import timm
    mixers = timm.models.mlp_mixer
    return mixers.MlpMixer(img_size=32, patch_size=8, num_blocks=2, embed_dim=32, num_classes=10, mlp_ratio=4, norm_layer=mixers.Affine,
                           block_layer=functools.partial(mixers.ResBlock, init_values=0.5)), image(batch, 32)


def branches(kind, blocks):
    """Networks whose convolutions are trained as sums of several, with norms of the input beside them."""
    import timm
    byob = timm.models.byobnet
    return byob.ByobNet(byob.ByoModelCfg(blocks=tuple(byob.ByoBlockCfg(type=kind, d=1, **b) for b in blocks), stem_type=kind, stem_chs=16), num_classes=10)


@entry("timm_repvgg", "timm")
def timm_repvgg(small, batch):
    return branches("rep", [{"c": 16, "s": 2, "gs": 0}, {"c": 16, "s": 1, "gs": 8}, {"c": 24, "s": 2, "gs": 0}]), image(batch, 32)


@entry("timm_mobileone", "timm")
def timm_mobileone(small, batch):
    pixels = {"kernel_size": 1, "num_conv_branches": 2}
    return branches("one", [{"c": 16, "s": 2, "gs": 1, "block_kwargs": {"num_conv_branches": 2}}, {"c": 24, "s": 1, "gs": 0, "block_kwargs": pixels},
                            {"c": 24, "s": 1, "gs": 1}, {"c": 24, "s": 1, "gs": 0, "block_kwargs": pixels}]), image(batch, 32)


@entry("timm_fastvit", "timm")
def timm_fastvit(small, batch):
    import timm
    return timm.models.fastvit.FastVit(layers=(1, 1), token_mixers=("repmixer", "repmixer"), embed_dims=(16, 32), mlp_ratios=(2, 2), downsamples=(False, True),
                                       se_downsamples=(False, False), pos_embs=(None, None), num_classes=10), image(batch, 32)


def heads(batch_first, masked):
    """Attention of PyTorch's module, of a sequence with itself, and with a memory that is masked."""
    def make(torch, nn):
        class Heads(nn.Module):
            def __init__(self):
                super().__init__()
                self.own = nn.MultiheadAttention(64, 4, batch_first=batch_first)
                self.other = nn.MultiheadAttention(64, 4, batch_first=batch_first, kdim=48, vdim=48)
                hidden = torch.zeros(8, 12)
                hidden[2:5, 7:] = float("-inf")
                self.register_buffer("hidden", hidden)

            def forward(self, x, memory):
                if not batch_first:
                    x, memory = x.transpose(0, 1), memory.transpose(0, 1)
                x = x + self.own(x, x, x, need_weights=False)[0]
                return x + self.other(x, memory, memory, need_weights=False, attn_mask=self.hidden if masked else None)[0]
        return Heads()
    return make


for first in (True, False):
    for masked in (True, False):
        sequence(f"heads{'_batch_first' if first else '_sequence_first'}{'_masked' if masked else ''}", heads(first, masked), [(8, 64), (12, 48)])


@entry("transformer")
def transformer(small, batch):
    """PyTorch's whole transformer, with a causal target."""
    import torch

    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Transformer(64, 4, 2, 2, 128, batch_first=True, norm_first=True, activation="gelu")

        def forward(self, source, target):
            return self.inner(source, target, tgt_mask=torch.nn.Transformer.generate_square_subsequent_mask(target.shape[1]), tgt_is_causal=True)

    return Both(), (torch.rand(batch, 12, 64), torch.rand(batch, 8, 64))


@entry("gru")
def gru(small, batch):
    import torch

    class Recurrent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.GRU(16, 32, num_layers=2, bidirectional=True)

        def forward(self, x):
            return self.inner(x)[0]

    return Recurrent(), (torch.rand(6, batch, 16),)


TEXT = """bert bert_nomask distilbert roberta deberta deberta_v2 albert electra mpnet xlnet modernbert nomic_bert esm roformer convbert fnet funnel longformer"""
DECODERS = """gpt2 gpt2_masked gpt_neo gpt_neox gptj opt bloom mpt falcon llama llama_masked mistral qwen2 qwen3 phi phi3 gemma gemma2 gemma3 cohere glm stablelm olmo2
granite gpt_oss starcoder2 gpt_bigcode codegen mixtral gpt2_past falcon_groups persimmon glm4 deepseek_v3 openai_gpt"""
PAIRS = "t5 t5_encoder umt5 bart marian pegasus m2m_100 whisper whisper_encoder"
SOUNDS = "wav2vec2 hubert wavlm data2vec_audio wav2vec2_conformer parakeet ast moonshine"
PICTURES = """hf_vit vit_b_16 timm_vit_base_patch16_224 deit_hf timm_deit_small_patch16_224 hf_beit timm_beit_base_patch16_224 hf_swin swin_t
timm_swin_tiny_patch4_window7_224 swinv2_hf swin_v2_t clip siglip dinov2 dinov3 detr sam_vision segformer mobilevit_hf mobilevitv2 timesformer videomae yolos
timm_eva02_tiny_patch14_224 timm_cait_xxs24_224 timm_xcit_nano_12_p16_224 timm_davit perceiver hiera levit"""
CONVOLUTIONS = """convnext_tiny convnext_hf convnextv2_hf efficientnet_hf resnet_hf regnet_hf densenet121 mobilenet_v2 unet timm_repvgg timm_mobileone
timm_fastvit"""
OTHERS = """transformer torch_encoder torch_decoder heads_batch_first heads_batch_first_masked heads_sequence_first heads_sequence_first_masked layers_attention
lstm gru timm_mixer timm_gmlp timm_resmlp mamba rwkv layers_retention"""
NAMES = " ".join((OTHERS, TEXT, DECODERS, PAIRS, SOUNDS, PICTURES, CONVOLUTIONS)).split()
# Those of which a second export makes another graph.
NEWEST = """bert gpt2_masked llama_masked gemma2 gpt_oss qwen3 t5 bart whisper hf_vit vit_b_16 swin_t clip deberta_v2 modernbert transformer heads_sequence_first_masked
wav2vec2""".split()
OPEN = """bert distilbert gpt2_masked llama_masked qwen3 gemma3 bloom t5 bart whisper_encoder wav2vec2 hf_vit vit_b_16 clip swin_t detr heads_batch_first
heads_sequence_first lstm convnext_tiny deepseek_v3 falcon_groups glm4 openai_gpt umt5 moonshine""".split()
