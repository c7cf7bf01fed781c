# SPDX-License-Identifier: Apache-2.0
"""Models of one node, at sizes that exported models have: what operator_speed.py measures.

A case is (name, bytes of the model, inputs by name). Arrays that are given as constants become initializers, as exporters leave them.
"""
import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 20
RNG = np.random.default_rng(1)


def f32(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def positive(*shape):
    return np.abs(f32(*shape)) + np.float32(0.1)


def i64(*values):
    return np.array(values, np.int64)


def below(limit, *shape):
    return RNG.integers(0, limit, shape)


class Constant:
    """An input that is an initializer."""

    def __init__(self, value):
        self.value = np.asarray(value)


def case(name, op, *inputs, outputs=1, opset=OPSET, domain="", **attributes):
    """inputs: arrays, Constants, or None where one is left out."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    fed = {n: x for n, x in zip(names, inputs) if x is not None and not isinstance(x, Constant)}
    graph = helper.make_graph(
        [node], name, [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in fed.items()],
        [onnx.ValueInfoProto(name=o) for o in node.output],
        [numpy_helper.from_array(x.value, n) for n, x in zip(names, inputs) if isinstance(x, Constant)])
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return name, helper.make_model(graph, opset_imports=imports, ir_version=9), fed


def pointwise():
    x, image = f32(1, 128, 3072), f32(1, 64, 56, 56)
    for op in ("Abs Neg Exp Tanh Sigmoid Erf Sin Cos Tan Floor Ceil Round Sign Relu LeakyRelu Elu Selu Celu Softplus Softsign HardSigmoid HardSwish ThresholdedRelu Gelu Mish "
               "Sinh Cosh Asinh Atan Reciprocal").split():
        yield case(op, op, x)
    for op in ("Log", "Sqrt", "Acosh"):
        yield case(op, op, positive(1, 128, 3072) + np.float32(op == "Acosh"))
    for op in ("Asin", "Acos", "Atanh"):
        yield case(op, op, np.tanh(x) * np.float32(0.99))
    yield case("Gelu tanh", "Gelu", x, approximate="tanh")
    yield case("Clip", "Clip", x, Constant(np.float32(0)), Constant(np.float32(6)))
    yield case("PRelu of channels", "PRelu", image, Constant(f32(64, 1, 1)))
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
        yield case(f"{op} of equals", op, x, positive(1, 128, 3072))
    for op, b in (("Add", "row"), ("Mul", "row"), ("Mul", "channel"), ("Add", "column"), ("Div", "column"), ("Mul", "scalar")):
        of = {"row": f32(3072), "column": positive(1, 128, 1), "scalar": np.float32(0.3), "channel": f32(64, 1, 1)}[b]
        yield case(f"{op} of a {b}", op, image if b == "channel" else x, Constant(of))
    yield case("Add of outer", "Add", f32(512, 1), f32(1, 512))
    yield case("Mul squeeze and excite", "Mul", f32(1, 96, 56, 56), f32(1, 96, 1, 1))
    yield case("Add of positions, batch 8", "Add", f32(8, 197, 768), Constant(f32(1, 197, 768)))
    yield case("Pow 2", "Pow", x, Constant(np.float32(2)))
    yield case("Pow 3", "Pow", x, Constant(np.float32(3)))
    yield case("Pow 0.5", "Pow", positive(1, 128, 3072), Constant(np.float32(0.5)))
    yield case("Pow 1.7", "Pow", positive(1, 128, 3072), Constant(np.float32(1.7)))
    yield case("Pow of equals", "Pow", positive(128, 768), f32(128, 768))
    yield case("Mod fmod", "Mod", x, positive(1, 128, 3072), fmod=1)
    yield case("Where", "Where", x > 0, x, f32(1, 128, 3072))
    yield case("Where of a mask and a scalar", "Where", below(2, 1, 1, 128, 128) > 0, f32(1, 12, 128, 128), Constant(np.float32(-1e9)))
    for op in ("Greater", "Equal", "LessOrEqual"):
        yield case(op, op, x, f32(1, 128, 3072))
    yield case("Not", "Not", x > 0)
    yield case("And", "And", x > 0, f32(1, 128, 3072) > 0)
    yield case("IsNaN", "IsNaN", x)
    yield case("IsInf", "IsInf", x)
    yield case("Sum of 3", "Sum", x, f32(1, 128, 3072), f32(1, 128, 3072))
    yield case("Mean of 2", "Mean", x, f32(1, 128, 3072))
    for to, word in ((onnx.TensorProto.FLOAT16, "float16"), (onnx.TensorProto.INT64, "int64"), (onnx.TensorProto.INT32, "int32"), (onnx.TensorProto.DOUBLE, "double"), (onnx.TensorProto.UINT8, "uint8"),
                     (onnx.TensorProto.BOOL, "bool")):
        yield case(f"Cast to {word}", "Cast", x * 100 if word != "uint8" else np.abs(x) * 50, to=to)
    for dtype in (np.int64, np.int32, np.uint8, np.float16, np.bool_):
        yield case(f"Cast from {np.dtype(dtype).name}", "Cast", below(2, 1, 128, 3072).astype(dtype), to=onnx.TensorProto.FLOAT)
    yield case("Dropout", "Dropout", x)
    yield case("Identity", "Identity", x)


def reductions():
    x, image = f32(64, 128, 256), f32(1, 64, 56, 56)
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceProd", "ReduceLogSum"):
        for axes in ((-1,), (1,), (0,)) if op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp") else ((-1,), (1,)):
            yield case(f"{op} axis {axes[0]}", op, positive(64, 128, 256) if op == "ReduceLogSum" else x, Constant(i64(*axes)))
    yield case("ReduceMean of images", "ReduceMean", image, Constant(i64(2, 3)))
    yield case("ReduceMean of short rows", "ReduceMean", f32(4096, 16), Constant(i64(1)))
    yield case("ReduceSum of all", "ReduceSum", x, keepdims=0)
    yield case("ReduceMax of 0, 2", "ReduceMax", x, Constant(i64(0, 2)))
    for op in ("ArgMax", "ArgMin"):
        for axis in (-1, 1, 0):
            yield case(f"{op} axis {axis}", op, x, axis=axis)
    yield case("ArgMax of classes of pixels", "ArgMax", f32(1, 21, 256, 256), axis=1)
    for op in ("Softmax", "LogSoftmax"):
        for axis in (-1, 1, 0):
            yield case(f"{op} axis {axis}", op, x, axis=axis)
    yield case("Softmax of long rows", "Softmax", f32(8, 50257), axis=-1)
    yield case("Softmax of short rows", "Softmax", f32(8, 12, 64, 49), axis=-1)
    yield case("Softmax of classes of pixels", "Softmax", f32(1, 21, 128, 128), axis=1)
    yield case("Hardmax", "Hardmax", x, axis=-1)
    for axis in (-1, 1, 0):
        yield case(f"CumSum axis {axis}", "CumSum", x, Constant(np.int64(axis)))
    yield case("TopK 5", "TopK", f32(64, 1000), Constant(i64(5)), outputs=2)
    yield case("TopK 100 of 8400", "TopK", f32(1, 8400), Constant(i64(100)), outputs=2)
    yield case("TopK 16, axis 1", "TopK", f32(8, 256, 64), Constant(i64(16)), outputs=2, axis=1)


def norms():
    image, x = f32(1, 64, 56, 56), f32(1, 197, 768)
    yield case("LayerNormalization", "LayerNormalization", x, Constant(f32(768)), Constant(f32(768)))
    yield case("LayerNormalization of short rows", "LayerNormalization", f32(1, 3136, 32), Constant(f32(32)), Constant(f32(32)))
    yield case("LayerNormalization of images", "LayerNormalization", image, Constant(f32(64, 56, 56)), Constant(f32(64, 56, 56)), axis=1)
    yield case("InstanceNormalization", "InstanceNormalization", image, Constant(f32(64)), Constant(f32(64)))
    yield case("InstanceNormalization 1-D", "InstanceNormalization", f32(1, 512, 3000), Constant(f32(512)), Constant(f32(512)))
    yield case("GroupNormalization", "GroupNormalization", image, Constant(f32(32)), Constant(f32(32)), num_groups=32, opset=20)
    yield case("BatchNormalization", "BatchNormalization", image, *[Constant(positive(64)) for _ in range(4)])
    yield case("BatchNormalization of rows", "BatchNormalization", f32(256, 512), *[Constant(positive(512)) for _ in range(4)])
    yield case("LRN", "LRN", f32(1, 96, 55, 55), size=5)
    yield case("LpNormalization", "LpNormalization", f32(256, 768), axis=-1)
    yield case("LpNormalization axis 1", "LpNormalization", image, axis=1)
    yield case("MeanVarianceNormalization", "MeanVarianceNormalization", image)
    yield case("SkipLayerNormalization", "SkipLayerNormalization", x, f32(1, 197, 768), Constant(f32(768)), Constant(f32(768)), domain="com.microsoft")
    yield case("SimplifiedLayerNormalization", "SimplifiedLayerNormalization", x, Constant(f32(768)))


def pools():
    image, line, volume = f32(1, 64, 56, 56), f32(1, 256, 2000), f32(1, 32, 16, 28, 28)
    for op in ("MaxPool", "AveragePool", "LpPool"):
        yield case(f"{op} 3x3", op, image, kernel_shape=[3, 3], pads=[1] * 4)
        yield case(f"{op} 2x2/2", op, image, kernel_shape=[2, 2], strides=[2, 2])
        yield case(f"{op} 3x3/2", op, f32(1, 64, 112, 112), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        yield case(f"{op} 1-D 3/2", op, line, kernel_shape=[3], strides=[2])
        yield case(f"{op} 3-D 2x2x2/2", op, volume, kernel_shape=[2, 2, 2], strides=[2, 2, 2])
        yield case(f"{op} 3-D 3x3x3", op, volume, kernel_shape=[3, 3, 3], pads=[1] * 6)
    for op in ("MaxPool", "AveragePool"):
        yield case(f"{op} 3x3/2 ceil", op, image, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
        yield case(f"{op} 7x7", op, image, kernel_shape=[7, 7], pads=[3] * 4)
    yield case("MaxPool 5x5 of 20x20", "MaxPool", f32(1, 256, 20, 20), kernel_shape=[5, 5], pads=[2] * 4)
    yield case("AveragePool 3x3 of 14x14", "AveragePool", f32(1, 512, 14, 14), kernel_shape=[3, 3], pads=[1] * 4)
    yield case("AveragePool 3x3 with padding", "AveragePool", image, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1)
    yield case("AveragePool 2x2/2 of 14x14", "AveragePool", f32(1, 512, 14, 14), kernel_shape=[2, 2], strides=[2, 2])
    yield case("AveragePool 8x8/8", "AveragePool", image, kernel_shape=[8, 8], strides=[8, 8])
    yield case("AveragePool 1-D 25", "AveragePool", f32(1, 7, 720), kernel_shape=[25], strides=[1])
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        yield case(f"{op} 7x7", op, f32(1, 2048, 7, 7))
        yield case(f"{op} 112x112", op, f32(1, 64, 112, 112))
        yield case(f"{op} 1-D", op, f32(1, 512, 3000))
    yield case("MaxPool with indices", "MaxPool", image, kernel_shape=[2, 2], strides=[2, 2], outputs=2)


def samplers():
    image = f32(1, 64, 28, 28)
    for mode in ("nearest", "linear", "cubic"):
        yield case(f"Resize {mode} x2", "Resize", image, None, Constant(np.array([1, 1, 2, 2], np.float32)), mode=mode,
                   **({"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"} if mode == "nearest" else {}))
        yield case(f"Resize {mode} to odd sizes", "Resize", f32(1, 3, 480, 640), None, None, Constant(i64(1, 3, 224, 300)), mode=mode)
    yield case("Resize linear, aligned corners", "Resize", image, None, Constant(np.array([1, 1, 4, 4], np.float32)), mode="linear", coordinate_transformation_mode="align_corners")
    yield case("Resize linear, antialias", "Resize", f32(1, 3, 480, 640), None, None, Constant(i64(1, 3, 224, 224)), mode="linear", antialias=1)
    yield case("Resize nearest x2 of 1-D", "Resize", f32(1, 256, 1000), None, Constant(np.array([1, 1, 2], np.float32)), mode="nearest")
    yield case("Resize nearest x2 of 3-D", "Resize", f32(1, 32, 8, 14, 14), None, Constant(np.array([1, 1, 2, 2, 2], np.float32)), mode="nearest")
    yield case("Resize linear x2 of 3-D", "Resize", f32(1, 32, 8, 14, 14), None, Constant(np.array([1, 1, 2, 2, 2], np.float32)), mode="linear")
    yield case("Upsample", "Upsample", image, Constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest", opset=9)
    grid = RNG.uniform(-1.1, 1.1, (1, 56, 56, 2)).astype(np.float32)
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection") if mode == "linear" else ("zeros",):
            yield case(f"GridSample {mode} {padding}", "GridSample", f32(1, 64, 56, 56), grid, mode=mode, padding_mode=padding)
    yield case("GridSample of 3 channels", "GridSample", f32(1, 3, 224, 224), RNG.uniform(-1, 1, (1, 224, 224, 2)).astype(np.float32), mode="linear", align_corners=1)
    yield case("GridSample of few points", "GridSample", f32(8, 32, 64, 64), RNG.uniform(-1, 1, (8, 300, 4, 2)).astype(np.float32), mode="linear")
    volume_grid = RNG.uniform(-1, 1, (1, 8, 28, 28, 3)).astype(np.float32)
    for mode in ("linear", "nearest"):
        yield case(f"GridSample {mode} of 3-D", "GridSample", f32(1, 16, 8, 28, 28), volume_grid, mode=mode)
    yield case("DeformConv 64 of 3x3", "DeformConv", f32(1, 64, 28, 28), Constant(f32(64, 64, 3, 3)), f32(1, 18, 28, 28), Constant(f32(64)), f32(1, 9, 28, 28), kernel_shape=[3, 3], pads=[1] * 4, opset=19)
    yield case("DeformConv 256 of 3x3, no mask", "DeformConv", f32(1, 256, 20, 20), Constant(f32(256, 256, 3, 3)), f32(1, 18, 20, 20), kernel_shape=[3, 3], pads=[1] * 4, opset=19)
    yield case("RoiAlign", "RoiAlign", f32(1, 256, 50, 50), RNG.uniform(0, 400, (50, 4)).astype(np.float32), below(1, 50), output_height=7, output_width=7, spatial_scale=0.125, sampling_ratio=2)
    yield case("RoiAlign adaptive", "RoiAlign", f32(1, 256, 50, 50), np.sort(RNG.uniform(0, 400, (50, 2, 2)).astype(np.float32), axis=1).reshape(50, 4), below(1, 50), output_height=7, output_width=7, spatial_scale=0.125)
    yield case("AffineGrid", "AffineGrid", f32(4, 2, 3), Constant(i64(4, 3, 128, 128)))


def moves():
    image, x = f32(1, 64, 56, 56), f32(1, 128, 3072)
    for mode in ("constant", "reflect", "edge", "wrap"):
        yield case(f"Pad {mode}", "Pad", image, Constant(i64(0, 0, 1, 1, 0, 0, 1, 1)), mode=mode)
    yield case("Pad reflect of a line", "Pad", f32(1, 1, 80000), Constant(i64(0, 0, 200, 0, 0, 200)), mode="reflect")
    yield case("Pad of channels", "Pad", image, Constant(i64(0, 0, 0, 0, 0, 64, 0, 0)))
    for perm in ((0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 3, 2), (1, 0, 2, 3), (3, 2, 1, 0)):
        yield case(f"Transpose {''.join(map(str, perm))}", "Transpose", image, perm=perm)
    yield case("Transpose of heads", "Transpose", f32(1, 128, 12, 64), perm=(0, 2, 1, 3))
    yield case("Transpose of heads back", "Transpose", f32(1, 12, 128, 64), perm=(0, 2, 1, 3))
    yield case("Transpose of keys", "Transpose", f32(1, 128, 12, 64), perm=(0, 2, 3, 1))
    yield case("Transpose of a matrix", "Transpose", f32(768, 768), perm=(1, 0))
    yield case("Transpose of windows", "Transpose", f32(1, 8, 7, 8, 7, 96), perm=(0, 1, 3, 2, 4, 5))
    yield case("Transpose of a patch embedding", "Transpose", f32(1, 3, 14, 16, 14, 16), perm=(0, 2, 4, 3, 5, 1))
    yield case("Transpose of a shuffle", "Transpose", f32(1, 2, 116, 28, 28), perm=(0, 2, 1, 3, 4))
    yield case("SpaceToDepth", "SpaceToDepth", f32(1, 12, 128, 128), blocksize=2)
    yield case("DepthToSpace", "DepthToSpace", f32(1, 256, 28, 28), blocksize=2)
    yield case("DepthToSpace CRD", "DepthToSpace", f32(1, 27, 112, 112), blocksize=3, mode="CRD")
    for axis in (1, 2, 3, 0):
        yield case(f"Concat axis {axis}", "Concat", f32(1, 64, 28, 28), f32(1, 64, 28, 28), f32(1, 64, 28, 28), axis=axis)
    yield case("Concat of a cache", "Concat", f32(1, 12, 511, 64), f32(1, 12, 1, 64), axis=2)
    yield case("Concat of columns", "Concat", f32(4096, 1), f32(4096, 1), f32(4096, 2), axis=1)
    for axis in (1, 2, 3):
        yield case(f"Split axis {axis}", "Split", image, axis=axis, num_outputs=2, outputs=2)
    yield case("Split of a projection", "Split", f32(1, 128, 2304), axis=2, num_outputs=3, outputs=3)
    yield case("Slice of columns", "Slice", x, Constant(i64(0)), Constant(i64(1536)), Constant(i64(2)))
    yield case("Slice with steps", "Slice", image, Constant(i64(0, 0)), Constant(i64(56, 56)), Constant(i64(2, 3)), Constant(i64(2, 2)))
    yield case("Slice backwards", "Slice", image, Constant(i64(-1)), Constant(i64(-1000)), Constant(i64(3)), Constant(i64(-1)))
    yield case("Slice of a step 2 in rows", "Slice", image, Constant(i64(0)), Constant(i64(56)), Constant(i64(2)), Constant(i64(2)))
    yield case("Gather of rows", "Gather", Constant(f32(30522, 768)), below(30522, 1, 128))
    yield case("Gather of short rows", "Gather", Constant(f32(1000, 16)), below(1000, 4, 2048))
    yield case("Gather of columns", "Gather", f32(256, 512), below(512, 256), axis=1)
    yield case("Gather of channels", "Gather", image, below(64, 64), axis=1)
    yield case("GatherElements axis 1", "GatherElements", f32(256, 1000), below(1000, 256, 500), axis=1)
    yield case("GatherElements axis 0", "GatherElements", f32(256, 1000), below(256, 128, 1000), axis=0)
    yield case("GatherND of points", "GatherND", f32(128, 128, 16), np.stack([below(128, 4000), below(128, 4000)], -1))
    yield case("GatherND of elements", "GatherND", f32(256, 1000), np.stack([below(256, 8000), below(1000, 8000)], -1))
    yield case("ScatterElements", "ScatterElements", f32(256, 1000), below(1000, 256, 200), f32(256, 200), axis=1)
    yield case("ScatterElements add", "ScatterElements", f32(256, 1000), below(1000, 256, 200), f32(256, 200), axis=1, reduction="add")
    yield case("ScatterElements axis 0 add", "ScatterElements", f32(1000, 64), np.repeat(below(1000, 4000, 1), 64, 1), f32(4000, 64), axis=0, reduction="add")
    yield case("ScatterND of rows", "ScatterND", f32(1000, 256), below(1000, 400, 1), f32(400, 256))
    yield case("ScatterND of elements", "ScatterND", f32(256, 1000), np.stack([below(256, 8000), below(1000, 8000)], -1), f32(8000))
    yield case("ScatterND of a cache", "ScatterND", f32(512, 12, 64), below(512, 8, 1), f32(8, 12, 64))
    yield case("Expand of rows", "Expand", f32(1, 1, 768), Constant(i64(1, 256, 768)))
    yield case("Expand of columns", "Expand", f32(256, 1), Constant(i64(256, 768)))
    yield case("Expand of heads", "Expand", f32(1, 4, 1, 128, 64), Constant(i64(1, 4, 8, 128, 64)))
    yield case("Tile of rows", "Tile", f32(1, 64, 128), Constant(i64(1, 8, 1)))
    yield case("Tile of columns", "Tile", f32(64, 128), Constant(i64(1, 16)))
    yield case("Tile of elements", "Tile", f32(4096, 1), Constant(i64(1, 64)))
    yield case("Trilu", "Trilu", f32(1, 1, 512, 512), upper=1)
    yield case("OneHot", "OneHot", below(1000, 256), Constant(np.int64(1000)), Constant(np.array([0, 1], np.float32)))
    yield case("OneHot axis 1", "OneHot", below(21, 1, 128, 128), Constant(np.int64(21)), Constant(np.array([0, 1], np.float32)), axis=1)
    yield case("NonZero", "NonZero", np.maximum(f32(512, 512), 0))
    yield case("NonZero of bools", "NonZero", f32(512, 512) > 1)
    yield case("Unique", "Unique", below(1000, 20000).astype(np.float32), outputs=4)
    yield case("Compress", "Compress", f32(4096, 64), f32(4096) > 0, axis=0)
    yield case("ReverseSequence", "ReverseSequence", f32(128, 16, 256), below(128, 16) + 1, batch_axis=1, time_axis=0)
    yield case("EyeLike", "EyeLike", f32(512, 512))
    yield case("ConstantOfShape", "ConstantOfShape", i64(512, 768), value=helper.make_tensor("v", 1, [1], [0.5]))
    yield case("Range", "Range", np.float32(0), np.float32(100000), np.float32(1))
    yield case("Col2Im", "Col2Im", f32(1, 64 * 9, 28 * 28), Constant(i64(28, 28)), Constant(i64(3, 3)), pads=[1] * 4)


def products():
    yield case("MatMul of a vector", "MatMul", f32(1, 768), Constant(f32(768, 3072)))
    yield case("MatMul", "MatMul", f32(128, 768), Constant(f32(768, 768)))
    yield case("Gemm", "Gemm", f32(64, 512), Constant(f32(1000, 512)), Constant(f32(1000)), transB=1)
    yield case("MatMul of scores", "MatMul", f32(1, 12, 128, 64), f32(1, 12, 64, 128))
    yield case("MatMul of values", "MatMul", f32(1, 12, 128, 128), f32(1, 12, 128, 64))
    yield case("MatMul of scores, one query", "MatMul", f32(1, 12, 1, 64), f32(1, 12, 64, 512))
    yield case("MatMul of values, one query", "MatMul", f32(1, 12, 1, 512), f32(1, 12, 512, 64))
    yield case("MatMul of scores, 4 queries", "MatMul", f32(4, 8, 4, 64), f32(4, 8, 64, 100))
    yield case("MatMul of thin rows", "MatMul", f32(8, 4, 100, 64), f32(8, 4, 64, 10))
    yield case("MatMul of windows", "MatMul", f32(64, 3, 49, 32), f32(64, 3, 32, 49))
    yield case("MatMul of batched vectors", "MatMul", f32(256, 1, 64), f32(256, 64, 64))
    yield case("MatMul by a batch of columns", "MatMul", f32(256, 64, 64), f32(256, 64, 1))
    yield case("MatMul of two matrices", "MatMul", f32(256, 512), f32(512, 256))
    yield case("MatMul 3 x 3 batched", "MatMul", f32(2000, 3, 3), f32(2000, 3, 3))
    for equation, *shapes in (("bhid,bhjd->bhij", (1, 12, 128, 64), (1, 12, 128, 64)), ("bhij,bhjd->bhid", (1, 12, 128, 128), (1, 12, 128, 64)), ("bchw,bkc->bkhw", (1, 64, 28, 28), (1, 16, 64)),
                              ("bthd,hde->bthe", (1, 128, 8, 64), (8, 64, 64)), ("bhwqc,wkc->bhwqk", (1, 4, 28, 28, 32), (28, 28, 32)), ("i,j->ij", (512,), (512,)), ("bij->bji", (8, 128, 256)),
                              ("bid,bid->bi", (8, 256, 64), (8, 256, 64)), ("nkctv,kvw->nctw", (1, 3, 64, 75, 25), (3, 25, 25))):
        yield case(f"Einsum {equation}", "Einsum", *[f32(*s) for s in shapes], equation=equation)


def convolutions():
    for name, x, w, more in (
            ("Conv 3x3", (1, 64, 56, 56), (64, 64, 3, 3), {"pads": [1] * 4}),
            ("Conv 1x1", (1, 256, 28, 28), (128, 256, 1, 1), {}),
            ("Conv 7x7/2 stem", (1, 3, 224, 224), (64, 3, 7, 7), {"pads": [3] * 4, "strides": [2, 2]}),
            ("Conv 16x16/16 patches", (1, 3, 224, 224), (192, 3, 16, 16), {"strides": [16, 16]}),
            ("Conv 3x3 dilated", (1, 64, 28, 28), (64, 64, 3, 3), {"pads": [2] * 4, "dilations": [2, 2]}),
            ("Conv 32 groups of 4", (1, 128, 56, 56), (128, 4, 3, 3), {"pads": [1] * 4, "group": 32}),
            ("Conv 32 groups of 4 /2", (1, 128, 56, 56), (128, 4, 3, 3), {"pads": [1] * 4, "group": 32, "strides": [2, 2]}),
            ("Conv 16 groups of 16", (1, 256, 28, 28), (256, 16, 3, 3), {"pads": [1] * 4, "group": 16}),
            ("Conv 32 groups of 8", (1, 256, 28, 28), (256, 8, 3, 3), {"pads": [1] * 4, "group": 32}),
            ("Conv 16 groups of 24", (1, 384, 14, 14), (384, 24, 3, 3), {"pads": [1] * 4, "group": 16}),
            ("Conv 2 groups of 48", (1, 96, 27, 27), (256, 48, 5, 5), {"pads": [2] * 4, "group": 2}),
            ("Conv depthwise 3x3", (1, 96, 56, 56), (96, 1, 3, 3), {"pads": [1] * 4, "group": 96}),
            ("Conv depthwise 3x3/2", (1, 96, 112, 112), (96, 1, 3, 3), {"pads": [1] * 4, "group": 96, "strides": [2, 2]}),
            ("Conv depthwise 5x5", (1, 240, 28, 28), (240, 1, 5, 5), {"pads": [2] * 4, "group": 240}),
            ("Conv depthwise 7x7", (1, 96, 56, 56), (96, 1, 7, 7), {"pads": [3] * 4, "group": 96}),
            ("Conv depthwise 7x7 of 14x14", (1, 384, 14, 14), (384, 1, 7, 7), {"pads": [3] * 4, "group": 384}),
            ("Conv depthwise multiplier 2", (1, 64, 28, 28), (128, 1, 3, 3), {"pads": [1] * 4, "group": 64}),
            ("Conv 1-D", (1, 80, 3000), (384, 80, 3), {"pads": [1, 1]}),
            ("Conv 1-D, groups of 4", (1, 64, 4000), (64, 4, 3), {"pads": [1, 1], "group": 16}),
            ("Conv 1-D, groups of 16", (1, 256, 2000), (256, 16, 3), {"pads": [1, 1], "group": 16}),
            ("Conv 1-D depthwise 31", (1, 256, 500), (256, 1, 31), {"pads": [15, 15], "group": 256}),
            ("Conv 1-D dilated", (1, 64, 4000), (64, 64, 3), {"pads": [4, 4], "dilations": [4]}),
            ("Conv 1-D of a wave", (1, 1, 16000), (512, 1, 10), {"strides": [5]}),
            ("Conv 3-D", (1, 16, 16, 28, 28), (32, 16, 3, 3, 3), {"pads": [1] * 6}),
            ("Conv to 1 channel", (1, 64, 56, 56), (1, 64, 3, 3), {"pads": [1] * 4}),
            ("Conv to 3 channels", (1, 64, 112, 112), (3, 64, 3, 3), {"pads": [1] * 4}),
            ("Conv to 4 channels", (1, 320, 32, 32), (4, 320, 3, 3), {"pads": [1] * 4}),
            ("Conv 1-D to a wave", (1, 32, 16000), (1, 32, 7), {"pads": [3, 3]}),
            ("Conv 1-D of a wave, 7 taps", (1, 1, 16000), (32, 1, 7), {"pads": [3, 3]}),
            ("Conv 1-D 3/2", (1, 512, 1000), (512, 512, 3), {"strides": [2]}),
            ("Conv 1-D 11, dilated", (1, 64, 4000), (64, 64, 11), {"pads": [25, 25], "dilations": [5]}),
            ("Conv 1-D 7, 32 channels", (1, 32, 8000), (32, 32, 7), {"pads": [3, 3]}),
            ("Conv 1-D 128, 16 groups", (1, 768, 250), (768, 48, 128), {"pads": [64, 64], "group": 16})):
        yield case(name, "Conv", f32(*x), Constant(f32(*w)), Constant(f32(w[0])), **more)
    for name, x, w, more in (
            ("ConvTranspose 2x2/2", (1, 128, 28, 28), (128, 64, 2, 2), {"strides": [2, 2]}),
            ("ConvTranspose 4x4/2", (1, 64, 28, 28), (64, 32, 4, 4), {"strides": [2, 2], "pads": [1] * 4}),
            ("ConvTranspose 3x3/2", (1, 64, 28, 28), (64, 32, 3, 3), {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}),
            ("ConvTranspose depthwise 4x4/2", (1, 64, 28, 28), (64, 1, 4, 4), {"strides": [2, 2], "pads": [1] * 4, "group": 64}),
            ("ConvTranspose 1-D 4/2", (1, 64, 4000), (64, 32, 4), {"strides": [2], "pads": [1, 1]}),
            ("ConvTranspose 1-D 16/8", (1, 256, 100), (256, 128, 16), {"strides": [8], "pads": [4, 4]}),
            ("ConvTranspose 3-D 2x2x2/2", (1, 32, 8, 14, 14), (32, 16, 2, 2, 2), {"strides": [2, 2, 2]})):
        yield case(name, "ConvTranspose", f32(*x), Constant(f32(*w)), Constant(f32(w[1] * more.get("group", 1))), **more)


def recurrent():
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for steps, batch, size, direction in ((50, 1, 128, "forward"), (50, 1, 256, "bidirectional"), (20, 16, 128, "forward")):
            d = 2 if direction == "bidirectional" else 1
            more = {"linear_before_reset": 1} if op == "GRU" else {}
            yield case(f"{op} {size} {direction}, batch {batch}", op, f32(steps, batch, size), Constant(f32(d, gates * size, size) * np.float32(0.1)), Constant(f32(d, gates * size, size) * np.float32(0.1)),
                       Constant(f32(d, 2 * gates * size)), hidden_size=size, direction=direction, outputs=2, **more)


def signals():
    yield case("DFT", "DFT", f32(16, 512, 1), None, Constant(np.int64(1)), opset=20)
    yield case("DFT onesided", "DFT", f32(16, 400, 1), None, Constant(np.int64(1)), onesided=1, opset=20)
    yield case("STFT", "STFT", f32(1, 16000, 1), Constant(np.int64(160)), Constant(np.hanning(400).astype(np.float32)), onesided=1)
    yield case("HannWindow", "HannWindow", np.int64(16000))
    yield case("MelWeightMatrix", "MelWeightMatrix", np.int64(80), np.int64(400), np.int64(16000), np.float32(0), np.float32(8000))
    yield case("Det", "Det", f32(64, 16, 16))
    boxes = np.concatenate([RNG.uniform(0, 500, (1, 2000, 2)), RNG.uniform(510, 640, (1, 2000, 2))], -1).astype(np.float32)
    yield case("NonMaxSuppression", "NonMaxSuppression", boxes, RNG.uniform(0, 1, (1, 4, 2000)).astype(np.float32), Constant(i64(100)), Constant(np.array([0.5], np.float32)), Constant(np.array([0.3], np.float32)))
    yield case("NegativeLogLikelihoodLoss", "NegativeLogLikelihoodLoss", f32(256, 1000), below(1000, 256))
    yield case("SoftmaxCrossEntropyLoss", "SoftmaxCrossEntropyLoss", f32(256, 1000), below(1000, 256))


FAMILIES = (pointwise, reductions, norms, pools, samplers, moves, products, convolutions, recurrent, signals)


def cases():
    for family in FAMILIES:
        for found in family():
            yield family.__name__, *found
