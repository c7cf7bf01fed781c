# SPDX-License-Identifier: Apache-2.0
"""Networks for waves, series, graphs, molecules and fields, and blocks of diffusion transformers."""
from catalogue_layers import layers


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


# ---- waves ----
@layers("masks_of_waves", [(1, 16000)], [(1, 2000)])
def masks_of_waves(torch, nn):
    """A learned basis, depthwise dilated convolutions with norms over everything, masks, a transposed convolution (Conv-TasNet)."""
    class Block(nn.Module):
        def __init__(self, dilation):
            super().__init__()
            self.inner = nn.Sequential(nn.Conv1d(128, 256, 1), nn.PReLU(), nn.GroupNorm(1, 256), nn.Conv1d(256, 256, 3, padding=dilation, dilation=dilation, groups=256), nn.PReLU(), nn.GroupNorm(1, 256))
            self.out, self.skip = nn.Conv1d(256, 128, 1), nn.Conv1d(256, 128, 1)

        def forward(self, x):
            y = self.inner(x)
            return x + self.out(y), self.skip(y)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.norm, self.first = nn.Conv1d(1, 256, 16, 8, bias=False), nn.GroupNorm(1, 256), nn.Conv1d(256, 128, 1)
            self.blocks = nn.ModuleList(Block(1 << k % 6) for k in range(12))
            self.mask, self.out = nn.Sequential(nn.PReLU(), nn.Conv1d(128, 512, 1)), nn.ConvTranspose1d(256, 1, 16, 8, bias=False)

        def forward(self, x):
            x = self.into(x).relu()
            y, total = self.first(self.norm(x)), 0
            for block in self.blocks:
                y, skip = block(y)
                total = total + skip
            masks = self.mask(total).view(x.shape[0], 2, 256, -1).sigmoid()
            return self.out((x[:, None] * masks).flatten(0, 1)).view(x.shape[0], 2, -1)
    return Net()


