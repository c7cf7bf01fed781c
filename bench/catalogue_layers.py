# SPDX-License-Identifier: Apache-2.0
"""Layers of PyTorch as people put them into modules of their own, a few at a time."""
from catalogue import entry


def layers(name, inputs, small_inputs=None):
    """A function of (torch, nn) that gives a module; the dims of its inputs without the batch, or functions of (torch, batch)."""
    def add(make):
        def both(small, batch):
            import torch
            given = small_inputs if small and small_inputs else inputs
            return make(torch, torch.nn), tuple(x(torch, batch) if callable(x) else torch.rand(batch, *x) for x in given)
        entry(f"layers_{name}")(both)
        return make
    return add


@layers("attention", [(64, 256)])
def attention(torch, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.norm = nn.MultiheadAttention(256, 8, batch_first=True), nn.LayerNorm(256)

        def forward(self, x):
            y, weights = self.inner(x, x, x, need_weights=True, average_attn_weights=True)
            return self.norm(x + y), weights
    return Net()


@layers("transformer", [(40, 256), (24, 256)])
def transformer(torch, nn):
    return nn.Transformer(256, 8, 2, 2, 1024, batch_first=True, norm_first=True, activation="gelu")


@layers("unfold", [(16, 32, 32)])
def unfold(torch, nn):
    """Patches that overlap are weighed and put back."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = nn.Linear(16 * 9, 16 * 9)

        def forward(self, x):
            y = nn.functional.unfold(x, 3, padding=1).transpose(1, 2)
            return nn.functional.fold(self.mix(y).transpose(1, 2), x.shape[2:], 3, padding=1)
    return Net()


@layers("spectrogram", [(16000,)])
def spectrogram(torch, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("window", torch.hann_window(400))
            self.register_buffer("bank", torch.rand(80, 201))

        def forward(self, x):
            y = torch.view_as_real(torch.stft(x, 400, 160, window=self.window, return_complex=True))
            return torch.log(self.bank @ y.square().sum(-1) + 1e-6)
    return Net()


@layers("real_fourier", [(64, 128)])
def real_fourier(torch, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.gain = nn.Parameter(torch.rand(65))

        def forward(self, x):
            return torch.fft.irfft(torch.fft.rfft(x, dim=-1) * self.gain, n=128, dim=-1)
    return Net()


@layers("einsum", [(32, 64), (32, 64)])
def einsum(torch, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.core, self.out = nn.Parameter(torch.randn(8, 64, 64) / 8), nn.Parameter(torch.randn(8, 16))

        def forward(self, x, y):
            z = torch.einsum("bid,hde,bje->bhij", x, self.core, y)
            return torch.einsum("bhij,hk->bijk", z.softmax(-1), self.out)
    return Net()


@layers("scatter", [(200, 64), lambda torch, batch: torch.randint(0, 200, (batch, 2, 800))])
def scatter(torch, nn):
    """Messages along edges, summed and meant by their targets."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.message, self.update = nn.Linear(128, 64), nn.GRUCell(64, 64)

        def forward(self, x, edges):
            source, target = (edges[:, k, :, None].expand(-1, -1, 64) for k in range(2))
            m = torch.relu(self.message(torch.cat([x.gather(1, source), x.gather(1, target)], -1)))
            total = torch.zeros_like(x).scatter_add(1, target, m)
            count = torch.zeros_like(x).scatter_add(1, target, torch.ones_like(m)).clamp(min=1)
            return self.update((total / count).flatten(0, 1), x.flatten(0, 1)).view_as(x)
    return Net()


@layers("embedding_bag", [lambda torch, batch: torch.randint(0, 5000, (8 * batch, 20))])
def embedding_bag(torch, nn):
    return nn.Sequential(nn.EmbeddingBag(5000, 64, mode="mean"), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))


@layers("weight_norm", [(32, 400)])
def weight_norm(torch, nn):
    norm = torch.nn.utils.parametrizations.weight_norm
    return nn.Sequential(norm(nn.Conv1d(32, 64, 5, padding=2)), nn.ELU(), norm(nn.ConvTranspose1d(64, 32, 8, 4, 2)), nn.LeakyReLU(0.1), norm(nn.Conv1d(32, 1, 7, padding=3)), nn.Tanh())


