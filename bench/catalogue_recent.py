# SPDX-License-Identifier: Apache-2.0
"""Blocks of recent models as their authors write them: decoders of masks, detectors with areas of attention, diffusion over video, vocoders, matchers, recommenders, steps of streams."""
from catalogue_forms import block, scaled_rows, stacked
from catalogue_layers import layers


def heads_of(x, n):
    return x.unflatten(-1, (n, -1)).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).flatten(2)


@layers("mask_decoder", [(256, 64, 64), (7, 256)], [(256, 16, 16), (7, 256)])
def mask_decoder(torch, nn):
    """Tokens and an image attend to each other in turns; masks are products of small networks of tokens with an enlarged image."""
    class Across(nn.Module):
        def __init__(self, inner=128):
            super().__init__()
            self.q, self.k, self.v, self.out = nn.Linear(256, inner), nn.Linear(256, inner), nn.Linear(256, inner), nn.Linear(inner, 256)

        def forward(self, q, k, v):
            q, k, v = heads_of(self.q(q), 8), heads_of(self.k(k), 8), heads_of(self.v(v), 8)
            weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
            return self.out(joined(weights @ v))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.own, self.to_image, self.to_tokens = Across(256), Across(), Across()
            self.mlp = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 256))
            self.norms = nn.ModuleList(nn.LayerNorm(256) for _ in range(4))

        def forward(self, t, x, at, where):
            t = self.norms[0](t + self.own(t + at, t + at, t))
            t = self.norms[1](t + self.to_image(t + at, x + where, x))
            t = self.norms[2](t + self.mlp(t))
            return t, self.norms[3](x + self.to_tokens(x + where, t + at, t))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.last, self.norm = nn.ModuleList(Layer() for _ in range(2)), Across(), nn.LayerNorm(256)
            self.enlarge = nn.Sequential(nn.ConvTranspose2d(256, 64, 2, 2), nn.GroupNorm(1, 64), nn.GELU(), nn.ConvTranspose2d(64, 32, 2, 2), nn.GELU())
            self.networks = nn.ModuleList(nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 32)) for _ in range(4))
            self.quality = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4))
            self.frequencies = nn.Parameter(torch.randn(2, 128))

        def forward(self, image, prompts):
            b, c, h, w = image.shape
            y, x = (torch.arange(n, dtype=image.dtype, device=image.device) / n for n in (h, w))
            grid = torch.stack([x[None, :].expand(h, w), y[:, None].expand(h, w)], -1) * 2 - 1
            grid = 6.2831853 * (grid @ self.frequencies)
            where = torch.cat([grid.sin(), grid.cos()], -1).reshape(1, h * w, c)
            t, x = prompts, image.flatten(2).permute(0, 2, 1)
            for layer in self.layers:
                t, x = layer(t, x, prompts, where)
            t = self.norm(t + self.last(t + prompts, x + where, x))
            pixels = self.enlarge(x.transpose(1, 2).view(b, c, h, w))
            small = torch.stack([net(t[:, 1 + i]) for i, net in enumerate(self.networks)], 1)
            return (small @ pixels.flatten(2)).view(b, 4, 4 * h, 4 * w), self.quality(t[:, 0])
    return Net()


