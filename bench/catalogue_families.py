# SPDX-License-Identifier: Apache-2.0
"""Further families, one model each, that nothing was tuned for when they were added: the smallest usual size, or a few layers of a larger one."""
from catalogue import entry
from catalogue_language import NARROW, language_model, pictures, samples, tokens
from catalogue_vision import timm_model, torchvision_model

for name in ("alexnet", "vgg11", "mobilenet_v2", "regnet_x_800mf", "shufflenet_v2_x0_5", "resnet18", "mnasnet0_5"):
    torchvision_model(name)
for name in ("mobilenetv4_conv_small", "fastvit_t8", "mobileone_s1", "efficientvit_b0", "tiny_vit_5m_224", "xcit_nano_12_p16_224", "crossvit_tiny_240", "twins_svt_small",
             "gcvit_xxtiny", "focalnet_tiny_srf", "davit_tiny", "eca_nfnet_l0", "dla34", "dpn68", "skresnet18", "rexnet_100", "mixnet_s", "tinynet_a", "lcnet_100", "repvit_m1",
             "starnet_s1", "inception_next_tiny", "convformer_s18", "visformer_tiny", "resmlp_12_224", "gmixer_12_224", "ese_vovnet19b_dw", "xception41", "botnet26t_256",
             "halonet26t", "sequencer2d_s", "pit_ti_224", "coat_lite_tiny", "mambaout_femto", "efficientformer_l1", "hardcorenas_a", "nest_tiny", "hgnetv2_b0", "cs3darknet_m"):
    timm_model(name, size=240 if name == "crossvit_tiny_240" else 256 if name in ("botnet26t_256", "halonet26t") else 224, small_size=224)

