# SPDX-License-Identifier: Apache-2.0
"""Models written with PyTorch alone, as people write their own."""
from catalogue import entry, image


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


@entry("experts")
def experts(small, batch):
    """All experts for each row, weighted, as a loop over them."""
    import torch
    count, width, inner = (8, 16, 32) if small else (64, 128, 256)

    class Experts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = torch.nn.Linear(width, count)
            self.all = torch.nn.ModuleList([torch.nn.Sequential(torch.nn.Linear(width, inner), torch.nn.GELU(), torch.nn.Linear(inner, width)) for _ in range(count)])

        def forward(self, x):
            weights = self.gate(x).softmax(-1)
            return sum(weights[:, i:i + 1] * expert(x) for i, expert in enumerate(self.all))

    return Experts(), (torch.rand(batch, width),)


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
