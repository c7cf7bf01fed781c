# SPDX-License-Identifier: Apache-2.0
"""Networks that make or mend pictures, and whose filters or moves depend on their inputs: restoration, generators, matting, segmentation, detection, video."""
from catalogue_layers import layers


def conv(nn, a, b, k=3, s=1, groups=1, dilation=1, act=None):
    act = act or nn.SiLU
    return nn.Sequential(nn.Conv2d(a, b, k, s, dilation * (k // 2), dilation, groups, bias=False), nn.BatchNorm2d(b), act())


# ---- restoration ----
@layers("simple_gates", [(3, 128, 128)], [(3, 32, 32)])
def simple_gates(torch, nn):
    """Layer norms over channels, depthwise convolutions, halves that are multiplied, channels weighed by their mean (NAFNet)."""
    class Norm(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.rand(1, c, 1, 1)), nn.Parameter(torch.rand(1, c, 1, 1))

        def forward(self, x):
            mean = x.mean(1, keepdim=True)
            var = (x - mean).pow(2).mean(1, keepdim=True)
            return (x - mean) / (var + 1e-6).sqrt() * self.weight + self.bias

    class Gate(nn.Module):
        def forward(self, x):
            a, b = x.chunk(2, 1)
            return a * b

    class Block(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.first = nn.Sequential(Norm(c), nn.Conv2d(c, 2 * c, 1), nn.Conv2d(2 * c, 2 * c, 3, padding=1, groups=2 * c), Gate())
            self.weigh, self.out = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, c, 1)), nn.Conv2d(c, c, 1)
            self.last = nn.Sequential(Norm(c), nn.Conv2d(c, 2 * c, 1), Gate(), nn.Conv2d(c, c, 1))
            self.beta, self.gamma = nn.Parameter(torch.rand(1, c, 1, 1)), nn.Parameter(torch.rand(1, c, 1, 1))

        def forward(self, x):
            y = self.first(x)
            x = x + self.out(y * self.weigh(y)) * self.beta
            return x + self.last(x) * self.gamma

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.intro, self.ending = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 3, 3, padding=1)
            self.a, self.down, self.b = nn.Sequential(Block(32), Block(32)), nn.Conv2d(32, 64, 2, 2), nn.Sequential(Block(64), Block(64), Block(64))
            self.up, self.c = nn.Sequential(nn.Conv2d(64, 128, 1, bias=False), nn.PixelShuffle(2)), nn.Sequential(Block(32), Block(32))

        def forward(self, x):
            y = self.a(self.intro(x))
            return self.ending(self.c(y + self.up(self.b(self.down(y))))) + x
    return Net()


@layers("channel_attention", [(3, 128, 128)], [(3, 32, 32)])
def channel_attention(torch, nn):
    """Attention over channels of normalised queries and keys with a temperature for each head, gated depthwise convolutions (Restormer)."""
    class Norm(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.inner = nn.LayerNorm(c)

        def forward(self, x):
            n, c, h, w = x.shape
            return self.inner(x.flatten(2).transpose(1, 2)).transpose(1, 2).reshape(n, c, h, w)

    class Attend(nn.Module):
        def __init__(self, c, heads):
            super().__init__()
            self.heads, self.temperature = heads, nn.Parameter(torch.rand(heads, 1, 1))
            self.qkv, self.wide, self.out = nn.Conv2d(c, 3 * c, 1), nn.Conv2d(3 * c, 3 * c, 3, padding=1, groups=3 * c), nn.Conv2d(c, c, 1)

        def forward(self, x):
            n, c, h, w = x.shape
            q, k, v = (y.reshape(n, self.heads, c // self.heads, h * w) for y in self.wide(self.qkv(x)).chunk(3, 1))
            q, k = nn.functional.normalize(q, dim=-1), nn.functional.normalize(k, dim=-1)
            weights = (q @ k.transpose(-2, -1) * self.temperature).softmax(-1)
            return self.out((weights @ v).reshape(n, c, h, w))

    class Feed(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.up, self.wide, self.down = nn.Conv2d(c, 5 * c, 1), nn.Conv2d(5 * c, 5 * c, 3, padding=1, groups=5 * c), nn.Conv2d(5 * c // 2, c, 1)

        def forward(self, x):
            a, b = self.wide(self.up(x)).chunk(2, 1)
            return self.down(nn.functional.gelu(a) * b)

    class Block(nn.Module):
        def __init__(self, c, heads):
            super().__init__()
            self.norms, self.attend, self.feed = nn.ModuleList(Norm(c) for _ in range(2)), Attend(c, heads), Feed(c)

        def forward(self, x):
            x = x + self.attend(self.norms[0](x))
            return x + self.feed(self.norms[1](x))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.intro, self.ending = nn.Conv2d(3, 48, 3, padding=1, bias=False), nn.Conv2d(96, 3, 3, padding=1, bias=False)
            self.a, self.down = nn.Sequential(Block(48, 1), Block(48, 1)), nn.Sequential(nn.Conv2d(48, 24, 3, padding=1, bias=False), nn.PixelUnshuffle(2))
            self.b, self.up = nn.Sequential(Block(96, 2), Block(96, 2)), nn.Sequential(nn.Conv2d(96, 192, 3, padding=1, bias=False), nn.PixelShuffle(2))
            self.c = Block(96, 1)

        def forward(self, x):
            y = self.a(self.intro(x))
            return self.ending(self.c(torch.cat([self.up(self.b(self.down(y))), y], 1))) + x
    return Net()


@layers("dense_residuals", [(3, 64, 64)], [(3, 16, 16)])
def dense_residuals(torch, nn):
    """Convolutions that see all before them in their block, scaled residuals of blocks in blocks, enlarging by nearest pixels (ESRGAN)."""
    class Dense(nn.Module):
        def __init__(self):
            super().__init__()
            self.convs = nn.ModuleList(nn.Conv2d(64 + 32 * k, 32 if k < 4 else 64, 3, padding=1) for k in range(5))

        def forward(self, x):
            seen = [x]
            for each in self.convs[:-1]:
                seen.append(nn.functional.leaky_relu(each(torch.cat(seen, 1)), 0.2))
            return self.convs[-1](torch.cat(seen, 1)) * 0.2 + x

    class Blocks(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(Dense(), Dense(), Dense())

        def forward(self, x):
            return self.inner(x) * 0.2 + x

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.body, self.mid = nn.Conv2d(3, 64, 3, padding=1), nn.Sequential(Blocks(), Blocks()), nn.Conv2d(64, 64, 3, padding=1)
            self.ups, self.high, self.last = nn.ModuleList(nn.Conv2d(64, 64, 3, padding=1) for _ in range(2)), nn.Conv2d(64, 64, 3, padding=1), nn.Conv2d(64, 3, 3, padding=1)

        def forward(self, x):
            x = self.first(x)
            x = x + self.mid(self.body(x))
            for up in self.ups:
                x = nn.functional.leaky_relu(up(nn.functional.interpolate(x, scale_factor=2, mode="nearest")), 0.2)
            return self.last(nn.functional.leaky_relu(self.high(x), 0.2))
    return Net()


@layers("curve_enhancement", [(3, 256, 256)], [(3, 64, 64)])
def curve_enhancement(torch, nn):
    """A light picture out of a dark one: curves for each pixel, applied eight times (Zero-DCE)."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.convs = nn.ModuleList(nn.Conv2d(c, 32, 3, padding=1) for c in (3, 32, 32, 32, 64, 64))
            self.last = nn.Conv2d(64, 24, 3, padding=1)

        def forward(self, x):
            a = self.convs[0](x).relu()
            b = self.convs[1](a).relu()
            c = self.convs[2](b).relu()
            d = self.convs[3](c).relu()
            e = self.convs[4](torch.cat([c, d], 1)).relu()
            f = self.convs[5](torch.cat([b, e], 1)).relu()
            for r in torch.split(self.last(torch.cat([a, f], 1)).tanh(), 3, 1):
                x = x + r * (x.square() - x)
            return x
    return Net()


# ---- filters that depend on inputs ----
@layers("modulated", [(512,)], [(512,)])
def modulated(torch, nn):
    """Filters are scaled by a style and normalised for each picture, the batch is groups of one convolution; noise, FIR filters (StyleGAN 2)."""
    class Styled(nn.Module):
        def __init__(self, a, b, k=3, up=False, norm=True):
            super().__init__()
            self.weight, self.style, self.bias = nn.Parameter(torch.randn(1, b, a, k, k) * (a * k * k) ** -0.5), nn.Linear(512, a), nn.Parameter(torch.zeros(1, b, 1, 1))
            self.up, self.norm, self.noise = up, norm, nn.Parameter(torch.tensor([0.1]))
            self.register_buffer("fir", (torch.tensor([1., 3., 3., 1.]).outer(torch.tensor([1., 3., 3., 1.])) / 16)[None, None].repeat(b, 1, 1, 1))

        def forward(self, x, w, noise=None):
            n, c, h, _ = x.shape
            weight = self.weight * (self.style(w).view(n, 1, c, 1, 1) + 1)
            if self.norm:
                weight = weight * torch.rsqrt(weight.square().sum([2, 3, 4], keepdim=True) + 1e-8)
            b, k = weight.shape[1], weight.shape[3]
            if self.up:
                y = nn.functional.conv_transpose2d(x.reshape(1, n * c, h, h), weight.transpose(1, 2).reshape(n * c, b, k, k), stride=2, groups=n)
                y = nn.functional.conv2d(nn.functional.pad(y.view(n, b, 2 * h + 1, 2 * h + 1), (1, 1, 1, 1)), self.fir / 4, groups=b)
            else:
                y = nn.functional.conv2d(x.reshape(1, n * c, h, h), weight.view(n * b, c, k, k), padding=k // 2, groups=n).view(n, b, h, h)
            if noise is not None:
                y = y + self.noise * noise
            y = y + self.bias
            return nn.functional.leaky_relu(y, 0.2) * 2 ** 0.5 if self.norm else y

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.map = nn.Sequential(*[part for _ in range(4) for part in (nn.Linear(512, 512), nn.LeakyReLU(0.2))])
            self.start, self.first, self.picture = nn.Parameter(torch.randn(1, 256, 8, 8)), Styled(256, 256), Styled(256, 3, 1, norm=False)
            widths = [256, 256, 128, 64]
            self.ups = nn.ModuleList(Styled(a, b, up=True) for a, b in zip(widths, widths[1:]))
            self.convs = nn.ModuleList(Styled(b, b) for b in widths[1:])
            self.pictures = nn.ModuleList(Styled(b, 3, 1, norm=False) for b in widths[1:])
            for k in range(4):
                self.register_buffer(f"noise{k}", torch.randn(1, 1, 8 << k, 8 << k))

        def forward(self, z):
            w = self.map(z * torch.rsqrt(z.square().mean(1, keepdim=True) + 1e-8))
            x = self.first(self.start.expand(z.shape[0], -1, -1, -1), w, self.noise0)
            y = self.picture(x, w)
            for k, (up, each, picture) in enumerate(zip(self.ups, self.convs, self.pictures)):
                noise = getattr(self, f"noise{k + 1}")
                x = each(up(x, w, noise), w, noise)
                y = nn.functional.interpolate(y, scale_factor=2, mode="bilinear") + picture(x, w)
            return y
    return Net()


@layers("dynamic_filters", [(64, 56, 56)], [(64, 14, 14)])
def dynamic_filters(torch, nn):
    """Filters are a weighted sum of four for each picture (dynamic convolution), and filters for each pixel (involution)."""
    class Dynamic(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.weights, self.choose = nn.Parameter(torch.randn(4, c, c, 3, 3) * 0.05), nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, c // 4), nn.ReLU(), nn.Linear(c // 4, 4))

        def forward(self, x):
            n, c, h, w = x.shape
            weights = (self.choose(x) / 30).softmax(1) @ self.weights.flatten(1)
            return nn.functional.conv2d(x.reshape(1, n * c, h, w), weights.view(n * c, c, 3, 3), padding=1, groups=n).view(n, c, h, w)

    class Involution(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.groups, self.reduce, self.span = c // 16, conv(nn, c, c // 4, 1, act=nn.ReLU), nn.Conv2d(c // 4, 49 * (c // 16), 1)

        def forward(self, x):
            n, c, h, w = x.shape
            weights = self.span(self.reduce(x)).view(n, self.groups, 1, 49, h, w)
            return (weights * nn.functional.unfold(x, 7, padding=3).view(n, self.groups, 16, 49, h, w)).sum(3).view(n, c, h, w)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.norm, self.b = Dynamic(64), nn.BatchNorm2d(64), Involution(64)

        def forward(self, x):
            x = x + self.norm(self.a(x)).relu()
            return x + self.b(x).relu()
    return Net()


@layers("coordinates", [(64, 56, 56)], [(64, 14, 14)])
def coordinates(torch, nn):
    """Attention by means over rows and columns, over three rotated views, and of all pixels to all (coordinate, triplet, non-local)."""
    class Coordinate(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.inner, self.h, self.w = conv(nn, c, 8, 1, act=nn.Hardswish), nn.Conv2d(8, c, 1), nn.Conv2d(8, c, 1)

        def forward(self, x):
            a, b = x.mean(3, keepdim=True), x.mean(2, keepdim=True).permute(0, 1, 3, 2)
            a, b = self.inner(torch.cat([a, b], 2)).split([x.shape[2], x.shape[3]], 2)
            return x * self.h(a).sigmoid() * self.w(b.permute(0, 1, 3, 2)).sigmoid()

    class Triplet(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.ModuleList(nn.Sequential(nn.Conv2d(2, 1, 7, padding=3, bias=False), nn.BatchNorm2d(1), nn.Sigmoid()) for _ in range(3))

        def forward(self, x):
            results = []
            for inner, order in zip(self.inner, ((0, 2, 1, 3), (0, 3, 2, 1), (0, 1, 2, 3))):
                y = x.permute(order)
                results.append((y * inner(torch.cat([y.amax(1, keepdim=True), y.mean(1, keepdim=True)], 1))).permute(order))
            return sum(results) / 3

    class NonLocal(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.theta, self.phi, self.g, self.out = nn.Conv2d(c, c // 2, 1), nn.Conv2d(c, c // 2, 1), nn.Conv2d(c, c // 2, 1), nn.Conv2d(c // 2, c, 1)

        def forward(self, x):
            n, c, h, w = x.shape
            theta, phi, g = self.theta(x).view(n, c // 2, -1).permute(0, 2, 1), self.phi(x).view(n, c // 2, -1), self.g(x).view(n, c // 2, -1).permute(0, 2, 1)
            y = (theta @ phi).softmax(-1) @ g
            return x + self.out(y.permute(0, 2, 1).reshape(n, c // 2, h, w))
    return nn.Sequential(Coordinate(64), Triplet(), NonLocal(64))


# ---- detection and segmentation ----
@layers("weighted_pyramid", [(64, 64, 64), (64, 32, 32), (64, 16, 16), (64, 8, 8), (64, 4, 4)])
def weighted_pyramid(torch, nn):
    """Levels are added with learned weights, both ways, through separable convolutions; heads shared by levels (EfficientDet)."""
    def separable(c, d=None):
        return nn.Sequential(nn.Conv2d(c, c, 3, padding=1, groups=c, bias=False), nn.Conv2d(c, d or c, 1))

    class Fuse(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.weight, self.inner = nn.Parameter(torch.rand(n)), nn.Sequential(separable(64), nn.BatchNorm2d(64))

        def forward(self, *x):
            w = self.weight.relu()
            w = w / (w.sum() + 1e-4)
            return self.inner(nn.functional.silu(sum(w[k] * each for k, each in enumerate(x))))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.down, self.up = nn.ModuleList(Fuse(2) for _ in range(4)), nn.ModuleList(Fuse(3 if k < 3 else 2) for k in range(4))

        def forward(self, *x):
            down = [x[4]]
            for k in range(3, -1, -1):
                down.insert(0, self.down[k](x[k], nn.functional.interpolate(down[0], scale_factor=2, mode="nearest")))
            up = [down[0]]
            for k in range(1, 5):
                pooled = nn.functional.max_pool2d(up[-1], 3, 2, 1)
                up.append(self.up[k - 1](*((x[k], down[k], pooled) if k < 4 else (x[k], pooled))))
            return up

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.towers = nn.ModuleList(Layer() for _ in range(3)), nn.ModuleList(separable(64) for _ in range(3))
            self.norms = nn.ModuleList(nn.ModuleList(nn.BatchNorm2d(64) for _ in range(3)) for _ in range(5))
            self.classes = separable(64, 9 * 20)

        def forward(self, *x):
            for layer in self.layers:
                x = layer(*x)
            results = []
            for level, norms in zip(x, self.norms):
                for tower, norm in zip(self.towers, norms):
                    level = nn.functional.silu(norm(tower(level)))
                results.append(self.classes(level).permute(0, 2, 3, 1).reshape(level.shape[0], -1, 20))
            return torch.cat(results, 1).sigmoid()
    return Net()


@layers("centers", [(3, 256, 256)], [(3, 64, 64)])
def centers(torch, nn):
    """An hourglass, peaks of heat maps by a max pool, the best of them by TopK, offsets gathered there (CenterNet)."""
    class Residual(nn.Module):
        def __init__(self, a, b, s=1):
            super().__init__()
            self.inner = nn.Sequential(conv(nn, a, b, 3, s, act=nn.ReLU), nn.Conv2d(b, b, 3, padding=1, bias=False), nn.BatchNorm2d(b))
            self.skip = nn.Sequential(nn.Conv2d(a, b, 1, s, bias=False), nn.BatchNorm2d(b)) if a != b or s > 1 else nn.Identity()

        def forward(self, x):
            return (self.inner(x) + self.skip(x)).relu()

    class Hourglass(nn.Module):
        def __init__(self, depth, c):
            super().__init__()
            self.up, self.down = Residual(c, c), Residual(c, c, 2)
            self.inner, self.out = Hourglass(depth - 1, c) if depth > 1 else Residual(c, c), Residual(c, c)

        def forward(self, x):
            return self.up(x) + nn.functional.interpolate(self.out(self.inner(self.down(x))), scale_factor=2)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.inner = nn.Sequential(conv(nn, 3, 64, 7, 2, act=nn.ReLU), Residual(64, 128, 2)), Hourglass(3, 128)
            self.heat, self.size, self.offset = (nn.Sequential(nn.Conv2d(128, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, c, 1)) for c in (20, 2, 2))

        def forward(self, x):
            x = self.inner(self.first(x))
            heat = self.heat(x).sigmoid()
            heat = heat * (nn.functional.max_pool2d(heat, 3, 1, 1) == heat).to(heat.dtype)
            n, c, h, w = heat.shape
            scores, at = heat.view(n, -1).topk(50)
            pixel = at % (h * w)
            size, offset = (y.flatten(2).transpose(1, 2).gather(1, pixel[:, :, None].expand(-1, -1, 2)) for y in (self.size(x), self.offset(x)))
            corner = torch.stack([(pixel % w).to(x.dtype), torch.div(pixel, w, rounding_mode="floor").to(x.dtype)], -1) + offset
            return torch.cat([corner - size / 2, corner + size / 2], -1), scores, torch.div(at, h * w, rounding_mode="floor")
    return Net()


@layers("free_anchors", [(3, 320, 320)], [(3, 64, 64)])
def free_anchors(torch, nn):
    """Pixels in four parts as channels, cross stage blocks, pools of several sizes, distances as expectations over bins (YOLOX and v8)."""
    class Bottleneck(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.inner = nn.Sequential(conv(nn, c, c), conv(nn, c, c))

        def forward(self, x):
            return x + self.inner(x)

    class Cross(nn.Module):
        def __init__(self, a, b, n=2):
            super().__init__()
            self.first, self.last, self.inner = conv(nn, a, b, 1), conv(nn, (n + 2) * b // 2, b, 1), nn.ModuleList(Bottleneck(b // 2) for _ in range(n))

        def forward(self, x):
            seen = list(self.first(x).chunk(2, 1))
            for each in self.inner:
                seen.append(each(seen[-1]))
            return self.last(torch.cat(seen, 1))

    class Pools(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.first, self.last = conv(nn, c, c // 2, 1), conv(nn, 2 * c, c, 1)

        def forward(self, x):
            x = self.first(x)
            a = nn.functional.max_pool2d(x, 5, 1, 2)
            b = nn.functional.max_pool2d(a, 5, 1, 2)
            return self.last(torch.cat([x, a, b, nn.functional.max_pool2d(b, 5, 1, 2)], 1))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.a = conv(nn, 12, 32), nn.Sequential(conv(nn, 32, 64, 3, 2), Cross(64, 64))
            self.b, self.c = nn.Sequential(conv(nn, 64, 128, 3, 2), Cross(128, 128)), nn.Sequential(conv(nn, 128, 256, 3, 2), Cross(256, 256), Pools(256))
            self.up, self.down = Cross(384, 128), conv(nn, 128, 128, 3, 2)
            self.out = Cross(384, 256)
            self.boxes = nn.ModuleList(nn.Sequential(conv(nn, c, 64), conv(nn, 64, 64), nn.Conv2d(64, 64, 1)) for c in (128, 256))
            self.classes = nn.ModuleList(nn.Sequential(conv(nn, c, 128), conv(nn, 128, 128), nn.Conv2d(128, 80, 1)) for c in (128, 256))
            self.register_buffer("bins", torch.arange(16.).view(1, 16, 1, 1))

        def forward(self, x):
            x = torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)
            b = self.b(self.a(self.stem(x)))
            c = self.c(b)
            b = self.up(torch.cat([nn.functional.interpolate(c, scale_factor=2, mode="nearest"), b], 1))
            levels, results = (b, self.out(torch.cat([self.down(b), c], 1))), []
            for level, boxes, classes in zip(levels, self.boxes, self.classes):
                results.append(torch.cat([boxes(level), classes(level)], 1).flatten(2))
            box, scores = torch.cat(results, 2).split((64, 80), 1)
            n, _, anchors = box.shape
            distance = nn.functional.conv2d(box.view(n, 4, 16, anchors).transpose(2, 1).softmax(1), self.bins.to(box.dtype)).view(n, 4, anchors)
            low, high = distance.chunk(2, 1)
            return torch.cat([(high - low) / 2, low + high, scores.sigmoid()], 1)
    return Net()


@layers("two_resolutions", [(3, 256, 256)], [(3, 128, 128)])
def two_resolutions(torch, nn):
    """Two branches that exchange, pools of four sizes, everything enlarged by bilinear sampling with aligned corners (DDRNet, PSPNet, BiSeNet)."""
    class Context(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.parts = nn.ModuleList(nn.Sequential(nn.AdaptiveAvgPool2d(k), conv(nn, c, c // 4, 1, act=nn.ReLU)) for k in (1, 2, 4, 8))
            self.last = conv(nn, 2 * c, c, 1, act=nn.ReLU)

        def forward(self, x):
            return self.last(torch.cat([x, *(nn.functional.interpolate(part(x), x.shape[2:], mode="bilinear", align_corners=True) for part in self.parts)], 1))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            relu = {"act": nn.ReLU}
            self.stem = nn.Sequential(conv(nn, 3, 32, 3, 2, **relu), conv(nn, 32, 64, 3, 2, **relu), conv(nn, 64, 64, 3, 2, **relu))
            self.high, self.low = nn.Sequential(conv(nn, 64, 64, **relu), conv(nn, 64, 64, **relu)), nn.Sequential(conv(nn, 64, 128, 3, 2, **relu), conv(nn, 128, 128, **relu))
            self.squeeze, self.enlarge = conv(nn, 128, 64, 1, act=nn.Identity), conv(nn, 64, 128, 3, 2, act=nn.Identity)
            self.context, self.gate, self.last = Context(128), nn.Sequential(nn.AdaptiveAvgPool2d(1), conv(nn, 128, 128, 1, act=nn.Sigmoid)), nn.Conv2d(192, 19, 1)

        def forward(self, x):
            y = self.stem(x)
            a, b = self.high(y), self.low(y)
            a, b = (a + nn.functional.interpolate(self.squeeze(b), a.shape[2:], mode="bilinear")).relu(), (b + self.enlarge(a)).relu()
            b = self.context(b * self.gate(b))
            y = self.last(torch.cat([a, nn.functional.interpolate(b, a.shape[2:], mode="bilinear", align_corners=True)], 1))
            return nn.functional.interpolate(y, x.shape[2:], mode="bilinear", align_corners=True).argmax(1)
    return Net()


@layers("nested_shapes", [(3, 160, 160)], [(3, 64, 64)])
def nested_shapes(torch, nn):
    """U shapes of U shapes with dilated convolutions, side outputs enlarged to the picture (U2-Net)."""
    relu = {"act": nn.ReLU}

    class Shape(nn.Module):
        def __init__(self, depth, a, mid, b):
            super().__init__()
            self.into = conv(nn, a, b, **relu)
            self.down = nn.ModuleList(conv(nn, b if k == 0 else mid, mid, **relu) for k in range(depth))
            self.bottom = conv(nn, mid, mid, dilation=2, **relu)
            self.up = nn.ModuleList(conv(nn, 2 * mid, b if k == 0 else mid, **relu) for k in range(depth))

        def forward(self, x):
            first = x = self.into(x)
            seen = []
            for k, each in enumerate(self.down):
                x = each(x if k == 0 else nn.functional.max_pool2d(x, 2, ceil_mode=True))
                seen.append(x)
            x = self.bottom(x)
            for k in range(len(self.up) - 1, -1, -1):
                x = self.up[k](torch.cat([nn.functional.interpolate(x, seen[k].shape[2:], mode="bilinear"), seen[k]], 1))
            return x + first

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = Shape(4, 3, 16, 64), Shape(3, 64, 16, 64), Shape(2, 64, 16, 64)
            self.d, self.e = Shape(3, 128, 16, 64), Shape(4, 128, 16, 64)
            self.sides, self.last = nn.ModuleList(nn.Conv2d(64, 1, 3, padding=1) for _ in range(3)), nn.Conv2d(3, 1, 1)

        def forward(self, x):
            a = self.a(x)
            b = self.b(nn.functional.max_pool2d(a, 2))
            c = self.c(nn.functional.max_pool2d(b, 2))
            d = self.d(torch.cat([nn.functional.interpolate(c, scale_factor=2, mode="bilinear"), b], 1))
            e = self.e(torch.cat([nn.functional.interpolate(d, scale_factor=2, mode="bilinear"), a], 1))
            sides = [nn.functional.interpolate(side(y), x.shape[2:], mode="bilinear") for side, y in zip(self.sides, (e, d, c))]
            return self.last(torch.cat(sides, 1)).sigmoid(), *(side.sigmoid() for side in sides)
    return Net()


# ---- depth, motion, video ----
@layers("depth", [(3, 192, 256)], [(3, 64, 64)])
def depth(torch, nn):
    """Reflected borders, ELU, nearest pixels, disparities of four sizes (Monodepth 2)."""
    def mirrored(a, b, act=True):
        return nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(a, b, 3), *([nn.ELU()] if act else []))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [64, 64, 128, 256]
            self.stem, self.downs = conv(nn, 3, 64, 7, 2, act=nn.ReLU), nn.ModuleList(nn.Sequential(conv(nn, a, b, 3, 2, act=nn.ReLU), conv(nn, b, b, act=nn.ReLU)) for a, b in zip(widths, widths[1:]))
            ups = [256, 128, 64, 32, 16]
            self.first, self.last = nn.ModuleList(mirrored(a, b) for a, b in zip(ups, ups[1:])), nn.ModuleList(mirrored(b + s, b) for b, s in zip(ups[1:], (128, 64, 64, 0)))
            self.out = nn.ModuleList(mirrored(b, 1, False) for b in ups[1:])

        def forward(self, x):
            seen = [self.stem((x - 0.45) / 0.225)]
            for down in self.downs:
                seen.append(down(seen[-1]))
            y, results = seen[-1], []
            for k in range(4):
                y = nn.functional.interpolate(self.first[k](y), scale_factor=2, mode="nearest")
                y = self.last[k](torch.cat([y, seen[2 - k]], 1) if k < 3 else y)
                results.append(self.out[k](y).sigmoid())
            return tuple(results)
    return Net()


@layers("intermediate_frame", [(3, 128, 128), (3, 128, 128)], [(3, 32, 32), (3, 32, 32)])
def intermediate_frame(torch, nn):
    """Flows of both frames, refined twice, frames moved along them by sampling, mixed by a mask (RIFE)."""
    class Flow(nn.Module):
        def __init__(self, a, c):
            super().__init__()
            self.down = nn.Sequential(nn.Conv2d(a, c // 2, 3, 2, 1), nn.PReLU(c // 2), nn.Conv2d(c // 2, c, 3, 2, 1), nn.PReLU(c))
            self.inner = nn.Sequential(*[part for _ in range(4) for part in (nn.Conv2d(c, c, 3, padding=1), nn.PReLU(c))])
            self.up = nn.ConvTranspose2d(c, 5, 4, 4)

        def forward(self, x):
            y = self.down(x)
            return self.up(y + self.inner(y))

    def moved(x, flow):
        n, _, h, w = x.shape
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, h, dtype=x.dtype, device=x.device), torch.linspace(-1, 1, w, dtype=x.dtype, device=x.device), indexing="ij")
        at = torch.stack([xs[None] + flow[:, 0] * (2 / (w - 1)), ys[None] + flow[:, 1] * (2 / (h - 1))], -1)
        return nn.functional.grid_sample(x, at, mode="bilinear", padding_mode="border", align_corners=True)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = Flow(6, 90), Flow(17, 90)

        def forward(self, a, b):
            y = self.first(torch.cat([a, b], 1))
            a1, b1 = moved(a, y[:, :2]), moved(b, y[:, 2:4])
            y = y + self.last(torch.cat([a, b, a1, b1, y], 1))
            mask = y[:, 4:5].sigmoid()
            return moved(a, y[:, :2]) * mask + moved(b, y[:, 2:4]) * (1 - mask)
    return Net()


@layers("slow_and_fast", [(3, 16, 112, 112)], [(3, 8, 32, 32)])
def slow_and_fast(torch, nn):
    """Two paths of video at two rates with lateral convolutions, and depthwise volumes with squeeze and excitation (SlowFast, X3D)."""
    def volume(a, b, k, s=1, groups=1):
        k = k if isinstance(k, tuple) else (k, k, k)
        s = s if isinstance(s, tuple) else (1, s, s)
        return nn.Sequential(nn.Conv3d(a, b, k, s, tuple(n // 2 for n in k), groups=groups, bias=False), nn.BatchNorm3d(b))

    class Squeeze(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.inner = nn.Sequential(nn.AdaptiveAvgPool3d(1), nn.Conv3d(c, 16, 1), nn.ReLU(), nn.Conv3d(16, c, 1), nn.Sigmoid())

        def forward(self, x):
            return x * self.inner(x)

    class Block(nn.Module):
        def __init__(self, a, mid, b, s=1, depthwise=False):
            super().__init__()
            kernel = volume(mid, mid, 3, s, mid) if depthwise else volume(mid, mid, (1, 3, 3), s)
            self.inner = nn.Sequential(volume(a, mid, 1 if depthwise else (3, 1, 1)), nn.ReLU(), kernel, *([Squeeze(mid), nn.SiLU()] if depthwise else [nn.ReLU()]), volume(mid, b, 1))
            self.skip = volume(a, b, 1, s) if a != b or s > 1 else nn.Identity()

        def forward(self, x):
            return (self.inner(x) + self.skip(x)).relu()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.slow, self.fast = nn.Sequential(volume(3, 64, (1, 7, 7), 2), nn.ReLU(), nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1))), nn.Sequential(
                volume(3, 8, (5, 7, 7), 2), nn.ReLU(), nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1)))
            self.across = nn.Conv3d(8, 16, (5, 1, 1), (4, 1, 1), (2, 0, 0), bias=False)
            self.slows, self.fasts = nn.Sequential(Block(80, 64, 256), Block(256, 64, 256)), nn.Sequential(Block(8, 24, 24, 1, True), Block(24, 54, 24, 1, True), Block(24, 54, 48, 2, True))
            self.last = nn.Linear(304, 50)

        def forward(self, x):
            a, b = self.slow(x[:, :, ::4]), self.fast(x)
            a, b = self.slows(torch.cat([a, self.across(b)], 1)), self.fasts(b)
            return self.last(torch.cat([a.mean((2, 3, 4)), b.mean((2, 3, 4))], 1))
    return Net()


@layers("skeleton", [(3, 100, 25, 2)], [(3, 16, 25, 2)])
def skeleton(torch, nn):
    """Convolutions along time and products with a graph of joints, as one Einsum (ST-GCN)."""
    class Block(nn.Module):
        def __init__(self, a, b, s=1):
            super().__init__()
            self.gcn, self.edges, self.c = nn.Conv2d(a, 3 * b, 1), nn.Parameter(torch.rand(3, 25, 25)), b
            self.tcn = nn.Sequential(nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, (9, 1), (s, 1), (4, 0)), nn.BatchNorm2d(b))
            self.skip = nn.Identity() if a == b and s == 1 else nn.Sequential(nn.Conv2d(a, b, 1, (s, 1)), nn.BatchNorm2d(b))
            self.register_buffer("graph", torch.rand(3, 25, 25))

        def forward(self, x):
            y = self.gcn(x)
            n, _, t, v = y.shape
            y = torch.einsum("nkctv,kvw->nctw", y.view(n, 3, self.c, t, v), self.graph * self.edges)
            return (self.tcn(y) + self.skip(x)).relu()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(75)
            self.blocks, self.last = nn.Sequential(Block(3, 64), Block(64, 64), Block(64, 128, 2), Block(128, 128), Block(128, 256, 2)), nn.Conv2d(256, 60, 1)

        def forward(self, x):
            n, c, t, v, m = x.shape
            x = self.norm(x.permute(0, 4, 3, 1, 2).reshape(n * m, v * c, t)).view(n, m, v, c, t).permute(0, 1, 3, 4, 2).reshape(n * m, c, t, v)
            x = self.blocks(x)
            return self.last(x.mean((2, 3), keepdim=True).view(n, m, -1, 1, 1).mean(1)).flatten(1)
    return Net()
