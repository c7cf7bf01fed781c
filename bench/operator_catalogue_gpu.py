# SPDX-License-Identifier: Apache-2.0
"""Models of one node at sizes that fill a GPU, and at small and awkward ones, with PyTorch's own function of the same: what operator_speed_gpu.py measures.

Inputs are made on the GPU. `moved`: the bytes that the operator has to move, where these are not all of its inputs and outputs.
"""
from dataclasses import dataclass, field
from typing import Callable, Optional

import numpy as np
import torch
import torch.nn.functional as F

import operator_catalogue
from operator_catalogue import Constant, i64

DTYPES = {torch.float32: np.float32, torch.float16: np.float16, torch.float64: np.float64, torch.int64: np.int64, torch.int32: np.int32, torch.uint8: np.uint8, torch.bool: np.bool_, torch.uint32: np.uint32}
SHORT = {torch.float32: "f32", torch.float16: "f16", torch.float64: "f64", torch.int64: "i64", torch.int32: "i32", torch.uint8: "u8", torch.bool: "bool"}
F32, F16, F64, I64, I32, U8, BOOL = SHORT


@dataclass
class Case:
    family: str
    name: str
    op: str
    inputs: list  # functions that make tensors, Constants, None where one is left out
    peer: Optional[Callable]  # of the tensors, constants left out
    attributes: dict = field(default_factory=dict)
    moved: Optional[Callable] = None  # bytes, of inputs and results
    dynamic: bool = False  # the size of a result depends on data: timed host to host
    outputs: int = 1
    loose: float = 1e-3  # largest difference from PyTorch's result, relative to the greatest number there; None: not compared

    def model(self, tensors):
        """Bytes of the model; `tensors`: of the inputs that are fed."""
        given = iter(tensors)
        stand_ins = [x if x is None or isinstance(x, Constant) else stand_in(next(given)) for x in self.inputs]
        return operator_catalogue.case(self.name, self.op, *stand_ins, outputs=self.outputs, **self.attributes)[1].SerializeToString()


def stand_in(tensor):
    """An array of that type and shape that takes no memory."""
    return np.broadcast_to(np.zeros((), DTYPES[tensor.dtype]), tuple(tensor.shape))


def of(dtype, *shape, least=-4.0, most=4.0):
    """Normal numbers, or whole ones of small size."""
    def make():
        if dtype.is_floating_point:
            return torch.randn(shape, device="cuda", dtype=torch.float32).clamp_(least, most).to(dtype)
        if dtype is torch.bool:
            return torch.rand(shape, device="cuda") > 0.5
        return torch.randint(0 if dtype is torch.uint8 else -100, 100, shape, device="cuda", dtype=dtype)
    return make


def below(limit, *shape, dtype=torch.int64):
    return lambda: torch.randint(0, limit, shape, device="cuda", dtype=dtype)


def positions(n, limits):
    """n index tuples, each below limits."""
    return lambda: torch.stack([torch.randint(0, limit, (n,), device="cuda") for limit in limits], -1).contiguous()


def places(n, limit):
    """n different indices."""
    return lambda: torch.randperm(limit, device="cuda")[:n].contiguous()


