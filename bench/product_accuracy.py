#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Error of float32 products and convolutions against float64: of the result's norm, the largest of the largest result, and the mean along the result's sign.

    product_accuracy.py [--build DIR] [--device cuda:0] [--target sm_90] [--precision tf32] [--products MxKxN ...] [--convolutions KxS,HxC-N ...] [--numbers normal uniform]

A model of one node is made for each, compiled and run; default: the ones of docs/measurements/cuda.md, in float32 without TF32. Beside it PyTorch's float32 without TF32 on the same device, where
PyTorch is installed and has one. Along the sign: the mean of error / largest result with the result's sign, which a truncated operand shows and a rounded one does not.
"""
import tempfile
from pathlib import Path

import common

PRODUCTS = ["197x768x3072", "512x1024x1024", "256x4608x512", "4096x768x768"]
CONVOLUTIONS = ["3x2,14x512-512", "7x2,224x3-64"]
NUMBERS = {"normal": lambda random, dims: random.standard_normal(dims), "uniform": lambda random, dims: random.random(dims)}
COLUMNS = {"what": "product or convolution", "numbers": "numbers", "ours": "ours: norm, largest", "ours_sign": ("along the sign", ".1e"), "torch": "PyTorch: norm, largest",
           "torch_sign": ("along the sign", ".1e")}


def errors(found, exact):
    """(Of the norm, largest of the largest, mean along the sign of the largest.)"""
    import numpy as np
    off, most = found.astype(np.float64) - exact, np.abs(exact).max()
    return float(np.linalg.norm(off) / np.linalg.norm(exact)), float(np.abs(off).max() / most), float((off * np.sign(exact)).mean() / most)


def product(text, numbers, random):
    """(Node, operands) of a product, m x k x n."""
    from onnx import helper
    m, k, n = map(int, text.split("x"))
    return helper.make_node("MatMul", ["a", "b"], ["y"]), [numbers(random, dims).astype("float32") for dims in ((m, k), (k, n))]


def convolution(text, numbers, random):
    """(Node, operands) of a convolution: its window and stride, its image's side and channels, its results' channels."""
    from onnx import helper
    window, image = text.split(",")
    side, stride = map(int, window.split("x"))
    height, channels = image.split("x")
    c, n = map(int, channels.split("-"))
    node = helper.make_node("Conv", ["a", "b"], ["y"], strides=[stride, stride], pads=[side // 2] * 4)
    return node, [numbers(random, dims).astype("float32") for dims in ((1, c, int(height), int(height)), (n, c, side, side))]


def exact(node, a, b):
    """In float64; a convolution as a product of its windows."""
    import numpy as np
    a, b = a.astype(np.float64), b.astype(np.float64)
    if node.op_type == "MatMul":
        return a @ b
    stride, pad = ({x.name: x for x in node.attribute}[name].ints[0] for name in ("strides", "pads"))
    a = np.pad(a, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(a, b.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    return np.tensordot(windows, b, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)


def ours(options, node, a, b, directory):
    """The result of the plan on the device; b is a constant, as weights are."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    value = helper.make_tensor_value_info("a", TensorProto.FLOAT, a.shape)
    graph = helper.make_graph([node], "product", [value], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(b, "b")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), directory / "model.onnx")
    np.save(directory / "a.npy", a)
    target = ["--target", options.target] if options.target else []
    precision = ["--precision", options.precision] if options.precision else []
    common.run([common.tool(options.build, "graphc"), "optimize", *target, *precision, directory / "model.onnx", "-o", directory / "model.grt"])
    common.run([common.tool(options.build, "graphrun"), directory / "model.grt", "--device", options.device, "--input", f"a={directory / 'a.npy'}", "--output-dir", directory])
    return np.load(directory / "y.npy")


def torch_device(options):
    """PyTorch's own name of the device; None without PyTorch or the device."""
    try:
        import torch
    except ImportError:
        return None
    return options.device if options.device == "cpu" or torch.cuda.is_available() else None


def torch_result(device, node, a, b):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    a, b = torch.from_numpy(a).to(device), torch.from_numpy(b).to(device)
    if node.op_type == "MatMul":
        return (a @ b).cpu().numpy()
    stride, pad = ({x.name: x for x in node.attribute}[name].ints[0] for name in ("strides", "pads"))
    return torch.nn.functional.conv2d(a, b, stride=stride, padding=pad).cpu().numpy()


def row_of(options, device, text, make, numbers):
    import numpy as np
    node, (a, b) = make(text, NUMBERS[numbers], np.random.default_rng(0))
    right, row = exact(node, a, b), {"what": text, "numbers": numbers}
    with tempfile.TemporaryDirectory() as directory:
        sides = {"ours": ours(options, node, a, b, Path(directory)), **({"torch": torch_result(device, node, a, b)} if device else {})}
    for side, result in sides.items():
        norm, largest, sign = errors(result, right)
        row |= {side: f"{norm:.1e}, {largest:.1e}", f"{side}_sign": sign, f"{side}_norm": norm, f"{side}_largest": largest}
    return row


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--device", default="cuda:0", help="of graphrun, and of PyTorch (default: cuda:0)")
    parser.add_argument("--target", help="of graphc optimize (default: its own)")
    parser.add_argument("--precision", help="of graphc optimize (default: float32 without TF32)")
    parser.add_argument("--products", nargs="*", default=PRODUCTS, metavar="MxKxN")
    parser.add_argument("--convolutions", nargs="*", default=CONVOLUTIONS, metavar="KxS,HxC-N", help="windows of K x K with stride S of an image of H x H x C, to N channels")
    parser.add_argument("--numbers", nargs="+", default=list(NUMBERS), choices=list(NUMBERS))
    options = parser.parse_args()
    device = torch_device(options)
    rows = [row_of(options, device, text, make, numbers)
            for make, texts in ((product, options.products), (convolution, options.convolutions)) for text in texts for numbers in options.numbers]
    gpus = {"gpus": common.gpus()} if options.device != "cpu" else {}
    common.report(options, "product_accuracy", {"worst_norm": max(row["ours_norm"] for row in rows)}, rows, COLUMNS, device=options.device, precision=options.precision, **gpus)


if __name__ == "__main__":
    main()