SPEECH = {"num_hidden_layers": 4}
for name, cls, config, small, inputs in (
        ("deberta_v2", "DebertaV2Model", ("DebertaV2Config", {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 6, "intermediate_size": 1536, "vocab_size": 8000,
                                                              "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 256}), NARROW, tokens(128)),
        ("roformer", "RoFormerModel", ("RoFormerConfig", {"num_hidden_layers": 4, "vocab_size": 8000, "embedding_size": 768}), {**NARROW, "embedding_size": 64}, tokens(128)),
        ("convbert", "ConvBertModel", ("ConvBertConfig", {"num_hidden_layers": 4, "vocab_size": 8000}), NARROW, tokens(128)),
        ("fnet", "FNetModel", ("FNetConfig", {"num_hidden_layers": 4, "vocab_size": 8000}), {"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128},
         tokens(128, mask=False)),
        ("minilm", "BertModel", ("BertConfig", {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536, "vocab_size": 8000}), NARROW,
         tokens(64)),
        ("sew", "SEWModel", ("SEWConfig", SPEECH), NARROW, samples(48000, 8000)),
        ("wav2vec2_conformer", "Wav2Vec2ConformerModel", ("Wav2Vec2ConformerConfig", SPEECH), NARROW, samples(48000, 8000)),
        ("regnet_hf", "RegNetModel", ("RegNetConfig", {}), {"hidden_sizes": [32, 64, 64, 64], "depths": [1, 1, 1, 1], "groups_width": 16}, pictures(224, 64)),
        ("mobilevitv2", "MobileViTV2Model", ("MobileViTV2Config", {}), {}, pictures(256, 64)),
        ("dpt", "DPTForDepthEstimation", ("DPTConfig", {"num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3], "image_size": 224}), NARROW, pictures(224, 224)),
        ("glpn", "GLPNForDepthEstimation", ("GLPNConfig", {}), {}, pictures(256, 64)),
        ("timesformer", "TimesformerModel", ("TimesformerConfig", {"num_hidden_layers": 2}), NARROW,
         lambda batch, small: (["pixel_values"], [__import__("torch").rand(batch, 8, 3, 224, 224)])),
        ("patchtst", "PatchTSTModel", ("PatchTSTConfig", {"num_input_channels": 7, "context_length": 512, "patch_length": 16, "patch_stride": 8}), {},
         lambda batch, small: (["past_values"], [__import__("torch").rand(batch, 512, 7)]))):
    language_model(name, cls, config, small, inputs)


def sequence(name, make, inputs):
    """A module of PyTorch's and the dims of its inputs, without the batch; small: the same."""
    def both(small, batch):
        import torch
        return make(torch, torch.nn), tuple(torch.rand(batch, *dims) for dims in inputs)
    entry(name)(both)


def tcn(torch, nn):
    """Dilated causal convolutions with residual sums."""
    class Causal(nn.Module):
        def __init__(self, a, b, dilation):
            super().__init__()
            self.pad, self.first, self.last = 2 * dilation, nn.Conv1d(a, b, 3, dilation=dilation), nn.Conv1d(b, b, 3, dilation=dilation)
            self.skip = nn.Conv1d(a, b, 1) if a != b else nn.Identity()

        def forward(self, x):
            y = torch.relu(self.first(nn.functional.pad(x, (self.pad, 0))))
            return torch.relu(self.skip(x) + torch.relu(self.last(nn.functional.pad(y, (self.pad, 0)))))

    return nn.Sequential(*[Causal(a, b, 2 ** k) for k, (a, b) in enumerate([(16, 64)] + [(64, 64)] * 6)], nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 5))


def vocoder(torch, nn):
    """Transposed convolutions along time, each followed by dilated residual ones."""
    class Residual(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.steps = nn.ModuleList([nn.Conv1d(c, c, 3, padding=d, dilation=d) for d in (1, 3, 5)])

        def forward(self, x):
            for step in self.steps:
                x = x + step(nn.functional.leaky_relu(x, 0.1))
            return x

    layers, c = [nn.Conv1d(80, 256, 7, padding=3)], 256
    for rate in (8, 8, 2, 2):
        layers += [nn.LeakyReLU(0.1), nn.ConvTranspose1d(c, c // 2, 2 * rate, rate, rate // 2), Residual(c // 2)]
        c //= 2
    return nn.Sequential(*layers, nn.LeakyReLU(0.1), nn.Conv1d(c, 1, 7, padding=3), nn.Tanh())


def waveform_unet(torch, nn):
    """Down by strided, up by transposed convolutions along time, gated, with an LSTM between, as separators of sources have it."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [1, 32, 64, 128, 256]
            self.down = nn.ModuleList([nn.Sequential(nn.Conv1d(a, b, 8, 4, 2), nn.ReLU(), nn.Conv1d(b, 2 * b, 1), nn.GLU(1)) for a, b in zip(widths, widths[1:])])
            self.up = nn.ModuleList([nn.Sequential(nn.Conv1d(b, 2 * b, 1), nn.GLU(1), nn.ConvTranspose1d(b, a, 8, 4, 2), nn.ReLU() if a > 1 else nn.Identity())
                                     for a, b in zip(widths, widths[1:])][::-1])
            self.inner = nn.LSTM(256, 128, 2, bidirectional=True, batch_first=True)

        def forward(self, x):
            kept = []
            for step in self.down:
                x = step(x)
                kept.append(x)
            x = self.inner(x.transpose(1, 2))[0].transpose(1, 2)
            for step, skip in zip(self.up, kept[::-1]):
                x = step(x + skip)
            return x
    return Net()


def separator(torch, nn):
    """Conv-TasNet's mask: dilated depthwise convolutions between 1 x 1 ones, PReLU and global norms."""
    class Block(nn.Module):
        def __init__(self, dilation):
            super().__init__()
            self.inner = nn.Sequential(nn.Conv1d(128, 256, 1), nn.PReLU(), nn.GroupNorm(1, 256), nn.Conv1d(256, 256, 3, padding=dilation, dilation=dilation, groups=256),
                                       nn.PReLU(), nn.GroupNorm(1, 256), nn.Conv1d(256, 128, 1))

        def forward(self, x):
            return x + self.inner(x)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.squeeze = nn.Conv1d(1, 256, 16, 8), nn.Conv1d(256, 128, 1)
            self.blocks = nn.Sequential(*[Block(2 ** k) for _ in range(2) for k in range(6)])
            self.mask, self.decode = nn.Conv1d(128, 512, 1), nn.ConvTranspose1d(256, 1, 16, 8)

        def forward(self, x):
            y = torch.relu(self.encode(x))
            masks = torch.relu(self.mask(self.blocks(self.squeeze(y)))).view(x.shape[0], 2, 256, -1)
            return torch.cat([self.decode(y * masks[:, k]) for k in range(2)], 1)
    return Net()


def crnn(torch, nn):
    """Text in a line: convolutions, then two bidirectional LSTMs along the columns."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            layers = []
            for a, b, pool in ((1, 64, 2), (64, 128, 2), (128, 256, None), (256, 256, (2, 1)), (256, 512, None), (512, 512, (2, 1))):
                layers += [nn.Conv2d(a, b, 3, 1, 1), nn.BatchNorm2d(b), nn.ReLU()] + ([nn.MaxPool2d(pool)] if pool else [])
            self.body, self.last = nn.Sequential(*layers, nn.Conv2d(512, 512, (2, 1)), nn.ReLU()), nn.Linear(512, 97)
            self.inner = nn.LSTM(512, 256, 2, bidirectional=True, batch_first=True)

        def forward(self, x):
            return self.last(self.inner(self.body(x).squeeze(2).transpose(1, 2))[0])
    return Net()


def perceptron(*sizes):
    return lambda torch, nn: nn.Sequential(*[k for a, b in zip(sizes, sizes[1:]) for k in (nn.Linear(a, b), nn.ReLU())][:-1])


def lenet(torch, nn):
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(),
                         nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10))


def small_cnn(torch, nn):
    return nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4096, 128), nn.ReLU(), nn.Linear(128, 10))


def keyword_spotter(torch, nn):
    """Depthwise separable convolutions over a spectrogram."""
    layers = [nn.Conv2d(1, 64, (10, 4), (2, 2), (5, 1)), nn.BatchNorm2d(64), nn.ReLU()]
    for _ in range(4):
        layers += [nn.Conv2d(64, 64, 3, 1, 1, groups=64), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 64, 1), nn.BatchNorm2d(64), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 12))


def forecaster(torch, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.last = nn.GRU(8, 64, 2, batch_first=True), nn.Linear(64, 24)

        def forward(self, x):
            return self.last(self.inner(x)[0][:, -1])
    return Net()


def conv_lstm(torch, nn):
    """A cell of convolutions, four steps of it written out."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.gates = nn.Conv2d(1 + 32, 4 * 32, 3, padding=1)

        def forward(self, x):
            h = c = x.new_zeros(x.shape[0], 32, 48, 48)
            for t in range(4):
                i, f, o, g = self.gates(torch.cat([x[:, t], h], 1)).chunk(4, 1)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
            return h
    return Net()


def single_shot(torch, nn):
    """A detector's boxes and scores, decoded, then suppressed by one class's NonMaxSuppression."""
    import torchvision

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            layers = []
            for a, b in ((3, 16), (16, 32), (32, 64), (64, 64)):
                layers += [nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU()]
            self.body, self.boxes, self.scores = nn.Sequential(*layers), nn.Conv2d(64, 12, 3, padding=1), nn.Conv2d(64, 3, 3, padding=1)

        def forward(self, x):
            y = self.body(x)
            boxes = self.boxes(y).permute(0, 2, 3, 1).reshape(-1, 4)
            boxes = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:].exp()], 1)
            scores = self.scores(y).permute(0, 2, 3, 1).reshape(-1).sigmoid()
            kept = torchvision.ops.nms(boxes, scores, 0.5)
            return torch.cat([boxes[kept], scores[kept][:, None]], 1)
    return Net()


for name, make, inputs in (("tcn", tcn, [(16, 256)]), ("vocoder", vocoder, [(80, 100)]), ("waveform_unet", waveform_unet, [(1, 16384)]), ("separator", separator, [(1, 16000)]),
                           ("crnn", crnn, [(1, 32, 128)]), ("mlp_small", perceptron(20, 64, 64, 3), [(20,)]), ("mlp_wide", perceptron(128, 512, 512, 512, 10), [(128,)]),
                           ("lenet", lenet, [(1, 28, 28)]), ("small_cnn", small_cnn, [(3, 32, 32)]), ("keyword_spotter", keyword_spotter, [(1, 49, 10)]),
                           ("forecaster", forecaster, [(96, 8)]), ("conv_lstm", conv_lstm, [(4, 1, 48, 48)]),
                           ("single_shot", single_shot, [(3, 256, 256)])):
    sequence(name, make, inputs)


def between(name, op, channels, *dims, out=None):
    """One op between 1 x 1 convolutions and activations, as it stands in a network: what is around it decides about layouts."""
    def make(small, batch):
        import torch
        from torch import nn
        conv = getattr(nn, f"Conv{len(dims)}d")
        inner = op(torch, nn)
        return nn.Sequential(conv(8, channels, 1), nn.ReLU(), inner, nn.ReLU(), conv(out or channels, 8, 1)), (torch.rand(batch, 8, *dims),)
    entry(f"between_{name}")(make)


def function_module(function):
    def make(torch, nn):
        class Function(nn.Module):
            def forward(self, x):
                return function(torch, x)
        return Function()
    return make


def sample_twisted(torch, x):
    grid = torch.stack(torch.meshgrid(*[torch.linspace(-1, 1, n) for n in x.shape[2:]], indexing="ij"), -1)
    return torch.nn.functional.grid_sample(x, (grid * 0.9 + 0.1 * grid.flip(-1)).expand(x.shape[0], -1, -1, -1), align_corners=False)


between("depthwise_1d", lambda torch, nn: nn.Conv1d(256, 256, 3, padding=1, groups=256), 256, 2000)
between("dilated_depthwise_1d", lambda torch, nn: nn.Conv1d(256, 256, 3, padding=8, dilation=8, groups=256), 256, 2000)
between("volume", lambda torch, nn: nn.Conv3d(64, 64, 3, padding=1), 64, 8, 28, 28)
between("flat_volume", lambda torch, nn: nn.Conv3d(64, 144, (1, 3, 3), padding=(0, 1, 1)), 64, 8, 28, 28, out=144)
between("upright_volume", lambda torch, nn: nn.Conv3d(144, 64, (3, 1, 1), padding=(1, 0, 0)), 144, 8, 28, 28, out=64)
between("depthwise_volume", lambda torch, nn: nn.Conv3d(64, 64, 3, padding=1, groups=64), 64, 8, 14, 14)
between("transposed_1d", lambda torch, nn: nn.ConvTranspose1d(256, 128, 16, 8, 4), 256, 100, out=128)
between("enlarged", lambda torch, nn: nn.Upsample(scale_factor=2.0), 64, 56, 56)
between("largest_of_5", lambda torch, nn: nn.MaxPool2d(5, 1, 2), 64, 56, 56)
between("long_groups", lambda torch, nn: nn.Conv1d(768, 768, 128, padding=64, groups=16), 768, 149)
between("sampled", function_module(sample_twisted), 64, 56, 56)
between("cumulated", function_module(lambda torch, x: torch.cumsum(x, 2)), 64, 56, 56)
sequence("transposed_first", lambda torch, nn: nn.ConvTranspose1d(256, 128, 16, 8, 4), [(256, 100)])