@layers("dual_paths", [(64, 1000)], [(64, 200)])
def dual_paths(torch, nn):
    """Overlapping parts of a sequence, LSTMs within and across them, overlap and add (DPRNN)."""
    class Path(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.out, self.norm = nn.LSTM(64, 64, batch_first=True, bidirectional=True), nn.Linear(128, 64), nn.GroupNorm(1, 64)

        def forward(self, x):  # batch, channels, positions, parts: along positions
            n, c, k, s = x.shape
            y = self.out(self.rnn(x.permute(0, 3, 2, 1).reshape(n * s, k, c))[0]).view(n, s, k, c).permute(0, 3, 2, 1)
            return x + self.norm(y)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.within, self.across = nn.ModuleList(Path() for _ in range(2)), nn.ModuleList(Path() for _ in range(2))

        def forward(self, x):
            n, c, t = x.shape
            y = nn.functional.unfold(nn.functional.pad(x, (50, 50))[..., None], (100, 1), stride=(50, 1)).view(n, c, 100, -1)
            for within, across in zip(self.within, self.across):
                y = across(within(y).transpose(2, 3)).transpose(2, 3)
            return nn.functional.fold(y.reshape(n, c * 100, -1), (t + 100, 1), (100, 1), stride=(50, 1))[:, :, 50:-50, 0]
    return Net()


@layers("gated_waves", [(2, 32768)], [(2, 4096)])
def gated_waves(torch, nn):
    """Strided convolutions with gates, an LSTM in the middle, transposed convolutions, skips that are cut (Demucs)."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [2, 48, 96, 192, 384]
            self.down = nn.ModuleList(nn.Sequential(nn.Conv1d(a, b, 8, 4), nn.ReLU(), nn.Conv1d(b, 2 * b, 1), nn.GLU(1)) for a, b in zip(widths, widths[1:]))
            self.rnn, self.mid = nn.LSTM(384, 384, 1, bidirectional=True), nn.Linear(768, 384)
            self.up = nn.ModuleList(nn.Sequential(nn.Conv1d(b, 2 * b, 3, padding=1), nn.GLU(1), nn.ConvTranspose1d(b, a if k else 8, 8, 4), *([nn.ReLU()] if k else []))
                                    for k, (a, b) in enumerate(zip(widths, widths[1:])))

        def forward(self, x):
            std = x.mean(1, keepdim=True).std(2, keepdim=True) + 1e-3
            y, seen = nn.functional.pad(x / std, (170, 170)), []
            for down in self.down:
                y = down(y)
                seen.append(y)
            y = self.mid(self.rnn(y.permute(2, 0, 1))[0]).permute(1, 2, 0)
            for up, skip in zip(reversed(self.up), reversed(seen)):
                cut = skip.shape[2] - y.shape[2]
                y = up(y + skip[..., cut // 2:skip.shape[2] - (cut - cut // 2)])
            return y * std
    return Net()


@layers("speech_decoder_step", [(80,), (60, 512), (1024,), (1024,), (512,), (60,), (60,)])
def speech_decoder_step(torch, nn):
    """One step of a decoder of speech: cells, attention by content and place (Tacotron 2)."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.pre, self.cell = nn.Sequential(nn.Linear(80, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()), nn.LSTMCell(256 + 512, 1024)
            self.query, self.memory, self.place, self.inner, self.v = nn.Linear(1024, 128, False), nn.Linear(512, 128, False), nn.Conv1d(2, 32, 31, padding=15, bias=False), nn.Linear(32, 128, False), nn.Linear(128, 1, False)
            self.out = nn.Linear(1536, 81)

        def forward(self, frame, memory, h, c, context, weights, total):
            h, c = self.cell(torch.cat([self.pre(frame), context], -1), (h, c))
            place = self.inner(self.place(torch.stack([weights, total], 1)).transpose(1, 2))
            weights = self.v(torch.tanh(self.query(h)[:, None] + self.memory(memory) + place)).squeeze(-1).softmax(-1)
            context = torch.bmm(weights[:, None], memory).squeeze(1)
            return self.out(torch.cat([h, context], -1)), h, c, context, weights, total + weights
    return Net()


# ---- series ----
@layers("inverted_series", [(96, 128)], [(96, 16)])
def inverted_series(torch, nn):
    """Each series is a token; the statistics of the past come back at the end (iTransformer)."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.out = nn.Linear(96, 256), nn.Linear(256, 96)
            self.inner = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 8, 512, 0.0, "gelu", batch_first=True), 3, nn.LayerNorm(256), enable_nested_tensor=False)

        def forward(self, x):
            mean = x.mean(1, keepdim=True)
            x = x - mean
            std = torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)
            y = self.out(self.inner(self.into((x / std).transpose(1, 2)))).transpose(1, 2)
            return y * std[:, :1] + mean[:, :1]
    return Net()


@layers("mixed_series", [(336, 64)], [(96, 8)])
def mixed_series(torch, nn):
    """Trends by moving means at several rates, seasons and trends mixed by linear layers along time (TimeMixer, TSMixer, DLinear)."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.out = nn.Linear(1, 16), nn.Linear(16, 1)
            self.downs, self.last = nn.ModuleDict(), nn.ModuleDict()

        def prepare(self, t):
            self.steps = [t, t // 2, t // 4]
            self.down = nn.ModuleList(nn.Sequential(nn.Linear(a, b), nn.GELU(), nn.Linear(b, b)) for a, b in zip(self.steps, self.steps[1:]))
            self.up = nn.ModuleList(nn.Sequential(nn.Linear(b, a), nn.GELU(), nn.Linear(a, a)) for a, b in zip(self.steps, self.steps[1:]))
            self.ends = nn.ModuleList(nn.Linear(a, 96) for a in self.steps)
            self.mix = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
            return self

        def trend(self, x):
            front, end = x[:, :1].repeat(1, 12, 1), x[:, -1:].repeat(1, 12, 1)
            return nn.functional.avg_pool1d(torch.cat([front, x, end], 1).permute(0, 2, 1), 25, 1).permute(0, 2, 1)

        def forward(self, x):
            n, t, c = x.shape
            mean, std = x.mean(1, keepdim=True), x.std(1, keepdim=True, unbiased=False) + 1e-5
            x = ((x - mean) / std).permute(0, 2, 1)
            levels = [x, nn.functional.avg_pool1d(x, 2), nn.functional.avg_pool1d(x, 4)]
            levels = [self.into(y.reshape(n * c, -1, 1)) for y in levels]
            trends = [self.trend(y) for y in levels]
            seasons = [(y - z).permute(0, 2, 1) for y, z in zip(levels, trends)]
            trends = [y.permute(0, 2, 1) for y in trends]
            for k, down in enumerate(self.down):
                seasons[k + 1] = seasons[k + 1] + down(seasons[k])
            for k in (1, 0):
                trends[k] = trends[k] + self.up[k](trends[k + 1])
            levels = [y + self.mix((a + b).permute(0, 2, 1)) for y, a, b in zip(levels, seasons, trends)]
            y = sum(end(level.permute(0, 2, 1)).permute(0, 2, 1) for end, level in zip(self.ends, levels))
            return self.out(y).reshape(n, c, 96).permute(0, 2, 1) * std + mean

    class Made(nn.Module):
        def __init__(self):
            super().__init__()
            self.long, self.short = Net().prepare(336), Net().prepare(96)

        def forward(self, x):
            return (self.long if x.shape[1] == 336 else self.short)(x)
    return Made()


@layers("retention", [(256, 256)], [(32, 256)])
def retention(torch, nn):
    """Products with decays for each head in place of softmax, group norms of heads, gates (RetNet); sums of outer products (linear attention)."""
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms, self.qkvg, self.out = nn.ModuleList(nn.LayerNorm(256) for _ in range(2)), nn.Linear(256, 1024, False), nn.Linear(256, 256, False)
            self.heads, self.up, self.down = nn.GroupNorm(8, 256, affine=False), nn.Linear(256, 512), nn.Linear(512, 256)
            self.register_buffer("decay", torch.log(1 - 2.0 ** (-5 - torch.arange(8.))))

        def forward(self, x):
            n, t, c = x.shape
            q, k, v, g = self.qkvg(self.norms[0](x)).chunk(4, -1)
            q, k, v = heads_of(q, 8), heads_of(k, 8) * 32 ** -0.5, heads_of(v, 8)
            at = torch.arange(t, device=x.device)
            distance = (at[:, None] - at).to(x.dtype)
            mask = torch.where(distance >= 0, torch.exp(self.decay[:, None, None] * distance.clamp(min=0)), torch.zeros_like(distance))
            y = (q @ k.transpose(-1, -2) * mask @ v).transpose(1, 2).reshape(n * t, c)
            x = x + self.out(self.heads(y).view(n, t, c) * nn.functional.silu(g))
            return x + self.down(nn.functional.gelu(self.up(self.norms[1](x))))

    class Linear(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(256, 768), nn.Linear(256, 256)

        def forward(self, x):
            q, k, v = (heads_of(y, 8) for y in self.qkv(x).chunk(3, -1))
            q, k = nn.functional.elu(q) + 1, nn.functional.elu(k) + 1
            y = torch.einsum("bhnd,bhde->bhne", q, torch.einsum("bhnd,bhne->bhde", k, v))
            y = y / torch.einsum("bhnd,bhd->bhn", q, k.sum(2))[..., None]
            return x + self.out(y.transpose(1, 2).flatten(2))
    return nn.Sequential(Layer(), Linear(), Layer())


@layers("state_space", [(512, 128)], [(64, 128)])
def state_space(torch, nn):
    """A convolution as long as the sequence by products of spectra, gates, short convolutions (S4, Hyena)."""
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.short, self.out, self.norm = nn.Linear(128, 384), nn.Conv1d(384, 384, 3, padding=2, groups=384), nn.Linear(128, 128), nn.LayerNorm(128)
            self.filter, self.rate, self.d = nn.Sequential(nn.Linear(5, 32), nn.GELU(), nn.Linear(32, 128)), nn.Parameter(torch.rand(128)), nn.Parameter(torch.rand(128))

        def forward(self, x):
            t = x.shape[1]
            at = torch.arange(t, dtype=x.dtype, device=x.device)[:, None] / t
            kernel = self.filter(torch.cat([at, *(f(6.28 * k * at) for k in (1, 2) for f in (torch.sin, torch.cos))], -1)) * torch.exp(-at * self.rate.abs() * 4)
            a, b, v = self.short(self.into(self.norm(x)).transpose(1, 2))[..., :t].chunk(3, 1)
            v = v * b
            spectrum = torch.fft.rfft(v, n=2 * t) * torch.fft.rfft(kernel.t(), n=2 * t)
            y = (torch.fft.irfft(spectrum, n=2 * t)[..., :t] + v * self.d[:, None]) * a
            return x + self.out(y.transpose(1, 2))
    return nn.Sequential(Layer(), Layer())


# ---- graphs, molecules, fields ----
@layers("graph_attention", [(256, 64), (256, 256)], [(32, 64), (32, 32)])
def graph_attention(torch, nn):
    """Scores are sums of a number for each of both nodes, hidden where there is no edge (GAT), then distances (SchNet)."""
    class Attend(nn.Module):
        def __init__(self, a, heads, c):
            super().__init__()
            self.heads, self.inner, self.left, self.right = heads, nn.Linear(a, heads * c, False), nn.Parameter(torch.rand(heads, c)), nn.Parameter(torch.rand(heads, c))

        def forward(self, x, edges):
            y = heads_of(self.inner(x), self.heads)
            left, right = (y * self.left[:, None]).sum(-1, keepdim=True), (y * self.right[:, None]).sum(-1, keepdim=True)
            scores = nn.functional.leaky_relu(left + right.transpose(-1, -2), 0.2)
            weights = torch.where(edges[:, None] > 0.7, scores, -9e15).softmax(-1)
            return (weights @ y).transpose(1, 2).flatten(2)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.position = Attend(64, 8, 16), Attend(128, 1, 64), nn.Linear(64, 3)
            self.filter, self.last = nn.Sequential(nn.Linear(16, 64), nn.Softplus(), nn.Linear(64, 64)), nn.Linear(64, 1)
            self.register_buffer("centers", torch.linspace(0, 4, 16))

        def forward(self, x, edges):
            y = self.b(nn.functional.elu(self.a(x, edges)), edges)
            at = self.position(x)[:, :64]
            distance = ((at[:, :, None] - at[:, None]).square().sum(-1) + 1e-6).sqrt()
            w = self.filter(torch.exp(-4 * (distance[..., None] - self.centers).square()))
            y = y[:, :64]
            return self.last(y + (w * y[:, None]).sum(2)).sum(1)
    return Net()


@layers("nearest_points", [(3, 512)], [(3, 64)])
def nearest_points(torch, nn):
    """The nearest neighbours of each point by TopK, gathered, a convolution of differences, the maximum (DGCNN)."""
    class Edge(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.inner = nn.Sequential(nn.Conv2d(2 * a, b, 1, bias=False), nn.BatchNorm2d(b), nn.LeakyReLU(0.2))

        def forward(self, x):
            n, c, points = x.shape
            square = x.square().sum(1, keepdim=True)
            near = (2 * x.transpose(2, 1) @ x - square - square.transpose(2, 1)).topk(16, -1)[1]
            at = (near + torch.arange(n, device=x.device).view(-1, 1, 1) * points).view(-1)
            x = x.transpose(2, 1).contiguous()
            near = x.view(n * points, c)[at].view(n, points, 16, c)
            x = x[:, :, None].expand(-1, -1, 16, -1)
            return self.inner(torch.cat([near - x, x], 3).permute(0, 3, 1, 2)).amax(-1)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.last = Edge(3, 64), Edge(64, 128), nn.Sequential(nn.Conv1d(192, 512, 1, bias=False), nn.BatchNorm1d(512), nn.LeakyReLU(0.2))
            self.out = nn.Linear(1024, 40)

        def forward(self, x):
            a = self.a(x)
            y = self.last(torch.cat([a, self.b(a)], 1))
            return self.out(torch.cat([y.amax(-1), y.mean(-1)], 1))
    return Net()


@layers("pairs", [(64, 128), (64, 64, 64)], [(16, 128), (16, 16, 64)])
def pairs(torch, nn):
    """Sequences that attend with a bias from pairs; pairs from outer products, triangles of products and of attention (AlphaFold)."""
    class Gated(nn.Module):
        def __init__(self, c, bias=None):
            super().__init__()
            self.norm, self.qkv, self.gate, self.out = nn.LayerNorm(c), nn.Linear(c, 3 * 128, False), nn.Linear(c, 128), nn.Linear(128, c)
            self.bias = nn.Sequential(nn.LayerNorm(bias), nn.Linear(bias, 4, False)) if bias else None

        def forward(self, x, pair=None):  # ..., positions, channels
            x = self.norm(x)
            q, k, v = (y.unflatten(-1, (4, 32)).transpose(-2, -3) for y in self.qkv(x).chunk(3, -1))
            bias = self.bias(x if pair is None else pair).permute(0, 3, 1, 2)
            scores = q * 32 ** -0.5 @ k.transpose(-1, -2) + (bias[:, None] if pair is None else bias)
            y = (scores.softmax(-1) @ v).transpose(-2, -3).flatten(-2)
            return self.out(y * self.gate(x).sigmoid())

    class Triangle(nn.Module):
        def __init__(self, incoming):
            super().__init__()
            self.incoming, self.norm, self.inner = incoming, nn.LayerNorm(64), nn.LayerNorm(64)
            self.a, self.ag, self.b, self.bg, self.g, self.out = (nn.Linear(64, 64) for _ in range(6))

        def forward(self, z):
            z = self.norm(z)
            a, b = self.a(z) * self.ag(z).sigmoid(), self.b(z) * self.bg(z).sigmoid()
            y = torch.einsum("bkic,bkjc->bijc" if self.incoming else "bikc,bjkc->bijc", a, b)
            return self.out(self.inner(y)) * self.g(z).sigmoid()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.attend, self.own, self.feed = Gated(128, 64), Gated(64, 64), nn.Sequential(nn.LayerNorm(128), nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 128))
            self.norm, self.left, self.right, self.outer = nn.LayerNorm(128), nn.Linear(128, 16), nn.Linear(128, 16), nn.Linear(256, 64)
            self.out, self.into, self.pair = Triangle(False), Triangle(True), nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))

        def forward(self, s, z):
            s = s + self.attend(s, z)
            s = s + self.feed(s)
            y = self.norm(s)
            z = z + self.outer(torch.einsum("bic,bjd->bijcd", self.left(y), self.right(y)).flatten(-2))
            z = z + self.out(z)
            z = z + self.into(z)
            z = z + self.own(z)
            return s, z + self.pair(z)
    return Net()


@layers("operator_slices", [(1024, 2), (1024, 1)], [(64, 2), (64, 1)])
def operator_slices(torch, nn):
    """Points are gathered into slices by a softmax, slices attend, points get them back (Transolver); branch and trunk (DeepONet)."""
    class Attend(nn.Module):
        def __init__(self, c, heads, slices):
            super().__init__()
            self.heads, self.temperature = heads, nn.Parameter(torch.ones(1, heads, 1, 1) * 0.5)
            self.x, self.f, self.choose, self.out = nn.Linear(c, c), nn.Linear(c, c), nn.Linear(c // heads, slices), nn.Linear(c, c)
            self.q, self.k, self.v = (nn.Linear(c // heads, c // heads, False) for _ in range(3))

        def forward(self, x):
            f, y = heads_of(self.f(x), self.heads), heads_of(self.x(x), self.heads)
            weights = (self.choose(y) / self.temperature).softmax(-1)
            tokens = torch.einsum("bhnc,bhng->bhgc", f, weights) / (weights.sum(2) + 1e-5)[..., None]
            tokens = nn.functional.scaled_dot_product_attention(self.q(tokens), self.k(tokens), self.v(tokens))
            return self.out(torch.einsum("bhgc,bhng->bhnc", tokens, weights).transpose(1, 2).flatten(2))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.norms = nn.Sequential(nn.Linear(3, 128), nn.GELU(), nn.Linear(128, 128)), nn.ModuleList(nn.LayerNorm(128) for _ in range(4))
            self.attends, self.feeds = nn.ModuleList(Attend(128, 4, 32) for _ in range(2)), nn.ModuleList(nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 128)) for _ in range(2))
            self.branch, self.trunk = nn.Sequential(nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 64)), nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64))

        def forward(self, at, values):
            x = self.into(torch.cat([at, values], -1))
            for k in range(2):
                x = x + self.attends[k](self.norms[2 * k](x))
                x = x + self.feeds[k](self.norms[2 * k + 1](x))
            return torch.einsum("bc,bnc->bn", self.branch(x.mean(1)), self.trunk(at))
    return Net()