def nbytes(*tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def twice_out(tensors, results):
    """Of what is read, only as many bytes as are written, and the indices."""
    return 2 * nbytes(*results) + nbytes(*tensors[1:])


def gathers():
    g = "Gather"
    for t in (F32, F16):
        yield Case(g, f"rows of 768, {SHORT[t]}", "Gather", [of(t, 50000, 768), below(50000, 16384)], lambda x, i: x.index_select(0, i), moved=twice_out)
    yield Case(g, "rows of 768, 128 of them", "Gather", [of(F32, 50000, 768), below(50000, 128)], lambda x, i: x.index_select(0, i), moved=twice_out)
    yield Case(g, "rows of 64, int32", "Gather", [of(F32, 500000, 64), below(500000, 200000, dtype=torch.int32)], lambda x, i: x.index_select(0, i), moved=twice_out)
    yield Case(g, "rows of 63", "Gather", [of(F32, 200000, 63), below(200000, 200000)], lambda x, i: x.index_select(0, i), moved=twice_out)
    yield Case(g, "axis 1, i64", "Gather", [of(I64, 2048, 8192), below(8192, 4096)], lambda x, i: x.index_select(1, i), {"axis": 1}, moved=twice_out)
    for t in (F32, F64, U8):
        yield Case(g, f"axis 1, {SHORT[t]}", "Gather", [of(t, 4096, 8192), below(8192, 4096)], lambda x, i: x.index_select(1, i), {"axis": 1}, moved=twice_out)
    yield Case(g, "single elements", "Gather", [of(F32, 1 << 20), below(1 << 20, 1 << 22)], lambda x, i: x.index_select(0, i), moved=twice_out)
    for axis in (0, 1):
        yield Case("GatherElements", f"axis {axis}", "GatherElements", [of(F32, 4096, 4096), below(4096, 4096, 4096)], lambda x, i, axis=axis: torch.gather(x, axis, i), {"axis": axis})
    yield Case("GatherND", "elements", "GatherND", [of(F32, 4096, 4096), positions(1 << 21, (4096, 4096))], lambda x, i: x[i[:, 0], i[:, 1]], moved=twice_out)
    yield Case("GatherND", "rows of 256", "GatherND", [of(F32, 512, 512, 256), positions(1 << 16, (512, 512))], lambda x, i: x[i[:, 0], i[:, 1]], moved=twice_out)


def scatters():
    s = "Scatter"

    def whole(tensors, results):
        return nbytes(*tensors, *results)
    yield Case(s, "elements, axis 1", "ScatterElements", [of(F32, 4096, 4096), lambda: torch.argsort(torch.rand(4096, 4096, device="cuda"), 1)[:, :1024].contiguous(), of(F32, 4096, 1024)],
               lambda x, i, u: torch.scatter(x, 1, i, u), {"axis": 1}, whole)
    for how, name in (("add", "sum"), ("max", "amax")):
        for t in (F32, I64):
            yield Case(s, f"elements {how}, axis 1, {SHORT[t]}", "ScatterElements", [of(t, 4096, 1024), below(1024, 4096, 1024), of(t, 4096, 1024)],
                       lambda x, i, u, name=name: torch.scatter_reduce(x, 1, i, u, name), {"axis": 1, "reduction": how}, whole)
        yield Case(s, f"elements {how}, axis 0", "ScatterElements", [of(F32, 2048, 64), lambda: torch.randint(0, 2048, (65536, 1), device="cuda").repeat(1, 64), of(F32, 65536, 64)],
                   lambda x, i, u, name=name: torch.scatter_reduce(x, 0, i, u, name), {"axis": 0, "reduction": how}, whole)
        for t in (F32, I32):
            yield Case(s, f"elements {how} of a line, {SHORT[t]}", "ScatterElements", [of(t, 100000), below(100000, 100000), of(t, 100000)],
                       lambda x, i, u, name=name: torch.scatter_reduce(x, 0, i, u, name), {"axis": 0, "reduction": how}, whole)
        for n, size in ((100, 16), (2000, 500), (100000, 1), (100000, 16), (1000000, 1000000)):
            yield Case(s, f"elements {how}, {n:,} into {size:,}", "ScatterElements", [of(F32, size), below(size, n), of(F32, n)], lambda x, i, u, name=name: torch.scatter_reduce(x, 0, i, u, name),
                       {"axis": 0, "reduction": how}, whole)
    yield Case(s, "ND rows of 256", "ScatterND", [of(F32, 65536, 256), lambda: places(32768, 65536)().unsqueeze(1), of(F32, 32768, 256)], lambda x, i, u: x.index_copy(0, i[:, 0], u), {}, whole)
    yield Case(s, "ND rows of 256 add", "ScatterND", [of(F32, 8192, 256), below(8192, 32768, 1), of(F32, 32768, 256)], lambda x, i, u: x.index_add(0, i[:, 0], u), {"reduction": "add"}, whole)
    yield Case(s, "ND elements add", "ScatterND", [of(F32, 512, 512), positions(100000, (512, 512)), of(F32, 100000)],
               lambda x, i, u: x.index_put((i[:, 0], i[:, 1]), u, accumulate=True), {"reduction": "add"}, whole)
    yield Case("OneHot", "1,000 of 16,384", "OneHot", [below(1000, 16384), Constant(np.int64(1000)), Constant(np.array([0, 1], np.float32))],
               lambda i: torch.zeros(16384, 1000, device="cuda").scatter_(1, i[:, None], 1.0))
    yield Case("OneHot", "axis 1", "OneHot", [below(21, 8, 512, 512), Constant(np.int64(21)), Constant(np.array([0, 1], np.float32))],
               lambda i: torch.zeros(8, 21, 512, 512, device="cuda").scatter_(1, i[:, None], 1.0), {"axis": 1})


def selections():
    t = "TopK"
    for rows, length, k in ((1, 1000, 5), (1000, 1000, 5), (1000, 1000, 100), (1, 32000, 1), (1, 32000, 50), (32, 32000, 50), (1, 100000, 5), (32, 100000, 100), (1, 1000000, 1), (1, 1000000, 5),
                            (1, 1000000, 100), (1, 1000000, 1000), (32, 1000000, 5), (1000, 50257, 5), (1000, 50257, 50)):
        yield Case(t, f"{k} of {rows} x {length:,}", "TopK", [of(F32, rows, length), Constant(i64(k))], lambda x, k=k: torch.topk(x, k, 1), {"axis": 1}, outputs=2)
    for rows, length, k in ((32, 2000, 5), (32, 100000, 100), (1, 1000000, 5), (1000, 50257, 50)):
        yield Case(t, f"{k} of {rows} x {length:,}, f64", "TopK", [of(F64, rows, length), Constant(i64(k))], lambda x, k=k: torch.topk(x, k, 1), {"axis": 1}, outputs=2)
    for d in (F16, I64, F64):
        yield Case(t, f"5 of 32 x 100,000, {SHORT[d]}", "TopK", [of(d, 32, 100000), Constant(i64(5))], lambda x: torch.topk(x, 5, 1), {"axis": 1}, outputs=2)
    yield Case(t, "8 of 32 x 4,096 x 64, axis 1", "TopK", [of(F32, 32, 4096, 64), Constant(i64(8))], lambda x: torch.topk(x, 8, 1), {"axis": 1}, outputs=2)
    a = "ArgMax"
    for rows, length in ((1, 1000), (1, 50257), (32, 50257), (1, 1 << 24), (1 << 17, 128), (4096, 4096)):
        yield Case(a, f"{rows:,} x {length:,}", "ArgMax", [of(F32, rows, length)], lambda x: torch.argmax(x, 1, keepdim=True), {"axis": 1})
    for d in (F16, I64):
        yield Case(a, f"32 x 500,000, {SHORT[d]}", "ArgMax", [of(d, 32, 500000)], lambda x: torch.argmax(x, 1, keepdim=True), {"axis": 1}, loose=None)
    yield Case(a, "classes of pixels", "ArgMax", [of(F32, 8, 21, 512, 512)], lambda x: torch.argmax(x, 1, keepdim=True), {"axis": 1})
    yield Case(a, "axis 0 of 65,536 x 64", "ArgMax", [of(F32, 65536, 64)], lambda x: torch.argmax(x, 0, keepdim=True), {"axis": 0})
    yield Case("Hardmax", "256 x 50,257", "Hardmax", [of(F32, 256, 50257)], lambda x: torch.zeros_like(x).scatter_(1, torch.argmax(x, 1, keepdim=True), 1.0), {"axis": 1})


def scans():
    s = "CumSum"
    for name, shape, axis, more in (("a line of 16 M", (1 << 24,), 0, {}), ("a line of 100,000", (100000,), 0, {}), ("8 x 1 M", (8, 1 << 20), 1, {}), ("4,096 x 4,096", (4096, 4096), 1, {}),
                                    ("65,536 x 256", (1 << 16, 256), 1, {}), ("axis 0 of 4,096 x 4,096", (4096, 4096), 0, {}), ("axis 1 of 32 x 2,048 x 256", (32, 2048, 256), 1, {}),
                                    ("axis 0 of 65,536 x 64", (65536, 64), 0, {}), ("8 x 1 M, exclusive and reverse", (8, 1 << 20), 1, {"exclusive": 1, "reverse": 1})):
        peer = (lambda x, axis=axis: torch.cumsum(x, axis)) if not more else lambda x: torch.cumsum(x.flip(1), 1).flip(1) - x
        yield Case(s, name, "CumSum", [of(F32, *shape), Constant(np.int64(axis))], peer, more)
    for d in (F16, F64, I64, I32):
        yield Case(s, f"8 x 1 M, {SHORT[d]}", "CumSum", [of(d, 8, 1 << 20, least=-0.01, most=0.01), Constant(np.int64(1))],
                   lambda x: torch.cumsum(x, 1, dtype=x.dtype), loose=None if d is F16 else 1e-3)
    yield Case(s, "short lines, i64", "CumSum", [of(I64, 1024, 128), Constant(np.int64(1))], lambda x: torch.cumsum(x, 1))


def reductions():
    for op, peer in (("ReduceSum", torch.sum), ("ReduceMax", torch.amax), ("ReduceLogSumExp", torch.logsumexp)):
        for name, shape, axes in (("all of 16 M", (1 << 24,), (0,)), ("8 long rows", (8, 1 << 21), (1,)), ("4,096 x 4,096", (4096, 4096), (1,)), ("many short rows", (1 << 20, 16), (1,)),
                                  ("outer axis", (4096, 4096), (0,)), ("outer axis of few columns", (1 << 18, 64), (0,)), ("inner axis", (64, 1024, 256), (1,)), ("axes 0, 2", (64, 256, 1024), (0, 2))):
            yield Case("Reduce", f"{op[6:]}, {name}", op, [of(F32, *shape), Constant(i64(*axes))], lambda x, peer=peer, axes=axes: peer(x, axes, keepdim=True))
    for op, peer, types in (("ReduceSum", torch.sum, (F16, F64, I64, I32)), ("ReduceMax", torch.amax, (F16, F64, I64, U8))):
        for d in types:
            for name, shape, axes in (("rows", (2048, 8192), (1,)), ("8 long rows", (8, 1 << 21), (1,)), ("outer axis", (8192, 2048), (0,))):
                yield Case("Reduce", f"{op[6:]}, {name}, {SHORT[d]}", op, [of(d, *shape), Constant(i64(*axes))],
                           lambda x, peer=peer, axes=axes, d=d: peer(x, axes, keepdim=True, dtype=d) if peer is torch.sum else peer(x, axes, keepdim=True), loose=1e-2 if d is F16 else 1e-3)
    for name, shape, axis in (("1 x 1 M", (1, 1 << 20), 1), ("8 x 1 M", (8, 1 << 20), 1), ("32 x 128,256", (32, 128256), 1), ("4,096 x 4,096", (4096, 4096), 1), ("1 M x 16", (1 << 20, 16), 1),
                              ("inner axis", (32, 512, 1024), 1), ("classes of pixels", (8, 21, 512, 512), 1)):
        yield Case("Softmax", name, "Softmax", [of(F32, *shape)], lambda x, axis=axis: torch.softmax(x, axis), {"axis": axis})
    for d in (F16, F64):
        yield Case("Softmax", f"32 x 128,256, {SHORT[d]}", "Softmax", [of(d, 32, 128256)], lambda x: torch.softmax(x, 1), {"axis": 1})
    yield Case("Softmax", "1,024 x 4,096, f16", "Softmax", [of(F16, 1024, 4096)], lambda x: torch.softmax(x, 1), {"axis": 1})


def pictures():
    r = "Resize"
    for mode, torch_mode in (("nearest", "nearest"), ("linear", "bilinear"), ("cubic", "bicubic")):
        more = {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"} if mode == "nearest" else {"cubic_coeff_a": -0.75} if mode == "cubic" else {}
        aligned = {} if mode == "nearest" else {"align_corners": False}
        for name, shape, to in (("x2", (8, 64, 128, 128), (256, 256)), ("to 224", (32, 3, 480, 640), (224, 224)), ("x3 of 3 channels", (8, 3, 360, 640), (1080, 1920))):
            yield Case(r, f"{mode} {name}", "Resize", [of(F32, *shape), None, None, Constant(i64(*shape[:2], *to))], lambda x, to=to, m=torch_mode, a=aligned: F.interpolate(x, to, mode=m, **a), {"mode": mode, **more},
                       loose=None if mode == "nearest" else 1e-3)  # PyTorch rounds places in float32
    for mode, torch_mode in (("linear", "bilinear"), ("cubic", "bicubic")):
        yield Case(r, f"{mode} to 224, antialias", "Resize", [of(F32, 32, 3, 480, 640), None, None, Constant(i64(32, 3, 224, 224))],
                   lambda x, m=torch_mode: F.interpolate(x, (224, 224), mode=m, antialias=True), {"mode": mode, "antialias": 1, "cubic_coeff_a": -0.5, "exclude_outside": 1}, loose=2e-2)
    yield Case(r, "linear x2, f16", "Resize", [of(F16, 8, 64, 128, 128), None, None, Constant(i64(8, 64, 256, 256))], lambda x: F.interpolate(x, (256, 256), mode="bilinear"), {"mode": "linear"}, loose=1e-2)
    yield Case(r, "linear x2 of 3-D", "Resize", [of(F32, 2, 32, 32, 64, 64), None, None, Constant(i64(2, 32, 64, 128, 128))], lambda x: F.interpolate(x, (64, 128, 128), mode="trilinear"), {"mode": "linear"})
    yield Case(r, "linear x4 of 1-D", "Resize", [of(F32, 32, 256, 1000), None, None, Constant(i64(32, 256, 4000))], lambda x: F.interpolate(x, 4000, mode="linear"), {"mode": "linear"})
    yield Case(r, "nearest x2, u8", "Resize", [of(U8, 32, 3, 480, 640), None, None, Constant(i64(32, 3, 960, 1280))], lambda x: F.interpolate(x, (960, 1280), mode="nearest"),
               {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"})
    for mode in ("linear", "nearest", "cubic"):
        yield Case("GridSample", mode, "GridSample", [of(F32, 8, 64, 128, 128), of(F32, 8, 128, 128, 2, least=-1.1, most=1.1)],
                   lambda x, g, m={"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}[mode]: F.grid_sample(x, g, m, "zeros", False), {"mode": mode}, loose=None if mode == "nearest" else 1e-3)
    yield Case("GridSample", "linear, border, 3 channels", "GridSample", [of(F32, 8, 3, 512, 512), of(F32, 8, 512, 512, 2, least=-1.1, most=1.1)],
               lambda x, g: F.grid_sample(x, g, "bilinear", "border", True), {"mode": "linear", "padding_mode": "border", "align_corners": 1})
    yield Case("GridSample", "linear of 3-D", "GridSample", [of(F32, 2, 16, 32, 64, 64), of(F32, 2, 32, 64, 64, 3, least=-1.0, most=1.0)], lambda x, g: F.grid_sample(x, g, "bilinear", "zeros", False), {"mode": "linear"})

    def boxes(n, side):
        def make():
            corner, size = torch.rand(n, 2, device="cuda") * side * 0.8, torch.rand(n, 2, device="cuda") * side * 0.2 + 1
            return torch.cat([corner, corner + size], 1)
        return make
    from torchvision.ops import nms, roi_align
    for ratio in (2, 0):
        yield Case("RoiAlign", f"1,000 boxes, {ratio} samples", "RoiAlign", [of(F32, 1, 256, 200, 200), boxes(1000, 800.0), below(1, 1000)],
                   lambda x, b, i, ratio=ratio: roi_align(x, torch.cat([i[:, None].float(), b], 1), (7, 7), 0.25, ratio, True), {"output_height": 7, "output_width": 7, "spatial_scale": 0.25, "sampling_ratio": ratio})
    for n, classes in ((100, 1), (1000, 1), (1000, 80), (10000, 1), (10000, 8)):
        def all_nms(b, s, classes=classes):
            return [nms(b[0], s[0, c], 0.5) for c in range(classes)]
        yield Case("NonMaxSuppression", f"{n:,} boxes, {classes} classes", "NonMaxSuppression",
                   [lambda n=n: boxes(n, 800.0)()[None], lambda n=n, classes=classes: torch.rand(1, classes, n, device="cuda"), Constant(i64(n)), Constant(np.array([0.5], np.float32))],
                   all_nms, dynamic=True, loose=None)


def dynamics():
    for d in (F32, BOOL):
        yield Case("NonZero", f"4,096 x 4,096, {SHORT[d]}", "NonZero", [(lambda: torch.relu(of(F32, 4096, 4096)())) if d is F32 else of(d, 4096, 4096)], torch.nonzero, dynamic=True, loose=None)
    yield Case("NonZero", "1,000", "NonZero", [of(BOOL, 1000)], torch.nonzero, dynamic=True, loose=None)
    for n in (1000, 20000, 1 << 20):
        for d in (F32, I64, F64, I32):
            yield Case("Unique", f"{n:,}, {SHORT[d]}", "Unique", [lambda n=n, d=d: torch.randint(0, 1000, (n,), device="cuda").to(d)],
                       lambda x: torch.unique(x, return_inverse=True, return_counts=True), dynamic=True, outputs=4, loose=None)
    yield Case("Compress", "rows of 64", "Compress", [of(F32, 1 << 18, 64), of(BOOL, 1 << 18)], lambda x, c: x[c], {"axis": 0}, dynamic=True, loose=None)


def moves():
    for d in (F32, F16, F64, U8):
        yield Case("Transpose", f"matrix, {SHORT[d]}", "Transpose", [of(d, 4096, 8192)], lambda x: x.t().contiguous(), {"perm": [1, 0]})
        yield Case("Transpose", f"channels last, {SHORT[d]}", "Transpose", [of(d, 32, 64, 112, 112)], lambda x: x.permute(0, 2, 3, 1).contiguous(), {"perm": [0, 2, 3, 1]})
    for name, shape, perm in (("channels first", (32, 112, 112, 64), (0, 3, 1, 2)), ("3 channels last", (32, 3, 480, 640), (0, 2, 3, 1)), ("3 channels first", (32, 480, 640, 3), (0, 3, 1, 2)),
                              ("heads", (32, 512, 12, 64), (0, 2, 1, 3)), ("keys", (32, 512, 12, 64), (0, 2, 3, 1)), ("all axes", (64, 48, 80, 56), (3, 2, 1, 0)),
                              ("batch of 7 x 7", (1 << 17, 7, 7), (0, 2, 1)), ("outer axes of rows of 3", (2048, 2048, 3), (1, 0, 2)), ("patches", (64, 3, 14, 16, 14, 16), (0, 2, 4, 3, 5, 1))):
        yield Case("Transpose", name, "Transpose", [of(F32, *shape)], lambda x, perm=perm: x.permute(perm).contiguous(), {"perm": list(perm)})
    yield Case("Transpose", "3 channels first, u8", "Transpose", [of(U8, 32, 480, 640, 3)], lambda x: x.permute(0, 3, 1, 2).contiguous(), {"perm": [0, 3, 1, 2]})
    for mode in ("constant", "reflect", "edge"):
        yield Case("Pad", mode, "Pad", [of(F32, 32, 64, 112, 112), Constant(i64(0, 0, 1, 1, 0, 0, 1, 1))], lambda x, m={"edge": "replicate"}.get(mode, mode): F.pad(x, (1, 1, 1, 1), m), {"mode": mode})
    yield Case("Pad", "constant, u8", "Pad", [of(U8, 32, 3, 480, 640), Constant(i64(0, 0, 0, 0, 0, 0, 160, 0))], lambda x: F.pad(x, (0, 0, 0, 160)))
    yield Case("Tile", "rows", "Tile", [of(F32, 256, 4096), Constant(i64(16, 1))], lambda x: x.repeat(16, 1))
    yield Case("Tile", "elements", "Tile", [of(F32, 1 << 18, 1), Constant(i64(1, 64))], lambda x: x.repeat(1, 64))
    yield Case("Expand", "rows", "Expand", [of(F32, 1, 4096), Constant(i64(4096, 4096))], lambda x: x.expand(4096, 4096).contiguous())
    yield Case("Expand", "heads, f16", "Expand", [of(F16, 8, 8, 1, 1024, 128), Constant(i64(8, 8, 4, 1024, 128))], lambda x: x.expand(8, 8, 4, 1024, 128).contiguous())
    for d in (F32, U8):
        yield Case("Slice", f"steps of 2 along rows, {SHORT[d]}", "Slice", [of(d, 4096, 8192), Constant(i64(0)), Constant(i64(8192)), Constant(i64(1)), Constant(i64(2))], lambda x: x[:, ::2].contiguous())
    yield Case("Slice", "every second row and column", "Slice", [of(F32, 32, 64, 112, 112), Constant(i64(0, 0)), Constant(i64(112, 112)), Constant(i64(2, 3)), Constant(i64(2, 2))], lambda x: x[:, :, ::2, ::2].contiguous())
    yield Case("Slice", "backwards", "Slice", [of(F32, 4096, 4096), Constant(i64(-1)), Constant(i64(-100000)), Constant(i64(1)), Constant(i64(-1))], lambda x: x.flip(1))
    yield Case("Concat", "axis 1", "Concat", [of(F32, 32, 64, 112, 112), of(F32, 32, 32, 112, 112)], lambda a, b: torch.cat([a, b], 1), {"axis": 1})
    yield Case("Concat", "columns", "Concat", [of(F32, 1 << 20, 3), of(F32, 1 << 20, 1), of(F32, 1 << 20, 5)], lambda a, b, c: torch.cat([a, b, c], 1), {"axis": 1})
    yield Case("Split", "axis 2", "Split", [of(F32, 8, 1024, 2304)], lambda x: [p.contiguous() for p in x.split(768, 2)], {"axis": 2, "num_outputs": 3}, outputs=3)
    yield Case("Split", "axis 2 of f16, 3 odd parts", "Split", [of(F16, 8, 1024, 771)], lambda x: [p.contiguous() for p in x.split(257, 2)], {"axis": 2, "num_outputs": 3}, outputs=3)
    yield Case("Trilu", "32 x 1,024 x 1,024", "Trilu", [of(F32, 32, 1024, 1024)], torch.triu, {"upper": 1})
    yield Case("ReverseSequence", "512 x 64 x 512", "ReverseSequence", [of(F32, 512, 64, 512), lambda: torch.full((64,), 512, device="cuda")], lambda x, n: x.flip(0), {"batch_axis": 1, "time_axis": 0})
    yield Case("DepthToSpace", "2", "DepthToSpace", [of(F32, 8, 256, 112, 112)], lambda x: x.reshape(8, 2, 2, 64, 112, 112).permute(0, 3, 4, 1, 5, 2).reshape(8, 64, 224, 224), {"blocksize": 2})


def pointwise():
    import onnx
    for d in (F32, F16, F64, I64, U8):
        yield Case("Where", SHORT[d], "Where", [of(BOOL, 4096, 4096), of(d, 4096, 4096), of(d, 4096, 4096)], torch.where)
    yield Case("Where", "mask of columns", "Where", [of(BOOL, 32, 1, 1, 1024), of(F32, 32, 12, 64, 1024), Constant(np.float32(-1e9))], lambda c, x: x.masked_fill(~c, -1e9))
    for a, b, to in ((F32, F16, onnx.TensorProto.FLOAT16), (F16, F32, onnx.TensorProto.FLOAT), (F32, U8, onnx.TensorProto.UINT8), (U8, F32, onnx.TensorProto.FLOAT), (I64, I32, onnx.TensorProto.INT32),
                     (I64, F32, onnx.TensorProto.FLOAT), (F64, F32, onnx.TensorProto.FLOAT), (BOOL, F32, onnx.TensorProto.FLOAT), (F32, BOOL, onnx.TensorProto.BOOL)):
        yield Case("Cast", f"{SHORT[a]} to {SHORT[b]}", "Cast", [of(a, 4096, 8192, least=0.0)], lambda x, b=b: x.to(b), {"to": to})
    for d in (F32, F64, I64, I32):
        yield Case("Pointwise", f"Add, {SHORT[d]}", "Add", [of(d, 4096, 4096), of(d, 4096, 4096)], torch.add)
    yield Case("Pointwise", "Add of a column, f64", "Add", [of(F64, 4096, 4096), of(F64, 4096, 1)], torch.add)

    def nonzero(dtype):
        return lambda: torch.randint(1, 100, (4096, 4096), device="cuda", dtype=dtype)
    for d in (I64, I32):
        yield Case("Pointwise", f"Mod, {SHORT[d]}", "Mod", [of(d, 4096, 4096), nonzero(d)], torch.remainder)
        yield Case("Pointwise", f"Div, {SHORT[d]}", "Div", [nonzero(d), nonzero(d)], lambda a, b: torch.div(a, b, rounding_mode="trunc"))
    yield Case("Pointwise", "Mod, f32, fmod", "Mod", [of(F32, 4096, 4096), lambda: torch.rand(4096, 4096, device="cuda") + 0.5], torch.fmod, {"fmod": 1})
    for d in (F32, F64):
        yield Case("Pointwise", f"Pow, {SHORT[d]}", "Pow", [lambda d=d: torch.rand(4096, 4096, device="cuda", dtype=d) + 0.1, of(d, 4096, 4096)], torch.pow)
    yield Case("Pointwise", "Pow, i64", "Pow", [lambda: torch.randint(0, 9, (4096, 4096), device="cuda"), lambda: torch.randint(0, 9, (4096, 4096), device="cuda")], torch.pow)
    yield Case("Pointwise", "BitShift, u8", "BitShift", [of(U8, 8192, 8192), lambda: torch.randint(0, 7, (8192, 8192), device="cuda", dtype=torch.uint8)], torch.bitwise_left_shift, {"direction": "LEFT"})
    yield Case("Pointwise", "Exp, f64", "Exp", [of(F64, 4096, 4096)], torch.exp)
    yield Case("Pointwise", "Greater, f64", "Greater", [of(F64, 4096, 4096), of(F64, 4096, 4096)], torch.gt)


def products():
    yield Case("MatMul", "1,024, f64", "MatMul", [of(F64, 1024, 1024), of(F64, 1024, 1024)], torch.matmul)
    for d in (I32, I64):
        yield Case("MatMul", f"1,024, {SHORT[d]}", "MatMul", [of(d, 1024, 1024), of(d, 1024, 1024)], None)
    yield Case("MatMul", "batches of 64, f64", "MatMul", [of(F64, 256, 64, 64), of(F64, 256, 64, 64)], torch.matmul)
    yield Case("Conv", "3x3 of 64, f64", "Conv", [of(F64, 8, 64, 56, 56), of(F64, 64, 64, 3, 3)], lambda x, w: F.conv2d(x, w, padding=1), {"pads": [1] * 4})


FAMILIES = (gathers, scatters, selections, scans, reductions, pictures, dynamics, moves, pointwise, products)


def cases():
    for family in FAMILIES:
        yield from family()
