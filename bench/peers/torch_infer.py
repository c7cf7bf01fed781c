# SPDX-License-Identifier: Apache-2.0
"""PyTorch's latency on one GPU: eager, in a CUDA graph, and by torch.compile.

usage: torch_infer.py MODEL[,MODEL] DTYPE[,DTYPE] BATCH[,BATCH] [MODE[,MODE]]

Milliseconds a forward, median of CUDA-event timings, inputs resident on the GPU; a line "infer MODEL DTYPE bBATCH {'graph': ms, ...}" each.
MODES: eager, graph, compile (mode max-autotune, minutes a model), reduce (torch.compile without tuning, CUDA graphs). fp32 has TF32 allowed.

llama_prefill and llama_decode are grt-models' llama_stack written for PyTorch at its best: fused attention with grouped heads
and without a mask, and for decoding a cache of fixed size that the new keys and values are written into in place.
parallel_fcn is a loop over 1,000 networks of 20-10-1; parallel_fcn_bmm what a patient user makes of it, two batched products.
"""
import statistics
import sys
import time

import torch

from torch_exports import captured

LLAMA = {"layers": 4, "hidden": 4096, "heads": 32, "kv_heads": 8, "inner": 14336}
NETWORKS, FEATURES, HIDDEN = 1000, 20, 10  # of parallel_fcn
LENGTH = 2048  # tokens of the prompt; of the past when decoding


class Layer(torch.nn.Module):
    def __init__(self, batch, past):
        super().__init__()
        hidden, self.size = LLAMA["hidden"], LLAMA["hidden"] // LLAMA["heads"]
        width = LLAMA["kv_heads"] * self.size
        linear = lambda a, b: torch.nn.Linear(a, b, bias=False)
        self.q, self.k, self.v, self.o = linear(hidden, hidden), linear(hidden, width), linear(hidden, width), linear(hidden, hidden)
        self.gate, self.up, self.down = linear(hidden, LLAMA["inner"]), linear(hidden, LLAMA["inner"]), linear(LLAMA["inner"], hidden)
        self.norms = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(hidden)) for _ in range(2)])
        self.past = past
        if past:
            shape = (batch, LLAMA["kv_heads"], past + 1, self.size)
            self.register_buffer("keys", torch.rand(shape))
            self.register_buffer("values", torch.rand(shape))

    def heads(self, x):
        return x.view(x.shape[0], x.shape[1], -1, self.size).transpose(1, 2)

    def forward(self, x, cos, sin):
        def rotate(t):
            a, b = t.chunk(2, -1)
            return t * cos + torch.cat((-b, a), -1) * sin

        y = torch.nn.functional.rms_norm(x, x.shape[-1:], self.norms[0], 1e-5)
        q, k, v = rotate(self.heads(self.q(y))), rotate(self.heads(self.k(y))), self.heads(self.v(y))
        if self.past:
            self.keys[:, :, self.past:].copy_(k)
            self.values[:, :, self.past:].copy_(v)
            k, v = self.keys, self.values
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=not self.past, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(x.shape))
        y = torch.nn.functional.rms_norm(x, x.shape[-1:], self.norms[1], 1e-5)
        return x + self.down(torch.nn.functional.silu(self.gate(y)) * self.up(y))


class Llama(torch.nn.Module):
    def __init__(self, batch, past, new):
        super().__init__()
        size = LLAMA["hidden"] // LLAMA["heads"]
        self.layers = torch.nn.ModuleList([Layer(batch, past) for _ in range(LLAMA["layers"])])
        self.norm = torch.nn.Parameter(torch.ones(LLAMA["hidden"]))
        angles = torch.outer(torch.arange(past, past + new).float(), 10000.0 ** (-torch.arange(0, size, 2) / size)).repeat(1, 2)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x):
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return torch.nn.functional.rms_norm(x, x.shape[-1:], self.norm, 1e-5)