@layers("spectral_norm", [(3, 64, 64)])
def spectral_norm(torch, nn):
    norm = torch.nn.utils.parametrizations.spectral_norm
    return nn.Sequential(*[k for a, b in ((3, 32), (32, 64), (64, 128)) for k in (norm(nn.Conv2d(a, b, 4, 2, 1)), nn.LeakyReLU(0.2))], nn.Flatten(), norm(nn.Linear(8192, 1)))


@layers("bigru", [(60, 40)])
def bigru(torch, nn):
    """Recurrent layers both ways with attention over time."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.score, self.last = nn.GRU(40, 96, 2, batch_first=True, bidirectional=True), nn.Linear(192, 1), nn.Linear(192, 10)

        def forward(self, x):
            y, h = self.inner(x)
            w = torch.softmax(self.score(torch.tanh(y)), 1)
            return self.last((w * y).sum(1) + torch.cat([h[-2], h[-1]], 1))
    return Net()


@layers("rnn", [(60, 40)])
def rnn(torch, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.last = nn.RNN(40, 96, 2, nonlinearity="relu", batch_first=True, bidirectional=True), nn.Linear(192, 10)

        def forward(self, x):
            return self.last(self.inner(x)[0][:, -1])
    return Net()


@layers("lstm_cells", [(60, 40)])
def lstm_cells(torch, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.ModuleList([nn.LSTMCell(40, 96), nn.LSTMCell(96, 96)])

        def forward(self, x):
            states = [(x.new_zeros(x.shape[0], 96), x.new_zeros(x.shape[0], 96)) for _ in self.inner]
            out = []
            for t in range(20):
                y = x[:, t]
                for k, cell in enumerate(self.inner):
                    states[k] = cell(y, states[k])
                    y = states[k][0]
                out.append(y)
            return torch.stack(out, 1)
    return Net()


@layers("spatial_transformer", [(1, 28, 28)])
def spatial_transformer(torch, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.where = nn.Sequential(nn.Conv2d(1, 8, 7), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(8, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(90, 32), nn.ReLU(),
                                       nn.Linear(32, 6))
            self.what = nn.Sequential(nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(320, 10))

        def forward(self, x):
            grid = nn.functional.affine_grid(self.where(x).view(-1, 2, 3), x.size(), align_corners=False)
            return self.what(nn.functional.grid_sample(x, grid, align_corners=False))
    return Net()


@layers("norms", [(32, 24, 24)])
def norms(torch, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = nn.Sequential(nn.Conv2d(32, 64, 3, padding=1), nn.GroupNorm(8, 64), nn.Mish(), nn.Conv2d(64, 64, 3, padding=1), nn.InstanceNorm2d(64, affine=True), nn.SELU(),
                                       nn.LocalResponseNorm(5), nn.Conv2d(64, 64, 3, padding=1), nn.CELU(), nn.LPPool2d(2, 2), nn.Softplus(), nn.Hardtanh(), nn.GLU(1))

        def forward(self, x):
            y = self.steps(x)
            return nn.functional.normalize(y.flatten(1)), nn.functional.rms_norm(y, (12,))
    return Net()


@layers("pixel_moves", [(16, 32, 32)])
def pixel_moves(torch, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(64, 64, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1, padding_mode="circular")

        def forward(self, x):
            y = nn.functional.pixel_shuffle(torch.relu(self.a(nn.functional.pixel_unshuffle(x, 2))), 2)
            y = torch.roll(self.b(y), (3, -2), (2, 3)).flip(3)
            y = nn.functional.interpolate(y, size=(50, 70), mode="bicubic", align_corners=False)
            return nn.functional.adaptive_avg_pool2d(y, (7, 5)), nn.functional.interpolate(y, scale_factor=0.5, mode="area")
    return Net()


@layers("mixture", [(48, 128)])
def mixture(torch, nn):
    """Each token takes two of eight experts."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.up, self.down = nn.Linear(128, 8), nn.Parameter(torch.randn(8, 128, 256) / 11), nn.Parameter(torch.randn(8, 256, 128) / 16)

        def forward(self, x):
            best, which = self.gate(x).topk(2, -1)
            weight = torch.zeros(*x.shape[:-1], 8).scatter(-1, which, best.softmax(-1))
            y = torch.einsum("btd,edh->beth", x, self.up)
            return torch.einsum("beth,ehd,bte->btd", nn.functional.gelu(y), self.down, weight)
    return Net()


