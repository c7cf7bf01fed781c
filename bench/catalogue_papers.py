# SPDX-License-Identifier: Apache-2.0
"""Models as papers describe them and people write them down: diffusion, recommendation, tables, series, detection and segmentation, of usual widths."""
from catalogue_layers import layers


# ---- diffusion ----
def residual(torch, nn):
    class Residual(nn.Module):
        """Two convolutions behind group norms; the time is added between."""

        def __init__(self, a, b, time=None):
            super().__init__()
            self.first = nn.Sequential(nn.GroupNorm(32, a), nn.SiLU(), nn.Conv2d(a, b, 3, padding=1))
            self.last = nn.Sequential(nn.GroupNorm(32, b), nn.SiLU(), nn.Conv2d(b, b, 3, padding=1))
            self.time = nn.Linear(time, b) if time else None
            self.skip = nn.Conv2d(a, b, 1) if a != b else nn.Identity()

        def forward(self, x, t=None):
            y = self.first(x)
            if self.time:
                y = y + self.time(nn.functional.silu(t))[:, :, None, None]
            return self.skip(x) + self.last(y)
    return Residual


def heads_of(x, heads):
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def frequencies(torch, t, width):
    angles = t[:, None] * torch.exp(torch.arange(width // 2, dtype=t.dtype, device=t.device) * (-9.2103 / (width // 2)))
    return torch.cat([angles.cos(), angles.sin()], -1)


@layers("latent_unet", [(4, 32, 32), lambda torch, batch: 1000 * torch.rand(batch), (77, 768)])
def latent_unet(torch, nn):
    """Two levels of a denoiser of latent images: residual blocks, and transformers over pixels that attend to a text."""
    Residual = residual(torch, nn)

    class Attend(nn.Module):
        def __init__(self, width, context):
            super().__init__()
            self.q, self.k, self.v, self.out = nn.Linear(width, width, False), nn.Linear(context, width, False), nn.Linear(context, width, False), nn.Linear(width, width)

        def forward(self, x, context):
            q, k, v = (heads_of(y, 8) for y in (self.q(x), self.k(context), self.v(context)))
            return self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

    class Transformer(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.norm, self.into, self.out = nn.GroupNorm(32, c), nn.Conv2d(c, c, 1), nn.Conv2d(c, c, 1)
            self.norms = nn.ModuleList(nn.LayerNorm(c) for _ in range(3))
            self.own, self.cross, self.up, self.down = Attend(c, c), Attend(c, 768), nn.Linear(c, 8 * c), nn.Linear(4 * c, c)

        def forward(self, x, text):
            y = self.into(self.norm(x)).permute(0, 2, 3, 1).reshape(x.shape[0], -1, x.shape[1])
            y = y + self.own(self.norms[0](y), self.norms[0](y))
            y = y + self.cross(self.norms[1](y), text)
            a, b = self.up(self.norms[2](y)).chunk(2, -1)
            y = y + self.down(a * nn.functional.gelu(b))
            return x + self.out(y.reshape(x.shape[0], *x.shape[2:], -1).permute(0, 3, 1, 2))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.time, self.first = nn.Sequential(nn.Linear(320, 1280), nn.SiLU(), nn.Linear(1280, 1280)), nn.Conv2d(4, 320, 3, padding=1)
            self.a, self.at, self.halve = Residual(320, 320, 1280), Transformer(320), nn.Conv2d(320, 320, 3, 2, 1)
            self.b, self.bt, self.enlarge = Residual(320, 640, 1280), Transformer(640), nn.Conv2d(640, 640, 3, padding=1)
            self.c, self.ct = Residual(960, 320, 1280), Transformer(320)
            self.last = nn.Sequential(nn.GroupNorm(32, 320), nn.SiLU(), nn.Conv2d(320, 4, 3, padding=1))

        def forward(self, x, t, text):
            t = self.time(frequencies(torch, t, 320))
            x = self.at(self.a(self.first(x), t), text)
            y = self.bt(self.b(self.halve(x), t), text)
            y = self.enlarge(nn.functional.interpolate(y, scale_factor=2.0, mode="nearest"))
            return self.last(self.ct(self.c(torch.cat([y, x], 1), t), text))
    return Net()


@layers("latent_decoder", [(4, 32, 32)])
def latent_decoder(torch, nn):
    """From latents to pixels: residual blocks, attention with one head over all pixels of the middle, three enlargements."""
    Residual = residual(torch, nn)

    class Attend(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.norm, self.q, self.k, self.v, self.out = nn.GroupNorm(32, c), *(nn.Conv2d(c, c, 1) for _ in range(4))

        def forward(self, x):
            y = self.norm(x)
            q, k, v = (f(y).flatten(2).transpose(1, 2)[:, None] for f in (self.q, self.k, self.v))
            return x + self.out(nn.functional.scaled_dot_product_attention(q, k, v)[:, 0].transpose(1, 2).reshape(x.shape))

    layers_of, c = [nn.Conv2d(4, 256, 3, padding=1), Residual(256, 256), Attend(256), Residual(256, 256)], 256
    for width in (256, 128, 64):
        layers_of += [Residual(c, width), nn.Upsample(scale_factor=2.0), nn.Conv2d(width, width, 3, padding=1)]
        c = width
    return nn.Sequential(*layers_of, Residual(c, c), nn.GroupNorm(32, c), nn.SiLU(), nn.Conv2d(c, 3, 3, padding=1))


@layers("dit", [(4, 32, 32), lambda torch, batch: 1000 * torch.rand(batch), lambda torch, batch: torch.randint(0, 1000, (batch,))])
def dit(torch, nn):
    """A diffusion transformer: norms without weights, shifted and scaled by the time and the class, and gates."""
    class Block(nn.Module):
        def __init__(self, c, heads):
            super().__init__()
            self.heads, self.first, self.last = heads, nn.LayerNorm(c, 1e-6, False), nn.LayerNorm(c, 1e-6, False)
            self.qkv, self.out, self.condition = nn.Linear(c, 3 * c), nn.Linear(c, c), nn.Linear(c, 6 * c)
            self.mlp = nn.Sequential(nn.Linear(c, 4 * c), nn.GELU("tanh"), nn.Linear(4 * c, c))

        def forward(self, x, t):
            shift_a, scale_a, gate_a, shift_b, scale_b, gate_b = self.condition(nn.functional.silu(t))[:, None].chunk(6, -1)
            q, k, v = self.qkv(self.first(x) * (1 + scale_a) + shift_a).view(x.shape[0], x.shape[1], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            x = x + gate_a * self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            return x + gate_b * self.mlp(self.last(x) * (1 + scale_b) + shift_b)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            c = 384
            self.patch, self.where, self.label = nn.Conv2d(4, c, 2, 2), nn.Parameter(torch.randn(1, 256, c)), nn.Embedding(1001, c)
            self.time, self.blocks = nn.Sequential(nn.Linear(256, c), nn.SiLU(), nn.Linear(c, c)), nn.ModuleList(Block(c, 6) for _ in range(6))
            self.norm, self.condition, self.last = nn.LayerNorm(c, 1e-6, False), nn.Linear(c, 2 * c), nn.Linear(c, 2 * 2 * 8)

        def forward(self, x, t, label):
            t = self.time(frequencies(torch, t, 256)) + self.label(label)
            y = self.patch(x).flatten(2).transpose(1, 2) + self.where
            for block in self.blocks:
                y = block(y, t)
            shift, scale = self.condition(nn.functional.silu(t))[:, None].chunk(2, -1)
            y = self.last(self.norm(y) * (1 + scale) + shift).view(x.shape[0], 16, 16, 2, 2, 8)
            return torch.einsum("nhwpqc->nchpwq", y).reshape(x.shape[0], 8, 32, 32)
    return Net()


# ---- recommendation ----
FIELDS = lambda torch, batch: torch.randint(0, 2000, (8 * batch, 26))  # noqa: E731


@layers("deep_fm", [FIELDS])
def deep_fm(torch, nn):
    """Pairs of fields by squares of sums, and a perceptron beside them."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("offsets", 2000 * torch.arange(26))
            self.one, self.table = nn.Embedding(52000, 1), nn.Embedding(52000, 16)
            self.deep = nn.Sequential(nn.Linear(416, 400), nn.BatchNorm1d(400), nn.ReLU(), nn.Linear(400, 400), nn.BatchNorm1d(400), nn.ReLU(), nn.Linear(400, 1))

        def forward(self, x):
            x = x + self.offsets
            v = self.table(x)
            pairs = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(1, keepdim=True)
            return torch.sigmoid(self.one(x).sum(1) + pairs + self.deep(v.flatten(1)))
    return Net()


@layers("cross_network", [FIELDS, lambda torch, batch: torch.rand(8 * batch, 13)])
def cross_network(torch, nn):
    """DCN, the second version: three crossed layers, a perceptron beside them."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(2000, 16) for _ in range(26))
            self.cross = nn.ModuleList(nn.Linear(429, 429) for _ in range(3))
            self.deep, self.last = nn.Sequential(nn.Linear(429, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU()), nn.Linear(429 + 256, 1)

        def forward(self, x, dense):
            first = y = torch.cat([table(x[:, k]) for k, table in enumerate(self.tables)] + [dense], 1)
            for cross in self.cross:
                y = first * cross(y) + y
            return torch.sigmoid(self.last(torch.cat([y, self.deep(first)], 1)))
    return Net()


@layers("interest_network", [lambda torch, batch: torch.randint(0, 5000, (8 * batch, 50)), lambda torch, batch: torch.randint(0, 5000, (8 * batch,)),
                             lambda torch, batch: torch.randint(1, 51, (8 * batch,))])
def interest_network(torch, nn):
    """DIN: what a user did is weighed by a perceptron over it and the candidate; lengths mask it."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.score = nn.Embedding(5000, 32), nn.Sequential(nn.Linear(128, 80), nn.Sigmoid(), nn.Linear(80, 40), nn.Sigmoid(), nn.Linear(40, 1))
            self.last = nn.Sequential(nn.Linear(96, 200), nn.PReLU(), nn.Linear(200, 80), nn.PReLU(), nn.Linear(80, 1))

        def forward(self, history, candidate, lengths):
            h, c = self.table(history), self.table(candidate)
            wide = c[:, None].expand(-1, h.shape[1], -1)
            w = self.score(torch.cat([wide, h, wide - h, wide * h], -1)).transpose(1, 2)
            w = w.masked_fill((torch.arange(h.shape[1], device=h.device)[None] >= lengths[:, None])[:, None], 0)
            interest = (w @ h)[:, 0]
            return torch.sigmoid(self.last(torch.cat([interest, c, interest * c], 1)))
    return Net()


@layers("next_item", [lambda torch, batch: torch.randint(1, 3000, (batch, 50))])
def next_item(torch, nn):
    """SASRec: a causal encoder over items, scores of all items for what comes next."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.where = nn.Embedding(3000, 64), nn.Embedding(50, 64)
            layer = nn.TransformerEncoderLayer(64, 2, 64, batch_first=True, norm_first=True)
            self.inner, self.norm = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.LayerNorm(64)

        def forward(self, items):
            n = items.shape[1]
            mask = torch.triu(torch.full((n, n), float("-inf"), device=items.device, dtype=self.table.weight.dtype), 1)
            y = self.inner(self.table(items) * 8 + self.where(torch.arange(n, device=items.device)), mask=mask)
            return self.norm(y)[:, -1] @ self.table.weight.T
    return Net()


# ---- tables ----
@layers("ft_transformer", [lambda torch, batch: torch.rand(8 * batch, 20), lambda torch, batch: torch.randint(0, 50, (8 * batch, 8))])
def ft_transformer(torch, nn):
    """A token for each column, a token for the answer, three layers."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.bias, self.answer = (nn.Parameter(torch.randn(*dims)) for dims in ((20, 192), (28, 192), (1, 1, 192)))
            self.register_buffer("offsets", 50 * torch.arange(8))
            self.table = nn.Embedding(400, 192)
            layer = nn.TransformerEncoderLayer(192, 8, 256, batch_first=True, norm_first=True, activation="gelu")
            self.inner, self.last = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), nn.Sequential(nn.LayerNorm(192), nn.ReLU(), nn.Linear(192, 2))

        def forward(self, numbers, kinds):
            x = torch.cat([numbers[:, :, None] * self.weight, self.table(kinds + self.offsets)], 1) + self.bias
            return self.last(self.inner(torch.cat([self.answer.expand(x.shape[0], -1, -1), x], 1))[:, 0])
    return Net()


@layers("tab_net", [lambda torch, batch: torch.rand(8 * batch, 54)])
def tab_net(torch, nn):
    """Three decisions; each chooses columns by a softmax and goes through gated layers, two of which all share."""
    class Gated(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(a, 2 * b, False), nn.BatchNorm1d(2 * b), nn.GLU())

        def forward(self, x):
            return self.inner(x)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.shared = nn.BatchNorm1d(54), nn.ModuleList([Gated(54, 64), Gated(64, 64)])
            self.own = nn.ModuleList(nn.ModuleList([Gated(64, 64), Gated(64, 64)]) for _ in range(4))
            self.choose = nn.ModuleList(nn.Sequential(nn.Linear(32, 54, False), nn.BatchNorm1d(54)) for _ in range(3))
            self.last = nn.Linear(32, 7)

        def decide(self, x, own):
            x = self.shared[0](x)
            for gated in (self.shared[1], *own):
                x = (x + gated(x)) * 0.7071
            return x

        def forward(self, x):
            x = self.norm(x)
            prior, total, a = 1, 0, self.decide(x, self.own[0])[:, 32:]
            for choose, own in zip(self.choose, list(self.own)[1:]):
                mask = torch.softmax(choose(a) * prior, -1)
                prior = prior * (1.3 - mask)
                d, a = self.decide(mask * x, own).split(32, 1)
                total = total + torch.relu(d)
            return self.last(total)
    return Net()


# ---- series ----
@layers("n_beats", [lambda torch, batch: torch.rand(8 * batch, 96)])
def n_beats(torch, nn):
    """Perceptrons that take away what they explain and add what they foresee."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(96, 512), nn.ReLU(), *[k for _ in range(3) for k in (nn.Linear(512, 512), nn.ReLU())]) for _ in range(6))
            self.back, self.ahead = (nn.ModuleList(nn.Linear(512, n) for _ in range(6)) for n in (96, 24))

        def forward(self, x):
            total = 0
            for block, back, ahead in zip(self.blocks, self.back, self.ahead):
                y = block(x)
                x, total = x - back(y), total + ahead(y)
            return total
    return Net()


@layers("times_net", [(96, 32)])
def times_net(torch, nn):
    """Series folded by given periods into images, convolved by windows of several sizes, and unfolded."""
    class Several(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.steps = nn.ModuleList(nn.Conv2d(a, b, 2 * k + 1, padding=k) for k in range(4))

        def forward(self, x):
            return torch.stack([step(x) for step in self.steps], -1).mean(-1)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.out, self.norm = nn.Linear(32, 64), nn.Linear(64, 32), nn.LayerNorm(64)
            self.inner = nn.ModuleList(nn.Sequential(Several(64, 64), nn.GELU(), Several(64, 64)) for _ in range(2))

        def forward(self, x):
            mean, scale = x.mean(1, keepdim=True), torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)
            y = self.into((x - mean) / scale)
            for inner in self.inner:
                folded = [inner(y.reshape(y.shape[0], -1, period, 64).permute(0, 3, 1, 2)).permute(0, 2, 3, 1).reshape(y.shape) for period in (24, 12, 8)]
                y = self.norm(y + torch.stack(folded, -1).mean(-1))
            return self.out(y) * scale + mean
    return Net()


@layers("decomposed_linear", [(336, 21)])
def decomposed_linear(torch, nn):
    """DLinear: a moving average and the rest, a product each."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean, self.trend, self.season = nn.AvgPool1d(25, 1), nn.Linear(336, 96), nn.Linear(336, 96)

        def forward(self, x):
            padded = torch.cat([x[:, :1].repeat(1, 12, 1), x, x[:, -1:].repeat(1, 12, 1)], 1)
            trend = self.mean(padded.permute(0, 2, 1))
            return (self.season(x.permute(0, 2, 1) - trend) + self.trend(trend)).permute(0, 2, 1)
    return Net()


@layers("lengths_lstm", [(80, 64), lambda torch, batch: torch.sort(torch.randint(20, 81, (batch,)), descending=True)[0]])
def lengths_lstm(torch, nn):
    """A bidirectional LSTM over rows of different lengths."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.last = nn.LSTM(64, 256, 2, batch_first=True, bidirectional=True), nn.Linear(512, 20)

        def forward(self, x, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True)
            return self.last(nn.utils.rnn.pad_packed_sequence(self.inner(packed)[0], batch_first=True, total_length=80)[0])
    return Net()


# ---- detection and segmentation ----
def convolution(nn, a, b, k=1, s=1, groups=1):
    return nn.Sequential(nn.Conv2d(a, b, k, s, k // 2, groups=groups, bias=False), nn.BatchNorm2d(b), nn.SiLU())


@layers("split_detector", [(3, 320, 320)])
def split_detector(torch, nn):
    """Stages that split channels and keep each part, pooled pyramids, a neck up and down, heads whose distances are means of 16 bins."""
    class Bottleneck(nn.Module):
        def __init__(self, c, add):
            super().__init__()
            self.a, self.b, self.add = convolution(nn, c, c, 3), convolution(nn, c, c, 3), add

        def forward(self, x):
            y = self.b(self.a(x))
            return x + y if self.add else y

    class Stage(nn.Module):
        def __init__(self, a, b, n, add):
            super().__init__()
            self.into, self.out = convolution(nn, a, b), convolution(nn, (2 + n) * (b // 2), b)
            self.inner = nn.ModuleList(Bottleneck(b // 2, add) for _ in range(n))

        def forward(self, x):
            kept = list(self.into(x).chunk(2, 1))
            for inner in self.inner:
                kept.append(inner(kept[-1]))
            return self.out(torch.cat(kept, 1))

    class Pooled(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.into, self.out, self.pool = convolution(nn, c, c // 2), convolution(nn, 2 * c, c), nn.MaxPool2d(5, 1, 2)

        def forward(self, x):
            kept = [self.into(x)]
            for _ in range(3):
                kept.append(self.pool(kept[-1]))
            return self.out(torch.cat(kept, 1))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(convolution(nn, 3, 16, 3, 2), convolution(nn, 16, 32, 3, 2), Stage(32, 32, 1, True))
            self.down = nn.ModuleList([nn.Sequential(convolution(nn, 32, 64, 3, 2), Stage(64, 64, 2, True)), nn.Sequential(convolution(nn, 64, 128, 3, 2), Stage(128, 128, 2, True)),
                                       nn.Sequential(convolution(nn, 128, 256, 3, 2), Stage(256, 256, 1, True), Pooled(256))])
            self.up = nn.ModuleList([Stage(384, 128, 1, False), Stage(192, 64, 1, False)])
            self.back = nn.ModuleList([convolution(nn, 64, 64, 3, 2), convolution(nn, 128, 128, 3, 2)])
            self.join = nn.ModuleList([Stage(192, 128, 1, False), Stage(384, 256, 1, False)])
            self.boxes = nn.ModuleList(nn.Sequential(convolution(nn, c, 64, 3), convolution(nn, 64, 64, 3), nn.Conv2d(64, 64, 1)) for c in (64, 128, 256))
            self.classes = nn.ModuleList(nn.Sequential(convolution(nn, c, 80, 3), convolution(nn, 80, 80, 3), nn.Conv2d(80, 80, 1)) for c in (64, 128, 256))
            points, strides = [], []
            for s in (8, 16, 32):
                n = 320 // s
                y, x = torch.meshgrid(torch.arange(n) + 0.5, torch.arange(n) + 0.5, indexing="ij")
                points.append(torch.stack([x, y], -1).view(-1, 2))
                strides.append(torch.full((n * n,), float(s)))
            self.register_buffer("points", torch.cat(points).T[None])
            self.register_buffer("strides", torch.cat(strides))
            self.register_buffer("bins", torch.arange(16.0).view(1, 16, 1, 1))

        def forward(self, x):
            x = self.stem(x)
            a = self.down[0](x)
            b = self.down[1](a)
            c = self.down[2](b)
            up = lambda y: nn.functional.interpolate(y, scale_factor=2.0, mode="nearest")  # noqa: E731
            p4 = self.up[0](torch.cat([up(c), b], 1))
            p3 = self.up[1](torch.cat([up(p4), a], 1))
            p4 = self.join[0](torch.cat([self.back[0](p3), p4], 1))
            p5 = self.join[1](torch.cat([self.back[1](p4), c], 1))
            y = torch.cat([torch.cat([box(p), cls(p)], 1).flatten(2) for box, cls, p in zip(self.boxes, self.classes, (p3, p4, p5))], 2)
            box, cls = y.split((64, 80), 1)
            d = nn.functional.conv2d(box.view(box.shape[0], 4, 16, -1).transpose(2, 1).softmax(1), self.bins.to(box.dtype))[:, 0]
            near, far = d.chunk(2, 1)
            near, far = self.points - near, self.points + far
            return torch.cat([torch.cat([(near + far) / 2, far - near], 1) * self.strides, cls.sigmoid()], 1)
    return Net()


@layers("nested_unet", [(3, 256, 256)])
def nested_unet(torch, nn):
    """UNet++: all levels are joined on the way up."""
    widths = [32, 64, 128, 256]

    def block(a, b):
        return nn.Sequential(*[k for i in (a, b) for k in (nn.Conv2d(i, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())])

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList(block(a, b) for a, b in zip([3, *widths], widths))
            self.join = nn.ModuleDict({f"{i}_{j}": block(j * widths[i] + widths[i + 1], widths[i]) for j in range(1, 4) for i in range(4 - j)})
            self.pool, self.up, self.last = nn.MaxPool2d(2), nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(32, 2, 1)

        def forward(self, x):
            rows = []
            for i, down in enumerate(self.down):
                x = down(self.pool(x) if i else x)
                rows.append([x])
            for j in range(1, 4):
                for i in range(4 - j):
                    rows[i].append(self.join[f"{i}_{j}"](torch.cat([*rows[i], self.up(rows[i + 1][j - 1])], 1)))
            return self.last(rows[0][-1])
    return Net()


@layers("feature_pyramid", [(3, 256, 256)])
def feature_pyramid(torch, nn):
    """A residual network, a pyramid of features with group norms, and all levels added at the largest size."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            import torchvision
            inner = torchvision.models.resnet18(weights=None)
            self.stem = nn.Sequential(inner.conv1, inner.bn1, inner.relu, inner.maxpool)
            self.stages = nn.ModuleList([inner.layer1, inner.layer2, inner.layer3, inner.layer4])
            self.side = nn.ModuleList(nn.Conv2d(c, 128, 1) for c in (64, 128, 256, 512))
            self.heads = nn.ModuleList(nn.ModuleList(nn.Sequential(nn.Conv2d(128, 64 if k == 0 else 64, 3, padding=1) if k == 0 else nn.Conv2d(64, 64, 3, padding=1),
                                                                   nn.GroupNorm(16, 64), nn.ReLU()) for k in range(max(1, level))) for level in range(4))
            self.last = nn.Conv2d(64, 21, 1)

        def forward(self, x):
            x, kept = self.stem(x), []
            for stage in self.stages:
                x = stage(x)
                kept.append(x)
            y, total = None, 0
            for level in range(3, -1, -1):
                z = self.side[level](kept[level])
                y = z if y is None else z + nn.functional.interpolate(y, scale_factor=2.0, mode="nearest")
                z = y
                for k, head in enumerate(self.heads[level]):
                    z = head(z)
                    if level:
                        z = nn.functional.interpolate(z, scale_factor=2.0, mode="bilinear", align_corners=False)
                total = total + z
            return nn.functional.interpolate(self.last(total), scale_factor=4.0, mode="bilinear", align_corners=False)
    return Net()