@layers("area_detector", [(3, 320, 320)], [(3, 128, 128)])
def area_detector(torch, nn):
    """A detector of this year: blocks of split and joined channels, attention in areas of the image, boxes as expectations over 16 bins."""
    class Conv(nn.Module):
        def __init__(self, a, b, k=1, s=1, g=1, act=True):
            super().__init__()
            self.conv, self.bn, self.act = nn.Conv2d(a, b, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(b, eps=1e-3), nn.SiLU() if act else nn.Identity()

        def forward(self, x):
            return self.act(self.bn(self.conv(x)))

    class Split(nn.Module):
        def __init__(self, a, b, inner):
            super().__init__()
            self.c = b // 4
            self.into, self.inner, self.out = Conv(a, 2 * self.c), nn.ModuleList(inner(self.c) for _ in range(2)), Conv(4 * self.c, b)

        def forward(self, x):
            parts = list(self.into(x).chunk(2, 1))
            parts.extend(m(parts[-1]) for m in self.inner)
            return self.out(torch.cat(parts, 1))

    class Bottleneck(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.one, self.two = Conv(c, c // 2, 3), Conv(c // 2, c, 3)

        def forward(self, x):
            return x + self.two(self.one(x))

    class Area(nn.Module):
        def __init__(self, c, areas=4):
            super().__init__()
            self.areas, self.heads, self.size = areas, c // 32, 32
            self.qkv, self.out, self.where, self.mlp = Conv(c, 3 * c, act=False), Conv(c, c, act=False), Conv(c, c, 5, 1, c, act=False), nn.Sequential(Conv(c, 2 * c), Conv(2 * c, c, act=False))

        def forward(self, x):
            b, c, h, w = x.shape
            n = h * w
            qkv = self.qkv(x).flatten(2).transpose(1, 2).reshape(b * self.areas, n // self.areas, 3 * c)
            q, k, v = qkv.view(b * self.areas, n // self.areas, self.heads, 3 * self.size).permute(0, 2, 3, 1).split([self.size] * 3, 2)
            weights = ((q.transpose(-2, -1) @ k) * self.size ** -0.5).softmax(-1)
            y = (v @ weights.transpose(-2, -1)).permute(0, 3, 1, 2)
            v = v.permute(0, 3, 1, 2)
            y, v = (t.reshape(b, n, c).reshape(b, h, w, c).permute(0, 3, 1, 2).contiguous() for t in (y, v))
            x = x + self.out(y + self.where(v))
            return x + self.mlp(x)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(Conv(3, 16, 3, 2), Conv(16, 32, 3, 2), Split(32, 64, Bottleneck))
            self.p3 = nn.Sequential(Conv(64, 64, 3, 2), Split(64, 128, Bottleneck))
            self.p4 = nn.Sequential(Conv(128, 128, 3, 2), Split(128, 128, Area))
            self.p5, self.pool = nn.Sequential(Conv(128, 256, 3, 2), Split(256, 256, lambda c: Area(c, 1))), nn.MaxPool2d(5, 1, 2)
            self.spp = nn.ModuleList([Conv(256, 128), Conv(512, 256)])
            self.n4, self.n3, self.down, self.m4 = Split(384, 128, Bottleneck), Split(256, 64, Bottleneck), Conv(64, 64, 3, 2), Split(192, 128, Bottleneck)
            self.boxes = nn.ModuleList(nn.Sequential(Conv(c, 64, 3), Conv(64, 64, 3), nn.Conv2d(64, 64, 1)) for c in (64, 128))
            self.classes = nn.ModuleList(nn.Sequential(Conv(c, c, 3, 1, c), Conv(c, 80), nn.Conv2d(80, 80, 1)) for c in (64, 128))
            self.register_buffer("bins", torch.arange(16.0))

        def forward(self, x):
            p3 = self.p3(self.stem(x))
            p4 = self.p4(p3)
            y = [self.spp[0](self.p5(p4))]
            y.extend(self.pool(y[-1]) for _ in range(3))
            p5 = self.spp[1](torch.cat(y, 1))
            up = nn.functional.interpolate
            n4 = self.n4(torch.cat([up(p5, scale_factor=2.0), p4], 1))
            n3 = self.n3(torch.cat([up(n4, scale_factor=2.0), p3], 1))
            levels = (n3, self.m4(torch.cat([self.down(n3), n4], 1)))
            found, anchors, strides = [], [], []
            for f, box, cls, stride in zip(levels, self.boxes, self.classes, (8, 16)):
                b, _, h, w = f.shape
                found.append(torch.cat([box(f), cls(f)], 1).view(b, 144, -1))
                sy, sx = torch.meshgrid(torch.arange(h, dtype=f.dtype, device=f.device) + 0.5, torch.arange(w, dtype=f.dtype, device=f.device) + 0.5, indexing="ij")
                anchors.append(torch.stack((sx, sy), -1).view(-1, 2))
                strides.append(torch.full((h * w, 1), float(stride), dtype=f.dtype, device=f.device))
            box, cls = torch.cat(found, 2).split((64, 80), 1)
            anchors, strides = torch.cat(anchors).t()[None], torch.cat(strides).t()
            far = (box.view(box.shape[0], 4, 16, -1).transpose(2, 1).softmax(1) * self.bins.view(1, 16, 1, 1)).sum(1)
            low, high = anchors - far[:, :2], anchors + far[:, 2:]
            return torch.cat([torch.cat([(low + high) / 2, high - low], 1) * strides, cls.sigmoid()], 1)
    return Net()


@layers("video_diffusion", [(1560, 64), (6, 768), (77, 512)], [(96, 64), (6, 768), (77, 512)])
def video_diffusion(torch, nn):
    """Diffusion over video: queries and keys normed over all heads, rotated by three axes, six modulations a layer, text by cross attention without rotation."""
    def turned(x, frames=6):
        n, size = x.shape[1], x.shape[-1]
        side = n // frames
        width = 26 if side % 26 == 0 else 4
        index = torch.arange(n, device=x.device)
        axes = (index // side, index % side // width, index % width)
        parts = [size // 2 - 2 * (size // 6), size // 6, size // 6]
        angles = torch.cat([a[:, None].float() * (10000.0 ** (-torch.arange(p, device=x.device).float() / p)) for a, p in zip(axes, parts)], -1)
        cos, sin = angles.cos().to(x.dtype)[None, :, None], angles.sin().to(x.dtype)[None, :, None]
        even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(3)

    class Attend(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.o = (nn.Linear(768, 768) for _ in range(4))
            self.norm_q, self.norm_k = scaled_rows(torch, nn, 768), scaled_rows(torch, nn, 768)

        def forward(self, x, other=None):
            y = x if other is None else other
            q, k, v = self.norm_q(self.q(x)), self.norm_k(self.k(y)), self.v(y)
            q, k, v = (t.unflatten(-1, (6, 128)) for t in (q, k, v))
            if other is None:
                q, k = turned(q), turned(k)
            y = nn.functional.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)))
            return self.o(y.transpose(1, 2).flatten(2))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.own, self.text, self.table = Attend(), Attend(), nn.Parameter(torch.randn(1, 6, 768) / 28)
            self.first, self.middle, self.last = nn.LayerNorm(768, elementwise_affine=False), nn.LayerNorm(768), nn.LayerNorm(768, elementwise_affine=False)
            self.mlp = nn.Sequential(nn.Linear(768, 3072), nn.GELU(approximate="tanh"), nn.Linear(3072, 768))

        def forward(self, x, time, text):
            shift, scale, gate, shift2, scale2, gate2 = (self.table + time).chunk(6, 1)
            x = x + self.own(self.first(x) * (1 + scale) + shift) * gate
            x = x + self.text(self.middle(x), text)
            return x + self.mlp(self.last(x) * (1 + scale2) + shift2) * gate2

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.text, self.layers = nn.Linear(64, 768), nn.Sequential(nn.Linear(512, 768), nn.GELU(approximate="tanh"), nn.Linear(768, 768)), nn.ModuleList(Layer() for _ in range(2))
            self.out = nn.Linear(768, 64)

        def forward(self, x, time, text):
            x, text = self.into(x), self.text(text)
            for layer in self.layers:
                x = layer(x, time, text)
            return self.out(x)
    return Net()


@layers("snake_vocoder", [(80, 96)], [(80, 24)])
def snake_vocoder(torch, nn):
    """A vocoder whose activation, x + sin(ax) squared by a, is computed at twice the rate between two filters."""
    class Snake(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.c, self.alpha, self.beta = c, nn.Parameter(torch.rand(c) / 2), nn.Parameter(torch.rand(c) / 2)
            taps = torch.sinc((torch.arange(12) - 5.5) * 0.5) * torch.kaiser_window(12, periodic=False, beta=4.0)
            self.register_buffer("taps", (taps / taps.sum()).view(1, 1, 12))

        def forward(self, x):
            taps = self.taps.expand(self.c, -1, -1)
            x = nn.functional.pad(x, (5, 5), mode="replicate")
            x = 2 * nn.functional.conv_transpose1d(x, taps, stride=2, groups=self.c)[..., 15:-15]
            alpha, beta = self.alpha.exp()[None, :, None], self.beta.exp()[None, :, None]
            x = x + (1.0 / (beta + 1e-9)) * torch.sin(x * alpha).pow(2)
            return nn.functional.conv1d(nn.functional.pad(x, (5, 6), mode="replicate"), taps, stride=2, groups=self.c)

    class Residual(nn.Module):
        def __init__(self, c, k):
            super().__init__()
            self.parts = nn.ModuleList(nn.Sequential(Snake(c), nn.Conv1d(c, c, k, padding=(k - 1) // 2 * d, dilation=d), Snake(c), nn.Conv1d(c, c, k, padding=k // 2)) for d in (1, 3))

        def forward(self, x):
            for part in self.parts:
                x = x + part(x)
            return x

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.up, self.inner, c = nn.Conv1d(80, 192, 7, padding=3), nn.ModuleList(), nn.ModuleList(), 192
            for rate in (4, 4, 2):
                self.up.append(nn.ConvTranspose1d(c, c // 2, 2 * rate, rate, padding=rate // 2))
                c //= 2
                self.inner.append(nn.ModuleList(Residual(c, k) for k in (3, 7)))
            self.last, self.act = nn.Conv1d(c, 1, 7, padding=3, bias=False), Snake(c)

        def forward(self, x):
            x = self.first(x)
            for up, inner in zip(self.up, self.inner):
                x = up(x)
                x = sum(m(x) for m in inner) / len(inner)
            return torch.clamp(self.last(self.act(x)), min=-1.0, max=1.0)
    return Net()


@layers("spectral_vocoder", [(100, 200)], [(100, 40)])
def spectral_vocoder(torch, nn):
    """ConvNeXt's blocks along a line, a scale a layer, then magnitude and phase and an inverse transform by products, frames that overlap are added."""
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.depth, self.norm, self.up, self.down, self.scale = nn.Conv1d(384, 384, 7, padding=3, groups=384), nn.LayerNorm(384, eps=1e-6), nn.Linear(384, 1152), nn.Linear(1152, 384), nn.Parameter(torch.full((384,), 0.1))

        def forward(self, x):
            y = self.norm(self.depth(x).transpose(1, 2))
            return x + (self.scale * self.down(nn.functional.gelu(self.up(y)))).transpose(1, 2)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.norm, self.blocks, self.last, self.head = nn.Conv1d(100, 384, 7, padding=3), nn.LayerNorm(384, eps=1e-6), nn.ModuleList(Block() for _ in range(6)), nn.LayerNorm(384, eps=1e-6), nn.Linear(384, 514)
            k, n = torch.arange(257.0)[:, None], torch.arange(512.0)[None]
            weight = torch.full((257, 1), 2.0 / 512)
            weight[0] = weight[-1] = 1.0 / 512
            self.register_buffer("real", weight * torch.cos(6.2831853 * k * n / 512) * torch.hann_window(512))
            self.register_buffer("imaginary", -weight * torch.sin(6.2831853 * k * n / 512) * torch.hann_window(512))

        def forward(self, x):
            x = self.norm(self.into(x).transpose(1, 2)).transpose(1, 2)
            for layer in self.blocks:
                x = layer(x)
            size, phase = self.head(self.last(x.transpose(1, 2))).chunk(2, -1)
            size = size.exp().clip(max=1e2)
            frames = (size * phase.cos()) @ self.real + (size * phase.sin()) @ self.imaginary
            parts = frames.unflatten(-1, (4, 128)).unbind(2)
            return sum(nn.functional.pad(part, (0, 0, i, 3 - i)) for i, part in enumerate(parts)).flatten(1)[:, 192:-192]
    return Net()


@layers("sequence_recommender", [(211, 256), lambda torch, b: (torch.arange(211)[None, :] < torch.randint(100, 211, (b, 1)))])
def sequence_recommender(torch, nn):
    """Attention without a softmax: SiLU of scores and biases of positions, divided by the length, gated, masked by the causal triangle and by lengths."""
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.out, self.norm, self.last = nn.Linear(256, 4 * 4 * 64), nn.Linear(256, 256), nn.LayerNorm(256), nn.LayerNorm(256)
            self.where = nn.Parameter(torch.randn(2 * 211 - 1) / 8)

        def forward(self, x, valid):
            n = x.shape[1]
            u, v, q, k = nn.functional.silu(self.into(self.norm(x))).split(256, -1)
            q, k, v = (t.view(t.shape[0], n, 4, 64) for t in (q, k, v))
            index = torch.arange(n, device=x.device)
            scores = torch.einsum("bnhd,bmhd->bhnm", q, k) + self.where[index[None, :] - index[:, None] + n - 1]
            mask = torch.tril(torch.ones(n, n, dtype=torch.bool, device=x.device))[None, None] & valid[:, None, None, :]
            weights = nn.functional.silu(scores) / n * mask
            y = torch.einsum("bhnm,bmhd->bnhd", weights, v).reshape(x.shape)
            return x + self.out(u * self.last(y))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Layer() for _ in range(3))

        def forward(self, x, valid):
            for layer in self.layers:
                x = layer(x, valid)
            return nn.functional.normalize(x[:, -1], dim=-1)
    return Net()


@layers("keypoint_matcher", [(300, 256), (260, 256), (300, 2), (260, 2)], [(60, 256), (52, 256), (60, 2), (52, 2)])
def keypoint_matcher(torch, nn):
    """Two sets of points: rotary encodings that are learned from positions, cross attention both ways from one product, a double softmax with a bin for no match."""
    def turned(x, angles):
        even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
        return x * angles[0] + torch.stack((-odd, even), -1).flatten(-2) * angles[1]

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out, self.both, self.value, self.across = nn.Linear(256, 768), nn.Linear(256, 256), nn.Linear(256, 256), nn.Linear(256, 256), nn.Linear(256, 256)
            self.mlp, self.mlp2 = (nn.Sequential(nn.Linear(512, 512), nn.LayerNorm(512), nn.GELU(), nn.Linear(512, 256)) for _ in range(2))

        def own(self, x, angles):
            q, k, v = self.qkv(x).unflatten(-1, (4, -1, 3)).transpose(1, 2).unbind(-1)
            y = nn.functional.scaled_dot_product_attention(turned(q, angles), turned(k, angles), v)
            return x + self.mlp(torch.cat([x, self.out(joined(y))], -1))

        def forward(self, a, b, angles_a, angles_b):
            a, b = self.own(a, angles_a), self.own(b, angles_b)
            qa, qb, va, vb = heads_of(self.both(a), 4) * 64 ** -0.25, heads_of(self.both(b), 4) * 64 ** -0.25, heads_of(self.value(a), 4), heads_of(self.value(b), 4)
            scores = torch.einsum("bhid,bhjd->bhij", qa, qb)
            to_a = torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), vb)
            to_b = torch.einsum("bhji,bhjd->bhid", scores.transpose(-2, -1).contiguous().softmax(-1).transpose(-2, -1), va)
            return a + self.mlp2(torch.cat([a, self.across(joined(to_a))], -1)), b + self.mlp2(torch.cat([b, self.across(joined(to_b))], -1))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.where, self.layers, self.project, self.matchable = nn.Linear(2, 32, bias=False), nn.ModuleList(Layer() for _ in range(3)), nn.Linear(256, 256), nn.Linear(256, 1)

        def angles(self, points):
            turns = self.where(points)
            turns = torch.stack([turns, turns], -1).flatten(-2).unsqueeze(1)
            return turns.cos(), turns.sin()

        def forward(self, a, b, pa, pb):
            angles_a, angles_b = self.angles(pa), self.angles(pb)
            for layer in self.layers:
                a, b = layer(a, b, angles_a, angles_b)
            scores = torch.einsum("bmd,bnd->bmn", self.project(a) / 4, self.project(b) / 4)
            za, zb = self.matchable(a), self.matchable(b)
            sure = nn.functional.logsigmoid(za) + nn.functional.logsigmoid(zb).transpose(1, 2)
            inner = scores.log_softmax(2) + scores.transpose(-1, -2).contiguous().log_softmax(2).transpose(-1, -2) + sure
            full = torch.cat([inner, nn.functional.logsigmoid(-za)], 2)
            below = nn.functional.pad(nn.functional.logsigmoid(-zb).transpose(1, 2), (0, 1))
            return torch.cat([full, below], 1)
    return Net()


@layers("strip_segmenter", [(3, 256, 256)], [(3, 64, 64)])
def strip_segmenter(torch, nn):
    """Attention by convolutions: strips of 7, 11 and 21 taps for each channel, batch norms, scales a layer, then a decoder by low-rank factors (three turns)."""
    class Mixed(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.first = nn.Conv2d(c, c, 5, padding=2, groups=c)
            self.strips = nn.ModuleList(nn.Sequential(nn.Conv2d(c, c, (1, k), padding=(0, k // 2), groups=c), nn.Conv2d(c, c, (k, 1), padding=(k // 2, 0), groups=c)) for k in (7, 11, 21))
            self.mix = nn.Conv2d(c, c, 1)

        def forward(self, x):
            y = self.first(x)
            return x * self.mix(y + self.strips[0](y) + self.strips[1](y) + self.strips[2](y))

    class Layer(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.norm, self.last, self.one, self.two = nn.BatchNorm2d(c), nn.BatchNorm2d(c), nn.Parameter(torch.full((c,), 0.1)), nn.Parameter(torch.full((c,), 0.1))
            self.attend = nn.Sequential(nn.Conv2d(c, c, 1), nn.GELU(), Mixed(c), nn.Conv2d(c, c, 1))
            self.mlp = nn.Sequential(nn.Conv2d(c, 4 * c, 1), nn.Conv2d(4 * c, 4 * c, 3, padding=1, groups=4 * c), nn.GELU(), nn.Conv2d(4 * c, c, 1))

        def forward(self, x):
            y = self.norm(x)
            x = x + self.one[:, None, None] * (self.attend(y) + y)
            return x + self.two[:, None, None] * self.mlp(self.last(x))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            widths = (32, 64, 160)
            self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.GELU(), nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32))
            self.stages = nn.ModuleList(nn.Sequential(*(Layer(c) for _ in range(2))) for c in widths)
            self.down = nn.ModuleList(nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b)) for a, b in zip(widths, widths[1:]))
            self.into, self.out, self.classes = nn.Sequential(nn.Conv2d(256, 128, 1), nn.ReLU()), nn.Sequential(nn.Conv2d(128, 128, 1), nn.GroupNorm(32, 128), nn.ReLU()), nn.Conv2d(128, 19, 1)
            self.register_buffer("bases", torch.rand(1, 128, 16))

        def forward(self, x):
            x, found = self.stem(x), []
            for i, stage in enumerate(self.stages):
                x = stage(x if i == 0 else self.down[i - 1](x))
                found.append(x)
            size = found[1].shape[2:]
            x = self.into(torch.cat([nn.functional.interpolate(f, size=size, mode="bilinear", align_corners=False) for f in found], 1))
            b, c, h, w = x.shape
            x = x.view(b, c, h * w)
            bases = nn.functional.normalize(self.bases.expand(b, -1, -1), dim=1)
            codes = (x.transpose(1, 2) @ bases).softmax(-1)
            for _ in range(3):
                codes = codes * (x.transpose(1, 2) @ bases) / (codes @ (bases.transpose(1, 2) @ bases) + 1e-6)
                bases = bases * (x @ codes) / (bases @ (codes.transpose(1, 2) @ codes) + 1e-6)
            return nn.functional.interpolate(self.classes(self.out((bases @ codes.transpose(1, 2)).view(b, c, h, w))), scale_factor=4.0, mode="bilinear", align_corners=False)
    return Net()


@layers("large_windows", [(3, 224, 224)], [(3, 64, 64)])
def large_windows(torch, nn):
    """Depthwise windows of 13 x 13 and 31 x 31 between 1 x 1 convolutions, with responses that are normed over the image."""
    class Layer(nn.Module):
        def __init__(self, c, k):
            super().__init__()
            self.depth, self.norm = nn.Conv2d(c, c, k, padding=k // 2, groups=c, bias=False), nn.BatchNorm2d(c)
            self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, c // 4, 1), nn.ReLU(), nn.Conv2d(c // 4, c, 1), nn.Sigmoid())
            self.up, self.gamma, self.beta, self.down, self.last = nn.Linear(c, 4 * c), nn.Parameter(torch.rand(1, 1, 1, 4 * c)), nn.Parameter(torch.rand(1, 1, 1, 4 * c)), nn.Linear(4 * c, c), nn.BatchNorm2d(c)

        def forward(self, x):
            y = self.norm(self.depth(x))
            y = nn.functional.gelu(self.up((y * self.squeeze(y)).permute(0, 2, 3, 1)))
            size = torch.norm(y, p=2, dim=(1, 2), keepdim=True)
            y = self.down((self.gamma * (size / (size.mean(-1, keepdim=True) + 1e-6)) + 1) * y + self.beta)
            return x + self.last(y.permute(0, 3, 1, 2))

    def down(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.GELU())
    return nn.Sequential(down(3, 40), down(40, 80), Layer(80, 31), Layer(80, 13), down(80, 160), Layer(160, 13), Layer(160, 13), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(160, 100))


@layers("table_in_context", [(96, 12, 2), lambda torch, b: torch.rand(b, 64)])
def table_in_context(torch, nn):
    """A table as a context: attention along the columns of each row, then along the rows of each column, where only the first 64 rows are keys."""
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.columns, self.rows = (nn.MultiheadAttention(192, 6, batch_first=True) for _ in range(2))
            self.norms, self.mlp = nn.ModuleList(nn.LayerNorm(192, elementwise_affine=False) for _ in range(3)), nn.Sequential(nn.Linear(192, 768), nn.GELU(), nn.Linear(768, 192))

        def forward(self, x, known):
            b, r, c, w = x.shape
            y = x.reshape(b * r, c, w)
            x = self.norms[0](x + self.columns(y, y, y, need_weights=False)[0].view(b, r, c, w))
            y = x.transpose(1, 2).reshape(b * c, r, w)
            seen, asked = y[:, :known], y[:, known:]
            y = torch.cat([self.rows(seen, seen, seen, need_weights=False)[0], self.rows(asked, seen, seen, need_weights=False)[0]], 1)
            x = self.norms[1](x + y.view(b, c, r, w).transpose(1, 2))
            return self.norms[2](x + self.mlp(x))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells, self.labels, self.columns, self.layers, self.out = nn.Linear(2, 192), nn.Linear(1, 192), nn.Parameter(torch.randn(12, 192) / 14), nn.ModuleList(Layer() for _ in range(3)), nn.Linear(192, 10)

        def forward(self, table, labels):
            seen = table[:, :labels.shape[1]]
            mean, spread = seen.mean(1, keepdim=True), seen.std(1, keepdim=True) + 1e-6
            x = self.cells(((table - mean) / spread).clamp(-100, 100)) + self.columns
            y = self.labels(nn.functional.pad(labels, (0, table.shape[1] - labels.shape[1]), value=0.0)[..., None])
            x = torch.cat([x, y[:, :, None]], 2)
            for layer in self.layers:
                x = layer(x, labels.shape[1])
            return self.out(x[:, labels.shape[1]:, -1]).softmax(-1)
    return Net()


@layers("conformer_stream", [(16, 256), (3, 4, 64, 64), (3, 4, 64, 64), (3, 256, 14)])
def conformer_stream(torch, nn):
    """A chunk of a stream of speech: attention over the chunk and 64 kept frames, relative positions by a shift, causal convolutions that keep 14 frames, caches in and out."""
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.ff1, self.ff2 = (nn.Sequential(nn.LayerNorm(256), nn.Linear(256, 1024), nn.SiLU(), nn.Linear(1024, 256)) for _ in range(2))
            self.norm, self.q, self.k, self.v, self.where, self.out = nn.LayerNorm(256), nn.Linear(256, 256), nn.Linear(256, 256), nn.Linear(256, 256), nn.Linear(256, 256, bias=False), nn.Linear(256, 256)
            self.u, self.w = (nn.Parameter(torch.randn(4, 64) / 8) for _ in range(2))
            self.conv_norm, self.into, self.depth, self.inner, self.out2, self.last = nn.LayerNorm(256), nn.Conv1d(256, 512, 1), nn.Conv1d(256, 256, 15, groups=256), nn.LayerNorm(256), nn.Conv1d(256, 256, 1), nn.LayerNorm(256)

        def forward(self, x, keys, values, kept, table):
            x = x + 0.5 * self.ff1(x)
            y = self.norm(x)
            q = self.q(y).unflatten(-1, (4, 64))
            k, v = torch.cat([keys, heads_of(self.k(y), 4)], 2), torch.cat([values, heads_of(self.v(y), 4)], 2)
            p = heads_of(self.where(table)[None], 4)
            content, position = (q + self.u).transpose(1, 2) @ k.transpose(-2, -1), (q + self.w).transpose(1, 2) @ p.transpose(-2, -1)
            b, h, t, n = position.shape
            position = nn.functional.pad(position, (1, 0)).view(b, h, n + 1, t)[:, :, 1:].view(b, h, t, n)[..., :k.shape[2]]
            y = ((content + position) / 8).softmax(-1) @ v
            x = x + self.out(joined(y))
            y = nn.functional.glu(self.into(self.conv_norm(x).transpose(1, 2)), 1)
            y = torch.cat([kept, y], -1)
            x = x + self.out2(nn.functional.silu(self.inner(self.depth(y).transpose(1, 2))).transpose(1, 2)).transpose(1, 2)
            return self.last(x + 0.5 * self.ff2(x)), k[:, :, -64:], v[:, :, -64:], y[..., -14:]

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Layer() for _ in range(3))
            self.register_buffer("table", torch.randn(95, 256) / 4)

        def forward(self, x, keys, values, kept):
            new = []
            for i, layer in enumerate(self.layers):
                x, *state = layer(x, keys[:, i], values[:, i], kept[:, i], self.table)
                new.append(state)
            return x, *(torch.stack(s, 1) for s in zip(*new))
    return Net()


@layers("late_retriever", [lambda torch, b: torch.randint(1, 8000, (b, 120)), lambda torch, b: (torch.arange(120)[None] < torch.randint(30, 120, (b, 1))).long()])
def late_retriever(torch, nn):
    """Both heads of retrieval on an encoder: weights of terms, log(1 + relu) and the largest over tokens, and one normed vector a token; padding is left out of both."""
    class Attend(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.o = (nn.Linear(312, 312) for _ in range(4))

        def forward(self, x, mask):
            q, k, v = (heads_of(f(x), 12) for f in (self.q, self.k, self.v))
            return self.o(joined(nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places, self.norm = nn.Embedding(8000, 312), nn.Embedding(128, 312), nn.LayerNorm(312)
            self.attend, self.norms = nn.ModuleList(Attend() for _ in range(3)), nn.ModuleList(nn.LayerNorm(312) for _ in range(6))
            self.mlp = nn.ModuleList(nn.Sequential(nn.Linear(312, 1200), nn.GELU(), nn.Linear(1200, 312)) for _ in range(3))
            self.transform, self.bias, self.vector = nn.Sequential(nn.Linear(312, 312), nn.GELU(), nn.LayerNorm(312)), nn.Parameter(torch.zeros(8000)), nn.Linear(312, 96, bias=False)

        def forward(self, tokens, mask):
            x = self.norm(self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device)))
            keep = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
            for i in range(3):
                x = self.norms[2 * i](x + self.attend[i](x, keep))
                x = self.norms[2 * i + 1](x + self.mlp[i](x))
            terms = torch.log1p(torch.relu(self.transform(x) @ self.words.weight.t() + self.bias)) * mask[..., None]
            return terms.max(1).values, nn.functional.normalize(self.vector(x), dim=-1) * mask[..., None]
    return Net()


@layers("resampler", [(196, 1024)])
def resampler(torch, nn):
    """64 latents attend to picture features and to themselves at once, queries and keys normed by heads, then a gated projection to a language model's width."""
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.of_latents, self.of_context, self.q, self.kv, self.o = scaled_rows(torch, nn, 640), scaled_rows(torch, nn, 640), nn.Linear(640, 640, bias=False), nn.Linear(640, 320, bias=False), nn.Linear(640, 640, bias=False)
            self.qn, self.kn, self.norm, self.gate, self.up, self.down = scaled_rows(torch, nn, 80), scaled_rows(torch, nn, 80), scaled_rows(torch, nn, 640), nn.Linear(640, 1712, bias=False), nn.Linear(640, 1712, bias=False), nn.Linear(1712, 640, bias=False)

        def forward(self, latents, context):
            y = self.of_latents(latents)
            both = torch.cat([self.of_context(context), y], 1)
            k, v = self.kv(both).chunk(2, -1)
            q, k, v = self.qn(heads_of(self.q(y), 8)), self.kn(heads_of(k, 2)), heads_of(v, 2)
            k, v = (t[:, :, None].expand(-1, -1, 4, -1, -1).flatten(1, 2) for t in (k, v))
            weights = (q @ k.transpose(2, 3) * 80 ** -0.5).softmax(-1, dtype=torch.float32).to(q.dtype)
            latents = latents + self.o(joined(weights @ v))
            y = self.norm(latents)
            return latents + self.down(nn.functional.silu(self.gate(y)) * self.up(y))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.latents, self.layers, self.out = nn.Linear(1024, 640), nn.Parameter(torch.randn(1, 64, 640) / 25), nn.ModuleList(Layer() for _ in range(3)), nn.Linear(640, 1024)

        def forward(self, x):
            x, latents = self.into(x), self.latents.expand(x.shape[0], -1, -1)
            for layer in self.layers:
                latents = layer(latents, x)
            return self.out(latents)
    return Net()


@layers("adapters", [(128, 512)])
def adapters(torch, nn):
    """Low-rank adapters that are not merged, beside every projection, with two of them mixed by weights of the input."""
    class Adapted(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.base, self.choose = nn.Linear(a, b), nn.Linear(a, 2)
            self.down, self.up = nn.ModuleList(nn.Linear(a, 16, bias=False) for _ in range(2)), nn.ModuleList(nn.Linear(16, b, bias=False) for _ in range(2))

        def forward(self, x):
            share = self.choose(x.mean(1, keepdim=True)).softmax(-1)
            return self.base(x) + sum(share[..., i:i + 1] * self.up[i](self.down[i](x)) * 2.0 for i in range(2))

    class Attend(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.o = (Adapted(512, 512) for _ in range(4))

        def forward(self, x):
            return self.o(joined(nn.functional.scaled_dot_product_attention(*(heads_of(f(x), 8) for f in (self.q, self.k, self.v)), is_causal=True)))
    return stacked(torch, nn, 512, Attend)


@layers("unit_sphere", [(200, 384)])
def unit_sphere(torch, nn):
    """A transformer on the unit sphere: every residual is a step along a learned rate and a norm, logits are scaled, no layer norms."""
    def unit(x):
        return x / x.norm(p=2, dim=-1, keepdim=True).clamp_min(1e-8)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.o, self.up, self.down = nn.Linear(384, 1152, bias=False), nn.Linear(384, 384, bias=False), nn.Linear(384, 3072, bias=False), nn.Linear(1536, 384, bias=False)
            self.rate, self.rate2, self.sqk, self.suv = (nn.Parameter(torch.full((n,), 0.05)) for n in (384, 384, 64, 3072))

        def forward(self, x):
            q, k, v = (heads_of(t, 6) for t in self.qkv(x).chunk(3, -1))
            q, k = self.sqk * 20 * unit(q), self.sqk * 20 * unit(k)
            y = joined(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=8.0))
            x = unit(x + self.rate.abs() * (unit(self.o(y)) - x))
            u, v = (self.suv * 20 * 384 ** 0.5 * self.up(x)).chunk(2, -1)
            return unit(x + self.rate2.abs() * (unit(self.down(u * nn.functional.silu(v))) - x))
    return nn.Sequential(*(Layer() for _ in range(4)))


@layers("cross_scans", [(96, 14, 14)], [(96, 7, 7)])
def cross_scans(torch, nn):
    """An image read along rows and columns, both ways: four state spaces, each a product with a triangle of decays, joined back."""
    class Scan(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.depth, self.params, self.out, self.norm, self.before = nn.Linear(96, 384), nn.Conv2d(192, 192, 3, padding=1, groups=192), nn.Parameter(torch.randn(4, 192, 38) / 14), nn.Linear(192, 96), nn.LayerNorm(192), nn.LayerNorm(96)
            self.rates, self.bias = nn.Parameter(torch.rand(4, 6)), nn.Parameter(torch.randn(4, 6))

        def forward(self, x):
            b, c, h, w = x.shape
            u, gate = self.into(self.before(x.permute(0, 2, 3, 1))).chunk(2, -1)
            u = nn.functional.silu(self.depth(u.permute(0, 3, 1, 2)))
            rows = u.flatten(2)
            columns = u.transpose(2, 3).flatten(2)
            four = torch.stack([rows, columns, rows.flip(-1), columns.flip(-1)], 1)
            step, keys, reads = torch.einsum("bkdl,kdc->bkcl", four, self.params).split([6, 16, 16], 2)
            step = nn.functional.softplus(step + self.bias[None, :, :, None])
            decay = (-self.rates.exp()[None, :, :, None] * step).cumsum(-1)
            far = decay[..., :, None] - decay[..., None, :]
            far = far.masked_fill(torch.ones(h * w, h * w, dtype=torch.bool, device=x.device).triu(1), float("-inf")).exp()
            mixed = torch.einsum("bkcl,bkcm->bklm", reads, keys)[:, :, None] * far
            values = four.unflatten(2, (6, 32)) * step[:, :, :, None]
            y = torch.einsum("bkglm,bkgdm->bkgdl", mixed, values).flatten(2, 3)
            y = y[:, :2] + y[:, 2:].flip(-1)
            y = y[:, 0] + y[:, 1].unflatten(-1, (w, h)).transpose(2, 3).flatten(2)
            y = self.norm(y.transpose(1, 2)).view(b, h, w, 192) * nn.functional.silu(gate)
            return x + self.out(y).permute(0, 3, 1, 2)
    return nn.Sequential(*(Scan() for _ in range(3)))


@layers("neighbourhoods", [(28, 28, 96)], [(14, 14, 96)])
def neighbourhoods(torch, nn):
    """Each pixel attends to the 7 x 7 pixels around it, which unfold collects, with a bias for each offset."""
    class Attend(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out, self.bias = nn.Linear(96, 288), nn.Linear(96, 96), nn.Parameter(torch.randn(3, 1, 49) / 7)

        def forward(self, x):
            b, h, w, c = x.shape
            q, k, v = self.qkv(x).chunk(3, -1)
            k, v = (nn.functional.unfold(t.permute(0, 3, 1, 2), 7, padding=3).view(b, 3, 32, 49, h * w).permute(0, 1, 4, 3, 2) for t in (k, v))
            q = q.view(b, h * w, 3, 32).transpose(1, 2)[:, :, :, None] * 32 ** -0.5
            weights = ((q * k).sum(-1) + self.bias).softmax(-1)
            y = (weights[..., None, :] @ v).squeeze(-2)
            return self.out(y.transpose(1, 2).reshape(b, h, w, c))
    return nn.Sequential(*(block(torch, nn, 96, Attend()) for _ in range(2)))


@layers("gated_skips", [(3, 128, 128)], [(3, 64, 64)])
def gated_skips(torch, nn):
    """A U-Net whose skips are weighed by what comes from below, with group norms, bilinear steps up and deep supervision."""
    def two(a, b):
        return nn.Sequential(*(m for x, y in ((a, b), (b, b)) for m in (nn.Conv2d(x, y, 3, padding=1, bias=False), nn.GroupNorm(8, y), nn.Mish())))

    class Gate(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.a, self.b, self.mix = nn.Conv2d(2 * c, c // 2, 1), nn.Conv2d(c, c // 2, 1), nn.Conv2d(c // 2, 1, 1)

        def forward(self, below, skip):
            up = nn.functional.interpolate(below, scale_factor=2, mode="bilinear", align_corners=True)
            return torch.cat([up, skip * torch.sigmoid(self.mix(torch.relu(self.a(up) + self.b(skip))))], 1)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            c = (24, 48, 96, 192)
            self.down, self.pool = nn.ModuleList(two(a, b) for a, b in zip((3, *c), c)), nn.MaxPool2d(2)
            self.gates, self.up, self.heads = nn.ModuleList(Gate(n) for n in c[:3]), nn.ModuleList(two(3 * n, n) for n in c[:3]), nn.ModuleList(nn.Conv2d(n, 4, 1) for n in c[:3])

        def forward(self, x):
            found, size = [], x.shape[2:]
            for i, layer in enumerate(self.down):
                x = layer(self.pool(x) if i else x)
                found.append(x)
            maps = []
            for i in (2, 1, 0):
                x = self.up[i](self.gates[i](x, found[i]))
                maps.append(nn.functional.interpolate(self.heads[i](x), size=size, mode="bilinear", align_corners=False))
            return maps[-1].softmax(1), torch.stack(maps, 1).mean(1)
    return Net()


@layers("quantised_codec", [(1, 8000)], [(1, 3200)])
def quantised_codec(torch, nn):
    """A codec of speech with finite scalar levels: weight-normed strided convolutions, tanh and Round to eight levels, indices as digits, a decoder behind a local transformer."""
    def normed(layer):
        return nn.utils.parametrizations.weight_norm(layer)

    class Attend(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(256, 768), nn.Linear(256, 256)

        def forward(self, x):
            q, k, v = (heads_of(t, 4) for t in self.qkv(x).chunk(3, -1))
            index = torch.arange(x.shape[1], device=x.device)
            far = index[:, None] - index[None, :]
            mask = torch.where((far >= 0) & (far < 32), 0.0, float("-inf")).to(x.dtype)
            return self.out(joined(nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask - 0.1 * far.abs().to(x.dtype))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Conv1d(1, 32, 7, padding=3), *(m for a, b, s in ((32, 64, 4), (64, 128, 5), (128, 256, 8)) for m in (nn.ELU(), normed(nn.Conv1d(a, b, 2 * s, s, padding=(s + 1) // 2)))))
            self.transformer, self.into, self.out = stacked(torch, nn, 256, Attend, 2), nn.Linear(256, 6), nn.Linear(6, 256)
            self.decoder = nn.Sequential(*(m for a, b, s in ((256, 128, 8), (128, 64, 5), (64, 32, 4)) for m in (nn.ELU(), normed(nn.ConvTranspose1d(a, b, 2 * s, s, padding=(s + 1) // 2, output_padding=s % 2)))), nn.ELU(), nn.Conv1d(32, 1, 7, padding=3), nn.Tanh())
            self.register_buffer("levels", torch.tensor([8, 8, 8, 5, 5, 5]))
            self.register_buffer("basis", torch.tensor([1, 8, 64, 512, 2560, 12800]))

        def forward(self, x):
            z = self.into(self.transformer(self.encoder(x).transpose(1, 2)))
            half = (self.levels - 1).to(z.dtype) * 0.999 / 2
            offset = torch.where(self.levels % 2 == 0, 0.5, 0.0).to(z.dtype)
            bounded = torch.tanh(z + 0.5 * torch.log((half + offset) / (half - offset))) * half - offset
            codes = torch.round(bounded) / (self.levels // 2).to(z.dtype)
            index = ((codes * (self.levels // 2).to(z.dtype) + (self.levels // 2).to(z.dtype)) * self.basis.to(z.dtype)).sum(-1)
            return self.decoder(self.out(codes).transpose(1, 2)), index
    return Net()
