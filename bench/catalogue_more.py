# SPDX-License-Identifier: Apache-2.0
"""Further families of timm, torchvision and transformers, and layers that write into slices or move what others compute."""
from catalogue_layers import layers
from catalogue_language import NARROW, language_model, pictures, samples, tokens
from catalogue_timm import own_size
from catalogue_transformers import CAUSAL, IDS, NO_CACHE, SMALL_CAUSAL, TEXT, tensors
from catalogue_vision import torchvision_model

for family in ("resnet18d", "mobilenetv1_100", "vovnet39a", "seresnet33ts", "regnetx_002", "regnety_002", "ghostnet_050", "tinynet_e", "lcnet_050", "mnasnet_small",
               "efficientnet_es", "mixnet_m", "dla46x_c", "hrnet_w18_small_v2", "cs3sedarknet_l", "resnext26ts", "lambda_resnet26rpt_256", "eca_botnext26ts_256", "convnextv2_femto",
               "edgenext_xx_small", "efficientvit_b0", "fastvit_sa12", "repvit_m0_9", "starnet_s2", "mambaout_kobe", "pvt_v2_b1", "xcit_nano_12_p8_224", "crossvit_9_240", "coat_tiny",
               "visformer_small", "cait_xxs36_224", "beitv2_base_patch16_224", "eva02_tiny_patch14_336", "test_vit", "test_resnet", "test_efficientnet", "test_byobnet", "test_mambaout",
               "test_nfnet", "test_convnext"):
    own_size(family)
for family in ("regnet_y_1_6gf", "wide_resnet50_2", "resnext101_32x8d", "densenet169", "mobilenet_v3_small", "shufflenet_v2_x1_5", "squeezenet1_0"):
    torchvision_model(family)

for name, cls, extra in (("qwen2_moe", "Qwen2Moe", {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 256, "shared_expert_intermediate_size": 256}),
                         ("starcoder2", "Starcoder2", {}), ("olmo", "Olmo", {}), ("phimoe", "Phimoe", {"num_local_experts": 4}), ("exaone4", "Exaone4", {"sliding_window": 64}),
                         ("ministral", "Ministral", {"sliding_window": 64}), ("seed_oss", "SeedOss", {}), ("arcee", "Arcee", IDS), ("hunyuan_dense", "HunYuanDenseV1", {}),
                         ("ernie4_5", "Ernie4_5", {}), ("dots1", "Dots1", {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 256, "first_k_dense_replace": 1,
                                                                          "n_shared_experts": 1, "n_group": 1, "topk_group": 1})):
    language_model(name, f"{cls}Model", (f"{cls}Config", {**CAUSAL, **extra}), SMALL_CAUSAL, tokens(64), NO_CACHE)