@layers("rays", [(128, 3), (128, 3)], [(16, 3), (16, 3)])
def rays(torch, nn):
    """Points along rays, encoded by frequencies, their colours summed by what is not hidden (NeRF)."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.ModuleList(nn.Linear(63 if k == 0 else 319 if k == 4 else 256, 256) for k in range(6))
            self.density, self.colour = nn.Linear(256, 1), nn.Sequential(nn.Linear(256 + 27, 128), nn.ReLU(), nn.Linear(128, 3), nn.Sigmoid())

        def encoded(self, x, n):
            return torch.cat([x, *(f(x * 2.0 ** k) for k in range(n) for f in (torch.sin, torch.cos))], -1)

        def forward(self, origin, direction):
            z = torch.linspace(2, 6, 64, dtype=origin.dtype, device=origin.device)
            at = self.encoded(origin[..., None, :] + direction[..., None, :] * z[:, None], 10)
            y = at
            for k, each in enumerate(self.first):
                y = each(torch.cat([at, y], -1) if k == 4 else y).relu()
            views = self.encoded(nn.functional.normalize(direction, dim=-1), 4)[..., None, :].expand(-1, -1, 64, -1)
            alpha = 1 - torch.exp(-self.density(y).relu().squeeze(-1) * (4 / 63))
            seen = torch.exp(torch.cumsum(torch.cat([torch.zeros_like(alpha[..., :1]), torch.log(1 - alpha + 1e-6)], -1), -1)[..., :-1])
            weights = alpha * seen
            return (weights[..., None] * self.colour(torch.cat([y, views], -1))).sum(-2), (weights * z).sum(-1)
    return Net()


@layers("slots", [(256, 64)], [(32, 64)])
def slots(torch, nn):
    """Slots compete for inputs: softmax over slots, means by weights, a GRU cell, three times; then the nearest entries of a code book."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.start, self.norms = nn.Parameter(torch.randn(1, 7, 64)), nn.ModuleList(nn.LayerNorm(64) for _ in range(3))
            self.q, self.kv, self.cell, self.feed = nn.Linear(64, 64), nn.Linear(64, 128), nn.GRUCell(64, 64), nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
            self.book = nn.Parameter(torch.randn(512, 64))

        def forward(self, x):
            n = x.shape[0]
            k, v = self.kv(self.norms[0](x)).chunk(2, -1)
            slots = self.start.expand(n, -1, -1)
            for _ in range(3):
                scores = self.q(self.norms[1](slots)) @ k.transpose(1, 2) * 64 ** -0.5
                weights = scores.softmax(1) + 1e-8
                updates = weights / weights.sum(-1, keepdim=True) @ v
                slots = self.cell(updates.reshape(-1, 64), slots.reshape(-1, 64)).view(n, 7, 64)
                slots = slots + self.feed(self.norms[2](slots))
            flat = slots.reshape(-1, 64)
            code = (flat.square().sum(1, keepdim=True) - 2 * flat @ self.book.t() + self.book.square().sum(1)).argmin(1)
            return (flat + (self.book[code] - flat)).view(n, 7, 64), code.view(n, 7)
    return Net()