@layers("ctc", [(1, 32, 160)])
def ctc(torch, nn):
    """Convolutions, columns as steps, log of probabilities and the greedy path."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(*[k for a, b in ((1, 16), (16, 32), (32, 64)) for k in (nn.Conv2d(a, b, 3, padding=1), nn.Hardswish(), nn.MaxPool2d((2, 2 if b < 64 else 1)))])
            self.inner, self.last = nn.LSTM(256, 64, bidirectional=True), nn.Linear(128, 40)

        def forward(self, x):
            y = self.body(x).flatten(1, 2).permute(2, 0, 1)
            y = torch.log_softmax(self.last(self.inner(y)[0]), 2)
            return y, y.argmax(2)
    return Net()


@layers("masked_pooling", [(50, 64), lambda torch, batch: torch.randint(10, 50, (batch,))])
def masked_pooling(torch, nn):
    """Lengths of rows decide what is averaged, what is the largest, and what comes last."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(64, 64)

        def forward(self, x, lengths):
            y = torch.tanh(self.inner(x))
            kept = torch.arange(x.shape[1])[None] < lengths[:, None]
            mean = (y * kept[..., None]).sum(1) / lengths[:, None]
            largest = y.masked_fill(~kept[..., None], float("-inf")).amax(1)
            last = y.gather(1, (lengths - 1)[:, None, None].expand(-1, 1, 64))[:, 0]
            return torch.cat([mean, largest, last, y.std(1), y.cumsum(1)[:, -1], y.sort(1)[0][:, 5]], -1)
    return Net()


@layers("graph_convolution", [(100, 32), (100, 100)])
def graph_convolution(torch, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(32, 64), nn.Linear(64, 16)

        def forward(self, x, links):
            links = (links > 0.9).float() + torch.eye(links.shape[-1])
            d = links.sum(-1).rsqrt()
            links = d[..., None] * links * d[:, None]
            return torch.log_softmax(links @ self.b(torch.relu(links @ self.a(x))), -1)
    return Net()


@layers("kan", [(64,)])
def kan(torch, nn):
    """Radial functions of each feature, then a product: a Kolmogorov-Arnold layer."""
    class Layer(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.register_buffer("grid", torch.linspace(-2, 2, 8))
            self.base, self.spline = nn.Linear(a, b), nn.Linear(8 * a, b, bias=False)

        def forward(self, x):
            y = torch.exp(-((x[..., None] - self.grid) / 0.57) ** 2)
            return self.base(nn.functional.silu(x)) + self.spline(y.flatten(-2))
    return nn.Sequential(Layer(64, 128), Layer(128, 10))


@layers("neural_field", [(1024, 3)])
def neural_field(torch, nn):
    """Points of rays, their frequencies, a perceptron, and what is summed along each ray."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rates", 2.0 ** torch.arange(8))
            self.inner = nn.Sequential(nn.Linear(51, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4))

        def forward(self, x):
            y = (x[..., None] * self.rates).flatten(-2)
            y = self.inner(torch.cat([x, y.sin(), y.cos()], -1)).view(x.shape[0], -1, 32, 4)
            alpha = 1 - torch.exp(-torch.relu(y[..., 3]) / 32)
            through = torch.exp(torch.cumsum(torch.log(torch.cat([torch.ones_like(alpha[..., :1]), 1 - alpha + 1e-10], -1)), -1))[..., :-1]
            return ((alpha * through)[..., None] * torch.sigmoid(y[..., :3])).sum(-2)
    return Net()