for name, cls, config, small, inputs in (
        ("camembert", "CamembertModel", ("CamembertConfig", TEXT), NARROW, tokens(128)),
        ("xmod", "XmodModel", ("XmodConfig", {**TEXT, "default_language": "en_XX"}), NARROW, tokens(64)),
        ("megatron_bert", "MegatronBertModel", ("MegatronBertConfig", {**TEXT, "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 2048}), NARROW, tokens(128)),
        ("roc_bert", "RoCBertModel", ("RoCBertConfig", {**TEXT, "pronunciation_vocab_size": 500, "shape_vocab_size": 500}), NARROW, tokens(64)),
        ("deit_hf", "DeiTModel", ("DeiTConfig", {"num_hidden_layers": 4}), {**NARROW, "image_size": 32, "patch_size": 8}, pictures(224, 32)),
        ("levit_hf", "LevitModel", ("LevitConfig", {}), {}, pictures(224, 224)),
        ("mobilevit_hf", "MobileViTModel", ("MobileViTConfig", {}), {}, pictures(256, 64)),
        ("resnet_hf", "ResNetModel", ("ResNetConfig", {"layer_type": "basic", "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2]}), {}, pictures(224, 64)),
        ("convnext_hf", "ConvNextV2Model", ("ConvNextV2Config", {}), {}, pictures(224, 64)),
        ("donut_swin", "DonutSwinModel", ("DonutSwinConfig", {}), {"embed_dim": 32, "depths": [2, 2], "num_heads": [2, 4], "image_size": 112}, pictures(224, 112)),
        ("vit_msn", "ViTMSNModel", ("ViTMSNConfig", {"num_hidden_layers": 4}), {**NARROW, "image_size": 32, "patch_size": 8}, pictures(224, 32)),
        ("vit_mae", "ViTMAEModel", ("ViTMAEConfig", {"num_hidden_layers": 2, "mask_ratio": 0.0}), {**NARROW, "image_size": 32, "patch_size": 8},
         tensors(pixel_values=lambda torch, b, s: torch.rand(b, 3, *2 * [32 if s else 224]), noise=lambda torch, b, s: torch.rand(b, 16 if s else 196))),
        ("sew_d", "SEWDModel", ("SEWDConfig", {"num_hidden_layers": 2}), {}, samples(32000, 8000)),
        ("unispeech", "UniSpeechModel", ("UniSpeechConfig", {"num_hidden_layers": 2}), NARROW, samples(32000, 8000))):
    language_model(name, cls, config, small, inputs)


# ---- writes into slices ----
@layers("slice_sum", [(8, 65, 65), (8, 64, 64)])
def slice_sum(torch, nn):
    """Biases for all tokens but the first, as decomposed relative positions have them."""
    class Net(nn.Module):
        def forward(self, x, y):
            x = 2 * x
            x[:, :, 1:, 1:] += y
            return x.softmax(-1)
    return Net()


@layers("interleave", [(64, 128), (64, 128)])
def interleave(torch, nn):
    class Net(nn.Module):
        def forward(self, x, y):
            out = torch.zeros(x.shape[0], x.shape[1], 256)
            out[..., 0::2] = x.sin()
            out[..., 1::2] = y.cos()
            return out
    return Net()


@layers("temporal_shift", [(8, 64, 14, 14)])
def temporal_shift(torch, nn):
    """A share of the channels moves to the next frame, another to the one before."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Conv2d(64, 64, 1)

        def forward(self, x):
            out = torch.zeros_like(x)
            out[:, :-1, :8] = x[:, 1:, :8]
            out[:, 1:, 8:16] = x[:, :-1, 8:16]
            out[:, :, 16:] = x[:, :, 16:]
            return self.inner(out.flatten(0, 1))
    return Net()


@layers("fixed_cache", [(8, 512, 64), (8, 512, 64), (8, 1, 64)])
def fixed_cache(torch, nn):
    """One token's key and value go into caches of a fixed length, at a fixed place."""
    class Net(nn.Module):
        def forward(self, keys, values, q):
            at = torch.tensor([100])
            keys, values = keys.index_copy(2, at, q + 1), values.index_copy(2, at, q - 1)
            y = nn.functional.scaled_dot_product_attention(q, keys[:, :, :101], values[:, :, :101])
            return y, keys, values
    return Net()


@layers("moving_cache", [(8, 512, 64), (8, 512, 64), (8, 1, 64), lambda torch, batch: torch.tensor([100])])
def moving_cache(torch, nn):
    """The same at a place that is an input, as transformers' static cache."""
    class Net(nn.Module):
        def forward(self, keys, values, q, at):
            keys, values = keys.index_copy(2, at, q + 1), values.index_copy(2, at, q - 1)
            mask = (torch.arange(512) <= at).view(1, 1, 1, 512)
            return nn.functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask), keys, values
    return Net()


@layers("patch_roll", [(56, 56, 96)])
def patch_roll(torch, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.inner = nn.LayerNorm(96), nn.Linear(96, 96)

        def forward(self, x):
            y = torch.roll(self.norm(x), (-3, -3), (1, 2))
            y = y.unflatten(1, (8, 7)).unflatten(3, (8, 7)).transpose(2, 3).flatten(3, 4).flatten(1, 2)
            y = self.inner(y).unflatten(1, (8, 8)).unflatten(3, (7, 7)).transpose(2, 3).flatten(3, 4).flatten(1, 2)
            return x + torch.roll(y, (3, 3), (1, 2))
    return Net()


@layers("pixel_norm", [(64, 32, 32)])
def pixel_norm(torch, nn):
    """Generators of pictures: normalised by pixels, modulated by channels, enlarged and smoothed."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Conv2d(64, 64, 3, padding=1)
            self.register_buffer("kernel", torch.tensor([1., 3., 3., 1.]).outer(torch.tensor([1., 3., 3., 1.])) / 64)

        def forward(self, x):
            x = x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-8)
            y = nn.functional.leaky_relu(self.inner(x), 0.2) * 2 ** 0.5
            y = nn.functional.interpolate(y, scale_factor=2)
            return nn.functional.conv2d(y.flatten(0, 1)[:, None], self.kernel[None, None], padding=2).unflatten(0, (-1, 64))
    return Net()


@layers("deep_sets", [(200, 32)])
def deep_sets(torch, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.each, self.all = nn.Sequential(nn.Linear(32, 64), nn.ELU(), nn.Linear(64, 64)), nn.Sequential(nn.Linear(192, 64), nn.ELU(), nn.Linear(64, 8))

        def forward(self, x):
            y = self.each(x)
            return self.all(torch.cat([y.mean(1), y.amax(1), y.std(1)], -1))
    return Net()


@layers("highway", [(128, 64)])
def highway(torch, nn):
    """Gated convolutions over characters, and highways."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.convs = nn.ModuleList(nn.Conv1d(64, 64, k) for k in (1, 2, 3, 4, 5))
            self.gate, self.inner = nn.Linear(320, 320), nn.Linear(320, 320)

        def forward(self, x):
            y = torch.cat([nn.functional.relu(c(x.transpose(1, 2))).amax(-1) for c in self.convs], -1)
            g = torch.sigmoid(self.gate(y))
            return g * torch.relu(self.inner(y)) + (1 - g) * y
    return Net()


@layers("wavenet", [(32, 2000)])
def wavenet(torch, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.filters = nn.ModuleList(nn.Conv1d(32, 64, 2, dilation=2 ** k) for k in range(6))
            self.out = nn.ModuleList(nn.Conv1d(32, 32, 1) for _ in range(6))

        def forward(self, x):
            skip = 0
            for k, (f, o) in enumerate(zip(self.filters, self.out)):
                a, b = f(nn.functional.pad(x, (2 ** k, 0))).chunk(2, 1)
                y = o(torch.tanh(a) * torch.sigmoid(b))
                x, skip = x + y, skip + y
            return skip
    return Net()


@layers("squeeze_sequence", [(300, 40)])
def squeeze_sequence(torch, nn):
    """A bidirectional LSTM that halves the length before each layer."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.ModuleList(nn.LSTM(w, 64, batch_first=True, bidirectional=True) for w in (80, 256))

        def forward(self, x):
            for lstm in self.inner:
                x, _ = lstm(x.reshape(x.shape[0], x.shape[1] // 2, -1))
            return x
    return Net()


@layers("anchors", [(64, 20, 20)])
def anchors(torch, nn):
    """Boxes of a detector: offsets of a grid, clipped, with the best class."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Conv2d(64, 3 * 85, 1)

        def forward(self, x):
            y = self.head(x).unflatten(1, (3, 85)).permute(0, 1, 3, 4, 2).sigmoid()
            gy, gx = torch.meshgrid(torch.arange(20.), torch.arange(20.), indexing="ij")
            grid = torch.stack([gx, gy], -1)
            y[..., :2] = (y[..., :2] * 2 - 0.5 + grid) * 16
            y[..., 2:4] = (y[..., 2:4] * 2) ** 2 * 30
            score, label = y[..., 5:].max(-1)
            return torch.cat([y[..., :4], (score * y[..., 4])[..., None], label[..., None].float()], -1).flatten(1, 3)
    return Net()