# ---- diffusion transformers ----
def scaled_to_one(torch, nn):
    class Scaled(nn.Module):
        """RMS normalisation as diffusers has it."""

        def __init__(self, c):
            super().__init__()
            self.weight = nn.Parameter(torch.rand(c) + 0.5)

        def forward(self, x):
            return (x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(self.weight.dtype) * self.weight
    return Scaled


@layers("two_streams", [(256, 384), (77, 384), (384,)], [(16, 384), (5, 384), (384,)])
def two_streams(torch, nn):
    """Pictures and text have weights of their own and one attention, queries and keys are normalised, shifts and gates by a condition (MMDiT)."""
    Scaled = scaled_to_one(torch, nn)

    class Half(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.mod, self.qkv, self.out = nn.Linear(c, 6 * c), nn.Linear(c, 3 * c), nn.Linear(c, c)
            self.norms, self.feed = nn.ModuleList(nn.LayerNorm(c, elementwise_affine=False, eps=1e-6) for _ in range(2)), nn.Sequential(nn.Linear(c, 4 * c), nn.GELU("tanh"), nn.Linear(4 * c, c))
            self.q, self.k = Scaled(64), Scaled(64)

        def before(self, x, c):
            self_mod = self.mod(nn.functional.silu(c))[:, None].chunk(6, -1)
            q, k, v = (heads_of(y, 6) for y in self.qkv(self.norms[0](x) * (1 + self_mod[1]) + self_mod[0]).chunk(3, -1))
            return self.q(q), self.k(k), v, self_mod

        def after(self, x, y, mod):
            x = x + mod[2] * self.out(y)
            return x + mod[5] * self.feed(self.norms[1](x) * (1 + mod[4]) + mod[3])

    class Block(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.x, self.t = Half(c), Half(c)

        def forward(self, x, t, c):
            a, b = self.x.before(x, c), self.t.before(t, c)
            y = nn.functional.scaled_dot_product_attention(*(torch.cat([i, j], 2) for i, j in zip(b[:3], a[:3]))).transpose(1, 2).flatten(2)
            return self.x.after(x, y[:, t.shape[1]:], a[3]), self.t.after(t, y[:, :t.shape[1]], b[3])

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block(384) for _ in range(3))

        def forward(self, x, t, c):
            for block in self.blocks:
                x, t = block(x, t, c)
            return x, t
    return Net()


@layers("one_stream", [(320, 384), (384,), (320, 32, 2)], [(24, 384), (384,), (24, 32, 2)])
def one_stream(torch, nn):
    """Attention and feed-forward side by side behind one product, rotated pairs by computed angles (Flux)."""
    Scaled = scaled_to_one(torch, nn)

    def rotated(x, cos, sin):
        pairs = x.unflatten(-1, (-1, 2))
        return torch.stack([pairs[..., 0] * cos - pairs[..., 1] * sin, pairs[..., 0] * sin + pairs[..., 1] * cos], -1).flatten(-2)

    class Block(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.norm, self.mod, self.into, self.out = nn.LayerNorm(c, elementwise_affine=False), nn.Linear(c, 3 * c), nn.Linear(c, 7 * c), nn.Linear(5 * c, c)
            self.q, self.k, self.c = Scaled(64), Scaled(64), c

        def forward(self, x, cond, cos, sin):
            shift, scale, gate = self.mod(nn.functional.silu(cond))[:, None].chunk(3, -1)
            qkv, up = self.into(self.norm(x) * (1 + scale) + shift).split([3 * self.c, 4 * self.c], -1)
            q, k, v = qkv.unflatten(-1, (3, 6, 64)).permute(2, 0, 3, 1, 4)
            q, k = rotated(self.q(q), cos, sin), rotated(self.k(k), cos, sin)
            y = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            return x + gate * self.out(torch.cat([y, nn.functional.gelu(up, approximate="tanh")], 2))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block(384) for _ in range(3))

        def forward(self, x, cond, angles):
            cos, sin = angles[:, None].unbind(-1)
            for block in self.blocks:
                x = block(x, cond, cos, sin)
            return x
    return Net()
