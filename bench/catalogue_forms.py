# SPDX-License-Identifier: Apache-2.0
"""Attention, memories, products and images as people write them by hand, of sizes that are no power of two: heads of 32, 48, 80, 96 and 160, tokens 77, 197, 333 and 1,000."""
from catalogue_layers import layers


def block(torch, nn, width, attend, hidden=None):
    """A transformer's layer around a module that attends."""
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attend, self.first, self.last = attend, nn.LayerNorm(width), nn.LayerNorm(width)
            self.up, self.down = nn.Linear(width, hidden or 4 * width), nn.Linear(hidden or 4 * width, width)

        def forward(self, x):
            x = x + self.attend(self.first(x))
            return x + self.down(nn.functional.gelu(self.up(self.last(x)), approximate="tanh"))
    return Block()


def scaled_rows(torch, nn, width):
    """A root mean square norm as exporters know it."""
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(width))

        def forward(self, x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale
    return Norm()


def stacked(torch, nn, width, make, n=3):
    return nn.Sequential(*(block(torch, nn, width, make()) for _ in range(n)))


@layers("einsum_heads", [(197, 480)])
def einsum_heads(torch, nn):
    """Heads of 48 by Einsum, weights of three dims, as vision models of JAX are ported."""
    class Attend(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = (nn.Parameter(torch.randn(480, 10, 48) / 22) for _ in range(3))
            self.out, self.bias = nn.Parameter(torch.randn(10, 48, 480) / 22), nn.Parameter(torch.zeros(3, 10, 48))

        def forward(self, x):
            q, k, v = (torch.einsum("bte,ehd->bthd", x, w) + b for w, b in zip((self.q, self.k, self.v), self.bias))
            scores = torch.einsum("bqhd,bkhd->bhqk", q * 48 ** -0.5, k).softmax(-1)
            return torch.einsum("bhqd,hde->bqe", torch.einsum("bhqk,bkhd->bhqd", scores, v), self.out)
    return stacked(torch, nn, 480, Attend)


@layers("biased_slopes", [(333, 480)])
def biased_slopes(torch, nn):
    """Heads of 80, causal, with ALiBi's slopes that are computed from the length."""
    class Attend(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(480, 1440), nn.Linear(480, 480)
            self.register_buffer("slopes", 2.0 ** -torch.arange(1, 7).float())

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = self.qkv(x).view(b, t, 3, 6, 80).permute(2, 0, 3, 1, 4)
            at = torch.arange(t, device=x.device)
            distance = (at[None, :] - at[:, None]).to(x.dtype)
            scores = q @ k.transpose(-1, -2) / 80 ** 0.5 + self.slopes.view(1, -1, 1, 1) * distance
            scores = scores.masked_fill(at[None, :] > at[:, None], float("-inf"))
            return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, 480))
    return stacked(torch, nn, 480, Attend)


@layers("bucketed", [(333, 576)])
def bucketed(torch, nn):
    """Heads of 96 without a scale, biases by buckets of distances."""
    class Attend(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.out = (nn.Linear(576, 576, bias=False) for _ in range(4))
            self.table = nn.Embedding(32, 6)

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = (m(x).view(b, t, 6, 96).transpose(1, 2) for m in (self.q, self.k, self.v))
            at = torch.arange(t, device=x.device)
            distance = at[None, :] - at[:, None]
            n = distance.abs()
            far = 8 + (torch.log(n.float().clamp(min=1) / 8) / 2.7725887 * 8).long()
            bucket = (distance > 0).long() * 16 + torch.where(n < 8, n, far.clamp(max=15))
            bias = self.table(bucket).permute(2, 0, 1)[None]
            return self.out((torch.matmul(q, k.transpose(3, 2)) / 10 + bias).softmax(-1).matmul(v).transpose(1, 2).contiguous().view(b, t, -1))
    return stacked(torch, nn, 576, Attend)


@layers("wide_heads", [(1000, 640)])
def wide_heads(torch, nn):
    """Four heads of 160 over 1,000 tokens, rotated in halves, norms of queries and keys."""
    class Attend(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out, self.q_norm, self.k_norm = nn.Linear(640, 1920, bias=False), nn.Linear(640, 640), scaled_rows(torch, nn, 160), scaled_rows(torch, nn, 160)
            angles = torch.arange(1000)[:, None] * 10000.0 ** -(torch.arange(0, 160, 2) / 160)
            self.register_buffer("cos", angles.cos())
            self.register_buffer("sin", angles.sin())

        def rotated(self, x):
            a, b = x.chunk(2, -1)
            return torch.cat([a * self.cos - b * self.sin, b * self.cos + a * self.sin], -1)

        def forward(self, x):
            q, k, v = (y.unflatten(-1, (4, 160)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
            q, k = self.rotated(self.q_norm(q)), self.rotated(self.k_norm(k))
            return self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
    return stacked(torch, nn, 640, Attend, 2)


@layers("complex_rotation", [(333, 512)])
def complex_rotation(torch, nn):
    """Grouped heads of 32, pairs of neighbours rotated by stacking, a window of 64 tokens and a soft cap."""
    class Attend(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.kv, self.out = nn.Linear(512, 512, bias=False), nn.Linear(512, 256, bias=False), nn.Linear(512, 512, bias=False)
            angles = torch.arange(333)[:, None] * 10000.0 ** -(torch.arange(0, 32, 2) / 32)
            self.register_buffer("cos", angles.cos()[None, :, None])
            self.register_buffer("sin", angles.sin()[None, :, None])

        def rotated(self, x):
            a, b = x[..., ::2], x[..., 1::2]
            return torch.stack([a * self.cos - b * self.sin, a * self.sin + b * self.cos], -1).flatten(-2)

        def forward(self, x):
            b, t, _ = x.shape
            k, v = self.kv(x).view(b, t, 2, 4, 32).unbind(2)
            q, k = self.rotated(self.q(x).view(b, t, 16, 32)), self.rotated(k)
            k, v = (y[:, :, :, None].expand(b, t, 4, 4, 32).reshape(b, t, 16, 32).transpose(1, 2) for y in (k, v))
            scores = 50 * torch.tanh(q.transpose(1, 2) @ k.transpose(-1, -2) / 32 ** 0.5 / 50)
            at = torch.arange(t, device=x.device)
            seen = (at[None, :] <= at[:, None]) & (at[None, :] > at[:, None] - 64)
            return self.out((torch.where(seen, scores, torch.finfo(scores.dtype).min).softmax(-1, dtype=torch.float32).to(v.dtype) @ v).transpose(1, 2).reshape(b, t, -1))
    return stacked(torch, nn, 512, Attend)


@layers("latent_heads", [(197, 768)])
def latent_heads(torch, nn):
    """Keys and values out of a shared latent row, one rotated part for all heads, values narrower than keys."""
    class Attend(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.low, self.high, self.out = nn.Linear(768, 8 * 96), nn.Linear(768, 160), nn.Linear(128, 8 * 128), nn.Linear(512, 768)
            self.norm = scaled_rows(torch, nn, 128)
            angles = torch.arange(197)[:, None] * 10000.0 ** -(torch.arange(0, 32, 2) / 32)
            self.register_buffer("cos", torch.cat([angles, angles], -1).cos())
            self.register_buffer("sin", torch.cat([angles, angles], -1).sin())

        def rotated(self, x):
            a, b = x.chunk(2, -1)
            return x * self.cos + torch.cat([-b, a], -1) * self.sin

        def forward(self, x):
            b, t, _ = x.shape
            plain, turned = self.q(x).view(b, t, 8, 96).transpose(1, 2).split([64, 32], -1)
            latent, shared = self.low(x).split([128, 32], -1)
            k, v = self.high(self.norm(latent)).view(b, t, 8, 128).transpose(1, 2).split([64, 64], -1)
            q = torch.cat([plain, self.rotated(turned)], -1)
            k = torch.cat([k, self.rotated(shared[:, None]).expand(-1, 8, -1, -1)], -1)
            return self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, -1))
    return stacked(torch, nn, 768, Attend)


@layers("axial", [(96, 48, 48)])
def axial(torch, nn):
    """Rows, then columns of an image attend, three heads of 32, channels first in between."""
    class Attend(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.MultiheadAttention(96, 3, batch_first=True)

        def forward(self, x):
            return self.inner(x, x, x, need_weights=False)[0]

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows, self.columns, self.mix = nn.ModuleList(Attend() for _ in range(2)), nn.ModuleList(Attend() for _ in range(2)), nn.Conv2d(96, 96, 3, padding=1)

        def forward(self, x):
            b, c, h, w = x.shape
            for rows, columns in zip(self.rows, self.columns):
                x = x + rows(x.permute(0, 2, 3, 1).reshape(b * h, w, c)).view(b, h, w, c).permute(0, 3, 1, 2)
                x = x + columns(x.permute(0, 3, 2, 1).reshape(b * w, h, c)).view(b, w, h, c).permute(0, 3, 2, 1)
            return self.mix(x)
    return Net()


@layers("linear_attention", [(1000, 320)])
def linear_attention(torch, nn):
    """Feature maps instead of a softmax: products of keys and values first."""
    class Attend(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.out = (nn.Linear(320, 320) for _ in range(4))

        def forward(self, x):
            q, k, v = (m(x).unflatten(-1, (5, 64)) for m in (self.q, self.k, self.v))
            q, k = nn.functional.elu(q) + 1, nn.functional.elu(k) + 1
            kv = torch.einsum("bthd,bthe->bhde", k, v)
            scale = 1 / (torch.einsum("bthd,bhd->bth", q, k.sum(1)) + 1e-6)
            return self.out(torch.einsum("bthd,bhde,bth->bthe", q, kv, scale).flatten(2))
    return stacked(torch, nn, 320, Attend)


@layers("delta_rule", [(64, 256)])
def delta_rule(torch, nn):
    """A fast-weight memory in a loop over 64 tokens, which exporters unroll."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.beta, self.out = nn.Linear(256, 768), nn.Linear(256, 4), nn.Linear(256, 256)

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = self.qkv(x).view(b, t, 3, 4, 64).unbind(2)
            k, beta = nn.functional.normalize(k, dim=-1), self.beta(x).sigmoid()[..., None]
            state, ys = x.new_zeros(b, 4, 64, 64), []
            for i in range(t):
                old = (state * k[:, i, :, :, None]).sum(-2)
                state = state + k[:, i, :, :, None] * (beta[:, i] * (v[:, i] - old))[:, :, None]
                ys.append((state * q[:, i, :, :, None]).sum(-2))
            return self.out(torch.stack(ys, 1).flatten(2))
    return Net()


@layers("selective_scan", [(64, 192)])
def selective_scan(torch, nn):
    """Mamba's block by hand: a causal depthwise convolution, steps that depend on the input, a loop over tokens."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.conv = nn.Linear(192, 768, bias=False), nn.Conv1d(384, 384, 4, groups=384, padding=3)
            self.low, self.step, self.out = nn.Linear(384, 12 + 32, bias=False), nn.Linear(12, 384), nn.Linear(384, 192, bias=False)
            self.log_a, self.d = nn.Parameter(torch.log(torch.arange(1, 17).float()).repeat(384, 1)), nn.Parameter(torch.ones(384))

        def forward(self, x):
            t = x.shape[1]
            x, gate = self.into(x).chunk(2, -1)
            x = nn.functional.silu(self.conv(x.transpose(1, 2))[..., :t]).transpose(1, 2)
            step, b, c = self.low(x).split([12, 16, 16], -1)
            step = nn.functional.softplus(self.step(step))
            decay, given = torch.exp(step[..., None] * -self.log_a.exp()), (step * x)[..., None] * b[:, :, None]
            h, ys = torch.zeros_like(decay[:, 0]), []
            for i in range(t):
                h = decay[:, i] * h + given[:, i]
                ys.append((h * c[:, i, None]).sum(-1))
            return self.out((torch.stack(ys, 1) + x * self.d) * nn.functional.silu(gate))
    return Net()


@layers("routed_experts", [(128, 512)])
def routed_experts(torch, nn):
    """Experts by masks of one-hot choices and Einsum, with a capacity, as in Switch transformers."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.route = nn.Linear(512, 8, bias=False)
            self.up, self.down = nn.Parameter(torch.randn(8, 512, 1024) / 22), nn.Parameter(torch.randn(8, 1024, 512) / 32)

        def forward(self, x):
            b = x.shape[0]
            x = x.reshape(-1, 512)
            weights = self.route(x).softmax(-1)
            gate, chosen = weights.max(-1)
            mask = nn.functional.one_hot(chosen, 8).to(x.dtype)
            place = (mask.cumsum(0) - 1) * mask
            kept = (place < 32).to(x.dtype) * mask
            slots = nn.functional.one_hot((place * kept).sum(-1).long().clamp(max=31), 32).to(x.dtype)
            send = torch.einsum("te,tc->tec", kept, slots)
            y = torch.einsum("tec,td->ecd", send, x)
            y = torch.einsum("ecf,efd->ecd", nn.functional.relu(torch.einsum("ecd,edf->ecf", y, self.up)), self.down)
            return torch.einsum("tec,ecd->td", send * gate[:, None, None], y).view(b, -1, 512)
    return Net()


@layers("message_passing", [lambda torch, batch: torch.rand(1000, 64), lambda torch, batch: torch.randint(0, 1000, (2, 8000)), lambda torch, batch: torch.rand(8000, 16)])
def message_passing(torch, nn):
    """A graph network: messages of edges, sums and attention by segments."""
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.message, self.score, self.update = nn.Sequential(nn.Linear(144, 128), nn.SiLU(), nn.Linear(128, 64)), nn.Linear(64, 4), nn.Linear(128, 64)

        def forward(self, x, edges, given):
            source, target = edges[0], edges[1]
            m = self.message(torch.cat([x[source], x[target], given], -1))
            score = self.score(m)
            largest = torch.full((x.shape[0], 4), -1e4, dtype=x.dtype, device=x.device).scatter_reduce(0, target[:, None].expand(-1, 4), score, "amax")
            weight = (score - largest[target]).exp()
            total = torch.zeros(x.shape[0], 4, dtype=x.dtype, device=x.device).scatter_add(0, target[:, None].expand(-1, 4), weight)
            m = m.view(-1, 4, 16) * (weight / (total[target] + 1e-6))[..., None]
            summed = torch.zeros_like(x).scatter_add(0, target[:, None].expand(-1, 64), m.flatten(1))
            return x + self.update(torch.cat([x, summed], -1))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = nn.ModuleList(Layer() for _ in range(3))

        def forward(self, x, edges, given):
            for step in self.steps:
                x = step(x, edges, given)
            return x.mean(0)
    return Net()


@layers("residual_codes", [(1, 16000)])
def residual_codes(torch, nn):
    """A codec of speech: strided convolutions with Snake, nearest codes of four residual stages, and back."""
    class Snake(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.alpha = nn.Parameter(torch.ones(1, c, 1))

        def forward(self, x):
            return x + (self.alpha + 1e-9).reciprocal() * torch.sin(self.alpha * x).pow(2)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            down, up = [nn.Conv1d(1, 24, 7, padding=3)], []
            for a, b, s in ((24, 48, 2), (48, 96, 4), (96, 192, 5), (192, 384, 8)):
                down += [Snake(a), nn.Conv1d(a, a, 7, padding=9, dilation=3), Snake(a), nn.Conv1d(a, b, 2 * s, s, (s + 1) // 2)]
                up = [Snake(b), nn.ConvTranspose1d(b, a, 2 * s, s, (s + 1) // 2, s % 2), Snake(a), nn.Conv1d(a, a, 7, padding=3)] + up
            self.down, self.up, self.last = nn.Sequential(*down), nn.Sequential(*up), nn.Conv1d(24, 1, 7, padding=3)
            self.codes = nn.ParameterList(nn.Parameter(torch.randn(512, 384)) for _ in range(4))

        def forward(self, x):
            y = self.down(x).transpose(1, 2)
            left, total = y, 0
            for codes in self.codes:
                distance = left.pow(2).sum(-1, keepdim=True) - 2 * left @ codes.t() + codes.pow(2).sum(-1)
                found = nn.functional.embedding(distance.argmin(-1), codes)
                left, total = left - found, total + found
            return torch.tanh(self.last(self.up(total.transpose(1, 2))))
    return Net()


@layers("suppressed_boxes", [(3, 256, 256)])
def suppressed_boxes(torch, nn):
    """A small detector with decoded boxes, the best 300, and non-maximum suppression by a matrix of overlaps."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(*(nn.Sequential(nn.Conv2d(a, b, 3, 2, 1, bias=False), nn.BatchNorm2d(b), nn.Hardswish()) for a, b in ((3, 40), (40, 80), (80, 160), (160, 160))))
            self.classes, self.boxes = nn.Conv2d(160, 20, 1), nn.Conv2d(160, 4, 1)
            y, x = torch.meshgrid(torch.arange(16), torch.arange(16), indexing="ij")
            self.register_buffer("centres", torch.stack([x, y], -1).view(1, -1, 2) + 0.5)

        def forward(self, x):
            x = self.body(x)
            scores, boxes = self.classes(x).flatten(2).transpose(1, 2).sigmoid(), self.boxes(x).flatten(2).transpose(1, 2).exp()
            corners = torch.cat([self.centres - boxes[..., :2], self.centres + boxes[..., 2:]], -1) * 16
            best, which = scores.amax(-1).topk(100, 1)
            corners = corners.gather(1, which[..., None].expand(-1, -1, 4))
            low, high = torch.maximum(corners[:, :, None, :2], corners[:, None, :, :2]), torch.minimum(corners[:, :, None, 2:], corners[:, None, :, 2:])
            shared = (high - low).clamp(min=0).prod(-1)
            area = (corners[..., 2:] - corners[..., :2]).prod(-1)
            overlap = (shared / (area[:, :, None] + area[:, None] - shared)).triu(1)
            decay = torch.exp(-(overlap ** 2 - overlap.amax(1, keepdim=True).transpose(-1, -2) ** 2) / 0.5).amin(1)
            return best * decay, corners
    return Net()


@layers("partial_mlp_mixer", [(333, 240)])
def partial_mlp_mixer(torch, nn):
    """Gates along tokens of odd lengths, RMS norms by hand, GEGLU."""
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.tokens = nn.Parameter(torch.ones(240)), nn.Conv1d(333, 333, 1)
            self.up, self.down = nn.Linear(240, 2 * 616), nn.Linear(616, 240)

        def normed(self, x):
            return self.scale * (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

        def forward(self, x):
            x = x + self.tokens(self.normed(x))
            a, b = self.up(self.normed(x)).chunk(2, -1)
            return x + self.down(nn.functional.gelu(a) * b)

    return nn.Sequential(*(Layer() for _ in range(4)))


@layers("joint_streams", [(77, 480), (197, 480), (480,)])
def joint_streams(torch, nn):
    """Two streams with weights of their own attend together, modulated by a condition, heads of 80."""
    class Side(nn.Module):
        def __init__(self):
            super().__init__()
            self.modulate, self.qkv, self.out = nn.Linear(480, 2880), nn.Linear(480, 1440), nn.Linear(480, 480)
            self.up, self.down, self.norm = nn.Linear(480, 1920), nn.Linear(1920, 480), nn.LayerNorm(480, elementwise_affine=False, eps=1e-6)

        def before(self, x, c):
            self_shift = self.modulate(nn.functional.silu(c))[:, None].chunk(6, -1)
            return self.qkv(self.norm(x) * (1 + self_shift[1]) + self_shift[0]).unflatten(-1, (3, 6, 80)).permute(2, 0, 3, 1, 4), self_shift

        def after(self, x, y, m):
            x = x + m[2] * self.out(y.transpose(1, 2).flatten(2))
            return x + m[5] * self.down(nn.functional.gelu(self.up(self.norm(x) * (1 + m[4]) + m[3]), approximate="tanh"))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.ModuleList(Side() for _ in range(3)), nn.ModuleList(Side() for _ in range(3))

        def forward(self, text, image, c):
            for a, b in zip(self.a, self.b):
                (q, k, v), m = a.before(text, c)
                (p, l, w), n = b.before(image, c)
                y = nn.functional.scaled_dot_product_attention(torch.cat([q, p], 2), torch.cat([k, l], 2), torch.cat([v, w], 2))
                text, image = a.after(text, y[:, :, :77], m), b.after(image, y[:, :, 77:], n)
            return text, image
    return Net()


@layers("shifted_windows", [(96, 56, 56)])
def shifted_windows(torch, nn):
    """Windows of 7 with a shift of 3, masks between parts, biases by a table, channels first around."""
    class Layer(nn.Module):
        def __init__(self, shift):
            super().__init__()
            self.shift, self.norm, self.qkv, self.out = shift, nn.GroupNorm(1, 96), nn.Conv2d(96, 288, 1), nn.Conv2d(96, 96, 1)
            self.table = nn.Parameter(torch.randn(169, 3))
            at = torch.stack(torch.meshgrid(torch.arange(7), torch.arange(7), indexing="ij")).flatten(1)
            relative = (at[:, :, None] - at[:, None]) + 6
            self.register_buffer("index", relative[0] * 13 + relative[1])
            part = torch.zeros(56, 56)
            for i, rows in enumerate((slice(0, -7), slice(-7, -3), slice(-3, None))):
                for j, columns in enumerate((slice(0, -7), slice(-7, -3), slice(-3, None))):
                    part[rows, columns] = 3 * i + j
            part = part.view(8, 7, 8, 7).transpose(1, 2).reshape(64, 49)
            self.register_buffer("mask", (part[:, None] != part[:, :, None]).float() * -100)

        def forward(self, x):
            b = x.shape[0]
            y = torch.roll(self.norm(x), (-self.shift, -self.shift), (2, 3)) if self.shift else self.norm(x)
            y = self.qkv(y).view(b, 3, 3, 32, 8, 7, 8, 7).permute(1, 0, 4, 6, 2, 5, 7, 3).reshape(3, b * 64, 3, 49, 32)
            scores = y[0] @ y[1].transpose(-1, -2) * 32 ** -0.5 + self.table[self.index.view(-1)].view(49, 49, 3).permute(2, 0, 1)
            if self.shift:
                scores = (scores.view(b, 64, 3, 49, 49) + self.mask[None, :, None]).view(-1, 3, 49, 49)
            y = (scores.softmax(-1) @ y[2]).view(b, 8, 8, 3, 7, 7, 32).permute(0, 3, 6, 1, 4, 2, 5).reshape(b, 96, 56, 56)
            y = torch.roll(y, (self.shift, self.shift), (2, 3)) if self.shift else y
            return x + self.out(y)
    return nn.Sequential(Layer(0), Layer(3), Layer(0), Layer(3))


@layers("coupled_flows", [(12, 32, 32)])
def coupled_flows(torch, nn):
    """A normalising flow: invertible 1 x 1 convolutions, couplings of halves, squeezed pixels."""
    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.shift, self.scale, self.mix = nn.Parameter(torch.zeros(1, 48, 1, 1)), nn.Parameter(torch.ones(1, 48, 1, 1)), nn.Parameter(torch.linalg.qr(torch.randn(48, 48))[0])
            self.inner = nn.Sequential(nn.Conv2d(24, 160, 3, padding=1), nn.ReLU(), nn.Conv2d(160, 160, 1), nn.ReLU(), nn.Conv2d(160, 48, 3, padding=1))

        def forward(self, x):
            x = nn.functional.conv2d((x + self.shift) * self.scale, self.mix[:, :, None, None])
            a, b = x.chunk(2, 1)
            shift, scale = self.inner(a)[:, 0::2], self.inner(a)[:, 1::2]
            scale = torch.sigmoid(scale + 2)
            return torch.cat([a, (b + shift) * scale], 1), scale.log().flatten(1).sum(1)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = nn.ModuleList(Step() for _ in range(4))

        def forward(self, x):
            b = x.shape[0]
            x = x.view(b, 12, 16, 2, 16, 2).permute(0, 1, 3, 5, 2, 4).reshape(b, 48, 16, 16)
            total = 0
            for step in self.steps:
                x, part = step(x)
                total = total + part
            return x, total
    return Net()


@layers("best_path", [(64, 24)])
def best_path(torch, nn):
    """Viterbi's and the forward sums of a conditional random field over 64 tags in time."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.moves = nn.Parameter(torch.randn(24, 24))

        def forward(self, x):
            best, total, back = x[:, 0], x[:, 0], []
            for i in range(1, x.shape[1]):
                score = best[:, :, None] + self.moves
                best, at = score.max(1)
                best = best + x[:, i]
                back.append(at)
                total = torch.logsumexp(total[:, :, None] + self.moves, 1) + x[:, i]
            tags = [best.argmax(-1)]
            for at in reversed(back):
                tags.append(at.gather(1, tags[-1][:, None])[:, 0])
            return torch.stack(tags[::-1], 1), total.logsumexp(-1)
    return Net()


@layers("transported", [(100, 64), (120, 64)])
def transported(torch, nn):
    """Features are matched by Sinkhorn's rounds in logarithms, with a bin for what has no match."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.project, self.bin = nn.Linear(64, 64), nn.Parameter(torch.tensor(1.0))

        def forward(self, x, y):
            b, m, n = x.shape[0], x.shape[1], y.shape[1]
            scores = torch.einsum("bmd,bnd->bmn", self.project(x), self.project(y)) / 8
            scores = torch.cat([torch.cat([scores, self.bin.expand(b, m, 1)], 2), self.bin.expand(b, 1, n + 1)], 1)
            u, v = torch.zeros_like(scores[:, :, 0]), torch.zeros_like(scores[:, 0])
            for _ in range(20):
                u = -torch.logsumexp(scores + v[:, None], 2)
                v = -torch.logsumexp(scores + u[:, :, None], 1)
            return (scores + u[:, :, None] + v[:, None]).exp()
    return Net()


@layers("correlation", [(64, 40, 56), (64, 40, 56)])
def correlation(torch, nn):
    """All pairs of pixels, a pyramid of them, and a window looked up by grid_sample for each pixel: flow as in RAFT, by hand."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Conv2d(98, 96, 3, padding=1), nn.LeakyReLU(0.1), nn.Conv2d(96, 2, 3, padding=1))

        def forward(self, a, b):
            n, c, h, w = a.shape
            pairs = (a.flatten(2).transpose(-1, -2) @ b.flatten(2)).view(n * h * w, 1, h, w) / c ** 0.5
            y, x = torch.meshgrid(torch.arange(h, dtype=a.dtype, device=a.device), torch.arange(w, dtype=a.dtype, device=a.device), indexing="ij")
            centre = torch.stack([x, y], -1).view(1, h * w, 1, 1, 2).expand(n, -1, -1, -1, -1).reshape(n * h * w, 1, 1, 2)
            d = torch.linspace(-3, 3, 7, dtype=a.dtype, device=a.device)
            window = torch.stack(torch.meshgrid(d, d, indexing="ij"), -1).view(1, 7, 7, 2)
            found = []
            for level in range(2):
                at = centre / 2 ** level + window
                size = torch.tensor([w // 2 ** level - 1, h // 2 ** level - 1], dtype=a.dtype, device=a.device)
                found.append(nn.functional.grid_sample(pairs, 2 * at / size - 1, align_corners=True).view(n, h, w, 49))
                pairs = nn.functional.avg_pool2d(pairs, 2)
            return self.inner(torch.cat(found, -1).permute(0, 3, 1, 2))
    return Net()


@layers("sampled_offsets", [(64, 48, 48)])
def sampled_offsets(torch, nn):
    """A deformable convolution written with grid_sample, and a kernel prediction of 5 x 5 by unfold."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.offsets, self.mix, self.kernels = nn.Conv2d(64, 18, 3, padding=1), nn.Conv2d(64 * 9, 64, 1), nn.Conv2d(64, 25, 3, padding=1)

        def forward(self, x):
            b, c, h, w = x.shape
            y0, x0 = torch.meshgrid(torch.linspace(-1, 1, h, dtype=x.dtype, device=x.device), torch.linspace(-1, 1, w, dtype=x.dtype, device=x.device), indexing="ij")
            offsets = self.offsets(x).view(b, 9, 2, h, w).permute(0, 1, 3, 4, 2) * 0.05
            parts = [nn.functional.grid_sample(x, torch.stack([x0, y0], -1) + offsets[:, i], padding_mode="border", align_corners=True) for i in range(9)]
            y = self.mix(torch.cat(parts, 1))
            patches = nn.functional.unfold(y, 5, padding=2).view(b, c, 25, h, w)
            return (patches * self.kernels(y).softmax(1)[:, None]).sum(2)
    return Net()


@layers("gated_recurrence", [(333, 192)])
def gated_recurrence(torch, nn):
    """An exact linear recurrence by a scan of doubling steps: gates, Pad and products, no loop over tokens."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.out = nn.Linear(192, 3 * 240), nn.Linear(240, 192)

        def forward(self, x):
            value, decay, gate = self.into(x).chunk(3, -1)
            a, h, step = decay.sigmoid(), value, 1
            h = h * (1 - a)
            while step < x.shape[1]:
                h = h + a * nn.functional.pad(h, (0, 0, step, 0))[:, :-step]
                a = a * nn.functional.pad(a, (0, 0, step, 0), value=1.0)[:, :-step]
                step *= 2
            return self.out(h * nn.functional.silu(gate))
    return Net()


@layers("volume_unet", [(2, 24, 40, 40)])
def volume_unet(torch, nn):
    """A network of volumes with instance norms, leaky slopes and widths of 20, 40 and 80."""
    def two(a, b, stride=1):
        return nn.Sequential(nn.Conv3d(a, b, 3, stride, 1), nn.InstanceNorm3d(b, affine=True), nn.LeakyReLU(0.01), nn.Conv3d(b, b, 3, 1, 1), nn.InstanceNorm3d(b, affine=True), nn.LeakyReLU(0.01))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = two(2, 20), two(20, 40, 2), two(40, 80, 2)
            self.up1, self.up2, self.d, self.e = nn.ConvTranspose3d(80, 40, 2, 2), nn.ConvTranspose3d(40, 20, 2, 2), two(80, 40), two(40, 20)
            self.last = nn.Conv3d(20, 5, 1)

        def forward(self, x):
            a = self.a(x)
            b = self.b(a)
            y = self.d(torch.cat([self.up1(self.c(b)), b], 1))
            return self.last(self.e(torch.cat([self.up2(y), a], 1))).softmax(1)
    return Net()