class Networks(torch.nn.Module):
    """Small networks in a loop, each on columns of its own."""

    def __init__(self):
        super().__init__()
        linear = torch.nn.Linear
        self.networks = torch.nn.ModuleList(
            [torch.nn.Sequential(linear(FEATURES, HIDDEN), linear(HIDDEN, 1)) for _ in range(NETWORKS)])

    def forward(self, x):
        return torch.cat([m(x[:, i * FEATURES:(i + 1) * FEATURES]) for i, m in enumerate(self.networks)], dim=1)


class BatchedNetworks(torch.nn.Module):
    """The same, written for a GPU by hand."""

    def __init__(self):
        super().__init__()
        parameter = lambda *dims: torch.nn.Parameter(torch.rand(NETWORKS, *dims))
        self.w1, self.b1, self.w2, self.b2 = parameter(FEATURES, HIDDEN), parameter(1, HIDDEN), parameter(HIDDEN, 1), parameter(1, 1)

    def forward(self, x):
        y = torch.baddbmm(self.b1, x.view(x.shape[0], NETWORKS, FEATURES).transpose(0, 1), self.w1)
        return torch.baddbmm(self.b2, y, self.w2).squeeze(-1).t()


class Bert(torch.nn.Module):
    def __init__(self):
        super().__init__()
        import transformers

        self.m = transformers.BertModel(transformers.BertConfig())

    def forward(self, ids):
        return self.m(input_ids=ids).last_hidden_state


def build(name, dtype, batch):
    """The model and its inputs, on the GPU."""
    torch.manual_seed(0)
    if name.startswith("llama"):
        past, new = (0, LENGTH) if name == "llama_prefill" else (LENGTH, 1)
        with torch.device("cuda"):
            return Llama(batch, past, new).eval().to(dtype), (torch.rand(batch, new, LLAMA["hidden"], dtype=dtype),)
    if name.startswith("parallel_fcn"):
        model = BatchedNetworks() if name.endswith("bmm") else Networks()
        return model.eval().cuda().to(dtype), (torch.rand(batch, NETWORKS * FEATURES, device="cuda", dtype=dtype),)
    if name == "bert":
        return Bert().eval().cuda().to(dtype), (torch.randint(0, 30000, (batch, 128), device="cuda"),)
    import torchvision

    model = getattr(torchvision.models, name)(weights=None).eval().cuda().to(dtype)
    x = torch.rand(batch, 3, 224, 224, device="cuda", dtype=dtype)
    if not name.startswith("vit"):
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    return model, (x,)


def milliseconds(f, runs=100):
    for _ in range(10):
        f()
    torch.cuda.synchronize()
    times = []
    for _ in range(runs):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        f()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def compiled(model, inputs, mode):
    torch._dynamo.reset()
    f = torch.compile(model, mode=mode)
    f(*inputs)
    f(*inputs)
    torch.cuda.synchronize()
    return lambda: f(*inputs)


def measure(model, inputs, modes):
    row = {}
    for mode in modes:
        begin = time.perf_counter()
        f = (lambda: model(*inputs)) if mode == "eager" else captured(model, inputs)[0] if mode == "graph" else compiled(
            model, inputs, "max-autotune" if mode == "compile" else "reduce-overhead")
        if mode in ("compile", "reduce"):
            row[mode + "_s"] = time.perf_counter() - begin
        row[mode] = milliseconds(f)
    return row


def main():
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    types = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    names, dtypes, batches = (text.split(",") for text in sys.argv[1:4])
    modes = sys.argv[4].split(",") if len(sys.argv) > 4 else ["eager", "graph", "compile"]
    with torch.inference_mode():
        for name in names:
            for dtype in dtypes:
                for batch in map(int, batches):
                    if name.startswith("llama") and batch > 1:
                        continue
                    model, inputs = build(name, types[dtype], batch)
                    try:
                        row = measure(model, inputs, modes)
                        print("infer", name, dtype, f"b{batch}", {k: round(v, 4) for k, v in row.items()}, flush=True)
                    except Exception as e:
                        print("failed", name, dtype, batch, repr(e)[:300], flush=True)
                    del model, inputs
                    torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
